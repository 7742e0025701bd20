"""Several views of the same rows: one kernel and one neighbour graph a view, weighted without true labels."""

from skpml.views.scaling import ViewScaler, view_similarity
from skpml.views.weights import learn_view_weights

__all__ = ["ViewScaler", "learn_view_weights", "view_similarity"]
