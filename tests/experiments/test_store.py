"""The folder of records: whole files, honest reading, one holder a run."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skpml.experiments import Store, merge_folders
from skpml.experiments._store import key_of, pack, task_of, unpack

KEY = key_of({})


def record(key: str = KEY, **changes) -> dict:
    needed = {"run": {}, "metrics": {"auc": 0.5}, "provenance": {}, "error": None}
    return {"format": 1, "key": key, "status": "done", **needed, **changes}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "deep" / "results")
    made._prepare()
    return made


def test_what_is_written_is_read(store: Store) -> None:
    assert store.read(KEY) is None
    store._write(record(metrics={"auc": 0.1 + 0.2}))
    assert store.read(KEY) == record(metrics={"auc": 0.1 + 0.2})
    assert store.keys() == {KEY}
    store._write(record(status="failed"))
    assert [found["status"] for found in store.records()] == ["failed"]


def test_nothing_is_left_of_a_record_that_cannot_be_written(store: Store, monkeypatch) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store._write(record(metrics={"auc": float("nan")}))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        store._write(record())
    assert list(store.runs.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        json.dumps(record())[:-1].encode(),
        b"null",
        json.dumps(record(format=3)).encode(),
        json.dumps(record(key="f" * 24)).encode(),
        json.dumps(record(status="running")).encode(),
        json.dumps({name: value for name, value in record().items() if name != "provenance"}).encode(),
        b"\x80\x81",
        b"[" * 100_000,
        json.dumps(record(run={"seed": 1})).encode(),
        json.dumps(record(run=None)).encode(),
        json.dumps(record(digest="0" * 64)).encode(),
    ],
)
def test_what_is_no_record_counts_as_none_and_is_set_aside(store: Store, content: bytes) -> None:
    store._path(KEY).write_bytes(content)
    assert store.read(KEY) is None
    assert store.records() == []
    assert store.damaged([KEY, "f" * 24]) == [store._path(KEY)]
    first = store._set_aside(KEY)
    assert first is not None
    assert first.read_bytes() == content
    assert store._set_aside(KEY) is None
    store._path(KEY).write_bytes(content)
    assert store._set_aside(KEY) not in (None, first)
    store._write(record())
    assert store._set_aside(KEY) is None
    assert store.damaged([KEY]) == []


def test_a_changed_bit_is_noticed(store: Store) -> None:
    store._write(record(metrics={"auc": 0.5}, history=[1.0, 2.0]))
    whole = store._path(KEY).read_bytes()
    for place, byte in enumerate(whole):
        store._path(KEY).write_bytes(whole[:place] + bytes([byte ^ 1]) + whole[place + 1 :])
        found = store.read(KEY)
        # White space and the name of the digest may change: all else is as it was written.
        kept = found and {
            name: value for name, value in found.items() if value != json.loads(whole)["digest"]
        }
        assert kept in (None, record(metrics={"auc": 0.5}, history=[1.0, 2.0]))


def test_a_record_of_new_code_replaces_that_of_older_code(store: Store) -> None:
    old, new, other = (
        record(key_of(run), run=run, format=2) for run in ({"code": "a"}, {"code": "b"}, {"seed": 1})
    )
    assert task_of(old["key"]) == task_of(new["key"]) == KEY
    store._write(record())
    store._write(other)
    store._write(old)
    assert store.keys() == {old["key"], other["key"]}
    for path in store.runs.iterdir():
        # Something that looks similar is left alone.
        path.with_suffix(".txt").touch()
    store._write({**new, "status": "failed"})
    assert store.keys() == {old["key"], new["key"], other["key"]}
    store._write(new)
    assert store.records() == sorted([new, other], key=lambda each: each["key"])
    assert len(list(store.runs.glob("*.txt"))) == 2


def test_records_without_a_fingerprint_are_readable(store: Store) -> None:
    first = {"method": "own:Mine", "code": {"module_sha256": "0"}}
    key = hashlib.sha256(json.dumps(first, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:24]
    for old in (record(), record(key, run=first)):
        store._write(old)
        assert store.read(old["key"]) == old


def test_hidden_and_foreign_files_are_no_records(store: Store) -> None:
    store._write(record())
    (store.runs / f".{KEY}.json.abc.tmp").write_text("{")
    (store.runs / "notes.txt").write_text("mine")
    assert store.keys() == {KEY}


def test_packed_records_count_until_there_is_a_file(store: Store) -> None:
    run = {"seed": 0}
    other = key_of(run)
    assert other > KEY, "records are ordered by their keys"
    second = record(other, run=run, metrics={"auc": 1 / 3})
    packed = pack([second, record(note="Größe")])
    assert packed == pack([record(note="Größe"), second])
    (store.folder / "runs.jsonl.gz").write_bytes(packed)
    assert store.keys() == {KEY, other}
    assert store.read(KEY) == record(note="Größe")
    assert [found["metrics"]["auc"] for found in store.records()] == [0.5, 1 / 3]
    assert store._set_aside(KEY) is None
    store._write(record(status="failed"))
    assert [found["status"] for found in store.records()] == ["failed", "done"]
    store._path(KEY).write_text("{")
    assert store.damaged([KEY, other]) == [store._path(KEY)]
    empty = Store(store.folder.parent)
    (empty.folder / "runs.jsonl.gz").write_bytes(packed)
    assert empty.keys() == {KEY, other}, "no folder of files is needed"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pack([record()])[:-9], "is damaged"),
        (b"no gzip", "is damaged"),
        (gzip.compress(b"\xff\xfe\xfd"), "is damaged"),
        (gzip.compress(json.dumps(record()).encode() + b"\n{\n"), "line 2: not the record of a run"),
        (gzip.compress(b"[1]\n"), "line 1: not the record of a run"),
    ],
    # gzip writes the time: as a name it would differ between processes.
    ids=["short", "no gzip", "no text", "no record", "no object"],
)
def test_a_damaged_pack_is_an_error_that_names_the_place(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "runs.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"runs.jsonl.gz.*{message}"):
        unpack(path)
    with pytest.raises(ValueError, match=message):
        Store(tmp_path).keys()


@pytest.mark.slow
def test_a_claim_excludes_other_processes_and_ends_with_its_holder(store: Store) -> None:
    holder = subprocess.Popen(
        [
            sys.executable, "-c",
            "import sys, time; from skpml.experiments import Store\n"
            f"with Store(sys.argv[1])._claim({KEY!r}) as claimed:\n"
            "    print(claimed, flush=True); time.sleep(60)",
            str(store.folder),
        ],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    rest = store.runs / f".{KEY}.json.abc.tmp"
    rest.mkdir()
    (rest / f"{KEY}.json").write_text("{")
    with store._claim(KEY) as claimed:
        assert not claimed
    with store._claim("f" * 24) as claimed:
        assert claimed
    store._prepare()
    assert rest.exists(), "its writer is alive"
    holder.kill()
    holder.communicate()
    with store._claim(KEY) as claimed:
        assert claimed
        # Not even this process may claim it again meanwhile.
        with Store(store.folder)._claim(KEY) as second:
            assert not second
    store._prepare()
    assert not rest.exists()


def test_a_folder_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert (store.keys(), store.records(), store.damaged([KEY])) == (set(), [], [])
    assert not store.folder.exists()


def folder_of(path: Path, *records: dict, packed: bool = False) -> Path:
    store = Store(path)
    store._prepare()
    if packed:
        (path / "runs.jsonl.gz").write_bytes(pack(records))
    else:
        for each in records:
            store._write(each)
    return path


def run_record(seed: int, value: float, code: str = "a", **changes) -> dict:
    run = {"method": "ridge", "configuration": "emotions-3", "seed": seed, "fold": 1, "code": code}
    return record(key_of(run), run=run, format=2, metrics={"auc": value, "f1": None}, **changes)


def test_folders_are_merged(tmp_path: Path) -> None:
    shared, done = run_record(0, 0.25), run_record(1, 0.5)
    # Another machine may round differently; a failure there does not count.
    again = run_record(0, 0.25 + 1e-12, note="later")
    failed = run_record(1, 0.5, status="failed")
    older = run_record(1, 0.75, code="b")
    folders = [
        folder_of(tmp_path / "one", shared, failed),
        folder_of(tmp_path / "two", again, done, older, packed=True),
        folder_of(tmp_path / "three", failed),
    ]
    assert merge_folders(folders, tmp_path / "all") == 3
    assert Store(tmp_path / "all").records() == sorted([shared, done, older], key=lambda each: each["key"])
    with pytest.raises(FileExistsError):
        merge_folders(folders, tmp_path / "all")


def test_different_results_of_a_run_are_not_merged(tmp_path: Path) -> None:
    one, two = (
        folder_of(tmp_path / "one", run_record(7, 0.25)),
        folder_of(tmp_path / "two", run_record(7, 0.5)),
    )
    with pytest.raises(ValueError, match=r"ridge on emotions-3, seed 7, fold 1 .*one and .*two") as raised:
        merge_folders([one, two], tmp_path / "all")
    assert run_record(7, 0.5)["key"] in str(raised.value)
    with pytest.raises(ValueError, match=r"no result in .*empty"):
        merge_folders([one, tmp_path / "empty"], tmp_path / "all")
    path = Store(two)._path(run_record(7, 0.5)["key"])
    path.write_text("{")
    with pytest.raises(ValueError, match=f"{path.name} cannot be read"):
        merge_folders([one, two], tmp_path / "all")
    assert not (tmp_path / "all").exists()
