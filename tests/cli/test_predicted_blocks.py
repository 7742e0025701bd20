"""Blocks of rows that are predicted: each is scored once, and no other copy of the features is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skpml import PMLMA, CandidateLikelihood
from skpml.cli._fit import _fit_model
from skpml.cli._predict import _match_features, _score_once
from skpml.datasets import read_dataset, write_dataset
from skpml.io import read_model_info, save_model
from skpml.reference import CandidateRidge, Oracle
from skpml.tables import Columns, read_table

from .conftest import PHOTO_OPTIONS, Run

pytest.importorskip("skops.io")


def problem(dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(dtype)
    return X, np.column_stack([X > 0, X[:, 0] < 0.5]).astype(int)


def at_the_cut() -> tuple[Any, np.ndarray]:
    """A model whose threshold is next below one of its scores, in single precision."""
    X, Y = problem(np.float32)
    model = CandidateRidge().fit(X, Y)
    scores = model.decision_function(X)
    # The nearest to zero, where single precision is finest, and its probability rounds to ½.
    score = scores.flat[np.abs(scores).argmin()]
    return model.set_params(threshold=float(np.nextafter(score, np.float32(0)))).fit(X, Y), X


def likely() -> tuple[Any, np.ndarray]:
    X, Y = problem()
    options: dict[str, Any] = dict(family="ridge", gamma=0.1, noise_rate=0.2, kernel_width=1.0)
    return CandidateLikelihood(**options, threshold=0.3, random_state=0).fit(X, Y), X


def classes(n_classes: int) -> tuple[Any, np.ndarray]:
    X, _ = problem()
    return CandidateRidge().fit(X, np.array(["a", "b", "c"])[(X[:, 0] > 0) * (n_classes - 1)]), X


def oracle() -> tuple[Any, np.ndarray]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    X, Y = problem()
    return Oracle(OneVsRestClassifier(LogisticRegression())).fit(X, Y), X


def pipeline() -> tuple[Any, np.ndarray]:
    X, Y = problem()
    steps = [("none", "passthrough"), ("tenth", FunctionTransformer(np.tanh)), ("model", PMLMA(max_iter=3))]
    return Pipeline(steps).fit(X, Y), X


def alone() -> tuple[Any, np.ndarray]:
    X, Y = problem()
    return Pipeline([("model", CandidateRidge())]).fit(X, Y), X


MODELS = {
    "at the cut": at_the_cut,
    "probabilities": likely,
    "two classes": lambda: classes(2),
    "three classes": lambda: classes(3),
    "oracle": oracle,
    "pipeline": pipeline,
    "pipeline of one step": alone,
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_scores_that_are_computed_once_give_the_same(make: Callable[[], tuple[Any, np.ndarray]]) -> None:
    model, X = make()
    scored, rows = _score_once(model, X)
    for method in ("predict", "predict_proba", "decision_function", "predict"):
        expected = getattr(model, method)(X)
        found = getattr(scored, method)(rows)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    # The model itself scores other rows as before.
    np.testing.assert_array_equal(model.predict(X[::-1]), model.predict(X)[::-1])


@pytest.mark.parametrize(
    "make", [at_the_cut, likely, lambda: classes(2)], ids=["at the cut", "0.3", "classes"]
)
def test_the_file_holds_the_decisions_of_the_model(
    run: Run, folder: Path, make: Callable[[], tuple[Any, np.ndarray]]
) -> None:
    model, X = make()
    save_model(model, folder / "m.skpml")
    np.save(folder / "x.npy", X)
    result = run("predict", "m.skpml", "x.npy", "-o", "out.csv")
    assert result.exit_code == 0, result.output
    decisions, names = model.predict(X), np.array(read_model_info(folder / "m.skpml").label_names)
    # Cuts other than ½ of the probability, and one where it rounds to ½.
    assert decisions.ndim == 1 or ((model.predict_proba(X) > 0.5) != decisions).any()
    expected = decisions if decisions.ndim == 1 else [";".join(names[row > 0]) for row in decisions]
    found = pd.read_csv(folder / "out.csv", keep_default_na=False)
    assert found["predicted"].tolist() == list(expected)
    np.testing.assert_allclose(found.iloc[:, 2:], model.predict_proba(X), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_step_sees_the_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = pipeline()
    seen: list[str] = []
    for owner, method in ((FunctionTransformer, "transform"), (PMLMA, "_scores")):
        usual = getattr(owner, method)

        def counting(self: Any, rows: Any, usual: Any = usual, method: str = method) -> Any:
            seen.append(method)
            return usual(self, rows)

        monkeypatch.setattr(owner, method, counting)
    scored, rows = _score_once(model, X)
    for method in ("predict", "predict_proba", "decision_function"):
        getattr(scored, method)(rows)
    assert seen == ["transform", "_scores"]


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_features_in_another_order_are_read_by_name_and_scored_once(
    run: Run, photos: Path, model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("skpml.cli._predict._PREDICTED_ROWS", 7)
    data = read_dataset(photos, tags="tags", true_tags="checked", ignore=["file"])
    assert data.feature_names == ("red", "green", "blue")
    names, order = ("blue", "red", "green"), [2, 0, 1]
    moved = type(data)(
        data.X[:, order], data.candidates, data.truth, label_names=data.label_names, feature_names=names
    )
    write_dataset(moved, folder / "moved.npz")
    write_dataset(data, folder / "same.npz")
    rows: list[int] = []
    usual = PMLMA._scores

    def counting(self: Any, X: Any) -> Any:
        rows.append(len(X))
        return usual(self, X)

    monkeypatch.setattr(PMLMA, "_scores", counting)
    found = []
    for name in ("same.npz", "moved.npz"):
        rest = ("--json",) if command == "evaluate" else ("-o", f"{name}.csv")
        result = run(command, model, name, *rest)
        assert result.exit_code == 0, result.output
        found.append(
            json.loads(result.stdout)["metrics"]
            if command == "evaluate"
            else (folder / f"{name}.csv").read_text()
        )
    assert found[0] == found[1]
    assert rows == 2 * ([40] if command == "evaluate" else [7, 7, 7, 7, 7, 5])


class Spy(BaseEstimator):
    def fit(self, X: Any, y: Any) -> Spy:
        self.X = X
        return self


def test_a_data_frame_of_rows_in_a_file_takes_no_memory(run: Run, photos: Path, folder: Path) -> None:
    done = run("data", "import", photos, *PHOTO_OPTIONS, "-o", "photos.parquet")
    assert done.exit_code == 0, done.output
    with config_context(working_memory=1e-4):
        table = read_table(folder / "photos.parquet", columns=Columns(features=["red", "green", "blue"]))
    assert isinstance(table.X, np.memmap)
    spy: Any = Spy()
    _fit_model(spy, table, lambda *_: None)
    spy.feature_names_in_ = np.array(["red", "green", "blue"])
    for frame in (spy.X, _match_features(table.X, None, spy)):
        assert isinstance(frame, pd.DataFrame)
        assert frame.columns.tolist() == ["red", "green", "blue"]
        assert np.shares_memory(frame.to_numpy(), table.X)
        np.testing.assert_array_equal(frame, table.X)
