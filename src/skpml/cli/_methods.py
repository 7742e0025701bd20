"""``skpml methods``: list the methods, or describe one."""

from __future__ import annotations

import json
from typing import Any

import click

from skpml.cli import _console as ui
from skpml.registry import TAGS, Method, get_method, list_methods


@click.command()
@click.argument("name", required=False)
@ui.json_option
def methods(*, name: str | None, as_json: bool) -> None:
    """List the methods, or describe one.

    \b
    Examples:
      skpml methods
      skpml methods pml-ni
    """
    try:
        found = [get_method(each) for each in ([name] if name else list_methods())]
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        facts = [_facts(method) for method in found]
        ui.say(json.dumps(facts[0] if name else facts, indent=1, ensure_ascii=False))
    elif name:
        _show_method(found[0])
    else:
        _show_all(found)


def _facts(method: Method) -> dict[str, Any]:
    return {name: getattr(method, name) for name in ("name", "title", "summary", *TAGS, "reference")}


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _show_all(found: list[Method]) -> None:
    table = ui.make_table("name", "year", "kind", "confidences", "nonlinear", "description")
    for method in found:
        values = (method.name, method.year, method.kind, method.confidences, method.nonlinear, method.summary)
        table.add_row(*map(_format, values))
    ui.show_table(table)
    ui.say("\n'skpml methods NAME' describes one method; 'skpml fit DATA --method NAME' uses it.")


def _show_method(method: Method) -> None:
    table = ui.make_table()
    for name, value in _facts(method).items():
        if value not in (None, ""):
            table.add_row(name, _format(value))
    parameters = method().get_params()
    table.add_row("parameters", ", ".join(f"{name}={value!r}" for name, value in parameters.items()))
    ui.show_table(table)
