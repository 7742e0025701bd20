"""How often the interval of an audit holds the number of wrong tags.

    python benchmarks/interval_coverage.py

The digits of ``skpml data example``, with tags planted anew for each seed and each rate; intervals are meant to hold nine
times of ten. Writes results/interval_coverage.md.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from skpml.cleaning import audit, write_example
from skpml.noise import flip
from skpml.writing import replacing

OUTPUT = Path(__file__).parents[1] / "results" / "interval_coverage.md"
RATES, SEEDS = (0.02, 0.05, 0.1, 0.2), range(1, 11)


def main() -> None:
    with TemporaryDirectory() as folder:
        digits = write_example(Path(folder, "digits"))
    lines = [
        "| false tags | runs | planted, mean | estimated, mean | total in its interval | labels in theirs |",
        "|---" * 6 + "|",
    ]
    for rate in RATES:
        planted, estimated, total, labels = [], [], [], []
        for seed in SEEDS:
            candidates = flip(digits.truth, rate, random_state=seed)
            wrong = (candidates > digits.truth).sum(axis=0)
            found = audit(digits.X, candidates).wrong
            estimate, low, high = found.total
            planted.append(wrong.sum())
            estimated.append(estimate)
            total.append(low <= wrong.sum() <= high)
            labels.append(np.mean((found.low <= wrong) & (wrong <= found.high)))
        lines.append(
            f"| {rate:.0%} | {len(SEEDS)} | {np.mean(planted):.0f} | {np.mean(estimated):.0f} | "
            f"{sum(total)} of {len(SEEDS)} | {np.mean(labels):.0%} |"
        )
        print(lines[-1], flush=True)
    with replacing(OUTPUT, overwrite=True) as (temporary,):
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
