"""Choose parameters, with or without true labels."""

from skpml.model_selection._judging import (
    Evidence as Evidence,
)
from skpml.model_selection._judging import (
    InnerFolds as InnerFolds,
)
from skpml.model_selection._judging import (
    Judge as Judge,
)
from skpml.model_selection._judging import (
    Parameters as Parameters,
)
from skpml.model_selection._judging import (
    PointScores as PointScores,
)
from skpml.model_selection._judging import (
    fit_points as fit_points,
)
from skpml.model_selection._judging import (
    judge_parameters as judge_parameters,
)
from skpml.model_selection._judging import (
    row_precision as row_precision,
)
from skpml.model_selection._search import Selection, candidate_precision, select_parameters

__all__ = ["Selection", "candidate_precision", "select_parameters"]
