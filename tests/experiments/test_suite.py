"""Suites: the included ones are those of the paper, and an error names its file and key."""

from __future__ import annotations

import json
import math
import pickle
import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from report_helpers import published

from skpml.experiments import Suite, SuiteError, expand, load_suite, shipped_suites
from skpml.experiments._suite import PAPER_METRICS, MethodEntry, Tuning, dataset_of, parse_suite
from skpml.registry import get_method, list_methods

GOOD = """name = "mine"
kind = "comparison"
configurations = [
    "digits-6",  # a comment with "metrics = 3" in it
    "digits-5",
]
seeds = [0, 1]
folds = 3
metrics = ["average_precision", "ranking_loss"]
control = "pml-ma"

[[methods]]
name = "pml-ma"
parameters = { low_rank_weight = 1.0, ridge_weight = 10.0 }
tuning = { selector = "label-free", grid = { ridge_weight = [0.1, 1.0] } }
[methods.by_data]
digits = { alignment_weight = 0.1 }
"digits-5" = { alignment_weight = 0.2, low_rank_weight = 3.0 }

[[methods]]
name = "ridge"
label = "ceiling"
role = "ceiling"
[methods.sweep]
gamma = [
    0.1,
    1.0,
]
"""


WEIGHTS = ("low_rank_weight", "alignment_weight", "prototype_weight", "ridge_weight")


def load(tmp_path: Path, text: str):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return load_suite(path)


def test_a_suite_says_what_its_file_says(tmp_path: Path) -> None:
    suite = load(tmp_path, GOOD)
    assert (suite.name, suite.folds, suite.seeds) == ("mine", 3, [0, 1])
    assert suite.folder == tmp_path
    first, second = suite.methods
    assert (first.label, second.label) == ("pml-ma", "ceiling")
    assert first.tuning is not None
    assert (first.tuning.inner_folds, first.tuning.search) == (3, "grid")
    # A configuration's parameters beat the data set's, which beat the method's.
    assert first.parameters_on("digits-6") == {
        "low_rank_weight": 1.0,
        "ridge_weight": 10.0,
        "alignment_weight": 0.1,
    }
    assert first.parameters_on("digits-5") == {
        "low_rank_weight": 3.0,
        "ridge_weight": 10.0,
        "alignment_weight": 0.2,
    }


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("folds = 3", "fold = 3", "fold", "did you mean 'folds'"),
        ("folds = 3", 'folds = "3"', "folds", "valid integer, got '3'"),
        ("folds = 3", "folds = 1", "folds", "greater than or equal to 2"),
        ("folds = 3", "folds = 3\nonly_folds = [3]", "only_folds", "no fold 3"),
        ("seeds = [0, 1]", "seeds = [0, -1]", "seeds[1]", "-1"),
        ("seeds = [0, 1]", "seeds = [0, 0]", "seeds[1]", "twice"),
        ("seeds = [0, 1]", "seeds = []", "seeds", "at least 1 item"),
        ('    "digits-5",', '    "digits-6",', "configurations[1]", "'digits-6' is listed twice"),
        ('    "digits-5",', "    5,", "configurations[1]", "valid string"),
        ('"ranking_loss"', '"rank_loss"', "metrics[1]", "did you mean 'ranking_loss'"),
        ('control = "pml-ma"', 'control = "pml"', "control", "no method has the label 'pml'"),
        ('name = "pml-ma"', 'name = "pmlma"', "methods[0].name", "did you mean 'pml-ma'"),
        ('name = "pml-ma"', "", "methods[0].name", "missing"),
        ("{ low_rank_weight = 1.0", "{ lambda = 1.0", "methods[0].parameters.lambda", "no parameter"),
        ('selector = "label-free"', 'selector = "free"', "methods[0].tuning.selector", "'free'"),
        ('selector = "label-free"', 'select = "free"', "methods[0].tuning.select", "did you mean 'selector'"),
        (
            "ridge_weight = [0.1, 1.0] }",
            "ridge_weight = [] }",
            "methods[0].tuning.grid.ridge_weight",
            "at least 1 item",
        ),
        (
            "grid = { ridge_weight",
            "grid = { ridge_wait",
            "methods[0].tuning.grid.ridge_wait",
            "'ridge_weight'",
        ),
        ("digits = { alignment", "digit = { alignment", "methods[0].by_data.digit", "not a configuration"),
        (
            "alignment_weight = 0.2",
            "alpa = 0.2",
            "methods[0].by_data.digits-5.alpa",
            "no parameter 'alpa'",
        ),
        ('label = "ceiling"', 'label = "pml-ma"', "methods[1].label", "two methods"),
        ('role = "ceiling"', 'role = "roof"', "methods[1].role", "'roof'"),
        ('role = "ceiling"', 'rol = "ceiling"', "methods[1].rol", "did you mean 'role'"),
        ("gamma = [\n", "gam = [\n", "methods[1].sweep.gam", "did you mean 'gamma'"),
        ("folds = 3", "folds = = 3", "", "line 8"),
        ('kind = "comparison"', 'kind = "compare"', "kind", "'compare'"),
        ('name = "mine"', 'name = ""', "name", "at least 1 character"),
        ("seeds = [0, 1]", 'seeds = [0, 1]\nreading = { "a.csv" = {} }', "reading.a.csv", "not a data file"),
        (
            '    "digits-5",\n]\n',
            '    "a.csv",\n]\nreading = { "a.csv" = { tagss = "tags" } }\n',
            "reading.a.csv.tagss",
            "did you mean 'tags'?",
        ),
        ("configurations = [", "configuration = [", "configuration", "did you mean 'configurations'?"),
        ('name = "pml-ma"', 'name = "my_method.Mine"', "methods[0].name", "did you mean 'my_method:Mine'?"),
        (
            'name = "pml-ma"',
            'name = "my_method.py:Mine"',
            "methods[0].name",
            "did you mean 'my_method:Mine'?",
        ),
        ('name = "pml-ma"', 'name = "my_method.py"', "methods[0].name", '"package.module:Class"'),
    ],
)
def test_an_error_names_file_and_key(tmp_path: Path, old: str, new: str, key: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(SuiteError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    error = caught.value
    assert (error.source, error.key) == (str(tmp_path / "mine.toml"), key)
    assert words in error.problem
    assert str(error) == ": ".join(filter(None, (error.source, error.key, error.problem)))
    assert "\n" not in str(error)


def test_an_error_survives_the_way_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(SuiteError("wrong", "a.toml", "folds")))
    assert (error.problem, error.source, error.key) == ("wrong", "a.toml", "folds")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="not TOML"):
        load(tmp_path, 'name = "mine"\nseeds = [0,')
    (tmp_path / "bytes.toml").write_bytes(b'name = "a"\ntitle = "\xff"\n')
    with pytest.raises(SuiteError, match=r"bytes\.toml: the file is not UTF-8"):
        load_suite(tmp_path / "bytes.toml")
    with pytest.raises(SuiteError, match="there is no suite 'papr': did you mean 'paper'"):
        load_suite("papr")
    with pytest.raises(SuiteError, match=r"there is no file .*absent\.toml"):
        load_suite(tmp_path / "absent.toml")


