"""Labeled tables: what is read is what stands in the file, whatever its format."""

import csv
import io
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from table_helpers import parquet, read, refused

from skpml import CandidateLikelihood
from skpml.datasets import PartialDataset, read_dataset, write_dataset
from skpml.io import load_model, save_model
from skpml.tables import as_text_column, fit_text_features, release_rows

PHOTOS = """file,warmth,note,tags,light
a.jpg,1,first,sea; sky,2.5
b.jpg,3,"two, with
a break",sky,-1e-3
c.jpg,4,,,0
d.jpg,5,fourth,sand;sea;sea,1
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="photos.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_tags_and_numeric_columns(file):
    table = read(file(PHOTOS), tags="tags", id="file", image="file", ignore=["note"])
    assert table.label_names == ("sand", "sea", "sky")
    assert table.candidates.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0], [1, 1, 0]]
    assert table.candidates.dtype == np.uint8
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, -1e-3], [4, 0], [5, 1]])
    assert table.feature_names == ("warmth", "light")
    assert table.ids == table.images == ("a.jpg", "b.jpg", "c.jpg", "d.jpg")
    assert table.texts is None
    assert table.columns.tags == "tags"
    assert table.feature_kind == "columns"
    assert table.notes == (
        "1 row has no label (counted from 0: 2)",
        "1 cell repeats a tag, which counts once",
    )
    assert repr(table) == "<Table 'photos.csv': 4 rows, 2 features (columns), 3 labels>"


def test_without_an_id_column_rows_are_numbered(file):
    table = read(file(PHOTOS), text="note", features=["light"])
    assert table.ids == ("0", "1", "2", "3")
    assert table.texts[1] == "two, with\na break"
    assert (table.feature_kind, table.feature_names) == ("columns", ("light",))


@pytest.mark.parametrize(
    ("others", "cells", "passed_over"),
    [
        ("candidate:a,candidate:b", "1,0", "'candidate:a', 'candidate:b'"),
        ("candidates,truth", "a;b,b", "'candidates', 'truth'"),
        ("truth:a,truth:b", "1,0", "'truth:a', 'truth:b'"),
        ("truth", "a", "'truth'"),
    ],
)
@pytest.mark.parametrize("spelt", ["tags", "Tags", "TAGS "])
def test_a_column_called_tags_goes_before_all_others(file, others, cells, passed_over, spelt):
    table = read(file(f"x,{spelt},{others}\n1,p,{cells}\n2,q,{cells}\n"))
    assert table.columns.tags == spelt
    assert table.label_names == ("p", "q")
    assert table.feature_names == ("x",)
    assert table.notes == (f"ignored other label columns: {passed_over}",)


def test_candidates_are_found_where_there_are_no_tags(file):
    flags = file("x,candidate:a,candidate:b,truth:a,truth:c\n1,1,0,1,0\n2,0,1,0,0\n")
    assert read(flags).columns.labels == ("candidate:a", "candidate:b")
    assert read(flags, ignore=["candidate:b"]).label_names == ("a",)
    tags = file("x,candidates,truth\n1,a;b,a\n2,b,b\n")
    assert read(tags).columns.tags == "candidates"
    assert read(tags, tags="truth").columns.tags == "truth"


@pytest.mark.parametrize("header", ["x,truth", "x,truth:a", "x,Tags,TAGS"])
def test_true_labels_are_cleaned_only_if_they_are_named(file, header):
    path = file(header + "\n" + ",".join("1" * len(header.split(","))) + "\n")
    error = refused(lambda: read(path), argument="tags", value=tuple(header.split(",")))
    assert [name for name, _ in error.arguments] == ["tags", "labels"]
    assert ("only if you name them" in error.problem) == ("truth" in header)


@pytest.mark.parametrize(
    ("header", "column"),
    [
        ("x,labels", "labels"),
        ("x,Label", "Label"),
        ("TAG,label", "TAG"),
        ("label,labels", "labels"),
        ("labels,tags", "tags"),
        ("labels,candidates", "candidates"),
        ("labels,candidate:p", None),
        ("x,tag,Tag", "refused"),
        ("annotator,label", "refused"),
    ],
)
def test_columns_that_are_taken_for_tags(file, header, column):
    n_cells = header.count(",") + 2
    path = file(f"y,{header}\n" + ",".join("1" * n_cells) + "\n")
    if column == "refused":
        refused(lambda: read(path), argument="tags")
    else:
        assert read(path, features=["y"]).columns.tags == column


def test_the_number_of_text_components_is_checked(file):
    path = file("note,tags\nsome words,p\nother words,q\n")
    refused(lambda: read(path, text="note", text_components=0), argument="text_components", value=0)


def test_columns_beside_texts_and_embeddings(file, tmp_path):
    path = file("name,note,size,tags,truth,no\na,some words,1,p,p,1\nb,other words,2,q,q,1\n")
    options = {"text": "note", "id": "name", "ignore": ["no"]}
    table = read(path, **options)
    assert table.feature_types == {"size": "number", "note": "text"}
    assert (table.columns.text, table.columns.id, table.columns.features) == ("note", "name", ("size",))
    assert read(path, **options, features=["size"]).feature_kind == "columns"
    assert read(path, **options, features=["note"]).feature_kind == "text"
    np.save(tmp_path / "x.npy", np.ones((2, 3)))
    assert list(read(path, **options, embeddings=tmp_path / "x.npy").unused) == ["size"]


def test_embeddings_that_fill_the_memory_stay_in_the_file(file, tmp_path):
    values = np.random.default_rng(0).normal(size=(20_000, 200)).astype(np.float32)
    np.save(tmp_path / "x.npy", values)
    path = file("name,tags\n" + "".join(f"{row},p\n" for row in range(20_000)))
    with config_context(working_memory=4):
        X = read(path, id="name", embeddings=tmp_path / "x.npy").X
    assert isinstance(X, np.memmap)
    # All rows were read, to find values that are no numbers, and none of them occupies memory now.
    assert count_resident(tmp_path / "x.npy") == 0
    np.testing.assert_array_equal(X, values)
    assert count_resident(tmp_path / "x.npy") >= values.nbytes
    release_rows(X)
    assert count_resident(tmp_path / "x.npy") == 0
    np.testing.assert_array_equal(X[5:7], values[5:7])


def count_resident(path):
    """Count the bytes of a mapped file that this process holds in memory."""
    maps = Path("/proc/self/smaps")
    if not maps.exists():
        pytest.skip("memory by file is known on Linux only")
    parts = maps.read_text().partition(str(path))[2].splitlines()
    resident = next(line for line in parts if line.startswith("Rss:"))
    return 1024 * int(resident.split()[1])


def test_labels_and_names_alone(file, tmp_path):
    path = file("name,note,tags\na,some words,p\nb,,q\n")
    table = read(path, id="name", features=[])
    assert table.X.shape == (2, 0)
    assert table.ids == ("a", "b")
    assert table.candidates.tolist() == [[1, 0], [0, 1]]
    write_dataset(
        PartialDataset(np.ones((2, 3)), [[1, 0], [1, 1]], label_names=["p", "q"]), tmp_path / "a.npz"
    )
    table = read(tmp_path / "a.npz", features=[])
    assert table.X.shape == (2, 0)
    assert table.dataset.X.shape == (2, 3)


def test_label_columns_in_every_spelling(file):
    table = read(file("x,a,b\n1,1,TRUE\n2,0,no\n3,1.0,yes\n4,-1,False\n"), labels=["a", "b"])
    assert table.candidates.tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]
    assert table.label_names == ("a", "b")
    assert table.columns.labels == ("a", "b")


def test_named_label_columns_lose_their_prefix_as_found_ones_do(file):
    flags = file("v,candidate:x,candidate:y,truth:y,truth:x\n1,1,0,0,1\n2,1,1,1,0\n")
    columns = {"labels": ["candidate:x", "candidate:y"], "true_labels": ["truth:x", "truth:y"]}
    found, named = read(flags, truth=True), read(flags, **columns, truth=True)
    assert found.label_names == named.label_names == ("x", "y")
    assert found.truth.tolist() == named.truth.tolist() == [[1, 0], [0, 1]]
    mixed = file("v,tags,truth:x,truth:y\n1,x,1,0\n2,x;y,0,1\n")
    table = read(mixed, tags="tags", true_labels=["truth:x", "truth:y"])
    assert table.label_names == ("x", "y")
    assert table.truth.tolist() == [[1, 0], [0, 1]]
    both = read(file("v,x,candidate:x\n1,1,0\n2,0,1\n"), labels=["x", "candidate:x"])
    assert both.label_names == ("x", "candidate:x")


def test_label_names_order_label_columns(file):
    path = file("v,candidate:x,candidate:y,truth:x,truth:y\n1,1,0,1,0\n2,1,1,0,1\n")
    table = read(path, label_names=["y", "x"], truth=True)
    assert table.label_names == ("y", "x")
    assert table.candidates.tolist() == [[0, 1], [1, 1]]
    assert table.truth.tolist() == [[0, 1], [1, 0]]
    assert table.columns.labels == ("candidate:y", "candidate:x")
    for names in (("x",), ("x", "y", "z"), ("x", "x")):
        call = partial(read, path, label_names=names)
        refused(call, argument="label_names", path=path, value=names, expected=("x", "y"))


def test_true_labels_are_never_features(file):
    table = read(file("x,candidates,truth\n1,a;b,a\n2,b,b\n"))
    assert table.feature_names == ("x",)
    assert table.candidates.tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_dialects_give_the_same_table(file, encoding, delimiter):
    rows = [["größe", "x", "tags"], ["klein", "1,5", "See,Meer"], ["groß", "-2,25", "Meer"]]
    path = file("".join(delimiter.join(row) + "\r\n" for row in rows), encoding=encoding)
    table = read(path, tags="tags", id="größe", separator=",")
    np.testing.assert_array_equal(table.X, [[1.5], [-2.25]])
    assert table.label_names == ("Meer", "See")
    assert table.ids == ("klein", "groß")
    assert table.dialect.delimiter == delimiter
    assert table.dialect.decimal == ","


@pytest.mark.parametrize("column", ["tags", "candidates", "marks"])
def test_numbered_tags_are_no_decimals(file, column):
    given = {"tags": column} if column == "marks" else {}
    table = read(file(f"x;{column}\n1;1,2\n2;3,1\n"), separator=",", **given)
    assert table.dialect.decimal == "."
    assert table.label_names == ("1", "2", "3")


def test_blank_lines_are_no_rows(file):
    text = PHOTOS.replace("\n", "\n\n").replace("with\n\n", "with\n")
    for blank in (PHOTOS, "\n" + text):
        table = read(file(blank), id="file", ignore=["note"])
        assert table.ids == ("a.jpg", "b.jpg", "c.jpg", "d.jpg")


def test_a_separator_that_never_occurs_is_refused_unless_it_is_given(file):
    path = file('x,tags\n1,"sea,sky"\n2,"sky,sea"\n')
    refused(lambda: read(path), argument="separator", column="tags", value=";", expected=",")
    table = read(path, separator=";")
    assert table.label_names == ("sea,sky", "sky,sea")
    assert "most hold ','" in table.notes[-1]
    assert read(path, separator=",").notes == ()
    assert read(file('x,tags\n1,"sea,sky"\n2,sky\n3,sea\n')).separator == ","


FINITE = st.floats(allow_nan=False, allow_infinity=False)
TAG = st.text(st.characters(exclude_characters=";\r", exclude_categories=["Cs"]), min_size=1, max_size=5)


@given(
    rows=st.lists(
        st.tuples(FINITE, st.lists(TAG, max_size=3), st.integers(-9, 9)), min_size=1, max_size=12
    ).filter(lambda rows: any(tag.strip() for _, tags, _ in rows for tag in tags))
)
@pytest.mark.slow
def test_what_is_read_is_what_was_written(tmp_path_factory, rows):
    """A data set and a table of one file hold the numbers and tags that were written."""
    path = tmp_path_factory.mktemp("rows") / "file.csv"
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerows([("x", "tags", "y"), *((repr(x), ";".join(tags), y) for x, tags, y in rows)])
    path.write_bytes(buffer.getvalue().encode())
    found = read(path, tags="tags", separator=";", delimiter=",", quote='"', decimal=".", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = read_dataset(path, tags="tags", separator=";", delimiter=",", quote='"', decimal=".", encoding="utf-8",
                            on_empty="ignore")  # fmt: skip
    np.testing.assert_array_equal(found.X, [[x, y] for x, _, y in rows])
    tags = [{tag.strip() for tag in tags} - {""} for _, tags, _ in rows]
    assert [{found.label_names[j] for j in np.flatnonzero(row)} for row in found.candidates] == tags
    np.testing.assert_array_equal(found.X, held.X)
    np.testing.assert_array_equal(found.candidates, held.candidates)
    assert found.label_names == held.label_names


def test_a_table_of_many_rows_goes_by_with_progress(file):
    rng = np.random.default_rng(0)
    X, flags = rng.normal(size=(9000, 3)), rng.integers(0, 2, size=(9000, 2))
    lines = [
        f"{a!r},{b!r},{c!r},{p},{q}" for (a, b, c), (p, q) in zip(X.tolist(), flags.tolist(), strict=True)
    ]
    path, seen = file("\n".join(["a,b,c,p,q", *lines]) + "\n"), []
    table = read(path, labels=["p", "q"], progress=lambda *report: seen.append(report))
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.candidates, flags)
    size = path.stat().st_size
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert len(seen) > 3
    assert 0 < seen[0][0] < size
    assert seen[-1] == (size, size, "reading photos.csv")


def test_parquet_with_text_tags_equals_csv(file, tmp_path):
    path = parquet(
        tmp_path / "photos.parquet",
        file=["a.jpg", "b.jpg", "c.jpg", "d.jpg"],
        warmth=[1, 3, 4, 5],
        note=["first", "two", None, "fourth"],
        tags=["sea; sky", "sky", None, "sand;sea;sea"],
        light=[2.5, -1e-3, 0.0, 1.0],
    )
    options = {"tags": "tags", "id": "file", "image": "file", "ignore": ["note"]}
    expected, seen = read(file(PHOTOS), **options), []
    found = read(path, **options, progress=lambda *report: seen.append(report))
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.candidates, expected.candidates)
    for name in ("label_names", "feature_names", "ids", "images", "columns", "notes"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.dialect is None
    assert seen[-1] == (4, 4, "reading photos.parquet")
    assert read(path, text="note", features=["light"]).texts == ("first", "two", "", "fourth")


def test_parquet_with_lists_and_label_columns(tmp_path):
    lists = parquet(tmp_path / "lists.parquet", id=[7, 8], x=[1, 2], tags=[["sea", " sky", "", None], []])
    table = read(lists, id="id")
    assert (table.ids, table.label_names) == (("7", "8"), ("sea", "sky"))
    assert table.candidates.tolist() == [[1, 1], [0, 0]]
    flags = parquet(tmp_path / "flags.parquet", x=[1.0, 2], a=[True, False], b=[-1, 1], c=[0.0, 1.0])
    assert read(flags, labels=["a", "b", "c"]).candidates.tolist() == [[1, 0, 0], [0, 1, 1]]


def test_parquet_in_many_batches_equals_one(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    flags = rng.integers(0, 2, size=(50, 2))
    path = parquet(
        tmp_path / "many.parquet",
        id=list(range(50)),
        x=rng.normal(size=50),
        p=flags[:, 0],
        q=flags[:, 1],
        tags=["a;b", "b"] * 25,
    )
    for options in ({"labels": ["p", "q"], "ignore": ["tags"]}, {"tags": "tags", "ignore": ["p", "q"]}):
        whole = read(path, id="id", **options)
        with monkeypatch.context() as patch:
            patch.setattr("skpml.tables._arrow._BATCH_ROWS", 3)
            parts = read(path, id="id", **options)
        np.testing.assert_array_equal(parts.X, whole.X)
        np.testing.assert_array_equal(parts.candidates, whole.candidates)
        assert parts.ids == whole.ids == tuple(map(str, range(50)))


def test_a_place_in_a_later_batch_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("skpml.tables._arrow._BATCH_ROWS", 2)
    path = tmp_path / "late.parquet"
    base = {"id": ["a", "b", "c", "d"], "x": [1.0, 2.0, 3.0, 4.0], "p": [0, 1, 0, 1]}
    for columns, earlier in (
        ({"id": ["a", "b", "c", "b"]}, "row 1"),
        ({"id": ["a", "b", "c", "a"]}, "row 0"),
        ({"x": [1.0, 2.0, 3.0, np.inf]}, ""),
        ({"p": [0, 1, 0, 2]}, ""),
    ):
        parquet(path, **(base | columns))
        error = refused(
            lambda: read(path, id="id", labels=["p"]), row=3, line=None, column=next(iter(columns))
        )
        assert earlier in error.problem


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".arff"])
def test_data_sets(tmp_path, suffix):
    truth = np.array([[1, 0], [0, 1], [0, 0]], np.uint8)
    dataset = PartialDataset(
        [[1.0, 2], [3, 4], [5, 6]], np.maximum(truth, [[0, 1], [0, 0], [0, 0]]), truth, label_names=["a", "b"]
    )
    path = tmp_path / f"set{suffix}"
    write_dataset(dataset, path)
    table = read(path)
    np.testing.assert_array_equal(table.X, dataset.X)
    np.testing.assert_array_equal(table.candidates, dataset.candidates)
    assert table.label_names == ("a", "b")
    assert table.ids == ("0", "1", "2")
    assert len(table.feature_names) == 2
    assert table.notes == ("1 row has no label (counted from 0: 2)",)


def test_options_of_the_reader_of_a_data_set(tmp_path):
    path = tmp_path / "set.arff"
    path.write_text(
        "@relation r\n@attribute x numeric\n@attribute y numeric\n@attribute a {0,1}\n@data\n1,2,1\n3,4,0\n"
    )
    table = read(path, labels=["a"], ignore=["y"])
    assert (table.label_names, table.feature_names) == (("a",), ("x",))
    assert table.X.tolist() == [[1], [3]]
    same = read(path, ignore=["y"], reader_options={"label_attributes": ["a"]})
    assert same.label_names == ("a",)


@pytest.mark.parametrize("kind", [".npy", ".npz"])
def test_embeddings_beside_the_table(file, tmp_path, kind):
    matrix, path = np.arange(8, dtype=np.float32).reshape(4, 2), tmp_path / f"vectors{kind}"
    if kind == ".npy":
        np.save(path, matrix)
    else:
        np.savez(path, vectors=matrix)
    table = read(file(PHOTOS), text="note", embeddings=path)
    np.testing.assert_array_equal(table.X, matrix)
    assert table.X.dtype == np.float32
    assert table.feature_kind == "embeddings"
    assert table.feature_names == ("embeddings_0", "embeddings_1")
    assert table.texts[0] == "first"
    labels_only = tmp_path / "labels.npz"
    write_dataset(PartialDataset(None, np.eye(4)), labels_only)
    np.testing.assert_array_equal(read(labels_only, embeddings=path).X, matrix)


def test_the_array_called_embeddings_is_taken(file, tmp_path):
    path = tmp_path / "vectors.npz"
    np.savez(path, ids=np.arange(4), embeddings=np.ones((4, 3)))
    assert read(file(PHOTOS), embeddings=path).X.shape == (4, 3)


HOURS = ("dawn", "morning", "noon", "evening", "night", "midnight", "all day")
TEXTS = [
    f"the whale swims in the wide sea at {HOURS[number % 7]}"
    if number % 2
    else f"a goat climbs on the high mountain at {HOURS[number % 7]}"
    for number in range(30)
]


@pytest.fixture
def stories(file):
    lines = [f"{text},{'sea' if 'sea' in text else 'mountain'};walk" for text in TEXTS]
    return file("\n".join(["story,tags", *lines]), "stories.csv")


def test_texts_become_dense_features(stories):
    table = read(stories, text="story", text_components=5)
    assert table.X.shape == (30, 5)
    assert (table.feature_kind, table.columns.text) == ("text", "story")
    np.testing.assert_allclose(np.linalg.norm(table.X, axis=1), 1)
    np.testing.assert_array_equal(table.transformer.transform(as_text_column(TEXTS)), table.X)
    np.testing.assert_array_equal(read(stories, text="story", text_components=5).X, table.X)
    # Texts about the sea are nearer to each other than to those about mountains.
    similar, sea = table.X @ table.X.T, np.array(["sea" in text for text in TEXTS])
    assert similar[np.ix_(sea, sea)].min() > similar[np.ix_(sea, ~sea)].max()


def test_never_more_features_than_words_or_rows():
    assert fit_text_features(["one two", "two three"]).transform(as_text_column(["one"])).shape == (1, 2)
    few = fit_text_features(["one two three four", "five six"]).transform(as_text_column(["one", "other"]))
    assert few.shape == (2, 2)
    assert few[1].tolist() == [0, 0]


@pytest.mark.parametrize("texts", [["word"] * 5, ["", " "], ["a", "b"]])
def test_texts_without_words(texts):
    with pytest.raises(ValueError, match="fewer than two different words"):
        fit_text_features(texts)


def test_all_components_keep_all_angles():
    """With as many components as the rank, the reduction is a rotation: cosines are those of the weights."""
    full = fit_text_features(TEXTS, n_components=30)
    weights = TfidfVectorizer(sublinear_tf=True).fit_transform(TEXTS)
    X = full.transform(as_text_column(TEXTS))
    np.testing.assert_allclose(X @ X.T, (weights @ weights.T).toarray(), atol=1e-8)


TOPICS = {
    "cooking": ["oven", "flour", "butter", "recipe"],
    "football": ["goal", "keeper", "match", "penalty"],
    "music": ["guitar", "singer", "album", "concert"],
}
FRAMES = ["yesterday {}, today {}", "the {} and the {} were talked about", "new on {} with {}"]


def headlines(n: int) -> tuple[list[str], list[str]]:
    """Texts of two words of a topic in one of three frames: 12 + 11 words, each of which but few is independent."""
    rng = np.random.default_rng(0)
    topics = rng.choice(list(TOPICS), n).tolist()
    return [str(rng.choice(FRAMES)).format(*rng.choice(TOPICS[topic], 2)) for topic in topics], topics


def test_scaling_of_features_hardly_changes_the_angles_between_texts():
    """The components differ in their spans by more than five, the features do not: their scaling keeps distances."""
    texts, _ = headlines(150)
    X = fit_text_features(texts).transform(as_text_column(texts))
    weights = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    components = TruncatedSVD(X.shape[1], random_state=0).fit_transform(weights)
    spans, before = np.ptp(X, axis=0), np.ptp(components, axis=0)
    assert spans.max() < 2.5 * spans.min()
    assert before.max() > 5 * before.min()
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)


def test_texts_that_are_all_alike_keep_one_component():
    X = fit_text_features(["sea and sky"] * 4).transform(as_text_column(["sea and sky", "sea"]))
    np.testing.assert_allclose(X, [[1], [1]])


def test_texts_that_differ_little_keep_what_they_differ_in():
    """A boilerplate of many words leaves each text a small part of its own, which is all that tells them apart."""
    boilerplate = " ".join(f"word{number}" for number in range(3000))
    texts = [f"{boilerplate} {word}" for word in ("sea", "sky", "sea", "hill")]
    X = fit_text_features(texts).transform(as_text_column(texts))
    distances = np.linalg.norm(X[:, None] - X[None], axis=-1)
    assert distances[0, 2] < 1e-6 < 0.01 < distances[[0, 0, 1], [1, 3, 3]].min()


@pytest.mark.slow
def test_a_short_new_text_is_not_thrown_far_away():
    """Known words without a frame, as no training text is written: the topic is likely, and others are not all likely."""
    texts, topics = headlines(150)
    names = list(TOPICS)
    transformer = fit_text_features(texts)
    tagged = np.array([[topic == name for name in names] for topic in topics], dtype=int)
    model = CandidateLikelihood(random_state=0).fit(transformer.transform(as_text_column(texts)), tagged)
    for name, words in TOPICS.items():
        for text in (*words, " ".join(words)):
            found = model.predict_proba(transformer.transform(as_text_column([text])))[0]
            assert names[found.argmax()] == name, text
            assert found.min() < 0.5 < found.max(), (text, found)


@pytest.mark.slow
def test_the_transformer_is_saved_with_a_model(stories, tmp_path):
    pytest.importorskip("skops")
    table = read(stories, text="story", text_components=5)
    model = CandidateLikelihood().fit(table.X, table.candidates)
    both = make_pipeline(table.transformer, model)
    path = tmp_path / "stories.skpml"
    save_model(both, path, label_names=table.label_names, feature_names=[table.columns.text])
    again = load_model(path)
    np.testing.assert_array_equal(
        again.predict_proba(as_text_column(TEXTS[:3])), model.predict_proba(table.X[:3])
    )
