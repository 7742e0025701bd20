"""``skpml methods``: what can be fitted, and what each method can do."""

from __future__ import annotations

import json
from typing import Any

import click

from skpml.cli._base import Command
from skpml.cli._console import say, show_table
from skpml.registry import TAGS, Method, get_method, list_methods


@click.command(cls=Command)
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def methods(*, name: str | None, as_json: bool) -> None:
    """List the methods, or tell more of one.

    \b
    Examples:
      skpml methods
      skpml methods pml-ni
    """
    if name is None:
        found = [get_method(each) for each in list_methods()]
        if as_json:
            say(json.dumps([_facts(method) for method in found], indent=1, ensure_ascii=False))
        else:
            _show_all(found)
        return
    try:
        method = get_method(name)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        say(json.dumps(_facts(method), indent=1, ensure_ascii=False))
    else:
        _show(method)


def _facts(method: Method) -> dict[str, Any]:
    names = ("name", "title", "summary", *TAGS, "reference")
    return {name: getattr(method, name) for name in names}


def _show_all(found: list[Method]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("name", "year", "kind", "confidences", "nonlinear", "what it does"):
        table.add_column(title)
    for method in found:
        table.add_row(
            method.name,
            "" if method.year is None else str(method.year),
            method.kind,
            _yes(method.confidences),
            _yes(method.nonlinear),
            method.summary,
        )
    show_table(table)
    say("\n'skpml methods NAME' tells more of one; 'skpml fit DATA --method NAME' uses it.")


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _show(method: Method) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in _facts(method).items():
        if value not in (None, ""):
            table.add_row(name, _yes(value) if isinstance(value, bool) else str(value))
    parameters = method().get_params()
    table.add_row("parameters", ", ".join(f"{name}={value!r}" for name, value in parameters.items()))
    show_table(table)
