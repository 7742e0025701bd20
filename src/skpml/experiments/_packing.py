"""Many records in one small file: a line of JSON each, in order of key, compressed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PACK_NAME = "runs.jsonl.gz"


def pack(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Records as the content of a packed file; the same records give the same bytes, in whatever order they come."""
    by_key = {record["key"]: record for record in records}
    lines = (
        json.dumps(by_key[key], allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"
        for key in sorted(by_key)
    )
    # The time of packing would change the bytes.
    return gzip.compress("".join(lines).encode("utf-8"), mtime=0)


def unpack(path: Path) -> dict[str, dict[str, Any]]:
    """The records of a packed file by key; none where there is no file.

    Raises
    ------
    ValueError
        If the file is cut off, or a line of it is no record; the line is named.
    """
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    except FileNotFoundError:
        return {}
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is damaged ({error}): put a whole copy in its place, or remove it to do its runs again"
        ) from error
    records: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            record = json.loads(line)
            records[record["key"]] = record
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path}, line {number}: not the record of a run") from error
    return records
