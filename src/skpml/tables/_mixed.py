"""Numbers, categories and texts of a table as one matrix, by transformers that a model file keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from skpml.tables._kinds import Features

# If at least this share of the values of a column is missing, features tell where.
_OFTEN_MISSING = 0.05
# A category of a single row says nothing about other rows, and more categories than this are told apart rarely.
_FEWEST_ROWS, _MOST_CATEGORIES = 2, 100


@dataclass(kw_only=True, repr=False, eq=False)
class ColumnFeatures(TransformerMixin, BaseEstimator):
    """Turn columns of several kinds into one matrix, each group of columns by its own fitted transformer.

    It differs from scikit-learn's ColumnTransformer in that its transformers are fitted already.

    Parameters
    ----------
    parts : list of (str, transformer, list of int)
        A name, a fitted transformer and the positions of its columns; every column belongs to one part.

    See Also
    --------
    skpml.tables.read_table : Makes one from a table, for a model file.
    """

    parts: list[tuple[str, Any, list[int]]] = field(default_factory=list)

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return sum(len(columns) for _, _, columns in self.parts)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing, since the parts are fitted.

        Parameters
        ----------
        X : object
            Not used.
        y : None
            Not used.

        Returns
        -------
        self : ColumnFeatures
            The transformer.
        """
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Turn rows into features.

        Parameters
        ----------
        X : array of shape (n, n_features_in_)
            Numbers, texts and categories in columns; a missing number is NaN, a missing category is empty.

        Returns
        -------
        ndarray of shape (n, k)
            The features of all parts, side by side.
        """
        X = np.asarray(X, dtype=object)
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} columns, got the shape {X.shape}.")
        return np.hstack([transformer.transform(X[:, columns]) for _, transformer, columns in self.parts])

    def find_unseen(self, X: Any) -> dict[int, list[str]]:
        """Find categories that the rows of the fit did not have; they have no features.

        Parameters
        ----------
        X : array of shape (n, n_features_in_)
            As for `transform`.

        Returns
        -------
        dict of int to list of str
            Categories by the position of their column, sorted.
        """
        X = np.asarray(X, dtype=object)
        return {
            column: unseen
            for _, transformer, columns in self.parts
            for column, known in zip(columns, getattr(transformer, "categories_", ()), strict=False)
            if (unseen := sorted(set(X[:, column]).difference(known)))
        }

    def __sklearn_is_fitted__(self) -> bool:
        return True


class Joined(NamedTuple):
    """Features of all kinds: the matrix, its transformer, the names of its columns, and the columns of each kind."""

    X: NDArray[np.float64]
    transformer: ColumnFeatures
    names: tuple[str, ...]
    views: dict[str, list[int]]


class Embedded(NamedTuple):
    """Features of one column, such as texts: the name of the kind, the matrix and its fitted transformer."""

    kind: str
    X: NDArray[np.floating]
    transformer: Any


def stack_columns(features: Features, others: Sequence[Sequence[str]]) -> Any:
    """Return columns as they are, side by side: numbers, categories, and others such as texts."""
    columns = [*features.categories.values(), *others]
    X = np.empty((len(features.numbers), features.numbers.shape[1] + len(columns)), dtype=object)
    X[:, : features.numbers.shape[1]] = features.numbers
    for place, values in enumerate(columns, start=features.numbers.shape[1]):
        X[:, place] = values
    return X


def join_columns(features: Features, others: Sequence[Embedded]) -> Joined:
    """Fit transformers of numbers and categories, and join their features with those of other columns.

    Missing numbers get the median; where many are missing, a feature tells which. A missing category is one of its own.
    """
    parts: list[tuple[str, Any, list[int]]] = []
    matrices: list[NDArray[Any]] = []
    names: list[str] = []
    views: dict[str, list[int]] = {}

    def add(part: str, transformer: Any, columns: list[int], matrix: Any, made: Sequence[str]) -> None:
        parts.append((part, transformer, columns))
        matrices.append(matrix)
        view_of = {each: view for view, elements in features.lists.items() for each in elements}
        for place, name in enumerate(made, start=len(names)):
            views.setdefault(view_of.get(name, part), []).append(place)
        names.extend(made)

    _add_numbers(features, add)
    n_numbers, n_categories = len(features.number_names), len(features.categories)
    if n_categories:
        from sklearn.preprocessing import OneHotEncoder

        # The dtype is given by its name because model files hold no parameters that can be called, and types can be.
        encoder = OneHotEncoder(
            handle_unknown="ignore", min_frequency=_FEWEST_ROWS, max_categories=_MOST_CATEGORIES, sparse_output=False,
            dtype="float64",
        )  # fmt: skip
        cells = np.array(list(features.categories.values()), dtype=object).T
        matrix = encoder.fit_transform(cells)
        made = encoder.get_feature_names_out(list(features.categories))
        add("categories", encoder, list(range(n_numbers, n_numbers + n_categories)), matrix, made.tolist())
    for place, (kind, matrix, transformer) in enumerate(others, start=n_numbers + n_categories):
        add(kind, transformer, [place], matrix, [f"{kind}_{column}" for column in range(matrix.shape[1])])
    X = np.hstack([np.asarray(matrix, dtype=np.float64) for matrix in matrices])
    return Joined(X, ColumnFeatures(parts=parts), tuple(names), views)


def _add_numbers(features: Features, add: Any) -> None:
    """Impute numbers; columns in which values are often missing get features that tell where."""
    from sklearn.impute import SimpleImputer

    missing = np.isnan(features.numbers).mean(axis=0)
    for often in (False, True):
        columns = np.flatnonzero((missing >= _OFTEN_MISSING) == often).tolist()
        if columns:
            imputer = SimpleImputer(strategy="median", add_indicator=often, keep_empty_features=True)
            matrix = imputer.fit_transform(features.numbers[:, columns].astype(np.float64))
            chosen = [features.number_names[column] for column in columns]
            add("numbers", imputer, columns, matrix, imputer.get_feature_names_out(chosen).tolist())
