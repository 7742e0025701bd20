"""scikit-pml: learning from candidate labels."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skpml.candidate_likelihood import CandidateLikelihood
    from skpml.modal_alignment import PMLMA
    from skpml.registry import get_method, list_methods
    from skpml.utils import show_versions

__version__ = "0.1.0.dev0"

__all__ = ["PMLMA", "CandidateLikelihood", "get_method", "list_methods", "show_versions"]

_HOMES = {
    "PMLMA": "skpml.modal_alignment",
    "CandidateLikelihood": "skpml.candidate_likelihood",
    "get_method": "skpml.registry",
    "list_methods": "skpml.registry",
    "show_versions": "skpml.utils",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: the command line and its --help should not wait for scikit-learn.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
