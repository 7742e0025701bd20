"""Model files that can be opened without running anybody's code.

A model is stored by skops, which writes types and arrays instead of instructions, next to a short description in plain
JSON. Opening a file looks at the names of all types in it first; one that is not on the list below, and the file is
refused before any of it is built. A digest of all parts finds damage and careless edits. It is no signature: whoever
forges a file on purpose can forge the digest too, and still gets nothing run.
"""

from __future__ import annotations

import io
import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
import sklearn
from scipy.sparse import csr_array
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import skpml
from skpml._writing import replacing
from skpml.registry import get_method, list_methods

__all__ = ["ModelFileError", "ModelInfo", "load_model", "read_model_info", "save_model"]

FeatureKind = Literal["columns", "text", "embeddings"]

MODEL_TYPES = (
    *sorted(
        {
            f"{cls.__module__}.{cls.__qualname__}"
            for cls in (get_method(name).estimator_class for name in list_methods())
        }
    ),
    "skpml.reference._oracle.Oracle",
)
# Beyond these, skops trusts scikit-learn's own estimators, numpy's arrays, scalars and generators, scipy's sparse
# matrices and Python's containers.
TRUSTED_TYPES = (
    *MODEL_TYPES,
    "skpml.features.LinearMap",
    "skpml.features.RBFAnchors",
    "skpml.features.RangeScaler",
    "skpml.views.ViewScaler",
    # In parameters: a graph, and a set of parts to leave out.
    "scipy.sparse._csr.csr_array",
    "builtins.frozenset",
)
# How skops may rebuild a part. Left out are bound methods, partial and operator functions, and constructors called
# with arguments from the file (but for a frozenset): no model needs them, and early skops checked them badly.
_LOADERS = frozenset(
    f"{kind}Node"
    for kind in (
        "Object", "Dict", "List", "Tuple", "Set", "Json", "Type", "Function", "Slice", "NdArray", "DType",
        "SparseMatrix", "RandomState", "RandomGenerator",
    )
)  # fmt: skip
_OLDEST_PROTOCOL = 2
_FORMAT = 1
_INFO_NAME = "skpml.json"
_SCHEMA_NAME = "schema.json"
_PIPELINE = "sklearn.pipeline.Pipeline"


class ModelFileError(ValueError):
    """A file is no model of scikit-pml, is damaged or not trusted, or a model cannot be put into one."""


class _RefusedError(Exception):
    """Why a file or a model is refused, without its name."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What a model file says about itself.

    Attributes
    ----------
    model : str
        Class of the model.
    label_names : tuple of str
        Names of the labels, in the order of the columns of its scores.
    feature_names : tuple of str or None
        Names of the features it was fitted on, where they are known.
    feature_kind : {"columns", "text", "embeddings"}
        What new rows are read from: columns of numbers, a column of texts, or a matrix in a file of its own.
    versions : dict of str to str
        Versions of the packages that wrote the file.
    """

    model: str
    label_names: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    versions: dict[str, str]
    feature_kind: FeatureKind = "columns"


