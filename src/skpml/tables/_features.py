"""Features that are not columns of numbers: texts, and embeddings in another file."""

from __future__ import annotations

import io
import mmap
import os
import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from skpml._validation import check_finite, check_sparse_structure
from skpml.linalg import fits_in_memory, rows_at_once, working_bytes
from skpml.tables._columns import check_file, format_names
from skpml.tables._errors import Argument, TableError, check_unpacked_size, parsing
from skpml.tables._row_store import RowStore

EMBEDDING_SUFFIXES = (".npy", ".npz")
_USUAL_KEYS = ("embeddings", "X")
_MOST_WORDS = 50_000
# A component with a smaller share of the largest singular value is rounding error.
_NO_COMPONENT = 1e-9


def read_embeddings(
    path: str | Path, *, table: Path | None = None, n_rows: int | None = None, names: Sequence[str] = ()
) -> Any:
    """Read the matrix of an ``.npy`` file, or of an ``.npz`` file that holds one (or one called embeddings or X).

    Given the number of rows of a table, another number is a TableError. A folder has a vector for each of the `names`.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path, names)
    if path.suffix.lower() not in EMBEDDING_SUFFIXES:
        problem = f" must be a .npy or .npz file, not {path.suffix!r}"
        raise TableError(Argument("embeddings"), problem, path=path, expected=EMBEDDING_SUFFIXES)
    check_file(path)
    if path.stat().st_size == 0:
        raise TableError("is empty, so it holds no embeddings; copy it again", path=path)
    if path.suffix.lower() == ".npz":
        arrays = read_arrays(path)
        if {"format", "data", "shape"} <= arrays.keys():
            return _read_sparse(path, table, n_rows)
        usual = [name for name in _USUAL_KEYS if name in arrays]
        if not usual and len(arrays) != 1:
            problem = f"holds {len(arrays)} arrays ({format_names(sorted(arrays)) or 'none'}); name one 'embeddings'"
            raise TableError(problem, path=path, value=tuple(sorted(arrays)), expected="embeddings")
        matrix = arrays[usual[0]] if usual else next(iter(arrays.values()))
    else:
        # What would fill the memory stays in the file, of which rows are read when they are needed.
        mode: Literal["r"] | None = "r" if path.stat().st_size > working_bytes() else None
        with parsing(path, "npy"), _refusing_objects(path):
            matrix = np.load(path, allow_pickle=False, mmap_mode=mode)
    if matrix.ndim != 2 or 0 in matrix.shape:
        problem = f"embeddings must be a matrix of rows × features, got the shape {matrix.shape}"
        raise TableError(problem, path=path, value=matrix.shape)
    if matrix.dtype.kind not in "buif":
        problem = f"embeddings must hold numbers, got values of type {matrix.dtype}"
        raise TableError(problem, path=path, value=matrix.dtype)
    _check_n_rows(path, matrix, table, n_rows)
    matrix = _as_floats(matrix)
    try:
        check_finite(matrix)
    except ValueError as error:
        raise TableError(str(error), path=path) from error
    release_rows(matrix)
    return matrix


def _as_floats(matrix: Any) -> Any:
    """Return numbers in single precision if that is exact, else in double; a large matrix is converted in a file."""
    dtype = np.dtype(np.float32 if np.can_cast(matrix.dtype, np.float32) else np.float64)
    if matrix.dtype == dtype or fits_in_memory(matrix.shape, dtype):
        return matrix.astype(dtype, copy=False)
    store = RowStore()
    for rows in gen_batches(len(matrix), rows_at_once(matrix.shape[1] * dtype.itemsize)):
        store.add(matrix[rows].astype(dtype))
        release_rows(matrix)
    return store.finish()


def release_rows(matrix: Any) -> None:
    """Give the memory of rows back that were read from a file which stays a file; they can be read again."""
    while isinstance(matrix, np.ndarray) and not isinstance(matrix, np.memmap):
        matrix = matrix.base
    # Pages of a map that may be written can hold changes that are nowhere else.
    if not isinstance(matrix, np.memmap) or matrix.mode != "r":
        return
    pages: Any = matrix._mmap  # type: ignore[attr-defined]
    # Windows has no such advice, and decides by itself.
    if hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)


def _read_folder(folder: Path, names: Sequence[str]) -> Any:
    """Read an ``.npy`` file with a vector for each name, such as ``photos/a.npy`` or ``a.npy`` for ``photos/a.jpg``."""
    if not names:
        either = Argument("image", ...), " or ", Argument("id", ...)
        raise TableError("is a folder, whose files are called as images or ids: pass ", *either, path=folder)
    vectors: list[Any] = []
    missing: list[str] = []
    for name in names:
        stem = os.path.splitext(name)[0]
        likely = (folder / f"{each}.npy" for each in (stem, Path(stem).name, name) if each)
        found = next((each for each in likely if each.is_file()), None)
        if found is None:
            missing.append(name)
            continue
        with parsing(found, "npy"), _refusing_objects(found):
            vector = np.load(found, allow_pickle=False).reshape(-1)
        if vector.dtype.kind not in "buif" or (vectors and len(vector) != len(vectors[0])):
            expected = f"{len(vectors[0])} numbers" if vectors else "numbers"
            problem = f"must hold {expected}, as the other files, got {len(vector)} of type {vector.dtype}"
            raise TableError(problem, path=found, value=vector.shape, expected=expected)
        vectors.append(vector)
    if missing:
        listed = format_names(list(map(repr, missing)))
        problem = f"has no .npy file for {len(missing):,} of {len(names):,} rows: {listed}"
        raise TableError(problem, path=folder, value=tuple(missing))
    matrix = np.array(vectors, dtype=np.float64)
    try:
        check_finite(matrix)
    except ValueError as error:
        raise TableError(str(error), path=folder) from error
    return matrix


def _check_n_rows(path: Path, matrix: Any, table: Path | None, n_rows: int | None) -> None:
    found = matrix.shape[0]
    if n_rows is not None and found != n_rows:
        name = "the table" if table is None else table.name
        problem = f"has {found:,} rows, but {name} has {n_rows:,}: one row for each is needed"
        raise TableError(problem, path=path, value=found, expected=n_rows)


def _read_sparse(path: Path, table: Path | None, n_rows: int | None) -> Any:
    """Read a matrix that ``scipy.sparse.save_npz`` has written."""
    with parsing(path, "scipy.sparse"):
        matrix = sp.load_npz(path)
        check_sparse_structure(matrix, "the matrix")
        matrix = sp.csr_array(matrix)
    if matrix.dtype.kind not in "buif" or 0 in matrix.shape:
        problem = f"embeddings must be a matrix of numbers, got {matrix.dtype} of shape {matrix.shape}"
        raise TableError(problem, path=path, value=matrix.dtype)
    matrix = matrix.astype(matrix.dtype if matrix.dtype in (np.float32, np.float64) else np.float64)
    try:
        check_finite(matrix)
    except ValueError as error:
        raise TableError(str(error), path=path) from error
    _check_n_rows(path, matrix, table, n_rows)
    return matrix


@contextmanager
def _refusing_objects(path: Path) -> Iterator[None]:
    """Say what is wrong with arrays of Python objects, which are never read."""
    try:
        yield
    except ValueError as error:
        # The second is what a file that is not read into memory gives.
        if "allow_pickle" not in str(error) and "Python objects" not in str(error):
            raise
        problem = "holds Python objects, not numbers: save it as an array of floats, by array.astype(float)"
        raise TableError(problem, path=path, expected="numbers") from error


def read_arrays(path: Path) -> dict[str, Any]:
    """Read all arrays of an ``.npz`` file by their names; never pickled ones."""
    # Members are read whole, and not through numpy.load, so that their checksums are verified.
    with parsing(path, "npz"):
        content = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.namelist()
            # A damaged directory may end early without an error; the number of entries is stored behind it.
            (promised,) = struct.unpack_from("<H", content, content.rindex(b"PK\5\6") + 10)
            if promised != len(members):
                raise TableError(f"damaged: lists {len(members)} of its {promised} arrays", path=path)
            check_unpacked_size(path, sum(entry.file_size for entry in archive.infolist()))
            with _refusing_objects(path):
                return {
                    member.removesuffix(".npy"): np.load(io.BytesIO(archive.read(member)), allow_pickle=False)
                    for member in members
                }


def as_text_column(texts: Sequence[str]) -> Any:
    """Return texts as the table of one column that the transformer of `fit_text_features` takes."""
    column = np.empty((len(texts), 1), dtype=object)
    column[:, 0] = texts
    return column


def fit_text_features(texts: Sequence[str], *, n_components: int = 200, random_state: int = 0) -> Any:
    """Fit a transformer from texts to dense features.

    The 50,000 most frequent words are weighted by how rare they are (TF-IDF), reduced by a truncated singular value
    decomposition and rotated, and every row is scaled to length one. The pipeline takes the column of `as_text_column`;
    TableError if the texts hold fewer than two different words.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import Normalizer

    # The dtype is given by its name because model files hold no parameters that can be called, and types can be.
    words = CountVectorizer(max_features=_MOST_WORDS, dtype="float64")
    counted = ColumnTransformer([("words", words, 0)], sparse_threshold=1.0)
    try:
        counts = counted.fit_transform(as_text_column(texts))
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        counts = np.empty((0, 0))
    if counts.shape[1] < 2:
        raise TableError("the texts hold fewer than two different words of two letters or more")
    weighted = TfidfTransformer(sublinear_tf=True)
    weights = weighted.fit_transform(counts)
    reduced = TruncatedSVD(min(n_components, *weights.shape), random_state=random_state)
    # Texts that are all alike have no variance of which a component could explain a share.
    with np.errstate(invalid="ignore"):
        reduced.fit(weights)
    _rotate(reduced, random_state)
    return Pipeline(
        [("counted", counted), ("weighted", weighted), ("reduced", reduced), ("scaled", Normalizer())]
    )


def _rotate(reduced: Any, random_state: int) -> None:
    """Rotate the components at random, without those that only rounding has made.

    Estimators scale every feature to the same range. That would give all components the same weight, although texts
    differ most in the first of them; after a rotation, all features have nearly the same range already.
    """
    from scipy.stats import ortho_group

    kept = reduced.components_[reduced.singular_values_ > _NO_COMPONENT * reduced.singular_values_[0]]
    if len(kept) > 1:
        kept = ortho_group.rvs(len(kept), random_state=random_state) @ kept
    reduced.set_params(n_components=len(kept))
    reduced.components_ = kept
    # These describe the components before the rotation.
    for name in ("singular_values_", "explained_variance_", "explained_variance_ratio_"):
        delattr(reduced, name)