def test_decompositions_have_scores_of_recovered_labels(tmp_path: Path) -> None:
    text = 'name = "d"\nkind = "{}"\nconfigurations = ["digits-5"]\n{}[[methods]]\nname = "ridge"\n'
    assert load(tmp_path, text.format("decomposition", "")).metrics == ["average_precision", "auc"]
    assert load(tmp_path, text.format("decomposition", 'metrics = ["f1"]\n')).metrics == ["f1"]
    with pytest.raises(SuiteError, match="there is no metric 'f1'"):
        load(tmp_path, text.format("comparison", 'metrics = ["f1"]\n'))


def test_the_decompositions_have_equally_many_weights_to_choose_from() -> None:
    suite = load_suite("decomposition")
    orthogonal, sparse = (suite.method(label).tuning for label in ("LRO", "LRS"))
    assert orthogonal is not None
    assert sparse is not None
    assert orthogonal.selector == sparse.selector == "label-free"
    assert len(orthogonal.grid["weight"]) == len(sparse.grid["weight"])
    # The classifier is the same for all.
    assert {entry.parameters["n_anchors"] for entry in suite.methods} == {500}
    assert {entry.parameters.get("gamma", 1.0) for entry in suite.methods} == {1.0}


def test_the_suites_that_come_along() -> None:
    paper = ["paper", "paper-real", "paper-seeds", "paper-settings"]
    kinds = ["ablation", "convergence", "decomposition", "noise"]
    assert shipped_suites() == [*kinds, *paper, "quick", "sensitivity", "variants"]
    for name in shipped_suites():
        suite = load_suite(name)
        assert suite.name == name
        assert suite.title
        assert suite.description
        # The settings that the paper lists are a second column beside the suite paper, which has the control.
        allowed = [None] if name == "paper-settings" else [method.label for method in suite.methods]
        assert suite.control in allowed


