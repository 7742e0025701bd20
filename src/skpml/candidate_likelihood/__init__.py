"""A classifier that maximizes the likelihood of the candidate labels."""

from skpml.candidate_likelihood._estimator import CandidateLikelihood

__all__ = ["CandidateLikelihood"]
