"""Cleaning a labelled file: reading it, taking wrong labels out of it, and handing it to people and other tools."""

from skpml.cleaning.cleaned_files import write_cleaned
from skpml.cleaning.decisions import Decisions, read_decisions, write_decisions
from skpml.cleaning.dialect import Dialect, detect_dialect
from skpml.cleaning.label_studio import label_studio_config, label_studio_tasks, write_label_studio
from skpml.cleaning.labelled_table import LabelledTable
from skpml.cleaning.tables import read_table
from skpml.cleaning.text_features import fit_text_features, text_column

__all__ = [
    "Decisions",
    "Dialect",
    "LabelledTable",
    "detect_dialect",
    "fit_text_features",
    "label_studio_config",
    "label_studio_tasks",
    "read_decisions",
    "read_table",
    "text_column",
    "write_cleaned",
    "write_decisions",
    "write_label_studio",
]
