"""Every method of the library by name, with what a program wants to know about it.

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

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, get_args

__all__ = ["TAGS", "Kind", "Method", "get_method", "list_methods"]

Kind = Literal["flagship", "own", "baseline", "reference"]
# How much of what is computed stands in print, for the baselines.
Basis = Literal["release", "paper", "abstract"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method that can be had by name. Calling it makes an unfitted estimator: ``method(max_iter=10)``.

    Attributes
    ----------
    name : str
        For programs and the command line, such as ``"pml-ni"``.
    title : str
        For people.
    kind : {"flagship", "own", "baseline", "reference"}
        "own" was made for this library and is not from print. A reference learner believes every candidate: the floor
        that a method has to beat.
    summary : str
        The idea, in half a line.
    inductive : bool
        Scores rows that it was not fitted on.
    confidences : bool
        Says how far it believes each candidate of a training row (``confidences_``).
    dense : bool
        Holds the features in dense form. Sparse features are accepted by all.
    nonlinear : bool
        Its scores can bend with the features, by a kernel map, neighbours or votes. (What P-LENFN's own threshold rule
        takes off a row does not count: it moves all labels of the row alike.)
    random : bool
        Draws at random, so that ``random_state`` matters.
    source : {"release", "paper", "abstract"} or None
        What the implementation follows: formulas of the authors' own release, those of the paper, or a reconstruction
        from the abstract. None for textbook learners and for what is not from print.
    needs : str or None
        Extra of the package that has to be installed for it, such as "torch".
    year : int or None
    reference : str
        Where it was published.
    """

    name: str
    title: str
    kind: Kind
    summary: str
    inductive: bool = True
    confidences: bool
    dense: bool = True
    nonlinear: bool
    random: bool
    source: Basis | None = None
    needs: str | None = None
    year: int | None = None
    reference: str = ""
    import_path: str = field(repr=False)
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, hash=False
    )

    @property
    def estimator_class(self) -> type:
        """The class of the estimator; imported on first use."""
        module, name = self.import_path.split(":")
        found: type = getattr(import_module(module), name)
        return found

    def __call__(self, **parameters: Any) -> Any:
        return self.estimator_class(**{**self.parameters, **parameters})


TAGS = ("kind", "inductive", "confidences", "dense", "nonlinear", "random", "source", "needs", "year")

