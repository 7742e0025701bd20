"""Features in the eigenbasis of their Gram matrix, where every ridge weight costs the same: a division."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from skpml.linalg import Array

# Directions with less than this share of the largest eigenvalue are rounding.
_SMALLEST_SHARE = 1e-10


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Centred features Z (n×r) with ``ZᵀZ = diag(e)``.

    Attributes
    ----------
    rows : (n, r)
        Z.
    values : (r,)
        e, in descending order.
    mean : (d,)
        Of the features; subtracted first.
    directions : (d, r)
        ``Z = (X − mean) @ directions``.
    """

    rows: Array
    values: Array
    mean: Array
    directions: Array

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
    directions = directions[:, :kept]
    return Spectrum(rows=centred @ directions, values=values[:kept], mean=mean, directions=directions)
