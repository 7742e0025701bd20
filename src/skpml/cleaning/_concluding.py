"""What follows from judged candidates: confidences with verified cells, actions, counts and the evidence for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm
from sklearn import config_context
from sklearn.metrics import roc_auc_score
from sklearn.utils import Bunch

from skpml.cleaning._evidence import Evidence
from skpml.cleaning._judging import (
    ASK,
    DROP,
    KEEP,
    Floats,
    count_from_sample,
    count_without_noise,
    count_wrong,
    suggest_actions,
)
from skpml.features import RangeScaler, RBFAnchors
from skpml.likelihood import ENOUGH_CANDIDATES, certify_drops, learn_from_verified
from skpml.linalg import spectrum_of

# Anchors of the regression that learns from verified cells, with few rows and with many.
_ANCHORS, _FEW_ANCHORS, _MANY_ROWS = 1000, 300, 20_000
# How sure it must be that drops are as precise as promised.
SURE = 0.95


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
) -> NDArray[np.str_]:
    """Return the action of each candidate; drops rest on a ``basis``, up to the confidence ``most`` (one, or by row)."""
    actions = np.full(candidate.shape, "", dtype="<U4")
    actions[candidate] = suggest_actions(confidences[candidate], **rule)
    withheld = (confidences > most) | undecided
    if basis == "random noise":
        withheld |= at_least_noise > 0.5
    actions[(actions == DROP) & withheld] = ASK if rule["budget"] is None else KEEP
    _respect_person(actions, verified, confidences)
    return actions


def promise(
    doubtful: NDArray[Any],
    actions: NDArray[np.str_],
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


def _respect_person(actions: NDArray[np.str_], verified: NDArray[np.int8], confidences: Floats) -> None:
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
