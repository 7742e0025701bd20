"""Cleaning a labelled file: reading it, taking wrong labels out of it, and handing it to people and other tools."""

from skpml.cleaning.dialect import Dialect, detect_dialect
from skpml.cleaning.tables import LabelledTable, read_table

__all__ = ["Dialect", "LabelledTable", "detect_dialect", "read_table"]
