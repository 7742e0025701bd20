"""Tables of results: sums by hand, what is missing stays missing, and the paper's own ranks come out."""

from __future__ import annotations

import copy
import math
import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from bench_helpers import problem
from report_helpers import (
    CONFIGURATIONS,
    METHODS,
    gather,
    make_failure,
    make_record,
    make_records,
    make_suite,
    published,
)

from skpml.datasets import write_npz
from skpml.experiments import (
    Store,
    Suite,
    SuiteError,
    collect,
    compare_methods,
    expand,
    export_tables,
    find_status,
    load_suite,
    measure_costs,
    noise_gap,
    rank_methods,
)
from skpml.experiments._export import _export_ranks as export_ranks
from skpml.experiments._export import _export_table as export_table
from skpml.experiments._export import mark_best, table_notes

METRIC = "average_precision"


def small_suite(**changed: Any) -> Suite:
    """Three methods, a floor and a ceiling on four configurations, two folds."""
    methods = [
        {"name": "pml-ma"},
        {"name": "pml-ni"},
        {"name": "pamb"},
        {"name": "ridge", "label": "floor", "role": "floor"},
        {"name": "ridge", "label": "ceiling", "role": "ceiling"},
    ]
    content = {"configurations": list(CONFIGURATIONS[1:5]), "folds": 2, "methods": methods}
    return make_suite(**{**content, **changed})


def with_values(
    suite: Suite, values: dict[str, dict[str, float]], metric: str = METRIC
) -> list[dict[str, Any]]:
    """Records in which every fold of a method on a configuration has the same value."""
    return [
        make_record(suite, label, configuration, fold, metrics={metric: value})
        for label, row in values.items()
        for configuration, value in row.items()
        for fold in range(suite.folds)
    ]


