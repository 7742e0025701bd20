"""Choose parameters, with or without true labels."""

from skpml.model_selection._judging import (  # noqa: F401, for the methods of the library
    Evidence,
    InnerFolds,
    Judge,
    Parameters,
    PointScores,
    Selection,
    fit_points,
    judge_parameters,
)
from skpml.model_selection._search import candidate_precision, select_parameters

__all__ = ["Selection", "candidate_precision", "select_parameters"]
