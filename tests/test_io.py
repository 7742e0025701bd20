"""Model files: exact round trips, and nothing of a stranger's file is ever run."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import pickle
import pkgutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import make_multilabel_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skpml
from skpml import PMLMA, CandidateLikelihood
from skpml import io as model_io
from skpml.base import BasePMLClassifier
from skpml.features import RBFAnchors
from skpml.graph import neighbor_similarity
from skpml.io import (
    MODELS,
    ModelFileError,
    _digest,
    _find_class,
    _written_names,
    load_model,
    read_model_info,
    save_model,
)
from skpml.noise import top_up
from skpml.reference import CandidateRidge

skops_io = pytest.importorskip("skops.io")
pd = pytest.importorskip("pandas")

X, TRUTH = make_multilabel_classification(60, n_features=6, allow_unlabeled=False, random_state=0)
Y = top_up(TRUTH, 3, random_state=0)
executed: list[str] = []


class Stranger(TransformerMixin, BaseEstimator):
    """A transformer that no list knows."""

    def fit(self, X: Any, y: Any = None) -> Stranger:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        return X


class Trap:
    """Notes that it was built, by whatever road."""

    def __new__(cls, *args: Any) -> Trap:
        executed.append("new")
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        executed.append("setstate")

    def __reduce__(self) -> Any:
        return executed.append, ("reduce",)


def spring(*args: Any) -> None:
    executed.append("call")


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model.skpml"
    save_model(PMLMA().fit(X, Y), path)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def nothing_executed() -> Any:
    executed.clear()
    yield
    assert executed == []


def rewritten(
    data: bytes, change: Callable[[dict[str, bytes]], None], *, forge: bool = True, **options: Any
) -> bytes:
    """The archive with its entries changed, and its digest forged to match: the checks behind it must hold alone."""
    with ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    if forge and "skpml.json" in entries:
        described = json.loads(entries["skpml.json"])
        with ZipFile(io.BytesIO(packed(entries))) as archive:
            described["digest"] = _digest(archive, described)
        entries["skpml.json"] = json.dumps(described).encode()
    return packed(entries, **options)


def packed(entries: dict[str, bytes], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", **options) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def with_schema(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    def edit(entries: dict[str, bytes]) -> None:
        schema = json.loads(entries["schema.json"])
        change(schema)
        entries["schema.json"] = json.dumps(schema).encode()

    return rewritten(data, edit)


def refusal(tmp_path: Path, data: bytes) -> str:
    """The sentence with which both readers refuse a file."""
    path = tmp_path / "bad.skpml"
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


ROUND_TRIPS = {
    "pml-ma": lambda: PMLMA(),
    "linear": lambda: PMLMA(feature_map="linear", without=frozenset({"prototypes"})),
    "generator": lambda: PMLMA(n_anchors=20, random_state=np.random.RandomState(3)),
    "graph": lambda: PMLMA(graph=neighbor_similarity(X), without={"prototypes"}),
    "orthogonal": lambda: PMLMA(basis="orthogonal", prototypes="least-squares", threshold=0.4),
    "ridge": lambda: CandidateRidge(),
    "pca": lambda: CandidateRidge(feature_map=PCA(3)),
    "ufunc": lambda: PMLMA(feature_map=FunctionTransformer(np.sin)),
    "pipeline": lambda: make_pipeline(StandardScaler(), PMLMA()),
    "likelihood": lambda: CandidateLikelihood(),
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.slow
def test_loaded_model_predicts_bit_identically(name: str, dtype: type, tmp_path: Path) -> None:
    rows = X.astype(dtype)
    model = ROUND_TRIPS[name]().fit(rows, Y)
    save_model(model, tmp_path / "model.skpml")
    loaded = load_model(tmp_path / "model.skpml")
    assert type(loaded) is type(model)
    for method in ("decision_function", "predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(loaded, method)(rows), getattr(model, method)(rows))
    assert [path.name for path in tmp_path.iterdir()] == ["model.skpml"]


def test_confidences_history_and_parameters_survive(tmp_path: Path) -> None:
    model = PMLMA(low_rank_weight=3.0, random_state=1).fit(X, Y)
    save_model(model, tmp_path / "model.skpml")
    loaded = load_model(tmp_path / "model.skpml")
    np.testing.assert_array_equal(loaded.confidences_, model.confidences_)
    assert loaded.history_.keys() == model.history_.keys()
    assert loaded.get_params() == model.get_params()


def test_every_estimator_of_the_library_can_be_saved() -> None:
    known = {_find_class(path) for path in MODELS.values()}
    for module in pkgutil.walk_packages(skpml.__path__, "skpml."):
        if ".cli" in module.name or ".deep" in module.name:
            continue
        for _, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            ours = issubclass(found, BasePMLClassifier) and found.__module__.startswith("skpml.")
            if ours and not inspect.isabstract(found):
                assert (found.__module__, found.__qualname__) in known, f"add {found} to skpml.io.MODELS"


def test_names_of_classes_in_files_never_change() -> None:
    assert {path: name for name, path in _written_names().items()} == {
        "skpml.modal_alignment:PMLMA": "pml-ma",
        "skpml.modal_alignment:RecoveredRidge": "recovered-ridge",
        "skpml.candidate_likelihood:CandidateLikelihood": "candidate-likelihood",
        "skpml.deep:DeepCandidateLikelihood": "deep-candidate-likelihood",
        "skpml.baselines:CAPML": "capml",
        "skpml.baselines:COMES": "comes",
        "skpml.baselines:PMLPLR": "pml-plr",
        "skpml.baselines:FBDPML": "fbd-pml",
        "skpml.baselines:PMLND": "pml-nd",
        "skpml.baselines:NLR": "nlr",
        "skpml.baselines:Schirn": "schirn",
        "skpml.baselines:PLENFN": "p-lenfn",
        "skpml.baselines:PAMB": "pamb",
        "skpml.baselines:PMLNI": "pml-ni",
        "skpml.baselines:PARTICLE": "particle",
        "skpml.baselines:PMLLRS": "pml-lrs",
        "skpml.baselines:PMLFP": "pml-fp",
        "skpml.baselines:PMLLC": "pml-lc",
        "skpml.reference:CandidateRidge": "ridge",
        "skpml.reference:MLKNN": "ml-knn",
        "skpml.reference:LIFT": "lift",
        "skpml.reference:CandidateChain": "chain",
        "skpml.reference:Oracle": "oracle",
    }
    assert len(set(_written_names().values())) == len(_written_names())


def test_a_variant_is_described_by_its_name_and_every_name_of_a_class_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.skpml"
    for name in ("ridge", "linear-ridge", "particle", "particle-map"):
        save_model(skpml.get_method(name)().fit(X, Y), path, overwrite=True)
        assert read_model_info(path).model == name
    save_model(model := CandidateRidge().fit(X, Y), path, overwrite=True)
    renamed = with_schema(path.read_bytes(), lambda schema: schema.update(__class__="linear-ridge"))
    path.write_bytes(renamed)
    np.testing.assert_array_equal(load_model(path).decision_function(X), model.decision_function(X))


def test_names_come_from_data_frames_and_from_the_caller(tmp_path: Path) -> None:
    features = pd.DataFrame(X, columns=[f"f{index}" for index in range(6)])
    labels = pd.DataFrame(Y, columns=list("abcde"))
    save_model(PMLMA().fit(features, labels), tmp_path / "named.skpml")
    info = read_model_info(tmp_path / "named.skpml")
    assert info.model == "pml-ma"
    assert info.label_names == ("a", "b", "c", "d", "e")
    assert info.feature_names == ("f0", "f1", "f2", "f3", "f4", "f5")
    assert info.versions["scikit-pml"] == skpml.__version__

    plain = PMLMA().fit(X, Y)
    save_model(plain, tmp_path / "plain.skpml", label_names="vwxyz", feature_names="uvwxyz")
    info = read_model_info(tmp_path / "plain.skpml")
    assert (info.label_names, info.feature_names) == (tuple("vwxyz"), tuple("uvwxyz"))
    with pytest.raises(ValueError, match="label_names has 2 names, but the model has 5 labels"):
        save_model(plain, tmp_path / "wrong.skpml", label_names="ab")
    with pytest.raises(ValueError, match="feature_names has 2 names, but the model has 6 features"):
        save_model(plain, tmp_path / "wrong.skpml", feature_names="ab")
    assert not (tmp_path / "wrong.skpml").exists()


def test_an_existing_file_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "model.skpml"
    path.write_text("precious")
    model = CandidateRidge().fit(X, Y)
    with pytest.raises(FileExistsError, match="exists already"):
        save_model(model, path)
    assert path.read_text() == "precious"
    save_model(model, path, overwrite=True)
    assert isinstance(load_model(path), CandidateRidge)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PMLMA(callback=lambda iteration, losses: False), r"its callback is a function.*set_params\(callback=None"),
        (PMLMA(feature_map=Stranger()), r"types that are not trusted: test_io\.Stranger"),
        (
            PMLMA(feature_map=FunctionTransformer(lambda rows: rows)),
            r"its feature_map__func is a function",
        ),
        (PMLMA(without={"prototypes": 0}.keys()), "something that a model file cannot"),
    ],
)  # fmt: skip
def test_what_no_file_can_hold_is_refused_when_saving(model: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=message):
        save_model(model.fit(X, Y), tmp_path / "model.skpml")
    assert list(tmp_path.iterdir()) == []


def test_unfitted_and_foreign_models_are_refused_when_saving(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        save_model(PMLMA(), tmp_path / "model.skpml")
    with pytest.raises(ModelFileError, match="LogisticRegression, not a model of scikit-pml"):
        save_model(LogisticRegression().fit(X, Y[:, 0]), tmp_path / "model.skpml")
    with pytest.raises(ModelFileError, match="without steps"):
        save_model(Pipeline([]), tmp_path / "model.skpml")
    assert list(tmp_path.iterdir()) == []


def test_another_library_s_skops_file_is_refused(tmp_path: Path, model_bytes: bytes) -> None:
    foreign = skops_io.dumps(LogisticRegression().fit(X, TRUTH[:, 0]))
    assert "an archive, but not a model of scikit-pml" in refusal(tmp_path, foreign)
    with ZipFile(io.BytesIO(model_bytes)) as archive:
        description = archive.read("skpml.json")
    dressed = rewritten(foreign, lambda entries: entries.update({"skpml.json": description}))
    assert "LogisticRegression, not a model of scikit-pml" in refusal(tmp_path, dressed)
    pipeline = skops_io.dumps(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, TRUTH[:, 0]))
    dressed = rewritten(pipeline, lambda entries: entries.update({"skpml.json": description}))
    assert "LogisticRegression, not a model of scikit-pml" in refusal(tmp_path, dressed)


def _node(module: str, name: str, loader: str, **rest: Any) -> dict[str, Any]:
    return {"__module__": module, "__class__": name, "__loader__": loader, "__id__": 1, **rest}


_ARGUMENTS = _node(
    "builtins", "tuple", "TupleNode", content=[_node("builtins", "str", "JsonNode", content='"touch x"')]
)
_EMPTY = _node(
    "builtins", "dict", "DictNode", content={}, key_types=_node("builtins", "list", "ListNode", content=[])
)
ATTACKS = {
    "os.system": _node("os", "system", "FunctionNode"),
    "builtins.exec": _node("builtins", "exec", "FunctionNode"),
    "builtins.eval": _node("builtins", "eval", "TypeNode"),
    "subprocess.Popen": _node("subprocess", "Popen", "ConstructorFromReduceNode", content=_ARGUMENTS),
    "test_io.Trap": _node("test_io", "Trap", "ObjectNode", content=_EMPTY),
    "test_io.spring": _node("test_io", "spring", "FunctionNode"),
    "functools.partial": _node(
        "functools", "partial", "PartialNode",
        content={
            "func": _node("test_io", "spring", "FunctionNode"), "args": _ARGUMENTS, "kwds": _EMPTY, "namespace": _EMPTY,
        },
    ),
    "builtins.frozenset": _node(
        "builtins", "frozenset", "PartialNode",
        content={
            "func": _node("builtins", "print", "FunctionNode"), "args": _ARGUMENTS, "kwds": _EMPTY, "namespace": _EMPTY,
        },
    ),
    "operator.methodcaller": _node("operator", "methodcaller", "OperatorFuncNode", attrs=_ARGUMENTS),
    "skpml.RangeScaler": _node("skpml", "RangeScaler", "ConstructorFromReduceNode", content=_ARGUMENTS),
    "skpml.features.LinearMap": _node("skpml.features", "LinearMap", "ObjectNode", content=_EMPTY),
    "skpml.io.ModelInfo": _node("skpml.io", "ModelInfo", "ObjectNode", content=_EMPTY),
    "skpml.get_method": _node("skpml", "get_method", "FunctionNode"),
    "test_io.Stranger": _node("test_io", "Stranger", "ListNode", content=[]),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_type_put_into_a_model_file_is_refused_and_never_run(
    name: str, tmp_path: Path, model_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    attack = {**ATTACKS[name], "__id__": 987654321}
    tampered = with_schema(
        model_bytes, lambda schema: schema["content"]["content"].update({"feature_map_": attack})
    )
    message = refusal(tmp_path, tampered)
    assert "not trusted" in message
    assert name in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.skpml"]


def test_a_root_of_another_type_is_refused(tmp_path: Path, model_bytes: bytes) -> None:
    tampered = with_schema(model_bytes, lambda schema: schema.update(__module__="os", __class__="system"))
    assert "os.system, not a model of scikit-pml" in refusal(tmp_path, tampered)


def test_an_older_layout_cannot_be_claimed(tmp_path: Path, model_bytes: bytes) -> None:
    assert "old layout" in refusal(
        tmp_path, with_schema(model_bytes, lambda schema: schema.update(protocol=0))
    )


def test_a_newer_file_is_named_as_such(tmp_path: Path, model_bytes: bytes) -> None:
    def newer(entries: dict[str, bytes]) -> None:
        entries["skpml.json"] = json.dumps({**json.loads(entries["skpml.json"]), "format": 99}).encode()

    message = refusal(tmp_path, rewritten(model_bytes, newer))
    assert "format 99" in message
    assert f"install scikit-pml {skpml.__version__} or newer" in message


def test_an_older_file_is_named_as_such(tmp_path: Path, model_bytes: bytes) -> None:
    """Format 1 had import paths in place of names."""

    def older(entries: dict[str, bytes], version: str = "0.0.9") -> None:
        described = {**json.loads(entries["skpml.json"]), "format": 1, "versions": {"scikit-pml": version}}
        entries["skpml.json"] = json.dumps(described).encode()

    current = rewritten(model_bytes, lambda entries: older(entries, skpml.__version__))
    assert "open it with" not in refusal(tmp_path, current)
    message = refusal(tmp_path, rewritten(model_bytes, older))
    assert "format 1, written by scikit-pml 0.0.9" in message
    assert "fit the model again, or open it with scikit-pml 0.0.9" in message


def test_a_file_outlives_a_move_of_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = PMLMA().fit(X, Y)
    save_model(model, tmp_path / "model.skpml")
    with ZipFile(tmp_path / "model.skpml") as archive:
        schema = archive.read("schema.json").decode()
    assert '"pml-ma"' in schema
    assert "modal_alignment" not in schema
    assert "skpml.features" not in schema
    moved = types.ModuleType("skpml_moved")
    for cls in (PMLMA, RBFAnchors):
        new = type(cls.__name__ + "2", (cls,), {"__module__": "skpml_moved"})
        setattr(moved, new.__name__, new)
    monkeypatch.setitem(sys.modules, "skpml_moved", moved)
    monkeypatch.setitem(model_io.MODELS, "pml-ma", "skpml_moved:PMLMA2")
    monkeypatch.setitem(model_io.PARTS, "RBFAnchors", "skpml_moved:RBFAnchors2")
    loaded = load_model(tmp_path / "model.skpml")
    assert type(loaded).__module__ == type(loaded.feature_map_).__module__ == "skpml_moved"
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_a_method_of_another_package_is_refused(tmp_path: Path, model_bytes: bytes) -> None:
    class Mine(CandidateRidge):
        pass

    with pytest.raises(ModelFileError, match=r"Mine, not a model of scikit-pml; use pickle") as caught:
        save_model(Mine().fit(X, Y), tmp_path / "model.skpml")
    assert caught.value.path is None
    tampered = with_schema(
        model_bytes, lambda schema: schema.update(__module__="test_io", __class__="Stranger")
    )
    assert "test_io.Stranger, not a model of scikit-pml" in refusal(tmp_path, tampered)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999, -1])
def test_a_file_cut_short_is_refused(share: float, tmp_path: Path, model_bytes: bytes) -> None:
    length = int(len(model_bytes) * share) if share >= 0 else len(model_bytes) - 1
    assert "cut short" in refusal(tmp_path, model_bytes[:length])


def test_a_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    trap = pickle.dumps(object.__new__(Trap))
    assert "not a model file" in refusal(tmp_path, trap)


def test_random_bytes_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 100, 10_000):
        assert "not a model file" in refusal(tmp_path, rng.bytes(size))


def test_missing_and_swapped_arrays_are_refused(tmp_path: Path, model_bytes: bytes) -> None:
    with ZipFile(io.BytesIO(model_bytes)) as archive:
        arrays = [name for name in archive.namelist() if name.endswith(".npy")]
    assert len(arrays) > 5
    message = refusal(tmp_path, rewritten(model_bytes, lambda entries: entries.pop(arrays[0])))
    assert "damaged" in message
    assert arrays[0] in message

    stored = io.BytesIO()
    np.save(stored, np.array([object.__new__(Trap)], dtype=object), allow_pickle=True)
    pickled = rewritten(model_bytes, lambda entries: entries.update({arrays[0]: stored.getvalue()}))
    assert "damaged" in refusal(tmp_path, pickled)


def test_the_kind_of_features_is_kept(tmp_path: Path) -> None:
    path, model = tmp_path / "model.skpml", CandidateRidge().fit(X, Y)
    save_model(model, path, feature_kind="embeddings")
    assert read_model_info(path).feature_kind == "embeddings"
    with pytest.raises(
        ValueError, match="feature_kind must be one of columns, text, mixed, embeddings, got 'sound'"
    ):
        save_model(model, tmp_path / "wrong.skpml", feature_kind="sound")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one name, that of the column of texts"):
        save_model(model, tmp_path / "wrong.skpml", feature_kind="text")


@pytest.mark.parametrize("kind", ["sound", "text", 3, None])
def test_a_kind_of_features_that_is_not_known_is_refused(
    kind: Any, tmp_path: Path, model_bytes: bytes
) -> None:
    def other_kind(entries: dict[str, bytes]) -> None:
        described = json.loads(entries["skpml.json"])
        described["feature_kind"] = kind
        entries["skpml.json"] = json.dumps(described).encode()

    assert "an unknown kind of features" in refusal(tmp_path, rewritten(model_bytes, other_kind))


@pytest.mark.parametrize("names", ["label_names", "feature_names"])
def test_edited_names_are_noticed(names: str, tmp_path: Path) -> None:
    path = tmp_path / "model.skpml"
    save_model(CandidateRidge().fit(X, Y), path, feature_names=[f"f{i}" for i in range(X.shape[1])])

    def reverse(entries: dict[str, bytes]) -> None:
        described = json.loads(entries["skpml.json"])
        described[names] = described[names][::-1]
        entries["skpml.json"] = json.dumps(described).encode()

    edited = rewritten(path.read_bytes(), reverse, forge=False)
    assert "was changed after it was written" in refusal(tmp_path, edited)
    with pytest.raises(ModelFileError, match="was changed after it was written"):
        read_model_info(tmp_path / "bad.skpml")


def test_edited_values_are_noticed(tmp_path: Path, model_bytes: bytes) -> None:
    def other_threshold(entries: dict[str, bytes]) -> None:
        schema = json.loads(entries["schema.json"])
        schema["content"]["content"]["threshold_"]["content"] = "NaN"
        entries["schema.json"] = json.dumps(schema).encode()

    edited = rewritten(model_bytes, other_threshold, forge=False)
    assert "was changed after it was written" in refusal(tmp_path, edited)


def test_changed_bytes_are_noticed(tmp_path: Path, model_bytes: bytes) -> None:
    changed = bytearray(model_bytes)
    changed[len(changed) // 3] ^= 0xFF
    refusal(tmp_path, bytes(changed))


def test_packed_parts_are_refused(tmp_path: Path, model_bytes: bytes) -> None:
    packed = rewritten(model_bytes, lambda entries: None, compression=ZIP_DEFLATED)
    assert "compressed" in refusal(tmp_path, packed)


def test_a_graph_that_points_outside_is_refused(tmp_path: Path) -> None:
    graph = neighbor_similarity(X)
    model = PMLMA(graph=graph).fit(X, Y)
    graph.indices[0] = 10_000_000
    save_model(model, tmp_path / "model.skpml")
    with pytest.raises(ModelFileError, match="damaged or was changed"):
        load_model(tmp_path / "model.skpml")


@pytest.mark.parametrize("wrap", [lambda matrix: matrix, lambda matrix: [{"a": matrix}]])
def test_a_fitted_attribute_that_points_outside_is_refused(tmp_path: Path, wrap: Any) -> None:
    model = CandidateRidge().fit(X, Y)
    name = next(name for name, value in vars(model).items() if name.endswith("_") and np.ndim(value) == 2)
    forged = scipy.sparse.csr_array(getattr(model, name))
    forged.indices[0] = 2_000_000_000
    setattr(model, name, wrap(forged))
    save_model(model, tmp_path / "model.skpml")
    with pytest.raises(ModelFileError, match="damaged or was changed"):
        load_model(tmp_path / "model.skpml")


def test_a_part_cannot_unpack_into_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CandidateRidge().fit(X, Y)
    model.forged_ = scipy.sparse.csr_array((np.zeros(10**6), np.zeros(10**6, int), [0, 10**6]), shape=(1, 1))
    save_model(model, tmp_path / "model.skpml")
    with ZipFile(tmp_path / "model.skpml") as parts:
        if not any(name.endswith(".npz") for name in parts.namelist()):
            pytest.skip("this version of skops or scipy does not pack sparse arrays")
    monkeypatch.setattr("skpml.tables._errors._UNPACKED_AT_LEAST", 10_000)
    with pytest.raises(ModelFileError, match="unpacked"):
        load_model(tmp_path / "model.skpml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.skpml"):
        load_model(tmp_path / "nowhere.skpml")
