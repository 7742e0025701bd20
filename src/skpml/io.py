"""Model files that can be opened without running code from the file.

skops writes types and arrays instead of instructions, next to a short description in plain JSON. Types of this library
have stable names in the file ("pml-ma", "RBFAnchors") instead of import paths, so that modules may move. Before any
object is created, the names of all types are checked: if one is not in a fixed table, the file is refused. A digest of
all parts detects damage and accidental edits. It is not a signature: whoever forges a file can forge the digest too, but
still cannot run code.
"""

from __future__ import annotations

import io
import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import skpml
from skpml._writing import replacing, require_packages
from skpml.registry import METHOD_PATHS
from skpml.tables import ColumnType, FeatureKind, TableError, check_unpacked_size

__all__ = ["ModelFileError", "ModelInfo", "load_model", "read_model_info", "save_model"]

# Names of models in files and where they live today. The names never change; the paths may. The table is fixed: a method
# of another package cannot get into it, and its files are refused.
MODELS = {
    **METHOD_PATHS,
    "recovered-ridge": "skpml.modal_alignment:RecoveredRidge",
    "oracle": "skpml.reference:Oracle",
}
# Second names of a class: read as its type, but never written.
_VARIANTS = ("pml-ma-printed", "pml-ma-released", "particle-map", "linear-ridge")
PARTS = {
    "ColumnFeatures": "skpml.tables:ColumnFeatures",
    "ImageEmbedder": "skpml.embeddings:ImageEmbedder",
    "LinearMap": "skpml.features:LinearMap",
    "RBFAnchors": "skpml.features:RBFAnchors",
    "RangeScaler": "skpml.features:RangeScaler",
    "TextEmbedder": "skpml.embeddings:TextEmbedder",
    "ViewScaler": "skpml.views:ViewScaler",
}
# Beyond these and our own types, skops trusts scikit-learn's estimators, numpy's arrays, scalars and generators, scipy's
# sparse matrices and Python's containers.
_OTHER_TYPES = ("scipy.sparse._csr.csr_array", "builtins.frozenset", "numpy.dtype")
# How skops may rebuild a part. Bound methods, partial and operator functions, and constructors called with arguments
# from the file (except a frozenset) are left out: no model needs them, and early skops checked them badly.
_LOADERS = frozenset(
    f"{kind}Node"
    for kind in (
        "Object", "Dict", "List", "Tuple", "Set", "Json", "Type", "Function", "Slice", "NdArray", "DType",
        "SparseMatrix", "RandomState", "RandomGenerator",
    )
)  # fmt: skip
_FROZENSET = ("ConstructorFromReduceNode", "builtins.frozenset")
# Types that only this part may rebuild.
_ONLY_LOADERS = {"numpy.dtype": "DTypeNode"}
_OLDEST_PROTOCOL = 2
# Format 1 had import paths in place of names.
_FORMAT = 2
_NAMESPACE = "skpml"
_INFO_NAME = "skpml.json"
_SCHEMA_NAME = "schema.json"
_PIPELINE = "sklearn.pipeline.Pipeline"


class ModelFileError(ValueError):
    """Raised if a file is not a model of scikit-pml, is damaged or not trusted, or a model cannot be saved.

    Parameters
    ----------
    message : str
        The whole message.
    problem : str, default=""
        What is wrong, without the name of the file; an attribute of the error, as is `path`.
    path : Path or None, default=None
        The file; None for a model that cannot be saved.
    """

    def __init__(self, message: str, *, problem: str = "", path: Path | None = None) -> None:
        super().__init__(message)
        self.problem = problem or message
        self.path = path


