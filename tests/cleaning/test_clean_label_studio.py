"""Tasks and labelling interface for Label Studio: what it needs, and only what it may hold."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from skpml.cleaning import label_studio_config, label_studio_tasks, read_table, write_label_studio

TABLE = 'name,story,picture,tags\na,"<script>x</script>",a.jpg,sea;sky\nb,wide sea,b.jpg,sky\nc,no tags here,c.jpg,\n'
CONFIDENCE = np.array([[0.75, 0.25], [0.5, 1.0], [0.0, 0.125]])
KEEP = np.array([[True, False], [True, True], [False, False]])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "stories.csv"
    path.write_text(TABLE)
    return read_table(path, id="name", text="story", image="picture")


def test_tasks(table):
    first, second, third = label_studio_tasks(
        table, CONFIDENCE, KEEP, from_name="tag", to_name="story", model_version="v1"
    )
    assert first == {
        "data": {
            "row": 0,
            "id": "a",
            "labels": ["sea", "sky"],
            "text": "<script>x</script>",
            "image": "a.jpg",
        },
        "predictions": [
            {
                "model_version": "v1",
                "score": 0.75,
                "result": [
                    {
                        "from_name": "tag",
                        "to_name": "story",
                        "type": "choices",
                        "value": {"choices": ["sea"]},
                        "score": 0.75,
                    }
                ],
            }
        ],
    }
    assert second["predictions"][0]["result"][0]["value"] == {"choices": ["sea", "sky"]}
    assert second["predictions"][0]["score"] == 0.5
    assert third["predictions"] == [{"model_version": "v1", "score": 1.0, "result": []}]
    assert third["data"]["labels"] == []


def test_rows_in_the_order_of_their_scores_begin_with_the_most_useful_to_check(tmp_path):
    """A doubt counts whether its tag is kept or dropped, the largest of a row alone; rows without tags come last."""
    path = tmp_path / "rows.csv"
    path.write_text(
        "x,name,tags\n1,none,\n2,sure,a;b\n3,dropped for sure,a;b\n4,hardly kept,a;b\n5,hardly dropped,a;b\n"
    )
    table = read_table(path, id="name")
    # A label that a row does not have is 0, or anything: nobody is asked about it.
    confidence = np.array([[0, 0.5], [0.99, 0.98], [0.99, 0.03], [0.9, 0.6], [0.99, 0.45]])
    keep = (table.candidates == 1) & (confidence >= 0.5)
    tasks = list(label_studio_tasks(table, confidence, keep))
    scores = {task["data"]["id"]: task["predictions"][0]["score"] for task in tasks}
    assert scores == pytest.approx(
        {"hardly dropped": 0.55, "hardly kept": 0.6, "dropped for sure": 0.97, "sure": 0.98, "none": 1.0}
    )
    everything_else = label_studio_tasks(table, 1 - confidence, table.candidates == 1)
    assert [task["predictions"][0]["score"] for task in everything_else] == pytest.approx(
        [task["predictions"][0]["score"] for task in tasks]
    )


def test_the_files_belong_together(table, tmp_path):
    path = tmp_path / "tasks.json"
    write_label_studio(table, CONFIDENCE, KEEP, path, from_name="tag", to_name="thing")
    tasks = json.loads(path.read_text(encoding="utf-8"))
    assert tasks == list(label_studio_tasks(table, CONFIDENCE, KEEP, from_name="tag", to_name="thing"))
    view = ElementTree.parse(tmp_path / "tasks.xml").getroot()
    shown, choices = list(view)
    assert (shown.tag, shown.attrib) == ("Image", {"name": "thing", "value": "$image"})
    assert choices.attrib == {"name": "tag", "toName": "thing", "choice": "multiple"}
    assert [choice.get("value") for choice in choices] == list(table.label_names)
    for task in tasks:
        assert shown.get("value").removeprefix("$") in task["data"]
        for result in task["predictions"][0]["result"]:
            assert (result["from_name"], result["to_name"]) == (choices.get("name"), shown.get("name"))
            assert set(result["value"]["choices"]) <= set(table.label_names)
    with pytest.raises(FileExistsError):
        write_label_studio(table, CONFIDENCE, KEEP, path)
    write_label_studio(table, CONFIDENCE, KEEP, path, overwrite=True)


def test_what_is_shown_without_text_and_image(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,tags\n1,sea\n2,sky\n")
    table = read_table(path)
    write_label_studio(
        table, np.ones((2, 2)), table.candidates == 1, tmp_path / "t.json", config=tmp_path / "c.xml"
    )
    assert 'value="$id"' in (tmp_path / "c.xml").read_text()
    assert "text" not in json.loads((tmp_path / "t.json").read_text())[0]["data"]
    with pytest.raises(ValueError, match="name two files"):
        write_label_studio(table, np.ones((2, 2)), table.candidates == 1, tmp_path / "t.xml")


def test_odd_labels_stand_in_the_interface_as_text():
    names = ['say "hi"', "<Choice/>", "a&b", "two\nlines", "tab\there", "é", "'"]
    view = ElementTree.fromstring(label_studio_config(names))
    assert [choice.get("value") for choice in view[1]] == names
    assert label_studio_config(["a"], show="text").count("$text") == 1
    with pytest.raises(ValueError, match=r"control characters cannot stand in XML: 'a\\x00'"):
        label_studio_config(["a\0"])
    with pytest.raises(ValueError, match='show must be "text", "image" or "id"'):
        label_studio_config(["a"], show="sound")


@pytest.mark.parametrize(
    ("confidence", "keep", "message"),
    [
        (CONFIDENCE[:2], KEEP, r"matrices of shape \(3, 2\)"),
        (CONFIDENCE, KEEP[:, :1], r"matrices of shape \(3, 2\)"),
        (CONFIDENCE, KEEP.astype(int), "keep of booleans; got .* int64"),
        (CONFIDENCE * 2, KEEP, "from 0 to 1, but row 0, label 0 is 1.5"),
        (CONFIDENCE * np.nan, KEEP, "from 0 to 1, but row 0, label 0 is nan"),
    ],
)
def test_matrices_that_do_not_fit(table, tmp_path, confidence, keep, message):
    with pytest.raises(ValueError, match=message):
        write_label_studio(table, confidence, keep, tmp_path / "tasks.json")
    assert not (tmp_path / "tasks.json").exists()
