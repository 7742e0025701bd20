"""Features in the eigenbasis of their Gram matrix, where every ridge weight costs the same: a division.

What a row's score would be in the regression without it is free there too,

    s_loo = (s − hY)/(1 − h)        h_i = Σ_k Z_ik²/(e_k + γ) + 1/n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from skpml.linalg import Array

# Directions with less than this share of the largest eigenvalue are rounding.
_SMALLEST_SHARE = 1e-10


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Centred features Z (n×r) with ``ZᵀZ = diag(e)``, scaled so that a row has length 1 in the mean square.

    The scale makes the weight γ of coefficients mean the same for any number of anchors and any kernel width.

    Attributes
    ----------
    rows : (n, r)
        Z.
    values : (r,)
        e, in descending order; they add up to n.
    mean : (d,)
        Of the features; subtracted first.
    directions : (d, r)
        ``Z = (X − mean) @ directions``.
    """

    rows: Array
    values: Array
    mean: Array
    directions: Array

    def astype(self, dtype: Any) -> Spectrum:
        """The same in another precision."""
        xp = array_namespace(self.rows)
        return Spectrum(**{name: xp.astype(value, dtype) for name, value in vars(self).items()})

    def project(self, X: Array) -> Array:
        """Other rows in the same basis."""
        return (X - self.mean) @ self.directions


def spectrum_of(X: Array) -> Spectrum:
    """The eigenbasis of mapped features (n×d)."""
    xp = array_namespace(X)
    mean = xp.mean(X, axis=0)
    centred = X - mean
    values, directions = xp.linalg.eigh(centred.T @ centred)
    values, directions = xp.flip(values, axis=0), xp.flip(directions, axis=1)
    kept = int(xp.sum(xp.astype(values > _SMALLEST_SHARE * values[0], xp.int64)))
    values = values[:kept]
    squared_scale = X.shape[0] / float(xp.sum(values)) if kept else 1.0
    directions = directions[:, :kept] * squared_scale**0.5
    return Spectrum(
        rows=centred @ directions, values=values * squared_scale, mean=mean, directions=directions
    )


def leverages(spectrum: Spectrum, gamma: Array) -> Array:
    """h: how much of its own score a row makes up, (n, s)."""
    share = 1 / (spectrum.values[:, None] + gamma)
    return spectrum.rows**2 @ share + 1 / spectrum.rows.shape[0]


def ridge_scores(
    spectrum: Spectrum, targets: Array, gamma: Array, h: Array | None = None
) -> tuple[Array, Array, Array]:
    """Ridge regression of targets (n, s, c) with a weight for each setting: W, b, and the scores of each row left out.

    ``h`` are the :func:`leverages`, where they are at hand.
    """
    xp = array_namespace(targets)
    b = xp.mean(targets, axis=0)
    n, shape = targets.shape[0], targets.shape[1:]
    W = (spectrum.rows.T @ (targets - b).reshape((n, -1))).reshape((-1, *shape))
    W = W / (spectrum.values[:, None, None] + gamma[None, :, None])
    scores = (spectrum.rows @ W.reshape((W.shape[0], -1))).reshape((n, *shape)) + b
    h = (leverages(spectrum, gamma) if h is None else h)[:, :, None]
    # A row that alone decides its score has nothing to be left out against.
    return W, b, (scores - h * targets) / xp.where(h < 1 - 1e-9, 1 - h, 1e-9)
