"""scikit-pml: learning from candidate labels."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skpml.modal_alignment import PMLMA

__version__ = "0.1.0.dev0"

__all__ = ["PMLMA"]


def __getattr__(name: str) -> Any:
    # Imported on first use: the command line and its --help should not wait for scikit-learn.
    if name == "PMLMA":
        from skpml.modal_alignment import PMLMA

        return PMLMA
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
