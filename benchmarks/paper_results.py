"""The account of the paper's comparison, made from the stored runs: what is complete, what is reproduced, what is gained.

    for suite in paper paper-settings paper-seeds paper-real; do
        skpml bench run $suite --data FOLDER --folder bench --jobs 2     # days in all; continues where it stopped
    done
    for suite in paper paper-settings paper-seeds paper-real; do
        skpml bench export $suite --data FOLDER --folder bench -o results/$suite --with-runs --force \\
            --format csv --format markdown
        skpml bench status $suite --data FOLDER --folder results/$suite  # what is stored, and what is missing
    done
    python benchmarks/paper_results.py                                   # writes results/paper/account.md

The suites share one folder of runs. A suite can be exported at any time: a suite without any run is an error, one with
some is exported with what it has. The account says how complete each is, and is the same for the same stored runs,
whatever the code and the data on the machine. Every sentence of it that states an outcome is made from the numbers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from paper_claims import tabulate_claims
from paper_numbers import (
    AP,
    DIGITS,
    EQUAL,
    OURS,
    PAIRS,
    PMLMA,
    PUBLISHED_METRIC,
    Pair,
    Stored,
    compare_pair,
    complete_means,
    count_differences,
    format_interval,
    format_signed,
    gains_over_published,
    judge,
    mean_ranks,
    paper_tables,
    published_means,
    read_stored,
)
from paper_parts import LEVEL, make_table

from skpml._writing import replacing
from skpml.experiments import (
    Results,
    export_tables,
    format_number,
    format_p_value,
    metric_title,
    noise_gap,
    rank_methods,
)
from skpml.experiments._ranking import Ranking

FOLDER = Path(__file__).parents[1] / "results"


def main() -> None:
    text = write_account(read_stored(FOLDER))
    with replacing(FOLDER / "paper" / "account.md", overwrite=True) as (temporary,):
        temporary.write_text(text, encoding="utf-8")
    print(text)


def write_account(stored: Stored) -> str:
    sections = {
        "How complete the runs are": describe_extent(stored),
        "In short": summarize(stored),
        "The claims of the paper": tabulate_claims(stored),
        "Average precision": tabulate_average_precision(stored),
        "Against the published results": tabulate_differences(stored),
        "Ranks": tabulate_ranks(stored),
        "What is gained over tuned ridge regression": tabulate_pairs(stored.paper),
        "The noise gap": tabulate_gaps(stored.paper),
        "Hamming loss, by each method's threshold and by a common one": tabulate_hamming(stored),
        "Choices and convergence": tabulate_choices(stored.paper),
        "Draws of the noise": tabulate_draws(stored.seeds),
        "Real candidates": tabulate_real(stored),
    }
    return "\n".join(f"## {title}\n\n{text}\n" for title, text in sections.items())


def describe_extent(stored: Stored) -> str:
    """What was run, and what was left."""
    rows, notes = [], []
    for results in (stored.paper, stored.settings, stored.seeds, stored.real):
        suite, cells = results.suite, results.cells
        missing = find_missing(results)
        n_done = sum(len(cell.records) for cell in cells.values())
        n_failed = sum(len(cell.failures) for cell in cells.values())
        n_planned = sum(cell.expected for cell in cells.values())
        n_complete = sum(not labels for labels in missing.values())
        rows.append(
            (f"`{suite.name}`", str(len(suite.configurations)), str(len(results.labels())),
             ", ".join(map(str, suite.seeds)), str(suite.folds), f"{n_done} of {n_planned}", str(n_failed),
             f"{n_complete} of {len(missing)}")
        )  # fmt: skip
        notes += describe_missing(results, missing)
    titles = ("suite", "configurations", "methods, floors and ceiling", "seeds", "folds", "runs stored", "runs failed",
              "configurations complete for all")  # fmt: skip
    text = (
        "The first seed of `paper-seeds` is that of `paper`. A result counts if all of its runs are there; no mean is "
        "over fewer folds."
    )
    return "\n\n".join([make_table(titles, rows), text, "\n".join(f"* {note}" for note in notes)]).rstrip()


def find_missing(results: Results) -> dict[str, list[str]]:
    """List the methods that are not complete on each configuration."""
    return {
        name: [label for label in results.labels() if results.cells[label, name].state != "done"]
        for name in results.suite.configurations
    }


def describe_missing(results: Results, missing: dict[str, list[str]]) -> list[str]:
    """Sentences about the configurations that are not complete, grouped by the methods that lack runs."""
    groups: dict[str, list[str]] = {}
    for name, labels in missing.items():
        started = any(results.cells[label, name].records for label in labels)
        reason = f"not complete for {', '.join(labels)}"
        if len(labels) == len(results.labels()):
            reason = "begun, complete for no method" if started else "not run"
        if labels:
            groups.setdefault(reason, []).append(name)
    return [
        f"`{results.suite.name}`, {reason}: {'everything' if len(names) == len(missing) else ', '.join(names)}."
        for reason, names in groups.items()
    ]


def summarize(stored: Stored) -> str:
    """The answers in sentences."""
    missing = find_missing(stored.paper)
    n_complete = sum(not labels for labels in missing.values())
    lines = [
        f"The runs of `paper` are complete for all methods on {n_complete} of {len(missing)} configurations. "
        "Every sentence is about the configurations that are complete for the methods it compares.",
        *summarize_published(stored),
        *summarize_ranks(stored),
        *(describe_pair(one, other, compare_pair(stored.paper, one, other, AP)) for one, other in PAIRS),
    ]
    gap = noise_gap(stored.paper)
    # Medians over different configurations could not be compared.
    shares = None if gap is None else gap.shares.dropna()
    if shares is not None and len(shares):
        medians = shares.median().sort_values(ascending=False, kind="stable")
        above = medians[medians > 0]
        listed = ", ".join(f"{label} {format_number(100 * share, 0)} %" for label, share in above.items())
        lines.append(
            f"Of the distance from {gap.floor} to {gap.ceiling} in average precision, these methods close a part, in the "
            f"median over the {count_configurations(len(shares))} that are complete for all: {listed or 'none'}. "
            f"{len(medians) - len(above)} of {len(medians)} do not."
        )
    return "\n".join(f"* {line}" for line in lines)


def count_configurations(n: int) -> str:
    return f"{n} configuration{'' if n == 1 else 's'}"


def summarize_published(stored: Stored) -> list[str]:
    """One sentence for each way of setting the methods: which are reproduced in average precision."""
    lines = []
    for results, how in (
        (stored.paper, "tuned without true labels"),
        (stored.settings, "with the paper's settings"),
    ):
        gains = gains_over_published(stored, results, AP)
        groups: dict[str, list[str]] = {}
        for label in (label for label in stored.paper_methods if label in results.labels()):
            groups.setdefault(judge(count_differences(gains[label])), []).append(label)
        order = ("reproduced", "better", "mixed", "below", "not complete")
        text = "; ".join(f"*{word}* {', '.join(groups[word])}" for word in order if word in groups)
        lines.append(f"The published average precision, {how}: {text}.")
    return lines


def summarize_ranks(stored: Stored) -> list[str]:
    """Where PML-MA stands among the paper's methods, and which methods lead in average precision."""
    tables = paper_tables(stored)
    hows = {
        "tuned": "All tuned without true labels",
        "common": "All tuned, with the Hamming loss of the common threshold, which is PML-MA's own rule",
        "settings": "The eight others with the paper's settings",
    }
    lines = [
        describe_rank(mean_ranks(tables[name]), len(tables[name][AP]), how) for name, how in hows.items()
    ]
    of_paper = rank_methods(keep_methods(stored.paper, stored.paper_methods), AP)
    return [
        *lines,
        *describe_leaders(of_paper, PMLMA),
        *describe_leaders(rank_methods(stored.paper, AP), OURS),
    ]


