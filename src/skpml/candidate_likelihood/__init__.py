"""A classifier that maximizes the likelihood of the candidate labels, and the likelihood of votes."""

from skpml.candidate_likelihood._estimator import CandidateLikelihood
from skpml.likelihood import VoteFit, count_votes, fit_votes

__all__ = ["CandidateLikelihood", "VoteFit", "count_votes", "fit_votes"]
