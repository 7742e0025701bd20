"""Why some figures of benchmarks/baselines.py lie below published: other settings, tried to explain, not to choose.

    python benchmarks/gaps.py             # writes results/gaps.md

Same folds, same noise; the defaults are those of results/baselines.csv. These are looks at test folds: none of the
settings below became a default. Needs the data sets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import joblib
import numpy as np

from baselines import by_cell, published_precision, read, run_fold
from skpml import get_method

OUTPUT = Path(__file__).parents[1] / "results" / "gaps.md"
# Method, data, and what is changed against the defaults.
SETTINGS = [
    ("pml-ma", "birds-3", [dict(ridge_weight=0.1)]),
    (
        "pml-nd",
        "scene-3",
        [
            dict(gamma=1.0),
            dict(gamma=4.0),
            dict(beta=16.0),
            dict(damping="identity"),
            dict(solver="multiplicative"),
        ],
    ),
    (
        "pml-nd",
        "yeast-7",
        [dict(credible="share"), dict(credible="share", damping="identity"), dict(gamma=1.0)],
    ),
    ("pamb", "birds-3", [dict(lam=0.1), dict(z=17), dict(z_role="nonzero"), dict(n_columns=2000)]),
    ("pamb", "yeast-7", [dict(lam=0.1), dict(z=12), dict(z_role="nonzero"), dict(n_columns=2000)]),
    ("pml-fp", "yeast-7", [dict(C3=0.1), dict(C3=1.0), dict(C3=100.0)]),
    ("pml-plr", "arts-5", [dict(beta=0.01, lam=1.0)]),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    printed = published_precision()
    measured = by_cell(read())
    lines = ["| method | data | published | changed | average precision |", "|---|---|---|---|---|"]
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for name, data, changes in SETTINGS:
            for change in [{}, *changes]:
                folds = (
                    parallel(joblib.delayed(run_fold)(name, data, fold, **change) for fold in range(10))
                    if change
                    else measured[name, data]
                )
                mean = np.mean([fold["average_precision"] for fold in folds])
                what = ", ".join(f"`{key}={value!r}`" for key, value in change.items()) or "nothing"
                title = get_method(name).title.split(" (")[0]
                lines.append(f"| {title} | {data} | {printed[name, data]:.3f} | {what} | {mean:.3f} |")
                print(lines[-1], flush=True)
                OUTPUT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