def describe_rank(ranks: dict[str, float], n: int, how: str) -> str:
    if not n:
        return f"{how}, the paper's methods cannot be ranked: no configuration is complete for all."
    order = sorted(ranks, key=lambda label: ranks[label])
    place = order.index(PMLMA)
    near = order[0] if place else order[1]
    numbers = {label: format_number(ranks[label], 2) for label in (PMLMA, near)}
    return (
        f"{how}, {PMLMA} is number {place + 1} of the paper's {len(order)} methods on {count_configurations(n)}, by the "
        f"mean of the average ranks in five metrics: {PMLMA} {numbers[PMLMA]}, {near} {numbers[near]}."
    )


def keep_methods(results: Results, labels: list[str]) -> Results:
    return results.leave_out([label for label in results.labels("method") if label not in labels])


def describe_leaders(ranking: Ranking, label: str) -> list[str]:
    """How often a method is best in average precision, its rank, and which methods are not significantly different."""
    if label not in ranking.average_ranks or ranking.nemenyi is None:
        return []
    ranks, distance = ranking.average_ranks, ranking.nemenyi.critical_difference
    printed = ranking.values.round(DIGITS)
    best = int((printed[label] >= printed.max(axis=1)).sum())
    near = [
        f"{other} {format_number(ranks[other], 2)}"
        for other in sorted(ranks, key=lambda other: ranks[other])
        if other != label and abs(ranks[other] - ranks[label]) <= distance
    ]
    return [
        f"In average precision, {label} is best of {len(ranks)} methods on {best} of "
        f"{count_configurations(ranking.n)}; its average rank is {format_number(ranks[label], 2)}. By Nemenyi's test "
        f"(critical difference {format_number(distance, 2)}) the difference is not significant for "
        f"{', '.join(near) or 'no other method'}."
    ]


