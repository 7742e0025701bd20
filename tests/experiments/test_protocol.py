"""Suites: what comes along is what the paper did, and a mistake is told with its line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from skpml.experiments import MethodEntry, Suite, SuiteError, Tuning, expand, load_suite, shipped_suites
from skpml.experiments._protocol import PAPER_METRICS
from skpml.experiments._toml_lines import line_of
from skpml.published import published_results

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
    ("old", "new", "line", "words"),
    [
        ("folds = 3", "fold = 3", 8, ["fold: unknown key", "did you mean 'folds'"]),
        ("folds = 3", 'folds = "3"', 8, ["folds", "valid integer", "'3'"]),
        ("folds = 3", "folds = 1", 8, ["folds", "greater than or equal to 2"]),
        ("folds = 3", "folds = 3\nonly_folds = [3]", 9, ["only_folds", "no fold 3"]),
        ("seeds = [0, 1]", "seeds = [0, -1]", 7, ["seed", "-1"]),
        ("seeds = [0, 1]", "seeds = [0, 0]", 7, ["seeds[2]", "twice"]),
        ("seeds = [0, 1]", "seeds = []", 7, ["seeds", "at least 1 item"]),
        ('    "digits-5",', '    "digits-6",', 4, ["configurations[2]", "'digits-6' stands here twice"]),
        ('    "digits-5",', "    5,", 5, ["configurations[2]", "valid string"]),
        ('"ranking_loss"', '"rank_loss"', 9, ["metrics[2]", "'rank_loss'", "did you mean 'ranking_loss'"]),
        ('control = "pml-ma"', 'control = "pml"', 10, ["control", "no method has the label 'pml'"]),
        ('name = "pml-ma"', 'name = "pmlma"', 13, ["methods[1].name", "did you mean 'pml-ma'"]),
        ('name = "pml-ma"', "", 12, ["methods[1].name", "missing"]),
        ("low_rank_weight = 1.0", "lambda = 1.0", 14, ["methods[1].parameters.lambda", "no parameter"]),
        ('selector = "label-free"', 'selector = "free"', 15, ["tuning.selector", "'free'"]),
        ('selector = "label-free"', 'select = "free"', 15, ["tuning.select", "did you mean 'selector'"]),
        ("ridge_weight = [0.1, 1.0] }", "ridge_weight = [] }", 15, ["tuning.ridge_weight", "empty"]),
        (
            "grid = { ridge_weight",
            "grid = { ridge_wight",
            15,
            ["tuning.grid.ridge_wight", "did you mean 'ridge_weight'"],
        ),
        ("digits = { align", "digit = { align", 17, ["by_data.digit", "not among the configurations"]),
        (
            "alignment_weight = 0.2",
            "alignment = 0.2",
            18,
            ["by_data.digits-5.alignment", "'alignment_weight'"],
        ),
        ('label = "ceiling"', 'label = "pml-ma"', 22, ["methods[2].label", "two methods"]),
        ('role = "ceiling"', 'role = "roof"', 23, ["methods[2].role", "'roof'"]),
        ('role = "ceiling"', 'rol = "ceiling"', 23, ["methods[2].rol", "did you mean 'role'"]),
        ("gamma = [\n", "gam = [\n", 25, ["methods[2].sweep.gam", "did you mean 'gamma'"]),
        ("folds = 3", "folds = = 3", 8, ["not TOML"]),
        ('kind = "comparison"', 'kind = "compare"', 2, ["kind", "'compare'"]),
        ('name = "mine"', 'name = ""', 1, ["name", "at least 1 character"]),
        (
            "seeds = [0, 1]",
            'seeds = [0, 1]\nreading = { "a.csv" = {} }',
            8,
            ["reading.a.csv", "no data file"],
        ),
        (
            '    "digits-5",\n]\n',
            '    "a.csv",\n]\nreading = { "a.csv" = { candidate = "tags" } }\n',
            7,
            ["reading.a.csv.candidate: unknown option; did you mean 'candidates'?"],
        ),
        (
            "configurations = [",
            "configuration = [",
            3,
            ["configuration: unknown key; did you mean 'configurations'?"],
        ),
        ('name = "pml-ma"', 'name = "my_method.Mine"', 13, ["did you mean 'my_method:Mine'?"]),
        ('name = "pml-ma"', 'name = "my_method.py:Mine"', 13, ["did you mean 'my_method:Mine'?"]),
        ('name = "pml-ma"', 'name = "my_method.py"', 13, ['one of your own is "package.module:Class"']),
    ],
)
def test_a_mistake_names_file_line_and_key(
    tmp_path: Path, old: str, new: str, line: int, words: list[str]
) -> None:
    assert GOOD.count(old) == 1 or old.startswith(('"digits', "low_rank"))
    with pytest.raises(SuiteError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'mine.toml'}, line {line}: "), message
    for word in words:
        assert word in message
    assert "\n" not in message


def test_an_unfinished_file_names_its_end(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"mine\.toml, line 2: this is not TOML"):
        load(tmp_path, 'name = "mine"\nseeds = [0,')
    (tmp_path / "bytes.toml").write_bytes(b'name = "a"\ntitle = "\xff"\n')
    with pytest.raises(SuiteError, match=r"bytes\.toml, line 2: the file is not UTF-8"):
        load_suite(tmp_path / "bytes.toml")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="there is no suite 'papr': did you mean 'paper'"):
        load_suite("papr")
    with pytest.raises(SuiteError, match=r"there is no file .*absent\.toml"):
        load_suite(tmp_path / "absent.toml")


def test_lines_of_nested_and_repeated_tables() -> None:
    text = """a = 1