def test_the_paper_suite_is_the_papers_comparison() -> None:
    suite = load_suite("paper")
    printed = published()
    # The real sets are in a suite of their own, as far as their data are public.
    real = {"mirflickr", "music_emotion", "music_style", "yeastbp"}
    assert set(suite.configurations) == set(printed["configuration"]) - real
    assert len(suite.configurations) == 26
    methods = [entry.name for entry in suite.methods if entry.role == "method"]
    assert set(printed["method"]) <= set(methods)
    newer = {"candidate-likelihood", "nlr", "schirn", "capml", "comes"}
    assert set(methods) - set(printed["method"]) == newer
    assert len(methods) == 14
    assert (suite.folds, suite.seeds) == (10, [0])
    assert set(suite.metrics) == {*printed["metric"], "hamming_loss_common"}
    # Every method, floor and ceiling chooses one of six settings by the same rule; candidate likelihood by itself.
    rules = set()
    for entry in suite.methods:
        if entry.name == "candidate-likelihood":
            assert entry.tuning is None
            continue
        assert entry.tuning is not None
        assert math.prod(len(set(values)) for values in entry.tuning.grid.values()) == 6
        assert not entry.parameters
        rules.add(entry.tuning.model_copy(update={"grid": {}}).model_dump_json())
    assert len(rules) == 1
    floor, ceiling = (entry for entry in suite.methods if entry.name == "ridge")
    assert (floor.role, ceiling.role) == ("floor", "ceiling")
    assert floor.tuning == ceiling.tuning
    assert floor.tuning.selector == "label-free"


def test_the_other_suites_of_the_paper_share_its_protocol() -> None:
    paper, printed = load_suite("paper"), published()
    settings, seeds, real = (load_suite(f"paper-{end}") for end in ("settings", "seeds", "real"))
    for suite in (settings, seeds, real):
        assert (suite.folds, suite.metrics) == (paper.folds, paper.metrics)
    assert settings.configurations == seeds.configurations == paper.configurations
    # The eight others as the paper lists them: nothing is tuned.
    assert {entry.label for entry in settings.methods} == set(printed["method"]) - {"pml-ma"}
    assert all(entry.tuning is None for entry in settings.methods)
    # Entries that are equal share their results.
    assert seeds.seeds == [0, 1, 2]
    assert [entry.label for entry in seeds.methods] == [
        "pml-ma", "candidate-likelihood", "ridge on candidates", "ridge on truth"
    ]  # fmt: skip
    assert all(paper.method(entry.label) == entry for entry in (*seeds.methods, *real.methods))
    assert real.methods == paper.methods
    assert real.configurations == ["yeastbp", "mirflickr_subset5000"]


def test_the_settings_are_those_that_the_paper_lists() -> None:
    listed = {
        "pml-plr": {"alpha": 0.1, "beta": 0.1, "lam": 0.01},
        "fbd-pml": {"lam1": 0.01, "lam2": 0.01, "lam3": 10, "lam4": 0.1, "lam5": 1},
        "p-lenfn": {"lam1": 10, "lam2": 1, "lam3": 0.01, "lam4": 10},
        "pml-ni": {"lam": 10, "beta": 0.5, "gamma": 0.5},
        "particle": {"credibility": 0.9, "alpha": 0.95, "n_neighbors": 10},
        "pml-fp": {"C1": 1, "C3": 10},
    }
    suite = load_suite("paper-settings")
    for label, values in listed.items():
        entry = suite.method(label)
        used = get_method(entry.name)(**entry.parameters).get_params()
        assert {name: used[name] for name in values} == values, label


def test_the_noise_suite_compares_all_methods_under_three_noises() -> None:
    suite, paper = load_suite("noise"), load_suite("paper")
    uniform = suite.configurations[::3]
    assert len(uniform) == 6
    assert suite.configurations == [f"{name}{end}" for name in uniform for end in ("", "-label", "-instance")]
    # The results of the paper suite under uniform noise count here too.
    assert set(uniform) <= set(paper.configurations)
    assert (suite.folds, suite.seeds) == (paper.folds, paper.seeds)
    assert {entry.label for entry in paper.methods} <= {entry.label for entry in suite.methods}
    for entry in paper.methods:
        assert suite.method(entry.label) == entry
    # Reference learners are floors or ceilings; networks need PyTorch.
    methods = {entry.name for entry in suite.methods if entry.role == "method"}
    others = {"ridge", "linear-ridge", "ml-knn", "lift", "chain", "deep-candidate-likelihood"}
    # They are compared by the suite "variants".
    others |= {"pml-ma-printed", "pml-ma-released"}
    assert methods == set(list_methods()) - others


def test_the_data_set_of_a_configuration() -> None:
    assert dataset_of("emotions") == "emotions"
    assert dataset_of("emotions-3") == dataset_of("emotions-3-label") == dataset_of("emotions-3-instance")
    assert dataset_of("emotions-3") == "emotions"
    assert dataset_of("emotions-label") == "emotions-label"
    assert dataset_of("emotions-3-uniform") == "emotions-3-uniform"


