"""How often the interval of an audit holds the number of wrong tags.

    python benchmarks/interval_coverage.py

Three kinds of rows: the digits of ``skpml data example``; made-up rows of five labels; and made-up rows of twenty labels
with a long tail. False tags are planted anew for each seed, as often for each label or in proportion to its frequency.
Intervals are meant to hold nine times of ten. Writes results/interval_coverage.md.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from skpml._writing import replacing
from skpml.cleaning import audit
from skpml.datasets import write_example

OUTPUT = Path(__file__).parents[1] / "results" / "interval_coverage.md"
SEEDS = range(1, 11)
RUNS = (
    ("digits", "alike", 0.02), ("digits", "alike", 0.05), ("digits", "alike", 0.2),
    ("five labels", "alike", 0.05), ("five labels", "alike", 0.2),
    ("long tail", "alike", 0.03), ("long tail", "by frequency", 0.03),
)  # fmt: skip


def main() -> None:
    lines = [
        "| rows | false tags | rate | runs | planted, mean | estimated, mean | total in its interval "
        "| labels in theirs |",
        "|---" * 8 + "|",
    ]
    held = 0
    for kind, noise, rate in RUNS:
        planted, estimated, total, labels = [], [], [], []
        for seed in SEEDS:
            X, truth, candidates = rows(kind, noise, rate, seed)
            wrong = (candidates > truth).sum(axis=0)
            found = audit(X, candidates).wrong
            estimate, low, high = found.total
            planted.append(wrong.sum())
            estimated.append(estimate)
            total.append(low <= wrong.sum() <= high)
            labels.append(np.mean((found.low <= wrong) & (wrong <= found.high)))
        held += sum(total)
        lines.append(
            f"| {kind} | {noise} | {rate:.0%} | {len(SEEDS)} | {np.mean(planted):.0f} | {np.mean(estimated):.0f} | "
            f"{sum(total)} of {len(SEEDS)} | {np.mean(labels):.0%} |"
        )
        print(lines[-1], flush=True)
    lines += ["", f"In all, {held} of {len(RUNS) * len(SEEDS)} intervals of the total hold it."]
    print(lines[-1])
    with replacing(OUTPUT, overwrite=True) as (temporary,):
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def rows(kind: str, noise: str, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, true labels and candidates."""
    rng = np.random.default_rng(seed)
    if kind == "digits":
        with TemporaryDirectory() as folder:
            digits = write_example(Path(folder, "digits"))
        X, truth = digits.X, digits.truth
    else:
        frequency = (
            np.full(5, 0.3) if kind == "five labels" else np.clip(0.5 / np.arange(1, 21) ** 1.3, 0.02, 1)
        )
        truth = (rng.random((400, len(frequency))) < frequency).astype(np.uint8)
        X = truth @ rng.normal(size=(len(frequency), 16)) + 0.3 * rng.normal(size=(400, 16))
    share = truth.mean(axis=0)
    rates = np.full(len(share), rate) if noise == "alike" else rate * share / share.mean()
    return X, truth, np.maximum(truth, rng.random(truth.shape) < rates).astype(np.uint8)


if __name__ == "__main__":
    main()
