"""Networks on the candidate likelihood, which learn their features. PyTorch is imported only by a fit."""

from skpml.deep._estimator import DeepCandidateLikelihood

__all__ = ["DeepCandidateLikelihood"]
