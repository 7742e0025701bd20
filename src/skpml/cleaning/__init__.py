"""Cleaning a labelled file: reading it, finding wrong tags, and taking them out, by rule or by a person."""

from skpml.cleaning._actions import suggest_actions
from skpml.cleaning._audit import Audit, Doubt, audit
from skpml.cleaning._counting import WrongCounts
from skpml.cleaning._decisions import Decisions, read_decisions, write_decisions
from skpml.cleaning._reasons import Reason

__all__ = [
    "Audit",
    "Decisions",
    "Doubt",
    "Reason",
    "WrongCounts",
    "audit",
    "read_decisions",
    "suggest_actions",
    "write_decisions",
]
