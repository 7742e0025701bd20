"""The directive ``method-table``: every registered method with its tags, made from the registry at build time."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
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


def cells(method: Method) -> dict[str, str]:
    module, name = method.estimator_class.__module__, method.estimator_class.__name__
    public = "skpml" if name in ("PMLMA", "CandidateLikelihood") else ".".join(module.split(".")[:2])
    return {
        "name": f":class:`{method.name} <{public}.{name}>`",
        "year": "–" if method.year is None else str(method.year),
        "idea": method.summary,
        "confidences": yes(method.confidences),
        "nonlinear": yes(method.nonlinear),
        "new rows": yes(method.inductive),
        "dense": yes(method.dense),
        "random": yes(method.random),
        "follows": SOURCES[method.source],
        "reference": method.reference or "–",
    }


class MethodTable(Directive):
    """A row a method, with the columns that the argument names."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        columns = [name.strip() for name in self.arguments[0].split(",")]
        rows = [{name: name for name in columns}, *(cells(get_method(name)) for name in list_methods())]
        lines = [".. list-table::", "   :header-rows: 1", "   :class: method-table", ""]
        for row in rows:
            lines += [f"   {'*' if name == columns[0] else ' '} - {row[name]}" for name in columns]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source="registry"), self.content_offset, node)
        return node.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("method-table", MethodTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
