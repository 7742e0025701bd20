"""The page of the demonstration: one file, no request to anywhere."""

from __future__ import annotations

import importlib
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import skpml
from skpml._pages import page_environment
from skpml.demo import figures
from skpml.demo.job import METHODS, DemoResult
from skpml.demo.verdict import summarise, verdict

_GENERATOR = '<meta name="generator" content="scikit-pml demo">'
_SHOWN_ROWS = 8
_PACKAGES = ("numpy", "scipy", "sklearn", "matplotlib")


@dataclass(frozen=True)
class _Tag:
    name: str
    confidence: float
    is_true: bool


@dataclass(frozen=True)
class _Card:
    """One image with its candidates, the most believed first."""

    row: int
    pixels: list[tuple[int, int, float]]
    tags: list[_Tag]


def render_page(result: DemoResult) -> str:
    """Return the whole page as HTML.

    Parameters
    ----------
    result : DemoResult
        What `skpml.demo.run_demo` returned. The same result gives the same page, to the byte.
    """
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(
            'the report needs jinja2 and matplotlib: pip install "scikit-pml[report]"'
        ) from error
    environment = page_environment("skpml.demo")
    headline, grounds = verdict(result)
    safe = {name: Markup(draw(result)) for name, draw in _FIGURES.items()}
    return environment.get_template("demo.html.j2").render(
        generator=Markup(_GENERATOR),
        result=result,
        statistics=result.dataset.statistics(),
        headline=headline,
        grounds=grounds,
        summaries=summarise(result),
        methods=METHODS,
        figures=safe,
        cards=_cards(result),
        has_noise=not np.isnan(result.denoising_auc["pml-ma"]),
        parameters=_parameters(result.model),
        versions=_versions(),
    )


_FIGURES = {
    "convergence": figures.convergence,
    "confidences": figures.confidence_distribution,
    "sweep": figures.noise_sweep,
    "penalties": figures.penalty_sweep,
    "labels": figures.denoising_by_label,
}


def is_demo_page(path: str | Path) -> bool:
    """Whether a file is a page that the demonstration wrote, and may write again."""
    try:
        with Path(path).open("rb") as file:
            return _GENERATOR.encode() in file.read(1000)
    except OSError:
        return False


def _cards(result: DemoResult) -> list[_Card]:
    """A few rows with false candidates, drawn by the seed and not chosen."""
    dataset, confidences = result.dataset, result.model.confidences_
    truth = np.asarray(dataset.truth)
    noisy = np.flatnonzero((dataset.candidates > truth).any(axis=1))
    rng = np.random.default_rng(result.seed)
    rows = np.sort(rng.choice(noisy, size=min(_SHOWN_ROWS, noisy.size), replace=False))
    cards = []
    for row in rows.tolist():
        columns = np.flatnonzero(dataset.candidates[row])
        columns = columns[np.argsort(-confidences[row, columns], kind="stable")]
        tags = [
            _Tag(dataset.label_names[column], float(confidences[row, column]), bool(truth[row, column]))
            for column in columns.tolist()
        ]
        cards.append(_Card(row, _pixels(dataset.X[row]), tags))
    return cards


def _pixels(values: Any) -> list[tuple[int, int, float]]:
    """Column, row and darkness of the pixels that are not blank."""
    image = np.asarray(values).reshape(8, 8)
    return [
        (int(column), int(row), round(float(image[row, column]) / 16, 3))
        for row, column in np.argwhere(image > 0)
    ]


def _parameters(model: Any) -> str:
    shown = ("lam", "alpha", "beta", "gamma", "n_neighbors", "feature_map", "basis", "max_iter", "tol")
    parameters = model.get_params()
    return ", ".join(f"{name}={parameters[name]!r}" for name in shown)


def _versions() -> dict[str, str]:
    titles = {"sklearn": "scikit-learn"}
    versions = {"scikit-pml": skpml.__version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        versions[titles.get(package, package)] = importlib.import_module(package).__version__
    return versions