def describe_pair(one: str, other: str, pair: Pair) -> str:
    """Sentences about two methods in average precision."""
    better, equal, worse = count_differences(pair.gains)
    start = f"**{one} against {other}**"
    if pair.test is None:
        return f"{start}: fewer than two configurations are complete for both."
    counts = (
        f"on {count_configurations(len(pair.gains))} {format_interval(pair.gains)}: better by more than {EQUAL} on "
        f"{better}, equal on {equal}, worse on {worse} (Wilcoxon p {format_p_sign(pair.test.p_value)}, effect size "
        f"{format_signed(pair.test.effect_size, 2)})"
    )
    if pair.data_test is None:
        return f"{start}: average precision {counts}. They are of one data set."
    mean, p_value = pair.data_gains.mean(), pair.data_test.p_value
    verdict = "no difference is shown by Wilcoxon's test"
    if p_value < LEVEL:
        verdict = f"a {'gain' if mean > 0 else 'loss'}, by Wilcoxon's test"
        if abs(round(mean, DIGITS)) <= EQUAL:
            verdict += f", of at most the {EQUAL} that is called equal"
    return (
        f"{start}: {verdict}. Mean difference in average precision over the {len(pair.data_gains)} data sets "
        f"{format_interval(pair.data_gains)} (95 % interval), p {format_p_sign(p_value)}; {counts}."
    )


def format_p_sign(p_value: float) -> str:
    text = format_p_value(p_value)
    return text if text.startswith("<") else f"= {text}"


def tabulate_average_precision(stored: Stored) -> str:
    """The paper's methods (tuned, with the paper's settings, published), then the others with floor and ceiling."""
    tuned, listed = complete_means(stored.paper, AP), complete_means(stored.settings, AP)
    printed = published_means(stored.published, AP, tuned.index)
    paper_methods = stored.paper_methods
    others = [label for label in stored.paper.labels("method") if label not in paper_methods]
    others = [*stored.paper.labels("floor"), *stored.paper.labels("ceiling"), PMLMA, *others]

    def format_cell(name: str, label: str) -> str:
        parts = [tuned.at[name, label]] + ([listed.at[name, label]] if label in listed else [])
        measured = " / ".join(format_number(part, 3) for part in parts)
        return f"{measured} ({format_number(printed.at[name, label], 3)})"

    begun = tuned[paper_methods].notna().any(axis=1) | listed.notna().any(axis=1)
    if not begun.any():
        return "No result of the paper's methods is complete."
    first = [(name, *(format_cell(name, label) for label in paper_methods)) for name in tuned.index[begun]]
    second = [
        (name, *(format_number(tuned.at[name, label], 3) for label in others)) for name in tuned.index[begun]
    ]
    return "\n\n".join(
        [
            f"Means over {stored.paper.suite.folds} folds. The paper's methods: tuned without true labels / with the "
            "settings that the paper lists (published, not measured here). A dash: not complete. pml-ma is the "
            "recommended variant, here and below.",
            make_table(("configuration", *paper_methods), first),
            "Floor, ceiling and the methods that are not in the paper, beside PML-MA:",
            make_table(("configuration", *others), second),
        ]
    )


