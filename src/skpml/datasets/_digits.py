"""Handwritten digits from scikit-learn: a data set with attributes as labels, and an example of tags to clean."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

from skpml._writing import replacing_folder
from skpml.datasets._partial_dataset import PartialDataset
from skpml.datasets._registry import DatasetFacts
from skpml.noise import flip, instance_dependent, label_dependent, top_up
from skpml.tables import Argument, TableError, write_rows

DEFAULT_CANDIDATES = 6
# How the false labels of load_dataset are drawn.
NOISES = ("uniform", "label", "instance")
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
    "function of image and numeral, without randomness; false candidates are drawn by skpml.noise."
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


def add_candidates(
    dataset: PartialDataset, candidates: int, random_state: Any, noise: str = "uniform"
) -> PartialDataset:
    """Fill each row up to a number of candidates; TableError if the data set has false candidates already."""
    if dataset.truth is None or not np.array_equal(dataset.truth, dataset.candidates):
        problem = f"{dataset.name!r} has its own candidate labels: load it without "
        raise TableError(problem, Argument("candidates", ...), ", or use dataset.with_candidates")
    if candidates == 0:
        return dataset
    if noise == "instance":
        if dataset.X is None:
            raise ValueError(f"{dataset.name!r} has labels only: noise='instance' needs features")
        drawn = instance_dependent(dataset.X, dataset.truth, candidates, random_state=random_state)
    else:
        generator = label_dependent if noise == "label" else top_up
        drawn = generator(dataset.truth, candidates, random_state=random_state)
    return dataset.with_candidates(drawn)


_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_N_ROWS, _WRONG_RATE, _SEED = 500, 0.03, 4
_MAGNIFICATION = 12


def write_example(folder: str | Path, *, overwrite: bool = False) -> PartialDataset:
    """Write a folder with doubtful tags to clean: 500 images of handwritten digits.

    * ``digits.csv``: one line per image with its ``file``, its ``tags`` (as in ``six;even;closed loop``) and 64 columns
      of pixels, 0 for paper to 16 for ink;
    * ``images``: the images, as PNG files;
    * ``planted.csv``: the wrong tags in the format of `skpml.cleaning.read_decisions`, as a perfect reviewer decides.

    The images are those of scikit-learn, the true tags follow from the numeral, and every other tag was added with a
    probability of 3 %. The files are the same every time; they are written completely or not at all.

    Parameters
    ----------
    folder : path-like
        Folder to create.
    overwrite : bool, default=False
        Whether to replace the files of the example in a folder that is not empty; others stay.

    Returns
    -------
    PartialDataset
        The same rows, with the true tags.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skpml.datasets import write_example
    >>> from skpml.tables import Columns, read_table
    >>> with TemporaryDirectory() as folder:
    ...     digits = write_example(Path(folder, "digits"))
    ...     read_table(Path(folder, "digits", "digits.csv"), columns=Columns(id="file", image="file"))
    <Table 'digits.csv': 500 rows, 64 features (columns), 14 labels>
    >>> int((digits.candidates != digits.truth).sum())
    165
    """
    images, numerals = (part[:_N_ROWS] for part in load_digits(return_X_y=True))
    kinds = ("even", "closed loop", "straight strokes")
    even, loop, straight = (np.isin(numerals, NUMERALS[kind]) for kind in kinds)
    columns = {name: numerals == value for value, name in enumerate(_NAMES)}
    columns |= {"even": even, "odd": ~even, "closed loop": loop, "straight": straight}
    truth = np.column_stack(list(columns.values())).astype(np.uint8)
    candidates = flip(truth, _WRONG_RATE, random_state=_SEED)
    digits = PartialDataset(images, candidates, truth, tuple(columns), PIXELS, "tagged digits")
    files = [f"images/{row:03d}.png" for row in range(_N_ROWS)]
    with replacing_folder(Path(folder), overwrite=overwrite) as place:
        (place / "images").mkdir()
        for file, pixels in zip(files, digits.X, strict=True):
            (place / file).write_bytes(_encode_png(_enlarge(pixels)))
        tags = [";".join(digits.label_names[j] for j in np.flatnonzero(row)) for row in digits.candidates]
        rows = (
            [*names, *pixels]
            for *names, pixels in zip(files, tags, digits.X.astype(int).tolist(), strict=True)
        )
        write_rows(place / "digits.csv", ["file", "tags", *PIXELS], rows)
        wrong = np.argwhere(digits.candidates != digits.truth).tolist()
        drop = ([files[row], row, digits.label_names[label], "drop", ""] for row, label in wrong)
        write_rows(place / "planted.csv", ["id", "row", "label", "decision", "confidence"], drop, end="\r\n")
    return digits


def _enlarge(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Draw dark ink on white paper with a margin, large and smooth enough to read."""
    ink = np.pad(pixels.reshape(8, 8) / 16, 1)
    smooth = zoom(ink, _MAGNIFICATION, order=3, mode="grid-constant", grid_mode=True)
    return np.round(255 * (1 - np.clip(smooth, 0, 1))).astype(np.uint8)


def _encode_png(grey: NDArray[np.uint8]) -> bytes:
    """Encode a gray image as PNG, so that no image package is needed."""
    height, width = grey.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    # Each line begins with the number of its filter: 2 stores what changes from the line above, which packs well.
    changes = np.diff(grey, axis=0, prepend=np.uint8(0))
    lines = np.pad(changes, ((0, 0), (1, 0)), constant_values=2).tobytes()
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )
