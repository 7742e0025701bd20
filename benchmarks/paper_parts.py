"""What the paper says about variants, ablation, sensitivity, convergence and decomposition, judged by the kept runs.

    for suite in variants ablation sensitivity convergence decomposition; do
        skpml bench run $suite --data FOLDER --folder bench/$suite
        skpml bench export $suite --data FOLDER --folder bench/$suite -o results/$suite --with-runs --force
    done
    python benchmarks/paper_parts.py                                 # writes results/SUITE/account.md of each

A claim *holds*, *does not hold*, or *cannot be decided*; the rule stands beside it. p-values are those of a permutation
test of the mean difference over ten folds (all 1024 changes of sign, two-sided). Folds share training rows, so they are
somewhat too small.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from published import published_results
from scipy.stats import permutation_test

from skpml._writing import replacing
from skpml.experiments import Results, Store, collect, expand, load_suite

RESULTS = Path(__file__).parents[1] / "results"
AP = "average_precision"
LEVEL = 0.05
EQUAL = 0.01
PARTS = ("decomposition", "alignment", "prototypes")
HOLDS, FAILS, OPEN = "**holds**", "**does not hold**", "**cannot be decided**"
WEIGHTS = {"low_rank_weight": "λ", "alignment_weight": "α", "prototype_weight": "β", "ridge_weight": "γ"}


def main() -> None:
    for name, account in ACCOUNTS.items():
        text = account(read(name))
        with replacing(RESULTS / name / "account.md", overwrite=True) as (temporary,):
            temporary.write_text(text + "\n", encoding="utf-8")
        print(text, end="\n\n")


def read(name: str) -> Results:
    """Collect the kept runs of a suite; every one must be there."""
    results = collect(expand(load_suite(name)), Store(RESULTS / name).records())
    missing = [(label, place) for label, place, cell in results._all_cells() if cell.state != "done"]
    if missing:
        raise SystemExit(f"{RESULTS / name} is not complete: {missing[0][0]} on {missing[0][1]}")
    return results


def folds_of(results: Results, label: str, configuration: str, metric: str = AP) -> np.ndarray:
    return np.array([record["metrics"][metric] for record in results.cells[label, configuration].records])


def compare_folds(one: np.ndarray, other: np.ndarray) -> float:
    """Return the p-value of no difference in the mean."""
    # With one sample, its signs are changed.
    found = permutation_test((one - other,), np.mean, permutation_type="samples", vectorized=True)
    return float(found.pvalue)


def make_table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(titles)
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def make_claims(rows: Iterable[tuple[str, str, str]]) -> str:
    return make_table(("claim of the paper", "verdict", "measured"), rows)


def account_for_variants(results: Results) -> str:
    """Average precision and Hamming loss of the variants beside the published ones."""
    printed = {(r.configuration, r.metric): r.mean for r in published_results() if r.method == "pml-ma"}
    names = results.suite.configurations
    labels = results.labels()
    tables = []
    for metric, title in ((AP, "Average precision"), ("hamming_loss", "Hamming loss")):
        rows = [
            (
                name,
                f"{printed[name, metric]:.3f}",
                *(f"{folds_of(results, label, name, metric).mean():.3f}" for label in labels),
            )
            for name in names
        ]
        tables.append(
            f"**{title}**, mean over 10 folds\n\n" + make_table(("data", "published", *labels), rows)
        )

    def gaps(label: str, metric: str) -> np.ndarray:
        return np.array(
            [folds_of(results, label, name, metric).mean() - printed[name, metric] for name in names]
        )

    claims = []
    for label in ("recommended", "printed", "released"):
        gap = gaps(label, AP)
        below = [f"{name} {value:+.3f}" for name, value in zip(names, gap, strict=True) if value < -EQUAL]
        claims.append(
            (
                f"published average precision, as {label}",
                HOLDS if not below else FAILS,
                f"mean difference {gap.mean():+.3f}; more than {EQUAL} below on "
                f"{len(below)} of {len(names)}{': ' if below else ''}{', '.join(below)}",
            )
        )
    for label in ("recommended, 0.5", "printed", "released", "recommended", "printed, estimated threshold",
                  "released, estimated threshold"):  # fmt: skip
        gap = gaps(label, "hamming_loss")
        at_half = "estimated" not in label and label != "recommended"
        above = [f"{name} {value:+.3f}" for name, value in zip(names, gap, strict=True) if value > EQUAL]
        claims.append(
            (
                f"published Hamming loss, {label}{'' if at_half else ' (not claimed)'}"
                + (" (threshold 0.5)" if at_half and "0.5" not in label else ""),
                HOLDS if not above else FAILS,
                f"more than {EQUAL} worse on {len(above)} of {len(names)}{': ' if above else ''}{', '.join(above)}",
            )
        )
    rule = f"Rule: a published figure holds if no configuration is worse by more than {EQUAL}."
    return "\n\n".join([*tables, make_claims(claims), rule])


def account_for_ablation(results: Results) -> str:
    """What each part adds, by the difference from the complete method on the same folds."""
    names = results.suite.configurations
    rows, claims = [], []
    for prefix, variant in (("", "recommended"), ("printed, ", "printed")):
        full = {name: folds_of(results, f"{prefix}full", name) for name in names}
        rows.append((variant, "complete", *(f"{full[name].mean():.3f}" for name in names)))
        gains: dict[str, list[float]] = {}
        others = [*(f"{prefix}without {part}" for part in PARTS), *([] if prefix else ["without low rank"])]
        for label in others:
            part, cells, verdicts = label.rpartition("without ")[2], [], []
            for name in names:
                without = folds_of(results, label, name)
                gain, p = float((full[name] - without).mean()), compare_folds(full[name], without)
                gains.setdefault(part, []).append(gain)
                cells.append(f"{-gain:+.3f} (p = {p:.3f})")
                verdicts.append(OPEN if p >= LEVEL else HOLDS if gain > 0 else FAILS)
            rows.append((variant, f"without {part}", *cells))
            counts = [verdicts.count(verdict) for verdict in (HOLDS, FAILS, OPEN)]
            overall = HOLDS if counts[0] == len(names) else FAILS if counts[1] else OPEN
            claims.append(
                (
                    f"{part}: removing it costs precision everywhere, {variant}"
                    + ("" if part in PARTS else " (not claimed)"),
                    overall,
                    f"costs on {counts[0]}, gains on {counts[1]}, not decided on {counts[2]} of {len(names)}; mean cost "
                    f"{np.mean(gains[part]):.3f}",
                )
            )
        means = {part: float(np.mean(gains[part])) for part in PARTS}
        best = max(means, key=lambda part: means[part])
        claims.append(
            (
                f"removing the alignment costs most, {variant}",
                HOLDS if best == "alignment" else FAILS,
                "mean cost: " + ", ".join(f"{part} {mean:.3f}" for part, mean in means.items()),
            )
        )
    floor = ("ridge on candidates", "", *(f"{folds_of(results, 'ridge', name).mean():.3f}" for name in names))
    rule = (
        "Rule: on a data set the removal of a part costs (gains) precision if the difference is negative (positive), "
        f"p < {LEVEL}; a claim holds if it costs on all, does not hold if it gains on one, and is not decided otherwise."
    )
    table = make_table(("variant", "", *names), [*rows, floor])
    return "\n\n".join([table, make_claims(claims), rule])


def account_for_sensitivity(results: Results) -> str:
    """Where the best value of each weight lies."""
    (name,) = results.suite.configurations
    rows, claims = [], []
    for label in dict.fromkeys(label for label, _ in results.sweeps):
        variant = label.removesuffix(", varied")
        for parameter, values in results.suite.method(label).sweep.items():
            folds = [
                np.array(
                    [r["metrics"][AP] for r in results.sweeps[label, parameter][str(value), name].records]
                )
                for value in values
            ]
            means = np.array([each.mean() for each in folds])
            best = int(means.argmax())
            rows.append((variant, WEIGHTS[parameter], *(f"{mean:.3f}" for mean in means)))
            ends = [compare_folds(folds[best], folds[end]) for end in (0, -1)]
            inside = 0 < best < len(values) - 1
            verdict = FAILS if not inside else HOLDS if max(ends) < LEVEL else OPEN
            claims.append(
                (
                    f"{WEIGHTS[parameter]} is best at a middle value, {variant}",
                    verdict,
                    f"best at {values[best]:g} ({means[best]:.3f}); at {values[0]:g} {means[0]:.3f} (p = {ends[0]:.3f}), "
                    f"at {values[-1]:g} {means[-1]:.3f} (p = {ends[1]:.3f})",
                )
            )
    rule = (
        f"Rule: holds if the best of the six values is neither the smallest nor the largest and better than both, "
        f"p < {LEVEL} (not corrected for having chosen the best); does not hold if it is one of them."
    )
    table = make_table(("variant", "weight", *(f"{10.0**power:g}" for power in range(-4, 2))), rows)
    return "\n\n".join([f"Average precision on {name}, mean over 10 folds", table, make_claims(claims), rule])


def account_for_convergence(results: Results) -> str:
    """When the objective is stable, and whether it rises."""
    rows, claims = [], []
    for label in results.labels():
        after, rising, stops = {}, {}, {}
        for name in results.suite.configurations:
            (record,) = results.cells[label, name].records
            course = np.array(record["history"]["objective"])
            assert len(course) == 50
            change = np.abs(np.diff(course)) / course[:-1]
            stops[name] = int((change <= 1e-3).argmax()) + 2 if (change <= 1e-3).any() else None
            after[name] = course[-1] / course[9] - 1
            rising[name] = course[-1] / course.min() - 1
            low = int(course.argmin()) + 1
            rows.append(
                (
                    label,
                    name,
                    f"{course[0]:,.0f}",
                    f"{course[9]:,.0f}",
                    f"{course[-1]:,.0f}",
                    f"{after[name]:+.1%}",
                    str(stops[name] or "–"),
                    f"{low}" + (f", then {rising[name]:+.1%}" if rising[name] > 5e-4 else ""),
                    f"{record['history']['basis_drift'][-1]:.3f}",
                )
            )
        late = [name for name, value in after.items() if abs(value) > EQUAL]
        claims.append(
            (
                f"stable within about 10 iterations on all nine, {label}",
                HOLDS if not late else FAILS,
                f"J changes by more than 1 % after iteration 10 on {len(late)}{': ' if late else ''}{', '.join(late)}; "
                f"the stop rule of the paper is met at iterations {span(stops.values())}",
            )
        )
        up = [f"{name} {value:+.1%}" for name, value in rising.items() if value > 5e-4]
        claims.append(
            (
                f"the objective falls, {label}",
                HOLDS if not up else FAILS,
                f"ends above its lowest value on {len(up)} of 9{': ' if up else ''}{', '.join(up)}",
            )
        )
    titles = (
        "variant",
        "data",
        "J, iteration 1",
        "10",
        "50",
        "from 10 to 50",
        "change ≤ 0.001 at",
        "lowest at",
        "‖Q − I‖ at 50",
    )
    rule = (
        "Rule: stable if J changes by at most 1 % from iteration 10 to 50; falls if it ends within 0.05 % of its lowest "
        "value."
    )
    return "\n\n".join([make_claims(claims), rule, make_table(titles, rows)])


def span(values: Iterable[int | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known)} to {max(known)}" if known else "none"


def account_for_decomposition(results: Results) -> str:
    """Classifiers trained on recovered labels, and how well these separate false candidates."""
    labels = results.labels()
    recovered = [label for label in labels if results.role(label) == "method"]
    rows, auc_rows, gap = [], [], {}
    for name in results.suite.configurations:
        means = {label: folds_of(results, label, name).mean() for label in labels}
        rows.append((name, *(f"{means[label]:.3f}" for label in labels)))
        gap[name] = means
        auc_rows.append(
            (name, *(f"{folds_of(results, label, name, 'auc').mean():.3f}" for label in recovered))
        )
    chosen = [
        (
            label,
            ", ".join(
                f"{value:g} ({count})"
                for value, count in zip(
                    *np.unique(
                        [
                            r["chosen"]["weight"]
                            for n in results.suite.configurations
                            for r in results.cells[label, n].records
                        ],
                        return_counts=True,
                    ),
                    strict=True,
                )
            ),
        )
        for label in ("LRO", "LRS")
    ]
    claims = []
    for dataset in ("yeast", "reference"):
        levels = [name for name in results.suite.configurations if name.startswith(f"{dataset}-")]
        low, high = levels[0], levels[-1]
        lead = np.array([gap[name]["LRO"] - gap[name]["LRS"] for name in levels])
        listed = ", ".join(f"{name} {value:+.3f}" for name, value in zip(levels, lead, strict=True))
        claims += [
            (
                f"the classifier from LRO is nearer to that from the truth than the one from LRS, {dataset}",
                HOLDS if (lead > EQUAL).all() else FAILS if (lead < -EQUAL).any() else OPEN,
                f"LRO − LRS: {listed}",
            ),
            (
                f"LRO and LRS are alike under little noise, {dataset}",
                HOLDS if abs(lead[0]) <= EQUAL else FAILS,
                f"{low}: {lead[0]:+.3f}",
            ),
            (
                f"the lead of LRO grows with the noise, {dataset}",
                HOLDS if lead[-1] - lead[0] > EQUAL else FAILS if lead[-1] - lead[0] < -EQUAL else OPEN,
                f"{lead[0]:+.3f} on {low}, {lead[-1]:+.3f} on {high}",
            ),
            (
                f"LRO removes noise: better than training on the candidates, {dataset} (implied)",
                judge_gain(np.array([gap[name]["LRO"] - gap[name]["candidates"] for name in levels])),
                "LRO − candidates: "
                + ", ".join(f"{name} {gap[name]['LRO'] - gap[name]['candidates']:+.3f}" for name in levels),
            ),
        ]
    rule = (
        f"Rule: differences of at most {EQUAL} are called equal. A lead holds if it is larger at every level, does not "
        "hold if the other is ahead at one, and cannot be decided otherwise."
    )
    return "\n\n".join(
        [
            f"**Test average precision** of the same classifier, mean over {len(results.suite.only_folds or ())} folds",
            make_table(("data", *labels), rows),
            "**AUC** of separating false candidates of the training rows",
            make_table(("data", *recovered), auc_rows),
            "Weights chosen without true labels, and how often: "
            + "; ".join(f"{label} {text}" for label, text in chosen)
            + ".",
            make_claims(claims),
            rule,
        ]
    )


def judge_gain(gains: np.ndarray) -> str:
    return HOLDS if (gains > EQUAL).all() else OPEN if (gains > EQUAL).any() else FAILS


ACCOUNTS = {
    "variants": account_for_variants,
    "ablation": account_for_ablation,
    "sensitivity": account_for_sensitivity,
    "convergence": account_for_convergence,
    "decomposition": account_for_decomposition,
}


if __name__ == "__main__":
    main()
