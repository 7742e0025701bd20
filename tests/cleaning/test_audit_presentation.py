"""Audits in notebooks: a short summary, a data frame, a picture, and the decisions of a person applied."""

import sys

import numpy as np
import pytest

from skpml.cleaning import audit, read_decisions
from skpml.tables import TableError

NAMES = ("lake", "<b>sea</b>", "$now")


def make_audit(n_rows=60, names=NAMES, index=None, **options):
    """An audit by given probabilities, which takes no time."""
    rng = np.random.default_rng(0)
    true = rng.random((n_rows, len(names))) < 0.4
    Y = (true | (rng.random(true.shape) < 0.2)).astype(int)
    probabilities = np.clip(np.where(true, 0.9, 0.05) + rng.normal(scale=0.03, size=true.shape), 0.01, 0.99)
    if index is not None:
        Y = pytest.importorskip("pandas").DataFrame(Y, index=index, columns=list(names))
    return audit(Y=Y, probabilities=probabilities, label_names=names, **options)


@pytest.fixture(scope="module")
def found():
    return make_audit()


@pytest.fixture(scope="module")
def pd():
    return pytest.importorskip("pandas")


def test_the_summary_fits_on_a_screen_and_has_the_numbers(found):
    lines = repr(found).splitlines()
    assert len(lines) <= 5
    assert max(map(len, lines)) <= 160
    for action in ("keep", "ask", "drop"):
        assert f"{np.count_nonzero(found.actions == action):,} to {action}" in lines[-1]
    assert f"{round(found.wrong.total[0])} tags" in repr(found)


def test_what_is_unknown_is_not_shown_as_a_number():
    shuffled = np.random.default_rng(1).permuted(np.linspace(0.1, 0.9, 180).reshape(60, 3))
    Y = np.random.default_rng(2).integers(2, size=(60, 3))
    found = audit(Y=Y, probabilities=shuffled)
    assert found.wrong.basis == "unknown"
    assert "unknown" in found._repr_html_()
    assert "between" not in repr(found)


def test_html_has_one_row_per_label_and_escapes_names(found):
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + len(NAMES)
    assert "<b>" not in page
    assert "&lt;b&gt;sea" in page


def test_html_of_many_labels_stays_short():
    names = tuple(f"label {number}" for number in range(50))
    page = make_audit(names=names)._repr_html_()
    assert page.count("<tr>") == 21
    assert "30 more" in page


def test_the_frame_has_one_row_per_candidate(found, pd):
    frame = found.to_frame()
    assert list(frame.columns) == ["row", "label", "confidence", "action", "verified", "reason"]
    rows, labels = np.nonzero(found.actions != "")
    assert frame["row"].tolist() == frame.index.tolist() == rows.tolist()
    assert frame["label"].tolist() == [NAMES[label] for label in labels]
    np.testing.assert_array_equal(frame["confidence"], found.confidences[rows, labels])
    assert frame["action"].tolist() == found.actions[rows, labels].tolist()
    doubted = frame[frame["reason"] != ""]
    assert sorted(zip(doubted["row"], doubted["label"], strict=True)) == sorted(
        (doubt.row, NAMES[doubt.label]) for doubt in found.doubts
    )


@pytest.mark.parametrize("of", ["features", "labels"])
def test_the_index_of_a_data_frame_is_kept(pd, of):
    index = pd.Index([f"photo {row}" for row in range(60)], name="file")
    if of == "labels":
        found = make_audit(index=index)
    else:
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.normal(size=(60, 2)), index=index)
        Y = (rng.random((60, 3)) < 0.5).astype(int)
        found = audit(X, Y, probabilities=rng.random((60, 3)))
    frame = found.to_frame()
    assert frame.index.name == "file"
    assert frame.index.tolist() == [f"photo {row}" for row in frame["row"]]


def test_the_index_of_a_series_of_lists_is_kept_and_a_list_has_none(pd):
    tags = [["a"], ["b"], ["a", "b"]] * 20
    probabilities = np.full((60, 2), 0.5)
    found = audit(Y=pd.Series(tags, index=range(100, 160)), probabilities=probabilities)
    assert found.to_frame().index[0] == 100
    assert audit(Y=tags, probabilities=probabilities).index is None


def test_the_picture_shows_the_counts_and_intervals(found):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    _, ax = pyplot.subplots()
    assert found.plot(ax) is ax
    drawn = {bars.get_label(): [bar.get_width() for bar in bars] for bars in ax.containers if len(bars) == 3
             and hasattr(bars[0], "get_width")}  # fmt: skip
    labels = [text.get_text() for text in ax.get_yticklabels()]
    order = [NAMES.index(label.replace(r"\$", "$")) for label in labels]
    for action in ("keep", "ask", "drop"):
        assert drawn[action] == np.count_nonzero(found.actions == action, axis=0)[order].tolist()
    (errors,) = (bars for bars in ax.containers if bars.get_label() == "wrong (estimated)")
    np.testing.assert_allclose(errors[0].get_xdata(), found.wrong.estimate[order])
    ax.figure.canvas.draw()
    pyplot.close("all")


