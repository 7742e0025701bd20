"""An example for cleaning: images with tags, some of which were planted and are wrong. No download."""

from __future__ import annotations

import csv
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

from skpml._writing import replacing_folder
from skpml.datasets._digits import NUMERALS, PIXELS
from skpml.datasets._partial_dataset import PartialDataset
from skpml.noise import flip

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
    digits = _make_digits()
    files = [f"images/{row:03d}.png" for row in range(_N_ROWS)]
    with replacing_folder(Path(folder), overwrite=overwrite) as place:
        (place / "images").mkdir()
        for file, pixels in zip(files, digits.X, strict=True):
            (place / file).write_bytes(_encode_png(_enlarge(pixels)))
        _write_table(place / "digits.csv", files, digits)
        _write_planted(place / "planted.csv", files, digits)
    return digits


def _make_digits() -> PartialDataset:
    images, numerals = load_digits(return_X_y=True)
    images, numerals = images[:_N_ROWS], numerals[:_N_ROWS]
    even = np.isin(numerals, NUMERALS["even"])
    columns = {name: numerals == value for value, name in enumerate(_NAMES)} | {"even": even, "odd": ~even}
    columns |= {
        "closed loop": np.isin(numerals, NUMERALS["closed loop"]),
        "straight": np.isin(numerals, NUMERALS["straight strokes"]),
    }
    truth = np.column_stack(list(columns.values())).astype(np.uint8)
    candidates = flip(truth, _WRONG_RATE, random_state=_SEED)
    return PartialDataset(images, candidates, truth, tuple(columns), PIXELS, "tagged digits")


def _write_table(path: Path, files: list[str], digits: PartialDataset) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["file", "tags", *PIXELS])
        for name, tags, pixels in zip(files, digits.candidates, digits.X.astype(int).tolist(), strict=True):
            listed = ";".join(digits.label_names[label] for label in np.flatnonzero(tags))
            writer.writerow([name, listed, *pixels])


def _write_planted(path: Path, files: list[str], digits: PartialDataset) -> None:
    """Write the planted tags as decisions of a reviewer who drops them all."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(["id", "row", "label", "decision", "confidence"])
        for row, label in np.argwhere(digits.candidates != digits.truth).tolist():
            writer.writerow([files[row], row, digits.label_names[label], "drop", ""])


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
