"""Review doubtful tags by hand: on an HTML page, or in Label Studio."""

from skpml.review._label_studio import check_label_names, write_label_studio  # noqa: F401
from skpml.review._page import (  # noqa: F401
    render_review,
    require_page_packages,
    select_doubts,
    write_review,
)

__all__ = ["render_review", "write_label_studio", "write_review"]
