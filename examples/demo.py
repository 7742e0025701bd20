"""Show what scikit-pml does, on data that are part of the package: about a minute, no download.

1. Clean a CSV file: find wrong tags that were planted among the tags of 500 pictures, and write a page to review them.
2. Compare methods: learn labels from candidates of which 42% are wrong, and test on true labels.

All files are written to the folder ``demo`` of the current directory.
"""

import time
from pathlib import Path

from skpml.cleaning import audit, read_decisions
from skpml.datasets import write_example
from skpml.experiments import Store, Suite, collect, expand, run_plan, write_report
from skpml.review import write_review
from skpml.tables import Columns, read_table, write_cleaned

FOLDER = Path("demo")
RIDGE_WEIGHTS = [0.01, 0.1, 1.0, 10.0]


def clean_table(folder):
    """Clean a table of tagged pictures and count how many of the planted tags were found."""
    write_example(folder, overwrite=True)
    table = read_table(folder / "digits.csv", columns=Columns(id="file", image="file"))
    found = audit(table.X, table.candidates, label_names=table.label_names)
    write_cleaned(table, found.actions == "drop", folder / "cleaned.csv", overwrite=True)
    write_review(table, found, folder / "review.html", overwrite=True)

    # Only the count below reads this file; the audit did not.
    planted = read_decisions(folder / "planted.csv", table).drop_mask(table)
    wrong = {action: int((planted & (found.actions == action)).sum()) for action in ("drop", "ask", "keep")}
    lost = int((~planted & (found.actions == "drop")).sum())
    print(f"   {planted.sum()} of {table.candidates.sum():,} tags are wrong; they were planted.")
    print(f"   {wrong['drop']:4d} wrong tags were dropped,")
    print(f"   {wrong['ask']:4d} are left for you to decide on the review page,")
    print(f"   {wrong['keep']:4d} were missed.")
    print(f"   {lost:4d} correct tags were dropped by mistake.")


def compare_methods(folder):
    """Cross-validate two methods between a floor and a ceiling, and write a report."""

    def tuning(selector, weight="gamma"):
        return {"selector": selector, "grid": {weight: RIDGE_WEIGHTS}}

    methods = [
        {"name": "ridge", "label": "ridge on candidates", "role": "floor", "tuning": tuning("label-free")},
        {"name": "pml-ma", "label": "PML-MA", "tuning": tuning("label-free", "ridge_weight")},
        {"name": "candidate-likelihood", "label": "CandidateLikelihood"},
        {"name": "ridge", "label": "ridge on true labels", "role": "ceiling", "tuning": tuning("oracle")},
    ]
    suite = Suite(name="demo", title="Demonstration", configurations=["digits-6"], folds=3, methods=methods)
    plan = expand(suite)
    run_plan(plan, folder, jobs=2)
    results = collect(plan, Store(folder).records())
    write_report(results, folder / "report.html")
    scores = results.table("average_precision").loc["digits-6"]
    print("   42% of the candidates are wrong. Average precision on held-out rows, with true labels:")
    for method, note in zip(methods, ("floor: believes every candidate", "", "", "ceiling"), strict=True):
        mean, deviation = scores[method["label"]][["mean", "fold_std"]]
        print(f"   {method['label']:22s} {mean:.3f} ± {deviation:.3f}   {note}".rstrip())


if __name__ == "__main__":
    start = time.monotonic()
    FOLDER.mkdir(exist_ok=True)
    print("This takes about a minute.\n")
    print("1. Clean tagged pictures of handwritten digits")
    clean_table(FOLDER / "cleaning")
    print("\n2. Learn from candidate labels")
    compare_methods(FOLDER / "comparison")
    print(f"\nDone in {time.monotonic() - start:.0f} seconds. Look at:")
    print(f"   {FOLDER / 'cleaning' / 'cleaned.csv'}    the table without the dropped tags")
    print(f"   {FOLDER / 'cleaning' / 'review.html'}    a page to decide about doubtful tags, by keyboard")
    print(f"   {FOLDER / 'comparison' / 'report.html'}  the comparison in detail")