_METHODS = (
    Method(
        name="pml-ma",
        title="PML-MA",
        kind="flagship",
        summary="low-rank labels aligned with features, globally and between neighbours",
        confidences=True,
        nonlinear=True,
        random=True,
        source="paper",
        year=2026,
        reference="Chen, Lv, Huang, Fang, Wen, Xu, Li. Feature-Label Modal Alignment for Robust Partial Multi-Label "
        "Learning.",
        import_path="skpml.modal_alignment._estimator:PMLMA",
    ),
    Method(
        name="candidate-likelihood",
        title="Candidate likelihood",
        kind="own",
        summary="a probability for every candidate from a model of the noise; sets itself without true labels",
        confidences=True,
        nonlinear=True,
        random=True,
        import_path="skpml.candidate_likelihood._estimator:CandidateLikelihood",
    ),
    Method(
        name="deep-candidate-likelihood",
        title="Deep candidate likelihood",
        kind="own",
        summary="the same with networks that learn their features, for raw images and signals",
        confidences=True,
        nonlinear=True,
        random=True,
        needs="torch",
        import_path="skpml.deep._estimator:DeepCandidateLikelihood",
    ),
    Method(
        name="pml-plr",
        title="PML-PLR",
        kind="baseline",
        summary="pseudo-labels rebuilt from correlated rows",
        confidences=True,
        nonlinear=True,
        random=True,
        source="release",
        year=2025,
        reference="Chen, Li, Han, Li, Gao, Chan, Fang. Pseudo-Label Reconstruction for Partial Multi-Label Learning. "
        "IJCAI 2025, 4896–4904.",
        import_path="skpml.baselines._pml_plr.estimator:PMLPLR",
    ),
    Method(
        name="fbd-pml",
        title="FBD-PML (reimplementation from the abstract)",
        kind="baseline",
        summary="fuzzy confidences refined by feature clusters and by labels in turn",
        confidences=True,
        nonlinear=True,
        random=True,
        source="abstract",
        year=2025,
        reference="Fang, Hu, Hu, Chen, Xie, Han. Fuzzy bifocal disambiguation for partial multi-label learning. Neural "
        "Networks 185:107137, 2025.",
        import_path="skpml.baselines._fbd_pml:FBDPML",
    ),
    Method(
        name="pml-nd",
        title="PML-ND",
        kind="baseline",
        summary="candidates split into true and noise labels, guided by negative labels, with a model for each",
        confidences=True,
        nonlinear=False,
        random=False,
        source="release",
        year=2024,
        reference="Zhong, Shang, Zhao, Zhang, Xu. Negative Label and Noise Information Guided Disambiguation for Partial "
        "Multi-Label Learning. IEEE TMM 26:9920–9935, 2024.",
        import_path="skpml.baselines._pml_nd.estimator:PMLND",
    ),
    Method(
        name="p-lenfn",
        title="P-LENFN",
        kind="baseline",
        summary="labels enhanced by near and far rows; a linear model guided by a small network",
        confidences=True,
        nonlinear=False,
        random=True,
        source="release",
        year=2024,
        reference="Chen, Wu, Han, Fang, Chen, Wen. Partial Multi-label Learning Based On Near-Far Neighborhood Label "
        "Enhancement And Nonlinear Guidance. ACM MM 2024, 3722–3731.",
        import_path="skpml.baselines._p_lenfn.estimator:PLENFN",
    ),
    Method(
        name="pamb",
        title="PAMB (reimplementation from the abstract)",
        kind="baseline",
        summary="binary problems by ternary error-correcting codes, candidates used whole",
        confidences=False,
        nonlinear=True,
        random=True,
        source="abstract",
        year=2023,
        reference="Liu, Jia, Zhang. Towards Enabling Binary Decomposition for Partial Multi-Label Learning. IEEE TPAMI "
        "45(11), 2023.",
        import_path="skpml.baselines._pamb:PAMB",
    ),
    Method(
        name="pml-ni",
        title="PML-NI",
        kind="baseline",
        summary="a low-rank classifier and a sparse identifier of noisy labels, fitted jointly",
        confidences=False,
        nonlinear=False,
        random=False,
        source="release",
        year=2022,
        reference="Xie, Huang. Partial Multi-Label Learning with Noisy Label Identification. IEEE TPAMI "
        "44(7):3676–3687, 2022.",
        import_path="skpml.baselines._pml_ni:PMLNI",
    ),
    Method(
        name="particle",
        title="PARTICLE (PAR-VLS)",
        kind="baseline",
        summary="credible labels by propagation, then pairs of labels vote against a virtual label",
        confidences=True,
        nonlinear=True,
        random=False,
        source="paper",
        year=2020,
        reference="Zhang, Fang. Partial Multi-Label Learning via Credible Label Elicitation. IEEE TPAMI "
        "43(10):3587–3599, 2021 (online 2020).",
        import_path="skpml.baselines._particle:PARTICLE",
        parameters=MappingProxyType({"variant": "vls"}),
    ),
    Method(
        name="particle-map",
        title="PARTICLE (PAR-MAP)",
        kind="baseline",
        summary="credible labels by propagation, then a posterior from the votes of pairs",
        confidences=True,
        nonlinear=True,
        random=False,
        source="paper",
        year=2020,
        reference="Zhang, Fang. Partial Multi-Label Learning via Credible Label Elicitation. IEEE TPAMI "
        "43(10):3587–3599, 2021 (online 2020).",
        import_path="skpml.baselines._particle:PARTICLE",
        parameters=MappingProxyType({"variant": "map"}),
    ),
    Method(
        name="pml-lrs",
        title="PML-LRS",
        kind="baseline",
        summary="candidates as low-rank labels plus sparse noise, with a low-rank classifier",
        confidences=True,
        nonlinear=False,
        random=False,
        source="paper",
        year=2019,
        reference="Sun, Feng, Wang, Lang, Jin. Partial Multi-Label Learning by Low-Rank and Sparse Decomposition. AAAI "
        "2019, 5016–5023.",
        import_path="skpml.baselines._pml_lrs:PMLLRS",
    ),
    Method(
        name="pml-fp",
        title="PML-fp",
        kind="baseline",
        summary="a ranking model and confidences drawn to the nearest label prototype",
        confidences=True,
        nonlinear=False,
        random=False,
        source="paper",
        year=2018,
        reference="Xie, Huang. Partial Multi-Label Learning. AAAI 2018, 4302–4309.",
        import_path="skpml.baselines._pml_fp.estimator:PMLFP",
    ),
    Method(
        name="pml-lc",
        title="PML-lc",
        kind="baseline",
        summary="a ranking model and confidences that follow label correlations",
        confidences=True,
        nonlinear=False,
        random=False,
        source="paper",
        year=2018,
        reference="Xie, Huang. Partial Multi-Label Learning. AAAI 2018, 4302–4309.",
        import_path="skpml.baselines._pml_fp.estimator:PMLLC",
    ),
    Method(
        name="ridge",
        title="Ridge on the candidates",
        kind="reference",
        summary="kernel ridge regression, one output a label: the honest floor",
        confidences=False,
        nonlinear=True,
        random=True,
        import_path="skpml.reference._ridge:CandidateRidge",
    ),
    Method(
        name="linear-ridge",
        title="Linear ridge on the candidates",
        kind="reference",
        summary="ridge regression on the features themselves, for methods without a kernel map",
        confidences=False,
        nonlinear=False,
        random=False,
        import_path="skpml.reference._ridge:CandidateRidge",
        parameters=MappingProxyType({"feature_map": "linear", "gamma": 10.0}),
    ),
    Method(
        name="ml-knn",
        title="ML-kNN on the candidates",
        kind="reference",
        summary="posterior from the number of neighbours that carry a label",
        confidences=False,
        nonlinear=True,
        random=False,
        source="paper",
        year=2007,
        reference="Zhang, Zhou. ML-KNN: A lazy learning approach to multi-label learning. Pattern Recognition "
        "40(7):2038–2048, 2007.",
        import_path="skpml.reference._ml_knn:MLKNN",
    ),
    Method(
        name="lift",
        title="LIFT on the candidates",
        kind="reference",
        summary="a linear machine on distances to clusters of each label's positives and negatives",
        confidences=False,
        nonlinear=True,
        random=True,
        source="paper",
        year=2015,
        reference="Zhang, Wu. LIFT: Multi-Label Learning with Label-Specific Features. IEEE TPAMI 37(1):107–120, 2015.",
        import_path="skpml.reference._lift:LIFT",
    ),
    Method(
        name="chain",
        title="Classifier chain on the candidates",
        kind="reference",
        summary="each label sees the decisions on the labels before it",
        confidences=False,
        nonlinear=True,
        random=True,
        year=2011,
        source="paper",
        reference="Read, Pfahringer, Holmes, Frank. Classifier chains for multi-label classification. Machine Learning "
        "85:333–359, 2011.",
        import_path="skpml.reference._chain:CandidateChain",
    ),
)
_BY_NAME = MappingProxyType({method.name: method for method in _METHODS})


