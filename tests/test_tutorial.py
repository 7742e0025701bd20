"""The tutorial notebook runs from top to bottom, is stored without outputs, and shows what it says."""

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"


def code_cells():
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def test_it_is_stored_without_outputs():
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code_cells())


@pytest.mark.slow
def test_it_runs_and_finds_wrong_tags(monkeypatch):
    pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    matplotlib.use("agg")
    names = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(), start=1):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert names["model"].predict(names["new"]).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert names["after"] < names["before"] / 2
    assert names["frame"].index[0].startswith("dish")
    # No decision is lost.
    for row, label, decision in zip(
        *(names["decisions"][key] for key in ("row", "label", "decision")), strict=True
    ):
        assert names["labels"][row, names["found"].label_names.index(label)] == (decision == "keep")
