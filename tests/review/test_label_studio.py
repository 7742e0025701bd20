"""Tasks and labeling interface for Label Studio."""

import json
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from skpml.review import check_label_names, write_label_studio
from skpml.tables import Columns, read_table

TABLE = 'name,story,picture,tags\na,"<script>x</script>",a.jpg,sea;sky\nb,wide sea,b.jpg,sky\nc,no tags here,c.jpg,\n'


def make_audit(confidences, kept):
    return SimpleNamespace(
        confidences=np.array(confidences), clean_labels=lambda: np.array(kept, dtype=np.uint8)
    )


AUDIT = make_audit([[0.75, 0.25], [0, 1.0], [0, 0]], [[1, 0], [0, 1], [0, 0]])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "stories.csv"
    path.write_text(TABLE)
    return read_table(path, columns=Columns(id="name", text="story", image="picture"))


def read_tasks(table, audit, folder, **options):
    write_label_studio(table, audit, folder / "tasks.json", **options)
    return json.loads((folder / "tasks.json").read_text(encoding="utf-8"))


def test_tasks(table, tmp_path):
    first, second, third = read_tasks(table, AUDIT, tmp_path)
    data = {
        "row": 0,
        "id": "a",
        "labels": ["sea", "sky"],
        "text": "<script>x</script>",
        "image": "a.jpg",
    }
    result = {
        "from_name": "labels",
        "to_name": "item",
        "type": "choices",
        "value": {"choices": ["sea"]},
        "score": 0.75,
    }
    prediction = {"model_version": "skpml", "score": 0.75, "result": [result]}
    assert first == {"data": data, "predictions": [prediction]}
    assert second["predictions"][0]["result"][0]["value"] == {"choices": ["sky"]}
    assert second["predictions"][0]["score"] == 1.0
    assert third["predictions"] == [{"model_version": "skpml", "score": 1.0, "result": []}]
    assert third["data"]["labels"] == []


def test_rows_in_the_order_of_their_scores_begin_with_the_most_useful_to_check(tmp_path):
    """The score is that of the most doubtful tag, kept or dropped; rows without tags come last."""
    path = tmp_path / "rows.csv"
    path.write_text(
        "x,name,tags\n1,none,\n2,sure,a;b\n3,dropped for sure,a;b\n4,hardly kept,a;b\n5,hardly dropped,a;b\n"
    )
    table = read_table(path, columns=Columns(id="name"))
    confidences = np.array([[0, 0.5], [0.99, 0.98], [0.99, 0.03], [0.9, 0.6], [0.99, 0.45]])
    kept = (table.candidates == 1) & (confidences >= 0.5)
    tasks = read_tasks(table, make_audit(confidences, kept), tmp_path)
    scores = {task["data"]["id"]: task["predictions"][0]["score"] for task in tasks}
    assert scores == pytest.approx(
        {"hardly dropped": 0.55, "hardly kept": 0.6, "dropped for sure": 0.97, "sure": 0.98, "none": 1.0}
    )


def test_interface_and_tasks_agree(table, tmp_path):
    tasks = read_tasks(table, AUDIT, tmp_path)
    shown, choices = ElementTree.parse(tmp_path / "tasks.xml").getroot()
    assert (shown.tag, shown.attrib) == ("Image", {"name": "item", "value": "$image"})
    assert choices.attrib == {"name": "labels", "toName": "item", "choice": "multiple"}
    assert [choice.get("value") for choice in choices] == list(table.label_names)
    for task in tasks:
        assert shown.get("value").removeprefix("$") in task["data"]
        for result in task["predictions"][0]["result"]:
            assert (result["from_name"], result["to_name"]) == (choices.get("name"), shown.get("name"))
    with pytest.raises(FileExistsError):
        read_tasks(table, AUDIT, tmp_path)
    assert read_tasks(table, AUDIT, tmp_path, overwrite=True) == tasks


def test_the_id_is_shown_without_text_and_image(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,tags\n1,sea\n2,sky\n")
    table = read_table(path)
    audit = make_audit(np.ones((2, 2)), table.candidates)
    tasks = read_tasks(table, audit, tmp_path, config=tmp_path / "c.xml")
    assert 'value="$id"' in (tmp_path / "c.xml").read_text()
    assert "text" not in tasks[0]["data"]
    with pytest.raises(ValueError, match="two files"):
        write_label_studio(table, audit, tmp_path / "t.xml")


def test_odd_labels_are_text_in_the_interface(tmp_path):
    names = ['say "hi"', "<Choice/>", "a&b", "tab\there", "é", "'"]
    path = tmp_path / "odd.csv"
    path.write_text(
        "x,tags\n" + "".join(f'{x},"{name.replace(chr(34), chr(34) * 2)}"\n' for x, name in enumerate(names))
    )
    # A tab separates tags if nothing is said.
    table = read_table(path, separator=";")
    read_tasks(table, make_audit(table.candidates * 1.0, table.candidates), tmp_path)
    _, choices = ElementTree.parse(tmp_path / "tasks.xml").getroot()
    assert [choice.get("value") for choice in choices] == list(table.label_names)
    assert set(table.label_names) == set(names)
    with pytest.raises(ValueError, match=r"'a\\x00'"):
        check_label_names(["b", "a\0"])


def test_an_audit_of_another_table_is_refused(table, tmp_path):
    with pytest.raises(ValueError, match=r"\(2, 2\).*stories\.csv.*\(3, 2\)"):
        write_label_studio(table, make_audit(np.ones((2, 2)), np.ones((2, 2))), tmp_path / "tasks.json")
    assert not (tmp_path / "tasks.json").exists()