def without(records: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [r for r in records if any(r["run"][name] != value for name, value in wanted.items())]


def test_mean_and_standard_deviations_over_folds_and_over_seeds() -> None:
    suite = small_suite(seeds=[0, 7, 8])
    records = make_records(suite)
    by_seed: dict[int, list[float]] = {}
    for record in records:
        if (record["run"]["method"], record["run"]["configuration"]) == ("pml-ni", "emotions-3"):
            by_seed.setdefault(record["run"]["seed"], []).append(record["metrics"][METRIC])
    entry = gather(suite, records).table(METRIC).loc["emotions-3", "pml-ni"]
    assert entry.runs == entry.expected == 6
    mean = statistics.mean(value for values in by_seed.values() for value in values)
    assert entry["mean"] == pytest.approx(mean, abs=1e-15)
    # All seeds have the same number of folds: the mean of their variances.
    within = statistics.mean(statistics.variance(values) for values in by_seed.values())
    assert entry["fold_std"] == pytest.approx(math.sqrt(within), abs=1e-15)
    between = statistics.stdev(statistics.mean(values) for values in by_seed.values())
    assert entry["seed_std"] == pytest.approx(between, abs=1e-15)
    assert entry["state"] == "done"


def test_one_seed_has_no_deviation_over_seeds_and_one_fold_none_over_folds() -> None:
    suite = small_suite()
    entry = gather(suite, make_records(suite)).table(METRIC).loc["emotions-3", "pml-ni"]
    assert math.isnan(entry["seed_std"])
    assert entry["fold_std"] > 0
    suite = small_suite(seeds=[0, 7], only_folds=[0])
    entry = gather(suite, make_records(suite)).table(METRIC).loc["emotions-3", "pml-ni"]
    assert math.isnan(entry["fold_std"])
    assert entry["seed_std"] > 0


def test_the_order_of_the_records_and_their_times_do_not_matter() -> None:
    suite = small_suite()
    records = make_records(suite)
    shuffled = copy.deepcopy(records)
    random.Random(3).shuffle(shuffled)
    for record in shuffled:
        record["fit_seconds"] *= 3
        record["provenance"]["started"] = "2031-01-01"
    results = [gather(suite, given) for given in (records, shuffled)]
    texts = [export_table(r, METRIC, "csv") + export_ranks(r, "csv") for r in results]
    assert texts[0] == texts[1]


def test_floor_and_ceiling_share_a_name_and_are_told_apart_by_what_they_learn_from() -> None:
    suite = small_suite()
    results = gather(suite, make_records(suite))
    assert {r["run"]["trained_on"] for r in results.cells["floor", "emotions-3"].records} == {"candidates"}
    assert {r["run"]["trained_on"] for r in results.cells["ceiling", "emotions-3"].records} == {"truth"}


def test_records_of_other_settings_are_counted_and_left_out() -> None:
    suite = small_suite()
    own = make_records(suite)
    others = [
        make_record(suite, "pml-ni", "emotions-3", 0, parameters={"max_iter": 3}, metrics={METRIC: 0.0}),
        make_record(small_suite(folds=5), "pml-ni", "emotions-3", 0, metrics={METRIC: 0.0}),
        make_record(suite, "pml-ni", "emotions-3", 0, seed=9, metrics={METRIC: 0.0}),
        make_record(make_suite(folds=2), "pml-ma", "emotions-3", 0, metrics={METRIC: 0.0}),
    ]
    results = gather(suite, own + others)
    assert results.n_records == len(own) + 4
    assert results.n_other == 4
    assert results.table(METRIC).equals(gather(suite, own).table(METRIC))


def test_parameters_by_data_and_only_some_folds() -> None:
    methods = [
        {
            "name": "pml-ma",
            "by_data": {"emotions": {"ridge_weight": 10.0}, "emotions-4": {"low_rank_weight": 2.0}},
        }
    ]
    suite = small_suite(methods=methods, folds=5, only_folds=[1, 3])
    record = {fold: make_record(suite, "pml-ma", "emotions-4", fold) for fold in range(5)}
    assert record[0]["run"]["parameters"] == {"ridge_weight": 10.0, "low_rank_weight": 2.0}
    cell = gather(suite, record.values()).cells["pml-ma", "emotions-4"]
    assert [r["run"]["fold"] for r in cell.records] == [1, 3]
    assert cell.state == "done"


def test_results_of_other_contents_of_a_data_file_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "suite.toml"
    path.write_text('name = "s"\nconfigurations = ["one.npz"]\nfolds = 2\n[[methods]]\nname = "ridge"\n')

    def finished() -> list[dict[str, Any]]:
        record = {"status": "done", "metrics": {METRIC: 0.5}}
        return [{**record, "key": run.key, "run": run.content} for run in expand(load_suite(path)).runs]

    write_npz(problem(0), tmp_path / "one.npz")
    records = finished()
    write_npz(problem(1), tmp_path / "one.npz", overwrite=True)
    records += finished()
    assert len(records) == 4
    results = collect(expand(load_suite(path)), records)
    assert (len(results.cells["ridge", "one.npz"].records), results.n_other) == (2, 2)
    (tmp_path / "one.npz").unlink()
    assert list(collect(expand(load_suite(path)), records).absent) == ["one.npz"]


def test_results_of_older_code_are_used_and_counted_until_there_are_new_ones() -> None:
    suite = small_suite()
    new = make_records(suite)
    place = {"suite": suite, "label": "pml-ni", "configuration": "emotions-3"}

    def older(fold: int, code: str | None, started: str, value: float) -> dict[str, Any]:
        return make_record(
            **place, fold=fold, code=code, provenance={"started": started}, metrics={METRIC: value}
        )

    # The first format had no fingerprint.
    old = [older(0, None, "2025", 0.25), older(0, "0123", "2024", 0.0), older(1, "0123", "2024", 0.75)]
    rest = [r for r in new if (r["run"]["method"], r["run"]["configuration"]) != ("pml-ni", "emotions-3")]
    results = gather(suite, [*old, *rest])
    entry = results.table(METRIC).loc["emotions-3", "pml-ni"]
    assert (entry["mean"], entry["runs"], entry["older"], entry["state"]) == (0.5, 2, 2, "done")
    assert (results.older, results.n_other) == ({"pml-ni": 2}, 0)
    assert any("pml-ni (2 runs)" in note for note in table_notes(results, results.table(METRIC), METRIC))
    assert "pml-ni (2 runs)" in export_ranks(results, "markdown")
    assert "pml-ni older" in export_table(results, METRIC, "csv").splitlines()[0]
    both = gather(suite, [*old, *new])
    assert (both.older, both.n_other) == ({}, 0)
    assert both.table(METRIC).equals(gather(suite, new).table(METRIC))
    assert both.records() == gather(suite, new).records()


def test_the_status_of_a_suite(tmp_path: Path) -> None:
    suite = small_suite()
    plan = expand(suite, data_home=tmp_path)
    store, records = Store(tmp_path / "results"), make_records(suite)
    assert set(find_status(plan, store).absent) == set(suite.configurations)
    assert not find_status(plan, store).complete
    store._prepare()
    for record in records:
        store._write(record)
    # Results count where the data are absent too.
    status = find_status(plan, store)
    assert status.complete
    assert (status.counts, status.absent) == ({"done": len(records)}, {})
    store._write(make_record(suite, "pml-ni", "emotions-3", 0, code="0123"))
    store._write(make_failure(suite, "pamb", "emotions-3", 0, "no luck"))
    store._path(records[0]["key"]).write_text("{")
    found = find_status(plan, store).to_json()
    assert not found["complete"]
    assert {name: found[name] for name in ("runs", "done", "failed", "older", "missing")} == {
        "runs": len(records), "done": len(records) - 3, "failed": 1, "older": 1, "missing": 1,
    }  # fmt: skip
    assert found["methods"]["pml-ni"] == {"done": 7, "failed": 0, "older": 1, "missing": 0}
    assert found["methods"]["pamb"]["failed"] == found["methods"]["pml-ma"]["missing"] == 1


def test_marks_of_best_and_second_with_ties_as_printed() -> None:
    suite = small_suite(configurations=["emotions-3", "emotions-4", "birds-3", "birds-4"])
    values = {
        "pml-ma": {"emotions-3": 0.9001, "emotions-4": 0.5, "birds-3": 0.7, "birds-4": 0.3},
        "pml-ni": {"emotions-3": 0.9004, "emotions-4": 0.5, "birds-3": 0.8, "birds-4": 0.2},
        "pamb": {"emotions-3": 0.8, "emotions-4": 0.5, "birds-3": 0.7, "birds-4": 0.1},
        "floor": {"emotions-3": 0.99, "birds-4": 0.99},
        "ceiling": {"emotions-3": 1.0},
    }
    results = gather(suite, with_values(suite, values))
    marks = mark_best(results, results.table(METRIC), METRIC)
    assert marks.loc["emotions-3"].tolist() == ["best", "best", "second", "plain", "plain"]
    assert marks.loc["emotions-4"].tolist() == ["best", "best", "best", "plain", "plain"]
    assert marks.loc["birds-3"].tolist() == ["second", "best", "second", "plain", "plain"]
    losses = gather(suite, with_values(suite, values, "hamming_loss"))
    marks = mark_best(losses, losses.table("hamming_loss"), "hamming_loss")
    assert marks.loc["birds-4"].tolist()[:3] == ["plain", "second", "best"]


def test_ranks_are_over_whole_results_only_and_the_others_are_named() -> None:
    suite = small_suite()
    records = make_records(suite)
    records = without(records, method="pamb", configuration="emotions-3", fold=1)
    records = without(records, method="pml-ni", configuration="emotions-4")
    records += [make_failure(suite, "pml-ni", "emotions-4", fold, "no memory") for fold in range(2)]
    records = [r for r in records if r["run"]["configuration"] != "birds-3"]
    results = gather(suite, records, absent={"birds-3": "no file"})
    ranking = rank_methods(results, METRIC)
    assert list(ranking.values.index) == ["birds-4"]
    assert ranking.n == 1
    assert ranking.left_out == {
        "emotions-3": "incomplete: pamb",
        "emotions-4": "failed: pml-ni",
        "birds-3": "absent",
    }
    assert sorted(ranking.average_ranks.values()) == [1, 2, 3]
    assert ranking.friedman is None
    assert ranking.wilcoxon == []
    states = results.table(METRIC).xs("state", axis=1, level=1)
    assert states.loc["emotions-3"].tolist() == ["done", "done", "incomplete", "done", "done"]
    assert states.loc["emotions-4", "pml-ni"] == "failed"
    assert set(states.loc["birds-3"]) == {"absent"}


def test_data_that_are_absent_here_but_have_results_are_not_absent() -> None:
    suite = small_suite()
    results = gather(suite, make_records(suite), absent={"emotions-3": "no file"})
    assert results.absent == {}
    assert rank_methods(results, METRIC).n == 4


def test_a_method_without_any_result_is_named_and_does_not_take_the_others_down() -> None:
    suite = small_suite()
    records = [r for r in make_records(suite) if r["run"]["method"] != "pamb"]
    ranking = rank_methods(gather(suite, records), METRIC)
    assert ranking.methods_left_out == {"pamb": "not run"}
    assert (ranking.n, list(ranking.average_ranks)) == (4, ["pml-ma", "pml-ni"])


def test_a_metric_without_a_value_in_some_run_has_none_in_the_table() -> None:
    suite = small_suite()
    records = make_records(suite)
    for value, record in zip((None, math.nan), records, strict=False):
        record["metrics"] = {**record["metrics"], "macro_auc": value}
    results = gather(suite, records)
    entry = results.table("macro_auc").loc["emotions-3", "pml-ma"]
    assert entry["state"] == "undefined"
    assert math.isnan(entry["mean"])
    assert rank_methods(results, "macro_auc").left_out == {"emotions-3": "undefined: pml-ma"}
    assert rank_methods(results, METRIC).n == 4


@pytest.mark.slow
def test_the_papers_ranks_and_statistics_come_out_of_records_with_its_figures() -> None:
    printed = published()
    printed = printed[printed["metric"] == METRIC]
    configurations = list(dict.fromkeys(printed["configuration"]))
    suite = make_suite(
        configurations=configurations, folds=2, metrics=[METRIC], methods=[{"name": name} for name in METHODS]
    )
    values: dict[str, dict[str, float]] = {}
    for result in printed.itertuples():
        values.setdefault(result.method, {})[result.configuration] = result.mean
    ranking = rank_methods(gather(suite, with_values(suite, values)), METRIC)
    assert ranking.n == 30
    assert ranking.average_ranks["pml-ma"] == pytest.approx(1.1, abs=1e-12)
    assert ranking.friedman is not None
    assert ranking.friedman.f_statistic == pytest.approx(128.4977, abs=5e-5)
    assert ranking.nemenyi is not None
    assert ranking.nemenyi.critical_difference == pytest.approx(
        2.1934, abs=2e-4
    )  # printed with a rounded quantile


@pytest.mark.slow
def test_published_results_are_columns_of_their_own_and_are_not_ranked() -> None:
    suite = make_suite()
    results = gather(suite, make_records(suite))
    table = results.table(METRIC, published=published())
    added = [label for label in table.columns.unique(0) if results.role(label) == "published"]
    assert added == [f"{name} (published, not measured here)" for name in METHODS]
    entry = table.loc["emotions-3", "pml-ni (published, not measured here)"]
    assert (entry["mean"], entry["state"]) == (0.777, "published")
    plain = results.table(METRIC)
    assert table[list(plain)].equals(plain)
    marks = mark_best(results, table, METRIC)
    assert set(marks[added].to_numpy().ravel()) == {"plain"}


def test_the_noise_gap_by_hand_and_where_it_has_no_value() -> None:
    suite = small_suite()
    values = {
        "pml-ma": {"emotions-3": 0.75, "emotions-4": 0.7, "birds-3": 0.5, "birds-4": 0.4},
        "pml-ni": {"emotions-3": 0.65, "emotions-4": 0.6, "birds-4": 0.6},
        "floor": {"emotions-3": 0.70, "emotions-4": 0.6, "birds-3": 0.5, "birds-4": 0.5},
        "ceiling": {"emotions-3": 0.90, "emotions-4": 0.601, "birds-3": 0.8, "birds-4": 0.4},
    }
    gap = noise_gap(gather(suite, with_values(suite, values)))
    assert gap is not None
    assert (gap.floor, gap.ceiling) == ("floor", "ceiling")
    assert gap.shares.loc["emotions-3"].dropna().to_dict() == pytest.approx({"pml-ma": 0.25, "pml-ni": -0.25})
    assert gap.shares.loc["birds-3"].dropna().to_dict() == pytest.approx({"pml-ma": 0.0})
    assert set(gap.undefined) == {"emotions-4", "birds-4"}
    assert "not above the floor (0.6000) by 0.002" in gap.undefined["emotions-4"]
    assert gap.shares["pamb"].isna().all()
    assert noise_gap(gather(small_suite(methods=[{"name": "pml-ma"}]), [])) is None


def test_the_noise_gap_takes_a_floor_and_a_ceiling_that_are_tuned_alike() -> None:
    tuning = {"grid": {"gamma": [0.1, 1.0]}}
    floor = {"name": "ridge", "label": "floor", "role": "floor"}
    ceiling = {"name": "ridge", "label": "ceiling", "role": "ceiling"}
    tuned = [{**each, "label": f"tuned {each['label']}", "tuning": tuning} for each in (floor, ceiling)]
    method = {"name": "pml-ma", "tuning": {"grid": {"ridge_weight": [0.1, 1.0]}}}

    def gap_of(*methods: dict[str, Any]) -> Any:
        return noise_gap(gather(small_suite(methods=[method, {"name": "pml-ni"}, *methods]), []))

    both = gap_of(floor, ceiling, *tuned)
    assert (both.floor, both.ceiling) == ("tuned floor", "tuned ceiling")
    assert (both.alike, both.tuned, both.tuned_methods) == (True, True, [])
    fixed = gap_of(floor, tuned[0], ceiling)
    assert (fixed.floor, fixed.ceiling) == ("floor", "ceiling")
    assert (fixed.alike, fixed.tuned, fixed.tuned_methods) == (True, False, ["pml-ma"])
    unlike = gap_of(tuned[0], ceiling)
    assert (unlike.alike, unlike.tuned, unlike.tuned_methods) == (False, False, ["pml-ma"])
    other = gap_of(tuned[0], {**tuned[1], "parameters": {"n_anchors": 5}})
    assert (other.alike, other.tuned) == (False, True)


def test_a_tuned_ceiling_is_said_to_use_true_labels() -> None:
    entry = {"name": "ridge", "role": "ceiling", "tuning": {"grid": {"gamma": [0.1, 1.0]}}}
    assert small_suite(methods=[{"name": "pml-ma"}, entry]).method("ridge").tuned == "oracle"


def test_published_results_of_other_suites_are_an_error() -> None:
    suite = small_suite(metrics=["macro_auc"])
    with pytest.raises(ValueError, match="macro_auc"):
        export_tables(gather(suite, make_records(suite)), published=published())


def test_the_noise_gap_is_the_same_for_a_loss_and_its_opposite() -> None:
    suite = small_suite()
    values = {
        "pml-ma": dict.fromkeys(suite.configurations, 0.75),
        "floor": dict.fromkeys(suite.configurations, 0.70),
        "ceiling": dict.fromkeys(suite.configurations, 0.90),
    }
    mirrored = {label: {name: 1 - value for name, value in row.items()} for label, row in values.items()}
    gain = noise_gap(gather(suite, with_values(suite, values)))
    loss = noise_gap(gather(suite, with_values(suite, mirrored, "one_error")), "one_error")
    assert gain is not None
    assert loss is not None
    for name in suite.configurations:
        assert loss.shares.loc[name].dropna().to_dict() == pytest.approx(
            gain.shares.loc[name].dropna().to_dict()
        )


def test_time_and_memory_are_medians_and_ratios_are_paired() -> None:
    suite = small_suite(folds=3, configurations=["emotions-3", "birds-3"])
    seconds = {
        ("pml-ma", "emotions-3"): (1, 2, 30), ("pml-ma", "birds-3"): (10, 10, 10),
        ("pml-ni", "emotions-3"): (4, 4, 4),
    }  # fmt: skip
    records = [
        make_record(suite, label, name, fold, fit_seconds=value, peak_memory_mb=100 * value)
        for (label, name), values in seconds.items()
        for fold, value in enumerate(values)
    ]
    found = measure_costs(gather(suite, records))
    assert list(found.index) == ["pml-ma", "pml-ni"]
    assert found.loc["pml-ma", ["fit_seconds", "fit_ratio", "n"]].tolist() == [6, 1, 2]
    # 4 seconds against 2 on the one configuration that both have.
    assert found.loc["pml-ni", ["fit_ratio", "n_ratio", "memory_mb"]].tolist() == [2, 1, 400]


def test_two_methods_head_to_head() -> None:
    suite = small_suite()
    values = {
        "pml-ma": {"emotions-3": 0.75, "emotions-4": 0.7, "birds-3": 0.5},
        "pml-ni": {"emotions-3": 0.65, "emotions-4": 0.7, "birds-3": 0.6, "birds-4": 0.6},
    }
    results = gather(suite, with_values(suite, values))
    pair = compare_methods(results, "pml-ma", "pml-ni", METRIC)
    assert (pair.counts.wins, pair.counts.ties, pair.counts.losses) == (1, 1, 1)
    assert pair.left_out == {"birds-4": "no complete result: pml-ma"}
    assert pair.test is not None
    assert pair.test.effect_size == 0
    # By a loss the signs turn round.
    losses = gather(suite, with_values(suite, values | {"pml-ma": {"emotions-3": 0.1}}, "one_error"))
    one = compare_methods(losses, "pml-ma", "pml-ni", "one_error")
    assert (one.counts.wins, one.counts.losses, one.test) == (1, 0, None)
    assert pair.values.loc["emotions-3"].tolist() == pytest.approx([0.75, 0.65])
    for pair_of_names, words in (
        (("pml-ma", "pml-ma"), "itself"),
        (("pml-ma", "nobody"), "no method 'nobody'"),
    ):
        with pytest.raises(ValueError, match=words):
            compare_methods(results, *pair_of_names, METRIC)


def test_sweeps_share_runs_and_have_cells_of_their_own() -> None:
    methods = [
        {
            "name": "pml-ma",
            "parameters": {"low_rank_weight": 1.0},
            "sweep": {"low_rank_weight": [0.1, 1.0], "ridge_weight": [0.5, 2.0]},
        }
    ]
    suite = small_suite(kind="sensitivity", methods=methods, configurations=["birds-3"])
    records = [
        make_record(suite, "pml-ma", "birds-3", fold, parameters=parameters, metrics={METRIC: value})
        for fold in range(2)
        for value, parameters in enumerate(
            ({"low_rank_weight": 0.1}, {"low_rank_weight": 1.0}, {"ridge_weight": 0.5}, {"ridge_weight": 2.0})
        )
    ]
    results = gather(suite, records)
    assert results.cells == {}
    means = {
        (parameter, float(value)): results._sweep_table(label, parameter, METRIC).loc[
            value, ("birds-3", "mean")
        ]
        for label, parameter in results.sweeps
        for value in results._sweep_table(label, parameter, METRIC).index
    }
    assert means == {
        ("low_rank_weight", 0.1): 0,
        ("low_rank_weight", 1.0): 1,
        ("ridge_weight", 0.5): 2,
        ("ridge_weight", 2.0): 3,
    }


def test_an_unknown_metric_is_refused_by_name() -> None:
    suite = small_suite()
    with pytest.raises(ValueError, match="unknown metric 'precison'"):
        gather(suite, []).table("precison")


def test_a_method_and_a_configuration_can_be_left_out() -> None:
    suite = small_suite()
    # pamb is finished on one configuration only.
    records = [
        r
        for r in make_records(suite)
        if r["run"]["method"] != "pamb" or r["run"]["configuration"] == "emotions-3"
    ]
    results = gather(suite, records)
    assert rank_methods(results, METRIC).n == 1
    part = results.leave_out(["pamb", "birds-4"])
    ranking = rank_methods(part, METRIC)
    assert (ranking.n, set(ranking.average_ranks)) == (3, {"pml-ma", "pml-ni"})
    table, complete = part.table(METRIC), results.table(METRIC)
    assert table.equals(complete.loc[table.index, table.columns])
    assert not {"pamb", "birds-4"} & {*table.index, *table.columns.unique(0)}
    assert any("pamb, birds-4" in note for note in table_notes(part, table, METRIC))
    assert (part.n_records, part.n_other) == (results.n_records, results.n_other)
    # Two methods without their control are not compared.
    assert results.leave_out(["pml-ma"]).suite.control is None
    assert results.leave_out([]).table(METRIC).equals(complete)
    with pytest.raises(
        SuiteError, match=r"no method or configuration 'pabm'.*pml-ni, pamb.*emotions-3, emotions-4"
    ):
        results.leave_out(["pamb", "pabm"])
    with pytest.raises(SuiteError, match="every configuration"):
        results.leave_out(suite.configurations)


def test_sweeps_can_be_left_out() -> None:
    methods = [{"name": "pml-ma", "sweep": {"low_rank_weight": [0.1, 1.0]}}, {"name": "pml-ni"}]
    results = gather(make_suite(methods=methods, configurations=["birds-3", "birds-4"], folds=2), [])
    assert results.leave_out(["pml-ma"]).sweeps == {}
    (cells,) = results.leave_out(["birds-3"]).sweeps.values()
    assert {name for _, name in cells} == {"birds-4"}
