"""The embedded data set: handwritten digits with attributes, from scikit-learn's images. No download."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from skpml.datasets._partial_dataset import PartialDataset
from skpml.datasets._registry import DatasetFacts
from skpml.noise import top_up
from skpml.tables import Argument, TableError

DEFAULT_CANDIDATES = 6
DIGITS = DatasetFacts("digits", 1797, 64, 10, 3.5008)

PIXELS = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))

# Attributes of the numeral itself; 4 is left out of "closed loop" because it is written both ways.
NUMERALS = {
    "even": (0, 2, 4, 6, 8),
    "prime": (2, 3, 5, 7),
    "multiple of three": (0, 3, 6, 9),
    "five or more": (5, 6, 7, 8, 9),
    "closed loop": (0, 6, 8, 9),
    "straight strokes": (1, 4, 7),
}

_DESCRIPTION = (
    "Handwritten digits with attributes: the 1797 images of 8×8 pixels (0 to 16) that come with scikit-learn, each with "
    "ten labels. Six are attributes of the numeral (even, prime, multiple of three, five or more, closed loop, straight "
    "strokes), four are measured from the pixels (much ink, leans right, wide, top-heavy). The true labels are a fixed "
    "function of image and numeral, without randomness; false candidates are added by skpml.noise.top_up."
)


def load_digits_attributes(*, candidates: int = DEFAULT_CANDIDATES, random_state: Any = 0) -> PartialDataset:
    """Load handwritten digits with ten attributes as labels: real data that needs no download.

    Parameters
    ----------
    candidates : int, default=6
        Each row is filled up with random false labels to this many candidates; 0 adds none.
    random_state : int, RandomState, Generator or None, default=0
        Source of the false labels.

    Returns
    -------
    PartialDataset
        1797 rows, 64 features, 10 labels, 3.50 of them true on average.

    Notes
    -----
    With pixel values :math:`p_{rc}` (row r from the top, column c), total ink :math:`w = \\sum p`, and means,
    variances and covariance of r and c weighted by p:

    ==================  ==========================================
    much ink            :math:`w > 338`, a third of full ink
    leans right         :math:`-\\mathrm{cov}(r, c) > 0.05\\,\\mathrm{var}(r)`
    wide                :math:`\\mathrm{var}(c) > 0.4\\,\\mathrm{var}(r)`
    top-heavy           :math:`\\mathrm{mean}(r) < 3.3`
    ==================  ==========================================

    They are computed in whole numbers, so they are the same on every machine.

    Examples
    --------
    >>> from skpml.datasets import load_digits_attributes
    >>> digits = load_digits_attributes()
    >>> [name for name, true in zip(digits.label_names, digits.truth[0]) if true]
    ['even', 'multiple of three', 'closed loop', 'wide']
    """
    images, numerals = load_digits(return_X_y=True)
    columns = {name: np.isin(numerals, members) for name, members in NUMERALS.items()}
    columns |= _measured(images.astype(np.int64).reshape(-1, 8, 8))
    truth = np.column_stack(list(columns.values())).astype(np.uint8)
    dataset = PartialDataset(images, truth, truth, tuple(columns), PIXELS, DIGITS.name, _DESCRIPTION)
    return add_candidates(dataset, candidates, random_state)


def _measured(images: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    row, column = np.mgrid[:8, :8]
    ink, by_row, by_column, row_row, column_column, row_column = (
        (images * weight).sum(axis=(1, 2))
        for weight in (1, row, column, row * row, column * column, row * column)
    )
    # Variances and covariance times ink², which keeps them whole.
    row_variance = ink * row_row - by_row**2
    column_variance = ink * column_column - by_column**2
    covariance = ink * row_column - by_row * by_column
    return {
        "much ink": ink > 338,
        "leans right": -20 * covariance > row_variance,
        "wide": 5 * column_variance > 2 * row_variance,
        "top-heavy": 10 * by_row < 33 * ink,
    }


def add_candidates(dataset: PartialDataset, candidates: int, random_state: Any) -> PartialDataset:
    """Fill each row up to a number of candidates; TableError if the data set has false candidates already."""
    if dataset.truth is None or not np.array_equal(dataset.truth, dataset.candidates):
        problem = f"{dataset.name!r} has its own candidate labels: load it without "
        raise TableError(problem, Argument("candidates", ...), ", or use dataset.with_candidates")
    if candidates == 0:
        return dataset
    return dataset.with_candidates(top_up(dataset.truth, candidates, random_state=random_state))