[b.c]
d = { e = 1, f = [
  2] }
[[g]]
h = 1
[[g.i]]
j = 1
[[g.i]]
j = 2
[[g]]
"h = k" = '''
j = 1
'''
l.m = { n = 1 }
"""
    for path, line in (
        (("a",), 1),
        (("b",), 3),
        (("b", "c"), 3),
        (("b", "c", "d", "e"), 4),
        (("g", 0, "h"), 7),
        (("g", 0, "i", 1, "j"), 11),
        (("g", 1, "h = k"), 13),
        (("g", 1, "l"), 16),
        (("g", 1, "l", "m", "n"), 16),
        (("absent",), 1),
    ):
        assert line_of(text, path) == line, path


def test_decompositions_have_their_own_methods_and_scores(tmp_path: Path) -> None:
    text = 'name = "d"\nkind = "decomposition"\nconfigurations = ["digits-5"]\n[[methods]]\nname = "{}"\n{}\n'
    assert load(tmp_path, text.format("low-rank-sparse", "")).metrics == ["precision", "recall", "f1", "auc"]
    with pytest.raises(SuiteError, match=r"line 5: .*no method 'pml-ma'; choose from low-rank-orthogonal"):
        load(tmp_path, text.format("pml-ma", ""))
    with pytest.raises(
        SuiteError, match=r"line 5: .*no method 'own:Method'; choose from low-rank-orthogonal"
    ):
        load(tmp_path, text.format("own:Method", ""))
    with pytest.raises(SuiteError, match=r"line 6: methods\[1\].sweep: a decomposition takes none"):
        load(tmp_path, text.format("low-rank-sparse", "sweep = { low_rank_weight = [1.0] }"))


def test_the_suites_that_come_along() -> None:
    assert shipped_suites() == ["ablation", "convergence", "decomposition", "paper", "quick", "sensitivity"]
    for name in shipped_suites():
        suite = load_suite(name)
        assert suite.name == name
        assert suite.title
        assert suite.description
        assert suite.control in [method.label for method in suite.methods]


def test_the_paper_suite_is_the_papers_comparison() -> None:
    suite = load_suite("paper")
    printed = published_results()
    assert set(suite.configurations) == {result.configuration for result in printed}
    assert len(suite.configurations) == 30
    methods = [entry.name for entry in suite.methods if entry.role == "method"]
    assert set(methods) - {result.method for result in printed} == {"candidate-likelihood"}
    assert len(methods) == 10
    assert (suite.folds, suite.seeds) == (10, [0])
    assert set(suite.metrics) == {result.metric for result in printed}
    tuned = suite.method("pml-ma").tuning
    assert tuned is not None
    assert (tuned.selector, tuned.grid) == (
        "label-free",
        {"ridge_weight": [0.01, 0.1, 1.0, 10.0, 100.0], "low_rank_weight": [1.0, 10.0]},
    )
    # Only the control is tuned, and a floor with the same search for the same weight.
    floor = suite.method("tuned ridge on candidates")
    assert [entry for entry in suite.methods if entry.tuning is not None] == [suite.method("pml-ma"), floor]
    assert floor.tuning == tuned.model_copy(update={"grid": {"gamma": tuned.grid["ridge_weight"]}})
    assert [entry.role for entry in suite.methods if entry.name == "ridge"] == ["floor", "floor", "ceiling"]


def test_the_authors_weights() -> None:
    names = ("low_rank_weight", "alignment_weight", "prototype_weight", "ridge_weight")
    ablation, convergence = load_suite("ablation"), load_suite("convergence")
    for configuration, weights in {
        "emotions-4": (10, 1e-1, 1e-2, 1e1),
        "birds-4": (10, 1e-3, 1e-2, 1e-1),
        "scene-5": (10, 1e-2, 1e-2, 1e1),
        "yeast-7": (10, 1e-4, 1e-3, 1e1),
    }.items():
        for entry in ablation.methods:
            assert tuple(entry.parameters_on(configuration)[name] for name in names) == weights
    left_out = [entry.parameters.get("without", []) for entry in ablation.methods]
    assert left_out == [[], ["decomposition"], ["alignment"], ["prototypes"]]
    entry = convergence.methods[0]
    for configuration, weights in {
        "emotions-3": (10, 1e-1, 1e-1, 1e0),
        "image-3": (10, 1e-2, 1e-2, 1e-1),
        "health-7": (10, 1e-4, 1e-4, 1e0),
        "recreation-7": (10, 1e-4, 1e-4, 1e1),
        "arts-5": (10, 1e-4, 1e-4, 1e1),
        "reference-5": (10, 1e-4, 1e-4, 1e0),
    }.items():
        assert tuple(entry.parameters_on(configuration)[name] for name in names) == weights
    assert len(convergence.configurations) == 9
    assert entry.history
    swept = load_suite("sensitivity").methods[0]
    assert set(swept.sweep) == set(names)
    assert all(values == [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0] for values in swept.sweep.values())


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
    told = dict(re.findall(r"^\| `([\w.]+)` \| (.+?) \| .+ \|$", page, flags=re.MULTILINE))
    keys = keys_of(Suite)
    assert list(told) == list(dict.fromkeys(told))
    assert set(told) == set(keys)
    assert len(PAPER_METRICS) == 5
    computed = {"metrics": "the paper's five", "methods.label": "the name"}
    for key, field in keys.items():
        default = "needed" if field.is_required() else f"`{json.dumps(field.default)}`"
        if not field.is_required() and field.default in (None, "", [], {}):
            default = computed.get(key, "none")
        assert told[key] == default, key
