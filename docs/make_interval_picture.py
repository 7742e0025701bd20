"""Draw docs/_static/interval.svg: how the interval for the share of wrong tags shrinks with checked tags.

    python docs/make_interval_picture.py

From results/real_noise_order.csv, which benchmarks/real_noise.py writes.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd

HERE = Path(__file__).parent
SETS = {
    "given:mirflickr_subset5000": "photos, real mistakes",
    "given:medical_relations": "sentences, real mistakes",
}


def main() -> None:
    frame = pd.read_csv(HERE.parent / "results" / "real_noise_order.csv")
    mpl.rcParams.update({"svg.hashsalt": "skpml", "font.size": 9, "svg.fonttype": "path"})
    figure, axes = plt.subplots(1, len(SETS), figsize=(7, 2.6), sharey=True, layout="constrained")
    for axis, (name, title) in zip(axes, SETS.items(), strict=True):
        of_set = frame[(frame["set"] == name) & (frame["cells"] >= 25)]
        means = of_set.groupby("cells")[["width 0.9", "plain width"]].mean() * 50
        axis.fill_between(means.index, -means["plain width"], means["plain width"], color="0.88", lw=0,
                          label="share of the checked tags alone")  # fmt: skip
        axis.errorbar(means.index, 0 * means["width 0.9"], yerr=means["width 0.9"], fmt="none", ecolor="C0", elinewidth=3,
                      label="with the model")  # fmt: skip
        axis.axhline(0, color="0.5", lw=0.8)
        axis.set_title(title, fontsize=9)
        axis.set_xscale("log")
        axis.set_xticks(means.index, [str(n) for n in means.index])
        axis.minorticks_off()
        axis.set_xlabel("checked tags")
    axes[0].set_ylabel("90 % interval,\npercentage points")
    axes[-1].legend(frameon=False, fontsize=8)
    figure.savefig(HERE / "_static" / "interval.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
