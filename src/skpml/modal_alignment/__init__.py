"""PML-MA: partial multi-label learning by feature-label modal alignment."""

from skpml.modal_alignment._estimator import PMLMA
from skpml.modal_alignment._solver import Solution, Weights, solve

__all__ = ["PMLMA", "Solution", "Weights", "solve"]
