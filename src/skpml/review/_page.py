"""The review page: doubtful tags to keep or drop, in one HTML file that needs no server and no network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from skpml._pages import page_environment
from skpml.review._payload_check import check_payload

# The page's script in the order in which its parts build on each other.
_SCRIPTS = (
    "data.js",
    "csv.js",
    "storage.js",
    "decisions.js",
    "exchange.js",
    "listing.js",
    "dialogs.js",
    "overview.js",
    "detail.js",
    "grid.js",
    "moving.js",
    "commands.js",
    "showing.js",
    "keyboard.js",
    "main.js",
)


def render_review(payload: Mapping[str, Any]) -> str:
    """The whole review page as HTML.

    Parameters
    ----------
    payload : dict
        What the page shows, of plain Python values that JSON can hold:

        * ``title``: what is reviewed, such as the file's name;
        * ``key``: identifies data and run; the browser keeps decisions under it;
        * ``settings``: pairs of name and text;
        * ``overview``: ``rows``, ``labels``, ``candidates``, and the estimate ``wrong`` between ``low`` and ``high``;
        * ``labels``: for each label ``name``, ``candidates``, ``wrong``, ``low``, ``high`` and ``partner``, the label
          that is more often than usual true instead where this one is wrong (or None);
        * ``items``: for each row in doubt ``id``, ``row``, ``text`` (or None), ``image`` (a path relative to the
          page, or None) and ``tags`` (positions in ``labels``);
        * ``cells``: the columns ``item`` and ``label`` (positions), ``confidence``, ``action`` (``"keep"``,
          ``"drop"`` or ``"ask"``) and ``reason``, the most useful cell to check first.

    Returns
    -------
    str
        The same payload gives the same page, to the byte. Text from the payload is shown as text and never as HTML.

    Raises
    ------
    ValueError
        If the payload is not as above; the message names the place.
    ImportError
        If jinja2 is missing.
    """
    check_payload(payload)
    require_jinja2()
    from markupsafe import Markup

    script = _read_script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        page_environment("skpml.review")
        .get_template("review.html.j2")
        .render(
            # A file name may hold bytes that are no text.
            title=payload["title"].encode("utf-8", "replace").decode(),
            data=Markup(_script_safe_json(payload)),
            style=Markup(_template("review.css")),
            script=Markup(script),
            script_digest=digest,
        )
    )


def require_jinja2() -> None:
    """Raise ImportError where a package is missing that the page is made with; it says how to install it."""
    try:
        import jinja2  # noqa: F401
        import markupsafe  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f'the review page needs {error.name}: pip install "scikit-pml[report]"', name=error.name
        ) from error


def _template(*path: str) -> str:
    return files("skpml.review").joinpath("templates", *path).read_text(encoding="utf-8")


def _read_script() -> str:
    """All parts in one scope of their own, so that they share names with each other and with nobody else.

    The scope is asynchronous: a part may wait for the browser, and those after it with it.
    """
    parts = "\n".join(_template("review", name) for name in _SCRIPTS)
    return f'"use strict";\n(async () => {{\n{parts}}})();\n'


def _script_safe_json(payload: Mapping[str, Any]) -> str:
    """JSON that cannot end the script element it stands in, and that UTF-8 can hold."""
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the payload of the review page must be plain values that JSON can hold: {error}"
        ) from error
    # `<` would begin `</script>` and `<!--`; a lone surrogate, as file names can hold, has no UTF-8 form.
    return re.sub("[<\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)
