"""Find methods by name or by their tags.

>>> import skpml
>>> "pml-ni" in skpml.list_methods()
True
>>> method = skpml.get_method("pml-ni")
>>> method.year, method.nonlinear, method.confidences
(2022, False, False)
>>> method(lam=1.0)
PMLNI(lam=1.0)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from skpml.base import MethodFacts

__all__ = ["TAGS", "Method", "get_method", "list_methods"]

TAGS = ("kind", "inductive", "confidences", "dense", "nonlinear", "random", "source", "needs", "year")

# The newest first, reference learners last. The facts are on the classes. Model files hold these names.
METHOD_PATHS = {
    "pml-ma": "skpml.modal_alignment:PMLMA",
    "pml-ma-printed": "skpml.modal_alignment:PMLMA",
    "pml-ma-released": "skpml.modal_alignment:PMLMA",
    "candidate-likelihood": "skpml.candidate_likelihood:CandidateLikelihood",
    "deep-candidate-likelihood": "skpml.deep:DeepCandidateLikelihood",
    "capml": "skpml.baselines:CAPML",
    "comes": "skpml.baselines:COMES",
    "pml-plr": "skpml.baselines:PMLPLR",
    "fbd-pml": "skpml.baselines:FBDPML",
    "pml-nd": "skpml.baselines:PMLND",
    "nlr": "skpml.baselines:NLR",
    "schirn": "skpml.baselines:Schirn",
    "p-lenfn": "skpml.baselines:PLENFN",
    "pamb": "skpml.baselines:PAMB",
    "pml-ni": "skpml.baselines:PMLNI",
    "particle": "skpml.baselines:PARTICLE",
    "particle-map": "skpml.baselines:PARTICLE",
    "pml-lrs": "skpml.baselines:PMLLRS",
    "pml-fp": "skpml.baselines:PMLFP",
    "pml-lc": "skpml.baselines:PMLLC",
    "ridge": "skpml.reference:CandidateRidge",
    "linear-ridge": "skpml.reference:CandidateRidge",
    "ml-knn": "skpml.reference:MLKNN",
    "lift": "skpml.reference:LIFT",
    "chain": "skpml.reference:CandidateChain",
}


@dataclass(frozen=True)
class Method:
    """A method with its facts; calling it makes an unfitted estimator: ``method(max_iter=10)``.

    Parameters
    ----------
    facts : skpml.base.MethodFacts
        Each of its fields is an attribute of the method as well: ``method.year``.
    estimator_class : type
        The class of the estimator.
    """

    facts: MethodFacts
    estimator_class: type

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "facts":
            raise AttributeError(name)
        return getattr(self.facts, name)

    def __call__(self, **parameters: Any) -> Any:
        return self.estimator_class(**{**self.facts.parameters, **parameters})


def list_methods(**tags: Any) -> list[str]:
    """List the names of all methods, or of those with the given tags.

    Parameters
    ----------
    **tags : values of any of :data:`TAGS`
        Such as ``confidences=True`` or ``kind="baseline"``.

    Returns
    -------
    list of str
        Newest first, reference learners last.

    Raises
    ------
    TypeError
        If there is no such tag.
    ValueError
        If a tag has no such value.

    Examples
    --------
    >>> import skpml
    >>> skpml.list_methods(kind="baseline", nonlinear=True, confidences=False)
    ['comes', 'pamb']
    """
    if not tags:
        return list(METHOD_PATHS)
    from skpml.base import Kind, Source

    if unknown := sorted(set(tags) - set(TAGS)):
        raise TypeError(f"there is no tag {unknown[0]!r}; the tags are {', '.join(TAGS)}.")
    for tag, known in (("kind", get_args(Kind)), ("source", (*get_args(Source), None))):
        if tag in tags and tags[tag] not in known:
            raise ValueError(f"{tag} is one of {', '.join(map(repr, known))}, got {tags[tag]!r}.")
    wanted = tags.items()
    return [name for name in METHOD_PATHS if all(getattr(_find(name), tag) == value for tag, value in wanted)]


def get_method(method: str | type) -> Method:
    """Find a method by its name; call the result to make an estimator.

    Parameters
    ----------
    method : str or class
        One of :func:`list_methods`, in any case, with hyphens or underscores; or a subclass of
        :class:`skpml.base.BasePMLClassifier`, whose own facts are returned.

    Returns
    -------
    Method
        With the facts of the method.

    Raises
    ------
    ValueError
        If there is no such method; the message names the nearest.
    """
    if isinstance(method, type):
        from skpml.base import BasePMLClassifier

        if not issubclass(method, BasePMLClassifier):
            raise TypeError(f"{method.__name__} is not a subclass of skpml.base.BasePMLClassifier.")
        facts, name = method._facts, method.__name__
        return Method(replace(facts, name=facts.name or name, title=facts.title or name), method)
    name = str(method).lower().replace("_", "-")
    if name in METHOD_PATHS:
        return _find(name)
    near = get_close_matches(name, METHOD_PATHS, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"there is no method {method!r}; {hint}the methods are {', '.join(METHOD_PATHS)}.")


@cache
def _find(name: str) -> Method:
    module, attribute = METHOD_PATHS[name].split(":")
    cls = getattr(import_module(module), attribute)
    facts = next(facts for facts in (cls._facts, *cls._variants) if facts.name == name)
    return Method(facts, cls)
