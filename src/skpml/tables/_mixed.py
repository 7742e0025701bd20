"""Numbers, categories, texts and images of a table as one matrix, by transformers that a model file keeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from skpml.embeddings import EmbeddingError, ImageEmbedder, TextEmbedder, embed_images, embed_texts
from skpml.tables._columns import Columns, number_names
from skpml.tables._errors import Argument, TableError
from skpml.tables._features import as_text_column, fit_text_features
from skpml.tables._kinds import ColumnType, FeatureKind, Features
from skpml.tables._rows import Progress

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
        X : array of shape (n, d)
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
        X : array of shape (n, d)
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

    kind: Literal["text", "image"]
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

    missing = np.array(features.n_missing) / max(1, len(features.numbers))
    for often in (False, True):
        columns = np.flatnonzero((missing >= _OFTEN_MISSING) == often).tolist()
        if columns:
            imputer = SimpleImputer(strategy="median", add_indicator=often, keep_empty_features=True)
            matrix = imputer.fit_transform(features.numbers[:, columns].astype(np.float64))
            chosen = [features.number_names[column] for column in columns]
            add("numbers", imputer, columns, matrix, imputer.get_feature_names_out(chosen).tolist())


def made_fields(
    X: Any,
    kind: FeatureKind,
    names: tuple[str, ...],
    types: dict[str, ColumnType] | None = None,
    views: dict[str, list[int]] | None = None,
    transformer: Any = None,
) -> dict[str, Any]:
    """Return what a model learns from, as fields of a table."""
    return {"X": X, "feature_kind": kind, "feature_names": names, "feature_types": types or {}, "views": views or {},
            "transformer": transformer}  # fmt: skip


def list_items(
    folder: Path, columns: Columns, shown: Mapping[str, Sequence[str]], name: str
) -> tuple[ColumnType, Sequence[str]]:
    """Return the texts of a column, or the absolute paths of its images, which are relative to a folder."""
    if name == columns.text:
        return "text", shown["text"]
    return "image", [os.path.abspath(folder / image) if image else "" for image in shown["image"]]


def _list_types(features: Features, others: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
    """Return the columns of a mixed matrix, in order, and what they hold."""
    types: dict[str, ColumnType] = dict.fromkeys(features.number_names, "number")
    return {**types, **dict.fromkeys(features.categories, "category"), **others}


def _are_texts_alone(features: Features, kinds: Iterable[str]) -> bool:
    return not features.used and list(kinds) == ["text"]


def leave_columns(
    features: Features, others: Mapping[str, tuple[ColumnType, Sequence[str]]]
) -> dict[str, Any]:
    """Return texts, paths of images, categories and numbers as they are."""
    items = [values for _, values in others.values()]
    if _are_texts_alone(features, (kind for kind, _ in others.values())):
        return made_fields(as_text_column(items[0]), "text", number_names("text", 1))
    types = _list_types(features, {name: kind for name, (kind, _) in others.items()})
    return made_fields(stack_columns(features, items), "mixed", tuple(types), types)


def make_features(features: Features, others: Mapping[str, Embedded]) -> dict[str, Any]:
    """Turn texts, images, categories and numbers into one matrix."""
    if _are_texts_alone(features, (found.kind for found in others.values())):
        found = next(iter(others.values()))
        names = number_names("text", found.X.shape[1])
        return made_fields(found.X, "text", names, transformer=found.transformer)
    joined = join_columns(features, list(others.values()))
    types = _list_types(features, {name: found.kind for name, found in others.items()})
    return made_fields(joined.X, "mixed", joined.names, types, joined.views, joined.transformer)


class Embedder:
    """Turns texts and images into features; embeddings by a model are kept beside the file, if there is one."""

    def __init__(
        self,
        path: Path | None,
        place: Callable[[int], dict[str, Any]],
        *,
        text_components: int,
        text_model: str | None,
        image_model: str | None,
        random_state: int,
        progress: Progress | None,
    ) -> None:
        self._path, self._place = path, place
        self._text_options = {"n_components": text_components, "random_state": random_state}
        self._models, self._progress = {"text": text_model, "image": image_model}, progress

    def embed(self, column: str, kind: ColumnType, items: Sequence[str]) -> Embedded:
        """Return the features of a column."""
        if self._progress is not None:
            self._progress(0, None, f"turning {kind}s into features")
        try:
            return self._embed_images(items) if kind == "image" else self._embed_texts(items)
        except TableError as error:
            problem = f"column {column!r} cannot be learned from: {error.problem}"
            raise TableError(problem, path=self._path, column=column) from error
        except EmbeddingError as error:
            if error.faults:
                place = self._place(next(iter(error.faults)))
                raise TableError(f"column {column!r}: {error}", **place, column=column) from error
            raise TableError(Argument(f"{kind}_model"), f": {error}", value=self._models[kind]) from error

    def _embed_texts(self, texts: Sequence[str]) -> Embedded:
        model = self._models["text"]
        if model is None:
            transformer = fit_text_features(texts, **self._text_options)
            return Embedded("text", transformer.transform(as_text_column(texts)), transformer)
        X = embed_texts(texts, model, cache=self._cache("embeddings"), progress=self._progress)
        return Embedded("text", X, TextEmbedder(model=model))

    def _embed_images(self, paths: Sequence[str]) -> Embedded:
        model = self._models["image"]
        X = embed_images(paths, model, cache=self._cache("images"), progress=self._progress)
        return Embedded("image", X, ImageEmbedder(model=model))

    def _cache(self, what: str) -> Path | None:
        return None if self._path is None else self._path.with_name(f"{self._path.name}.{what}.npz")
