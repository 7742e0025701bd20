"""A folder of records: one JSON file a run, whole or not there, and a lock a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from skpml._writing import replacing
from skpml.experiments._packing import PACK_NAME, unpack

RECORD_FORMAT = 1

_NEEDED = ("run", "metrics", "provenance", "error")


class Store:
    """The results of runs in a folder, by the key of the run.

    ``runs/KEY.json`` holds a record, ``locks/KEY.lock`` says (by a lock that the kernel takes back when a process dies)
    who is at work, ``damaged/`` keeps files that could not be read. A packed file ``runs.jsonl.gz`` beside them counts as
    so many records, read once; a file in ``runs/`` takes precedence over it.

    Parameters
    ----------
    folder : path-like
        Need not exist; made by :meth:`prepare`.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @property
    def runs(self) -> Path:
        """The folder of records."""
        return self.folder / "runs"

    def prepare(self) -> None:
        """Make the folders, and remove what killed processes left half-written."""
        for name in ("runs", "locks", "damaged"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for rest in self.runs.glob(".*.tmp"):
            # Whoever is still writing it holds the lock of the run.
            with self.claim(rest.name[1:].partition(".")[0]) as claimed:
                if claimed:
                    rest.unlink(missing_ok=True)

    def path(self, key: str) -> Path:
        """Where the record of a run is or will be."""
        return self.runs / f"{key}.json"

    def keys(self) -> set[str]:
        """Keys of the runs that have a file or are packed."""
        if not self.runs.is_dir():
            return set(self._packed)
        # Names alone: this is asked often, and a folder may hold thousands.
        names = os.listdir(self.runs)
        return {name[:-5] for name in names if name.endswith(".json") and not name.startswith(".")}.union(
            self._packed
        )

    def read(self, key: str) -> dict[str, Any] | None:
        """The record of a run; None where there is none or the file is damaged."""
        try:
            content = json.loads(self.path(key).read_bytes())
        except FileNotFoundError:
            content = self._packed.get(key)
        except ValueError:
            return None
        return content if _is_record(content, key) else None

    @cached_property
    def _packed(self) -> dict[str, dict[str, Any]]:
        return unpack(self.folder / PACK_NAME)

    def records(self, keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """All readable records, or those of the given keys, in order of key."""
        found = (self.read(key) for key in sorted(self.keys() if keys is None else set(keys)))
        return [record for record in found if record is not None]

    def damaged(self, keys: Iterable[str]) -> list[str]:
        """Which of these runs have a file that cannot be read."""
        return [key for key in sorted(self.keys() & set(keys)) if self.read(key) is None]

    def set_aside(self, key: str) -> Path | None:
        """Move a damaged file out of the way, so that the run is done again; returns where it went.

        Only whoever has claimed the run may do this.
        """
        if not self.path(key).exists() or self.read(key) is not None:
            return None
        count = 1
        while (target := self.folder / "damaged" / f"{key}.{count}.json").exists():
            count += 1
        os.replace(self.path(key), target)
        return target

    def write(self, record: dict[str, Any]) -> None:
        """Write a record: after this it is there whole, before it is not there at all."""
        text = json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False)
        with (
            replacing(self.path(record["key"]), overwrite=True) as (temporary,),
            temporary.open("w", encoding="utf-8") as file,
        ):
            file.write(text + "\n")
            file.flush()
            # Renaming is safe against a killed process; this is against a failing machine.
            os.fsync(file.fileno())

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Take a run for this process; gives False where another has it. Ends with the block, or with the process.

        Whoever gets the claim must look again whether the record is there: the last holder may have written it.
        """
        lock = FileLock(self.folder / "locks" / f"{key}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()


def mixed_data(records: Iterable[dict[str, Any]]) -> list[str]:
    """Configurations whose results come from different data under one name: a file was replaced between runs."""
    seen: dict[tuple[str, int], set[str]] = {}
    for record in records:
        checksum = record["provenance"].get("data_checksum")
        if record["status"] == "done" and checksum is not None:
            run = record["run"]
            seen.setdefault((run["configuration"], run["seed"]), set()).add(checksum)
    return sorted({configuration for (configuration, _), checksums in seen.items() if len(checksums) > 1})


def _is_record(content: Any, key: str) -> bool:
    return (
        isinstance(content, dict)
        and content.get("format") == RECORD_FORMAT
        and content.get("key") == key
        and content.get("status") in ("done", "failed")
        and all(name in content for name in _NEEDED)
    )
