"""Columns of numbers, categories and texts in one table: what each is taken for, and the features that they become."""

import datetime
import json
from zipfile import ZipFile

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from table_helpers import parquet, read, refused

from skpml.io import ModelFileError, load_model, read_model_info, save_model
from skpml.reference import CandidateRidge
from skpml.tables import ColumnFeatures, Columns, profile_table, read_table

N_ROWS = 20
COLORS = ["red", "blue", "", "red", "green"] * 4
SIZES = ["1.5", "NA", "2", "", "4"] * 4
TAGS = ["sea;sky", "sky", "sea", "sky;lake", "lake"] * 4
NOTES = ["warm red water", "cold blue air", "green reeds", "warm air", "deep water"] * 4


@pytest.fixture
def table_file(tmp_path):
    """A table with one column of each kind, and with columns of no use."""
    columns = {
        "file": [f"p{row}.jpg" for row in range(N_ROWS)],
        "taken": [f"2024-01-{row + 1:02}" for row in range(N_ROWS)],
        "photo_id": [str(1000 - 7 * row) for row in range(N_ROWS)],
        "nothing": [""] * N_ROWS,
        "source": ["camera"] * N_ROWS,
        "weight": [str(row * 0.5) for row in range(N_ROWS)],
        "size": SIZES,
        "indoor": ["True", "false"] * 10,
        "color": COLORS,
        "note": NOTES,
        "tags": TAGS,
    }
    path = tmp_path / "photos.csv"
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    return path


def test_each_column_is_used_as_what_it_holds(table_file):
    table = read(table_file, text="note")
    assert table.feature_kind == "mixed"
    assert table.feature_types == {
        "weight": "number",
        "size": "number",
        "indoor": "number",
        "color": "category",
        "note": "text",
    }
    assert list(table.unused) == ["file", "taken", "photo_id", "nothing", "source"]
    assert "dates" in table.unused["taken"]
    assert table.n_missing == {"size": 8, "color": 4}
    assert (table.columns.features, table.columns.categories) == (
        ("weight", "size", "indoor", "color"),
        ("color",),
    )
    found = dict(zip(table.feature_names, table.X.T, strict=True))
    assert found["indoor"].tolist() == [1, 0] * 10
    # 1.5, 2 and 4 in equal numbers.
    assert found["size"].tolist() == [1.5, 2, 2, 2, 4] * 4
    assert found["missingindicator_size"].tolist() == [0, 1, 0, 1, 0] * 4
    assert found["color_red"].tolist() == [1, 0, 0, 1, 0] * 4
    assert found["color_"].tolist() == [0, 0, 1, 0, 0] * 4
    assert sorted(place for places in table.views.values() for place in places) == [*range(table.X.shape[1])]
    assert {table.feature_names[place] for place in table.views["categories"]} == {
        "color_",
        "color_blue",
        "color_green",
        "color_red",
    }
    assert all(table.feature_names[place].startswith("text_") for place in table.views["text"])


