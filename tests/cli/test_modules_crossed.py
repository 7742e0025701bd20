"""How many modules one ``skpml clean`` passes through: more means that following what it does takes longer."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import FrameType
from typing import Any

import pytest

import skpml
from skpml.cli import main

MOST_MODULES = 39


@pytest.mark.slow
@pytest.mark.slow
def test_clean_crosses_few_modules(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only functions that the command itself calls count, not those that run on import.
    for module in walk_packages(skpml.__path__, "skpml."):
        with suppress(ImportError):
            import_module(module.name)
    root = str(Path(skpml.__file__).parent)
    crossed = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root) and code.co_filename.endswith(".py"):
            crossed.add(code.co_filename[len(root) + 1 :])

    columns = ["--id", "file", "--tags", "tags", "--ignore", "checked"]
    arguments = [str(photos), *columns, "-o", "cleaned.csv", "--report", "review.html"]
    monkeypatch.setattr(sys, "argv", ["skpml", "clean", *arguments])
    before = sys.getprofile(), threading.getprofile()
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])
    assert ended.value.code == 0
    # The flow itself was seen, from the command to the page.
    assert {"cli/_clean.py", "cleaning/_audit.py", "review/_page.py"} <= crossed
    assert len(crossed) <= MOST_MODULES, "\n".join(sorted(crossed))
