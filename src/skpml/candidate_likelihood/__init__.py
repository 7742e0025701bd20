"""A likelihood for candidate labels: a probability for every candidate, learnt and chosen without true labels."""

from skpml.candidate_likelihood._estimator import CandidateLikelihood

__all__ = ["CandidateLikelihood"]
