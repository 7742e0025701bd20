"""What all HTML pages share: templates, an inline script with its digest, and data as JSON."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import import_module
from importlib.resources import files
from typing import Any


def require_packages(purpose: str, extra: str, *names: str) -> None:
    """Import packages by name; an ImportError says what needs them and which extra brings them."""
    for name in names:
        try:
            import_module(name)
        except ImportError as error:
            raise ImportError(
                f'{purpose} needs {error.name}: pip install "scikit-pml[{extra}]"', name=error.name
            ) from error


def page_environment(package: str) -> Any:
    """Return a jinja2 environment for the folder ``templates`` of a package.

    Text is escaped, and a missing value is an error.
    """
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def inline_files(package: str, *, style: str, scripts: tuple[str, ...]) -> dict[str, Any]:
    """Read style and scripts of a page from ``templates``: what its template inserts as they are.

    Scripts are ES modules. A page holds all of them in one script element, so their import statements and the word
    ``export`` are removed. ``script_digest`` is for the content security policy, which allows this script alone.
    """
    from markupsafe import Markup

    folder = files(package).joinpath("templates")
    modules = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in scripts)
    script = re.sub(r"^import [^;]*;\n|^export ", "", modules, flags=re.MULTILINE)
    return {
        "style": Markup(folder.joinpath(style).read_text(encoding="utf-8")),
        "script": Markup(script),
        "script_digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }


def script_safe_json(value: Any) -> Any:
    """Return JSON that cannot end the script element around it and that UTF-8 can encode."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # `<` would begin `</script>` and `<!--`; a lone surrogate, as file names can hold, has no UTF-8 form.
    return Markup(re.sub("[<\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text))