def tabulate_differences(stored: Stored) -> str:
    """Configurations on which each method is better than, equal to or worse than its published result."""
    metrics, rows = stored.paper.suite.metrics, []
    both = ((stored.paper, "tuned"), (stored.settings, "paper's"))
    gains = {how: {m: gains_over_published(stored, results, m) for m in metrics} for results, how in both}
    for label in stored.paper_methods:
        for results, how in both:
            if label not in results.labels() or gains[how][AP][label].isna().all():
                continue
            counts = {metric: count_differences(gains[how][metric][label]) for metric in metrics}
            texts = (
                " / ".join(map(str, counts[metric])) if sum(counts[metric]) else "–" for metric in metrics
            )
            mean = format_signed(gains[how][AP][label].mean())
            rows.append((label, how, *texts, mean, judge(counts[AP])))
    if not rows:
        return "No result of the paper's methods is complete."
    text = (
        f"Configurations on which the measured result is better than the published one, equal (within {EQUAL}) and "
        "worse. Both Hamming losses are compared with the published one. The last two columns are about average "
        "precision: the mean difference, and *reproduced* if at most one configuration in ten is worse (*better* if more "
        "than half are better), *below* if more than half are worse, else *mixed*."
    )
    titles = ("method", "settings", *map(metric_title, metrics), "mean difference", "verdict")
    return f"{text}\n\n{make_table(titles, rows)}"


def tabulate_ranks(stored: Stored) -> str:
    """Ranks of the paper's methods, of all methods, and the tests of PML-MA against each."""
    found = paper_tables(stored)
    columns = {
        "printed": "published",
        "printed, tuned": "published, the same",
        "tuned": "all tuned",
        "common": "all tuned, common threshold",
        "settings": "eight with the paper's settings",
    }
    titles = ("method", *(f"{title} (N = {len(found[name][AP])})" for name, title in columns.items()))
    ranks = [mean_ranks(found[name]) for name in columns]
    rows = [
        (label, *(format_number(rank.get(label, float("nan")), 2) for rank in ranks))
        for label in stored.paper_methods
    ]
    parts = []
    if any(ranks):
        parts += [
            "The paper's nine methods, mean of the average ranks by its five metrics. N is the number of configurations "
            "that are complete for all nine in every metric; *published, the same* is over those of the next column.",
            make_table(titles, rows),
        ]
    tables = export_tables(stored.paper, ["markdown"])
    if "ranks.md" not in tables:
        return "\n\n".join([*parts, "All methods cannot be ranked: no configuration is complete for two."])
    parts += [
        "All methods, each with settings that are chosen without true labels. The last column is the mean of the others, "
        "and counts Hamming loss twice.",
        tables["ranks.md"].partition("\n\n")[2].strip(),
    ]
    ranking = rank_methods(stored.paper, AP)
    rows = [
        (test.method, f"{count.wins} / {count.ties} / {count.losses}", format_p_value(test.p_value),
         format_p_value(test.holm_p_value), format_signed(test.effect_size, 2))
        for test, count in zip(ranking.wilcoxon, ranking.win_tie_loss, strict=True)
    ]  # fmt: skip
    titles = ("against", "wins / ties / losses", "p (Wilcoxon)", "p (Holm)", "effect size")
    return "\n\n".join(
        [*parts, f"{PMLMA} against each, average precision, N = {ranking.n}:", make_table(titles, rows)]
    )


def tabulate_pairs(results: Results) -> str:
    """Mean difference, test and effect size of each pair by each metric."""
    parts = [
        "A positive difference means that the first method is better, also where smaller values are. N is the number of "
        "configurations on which both are complete. In brackets is the 95 % interval of the mean (Student). The effect "
        "size is the matched-pairs rank-biserial correlation: 1 if the first is better everywhere, −1 if it is worse "
        "everywhere. Configurations of one data set are not independent, so these p-values are too small and the "
        "intervals too narrow; the last columns take the mean of each data set first. Nothing is corrected for the "
        "number of metrics."
    ]
    titles = ("metric", "N", "mean difference", f"better / equal (within {EQUAL}) / worse", "p (Wilcoxon)", "effect size",
              "data sets", "mean difference over data sets", "p over data sets")  # fmt: skip
    for one, other in PAIRS:
        if compare_pair(results, one, other, AP).gains.empty:
            parts.append(f"**{one} against {other}**: no configuration is complete for both.")
            continue
        rows = []
        for metric in results.suite.metrics:
            pair = compare_pair(results, one, other, metric)
            tests = [
                ("–", "–")
                if test is None
                else (format_p_value(test.p_value), format_signed(test.effect_size, 2))
                for test in (pair.test, pair.data_test)
            ]
            counts = " / ".join(map(str, count_differences(pair.gains)))
            rows.append((metric_title(metric), str(len(pair.gains)), format_interval(pair.gains), counts, *tests[0],
                         str(len(pair.data_gains)), format_interval(pair.data_gains), tests[1][0]))  # fmt: skip
        parts.append(f"**{one} against {other}**\n\n{make_table(titles, rows)}")
    return "\n\n".join(parts)


