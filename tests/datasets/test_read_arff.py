import numpy as np
import pytest
import scipy.sparse as sp

from skpml.datasets import read_dataset
from skpml.tables import TableError

XML = (
    '<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">{}</labels>'
)


def arff(folder, text, labels=None):
    path = folder / "file.arff"
    path.write_text(text, encoding="utf-8")
    if labels is not None:
        elements = "".join(f'<label name="{label}"></label>' for label in labels)
        (folder / "file.xml").write_text(XML.format(elements), encoding="utf-8")
    return path


MULAN = """% a comment
@RELATION music
@attribute a numeric
@attribute sad {0,1}
@attribute "b c" real
@attribute\tcalm\t{FALSE, TRUE}
@attribute glad {YES,NO}
@DATA
1.5,1,-2e3,TRUE,NO

% another
0,0,7,FALSE,YES
"""


def test_mulan_labels_anywhere_and_in_any_words(tmp_path):
    found = read_dataset(arff(tmp_path, MULAN, ["glad", "sad", "calm"]))
    np.testing.assert_array_equal(found.X, [[1.5, -2000], [0, 7]])
    assert found.feature_names == ("a", "b c")
    assert found.label_names == ("sad", "calm", "glad")
    assert found.truth.tolist() == [[1, 1, 0], [0, 0, 1]]
    np.testing.assert_array_equal(found.candidates, found.truth)
    assert found.name == "music"


