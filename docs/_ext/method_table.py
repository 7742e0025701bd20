"""The directive ``method-table``: every registered method with its tags, made from the registry at build time."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from skpml import get_method, list_methods
from skpml.registry import Method

SOURCES = {
    "release": "formulas of the authors' release",
    "paper": "the paper",
    "abstract": "reconstructed from the abstract",
    None: "–",
}


def yes(flag: bool) -> str:
    return "yes" if flag else "–"


def cells(method: Method) -> list[str]:
    module, name = method.import_path.split(":")
    public = "skpml" if name == "PMLMA" else ".".join(module.split(".")[:2])
    parameters = ", ".join(f"{key}={value!r}" for key, value in method.parameters.items())
    made_by = f":class:`~{public}.{name}`" + (f" ``({parameters})``" if parameters else "")
    return [
        f"``{method.name}``",
        made_by,
        "–" if method.year is None else str(method.year),
        method.summary,
        yes(method.confidences),
        yes(method.nonlinear),
        yes(method.inductive),
        yes(method.dense),
        yes(method.random),
        SOURCES[method.source],
        method.reference or "–",
    ]


HEADINGS = (
    "name", "class", "year", "idea", "confidences", "nonlinear", "new rows", "dense", "random", "follows", "reference",
)  # fmt: skip


class MethodTable(Directive):
    """A row a method; the option ``:kind:`` keeps one kind, the option ``:columns:`` some columns."""

    option_spec = {"kind": directives.unchanged, "columns": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        wanted = {"kind": self.options["kind"]} if "kind" in self.options else {}
        columns = self.options.get("columns", ", ".join(HEADINGS))
        kept = [HEADINGS.index(name.strip()) for name in columns.split(",")]
        rows = [HEADINGS, *(cells(get_method(name)) for name in list_methods(**wanted))]
        lines = [".. list-table::", "   :header-rows: 1", "   :class: method-table", ""]
        for row in rows:
            lines += [f"   {'*' if place == kept[0] else ' '} - {row[place]}" for place in kept]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source="registry"), self.content_offset, node)
        return node.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("method-table", MethodTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
