"""Neural networks trained by the candidate likelihood. PyTorch is imported only when a model is fitted."""

from skpml.deep._estimator import DeepCandidateLikelihood

__all__ = ["DeepCandidateLikelihood"]
