"""What the data show by themselves: do features predict the tags, is the noise random, which labels go together?

Candidates alone do not tell random noise from tags that the features do not explain, or from mistakes that follow the
features or other labels. Random noise has one mark, though: wrong tags also fall on rows that clearly lack the label, at
the same rate for all labels, whatever else the row carries. If that is not seen, the number of wrong tags is not known.
What follows from it and from verified cells is concluded here: confidences, actions and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm, rankdata
from sklearn import config_context
from sklearn.metrics import roc_auc_score
from sklearn.utils import Bunch, gen_batches

from skpml.cleaning._judging import (
    ASK,
    DROP,
    KEEP,
    ROWS_AT_ONCE,
    Actions,
    Floats,
    count_from_sample,
    count_without_noise,
    count_wrong,
    suggest_actions,
)
from skpml.features import RangeScaler, RBFAnchors
from skpml.likelihood import ENOUGH_CANDIDATES, certify_drops, learn_from_verified, posterior
from skpml.linalg import spectrum_of

# Standard errors by which scores must put candidates before other rows: over all labels, and of each label.
_ERRORS_OF_ALL, _ERRORS_OF_EACH = 3.0, 2.0
# A row clearly lacks a label if a candidate there would be right with less than this probability; for the test of what
# goes together with less than the second one, because true labels do have companions.
_CLEAR, _CLEAREST = 0.1, 0.02
# Least share of the wrong candidates that must be in such rows, and largest squared variation of the rates of labels.
_LEAST_CLEAR, _MOST_VARIATION = 1 / 3, 0.04
# Random noise is rejected if the other candidates of a row matter with at most this probability by chance.
_SIGNIFICANT = 0.01
# Permutations for this test, and for the mean of the variation.
_N_SHUFFLES, _N_FOR_MEAN = 99, 20
# Cells that are permuted; more take time and hardly change the answer.
_MOST_CELLS = 300_000
# Labels whose candidates agree in more than this share of the rows that have one of them cannot be told apart.
_SAME = 0.95
# Pairs of labels: standard errors beyond what the features explain, factor, and how many are listed.
_SUSPICIOUS, _FACTOR, _N_PAIRS = 6.0, 1.5, 20
# Anchors of the regression that learns from verified cells, with few rows and with many.
_ANCHORS, _FEW_ANCHORS, _MANY_ROWS = 1000, 300, 20_000
# How sure it must be that drops are as precise as promised.
SURE = 0.95


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What an audit rests on.

    Parameters
    ----------
    informative : bool
        Whether the features predict the candidates better than their frequencies do.
    random_noise : bool
        Whether the wrong candidates look random: only then their number can be estimated without checked tags.
    p_value : float
        Of the permutation test that the other candidates of a row do not matter for wrong ones.
    clear_share : float
        Share of the estimated wrong candidates in rows that clearly lack the label; at least 1/3 if noise is random.
    rate_variation : float
        Squared relative variation of the noise rates of labels in such rows; at most 0.04 if noise is random.
    n_verified : int
        Number of verified cells.
    n_sample : int
        Number of these that are a random sample of the candidates.
    auc : float
        Probability that, of two verified candidates, the wrong one has the lower confidence, by models that did not see
        their answers; NaN without both kinds.
    drops : {"verified", "random noise", "votes", "none"}
        What automatic drops rest on.
    drops_wrong : float
        Share of the automatic drops that is wrong, at least: that of ``drop_precision`` if they rest on verified
        candidates; under the least noise that the candidates allow, if they rest on random noise; NaN without drops.
    fast : bool
        Whether it was a first look, which drops and counts nothing without verified candidates.
    """

    informative: bool
    random_noise: bool
    p_value: float
    clear_share: float
    rate_variation: float
    n_verified: int
    n_sample: int
    auc: float
    drops: str
    drops_wrong: float
    fast: bool = False


@dataclass(frozen=True, kw_only=True)
class Companion:
    """A pair of labels that come together more often than the features explain.

    Parameters
    ----------
    label, other : str
        Names of the labels.
    observed : int
        Number of rows that have both.
    expected : float
        Number that the features explain.
    """

    label: str
    other: str
    observed: int
    expected: float


