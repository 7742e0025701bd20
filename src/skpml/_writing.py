"""Writing files whole or not at all, and what all HTML pages share: templates, an inline script, data as JSON."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any


class OutputExistsError(FileExistsError):
    """An output exists and must not be replaced; `problem` and `what` word that for the command line."""

    def __init__(self, problem: str, what: str = "it") -> None:
        super().__init__(f"{problem}: pass overwrite=True to replace {what}")
        self.problem, self.what = problem, what


@contextmanager
def replacing(*targets: Path, overwrite: bool, like: Path | None = None) -> Iterator[list[Path]]:
    """Give one temporary path per target; on success all files appear at their targets, on error nothing is left.

    Temporary files have the names of their targets, in a hidden folder beside them; files that a writer adds beside a
    temporary file appear beside its target. A link is followed. A file that is replaced keeps its permissions; a new one
    can be read by nobody who cannot read the file `like`.
    """
    places = [_find_place(target, overwrite=overwrite) for target in targets]
    token = uuid.uuid4().hex
    folders: dict[Path, Path] = {}
    for place in places:
        folders.setdefault(place.parent, place.with_name(f".{place.name}.{token}.tmp"))
    temporary = [folders[place.parent] / place.name for place in places]
    try:
        for folder in folders.values():
            folder.mkdir()
        yield temporary
        written = dict(zip(temporary, places, strict=True))
        for parent, folder in folders.items():
            for path in sorted(set(folder.iterdir()).difference(written)):
                written[path] = _find_place(parent / path.name, overwrite=overwrite)
        for path, place in written.items():
            _set_permissions(path, place, like)
        with _deferring_signals():
            for path, place in written.items():
                os.replace(path, place)
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)


def _find_place(target: Path, *, overwrite: bool) -> Path:
    """Return where a target is written: links are followed, and only plain files are replaced."""
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: the folder {target.parent} does not exist")
    if os.path.lexists(target) and not overwrite:
        raise OutputExistsError(f"{target} exists already")
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{target} links to {place}, but that folder does not exist")
    if place.exists() and not place.is_file():
        raise FileExistsError(f"{target} is not a plain file, so it cannot be replaced; name another")
    return place


def _set_permissions(path: Path, place: Path, like: Path | None) -> None:
    if place.exists():
        shutil.copymode(place, path)
    elif like is not None and path.is_file():
        owner = stat.S_IRUSR | stat.S_IWUSR
        path.chmod(stat.S_IMODE(path.stat().st_mode & like.stat().st_mode) | owner)


@contextmanager
def _deferring_signals() -> Iterator[None]:
    """Let Ctrl-C and requests to stop wait until the end of the block, so that it is done as a whole."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # None is a handler that was not installed from Python and cannot be restored.
    handled = [number for number in numbers if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, lambda found, _: caught.append(found)) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(caught):
            signal.raise_signal(number)


@contextmanager
def replacing_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary folder; on success it becomes the target, on error nothing is left.

    A target that exists keeps its other files.
    """
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: the folder {target.parent} does not exist")
    if target.exists() and not target.is_dir():
        raise FileExistsError(f"{target} is a file; name a folder")
    if target.is_dir() and any(target.iterdir()) and not overwrite:
        raise OutputExistsError(f"{target} is not empty", "files in it")
    # Beside or inside the target, so that moving is renaming.
    place = target if target.is_dir() else target.parent
    temporary = place / f".{target.name}.{uuid.uuid4().hex}.tmp"
    temporary.mkdir()
    try:
        yield temporary
        if not target.exists():
            temporary.rename(target)
            return
        for path in sorted(temporary.rglob("*")):
            place = target / path.relative_to(temporary)
            if path.is_dir():
                place.mkdir(exist_ok=True)
            else:
                os.replace(path, place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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
    """Return a jinja2 environment for ``templates`` of a package: text is escaped, a missing value is an error."""
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
