"""Texts that many docstrings share, filled in where a docstring has a line ``%(name)s``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import indent
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Any)

_LABELS = "{array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)"
_FEATURES = """\
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, if X had names."""

_TEXTS = {
    # Parameters of estimators.
    "threshold": """\
threshold : float, "auto" or "non-candidates", default="auto"
    Scores above it are predicted. "auto" and "non-candidates" estimate it from the training scores, without true
    labels: "auto" cuts half way between the level of clear negatives and that of the surest candidates;
    "non-candidates" is the mean over rows of the highest score of a non-candidate.""",
    "on_empty": """\
on_empty : {"warn", "raise", "ignore"}, default="warn"
    What to do about rows without candidates, which count as having no label, and about labels that are not a
    candidate of any row.""",
    "n_neighbors": """\
n_neighbors : int, default=5
    Number of neighbors of a row in the graph; all other rows if there are fewer.""",
    "n_anchors": """\
n_anchors : int or None, default=None
    Number of anchor rows of the feature map; all rows if there are fewer. None is five per feature, at most 3000.""",
    "map_anchors": """\
n_anchors : int or None, default=None
    Number of anchor rows of the "rbf" map; None follows the published rule, see
    :func:`skpml.features.default_n_anchors`.""",
    "feature_map": """\
feature_map : {"rbf", "linear"} or transformer, default="rbf"
    What the model sees of the scaled features: similarities to anchor rows, the features themselves, or the output
    of a scikit-learn transformer.""",
    "linear_feature_map": """\
feature_map : {"linear", "rbf"} or transformer, default="linear"
    What the model sees of the scaled features: the features themselves and a constant, which is the published map,
    similarities to anchor rows, or the output of a scikit-learn transformer.""",
    "relative_threshold": """\
threshold : float, "auto", "non-candidates" or "relative", default="auto"
    Scores above it are predicted; for "auto" and "non-candidates" see :class:`PMLNI`. "relative" is the published
    rule: with the scores of a row scaled to [0, 1], labels above 0.9 are predicted. Scores are then relative to that
    cut of their row, so that 0 decides; they compare labels of one row, but not rows. With a single label, where the
    rule is undefined, "auto" is used.""",
    "anchor_random_state": """\
random_state : int, RandomState or None, default=None
    Draws the anchors if not all rows are anchors. Nothing else is random.""",
    # Attributes of fitted estimators.
    "fitted": """\
threshold_ : float
    Scores above it are predicted.
classes_ : ndarray of shape (n_labels,)
    Names of the labels.
"""
    + _FEATURES,
    "objective_history": """\
history_ : dict of ndarrays
    The objective, and its weighted terms if it has several, one value per iteration.""",
    "iterations": """\
n_iter_ : int
    Number of iterations.
converged_ : bool
    Whether the stop rule was met within ``max_iter`` iterations.""",
    "scaler": """\
scaler_ : RangeScaler
    Scales the features to [−1, 1].""",
    "scaler_and_map": """\
scaler_ : RangeScaler
    Scales the features to [−1, 1].
feature_map_ : transformer
    Maps the scaled features.""",
    # Methods of estimators and transformers.
    "fit_rows": """\
Parameters
----------
X : array or scipy sparse matrix of shape (n, n_features)
    Training rows.
y : None
    Ignored.

Returns
-------
self : object
    Itself, fitted.""",
    "rows": """\
Parameters
----------
X : array or scipy sparse matrix of shape (n, n_features)
    Rows to map.""",
    "names_out": """\
Parameters
----------
input_features : array of str or None, default=None
    Names of the features; by default those of the fit.

Returns
-------
ndarray of str
    The names.""",
    "new_rows": """\
Parameters
----------
X : array, data frame or scipy sparse matrix of shape (n, d)
    As in :meth:`fit`.""",
    "feature_attributes": _FEATURES,
    "example_data": """\
>>> from sklearn.datasets import make_multilabel_classification
>>> from skpml.noise import top_up
>>> X, truth = make_multilabel_classification(300, allow_unlabeled=False, random_state=0)
>>> candidates = top_up(truth, 4, random_state=0)""",
    # Parameters of functions of label matrices.
    "truth": f"""\
