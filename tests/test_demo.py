"""The demonstration runs, prints what it found, and writes the pages that it names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"

pytest.importorskip("pydantic")
pytest.importorskip("scikit_posthocs")


@pytest.mark.slow
@pytest.mark.slow
def test_demo(tmp_path):
    done = subprocess.run(
        [sys.executable, str(DEMO)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    planted, dropped, asked, missed, lost = (
        int(re.search(pattern, done.stdout)[1])
        for pattern in (
            r"(\d+) of [\d,]+ tags are wrong",
            r"(\d+) wrong tags were dropped",
            r"(\d+) are left",
            r"(\d+) were missed",
            r"(\d+) correct tags",
        )
    )
    assert dropped + asked + missed == planted
    assert dropped + asked >= 0.95 * planted
    assert lost <= 0.05 * dropped
    floor, pml_ma, candidate_likelihood, ceiling = map(float, re.findall(r"([\d.]+) ±", done.stdout))
    assert floor < pml_ma < candidate_likelihood < ceiling
    pages = re.findall(r"\S+\.html", done.stdout)
    assert len(pages) == 2
    for page in pages:
        assert (tmp_path / page).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert all(len(line) <= 110 for line in done.stdout.splitlines())
