"""PAMB: many small binary problems cut out of the candidates by ternary codes, decoded with weights."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb, floor, log2
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from skpml._docstrings import fill_docstring
from skpml._ordering import label_order
from skpml._validation import is_count
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import MAX_ANCHORS, RangeScaler, as_dense, resolve_feature_map
from skpml.linalg import factor_gram, lower_gram, one_blas, ridge_factor

Code = NDArray[np.int8]

# Rows that a binary problem needs on each side.
_LEAST_ROWS = 5
# Columns drawn for each column wanted, before giving up.
_DRAWS_PER_COLUMN = 20
# Margins are clipped here, so that no exponential overflows.
_LARGEST_MARGIN = 20.0
# Products of rows that are kept: 256 MB in double precision.
_MOST_PRODUCTS = 2**25


def count_columns(c: int, nonzeros: int) -> int:
    """Count columns with this many non-zeros and both signs; a column and its negative count once."""
    return comb(c, nonzeros) * (2 ** (nonzeros - 1) - 1) if nonzeros >= 2 else 0


def draw_columns(rng: np.random.RandomState, c: int, nonzeros: int, size: int) -> Code:
    """Draw columns (c×size) with ``nonzeros`` values ±1, the first of them +1, and both signs; others are dropped."""
    signs = 2 * rng.randint(2, size=(c, size)) - 1
    places = rng.random_sample((c, size)).argsort(axis=0)
    columns = np.where(places < nonzeros, signs, 0).astype(np.int8)
    columns = columns[:, np.abs(columns.sum(axis=0)) < nonzeros]
    first = columns[(columns != 0).argmax(axis=0), np.arange(columns.shape[1])]
    return columns * first


def sides(Y: NDArray[Any], code: Code) -> NDArray[np.int8]:
    """Form the binary problem of each column (n×L): +1 or −1 if the candidates have one sign of the code only, else 0."""
    meets_plus = Y @ (code > 0).astype(Y.dtype) > 0
    meets_minus = Y @ (code < 0).astype(Y.dtype) > 0
    return meets_plus.astype(np.int8) - meets_minus.astype(np.int8)


def draw_code(
    Y: NDArray[Any],
    rng: np.random.RandomState,
    *,
    z: int,
    z_role: str = "auto",
    n_columns: int,
    min_share: float = 0.1,
) -> Code:
    """Draw distinct columns whose binary problems are large enough, at most ``n_columns`` of them.

    A problem needs 5 rows on each side, and ``min_share`` of all rows; the share is lowered to a quarter if fewer than
    half of the columns are found. The sides are balanced between *definite* (few zeros: a row is used only if all its
    coded candidates agree) and *adequate* (many zeros: more rows are used). With ``z_role="auto"``, z labels are zero; if
    fewer than a quarter of the columns are found, z labels are non-zero instead. If no problem is large enough, as with a
    few rows, one row on each side is enough.
    """
    c = Y.shape[1]
    nonzeros = {"zero": c - z, "nonzero": min(max(z, 2), c)}
    roles = ("zero", "nonzero") if z_role == "auto" else (z_role,)
    best: list[NDArray[np.int8]] = []
    for role in roles:
        wanted = min(n_columns, count_columns(c, nonzeros[role]))
        found: dict[bytes, NDArray[np.int8]] = {}
        for share in (min_share, min_share / 2, min_share / 4):
            _draw_more(found, Y, rng, nonzeros[role], wanted, (_LEAST_ROWS, share * len(Y)))
            if len(found) >= wanted / 2:
                break
        if len(found) > len(best):
            best = list(found.values())
        if len(found) >= wanted / 4:
            break
    if not best:
        found, wanted = {}, min(n_columns, count_columns(c, nonzeros[roles[0]]))
        _draw_more(found, Y, rng, nonzeros[roles[0]], wanted, (1, 0))
        best = list(found.values())
    return np.array(best, dtype=np.int8).reshape(-1, c).T


def _draw_more(
    found: dict[bytes, NDArray[np.int8]],
    Y: NDArray[Any],
    rng: np.random.RandomState,
    nonzeros: int,
    wanted: int,
    least: tuple[float, float],
) -> None:
    """Add columns with at least ``least`` rows on each side and on both together, up to ``wanted`` columns."""
    c = Y.shape[1]
    tried = set(found)
    for _ in range(_DRAWS_PER_COLUMN):
        if len(found) >= wanted or len(tried) == count_columns(c, nonzeros):
            return
        columns = {column.tobytes(): column for column in draw_columns(rng, c, nonzeros, max(wanted, 100)).T}
        new = [key for key in columns if key not in tried]
        tried.update(new)
        if not new:
            continue
        problems = sides(Y, np.array([columns[key] for key in new]).T)
        plus, minus = (problems > 0).sum(axis=0), (problems < 0).sum(axis=0)
        for key, large in zip(
            new, (np.minimum(plus, minus) >= least[0]) & (plus + minus >= least[1]), strict=True
        ):
            if large and len(found) < wanted:
                found[key] = columns[key]


def fit_columns(Phi: NDArray[Any], problems: NDArray[np.int8], *, lam: float) -> NDArray[Any]:
    """Fit a ridge regression of each column's ±1 on its own rows, ``(ΦₗᵀΦₗ + λI)⁻¹Φₗᵀy``, side by side (h×L).

    With fewer rows than features, uses the equal ``Φₗᵀ(ΦₗΦₗᵀ + λI)⁻¹y``. Columns share many rows, so ``ΦΦᵀ`` is computed
    once if that takes less time than the products of each column, and little memory.
    """
    n, h = Phi.shape
    sizes = np.count_nonzero(problems, axis=0)
    shared = lam > 0 and n**2 <= min(_MOST_PRODUCTS, np.sum(sizes[sizes < h] ** 2))
    products = lower_gram(Phi.T).T if shared else None
    coef = np.empty((h, problems.shape[1]), Phi.dtype)
    for column, problem in enumerate(problems.T):
        rows = np.flatnonzero(problem)
        part, y = Phi[rows], problem[rows, None].astype(Phi.dtype)
        if len(rows) >= h:
            solution = ridge_factor(part, ridge=lam)(part.T @ y)
        elif products is None:
            solution = part.T @ ridge_factor(part.T, ridge=lam)(y)
        else:
            own = products.take(rows, axis=0).take(rows, axis=1).T
            solution = part.T @ factor_gram(own, lam)(y)
        coef[:, column] = solution[:, 0]
    return coef


def performance(G: NDArray[Any], Y: NDArray[Any], code: Code) -> NDArray[np.float64]:
    """Compute the share of a label's rows whose margin has the sign of the code (c×L), each row divided by its sum."""
    rows = np.maximum(Y.sum(axis=0), 1)[:, None]
    says_plus, says_minus = Y.T @ (G > 0) / rows, Y.T @ (G < 0) / rows
    share = np.where(code > 0, says_plus, np.where(code < 0, says_minus, 0)).astype(np.float64)
    totals = share.sum(axis=1, keepdims=True)
    return share / np.where(totals > 0, totals, 1)


