"""Several views of the same rows: one kernel a view, combined with weights that are learnt without true labels."""

from skpml.views._scaling import ViewScaler
from skpml.views._weights import learn_view_weights

__all__ = ["ViewScaler", "learn_view_weights"]
