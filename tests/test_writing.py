"""Files are replaced all or none, through links, with the permissions that they had."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

from skpml._writing import OutputExistsError, replacing

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has other links, permissions and signals")


def write(*targets: Path, text: str = "new", **options) -> None:
    with replacing(*targets, overwrite=True, **options) as temporary:
        for path in temporary:
            path.write_text(text)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_all_files_as_they_were(tmp_path: Path, error: type[BaseException]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")

    def fail() -> None:
        with replacing(old, new, overwrite=True) as temporary:
            temporary[0].write_text("half")
            (temporary[1].parent / "beside").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert old.read_text() == "old"


def test_a_file_beside_appears_beside_and_replaces_nothing_unasked(tmp_path: Path) -> None:
    (tmp_path / "beside").write_text("old")

    def write_two(overwrite: bool) -> None:
        with replacing(tmp_path / "a", overwrite=overwrite) as (temporary,):
            temporary.write_text("new")
            (temporary.parent / "beside").write_text("new")

    with pytest.raises(OutputExistsError):
        write_two(overwrite=False)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"beside": "old"}
    write_two(overwrite=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "new", "beside": "new"}


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cannot_come_between_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    targets = [tmp_path / name for name in "abc"]
    replace = os.replace

    def interrupted(source: Path, target: Path) -> None:
        signal.raise_signal(number)
        replace(source, target)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    before = signal.signal(number, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            write(*targets)
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)
    assert sorted(tmp_path.iterdir()) == targets


@posix
def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real", tmp_path / "link"
    link.symlink_to(real)
    with pytest.raises(OutputExistsError), replacing(link, overwrite=False):
        pass
    for text in ("created", "replaced"):
        write(link, text=text)
        assert link.is_symlink()
        assert real.read_text() == text


@posix
def test_what_is_not_a_plain_file_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for target in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(FileExistsError, match="not a plain file"), replacing(target, overwrite=True):
            pass
        assert not target.is_file()


@posix
def test_permissions_are_kept_and_those_of_a_source_are_not_widened(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("private")
    source.chmod(0o400)
    write(target, like=source)
    assert mode(target) == 0o600
    target.chmod(0o640)
    write(target, like=source)
    assert mode(target) == 0o640
