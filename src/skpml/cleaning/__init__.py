"""Find wrong labels: audit candidates, suggest actions, read and write the decisions of a person."""

from skpml.cleaning._audit import Audit, audit
from skpml.cleaning._batch import Doubt, Doubts, Question, Reason
from skpml.cleaning._decisions import (
    Decisions,
    RandomSample,
    read_decisions,
    word_of,  # noqa: F401 -- for the review page
    write_decisions,
)
from skpml.cleaning._evidence import Companion, Evidence
from skpml.cleaning._judging import Actions, Missing, WrongCounts, suggest_actions
from skpml.cleaning._presenting import describe_wrong  # noqa: F401 -- for the command line

__all__ = [
    "Actions",
    "Audit",
    "Companion",
    "Decisions",
    "Doubt",
    "Doubts",
    "Evidence",
    "Missing",
    "Question",
    "RandomSample",
    "Reason",
    "WrongCounts",
    "audit",
    "read_decisions",
    "suggest_actions",
    "write_decisions",
]
