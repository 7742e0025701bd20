import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge

from skpml.datasets import list_datasets, load_dataset, load_digits_attributes
from skpml.noise import top_up


def column(dataset, name):
    return dataset.truth[:, dataset.label_names.index(name)].astype(bool)


def test_labels_of_numerals_and_pixels():
    dataset = load_digits_attributes()
    pixels, numerals = load_digits(return_X_y=True)
    np.testing.assert_array_equal(dataset.X, pixels)
    np.testing.assert_array_equal(column(dataset, "even"), numerals % 2 == 0)
    np.testing.assert_array_equal(column(dataset, "multiple of three"), numerals % 3 == 0)
    np.testing.assert_array_equal(column(dataset, "five or more"), numerals >= 5)
    np.testing.assert_array_equal(column(dataset, "prime"), np.isin(numerals, [2, 3, 5, 7]))
    np.testing.assert_array_equal(column(dataset, "closed loop"), np.isin(numerals, [0, 6, 8, 9]))
    np.testing.assert_array_equal(column(dataset, "straight strokes"), np.isin(numerals, [1, 4, 7]))
    rows, columns = np.mgrid[:8, :8].reshape(2, -1)
    for index in range(0, len(pixels), 7):
        weights = pixels[index]
        (row_variance, covariance), (_, column_variance) = np.cov(rows, columns, aweights=weights, ddof=0)
        measured = {
            "much ink": weights.sum() - 338,
            "leans right": -covariance - 0.05 * row_variance,
            "wide": column_variance - 0.4 * row_variance,
            "top-heavy": 3.3 - np.average(rows, weights=weights),
        }
        for name, margin in measured.items():
            assert abs(margin) < 1e-9 or column(dataset, name)[index] == (margin > 0), (index, name)


def test_size_is_what_the_list_says():
    found = load_digits_attributes(candidates=0).statistics()
    (entry,) = [entry for entry in list_datasets() if entry.name == "digits"]
    assert entry.present
    assert (found.n_rows, found.n_features, found.n_labels) == (
        entry.n_rows,
        entry.n_features,
        entry.n_labels,
    )
    assert found.cardinality == pytest.approx(entry.cardinality, abs=1e-4)
    assert found.noise_rate == 0
    assert found.labels_without_true_row == found.rows_without_true_label == 0


def test_noise_is_repeatable_and_chosen():
    dataset = load_digits_attributes()
    np.testing.assert_array_equal(dataset.candidates, top_up(dataset.truth, 6, random_state=0))
    for one, other in (
        (load_dataset("digits"), dataset),
        (load_dataset("digits-5"), load_digits_attributes(candidates=5)),
        (
            load_dataset("digits", candidates=7, random_state=1),
            load_digits_attributes(candidates=7, random_state=1),
        ),
    ):
        np.testing.assert_array_equal(one.candidates, other.candidates)
    assert (load_digits_attributes(random_state=1).candidates != dataset.candidates).any()


def test_learnable_and_hurt_by_noise():
    dataset = load_digits_attributes()
    train, test = dataset.subset(slice(0, 1200)), dataset.subset(slice(1200, None))

    def errors(labels):
        return ((Ridge(alpha=10).fit(train.X, labels).predict(test.X) > 0.5) != test.truth).mean()

    nothing_learnt = np.minimum(test.truth.mean(axis=0), 1 - test.truth.mean(axis=0)).mean()
    assert errors(train.truth) < nothing_learnt / 2
    assert errors(train.candidates) > 2 * errors(train.truth)