def test_the_authors_weights() -> None:
    weights_of = {
        "emotions-3": (10, 1e-1, 1e-1, 1e0),
        "emotions-4": (10, 1e-1, 1e-2, 1e1),
        "emotions-5": (10, 1e-1, 1e-2, 1e1),
        "birds-3": (10, 1e-3, 1e-2, 1e-1),
        "birds-4": (10, 1e-3, 1e-2, 1e-1),
        "image-3": (10, 1e-2, 1e-2, 1e-1),
        "image-4": (10, 1e-2, 1e-2, 1e-1),
        "scene-3": (10, 1e-2, 1e-2, 1e1),
        "scene-5": (10, 1e-2, 1e-2, 1e1),
        "yeast-7": (10, 1e-4, 1e-3, 1e1),
        "yeast-9": (10, 1e-4, 1e-3, 1e1),
        "health-7": (10, 1e-4, 1e-4, 1e0),
        "recreation-7": (10, 1e-4, 1e-4, 1e1),
        "arts-5": (10, 1e-4, 1e-4, 1e1),
        "reference-5": (10, 1e-4, 1e-4, 1e0),
    }
    for suite in map(load_suite, ("variants", "ablation", "sensitivity", "convergence")):
        for configuration in suite.configurations:
            for entry in suite.methods:
                found = entry.parameters_on(configuration)
                expected = dict(zip(WEIGHTS, weights_of[configuration], strict=True))
                if entry.name == "ridge":
                    expected = {"gamma": expected["ridge_weight"]}
                elif entry.label == "without low rank":
                    expected["low_rank_weight"] = 0
                assert {name: found[name] for name in expected} == expected


def test_the_paper_s_ablation_with_both_bases() -> None:
    entries = load_suite("ablation").methods
    for name in ("pml-ma", "pml-ma-printed"):
        left_out = [entry.parameters.get("without", []) for entry in entries if entry.name == name]
        assert left_out[:4] == [[], ["decomposition"], ["alignment"], ["prototypes"]]


def test_convergence_shows_every_iteration_of_each_variant() -> None:
    suite = load_suite("convergence")
    assert len(suite.configurations) == 9
    assert [entry.name for entry in suite.methods] == ["pml-ma", "pml-ma-printed", "pml-ma-released"]
    assert all(entry.history and entry.parameters["tol"] == 0 for entry in suite.methods)


def test_sensitivity_has_six_values_of_each_weight_and_the_control() -> None:
    suite = load_suite("sensitivity")
    swept = [entry for entry in suite.methods if entry.sweep]
    assert [entry.name for entry in swept] == ["pml-ma", "pml-ma-printed"]
    for entry in swept:
        assert set(entry.sweep) == set(WEIGHTS)
        assert all(values == [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0] for values in entry.sweep.values())
    assert suite.control is not None
    assert not suite.method(suite.control).sweep


def test_the_quick_suite_needs_no_data(tmp_path: Path) -> None:
    assert expand(load_suite("quick"), data_home=tmp_path).absent == {}


def keys_of(model: type[BaseModel], prefix: str = "") -> dict[str, FieldInfo]:
    """All keys of a suite's file, as in ``methods.tuning.grid``."""
    found = {}
    for name, field in model.model_fields.items():
        found[prefix + name] = field
        inner = {"methods": MethodEntry, "tuning": Tuning}.get(name)
        found |= {} if inner is None else keys_of(inner, f"{prefix}{name}.")
    return found


def test_the_page_tells_every_key_and_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guide" / "experiments.md").read_text(encoding="utf-8")
    page = page.partition("## All keys")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `([\w.]+)` \| (.+?) \| .+ \|$", page, flags=re.MULTILINE))
    keys = keys_of(Suite)
    assert list(told) == list(dict.fromkeys(told))
    assert set(told) == set(keys)
    assert len(PAPER_METRICS) == 5
    computed = {"metrics": "the paper's five", "methods.label": "the name"}
    for key, field in keys.items():
        default = "required" if field.is_required() else f"`{json.dumps(field.default)}`"
        if not field.is_required() and field.default in (None, "", [], {}):
            default = computed.get(key, "none")
        assert told[key] == default, key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("folds = 2000000000", "folds"),
        ("a = " + "[" * 3000 + "]" * 3000, ""),
    ],
)
def test_what_would_take_all_memory_is_refused_when_it_is_read(text: str, key: str) -> None:
    suite = f'name = "x"\nconfigurations = ["digits-5"]\n{text}\n[[methods]]\nname = "ridge"\n'
    with pytest.raises(SuiteError) as caught:
        parse_suite(suite, source="x.toml")
    assert caught.value.key == key
