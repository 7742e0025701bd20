"""A classifier from a likelihood of candidate labels."""

from skpml.candidate_likelihood._estimator import CandidateLikelihood

__all__ = ["CandidateLikelihood"]
