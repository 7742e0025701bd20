"""Networks on the candidate likelihood: features learnt along with the labels. Needs PyTorch, from the first fit on."""

from skpml.deep._estimator import DeepCandidateLikelihood

__all__ = ["DeepCandidateLikelihood"]