def tabulate_gaps(results: Results) -> str:
    """Share of the distance from floor to ceiling that each method closes."""
    metrics = results.suite.metrics
    gaps = {metric: noise_gap(results, metric) for metric in metrics}
    if gaps[AP].shares.empty:
        return "No configuration is complete for floor and ceiling, and has a distance between them."
    rows = []
    for label in results.labels("method"):
        shares = gaps[AP].shares[label].dropna()
        quartiles = " to ".join(format_number(100 * shares.quantile(q), 0) for q in (0.25, 0.75))
        medians = (
            format_number(100 * gaps[metric].shares[label].median(), 0) for metric in metrics if metric != AP
        )
        rows.append((label, str(len(shares)), format_number(100 * shares.median(), 0), quartiles if len(shares) else "–",
                     str(int((shares > 0).sum())), *medians))  # fmt: skip
    lines = []
    for metric in metrics:
        ends = complete_means(results, metric)[[gaps[metric].floor, gaps[metric].ceiling]].dropna()
        small = [name for name in ends.index if name in gaps[metric].undefined]
        listed = f" ({', '.join(small)})" if small else ""
        lines.append(f"{metric_title(metric)} {len(small)} of {len(ends)}{listed}")
    alike = (
        "the same learner with the same search for its weight"
        if gaps[AP].alike and gaps[AP].tuned
        else "not tuned alike"
    )
    titles = ("method", "N", "average precision, median %", "quartiles", "above the floor",
              *(f"{metric_title(metric)}, median %" for metric in metrics if metric != AP))  # fmt: skip
    text = (
        f"0 % is {gaps[AP].floor}, 100 % is {gaps[AP].ceiling}: {alike}. Of the configurations on which both are "
        "complete, the distance is too small to divide by (less than 0.002, or negative) on these, which are left out: "
        f"{'; '.join(lines)}."
    )
    return f"{text}\n\n{make_table(titles, rows)}"


def tabulate_hamming(stored: Stored) -> str:
    """Mean Hamming losses by both thresholds, over the configurations that are complete for every ranked method."""
    rankings = {
        metric: rank_methods(stored.paper, metric) for metric in ("hamming_loss", "hamming_loss_common")
    }
    own, common = rankings.values()
    names = [name for name in own.values.index if name in common.values.index]
    if not names:
        return "No configuration is complete for every method."
    means = {m: complete_means(stored.paper, m).loc[names].mean(skipna=False) for m in rankings}
    printed = published_means(stored.published, "hamming_loss", names).mean(skipna=False)
    nan = float("nan")
    rows = [
        (label, *(format_number(value, digits) for value, digits in (
            (means["hamming_loss"][label], 3), (own.average_ranks.get(label, nan), 2),
            (means["hamming_loss_common"][label], 3), (common.average_ranks.get(label, nan), 2),
            (printed.get(label, nan), 3))))
        for label in stored.paper.labels()
    ]  # fmt: skip
    titles = ("method", "own threshold", "rank", "common threshold", "rank", "published")
    text = f"Means over the {len(names)} configurations that are complete for every ranked method."
    return f"{text}\n\n{make_table(titles, rows)}"


