"""Points of PML-MA's grid of weights on rows left out of a fit, without a fit for each point where that can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skpml.modal_alignment._grid import solve_grid

if TYPE_CHECKING:
    from skpml.modal_alignment._estimator import PMLMA

WEIGHTS = ("lam", "alpha", "beta", "gamma")
Point = Mapping[str, Any]


def can_share(model: PMLMA, points: Sequence[Point], *, n_labels: int) -> bool:
    """Whether :func:`shared_scores` gives what fits of the single points give."""
    return (
        set(points[0]) <= set(WEIGHTS)
        and model.weights is None
        and model.basis == "identity"
        and model.prototypes == "mean"
        and model.subspace_dim in (None, n_labels)
        and isinstance(model.feature_map, str)
        and not model.without
        and model.callback is None
        # Anything else is for a single fit to refuse, or has no ridge to share an eigenbasis with.
        and all(_is_weight(value) for point in points for value in point.values())
        and all(_is_weight(getattr(model, name)) for name in WEIGHTS)
        and all(point.get("gamma", model.gamma) > 0 for point in points)
    )


def _is_weight(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf


def shared_scores(
    model: PMLMA, points: Sequence[Point], X: Any, candidates: NDArray[Any], held_out: Any
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Place and held-out scores of each point, in any order."""
    values = {name: _distinct(points, name, getattr(model, name)) for name in WEIGHTS}
    # One iteration of one point learns the scaling and the feature map, and refuses what a fit would refuse.
    first = clone(model).set_params(**{**points[0], "alpha": max(values["alpha"]), "max_iter": 1})
    first.fit(X, candidates)
    scaled = first.scaler_.transform(first._validate_features(X, reset=False))
    mapped = first.feature_map_.transform(scaled).astype(np.float64, copy=False)
    if mapped.shape[1] < candidates.shape[1]:
        # The common space has fewer dimensions than there are labels: every point is a fit of its own.
        yield from single_scores(model, points, X, candidates, held_out)
        return
    new = first.feature_map_.transform(
        first.scaler_.transform(first._validate_features(held_out, reset=False))
    )
    places: dict[tuple[float, ...], list[int]] = {}
    for place, point in enumerate(points):
        key = tuple(float(point.get(name, getattr(model, name))) for name in WEIGHTS)
        places.setdefault(key, []).append(place)
    for found in solve_grid(
        mapped,
        candidates.astype(np.float64),
        first._similarity(scaled),
        **values,
        max_iter=model.max_iter,
        tol=model.tol,
    ):
        scores = new @ found.coef
        # A search may ask for part of the product of all values.
        for place in places.get(tuple(getattr(found.weights, name) for name in WEIGHTS), ()):
            yield place, scores


def single_scores(
    model: PMLMA, points: Sequence[Point], X: Any, candidates: NDArray[Any], held_out: Any
) -> Iterator[tuple[int, NDArray[Any]]]:
    """The same by a fit for each point."""
    for place, point in enumerate(points):
        yield place, clone(model).set_params(**point).fit(X, candidates).decision_function(held_out)


def _distinct(points: Sequence[Point], name: str, default: float) -> list[float]:
    return list(dict.fromkeys(float(point.get(name, default)) for point in points))