def find_informative(scores: Floats, Y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for which labels the scores put rows that carry the label before others, more than by chance.

    Otherwise only the frequencies of labels are left to explain, which noise in proportion to them does, and all tags
    would look wrong. The statistic is that of the rank-sum test. If it fails for all labels together,
    none is informative.
    """
    n, carried = len(Y), (Y > 0).sum(axis=0)
    surplus = np.sum(rankdata(scores, axis=0) * (Y > 0), axis=0) - carried * (n + 1) / 2
    variance = carried * (n - carried) * (n + 1) / 12
    enough = surplus.sum() > _ERRORS_OF_ALL * np.sqrt(variance.sum())
    return np.asarray(enough & (surplus > _ERRORS_OF_EACH * np.sqrt(variance)))


def examine_noise(found: Bunch, Y: NDArray[Any], random_state: int) -> Bunch:
    """Test whether wrong candidates are random, given what was found under this assumption.

    Rows that clearly lack a label still carry it at the noise rate. Under random noise, most wrong candidates should be
    visible there; the rate should be the same for all labels; and within a row, such candidates are exchangeable:
    swapping them among the labels that the row clearly lacks must not change how they go with the other candidates.
    """
    candidate = Y > 0
    right = posterior(found.probabilities, np.maximum(found.noise_rate, 1e-9), np.ones_like(Y))
    n_wrong = float(np.sum(1 - found.confidences[candidate]))
    share = np.count_nonzero(candidate & (right < _CLEAR)) / max(n_wrong, 1.0)
    random = np.random.default_rng(random_state)
    some = np.arange(len(Y))
    if Y.size > _MOST_CELLS:
        some = random.permutation(len(Y))[: max(_MOST_CELLS // Y.shape[1], 1)]
    present, lacking, surely = (
        candidate[some].astype(np.float64),
        right[some] < _CLEAR,
        right[some] < _CLEAREST,
    )
    p_value, spread = 1.0, 0.0
    if np.any(present * surely):
        mixed = [_companionship(_shuffle(present, surely, random), surely) for _ in range(_N_SHUFFLES)]
        p_value = (1 + np.sum(np.array(mixed) >= _companionship(present, surely))) / (_N_SHUFFLES + 1)
    if visible := np.sum(present * lacking):
        usual = np.mean([_variation(_shuffle(present, lacking, random), lacking) for _ in range(_N_FOR_MEAN)])
        spread = float(max(_variation(present, lacking) - usual, 0.0) / visible)
    accepted = share >= _LEAST_CLEAR and spread <= _MOST_VARIATION and p_value > _SIGNIFICANT
    return Bunch(
        random_noise=bool(accepted), p_value=float(p_value), clear_share=float(share), rate_variation=spread
    )


def _shuffle(present: Floats, lacking: NDArray[np.bool_], random: np.random.Generator) -> Floats:
    """Permute, in each row, the entries of the labels that it lacks."""
    c = present.shape[1]
    source = np.argsort(np.where(lacking, random.random(present.shape), 2.0 + np.arange(c)), axis=1)
    target = np.argsort(np.where(lacking, 0, c) + np.arange(c), axis=1)
    out = present.copy()
    np.put_along_axis(out, target, np.take_along_axis(present, source, axis=1), axis=1)
    return out


def _companionship(present: Floats, lacking: NDArray[np.bool_]) -> float:
    """Measure how much candidates of clearly lacking labels depend on the other candidates of their rows."""
    rate = np.sum(present * lacking, axis=0) / np.maximum(lacking.sum(axis=0), 1)
    residual = lacking * (present - rate)
    # Which other candidates there are, not how many: noise that fills rows up to a number is random too.
    others = present / np.maximum(present.sum(axis=1, keepdims=True), 1)
    others = others - others.mean(axis=0)
    together, variance = residual.T @ others, (residual**2).T @ others**2
    valid = (variance > 1e-9) & ~np.eye(len(rate), dtype=np.bool_)
    return float(np.sum(together[valid] ** 2 / variance[valid]))


def _variation(present: Floats, lacking: NDArray[np.bool_]) -> float:
    """Return the chi-squared statistic of the number of candidates by label, given the number in each row."""
    here = present * lacking
    usual = here.sum(axis=1, keepdims=True) / np.maximum(lacking.sum(axis=1, keepdims=True), 1)
    expected = np.sum(lacking * usual, axis=0)
    valid = expected > 0
    return float(np.sum((here.sum(axis=0) - expected)[valid] ** 2 / expected[valid]))


def find_twins(Y: NDArray[Any], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return groups of labels with nearly the same candidates: nothing can tell which of them is right."""
    together = _multiply_labels(Y > 0)
    count = np.diag(together)
    either = count[:, None] + count - together
    same = (together > _SAME * np.maximum(either, 1)) & (together > 0)
    groups, seen = [], set()
    for label in range(len(names)):
        group = [other for other in np.flatnonzero(same[label]).tolist() if other not in seen]
        if len(group) > 1 and label not in seen:
            groups.append(tuple(names[other] for other in group))
            seen.update(group)
    return groups


def find_companions(expected: Floats, Y: NDArray[Any], names: Sequence[str]) -> list[Companion]:
    """Return pairs of labels that come together more often than their features explain, the strangest first.

    ``expected`` (n×c) are the probabilities of candidates, true or not, by the features alone.
    """
    both, usual = _multiply_labels(Y > 0), _multiply_labels(expected)
    deviation = np.sqrt(np.maximum(usual, 1.0))
    surplus = np.triu((both - usual) / deviation, k=1)
    pairs = np.argwhere((surplus > _SUSPICIOUS) & (both > _FACTOR * usual))
    order = np.argsort(-surplus[tuple(pairs.T)], kind="stable")[:_N_PAIRS]
    return [
        Companion(
            label=names[one],
            other=names[other],
            observed=int(both[one, other]),
            expected=float(usual[one, other]),
        )
        for one, other in pairs[order].tolist()
    ]


def _multiply_labels(values: NDArray[Any]) -> Floats:
    """Compute ``VᵀV`` (c×c) in double precision, some rows at a time."""
    total = np.zeros((values.shape[1], values.shape[1]))
    for rows in gen_batches(len(values), ROWS_AT_ONCE):
        some = values[rows].astype(np.float64)
        total += some.T @ some
    return total


def conclude(
    first: Bunch,
    X: Any,
    Y: NDArray[Any],
    *,
    verified: NDArray[np.int8],
    sample: NDArray[np.bool_],
    rule: dict[str, Any],
    drop_precision: float | None,
    random_state: int,
    spectrum: Any = None,
) -> Bunch:
    """Learn from verified cells, and decide: ``confidences``, ``actions``, ``wrong`` counts and ``evidence``.

    Drops go up to the confidence ``most``. In ``judged``, verified cells have the confidence of models that did not see
    their answers. ``first`` is what was found without verified cells, ``spectrum`` the features of the rows, if known.
    """
    candidate = Y > 0
    judged = confidences = first.found.confidences
    if verified.any():
        if spectrum is None and X is not None:
            spectrum = make_spectrum(X, random_state)
        options = {"spectrum": spectrum, "random_state": random_state}
        learned = learn_from_verified(Y, verified, judged, first.found.probabilities, **options)
        judged, confidences = learned.judged, np.where(candidate, learned.confidences, verified > 0)
    basis, most = _find_basis(first.label_free, judged, verified, sample, rule["drop_below"], drop_precision)
    actions = decide(
        confidences,
        first.found.at_least_noise,
        candidate,
        verified,
        rule=rule,
        basis=basis,
        most=most,
        undecided=first.undecided,
    )
    doubtful = first.found.at_least_noise if basis == "random noise" else confidences
    if np.count_nonzero(sample) >= ENOUGH_CANDIDATES:
        wrong = count_from_sample(judged, candidate, verified, sample)
    elif first.label_free == "random noise":
        wrong = count_wrong(first.found, Y, unknown=first.undecided)
    else:
        wrong = count_without_noise(confidences, candidate, verified, known=first.label_free == "votes")
    evidence = Evidence(
        informative=first.informative,
        n_verified=int(np.count_nonzero(verified)),
        n_sample=int(sample.sum()),
        auc=_measure_order(judged, verified, Y),
        drops=basis,
        drops_wrong=promise(doubtful, actions, verified, basis, drop_precision),
        fast=first.get("fast", False),
        **first.noise,
    )
    return Bunch(
        confidences=confidences, judged=judged, actions=actions, wrong=wrong, evidence=evidence, most=most
    )


def decide(
    confidences: Floats,
    at_least_noise: Floats,
    candidate: NDArray[np.bool_],
    verified: NDArray[np.int8],
    *,
    rule: dict[str, Any],
    basis: str,
    most: float | NDArray[Any],
    undecided: NDArray[np.bool_],
) -> Actions:
    """Return the action of each candidate; drops rest on a ``basis``, up to the confidence ``most`` (one, or by row)."""
    actions = Actions(candidate.shape)
    actions[candidate] = suggest_actions(confidences[candidate], **rule)
    withheld = (confidences > most) | undecided
    if basis == "random noise":
        withheld |= at_least_noise > 0.5
    actions[(actions == DROP) & withheld] = ASK if rule["budget"] is None else KEEP
    _respect_person(actions, verified, confidences)
    return actions


def promise(
    doubtful: NDArray[Any],
    actions: Actions,
    verified: NDArray[np.int8],
    basis: str,
    drop_precision: float | None,
) -> float:
    """Return the share of automatic drops that is wrong at least, but for chance; NaN without drops.

    ``doubtful`` are the confidences that drops are judged by.
    """
    of_drops = doubtful[(actions == DROP) & (verified == 0)].astype(np.float64)
    if not len(of_drops):
        return float("nan")
    if basis == "verified" and drop_precision is not None:
        return drop_precision
    deviation = float(np.sqrt(np.sum(of_drops * (1 - of_drops)))) / len(of_drops)
    return max(0.0, float(np.mean(1 - of_drops)) - float(norm.ppf(SURE)) * deviation)


def make_spectrum(X: Any, random_state: int) -> Any:
    """Return the features of the rows for the regression that learns from verified cells."""
    n_anchors = _ANCHORS if X.shape[0] <= _MANY_ROWS else _FEW_ANCHORS
    with config_context(transform_output="default"):
        scaled = RangeScaler().fit_transform(X)
        mapped = RBFAnchors(n_anchors=n_anchors, random_state=random_state).fit_transform(scaled)
    # The last column is the constant; the spectrum centers its features.
    return spectrum_of(mapped[:, :-1].astype(np.float64))


def _find_basis(
    label_free: str,
    judged: Floats,
    verified: NDArray[np.int8],
    sample: NDArray[np.bool_],
    drop_below: float,
    drop_precision: float | None,
) -> tuple[str, float]:
    """Return what drops rest on, and the confidence up to which tags may be dropped."""
    if sample.any():
        if drop_precision is None:
            return "verified", 1.0
        sure, wrong = judged[sample], verified[sample] < 0
        most = certify_drops(sure, wrong, precision=drop_precision, level=SURE)
        if most >= 0:
            return "verified", most
        among = wrong[sure < drop_below]
        if len(among) and binom.cdf(among.sum(), len(among), drop_precision) < 1 - SURE:
            # The sample shows that drops would not be precise.
            return "none", -1.0
    return label_free, -1.0 if label_free == "none" else 1.0


def _respect_person(actions: Actions, verified: NDArray[np.int8], confidences: Floats) -> None:
    """Set the actions of verified candidates; ask before a row loses its last tag without a person."""
    candidate = actions != ""
    actions[candidate & (verified > 0)], actions[candidate & (verified < 0)] = KEEP, DROP
    automatic = (actions == DROP) & (verified == 0)
    emptied = np.flatnonzero(~(candidate & (actions != DROP)).any(axis=1) & automatic.any(axis=1))
    best = np.where(automatic[emptied], confidences[emptied], -1.0).argmax(axis=1)
    actions[emptied, best] = ASK


def _measure_order(judged: Floats, verified: NDArray[np.int8], Y: NDArray[Any]) -> float:
    """Return the area under the ROC curve over verified candidates, by models that did not see their answers."""
    cells = (Y > 0) & (verified != 0)
    wrong = verified[cells] < 0
    if wrong.all() or not wrong.any():
        return float("nan")
    return float(roc_auc_score(wrong, -judged[cells]))