def test_labels_may_be_candidates(tmp_path):
    found = read_dataset(arff(tmp_path, MULAN, ["glad", "sad", "calm"]), labels="candidates")
    assert found.truth is None
    assert found.candidates.tolist() == [[1, 1, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match="labels must be"):
        read_dataset(tmp_path / "file.arff", labels="both")


def test_labels_named_by_another_xml_or_by_the_caller(tmp_path):
    path = arff(tmp_path, MULAN, ["sad"])
    (tmp_path / "file.xml").rename(tmp_path / "other.xml")
    assert read_dataset(path, xml=tmp_path / "other.xml").label_names == ("sad",)
    assert read_dataset(path, label_attributes=["calm", "sad"]).label_names == ("sad", "calm")


def test_nested_labels_of_a_hierarchy(tmp_path):
    path = arff(tmp_path, MULAN)
    (tmp_path / "file.xml").write_text(XML.format('<label name="sad"><label name="calm"/></label>'))
    assert read_dataset(path).label_names == ("sad", "calm")


@pytest.mark.parametrize(
    ("relation", "labels", "features"),
    [
        ("'my set: -C 2'", ("p", "q"), ("r", "s")),
        ('"my set:-C 1 -split 5"', ("p",), ("q", "r", "s")),
        ("'my set: -C -3 -V'", ("q", "r", "s"), ("p",)),
    ],
)
def test_meka_counts_labels(tmp_path, relation, labels, features):
    header = "".join(f"@attribute {name} {{0,1}}\n" for name in "pqrs")
    found = read_dataset(arff(tmp_path, f"@relation {relation}\n{header}@data\n1,1,1,1\n0,0,1,0\n"))
    assert (found.label_names, found.feature_names, found.name) == (labels, features, "my set")


SPARSE = """@relation 'x: -C 2'
@attribute l1 {0,1}
@attribute l2 {1,0}
@attribute f1 numeric
@attribute f2 {low,middle,high}
@attribute f3 {3,5}
@data
{0 1, 2 2.5}
{1 0,3 high,4 5}
{}
"""


def test_sparse_rows_leave_out_zeros_and_first_values(tmp_path):
    found = read_dataset(arff(tmp_path, SPARSE))
    assert sp.issparse(found.X)
    # l2 is declared {1,0}, so a row that leaves it out has it; f3 is 3 where left out.
    assert found.truth.tolist() == [[1, 1], [0, 0], [0, 1]]
    np.testing.assert_array_equal(found.X.toarray(), [[2.5, 0, 3], [0, 2, 5], [0, 0, 3]])


def test_nominal_features_dense(tmp_path):
    text = """@relation 'x: -C 1'
@attribute l {0,1}
@attribute colour {red,'dark blue',green}
@attribute zone {1,2,4}
@attribute whole integer
@data
1,'dark blue',4,2.5
0,green,1,3
"""
    np.testing.assert_array_equal(read_dataset(arff(tmp_path, text)).X, [[1, 4, 2.5], [2, 1, 3]])


def test_text_attributes_must_be_ignored(tmp_path):
    header = "@relation 'x: -C 1'\n@attribute l {0,1}\n@attribute id string\n@attribute a numeric\n"
    text = header + "@data\n1,'a, b',2\n0,c,3\n"
    path = arff(tmp_path, text)
    with pytest.raises(TableError, match=r"attribute 'id' holds string values, .* ignore=\['id'\]"):
        read_dataset(path)
    np.testing.assert_array_equal(read_dataset(path, ignore=["id"]).X, [[2], [3]])
    with pytest.raises(TableError, match="has no attribute nope to ignore"):
        read_dataset(path, ignore=["id", "nope"])


HEAD = "@relation 'x: -C 1'\n@attribute l {0,1}\n@attribute a numeric\n@data\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD, "has no rows after @data"),
        (HEAD + "1,2\n1\n", "line 6: .*expected 2 values"),
        (HEAD + "1,2\n1,x\n", "line 6: Invalid numerical value"),
        (HEAD + "1,2\n7,1\n", "line 6: .*7 not found in nominal"),
        (HEAD + "1,2\n\n1,?\n", "line 7: row 1, feature 'a': the value is missing"),
        (HEAD + "1,2\n?,1\n", "line 6: label 'l' has no value"),
        (HEAD + "1,inf\n", "line 5: row 0, feature 'a'"),
        (HEAD + "{0 1}\n{0 1,1 nan}\n", "line 6: row 1, feature 'a'"),
        (HEAD + "{0 1}\n{9 1}\n", "line 6"),
        (HEAD + "{0 1}\n0,1\n", "line 6"),
        (HEAD.replace("{0,1}", "numeric") + "0.5,1\n", "line 5: label 'l' is 0.5, not 0 or 1"),
        (HEAD.replace("{0,1}", "{a,b}") + "a,1\n", "label 'l' may be declared .*, not {a, b}"),
        (HEAD.replace("{0,1}", "{0,1") + "0,1\n", "line 2: attribute 'l': the list of values lacks"),
        (
            HEAD.replace("numeric", "quaternion") + "0,1\n",
            "line 3: attribute 'a' has unknown type 'quaternion'",
        ),
        (HEAD.replace(" a ", " l ") + "0,1\n", "line 3: attribute 'l' is declared twice"),
        (HEAD.replace("-C 1", "-C 5") + "0,1\n", "-C 5 asks for 5 labels among 2 attributes"),
        (
            HEAD.replace(": -C 1", "") + "0,1\n",
            r"cannot tell labels from features: put Mulan's label file at file\.xml",
        ),
        ("@relation x\n@data\n1\n", "line 2: @data comes before any @attribute"),
        ("@relation x\nwhat\n", "line 2: expected @relation, @attribute or @data, got 'what'"),
        ("@relation x\n", "has no @data"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    with pytest.raises(TableError, match=message):
        read_dataset(arff(tmp_path, text))


def test_xml_that_names_other_labels(tmp_path):
    with pytest.raises(TableError, match=r"has no attribute for the label\(s\) blue"):
        read_dataset(arff(tmp_path, MULAN, ["sad", "blue"]))
    path = arff(tmp_path, HEAD + "1,0\n", ["a"])
    with pytest.raises(TableError, match="name different labels; pass xml=…"):
        read_dataset(path)
    assert read_dataset(path, xml=tmp_path / "file.xml").label_names == ("a",)


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ('<!DOCTYPE labels [<!ENTITY a "aaaa">]><labels><label name="&a;"/></labels>', "line 1: holds a DTD"),
        ("<labels></labels>", "names no labels"),
        ("<labels>\n<label/></labels>", 'line 2: a <label> has no name="…"'),
        ('<labels>\n<label name="sad">', "line 2: not well-formed XML"),
    ],
)
def test_xml_that_is_wrong(tmp_path, xml, message):
    path = arff(tmp_path, MULAN)
    (tmp_path / "file.xml").write_text(xml)
    with pytest.raises(TableError, match=message):
        read_dataset(path)


def test_per_cent_signs_in_bad_lines(tmp_path):
    with pytest.raises(TableError, match="line 5"):
        read_dataset(arff(tmp_path, HEAD + "1,2,%s %d\n"))


def test_marker_that_is_wrong(tmp_path):
    with pytest.raises(TableError, match='labels must be "truth" or "candidates", got \'lies\''):
        read_dataset(arff(tmp_path, "% skpml-labels: lies\n" + HEAD + "1,2\n"))


def test_encoding(tmp_path):
    path = tmp_path / "file.arff"
    path.write_bytes("@relation 'x: -C 1'\n@attribute é {0,1}\n@data\n1\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"line 2: not utf-8 text.*encoding=.latin-1"):
        read_dataset(path)
    assert read_dataset(path, encoding="latin-1").label_names == ("é",)
