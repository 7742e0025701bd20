"""Names lead to methods, and what the tags say is what the methods do."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import skpml
from skpml import get_method, list_methods
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.registry import TAGS

METHODS = [get_method(name) for name in list_methods()]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    truth = (X @ rng.normal(size=(6, 4)) > 0.5).astype(int)
    truth[~truth.any(axis=1), 0] = 1
    return X, np.maximum(truth, rng.random(truth.shape) < 0.2)


def fitted(method, problem):
    model = method()
    # The rule of P-LENFN cuts row by row, which bends scores that are linear otherwise.
    return model.set_params(threshold="auto").fit(*problem)


@each_method
def test_a_name_leads_to_an_estimator(method):
    assert get_method(method.name) is method
    model = method()
    assert isinstance(model, BasePMLClassifier)
    assert type(model) is method.estimator_class
    for name, value in method.parameters.items():
        assert model.get_params()[name] == value


@each_method
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_tags_tell_the_truth(method, problem):
    if method.needs is not None:
        pytest.importorskip(method.needs, reason=f"{method.name} needs {method.needs}")
    model = fitted(method, problem)
    assert hasattr(model, "confidences_") == method.confidences
    if method.random:
        assert "random_state" in model.get_params()
    elif "random_state" in model.get_params():
        other = method(threshold="auto", random_state=7).fit(*problem)
        np.testing.assert_array_equal(
            other.decision_function(problem[0]), model.decision_function(problem[0])
        )
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 50, 6))
    scores = [model.decision_function(x) for x in (a, b, (a + b) / 2)]
    # A linear method scores the point half way between two rows half way between their scores.
    bend = np.abs((scores[0] + scores[1]) / 2 - scores[2]).max() / np.ptp(scores[2])
    assert (bend > 1e-3) == method.nonlinear
    assert method.inductive  # it has just scored new rows


@each_method
def test_published_methods_name_their_source(method):
    text = inspect.getdoc(method.estimator_class)
    if method.kind not in ("reference", "own"):
        assert method.source in ("release", "paper", "abstract")
        assert method.year
        assert method.reference
        assert "References\n-----" in text
    assert "Parameters\n-----" in text
    if method.source == "abstract":
        assert "reconstruct" in text.lower() or "reimplement" in text.lower()


@each_method
def test_complexity_stands_in_the_docstring(method):
    if method.kind != "flagship":
        text = inspect.getdoc(method.estimator_class)
        assert "O(" in text, "time and memory belong into the docstring"


def test_choosing_by_tags():
    assert list_methods(kind="flagship") == ["pml-ma"]
    assert set(list_methods(confidences=True)) | set(list_methods(confidences=False)) == set(list_methods())
    assert list_methods(kind="baseline", year=2018) == ["pml-fp", "pml-lc"]
    assert list_methods(kind="flagship", nonlinear=False) == []
    assert all(hasattr(METHODS[0], tag) for tag in TAGS)


def test_an_unknown_tag_is_named():
    with pytest.raises(TypeError, match="there is no tag 'colour'; the tags are kind, inductive"):
        list_methods(colour="red")


def test_an_unknown_value_of_a_tag_is_named():
    with pytest.raises(
        ValueError,
        match="kind is one of 'flagship', 'own', 'baseline', 'reference', 'external', got 'basline'",
    ):
        list_methods(kind="basline")


@pytest.mark.parametrize("name", ["PML-NI", "pml_ni", "Pml-Ni"])
def test_spellings(name):
    assert get_method(name).name == "pml-ni"


def test_an_unknown_name_suggests_a_near_one():
    with pytest.raises(ValueError, match="there is no method 'pml-mi'; did you mean 'pml-ni'"):
        get_method("pml-mi")
    with pytest.raises(
        ValueError, match="the methods are pml-ma, pml-ma-printed, pml-ma-released, candidate-likelihood"
    ):
        get_method("gradient descent")


def test_calling_a_method_sets_parameters():
    assert get_method("pml-ni")(lam=3.0).lam == 3.0
    assert get_method("particle-map")().variant == "map"
    assert get_method("particle")(variant="map").variant == "map"


def test_the_names_every_user_needs_are_in_the_package():
    assert {"PMLMA", "get_method", "list_methods"} <= set(dir(skpml))


def test_a_class_of_others_has_tags_the_same_way():
    class Mine(BasePMLClassifier):
        _facts = MethodFacts(name="mine", confidences=True, year=2030)

        def _fit(self, X, Y):
            pass

        def _scores(self, X):
            return X

    class Plain(Mine):
        _facts = MethodFacts()

    assert (get_method(Mine).name, get_method(Mine).year, get_method(Mine).kind) == ("mine", 2030, "external")
    assert (get_method(Plain).name, get_method(Plain).confidences) == ("Plain", False)
    assert isinstance(get_method(Mine)(), Mine)
    with pytest.raises(TypeError, match="not a subclass"):
        get_method(int)


@pytest.mark.slow
def test_tags_do_not_import_torch():
    code = "import sys, skpml; skpml.list_methods(needs='torch'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@each_method
def test_defaults_are_the_same_for_all(method):
    parameters = method().get_params()
    # A variant that reproduces a paper has the threshold of the paper.
    assert parameters["threshold"] == method.parameters.get("threshold", "auto")
    assert parameters["on_empty"] == "warn"
    assert method(threshold=method.comparison_threshold)._check_threshold() is None


@each_method
def test_parameters_are_checked_before_the_data(method):
    model = method()
    name = next(
        (
            n
            for n in ("max_iter", "n_anchors", "gamma", "n_neighbors", "C", "batch_size")
            if n in model.get_params()
        ),
        None,
    )
    if method.needs is not None:
        pytest.importorskip(method.needs)
    with pytest.raises(ValueError, match=name):
        model.set_params(**{name: -1}).fit([[np.nan]], None)


def test_versions_of_dependencies_are_shown(capsys):
    skpml.show_versions()
    shown = capsys.readouterr().out
    assert shown.startswith("python: ")
    for name in ("numpy", "scikit-learn", "scipy", "skops", "torch"):
        assert f"\n{name}: " in shown
