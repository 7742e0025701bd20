"""PML-MA's grid of weights on one fold, without a fit for each point."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml.graph import neighbour_similarity
from skpml.modal_alignment import PMLMA
from skpml.modal_alignment.grid import solve_grid

_WEIGHTS = ("lam", "alpha", "beta", "gamma")


def can_share(model: Any, points: list[dict[str, Any]], *, n_labels: int) -> bool:
    """Whether :func:`shared_scores` gives what fits of the single points give."""
    return (
        type(model) is PMLMA
        and set(points[0]) <= set(_WEIGHTS)
        and model.basis == "identity"
        and model.prototypes == "mean"
        and model.subspace_dim in (None, n_labels)
        and isinstance(model.feature_map, str)
        and not model.without
        and model.callback is None
        # Anything else is for a single fit to refuse, or has no ridge to share an eigenbasis with.
        and all(_is_weight(value) for point in points for value in point.values())
        and all(_is_weight(getattr(model, name)) for name in _WEIGHTS)
        and all(point.get("gamma", model.gamma) > 0 for point in points)
    )


def _is_weight(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf


def shared_scores(
    model: PMLMA, points: list[dict[str, Any]], X: Any, candidates: NDArray[Any], held_out: Any
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Place and held-out scores of each point, in any order."""
    # One iteration of one point learns the scaling and the feature map, and refuses what a fit would refuse.
    first = PMLMA(**{**model.get_params(), **points[0], "max_iter": 1}).fit(X, candidates)
    scaled = first.scaler_.transform(first._validate_features(X, reset=False))
    mapped = first.feature_map_.transform(scaled).astype(np.float64, copy=False)
    new = first.feature_map_.transform(
        first.scaler_.transform(first._validate_features(held_out, reset=False))
    )
    values = {name: _distinct(points, name, getattr(model, name)) for name in _WEIGHTS}
    graph = neighbour_similarity(scaled, n_neighbors=model.n_neighbors) if any(values["alpha"]) else None
    places: dict[tuple[float, ...], list[int]] = {}
    for place, point in enumerate(points):
        key = tuple(float(point.get(name, getattr(model, name))) for name in _WEIGHTS)
        places.setdefault(key, []).append(place)
    if mapped.shape[1] < candidates.shape[1]:
        # The common space has fewer dimensions than there are labels: every point is a fit of its own.
        for place, point in enumerate(points):
            single = PMLMA(**{**model.get_params(), **point}).fit(X, candidates)
            yield place, single.decision_function(held_out)
        return
    for found in solve_grid(
        mapped, candidates.astype(np.float64), graph, **values, max_iter=model.max_iter, tol=model.tol
    ):
        scores = new @ found.coef
        for place in places[tuple(getattr(found.weights, name) for name in _WEIGHTS)]:
            yield place, scores


def _distinct(points: list[dict[str, Any]], name: str, default: float) -> list[float]:
    return list(dict.fromkeys(float(point.get(name, default)) for point in points))
