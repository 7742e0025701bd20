"""Pages from templates: one set of rules for all of them."""

from __future__ import annotations

from typing import Any


def page_environment(package: str) -> Any:
    """A jinja2 environment over the folder ``templates`` of a package; text is escaped, a missing value is an error."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
