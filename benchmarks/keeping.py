"""Keep results whole: a run of a part never replaces the results of a whole one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from skpml._writing import replacing


def write_if_whole(
    path: Path, text: str, parser: argparse.ArgumentParser, options: argparse.Namespace, *selecting: str
) -> None:
    """Write a table unless an option that selects a part of the runs differs from its default."""
    changed = [name for name in selecting if getattr(options, name) != parser.get_default(name)]
    if changed:
        print(f"{path.name} is unchanged, because this was not the whole run (see {', '.join(changed)}).")
        return
    path.parent.mkdir(exist_ok=True)
    with replacing(path, overwrite=True) as (temporary,):
        temporary.write_text(text, encoding="utf-8")
    print(f"wrote {path}")


def merge_rows(kept: Iterable[dict], fresh: Iterable[dict], key: Sequence[str]) -> list[dict]:
    """Return the kept rows with those of equal key replaced, then the new ones."""
    rows = {tuple(str(row[name]) for name in key): row for row in kept}
    rows.update({tuple(str(row[name]) for name in key): row for row in fresh})
    return list(rows.values())