def save_model(
    model: Any,
    path: str | Path,
    *,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    feature_kind: FeatureKind = "columns",
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
        Names of the labels for people; by default those of ``classes_``.
    feature_names : sequence of str, optional
        Names of the features; by default ``feature_names_in_``, where the model has them.
    feature_kind : {"columns", "text", "embeddings"}, default="columns"
        What new rows are read from: columns of numbers; a column of texts, whose name is the only feature name of a
        Pipeline that takes texts; or a matrix in a file of its own, whose columns have no names.
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
        _check_can_be_saved(model)
        check_is_fitted(model)
        info = _describe(model, label_names, feature_names, feature_kind)
        with replacing(target, overwrite=overwrite) as (temporary,):
            data = _packed(model, info)
            _audit(data)
            temporary.write_bytes(data)
    except _RefusedError as refusal:
        raise ModelFileError(f"the model cannot be saved: {refusal}") from refusal.__cause__


def load_model(path: str | Path) -> Any:
    """Open a model file. Nothing in it is run, and only types on a fixed list are built.

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
        If the file is no model of scikit-pml, is damaged, or holds types that are not trusted.
    FileNotFoundError
        If there is no such file.
    """

    def build(data: bytes) -> Any:
        info = _audit(data)
        model = require_skops().loads(data, trusted=list(TRUSTED_TYPES))
        _check_can_be_saved(model)
        check_is_fitted(model)
        for value in model.get_params().values():
            if isinstance(
                value, csr_array
            ):  # indices that point outside would crash whoever multiplies by it
                value.check_format(full_check=True)
        if len(model.classes_) != len(info.label_names):
            raise _RefusedError(
                f"it names {len(info.label_names)} labels and holds {len(model.classes_)}: it was changed"
            )
        return model

    return _opened(Path(path), build)


def read_model_info(path: str | Path) -> ModelInfo:
    """Read what a model file says about itself, without building the model.

    Parameters
    ----------
    path : path-like
        A file of `save_model`.

    Raises
    ------
    ModelFileError
        As `load_model`.
    """
    return _opened(Path(path), _audit)


def require_skops() -> ModuleType:
    """Import skops, or say how to install it."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError('model files need skops: pip install "scikit-pml[models]"') from error
    module: ModuleType = skops.io
    return module


def _type_name(instance: Any) -> str:
    return f"{type(instance).__module__}.{type(instance).__qualname__}"


def _check_can_be_saved(model: Any) -> None:
    """Refuse what is no model of ours, and parameters that are functions, by name."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if _type_name(last) not in MODEL_TYPES:
        raise _RefusedError(f"it is a {_type_name(last)}, not a model of scikit-pml")
    for name, value in model.get_params().items():
        if callable(value) and not isinstance(value, np.ufunc):
            # Without its network a model is none; without a callback it is the same.
            needed = name.split("__")[-1] == "network"
            way_out = "pickle can" if needed else f"set_params({name}=None) removes it"
            raise _RefusedError(f"its {name} is a function, which no model file can hold; {way_out}")


def _describe(
    model: Any,
    label_names: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    feature_kind: FeatureKind,
) -> ModelInfo:
    if feature_kind not in get_args(FeatureKind):
        raise ValueError(
            f"feature_kind must be one of {', '.join(get_args(FeatureKind))}, got {feature_kind!r}"
        )
    classes = [str(name) for name in model.classes_]
    labels = classes if label_names is None else [str(name) for name in label_names]
    if len(labels) != len(classes):
        raise ValueError(f"label_names has {len(labels)} names, but the model has {len(classes)} labels")
    features = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    if features is not None and len(features) != model.n_features_in_:
        raise ValueError(
            f"feature_names has {len(features)} names, but the model has {model.n_features_in_} features"
        )
    if feature_kind == "text" and (features is None or len(features) != 1):
        raise ValueError('feature_kind="text" needs feature_names with one name, that of the column of texts')
    return ModelInfo(
        model=type(model).__name__,
        label_names=tuple(labels),
        feature_names=None if features is None else tuple(str(name) for name in features),
        versions={
            "scikit-pml": skpml.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        feature_kind=feature_kind,
    )


def _packed(model: Any, info: ModelInfo) -> bytes:
    try:
        buffer = io.BytesIO(require_skops().dumps(model))
    except ImportError:
        raise
    except Exception as error:
        # skops raises many kinds for what it cannot write: a generator, an open file, an exotic dtype.
        raise _RefusedError(f"it holds something that no model file can ({error})") from error
    described = {"format": _FORMAT, **asdict(info)}
    with ZipFile(buffer, "a", compression=ZIP_STORED) as archive:
        described["digest"] = _digest(archive, described)
        archive.writestr(_INFO_NAME, json.dumps(described, indent=1))
    return buffer.getvalue()


def _digest(archive: ZipFile, described: dict[str, Any]) -> str:
    """SHA-256 of the description, its digest left out, and of every other part with its name."""
    told = {name: value for name, value in described.items() if name != "digest"}
    total = sha256(json.dumps(told, sort_keys=True).encode())
    for name in sorted(set(archive.namelist()) - {_INFO_NAME}):
        total.update(sha256(name.encode()).digest() + sha256(archive.read(name)).digest())
    return total.hexdigest()


def _audit(data: bytes) -> ModelInfo:
    """Look at everything that can be looked at before anything is built."""
    with ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        if _SCHEMA_NAME not in names or _INFO_NAME not in names:
            raise _RefusedError("it is an archive, but not a model of scikit-pml")
        sizes = [entry.file_size for entry in archive.infolist()]
        packed = any(entry.compress_type != ZIP_STORED for entry in archive.infolist())
        # A few kilobytes can be packed to unfold into more than any memory; our files are not packed at all.
        if packed or sum(sizes) > len(data):
            raise _RefusedError("its parts are compressed, which scikit-pml never does")
        schema = json.loads(archive.read(_SCHEMA_NAME))
        described = json.loads(archive.read(_INFO_NAME))
        intact = described.get("digest") == _digest(archive, described)
    if described["format"] > _FORMAT:
        raise _RefusedError("it was written by a newer scikit-pml; install that version to open it")
    root = f"{schema['__module__']}.{schema['__class__']}"
    if root not in (*MODEL_TYPES, _PIPELINE):
        raise _RefusedError(f"it is a {root}, not a model of scikit-pml")
    if schema["protocol"] < _OLDEST_PROTOCOL:
        raise _RefusedError("it claims an old layout that scikit-pml never wrote: it was changed")
    untrusted = set(require_skops().get_untrusted_types(data=data)) - set(TRUSTED_TYPES)
    untrusted |= {name for name, loader in _parts(schema) if loader not in _LOADERS} - {"builtins.frozenset"}
    if untrusted:
        raise _RefusedError(f"it holds types that are not trusted: {', '.join(sorted(untrusted))}")
    if not intact:
        raise _RefusedError("its parts do not match its digest: it was changed after it was written")
    return _as_info(described)


def _as_info(described: dict[str, Any]) -> ModelInfo:
    features = described["feature_names"]
    # Older files do not tell the kind.
    kind = described.get("feature_kind", "columns")
    if kind not in get_args(FeatureKind) or (kind == "text" and len(features or ()) != 1):
        raise _RefusedError(f"it was fitted on a kind of features that is not known here ({kind!r})")
    return ModelInfo(
        model=str(described["model"]),
        label_names=tuple(str(name) for name in described["label_names"]),
        feature_names=None if features is None else tuple(str(name) for name in features),
        versions={str(name): str(version) for name, version in described["versions"].items()},
        feature_kind=kind,
    )


def _parts(schema: Any) -> Iterator[tuple[str, str]]:
    """Type and loader of every part of a schema, wherever it stands."""
    if isinstance(schema, dict):
        if isinstance(schema.get("__loader__"), str):
            yield f"{schema.get('__module__')}.{schema.get('__class__')}", schema["__loader__"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            yield from _parts(item)


def _opened(path: Path, read: Callable[[bytes], Any]) -> Any:
    """What `read` makes of the file; whatever goes wrong in it becomes one sentence."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    data = path.read_bytes()
    try:
        return read(data)
    except _RefusedError as refusal:
        raise ModelFileError(f"{path} is refused: {refusal}") from refusal.__cause__
    except ImportError:
        raise
    except BadZipFile as error:
        raise ModelFileError(f"{path} is not a model file of scikit-pml, or it was cut short") from error
    except Exception as error:
        # Damaged bytes make numpy, json and skops raise nearly anything.
        reason = f"{type(error).__name__}: {error}".replace("\n", " ")
        raise ModelFileError(f"{path} is damaged or was changed; copy it again ({reason})") from error