truth : {_LABELS}
    True labels, 0 or 1.""",
    "scores": """\
scores : array-like of shape (n_rows, n_labels)
    Finite scores; larger means more likely.""",
    "decisions": f"""\
decisions : {_LABELS}
    Assigned labels, 0 or 1.""",
    "n_candidates": """\
k : int
    Number of candidates per row, at least 1.""",
    "random_state_and_candidates": """\
random_state : int, RandomState, Generator or None, default=None
    Source of randomness; an int makes the result repeatable.

Returns
-------
ndarray of uint8, shape (n_rows, n_labels)
    Candidate labels.""",
    # Parameters of functions of files.
    "on_empty_and_dataset": """\
on_empty : {"raise", "warn", "ignore"}, default="raise"
    See `PartialDataset`.

Returns
-------
PartialDataset
    The data set.""",
    "overwrite": """\
overwrite : bool, default=False
    Whether to replace a file that exists.""",
    "dataset_and_path": """\
dataset : PartialDataset
    What to write.
path : path-like
    File to write.""",
    "cleaned_copy": """\
drop : array-like of bool of shape (n_rows, n_labels)
    True where a label is to be dropped; the row must carry it.
target : path-like
    File to write, with the same suffix.
add : array-like of bool of shape (n_rows, n_labels), optional
    True where a label is to be added; the row must not carry it.
overwrite : bool, default=False
    Whether to replace a file that exists.
progress : callable, optional
    Called as ``progress(done, total, what)`` now and then.""",
    # Parameters of functions of tables of results.
    "results_table": """\
table : DataFrame or array-like of shape (N, k)
    One row per data set, one column per method, no missing values.""",
    "results_options": """\
lower_is_better : bool, default=False
    True for losses.
methods : sequence of str, optional
    Names of the columns; by default those of the data frame, or their numbers.""",
}
_LOSS = "\n\nReturns\n-------\nfloat\n    Between 0 (best) and 1."
_GAIN = "\n\nReturns\n-------\nfloat\n    Between 0 and 1 (best)."
_SCORES = f"Parameters\n----------\n{_TEXTS['truth']}\n{_TEXTS['scores']}"
_DECISIONS = f"Parameters\n----------\n{_TEXTS['truth']}\n{_TEXTS['decisions']}"
_TEXTS |= {
    # Whole sections, for the metrics.
    "parameters_scores": _SCORES,
    "returns_gain": _GAIN.lstrip(),
    "returns_loss_or_nan": f"{_LOSS.lstrip()} NaN, with a warning, if no row is left.",
    "decision_loss": _DECISIONS + _LOSS,
    "decision_gain": _DECISIONS + _GAIN,
    "decision_gain_by_label": f"""\
{_DECISIONS}
zero_division : float, default=0.0
    Value of F1 if no label is true and none is assigned.{_GAIN}""",
    "decision_gain_by_row": f"""\
{_DECISIONS}
zero_division : float, default=1.0
    Value of a row without true and without assigned labels.{_GAIN}""",
}

_PLACEHOLDER = re.compile(r"^( *)%\((\w+)\)s$", re.MULTILINE)


def fill_docstring(documented: Documented, texts: Mapping[str, str] | None = None) -> Documented:
    """Replace each line ``%(name)s`` in the docstring of a class, its methods, or a function by the shared text.

    ``texts`` adds to the shared texts. ``%(reference)s`` is the reference in the facts of a method;
    ``%(reference_and_data)s`` adds the start of the examples, with data.
    """
    known = {**_TEXTS, **(texts or {})}
    if hasattr(documented, "_facts"):
        limit = getattr(documented, "max_iter", None)
        known["max_iter"] = f"max_iter : int, default={limit}\n    Maximum number of iterations."
        known["reference"] = f".. [1] {documented._facts.reference}"
        sections = ("References", "----------", known["reference"], "", "Examples", "--------")
        known["reference_and_data"] = "\n".join([*sections, known["example_data"]])
    for member in [documented, *vars(documented).values()] if isinstance(documented, type) else [documented]:
        if callable(member) and "%(" in (member.__doc__ or ""):
            member.__doc__ = _PLACEHOLDER.sub(lambda found: indent(known[found[2]], found[1]), member.__doc__)
    return documented