def list_methods(**tags: Any) -> list[str]:
    """Names of the methods, those with the given tags where any are given.

    Parameters
    ----------
    **tags
        Wanted values of any of :data:`TAGS`, such as ``confidences=True`` or ``kind="baseline"``.

    Returns
    -------
    list of str
        Newest first, reference learners last.

    Examples
    --------
    >>> import skpml
    >>> skpml.list_methods(kind="baseline", nonlinear=True, confidences=False)
    ['pamb']
    """
    if unknown := sorted(set(tags) - set(TAGS)):
        raise TypeError(f"there is no tag {unknown[0]!r}; the tags are {', '.join(TAGS)}.")
    for tag, known in (("kind", get_args(Kind)), ("source", (*get_args(Basis), None))):
        if tag in tags and tags[tag] not in known:
            raise ValueError(f"{tag} is one of {', '.join(map(repr, known))}, got {tags[tag]!r}.")
    return [
        method.name
        for method in _METHODS
        if all(getattr(method, tag) == wanted for tag, wanted in tags.items())
    ]


def get_method(name: str) -> Method:
    """A method by its name; call the result to make an estimator.

    Parameters
    ----------
    name : str
        One of :func:`list_methods`; case does not matter, and an underscore is as good as a hyphen.

    Raises
    ------
    ValueError
        If there is no such method; the message names the nearest.
    """
    found = _BY_NAME.get(str(name).lower().replace("_", "-"))
    if found is not None:
        return found
    near = get_close_matches(str(name).lower(), _BY_NAME, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"there is no method {name!r}; {hint}the methods are {', '.join(_BY_NAME)}.")
