import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from skpml.datasets import read_dataset
from skpml.tables import TableError

X = np.arange(12.0).reshape(6, 2)
TRUTH = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 1], [0, 0, 0]])
CANDIDATES = np.maximum(TRUTH, [[0, 1, 0]])


def mat(folder, **variables):
    path = folder / "file.mat"
    scipy.io.savemat(path, variables)
    return path


@pytest.mark.parametrize("features", ["data", "X", "Features"])
@pytest.mark.parametrize("truth", ["target", "labels", "Y"])
@pytest.mark.parametrize("candidates", ["candidate_labels", "partial_labels", "pLabels"])
def test_usual_names(tmp_path, features, truth, candidates):
    found = read_dataset(mat(tmp_path, **{features: X, truth: TRUTH.T, candidates: CANDIDATES.T}))
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.truth, TRUTH)
    np.testing.assert_array_equal(found.candidates, CANDIDATES)
    assert found.name == "file"


@pytest.mark.parametrize("turn", [np.asarray, np.transpose])
@pytest.mark.parametrize("code", [lambda Y: Y, lambda Y: 2 * Y - 1, lambda Y: Y.astype(bool), sp.csc_matrix])
def test_either_way_round_and_either_coding(tmp_path, turn, code):
    path = mat(
        tmp_path, data=sp.csc_matrix(X), target=code(turn(TRUTH)), candidate_labels=code(turn(CANDIDATES))
    )
    found = read_dataset(path)
    np.testing.assert_array_equal(found.X.toarray(), X)
    np.testing.assert_array_equal(found.truth, TRUTH)
    np.testing.assert_array_equal(found.candidates, CANDIDATES)


def test_true_labels_alone_are_the_candidates(tmp_path):
    found = read_dataset(mat(tmp_path, data=X, target=TRUTH))
    np.testing.assert_array_equal(found.candidates, TRUTH)


def test_candidates_alone_leave_the_truth_unknown(tmp_path):
    assert read_dataset(mat(tmp_path, data=X, partial_labels=CANDIDATES)).truth is None


def test_variables_by_name(tmp_path):
    path = mat(
        tmp_path, train_data=X, train_p_target=CANDIDATES.T, train_target=TRUTH.T, data=X[:2], labels=[[1]]
    )
    found = read_dataset(path, features="train_data", candidates="train_p_target", truth="train_target")
    np.testing.assert_array_equal(found.candidates, CANDIDATES)
    with pytest.raises(TableError, match=r"has no variable 'nope' \(it has train_data 6×2, "):
        read_dataset(path, features="nope")


def test_label_names_as_cells_or_char_matrix(tmp_path):
    for names in (np.array(["sun", "sea", "sand"], dtype=object), np.array(["sun ", "sea ", "sand"])):
        assert read_dataset(mat(tmp_path, data=X, target=TRUTH, label_names=names)).label_names == (
            "sun",
            "sea",
            "sand",
        )


def test_square_labels_need_the_layout(tmp_path):
    square = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    path = mat(tmp_path, data=X[:3], target=square)
    with pytest.raises(
        TableError, match=r"cannot tell rows from labels in 'target' because it is square \(3×3\)"
    ):
        read_dataset(path)
    np.testing.assert_array_equal(read_dataset(path, label_layout="rows_by_labels").truth, square)
    np.testing.assert_array_equal(read_dataset(path, label_layout="labels_by_rows").truth, square.T)


def test_labels_alone_need_the_layout(tmp_path):
    path = mat(tmp_path, target=TRUTH)
    with pytest.raises(TableError, match="because there are no features; pass label_layout='rows_by_labels'"):
        read_dataset(path)
    assert read_dataset(path, label_layout="rows_by_labels").X is None


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"data": X}, r"no label matrix found; name one by .* \(it has data 6×2\)"),
        (
            {"data": X, "X": X, "target": TRUTH},
            "data and X could all be the features; choose by features='data'",
        ),
        ({"data": X, "target": TRUTH[:5]}, "'target' is 5×3, but the features have 6 rows"),
        (
            {"data": X, "target": TRUTH * 2},
            "variable 'target' should hold only -1, 0 and 1, but row 0, label 0 is 2",
        ),
        ({"data": X, "target": "text"}, "variable 'target' must be a matrix of numbers"),
        ({"data": X, "target": {"a": 1}}, "variable 'target' must be a matrix of numbers"),
        ({"data": np.where(X == 3, np.nan, X), "target": TRUTH}, "X contains NaN in row 1, column 1"),
        ({"data": X, "target": TRUTH, "candidate_labels": 1 - TRUTH}, "every true label must be a candidate"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, variables, message):
    with pytest.raises(TableError, match=message):
        read_dataset(mat(tmp_path, **variables))


@pytest.mark.parametrize(
    "head", [b"MATLAB 7.3 MAT-file, Platform: GLNXA64", b"\0" * 512 + b"\x89HDF\r\n\x1a\n"]
)
def test_version_7_3_is_refused_in_a_sentence(tmp_path, head):
    path = tmp_path / "file.mat"
    path.write_bytes(head.ljust(2000, b"\0"))
    with pytest.raises(TableError, match=r"7\.3 files are not read; save it again .*-v7"):
        read_dataset(path)
