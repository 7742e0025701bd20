"""scikit-pml: learning from candidate labels."""

from skpml.modal_alignment import PMLMA

__version__ = "0.1.0.dev0"

__all__ = ["PMLMA"]
