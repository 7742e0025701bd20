"""PML-MA: partial multi-label learning by feature-label modal alignment."""

from skpml.modal_alignment._decomposition import low_rank_orthogonal, low_rank_sparse
from skpml.modal_alignment._estimator import PMLMA
from skpml.modal_alignment._recovered import RecoveredRidge
from skpml.modal_alignment._solver import Solution, Weights, solve

__all__ = [
    "PMLMA",
    "RecoveredRidge",
    "Solution",
    "Weights",
    "low_rank_orthogonal",
    "low_rank_sparse",
    "solve",
]
