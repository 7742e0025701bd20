"""Choosing parameters, with or without true labels."""

from skpml.model_selection._criteria import candidate_precision
from skpml.model_selection._selection import Selection, select_parameters

__all__ = ["Selection", "candidate_precision", "select_parameters"]