def test_rare_gaps_have_no_feature_of_their_own(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,tags\n" + ",a\n" + "".join(f"{row},b\n" for row in range(30)))
    assert read(path).feature_names == ("x",)
    path.write_text("x,tags\n" + ",a\n" * 3 + "".join(f"{row},b\n" for row in range(30)))
    assert len(read(path).feature_names) == 2


def test_the_features_that_are_named_are_used_alone(table_file):
    table = read(table_file, text="note", features=["color", "weight"])
    assert (table.feature_types, table.unused) == ({"weight": "number", "color": "category"}, {})
    assert table.texts == tuple(NOTES)
    table = read(table_file, text="note", features=["note", "weight"])
    assert table.feature_types == {"weight": "number", "note": "text"}
    # Numbers can be categories, if somebody says so.
    table = read(table_file, features=["weight"], categories=["size", "photo_id"])
    assert table.feature_types == {"weight": "number", "size": "category", "photo_id": "category"}
    assert [name for name in table.feature_names if name.startswith("size")] == [
        "size_",
        "size_1.5",
        "size_2",
        "size_4",
    ]
    facts = {"column": "file", "value": "p0.jpg", "argument": "categories"}
    refused(lambda: read(table_file, features=["file"]), **facts)


def test_lists_are_numbers_beside_categories(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"v": [row, -row], "color": "red" if row % 2 else "blue", "tags": ["a"]} for row in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = read_table(path)
    assert table.feature_names == ("v_0", "v_1", "color_blue", "color_red")
    assert table.views == {"v": [0, 1], "categories": [2, 3]}
    rows[3]["v"] = [1, 2, 3]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    refused(lambda: read_table(path), line=4, column="v", value=[1, 2, 3])
    rows[3]["v"] = ["x", "y"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list(read_table(path).unused) == ["v"]


def test_the_same_columns_in_other_formats(table_file, tmp_path):
    pd = pytest.importorskip("pandas", reason="needs the extra files")
    pytest.importorskip("openpyxl", reason="needs the extra excel")
    frame = pd.read_csv(table_file)
    frame["taken"] = [datetime.date(2024, 1, row + 1) for row in range(N_ROWS)]
    frame["indoor"] = [row % 2 == 0 for row in range(N_ROWS)]
    expected = read(table_file, text="note")
    frame.to_excel(tmp_path / "photos.xlsx", index=False)
    frame.to_json(tmp_path / "photos.json", orient="records", date_format="iso")
    frame.to_parquet(tmp_path / "photos.parquet")
    for source in (frame, *(tmp_path / f"photos.{suffix}" for suffix in ("xlsx", "json", "parquet"))):
        table = read_table(source, columns=Columns(text="note"))
        assert table.feature_types == expected.feature_types
        assert list(table.unused) == list(expected.unused)
        np.testing.assert_allclose(table.X, expected.X)


def test_a_text_among_categories_of_a_later_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("skpml.tables._arrow._BATCH_ROWS", 2)
    grades = ["1", "2", "1", "2", "A", "A", "B", "B", "A", "B"]
    path = parquet(tmp_path / "a.parquet", grade=grades, tags=["a"] * 10)
    assert read(path).feature_names == ("grade_1", "grade_2", "grade_A", "grade_B")


@pytest.mark.parametrize("cell", ["many", "1 kg", "inf"])
def test_one_text_among_numbers_is_a_question(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text("x,y,tags\n" + "".join(f"{row % 3},1,a\n" for row in range(9)) + f"{cell},1,a\n")
    error = refused(lambda: read(path), line=11, column="x", value=cell)
    assert [name for name, _ in error.arguments] == ["categories", "ignore"]
    assert read(path, categories=["x"]).feature_types["x"] == "category"


def test_labels_in_another_column_are_no_feature(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,checked,tags\n" + "1,a;b,a;b\n2,a,a;b\n" * 5)
    error = refused(lambda: read(path), line=2, column="checked")
    assert [name for name, _ in error.arguments] == ["true_tags", "categories", "ignore"]
    assert read(path, categories=["checked"]).feature_types["checked"] == "category"


def test_nothing_that_can_be_used(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("file,tags\na.jpg,a\nb.jpg,b\n")
    error = refused(lambda: read(path), argument="text")
    assert list(error.value) == ["file"]


def test_numbers_alone_stay_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,x,tags\n1,7,a\n3,8,b\n2,9,b\n")
    table = read(path)
    assert (table.feature_kind, table.transformer, table.views) == ("columns", None, {})
    assert (table.feature_names, list(table.unused)) == (("x",), ["id"])
    assert read(path, features=["id", "x"]).feature_names == ("id", "x")


def test_a_profile_counts_missing_values(table_file):
    table = read(table_file, text="note", text_components=None)
    found = profile_table(table)
    assert found.n_missing == {"size": 8, "color": 4}
    assert found.columns["numbers"] == ("weight", "size", "indoor")
    assert found.columns["categories"] == ("color",)
    assert list(found.unused) == ["file", "taken", "photo_id", "nothing", "source"]
    assert found.n_repeated == 0


class TestModelFile:
    @pytest.fixture
    def saved(self, table_file, tmp_path):
        table = read(table_file, text="note")
        model = CandidateRidge().fit(table.X, table.candidates)
        both = Pipeline([("features", table.transformer), ("model", model)])
        types = table.feature_types
        path = tmp_path / "m.skpml"
        options = {"feature_kind": "mixed", "feature_types": list(types.values())}
        save_model(both, path, feature_names=list(types), label_names=table.label_names, **options)
        return path, table, model

    def test_new_rows_are_treated_as_the_training_rows(self, saved, table_file):
        path, table, model = saved
        info = read_model_info(path)
        assert dict(zip(info.feature_names, info.feature_types, strict=True)) == table.feature_types
        wanted = Columns(features=["weight", "size", "indoor", "note"], categories=["color"], text="note")
        rows = read_table(table_file, columns=wanted, labeled=False)
        loaded = load_model(path)
        np.testing.assert_allclose(loaded.predict_proba(rows.X), model.predict_proba(table.X))
        # The median is that of the training rows, and a category that they lack has no feature.
        new = np.array([[1.0, np.nan, 0.0, "violet", "water"]], dtype=object)
        features = dict(zip(table.feature_names, loaded.steps[0][1].transform(new)[0], strict=True))
        assert (features["size"], features["missingindicator_size"]) == (2, 1)
        assert sum(value for name, value in features.items() if name.startswith("color_")) == 0
        assert loaded.steps[0][1].find_unseen(new) == {3: ["violet"]}
        with pytest.raises(ValueError, match="5 columns"):
            loaded.predict(new[:, :4])

    def test_data_types_are_rebuilt_in_one_way_only(self, saved):
        path, _, _ = saved
        with ZipFile(path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        assert b'"DTypeNode"' in entries["schema.json"]
        entries["schema.json"] = entries["schema.json"].replace(b'"DTypeNode"', b'"ObjectNode"')
        with ZipFile(path, "w") as archive:
            for name, content in entries.items():
                archive.writestr(name, content)
        with pytest.raises(ModelFileError, match=r"not trusted: numpy\.dtype"):
            load_model(path)

    def test_types_must_fit_the_names(self, saved, tmp_path):
        path, table, _ = saved
        model = load_model(path)
        for types in (None, ["number"] * 4, ["sound"] * 5):
            with pytest.raises(ValueError, match="feature_types"):
                save_model(
                    model,
                    tmp_path / "other.skpml",
                    feature_names=list(table.feature_types),
                    feature_kind="mixed",
                    feature_types=types,
                )
        ridge = CandidateRidge().fit(table.X, table.candidates)
        with pytest.raises(ValueError, match="feature_types"):
            save_model(ridge, tmp_path / "other.skpml", feature_types=["number"])


def test_an_empty_transformer_takes_no_columns():
    assert ColumnFeatures().n_features_in_ == 0
