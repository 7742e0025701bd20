"""A folder of records: one JSON file per run, written atomically, and one lock per run."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from skpml._writing import replacing, replacing_folder

RECORD_FORMAT = 2
_KEY_DIGITS = 24
PACK_NAME = "runs.jsonl.gz"

# Metrics of the same run on two machines differ by less.
_EQUAL = 1e-9
_REQUIRED = ("run", "metrics", "provenance", "error")


class Store:
    """The results of runs in a folder, by the key of the run.

    ``runs/KEY.json`` contains a record, ``locks/KEY.lock`` is locked while a process works on the run (the kernel
    releases it when the process dies), ``damaged/`` keeps files that could not be read. A packed file
    ``runs.jsonl.gz`` beside them holds many records and is read once; a file in ``runs/`` takes precedence. The key
    contains a fingerprint of the code; the record of a finished run replaces the files of older code.

    Parameters
    ----------
    folder : path-like
        Need not exist.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @property
    def runs(self) -> Path:
        """The folder of records."""
        return self.folder / "runs"

    def _prepare(self) -> None:
        """Create the folders and remove unfinished files of killed processes."""
        for name in ("runs", "locks", "damaged"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for rest in self.runs.glob(".*.tmp"):
            # A process that is still writing it holds the lock of the run.
            with self._claim(rest.name[1:].partition(".")[0]) as claimed:
                if claimed:
                    shutil.rmtree(rest, ignore_errors=True)

    def _path(self, key: str) -> Path:
        return self.runs / f"{key}.json"

    def keys(self) -> set[str]:
        """Return the keys of all runs with a record, without reading them.

        Returns
        -------
        set of str
            Keys.
        """
        return {path.stem for path in self.runs.glob("[!.]*.json")}.union(self._packed)

    def read(self, key: str) -> dict[str, Any] | None:
        """Read the record of a run.

        Parameters
        ----------
        key : str
            Key of the run.

        Returns
        -------
        dict or None
            None if there is no record or its file is damaged.
        """
        try:
            content = json.loads(self._path(key).read_bytes())
        except FileNotFoundError:
            content = self._packed.get(key)
        except (ValueError, RecursionError):
            return None
        if isinstance(content, dict) and "digest" in content:
            content = {**content}
            if content.pop("digest") != _digest(content):
                return None
        return content if _is_record(content, key) else None

    @cached_property
    def _packed(self) -> dict[str, dict[str, Any]]:
        return unpack(self.folder / PACK_NAME)

    def records(self, keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Read all readable records, or those of some runs.

        Parameters
        ----------
        keys : iterable of str, optional
            Keys of the runs.

        Returns
        -------
        list of dict
            Ordered by key.
        """
        found = (self.read(key) for key in sorted(self.keys() if keys is None else set(keys)))
        return [record for record in found if record is not None]

    def damaged(self, keys: Iterable[str]) -> list[Path]:
        """Find files that cannot be read.

        Parameters
        ----------
        keys : iterable of str
            Keys of the runs.

        Returns
        -------
        list of Path
            Damaged files of these runs.
        """
        return [self._path(key) for key in sorted(self.keys() & set(keys)) if self.read(key) is None]

    def _set_aside(self, key: str) -> Path | None:
        """Move a damaged file to ``damaged/`` and return its new path; the run must be claimed."""
        if not self._path(key).exists() or self.read(key) is not None:
            return None
        count = 1
        while (target := self.folder / "damaged" / f"{key}.{count}.json").exists():
            count += 1
        os.replace(self._path(key), target)
        return target

    def _write(self, record: dict[str, Any]) -> None:
        """Write a record atomically, with a digest that reveals damage."""
        signed = {**record, "digest": _digest(record)}
        text = json.dumps(signed, indent=1, allow_nan=False, ensure_ascii=False)
        with (
            replacing(self._path(record["key"]), overwrite=True) as (temporary,),
            temporary.open("w", encoding="utf-8") as file,
        ):
            file.write(text + "\n")
            file.flush()
            # Renaming protects against a killed process; this protects against a failing machine.
            os.fsync(file.fileno())
        if record["status"] == "done":
            # Results of older code are kept until there is one of the present code, and a failure is none.
            for path in self.runs.glob(f"{task_of(record['key'])}*.json"):
                if path.stem != record["key"]:
                    path.unlink(missing_ok=True)

    @contextmanager
    def _claim(self, key: str) -> Iterator[bool]:
        """Lock a run until the block or the process ends; gives False if another process holds the lock.

        The holder must check again for a record: the previous holder may have written it.
        """
        try:
            held = FileLock(self.folder / "locks" / f"{key}.lock").acquire(timeout=0)
        except Timeout:
            yield False
            return
        with held:
            yield True


def key_of(run: Mapping[str, Any]) -> str:
    """Return the identity of a run: 24 hexadecimal digits of the SHA-256 of what is done, and those of the code."""
    task = _digest({name: value for name, value in run.items() if name != "code"})[:_KEY_DIGITS]
    return f"{task}-{run['code']}" if run.get("code") else task


def task_of(key: str) -> str:
    """Return the part of a key that does not depend on the code."""
    return key.partition("-")[0]


def _digest(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _is_record(content: Any, key: str) -> bool:
    if not isinstance(content, dict) or not isinstance(run := content.get("run"), dict):
        return False
    # The first format had no fingerprint of the code, but a digest of the module of a custom method.
    identities: dict[Any, str] = {1: _digest(run)[:_KEY_DIGITS], RECORD_FORMAT: key_of(run)}
    return (
        content.get("key") == key
        and identities.get(content.get("format")) == key
        and content.get("status") in ("done", "failed")
        and all(name in content for name in _REQUIRED)
    )


def merge_folders(folders: Sequence[str | Path], target: str | Path) -> int:
    """Merge folders of results into a new folder, as one packed file.

    Parameters
    ----------
    folders : sequence of path-like
        Folders of results; packed runs are read too.
    target : path-like
        The new folder. It must be empty or not exist, and appears only when it is complete.

    Returns
    -------
    int
        Number of results in the new folder.

    Raises
    ------
    ValueError
        If a folder has no result or a damaged file, or a run has different results in two folders.
    FileExistsError
        If the target has files.
    """
    merged: dict[str, tuple[dict[str, Any], Path]] = {}
    for folder in map(Path, folders):
        store = Store(folder)
        keys = store.keys()
        if not keys:
            raise ValueError(f"there is no result in {folder}")
        if damaged := store.damaged(keys):
            raise ValueError(f"{damaged[0]} cannot be read: remove it, and its run can be repeated")
        for record in store.records(keys):
            known, place = merged.get(record["key"], (None, folder))
            if known is None or known["status"] == "failed":
                merged[record["key"]] = (record, folder)
            elif record["status"] == "done" and not _agree(known["metrics"], record["metrics"]):
                run = record["run"]
                raise ValueError(
                    f"{run['method']} on {run['configuration']}, seed {run['seed']}, fold {run['fold']} has different "
                    f"results in {place} and {folder} (key {record['key']}): remove one of them"
                )
    with replacing_folder(Path(target), overwrite=False) as temporary:
        (temporary / PACK_NAME).write_bytes(pack(record for record, _ in merged.values()))
    return len(merged)


def _agree(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> bool:
    """Whether two runs have the same metrics; machines may differ in the last digits of a number."""
    if set(one) != set(other):
        return False
    pairs = [(one[name], other[name]) for name in one]
    return all(a == b or (a is not None and b is not None and abs(a - b) <= _EQUAL) for a, b in pairs)


def pack(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Compress records, one line of JSON each; the same records give the same bytes in any order."""
    by_key = {record["key"]: record for record in records}
    lines = (
        json.dumps(record, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"
        for record in sorted(by_key.values(), key=_describe_place)
    )
    # The time of packing would change the bytes.
    return gzip.compress("".join(lines).encode("utf-8"), mtime=0)


def _describe_place(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what to sort records by: neighbors that have much in common compress to a fifth less than by key."""
    run = record["run"]
    return *(str(run.get(name)) for name in ("configuration", "seed", "fold", "method")), record["key"]


def unpack(path: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a packed file by key; raise ValueError if it is damaged."""
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    except FileNotFoundError:
        return {}
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is damaged ({error}): replace it by an intact copy, or remove it to repeat its runs"
        ) from error
    records: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            record = json.loads(line)
            records[record["key"]] = record
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: not the record of a run") from error
    return records