class _RefusedError(Exception):
    """Why a file or a model is refused, without its name."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What a model file says about itself.

    Parameters
    ----------
    model : str
        Name of the method or its variant, as in :func:`skpml.list_methods`; that of the last step for a Pipeline.
    label_names : tuple of str
        Names of the labels, in the order of the columns of its scores.
    feature_names : tuple of str or None
        Names of the features it was fitted on, if they are known.
    versions : dict of str to str
        Versions of the packages that wrote the file.
    feature_kind : {"columns", "text", "mixed", "embeddings"}, default="columns"
        What new rows are read from: columns of numbers, a column of texts, columns of several kinds, or a matrix in a
        file of its own.
    feature_types : tuple of {"number", "category", "text", "image"}, default=()
        What the columns hold, for columns of several kinds.
    """

    model: str
    label_names: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    versions: dict[str, str]
    feature_kind: FeatureKind = "columns"
    feature_types: tuple[ColumnType, ...] = ()


def save_model(
    model: Any,
    path: str | Path,
    *,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    feature_kind: FeatureKind = "columns",
    feature_types: Sequence[ColumnType] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a fitted model to a file: whole, or not at all.

    Parameters
    ----------
    model : estimator of scikit-pml, or Pipeline that ends in one
        A fitted model.
    path : path-like
        File to write; ``.skpml`` is the usual suffix.
    label_names : sequence of str, optional
        Names of the labels; by default those of ``classes_``.
    feature_names : sequence of str, optional
        Names of the features; by default ``feature_names_in_``, if the model has them.
    feature_kind : {"columns", "text", "mixed", "embeddings"}, default="columns"
        What new rows are read from: columns of numbers; a column of texts, whose name is the only feature name of a
        Pipeline that takes texts; columns of several kinds, for a Pipeline that takes them as they are; or a matrix in a
        file of its own, whose columns have no names.
    feature_types : sequence of {"number", "category", "text", "image"}, optional
        What each column holds; needed for columns of several kinds, and for these only.
    overwrite : bool, default=False
        Replace a file that exists.

    Raises
    ------
    ModelFileError
        If the model holds something that a model file cannot: a callback, a lambda, a type that is not trusted.
    FileExistsError
        If the file exists and `overwrite` is False.
    """
    target = Path(path)
    try:
        name = _check_can_be_saved(model)
        check_is_fitted(model)
        info = _describe(model, name, label_names, feature_names, feature_kind, tuple(feature_types or ()))
        with replacing(target, overwrite=overwrite) as (temporary,):
            data = _pack(model, info)
            _audit(data)
            temporary.write_bytes(data)
    except _RefusedError as refusal:
        message = f"the model cannot be saved: {refusal}"
        raise ModelFileError(message, problem=str(refusal)) from refusal.__cause__


def load_model(path: str | Path) -> Any:
    """Open a model file; nothing in it is run, and only types of a fixed table are built.

    Parameters
    ----------
    path : path-like
        A file of `save_model`.

    Returns
    -------
    estimator
        It predicts exactly what the saved one did.

    Raises
    ------
    ModelFileError
        If the file is not a model of scikit-pml, is damaged, holds types that are not trusted, or has another format.
    FileNotFoundError
        If there is no such file.
    """

    def build(data: bytes) -> Any:
        info = _audit(data)
        translated, trusted = _translate(data)
        model = require_skops().loads(translated, trusted=trusted)
        _check_can_be_saved(model)
        check_is_fitted(model)
        for matrix in _sparse_matrices(model):
            # Indices that point outside would crash any product with it.
            matrix.check_format(full_check=True)
        named, held = len(info.label_names), len(model.classes_)
        if named != held:
            raise _RefusedError(f"it names {named} labels and holds {held}: it was changed")
        return model

    return _open(Path(path), build)


def read_model_info(path: str | Path) -> ModelInfo:
    """Read what a model file says about itself, without building the model.

    Parameters
    ----------
    path : path-like
        A file of `save_model`.

    Returns
    -------
    ModelInfo
        Name of the method, labels, features and versions.

    Raises
    ------
    ModelFileError
        As `load_model`.
    """
    return _open(Path(path), _audit)


def require_skops() -> ModuleType:
    """Import skops; the error says how to install it."""
    require_packages("a model file", "models", "skops.io")
    return import_module("skops.io")


def _find_class(path: str) -> tuple[str, str]:
    """Return module and name of the class at an import path, as skops writes them."""
    module, name = path.split(":")
    found = getattr(import_module(module), name)
    return found.__module__, found.__qualname__


def _check_can_be_saved(model: Any) -> str:
    """Return the name of a model, or of the last step of a Pipeline; raise if no file can hold the model."""
    if isinstance(model, Pipeline) and not model.steps:
        raise _RefusedError("it is a Pipeline without steps")
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    cls = type(last)
    key = (cls.__module__, cls.__qualname__)
    known = (name for name, path in _written_names().items() if path.endswith(f":{cls.__qualname__}"))
    model_name = next((name for name in known if _find_class(MODELS[name]) == key), None)
    if model_name is None:
        raise _RefusedError(
            f"it is a {'.'.join(key)}, not a model of scikit-pml; use pickle for classes of other packages"
        )
    for name, value in model.get_params().items():
        if callable(value) and not isinstance(value, np.ufunc):
            # A model cannot do without its network, but it can without a callback.
            needed = name.split("__")[-1] == "network"
            way_out = "pickle can" if needed else f"set_params({name}=None) removes it"
            raise _RefusedError(f"its {name} is a function, which a model file cannot hold; {way_out}")
    return _name_variant(last) or model_name


def _name_variant(model: Any) -> str | None:
    """Return the name of the registered variant whose parameters the model has, if any."""
    for facts in model._variants:
        own = {name: getattr(model, name) for name in facts.parameters}
        if all(map(np.isscalar, own.values())) and own == facts.parameters:
            return str(facts.name)
    return None


def _written_names() -> dict[str, str]:
    """Return the table of models with one name per class, the one that files hold."""
    return {name: path for name, path in MODELS.items() if name not in _VARIANTS}


def _describe(
    model: Any,
    name: str,
    label_names: Any,
    feature_names: Any,
    feature_kind: FeatureKind,
    feature_types: tuple[ColumnType, ...],
) -> ModelInfo:
    if feature_kind not in get_args(FeatureKind):
        known = ", ".join(get_args(FeatureKind))
        raise ValueError(f"feature_kind must be one of {known}, got {feature_kind!r}")
    classes = [str(name) for name in model.classes_]
    labels = classes if label_names is None else [str(name) for name in label_names]
    if len(labels) != len(classes):
        raise ValueError(f"label_names has {len(labels)} names, but the model has {len(classes)} labels")
    features = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    if features is not None and len(features) != (n_features := model.n_features_in_):
        raise ValueError(f"feature_names has {len(features)} names, but the model has {n_features} features")
    if feature_kind == "text" and (features is None or len(features) != 1):
        raise ValueError('feature_kind="text" needs feature_names with one name, that of the column of texts')
    if not _are_types(feature_kind, features, feature_types):
        problem = f"got {feature_types!r} for {0 if features is None else len(features)} names"
        raise ValueError(
            f'feature_types must have a type for each feature name of feature_kind="mixed", {problem}'
        )
    return ModelInfo(
        model=name,
        label_names=tuple(labels),
        feature_names=None if features is None else tuple(str(name) for name in features),
        versions={
            "scikit-pml": skpml.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        feature_kind=feature_kind,
        feature_types=feature_types,
    )


def _are_types(kind: str, names: Any, types: Sequence[Any]) -> bool:
    """Whether there is a type for each column of several kinds, or none for others."""
    if kind != "mixed":
        return not types
    return len(names or ()) == len(types) > 0 and all(each in get_args(ColumnType) for each in types)


def _pack(model: Any, info: ModelInfo) -> bytes:
    try:
        data = require_skops().dumps(model)
    except ImportError:
        raise
    except Exception as error:
        # skops raises many types for what it cannot write: a generator, an open file, an exotic dtype.
        raise _RefusedError(f"it holds something that a model file cannot hold ({error})") from error

    def names_of(schema: Any) -> dict[tuple[str, str], tuple[str, str]]:
        present = {part.get("__class__") for part in _parts(schema)}
        written = {**_written_names(), **PARTS}
        used = {name: path for name, path in written.items() if path.split(":")[1] in present}
        return {_find_class(path): (_NAMESPACE, name) for name, path in used.items()}

    buffer = io.BytesIO(_rename_types(data, names_of))
    described = {"format": _FORMAT, **asdict(info)}
    with ZipFile(buffer, "a", compression=ZIP_STORED) as archive:
        described["digest"] = _digest(archive, described)
        archive.writestr(_INFO_NAME, json.dumps(described, indent=1))
    return buffer.getvalue()


def _rename_types(data: bytes, names_of: Callable[[Any], dict[tuple[str, str], tuple[str, str]]]) -> bytes:
    """Return the archive with other (module, class) in its schema, by a table made from the schema."""
    buffer = io.BytesIO()
    with ZipFile(io.BytesIO(data)) as source, ZipFile(buffer, "w", compression=ZIP_STORED) as target:
        for name in source.namelist():
            content = source.read(name)
            if name == _SCHEMA_NAME:
                schema = json.loads(content)
                names = names_of(schema)
                for part in _parts(schema):
                    key = (part.get("__module__"), part.get("__class__"))
                    if key in names:
                        part["__module__"], part["__class__"] = names[key]
                content = json.dumps(schema).encode()
            target.writestr(name, content)
    return buffer.getvalue()


def _translate(data: bytes) -> tuple[bytes, list[str]]:
    """Return an audited archive with import paths in place of names, and the types to trust."""
    trusted = list(_OTHER_TYPES)

    def paths_of(schema: Any) -> dict[tuple[str, str], tuple[str, str]]:
        used = {part.get("__class__") for part in _parts(schema) if part.get("__module__") == _NAMESPACE}
        found = {name: _find_class(path) for name, path in {**MODELS, **PARTS}.items() if name in used}
        trusted.extend(".".join(key) for key in found.values())
        return {(_NAMESPACE, name): key for name, key in found.items()}

    return _rename_types(data, paths_of), trusted


def _digest(archive: ZipFile, described: dict[str, Any]) -> str:
    """Return the SHA-256 of the description without its digest, and of every other part with its name."""
    covered = {name: value for name, value in described.items() if name != "digest"}
    total = sha256(json.dumps(covered, sort_keys=True).encode())
    for name in sorted(set(archive.namelist()) - {_INFO_NAME}):
        total.update(sha256(name.encode()).digest() + sha256(archive.read(name)).digest())
    return total.hexdigest()


def _audit(data: bytes) -> ModelInfo:
    """Check everything that can be checked before anything is built."""
    with ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        if _SCHEMA_NAME not in names or _INFO_NAME not in names:
            raise _RefusedError("it is an archive, but not a model of scikit-pml")
        sizes = [entry.file_size for entry in archive.infolist()]
        packed = any(entry.compress_type != ZIP_STORED for entry in archive.infolist())
        # A few kilobytes can unpack into more than any memory; our files are not compressed.
        if packed or sum(sizes) > len(data):
            raise _RefusedError("its parts are compressed, which scikit-pml never does")
        _check_inner_sizes(archive, len(data))
        schema = json.loads(archive.read(_SCHEMA_NAME))
        described = json.loads(archive.read(_INFO_NAME))
        intact = described.get("digest") == _digest(archive, described)
    found, writer = described["format"], described.get("versions", {}).get("scikit-pml", "unknown")
    if found != _FORMAT:
        advice = f"install scikit-pml {writer} or newer to open it"
        if found < _FORMAT:
            # A development version may have written both formats.
            other = "" if writer == skpml.__version__ else f", or open it with scikit-pml {writer}"
            advice = f"fit the model again{other}"
        raise _RefusedError(
            f"it has format {found}, written by scikit-pml {writer}; "
            f"scikit-pml {skpml.__version__} reads format {_FORMAT}: {advice}"
        )
    root = f"{schema['__module__']}.{schema['__class__']}"
    if root not in (*(f"{_NAMESPACE}.{name}" for name in MODELS), _PIPELINE):
        raise _RefusedError(f"it is a {root}, not a model of scikit-pml")
    if schema["protocol"] < _OLDEST_PROTOCOL:
        raise _RefusedError("it claims an old layout that scikit-pml never wrote: it was changed")
    trusted = {*(f"{_NAMESPACE}.{name}" for name in (*MODELS, *PARTS)), *_OTHER_TYPES}
    untrusted = set(require_skops().get_untrusted_types(data=data)) - trusted
    for part in _parts(schema):
        name = f"{part.get('__module__')}.{part.get('__class__')}"
        if (part["__loader__"], name) != _FROZENSET and part["__loader__"] not in _LOADERS:
            untrusted.add(name)
        if part["__loader__"] != _ONLY_LOADERS.get(name, part["__loader__"]):
            untrusted.add(name)
        # Our own types by import path were never written in this format.
        if name.startswith(f"{_NAMESPACE}.") and name not in trusted:
            untrusted.add(name)
    if untrusted:
        raise _RefusedError(f"it holds types that are not trusted: {', '.join(sorted(untrusted))}")
    if not intact:
        raise _RefusedError("its parts do not match its digest: it was changed after it was written")
    features, kind = described["feature_names"], described["feature_kind"]
    types = tuple(described.get("feature_types", ()))
    known = kind in get_args(FeatureKind) and _are_types(kind, features, types)
    if not known or (kind == "text" and len(features or ()) != 1):
        raise _RefusedError(f"it was fitted on an unknown kind of features ({kind!r})")
    return ModelInfo(
        model=str(described["model"]),
        label_names=tuple(str(name) for name in described["label_names"]),
        feature_names=None if features is None else tuple(str(name) for name in features),
        versions={str(name): str(version) for name, version in described["versions"].items()},
        feature_kind=kind,
        feature_types=types,
    )


def _check_inner_sizes(archive: ZipFile, size: int) -> None:
    """Raise if a sparse matrix, an archive in the archive, unpacks into far more than the file."""
    for name in archive.namelist():
        if name.endswith(".npz"):
            with ZipFile(io.BytesIO(archive.read(name))) as inner:
                unpacked = sum(entry.file_size for entry in inner.infolist())
            try:
                check_unpacked_size(Path(name), unpacked, packed=size)
            except TableError as error:
                raise _RefusedError(
                    f"its part {name} {error.problem.partition(',')[0]}: it was changed"
                ) from error


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every part of a schema, at any depth."""
    if isinstance(schema, dict):
        if isinstance(schema.get("__loader__"), str):
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            yield from _parts(item)


def _sparse_matrices(item: Any) -> Iterator[Any]:
    """Yield the sparse matrices among the parameters and attributes of a model and its parts."""
    if scipy.sparse.issparse(item):
        yield item
    elif isinstance(item, BaseEstimator | dict):
        item = list((item if isinstance(item, dict) else vars(item)).values())
    if isinstance(item, np.ndarray) and item.dtype == object:
        item = item.ravel().tolist()
    if isinstance(item, list | tuple | set | frozenset):
        for inner in item:
            yield from _sparse_matrices(inner)


def _open(path: Path, read: Callable[[bytes], Any]) -> Any:
    """Return ``read(content of the file)``; every error becomes a ModelFileError of one sentence."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    data = path.read_bytes()
    try:
        return read(data)
    except _RefusedError as refusal:
        problem, cause = f"is refused: {refusal}", refusal.__cause__
    except ImportError:
        raise
    except BadZipFile as error:
        problem, cause = "is not a model file of scikit-pml, or it was cut short", error
    except Exception as error:
        # Damaged bytes make numpy, json and skops raise nearly anything.
        reason = f"{type(error).__name__}: {error}".replace("\n", " ")
        problem, cause = f"is damaged or was changed; copy it again ({reason})", error
    raise ModelFileError(f"{path} {problem}", problem=problem, path=path) from cause
