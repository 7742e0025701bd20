"""What ``skpml clean`` writes beside the cleaned file, and what has to be there to write it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skpml import __version__
from skpml.cli._outputs import write_table
from skpml.registry import get_method

if TYPE_CHECKING:
    from skpml.cleaning import Audit, LabelledTable


def check_packages(*, report: Path | None, model: Path | None) -> None:
    """Raise ImportError, before the work, where a package is missing that an output needs."""
    if report is not None:
        from skpml.review import require_page_packages

        require_page_packages()
    if model is not None:
        from skpml.io import require_skops

        require_skops()


def check_tasks(table: LabelledTable, label_studio: Path | None) -> None:
    """Refuse, before the work, labels that Label Studio could not be given."""
    from skpml.review import check_label_names

    if label_studio is not None:
        check_label_names(table.label_names)


def page(table: LabelledTable, found: Audit, chosen: dict[str, Any]) -> str:
    """The review page."""
    from skpml.review import render_review

    settings = [("method", get_method(chosen["method"]).title), ("folds", str(chosen["n_folds"]))]
    for name in ("drop_below", "keep_above", "budget"):
        if name in chosen:
            settings.append((name.replace("_", " "), str(chosen[name])))
    if table.dialect is not None:
        settings.append(("file", str(table.dialect)))
    return render_review(table, found, settings=dict([*settings, ("scikit-pml", __version__)]))


def write_listing(path: Path, table: LabelledTable, found: Audit) -> None:
    """The doubtful tags as a table."""
    header = ["rank", "id", "row", "label", "confidence", "action", "reason"]
    write_table(
        path,
        header,
        (
            [rank, table.ids[doubt.row], doubt.row, table.label_names[doubt.label], f"{doubt.confidence:.4f}",
             doubt.action, str(doubt.reason)]
            for rank, doubt in enumerate(found.doubts, start=1)
        ),
    )  # fmt: skip


def save_classifier(path: Path, table: LabelledTable, found: Audit, update: Callable[..., None]) -> None:
    """A classifier of the cleaned tags; it takes what the table gives: columns, or texts."""
    from sklearn.pipeline import Pipeline

    from skpml.io import save_model

    update(0, None, "training on the cleaned tags")
    model = found.classifier(table.X)
    names = list(table.feature_names) if table.feature_kind == "columns" else None
    if table.text_transformer is not None:
        assert table.text_name is not None
        names = [table.text_name]
        model = Pipeline([("text", table.text_transformer), ("model", model)])
    save_model(
        model, path, label_names=table.label_names, feature_names=names, feature_kind=table.feature_kind
    )


def write_tasks(place: dict[Path, Path], target: Path, table: LabelledTable, found: Audit) -> None:
    """All rows for Label Studio."""
    from skpml.review import write_label_studio

    write_label_studio(table, found, place[target], config=place[target.with_suffix(".xml")], overwrite=True)
