"""What an audit costs: CPU time of ``audit``, of ``audit(fast=True)``, and of logistic regression plus cleanlab.

    OMP_NUM_THREADS=1 python benchmarks/audit_speed.py
    python benchmarks/audit_speed.py --large        # wall-clock time of two large tables of texts, on all cores

The measure is what people do otherwise: one logistic regression for each label, five folds, C of 0.1, 1 and 10 chosen by
the log loss of the tags, then cleanlab's scores and issues, in the same process. Writes results/audit_speed.md, or
results/audit_speed_large.md. Needs the data sets (SKPML_DATA), cleanlab, and for texts Debian's list of packages
(``apt-cache dumpavail``), whose tags are curated; wrong tags are planted at random where the candidates are the truth.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from cleaning import cleanlab_issues, cleanlab_quality
from skpml._writing import replacing
from skpml.cleaning import audit
from skpml.datasets import load_dataset
from skpml.tables._features import as_text_column, fit_text_features

RESULTS = Path(__file__).parents[1] / "results"
# Small, small and wide, images, words, many labels; then texts: rows, and rows that a tag must have.
DATA = ("emotions-4", "genbase-5", "scene-3", "health-7", "corel5k")
TEXTS = (2000, 5)
# 449 and 134 tags.
LARGE = ((2000, 1), (30_000, 100))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = measure_large() if options.large else measure_sets()
    name = "audit_speed_large.md" if options.large else "audit_speed.md"
    with replacing(RESULTS / name, overwrite=True) as (temporary,):
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure_sets() -> list[str]:
    head = ["data", "rows × features × labels", "logistic regression + cleanlab, CPU s", "audit", "audit, fast",
            "AUC of wrong tags: logistic regression", "audit", "audit, fast"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in (*DATA, "packages"):
        X, Y, truth, texts = load_texts(*TEXTS) if name == "packages" else load(name)
        usual, usual_cost = timed(lambda X=X, Y=Y, texts=texts: compare(X, Y, texts))
        family = "auto" if texts is None else "logistic"
        full, full_cost = timed(lambda X=X, Y=Y, family=family: audit(X, Y, family=family).confidences)
        fast, fast_cost = timed(lambda X=X, Y=Y: audit(X, Y, fast=True).confidences)
        candidate = Y > 0
        areas = [roc_auc_score(truth[candidate] == 0, -each[candidate]) for each in (usual, full, fast)]
        shape = f"{X.shape[0]:,} × {X.shape[1]:,} × {Y.shape[1]:,}"
        costs = f"{usual_cost:.1f} | {full_cost / usual_cost:.1f} × | {fast_cost / usual_cost:.1f} ×"
        lines.append(f"| {name} | {shape} | {costs} | {' | '.join(f'{area:.3f}' for area in areas)} |")
        print(lines[-1], flush=True)
    return lines


def measure_large() -> list[str]:
    lines = ["| rows × labels | tags | audit, minutes |", "|---|---|---|"]
    for n_rows, least in LARGE:
        begin = time.perf_counter()
        X, Y, _, _ = load_texts(n_rows, least)
        audit(X, Y, family="logistic")
        minutes = (time.perf_counter() - begin) / 60
        lines.append(f"| {Y.shape[0]:,} × {Y.shape[1]:,} | {Y.sum():,} | {minutes:.1f} |")
        print(lines[-1], flush=True)
    return lines


def timed(work):
    begin = time.process_time()
    found = work()
    return found, time.process_time() - begin


def load(name: str):
    data = load_dataset(name, random_state=0)
    Y, truth = (
        np.asarray(data.candidates, dtype=np.uint8),
        np.asarray(data.candidates if data.truth is None else data.truth),
    )
    return data.X, plant(Y, 0.3) if (truth == Y).all() else Y, truth, None


def load_texts(n_rows: int, least: int):
    """Return features, tags with 15 % planted ones, the curated tags, and the texts of Debian packages."""
    texts, truth = read_packages(n_rows, least)
    X = fit_text_features(texts).transform(as_text_column(texts))
    return X, plant(truth, 0.15), truth, texts


def read_packages(n_rows: int, least: int) -> tuple[list[str], np.ndarray]:
    """Return the short descriptions and the tags, of at least so many rows each, of random Debian packages."""
    listing = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    packages = {}
    for block in listing.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): *((?:.*)(?:\n .*)*)", block, flags=re.MULTILINE))
        if "Tag" in fields and "Package" in fields:
            tags = [tag.strip() for tag in fields["Tag"].replace("\n", " ").split(",") if tag.strip()]
            packages.setdefault(fields["Package"], (fields.get("Description", "").split("\n")[0], tags))
    rows = list(packages.values())
    rows = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))[:n_rows]]
    counts = Counter(tag for _, tags in rows for tag in tags)
    names = sorted(tag for tag, count in counts.items() if count >= least)
    truth = np.array([[name in tags for name in names] for tags in (set(tags) for _, tags in rows)])
    kept = truth.any(axis=1)
    return [text for (text, _), keep in zip(rows, kept, strict=True) if keep], truth[kept].astype(np.uint8)


def plant(truth: np.ndarray, share: float, *, random_state: int = 0) -> np.ndarray:
    """Add random wrong tags, this share of the true ones."""
    absent = np.argwhere(truth == 0)
    drawn = absent[np.random.default_rng(random_state).permutation(len(absent))[: int(share * truth.sum())]]
    planted = np.array(truth, dtype=np.uint8)
    planted[tuple(drawn.T)] = 1
    return planted


def compare(X, Y: np.ndarray, texts: list[str] | None) -> np.ndarray:
    """Return the out-of-fold probabilities of the best logistic regression, after cleanlab has judged them."""
    if texts is not None:
        X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    else:
        X = (MaxAbsScaler() if scipy.sparse.issparse(X) else MinMaxScaler()).fit_transform(X)
    best, least = None, np.inf
    for C in (0.1, 1.0, 10.0):
        p = np.empty(Y.shape)
        for train, held_out in KFold(5, shuffle=True, random_state=0).split(p):
            for label in range(Y.shape[1]):
                y = Y[train, label]
                p[held_out, label] = y.mean()
                if y.min() < y.max():
                    model = LogisticRegression(C=C, max_iter=200).fit(X[train], y)
                    p[held_out, label] = model.predict_proba(X[held_out])[:, 1]
        p = np.clip(p, 1e-6, 1 - 1e-6)
        loss = -np.mean(np.where(Y > 0, np.log(p), np.log1p(-p)))
        if loss < least:
            best, least = p, loss
    cleanlab_quality(Y, best)
    cleanlab_issues(Y, best)
    return best


if __name__ == "__main__":
    main()
