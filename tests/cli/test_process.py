"""The command as a process of its own: exit codes, Ctrl-C, missing dependencies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import skpml

from .conftest import Run

pytestmark = pytest.mark.slow

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
COMMAND = [sys.executable, "-c", "from skpml.cli import main; main()"]


def process(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )


def test_exit_codes_and_streams(tmp_path: Path) -> None:
    good = process("data", "info", "digits", folder=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert "1,797" in good.stdout
    bad = process("fit", "nothing.csv", "-o", "a.skpml", folder=tmp_path)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "error: there is no file nothing.csv\n"
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    listing = subprocess.Popen(
        [*COMMAND, "data", "list"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert listing.stdout is not None
    listing.stdout.close()
    _, stderr = listing.communicate(timeout=60)
    assert b"Traceback" not in stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a single process")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_stop_leaves_nothing_behind(tmp_path: Path, name: str, code: int) -> None:
    arguments = (
        "fit",
        "large.npz",
        "-o",
        "a.skpml",
        "--method",
        "pml-ma",
        "-P",
        "tol=0",
        "-P",
        "max_iter=100000",
    )
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "large.npz", X=rng.normal(size=(4000, 60)), Y_candidate=rng.random((4000, 60)) < 0.5)
    # Who started the tests may have made them ignore signals, as nohup does.
    handler = "default_int_handler" if name == "SIGINT" else "SIG_DFL"
    script = (
        f"import signal; signal.signal(signal.{name}, signal.{handler}); "
        "from skpml.cli import main; print('ready', flush=True); main()"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    time.sleep(3)
    assert running.poll() is None, running.communicate()
    running.send_signal(getattr(signal, name))
    stdout, stderr = running.communicate(timeout=60)
    assert running.returncode == code
    assert stdout == ""
    assert stderr.strip() == "error: interrupted; no file is left half-written"
    assert [path.name for path in tmp_path.iterdir()] == ["large.npz"]


def test_ctrl_c_while_writing_leaves_nothing_behind(
    run: Run, folder: Path, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("skpml.tables.write_rows", interrupted)
    before = sorted(folder.iterdir())
    result = run(
        "fit", photos, "--tags", "tags", "--ignore", "file", "--ignore", "checked", "-o", "a.skpml",
        "--confidences", "c.csv",
    )  # fmt: skip
    assert result.exit_code == 130
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_missing_dependencies_are_named(missing: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from skpml.cli import main; main()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    assert 'pip install "scikit-pml[cli]"' in found.stderr


def test_help_loads_nothing_heavy() -> None:
    # The package's own __init__ is left out: here counts what the command adds to it.
    code = f"""
import sys, types
package = types.ModuleType("skpml")
package.__path__, package.__version__ = [{str(Path(skpml.__file__).parent)!r}], "0"
sys.modules["skpml"] = package
import skpml.cli._app
heavy = ("sklearn", "scipy", "pandas", "matplotlib", "skops", "jinja2")
print([name for name in heavy if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert found.stdout == "[]\n", found.stderr
