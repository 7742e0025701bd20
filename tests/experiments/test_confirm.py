"""Confirmation of results of older code: what agrees is confirmed, what differs is not, and that is not forgotten."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from bench_helpers import METHODS, Small

from skpml.experiments import Store, confirm_results, expand, find_status, load_suite, merge_folders, run_plan
from skpml.experiments._store import task_of


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def change(small: Small, old: str, new: str) -> None:
    """Change the code of the methods."""
    assert METHODS.count(old) == 1
    (small.folder / "own_methods.py").write_text(METHODS.replace(old, new))


# The same numbers by other code, and other numbers.
SAME = ("self.mark = mark", "self.mark = 1 * mark")
OTHER = ("return super()._fit(X, Y)\n\nclass Broken", "return -super()._fit(X, 1 - Y)\n\nclass Broken")


def states(small: Small) -> dict[str, int]:
    plan = expand(load_suite(small.path))
    return dict(find_status(plan, Store(small.results)).counts)


def run(small: Small) -> None:
    run_plan(expand(load_suite(small.path)), small.results)


def confirm(small: Small) -> list[tuple[int, int, int]]:
    found = confirm_results(expand(load_suite(small.path)), small.results)
    return [(each.n_compared, each.n_confirmed, each.n_older) for each in found]


@pytest.mark.parametrize("packed", [False, True])
def test_equal_results_confirm_the_others(small: Small, packed: bool) -> None:
    small.suite(count=2)
    run(small)
    if packed:
        merge_folders([small.results], small.folder / "packed")
        small.results = small.folder / "packed"
    before = {record["key"]: record for record in Store(small.results).records()}
    change(small, *SAME)
    assert states(small) == {"older": 12}
    small.forget_fits()
    # Two methods, two data sets of three folds.
    assert confirm(small) == [(2, 4, 0), (2, 4, 0)]
    assert small.fits().total() == 4
    plan = expand(load_suite(small.path))
    status = find_status(plan, Store(small.results))
    assert status.complete
    assert status.n_confirmed == 8
    codes = {record["run"]["code"] for record in before.values()}
    for planned in plan.entries:
        record = Store(small.results).read(planned.run.key)
        (old,) = (each for key, each in before.items() if key.partition("-")[0] == planned.run.task)
        assert record["metrics"] == old["metrics"]
        if "confirmed" in record:
            assert record["provenance"] == old["provenance"]
            (note,) = record["confirmed"]
            assert note == {"code": old["run"]["code"], "n_compared": 2, "largest_difference": 0.0}
        else:
            assert record["compared"]["code"] in codes
    assert confirm(small) == [], "nothing is of older code"


def test_a_confirmed_result_can_be_confirmed_again(small: Small) -> None:
    small.suite(count=1, data=1)
    run(small)
    change(small, *SAME)
    confirm(small)
    change(small, "self.mark = mark", "self.mark = mark * 1")
    assert confirm(small) == [(1, 2, 0)]
    # The same run was done again each time.
    assert sorted(len(record.get("confirmed", ())) for record in Store(small.results).records()) == [0, 2, 2]
    assert states(small) == {"done": 3}


def test_a_difference_is_not_confirmed_and_not_forgotten(small: Small) -> None:
    small.suite(count=1)
    run(small)
    change(small, *OTHER)
    (found,) = confirm_results(expand(load_suite(small.path)), small.results)
    assert (found.n_compared, found.n_confirmed, found.n_older) == (2, 0, 4)
    assert found.largest_difference > 0.01
    assert states(small) == {"done": 2, "older": 4}
    # Now the remaining results agree with the present code, but those that were compared first did not.
    plan, store = expand(load_suite(small.path)), Store(small.results)
    run_plan(plan, small.folder / "elsewhere")
    for record in store.records():
        if "compared" not in record:
            (now,) = (each for each in plan.runs if each.task == task_of(record["key"]))
            store._write({**record, "metrics": Store(small.folder / "elsewhere").read(now.key)["metrics"]})
    assert confirm(small) == [(4, 0, 2)]


def test_a_run_that_fails_now_confirms_nothing(small: Small) -> None:
    small.suite(count=1, data=1)
    run(small)
    change(small, "self._note(X)\n        time.sleep(self.seconds)", "raise ZeroDivisionError")
    (found,) = confirm_results(expand(load_suite(small.path)), small.results)
    assert math.isinf(found.largest_difference)
    assert (found.n_confirmed, found.n_older) == (0, 2)
    assert len(Store(small.results).keys()) == 4, "the result of the older code is kept beside the failure"


def test_runs_without_a_result_are_left_alone(small: Small) -> None:
    small.suite(count=1, data=1)
    run(small)
    change(small, *SAME)
    small.suite(count=2, data=2)
    assert confirm(small) == [(1, 2, 0)]
    assert states(small) == {"done": 3, "missing": 9}