@pytest.mark.parametrize(("method", "package"), [("to_frame", "pandas"), ("plot", "matplotlib")])
def test_a_missing_package_is_named(found, monkeypatch, method, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"needs {package}: pip install"):
        getattr(found, method)()


def cell_of(found, action):
    return tuple(np.argwhere(found.actions == action)[0].tolist())


def test_decisions_overrule_suggestions_and_nothing_else_changes(found, pd):
    (kept_row, kept), (dropped_row, dropped) = cell_of(found, "drop"), cell_of(found, "keep")
    frame = found.to_frame()
    cells = list(zip(frame["row"], frame["label"], strict=True))
    decided = {(kept_row, NAMES[kept]): "keep", (dropped_row, NAMES[dropped]): "drop"}
    frame["decision"] = [decided.get(cell) for cell in cells]
    expected = found.clean_labels()
    expected[kept_row, kept], expected[dropped_row, dropped] = 1, 0
    np.testing.assert_array_equal(found.apply(frame), expected)
    np.testing.assert_array_equal(found.apply(frame.iloc[::-1]), expected)


def test_a_file_of_the_page_is_applied(found, tmp_path):
    row, label = cell_of(found, "keep")
    path = tmp_path / "decisions.csv"
    path.write_text(f"id,row,label,decision\na{row},{row},{NAMES[label]},drop\n")
    ids = [f"a{place}" for place in range(60)]
    labels = found.apply(path, ids=ids)
    assert labels[row, label] == 0
    assert labels.sum() == found.clean_labels().sum() - 1
    decisions = read_decisions(path, found._as_table(ids))
    np.testing.assert_array_equal(found.apply(decisions), labels)
    for wrong in (None, ids[::-1]):
        with pytest.raises(TableError) as caught:
            found.apply(path, ids=wrong)
        assert caught.value.line == 2
    with pytest.raises(ValueError, match="3 names for 60 rows"):
        found.apply(path, ids=ids[:3])


def test_labels_are_added(found, pd, tmp_path):
    row, label = np.argwhere(found.actions == "")[0].tolist()
    expected = found.clean_labels()
    assert expected[row, label] == 0
    expected[row, label] = 1
    cells = {"row": [row], "label": [NAMES[label]], "decision": ["add"]}
    np.testing.assert_array_equal(found.apply(pd.DataFrame(cells)), expected)
    verified = np.zeros((60, 3), dtype=int)
    verified[row, label] = 1
    again = make_audit(verified=verified)
    assert again.clean_labels()[row, label] == 1
    assert (again.actions[row, label], again.confidences[row, label]) == ("", 1)
    assert again.apply(pd.DataFrame(cells))[row, label] == 1
    # A label that the row has now is not called missing, and those that a person added do not count the others.
    verified[found.actions == ""] = 1
    verified[:30] = 0
    missing = make_audit(verified=verified).missing
    assert missing.basis == "ranking"
    assert not missing.probabilities[verified > 0].any()
    row, label = cell_of(found, "keep")
    with pytest.raises(TableError, match="has the label"):
        found.apply(pd.DataFrame({**cells, "row": [row], "label": [NAMES[label]]}))


def test_an_index_names_the_rows_of_decisions(pd):
    found = make_audit(index=[f"photo {row}" for row in range(60)])
    row, label = cell_of(found, "keep")
    decisions = {"id": [f"photo {row}"], "row": [row], "label": [NAMES[label]], "decision": ["drop"]}
    assert found.apply(pd.DataFrame(decisions))[row, label] == 0
    with pytest.raises(TableError) as caught:
        found.apply(pd.DataFrame({**decisions, "id": ["photo 59" if row != 59 else "photo 0"]}))
    assert caught.value.row == 0


def test_what_a_person_has_checked_stays(pd):
    first = make_audit()
    (right_row, right), (wrong_row, wrong) = cell_of(first, "drop"), cell_of(first, "keep")
    verified = np.zeros((60, 3), dtype=int)
    verified[right_row, right], verified[wrong_row, wrong] = 1, -1
    found = make_audit(verified=verified)
    cells = pd.DataFrame({"row": [right_row, wrong_row], "label": [NAMES[right], NAMES[wrong]]})
    for accepted in (
        cells.assign(decision=["keep", "drop"]),
        cells.assign(decision=["drop", "keep"], by="model"),
    ):
        labels = found.apply(accepted)
        assert (labels[right_row, right], labels[wrong_row, wrong]) == (1, 0)
    with pytest.raises(ValueError, match="contradicts verified"):
        found.apply(cells.assign(decision=["drop", "drop"]))


@pytest.mark.parametrize("column", ["id", "decision"])
def test_a_repeated_column_of_decisions_is_refused(found, tmp_path, column):
    path = tmp_path / "decisions.csv"
    path.write_text(f"id,row,label,decision,{column}\n0,0,lake,keep,drop\n")
    with pytest.raises(TableError, match=f"more than one column {column}") as caught:
        found.apply(path)
    assert (caught.value.path, caught.value.line) == (path, 1)


def test_a_column_of_dates_is_named(pd):
    X = pd.DataFrame({"day": pd.date_range("2020", periods=6), "x": range(6)})
    with pytest.raises(ValueError, match="'day' holds dates"):
        audit(X, np.eye(6, 2))
