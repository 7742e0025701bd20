"""Cleaning a labelled file: reading it, finding wrong tags, and taking them out, by rule or by a person."""

from skpml.cleaning._actions import suggest_actions
from skpml.cleaning._audit import Audit, Doubt, audit
from skpml.cleaning._counting import WrongCounts
from skpml.cleaning._decisions import Decisions, read_decisions, write_decisions
from skpml.cleaning._reasons import Reason
from skpml.datasets._example import write_example
from skpml.tables._cleaned_files import write_cleaned
from skpml.tables._dialect import Dialect, detect_dialect
from skpml.tables._labelled_table import LabelledTable
from skpml.tables._rows import Rows, read_rows
from skpml.tables._tables import read_table
from skpml.tables._text_features import fit_text_features, text_column

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
    "read_decisions",
    "read_rows",
    "read_table",
    "suggest_actions",
    "text_column",
    "write_cleaned",
    "write_decisions",
    "write_example",
]
