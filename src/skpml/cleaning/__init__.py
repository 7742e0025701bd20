"""Cleaning labelled data: which tags are wrong, and what to do about them."""

from skpml.cleaning.actions import suggest_actions
from skpml.cleaning.audit import Audit, Doubt, audit
from skpml.cleaning.counting import WrongCounts
from skpml.cleaning.reasons import Reason

__all__ = ["Audit", "Doubt", "Reason", "WrongCounts", "audit", "suggest_actions"]
