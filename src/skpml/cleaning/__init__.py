"""Cleaning a labelled file: reading it, finding wrong tags, and taking them out, by rule or by a person."""

from skpml.cleaning.actions import suggest_actions
from skpml.cleaning.audit import Audit, Doubt, audit
from skpml.cleaning.cleaned_files import write_cleaned
from skpml.cleaning.counting import WrongCounts
from skpml.cleaning.decisions import Decisions, read_decisions, write_decisions
from skpml.cleaning.dialect import Dialect, detect_dialect
from skpml.cleaning.example import write_example
from skpml.cleaning.label_studio import label_studio_config, label_studio_tasks, write_label_studio
from skpml.cleaning.labelled_table import LabelledTable
from skpml.cleaning.page import render_review
from skpml.cleaning.payload import review_payload
from skpml.cleaning.reasons import Reason
from skpml.cleaning.rows import Rows, read_rows
from skpml.cleaning.tables import read_table
from skpml.cleaning.text_features import fit_text_features, text_column

__all__ = [
    "Audit",
    "Decisions",
    "Dialect",
    "Doubt",
    "LabelledTable",
    "Reason",
    "Rows",
    "WrongCounts",
    "audit",
    "detect_dialect",
    "fit_text_features",
    "label_studio_config",
    "label_studio_tasks",
    "read_decisions",
    "read_rows",
    "read_table",
    "render_review",
    "review_payload",
    "suggest_actions",
    "text_column",
    "write_cleaned",
    "write_decisions",
    "write_example",
    "write_label_studio",
]
