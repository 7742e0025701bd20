"""Every script of the examples folder runs on its own, and prints what its docstring promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
DOCUMENTED = Path(__file__).parents[1] / "docs" / "examples.md"


def shares(text):
    return [float(value) for value in re.findall(r"([\d.]+)%", text)]


def cleaning(output):
    """The more doubtful tags are, the more of them are false."""
    false_overall, *false_among_doubtful = shares(output)[:4]
    assert min(false_among_doubtful) > false_overall


def planted_tags(output):
    """Nearly all planted tags are dropped or asked about, hardly a right one is dropped, and ridge is not better."""
    (planted, _), *counts = (
        [int(word.replace(",", "")) for word in re.findall(r"\b[\d,]*\d\b", line)]
        for line in output.splitlines()[:4]
    )
    (dropped, wrongly_tagged), (_, asked), (_, missed) = counts
    assert wrongly_tagged + asked + missed == planted
    assert wrongly_tagged >= 0.95 * dropped
    assert wrongly_tagged + asked >= 0.95 * planted
    ours, ridge = shares(output)
    assert ours >= max(99, ridge)


def comparison(output):
    """Five metrics, a mean and a spread for each of three learners; the ceiling is above the floor."""
    lines = [line for line in output.splitlines() if "±" in line and ("↑" in line or "↓" in line)]
    assert len(lines) == 5
    for line in lines:
        floor, _, ceiling = (float(value) for value in re.findall(r"([\d.]+) ±", line))
        assert ceiling > floor if "↑" in line else ceiling < floor


def csv_round_trip(output):
    """New photos get the tags by which the example drew its own."""
    assert "is tagged beach, sky" in output
    assert "is tagged night, snow" in output


def noise(output):
    """Four generators, with about the same share of false candidates, all better told apart than by chance."""
    lines = output.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["top_up", "flip", "label_dependent", "instance_dependent"]
    false = shares(output)
    assert max(false) - min(false) < 5
    assert all(float(line.split()[2]) > 0.5 for line in lines)


def solver(output):
    """Without PyTorch it says so; with it, both libraries agree."""
    assert output.startswith("NumPy:")
    if difference := re.search(r"confidences: (\S+)", output):
        assert float(difference[1]) < 1e-8
    else:
        assert "PyTorch is not installed" in output


def own_method(output):
    """It passes the checks, and helps."""
    assert re.match(r"passes 5\d checks of scikit-learn, 17 of scikit-pml", output)
    ridge, own = (float(value) for value in re.findall(r"\b0\.\d+", output))
    assert own > ridge


def deep(output):
    """On these pictures the network is far above the kernel, even above one that was told the truth."""
    ridge, kernel, believing, network = [
        [float(value) for value in line.split()[-2:]] for line in output.splitlines()[1:]
    ]
    assert network[0] > max(ridge[0], kernel[0], believing[0])
    assert network[0] > max(ridge[1], kernel[1]) + 0.1
    assert all(noisy < clean for noisy, clean in (ridge, kernel, believing, network))


EXPECTED = {
    "clean_csv.py": planted_tags,
    "clean_labels.py": cleaning,
    "deep_digits.py": deep,
    "compare_with_floor_and_ceiling.py": comparison,
    "from_csv.py": csv_round_trip,
    "noise_models.py": noise,
    "gpu_solver.py": solver,
    "own_method.py": own_method,
}


# One seed of three is enough to see that it works.
ARGUMENTS = {"deep_digits.py": ["1"]}


def test_every_example_is_tested_and_documented():
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert scripts == {*EXPECTED, "demo.py"}
    included = re.findall(r"literalinclude\} \.\./examples/(\S+)", DOCUMENTED.read_text(encoding="utf-8"))
    assert sorted(included) == sorted(scripts)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_example_is_short_and_explains_itself(name):
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
    assert lines[0].startswith('"""')


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_example_runs(name, tmp_path):
    pytest.importorskip({"from_csv.py": "skops", "deep_digits.py": "torch"}.get(name, "skpml"))
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error::DeprecationWarning:__main__",
            str(EXAMPLES / name),
            *ARGUMENTS.get(name, ()),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=400 if name == "deep_digits.py" else 120,
    )
    assert done.returncode == 0, done.stderr
    EXPECTED[name](done.stdout)
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
