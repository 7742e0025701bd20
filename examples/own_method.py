"""A custom method: ridge regression on confidences, the shares of nearby rows that have the same candidate.

A method implements ``_fit`` and ``_scores``; the base class reads labels, raises errors, and computes thresholds and
probabilities. The checks test its behavior, and the comparison with ridge shows whether it helps.
"""

import warnings

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from skpml.base import BasePMLClassifier, MethodFacts, check_parameters
from skpml.datasets import load_digits_attributes
from skpml.features import LinearMap, RangeScaler
from skpml.graph import neighbor_similarity
from skpml.linalg import ridge_factor
from skpml.metrics import average_precision
from skpml.reference import CandidateRidge
from skpml.utils.estimator_checks import check_pml_estimator


class NeighborConfidence(BasePMLClassifier):
    """Ridge regression on the share of nearby rows that have the same candidate."""

    _facts = MethodFacts(name="neighbor-confidence", title="Neighbor confidence", confidences=True)

    def __init__(self, *, n_neighbors=10, ridge=1.0, threshold="auto", on_empty="warn"):
        self.n_neighbors = n_neighbors
        self.ridge = ridge
        self.threshold = threshold
        self.on_empty = on_empty

    def _check_parameters(self):
        check_parameters(self, counts=("n_neighbors",), weights=("ridge",))

    def _fit(self, X, Y):
        self.features_ = make_pipeline(RangeScaler(), LinearMap(intercept=True))
        mapped = self.features_.fit_transform(X)
        near = neighbor_similarity(mapped, n_neighbors=min(self.n_neighbors, len(Y) - 1))
        shared = (near @ Y + Y) / (near.sum(axis=1)[:, np.newaxis] + 1)
        self.confidences_ = Y * np.minimum(shared, 1)  # rounding can lift a share above 1
        self.coef_ = ridge_factor(mapped, ridge=self.ridge)(mapped.T @ self.confidences_)
        return mapped @ self.coef_

    def _scores(self, X):
        return self.features_.transform(X) @ self.coef_.astype(X.dtype, copy=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the checks pass odd data on purpose
    theirs = sum(result["status"] == "passed" for result in check_estimator(NeighborConfidence()))
    ours = len(check_pml_estimator(NeighborConfidence()))
    print(f"passes {theirs} checks of scikit-learn, {ours} of scikit-pml")
    digits = load_digits_attributes(candidates=6, random_state=0)
    train, test = np.arange(1797) % 5 > 0, np.arange(1797) % 5 == 0
    for model in (CandidateRidge(feature_map=LinearMap(intercept=True)), NeighborConfidence()):
        scores = model.fit(digits.X[train], digits.candidates[train]).decision_function(digits.X[test])
        print(f"{type(model).__name__:18s} {average_precision(digits.truth[test], scores):.3f}")