def decode(G: NDArray[Any], code: Code, weights: NDArray[Any]) -> NDArray[Any]:
    """Compute ``−log Σ_l w_jl exp(−m_jl g_l)`` for each row of margins G and label j; +∞ for a label without weights.

    The exponential has two values per margin, so two products give all labels.
    """
    margins = np.clip(G, -_LARGEST_MARGIN, _LARGEST_MARGIN)
    weights = weights.astype(G.dtype, copy=False)
    loss = np.exp(-margins) @ np.where(code > 0, weights, 0).T
    loss += np.exp(margins) @ np.where(code < 0, weights, 0).T
    with np.errstate(divide="ignore"):
        return -np.log(loss)


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class PAMB(BasePMLClassifier):
    """Binary decomposition with error-correcting output codes (PAMB), reimplemented.

    No candidate is judged by itself. Instead, a random ternary code M (c×L) cuts many binary problems out of the
    candidate sets: in column l, a row is positive if it has candidates coded +1 and none coded −1, negative in the
    opposite case, and unused otherwise; labels coded 0 are ignored. Such rows are *definite* (whichever candidates are
    true, those that the column codes are on one side), and the zeros ensure that there are enough of them. A ridge
    regression g_l is trained on each column, and a label's score weights the exponential losses of its code word by how
    well each column predicts the rows that have the label as a candidate:

        score_j(x) = −log Σ_l H_jl exp(−M_jl g_l(x)),

    where rows of H sum to 1. The logarithm keeps the order of labels, and scores in the range of the margins.

    The paper's full text and code were not available. Known from its abstract and from the settings that later work
    lists: ternary codes that balance definiteness and adequacy, decoding weighted by performance and margin, z as the
    mean number of candidates, and L = 100 log₂ c. The decoding formula is that of the method's relatives, ECOC for
    partial labels and loss-weighted ternary decoding. Ours: reading z as the number of zeros in a column, the rule for
    rows whose candidates are partly coded 0, how large a problem must be, the base learner and the threshold; further,
    a label that no column codes (such as a candidate of every row) gets its own column against all rows that lack it.

    Parameters
    ----------
    z : int or None, default=None
        Number of zeros in each column of the code, at most c − 2; None is the mean number of candidates of a row,
        rounded.
    z_role : {"auto", "zero", "nonzero"}, default="auto"
        Whether z counts the zeros or the non-zeros. "auto" counts zeros, and switches to non-zeros if too few columns
        have enough rows, as happens with many labels and many candidates.
    n_columns : int or None, default=None
        Maximum number of columns L; None is ``ceil(100 log2(c))``. With few labels there are fewer distinct columns.
    min_share : float, default=0.1
        Share of the rows that a column must use; lowered to a half and a quarter if too few columns do.
    lam : float, default=1.0
        Weight of the squared coefficients of each ridge regression, at least 0.
    %(feature_map)s
    n_anchors : int or None, default=None
        Number of anchor rows of the "rbf" map; all rows if there are fewer. None is two per feature, at most 3000.
    %(threshold)s
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without candidates, which no column uses, and about labels that are not a candidate of any
        row, which get the lowest of all training scores.
    random_state : int, RandomState or None, default=None
        Draws the anchors and the code, both by content: the same data in another order give the same model.

    Attributes
    ----------
    code_ : ndarray of shape (n_labels, L)
        M, with values −1, 0 and 1.
    coef_ : ndarray of shape (n_mapped_features, L)
        The regressions: margins are ``mapped @ coef_``.
    performance_ : ndarray of shape (n_labels, L)
        H, zero where the code is.
    %(scaler_and_map)s
    %(fitted)s

    Notes
    -----
    With h mapped features and n_l rows in a column, time is O(n h d) for the map and O(n_l h min(n_l, h))
    per column; memory is O(n (h + L)). There are no confidences. On some data with many labels, average
    precision stays below what is published for the method. Two readings of ours are the cause: on birds the weight of the
    base learner (a smaller ``lam`` reaches the published figures, and can be chosen without true labels), on yeast and
    arts the number of zeros (``z`` = c − 2, codes of two labels each, uses most rows and comes closest).

    %(reference_and_data)s
    >>> from skpml.baselines import PAMB
    >>> PAMB(random_state=0).fit(X, candidates).predict(X).shape
    (300, 5)
    """

    z: Any = None
    z_role: Literal["auto", "zero", "nonzero"] = "auto"
    n_columns: int | None = None
    min_share: float = 0.1
    lam: float = 1.0
    feature_map: Any = "rbf"
    n_anchors: int | None = None
    threshold: float | str = "auto"
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="pamb",
        title="PAMB (reimplementation from the abstract)",
        kind="baseline",
        summary="binary problems by ternary error-correcting codes, candidates used whole",
        nonlinear=True,
        random=True,
        source="abstract",
        year=2023,
        reference="Liu, Jia, Zhang. Towards Enabling Binary Decomposition for Partial Multi-Label Learning."
        " IEEE TPAMI 45(11), 2023.",
        comparison_threshold="non-candidates",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.z is not None and not is_count(self.z, 0):
            raise ValueError(f"z must be None or a whole number of at least 0, got {self.z!r}.")

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        rng = check_random_state(self.random_state)
        self.scaler_ = RangeScaler().fit(X)
        scaled = self.scaler_.transform(X)
        self.feature_map_ = resolve_feature_map(
            self.feature_map,
            n_anchors=self.n_anchors or min(2 * X.shape[1], MAX_ANCHORS),
            random_state=rng.randint(2**31),
        )
        mapped = np.ascontiguousarray(as_dense(self.feature_map_.fit_transform(scaled), X.dtype))
        self.code_, problems = self._encode(scaled, Y, rng)
        with one_blas(mapped):
            self.coef_ = fit_columns(mapped, problems, lam=float(self.lam))
        margins = mapped @ self.coef_
        self.performance_ = performance(margins, Y, self.code_)
        scores = decode(margins, self.code_, self.performance_)
        known = np.isfinite(scores)
        self._lowest = float(scores[known].min()) if known.any() else 0.0
        return self._finite(scores)

    def _encode(
        self, scaled: NDArray[Any], Y: NDArray[Any], rng: np.random.RandomState
    ) -> tuple[Code, NDArray[np.int8]]:
        """Draw the code and form the binary problem of each column."""
        c = Y.shape[1]
        z = floor(Y.sum(axis=1).mean() + 0.5) if self.z is None else self.z
        order = label_order(scaled, Y)
        drawn = draw_code(
            Y[:, order],
            rng,
            z=min(z, max(c - 2, 0)),
            z_role=self.z_role,
            n_columns=ceil(100 * log2(c)) if self.n_columns is None else self.n_columns,
            min_share=self.min_share,
        )
        code = np.empty_like(drawn)
        code[order] = drawn
        alone = ~code.any(axis=1) & Y.any(axis=0)
        own_columns = np.eye(c, dtype=np.int8)[:, alone]
        own_problems = np.where(Y[:, alone] > 0, 1, -1).astype(np.int8)
        return np.hstack([code, own_columns]), np.hstack([sides(Y, code), own_problems])

    def _finite(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Replace the scores of labels that no column codes by the lowest training score."""
        return np.where(np.isfinite(scores), scores, scores.dtype.type(self._lowest))

    def _scores(self, X: Any) -> NDArray[Any]:
        mapped = as_dense(self.feature_map_.transform(self.scaler_.transform(X)), X.dtype)
        return self._finite(
            decode(mapped @ self.coef_.astype(X.dtype, copy=False), self.code_, self.performance_)
        )
