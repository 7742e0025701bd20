"""The demonstration: PML-MA between its floor and its ceiling on data that come with the library, as one web page."""

from skpml.demo.job import METHODS, DemoResult, Method, run_demo
from skpml.demo.page import is_demo_page, render_page
from skpml.demo.verdict import MetricSummary, summarise, verdict

__all__ = [
    "METHODS",
    "DemoResult",
    "Method",
    "MetricSummary",
    "is_demo_page",
    "render_page",
    "run_demo",
    "summarise",
    "verdict",
]