def tabulate_choices(results: Results) -> str:
    """How often each weight was chosen at an end of its values, and how many fits did not converge."""
    rows = []
    for entry in results.suite.methods:
        records = [
            r for name in results.suite.configurations for r in results.cells[entry.label, name].records
        ]
        grid = entry.tuning.grid if entry.tuning else {}
        known = [record["converged"] for record in records if record.get("converged") is not None]
        stopped = f"{known.count(False)} of {len(known)}" if known else "–"
        if known and not grid:
            rows.append((entry.label, *["–"] * 4, stopped))
        for parameter, values in grid.items() if records else ():
            chosen = [record["chosen"][parameter] for record in records]
            ends = (f"{value:g} ({format_number(100 * chosen.count(value) / len(chosen), 0)} %)"
                    for value in (min(values), max(values)))  # fmt: skip
            rows.append((entry.label, parameter, str(len(values)), *ends, stopped))
    if not rows:
        return "There are no runs."
    titles = (
        "method",
        "weight",
        "values",
        "smallest (chosen in)",
        "largest (chosen in)",
        "fits not converged",
    )
    text = (
        "A weight that is often chosen at an end of its values might do better beyond them. A fit that did not converge "
        "ended at its published or default number of iterations. All stored runs are counted."
    )
    return f"{text}\n\n{make_table(titles, rows)}"


def tabulate_draws(results: Results) -> str:
    """Spread between draws of the noise beside the spread between folds, for methods and for their differences."""
    rows, per_draw = [], []
    compared = [(label, None) for label in results.labels("method", "floor")] + [
        pair for pair in PAIRS if set(pair) <= set(results.labels())
    ]
    for one, other in compared:
        cells = [
            cell
            for cell in (paired_cell(results, one, other, name) for name in results.suite.configurations)
            if cell
        ]
        found = pd.DataFrame(
            [cell.summarize(AP)._asdict() for cell in cells], columns=["fold_std", "seed_std"]
        )
        what = one if other is None else f"{one} − {other}"
        medians = (found["seed_std"].median(), found["seed_std"].max(), found["fold_std"].median())
        rows.append((what, str(len(cells)), *(format_number(value, 4) for value in medians)))
        if other is not None and cells:
            records = [(r["run"]["seed"], r["metrics"][AP]) for cell in cells for r in cell.records]
            means = pd.DataFrame(records, columns=["seed", "gain"]).groupby("seed")["gain"].mean()
            per_draw.append(f"{what}: {', '.join(format_signed(mean, 4) for mean in means)}")
    if all(row[1] == "0" for row in rows):
        return "No configuration is complete for all draws."
    titles = (
        "average precision of",
        "N",
        "between draws, median",
        "between draws, largest",
        "between folds, median",
    )
    lines = [
        "Standard deviations of average precision: between the means of the draws, each with its own noise and folds, "
        "and between the folds of a draw. N is the number of configurations that are complete for all "
        f"{len(results.suite.seeds)} draws.",
        make_table(titles, rows),
    ]
    if per_draw:
        lines.append(f"Mean difference in each draw, over the same configurations: {'; '.join(per_draw)}.")
    return "\n\n".join(lines)


def paired_cell(results: Results, one: str, other: str | None, name: str) -> Any:
    """The cell of a method, or of the difference of two on the same folds; None if not complete."""
    cells = [results.cells[label, name] for label in (one, other) if label is not None]
    if any(cell.state != "done" for cell in cells):
        return None
    if other is None:
        return cells[0]
    gains = tuple(
        {"run": a["run"], "metrics": {AP: a["metrics"][AP] - b["metrics"][AP]}}
        for a, b in zip(*(cell.records for cell in cells), strict=True)
    )
    return replace(cells[0], records=gains)


def tabulate_real(stored: Stored) -> str:
    """One table for each data set with real candidates: all methods and metrics."""
    results, parts = stored.real, []
    metrics = results.suite.metrics
    for name in results.suite.configurations:
        means = pd.DataFrame({metric: complete_means(results, metric).loc[name] for metric in metrics})
        if means.isna().all(axis=None):
            parts.append(f"**{name}**: no method is complete.")
            continue
        cells = means.map(lambda value: format_number(value, 3))
        # The common threshold is not the paper's.
        for metric in (metric for metric in metrics if metric not in PUBLISHED_METRIC):
            printed = published_means(stored.published, metric, [name]).loc[name].dropna()
            for label in printed.index.intersection(cells.index):
                cells.at[label, metric] += f" ({format_number(printed[label], 3)})"
        rows = [(label, *cells.loc[label]) for label in results.labels()]
        parts.append(f"**{name}**\n\n{make_table(('method', *map(metric_title, metrics)), rows)}")
    text = f"Means over {results.suite.folds} folds; in brackets what is published, not measured here."
    return "\n\n".join([text, *parts])


if __name__ == "__main__":
    main()
