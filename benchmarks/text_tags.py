"""Which planted wrong tags of texts stand at the head of the list? TF-IDF, embeddings, and logistic regression.

    python benchmarks/text_tags.py --model MODEL --applications Components-amd64.yml.gz

MODEL is the name or folder of a model for sentence-transformers. Of curated tags, 15 % more are planted at random, three
times. The table has the mean share of planted tags among the 200, 400 and 800 least believed: by TF-IDF and logistic
regression (five folds; C as in audit_speed.py); by the audit that ``skpml clean --text`` makes, with its own features
or with embeddings of MODEL; and by an audit with both, as two views. "More than the first" are points of the share among
200, with the standard error of this difference over the three draws. Writes results/text_tags.md if all sets are there:

* packages: short descriptions of Debian packages, and their debtags (``apt-cache dumpavail``);
* applications: descriptions of desktop applications and their categories, from a file of AppStream, such as
  dists/bookworm/main/dep11/Components-amd64.yml.gz of any mirror of Debian;
* relations and comments: texts and true labels of the crowd sets medical_relations and unhealthy_comments (SKPML_CROWD).
"""

from __future__ import annotations

import argparse
import gzip
import html
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from audit_speed import compare, plant, read_packages
from sklearn.metrics import roc_auc_score

from skpml._writing import replacing
from skpml.cleaning import audit
from skpml.embeddings import embed_texts
from skpml.tables._features import as_text_column, fit_text_features

OUTPUT = Path(__file__).parents[1] / "results" / "text_tags.md"
HEADS = (200, 400, 800)
DRAWS = (0, 1, 2)
# Rows that a tag must have.
LEAST = 20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--applications", type=Path, metavar="FILE.yml.gz")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    head = ["texts", "tags", "planted", "judged by", *(f"planted among {n}" for n in HEADS), "AUC",
            f"more than the first, of {HEADS[0]}"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    sets = {"packages": read_packages(2000, LEAST)}
    if options.applications is not None and options.applications.exists():
        sets["applications"] = read_applications(options.applications)
    for name, source in {"relations": "medical_relations", "comments": "unhealthy_comments"}.items():
        sets[name] = read_crowd(source)
    for name, (texts, truth) in sets.items():
        for line in measure(texts, truth, options.model):
            lines.append(f"| {name}, {len(texts):,} × {truth.shape[1]} | {line} |")
            print(lines[-1], flush=True)
    if "applications" not in sets:
        print(f"{OUTPUT.name} is not written: --applications is missing, or there is no such file.")
        return
    with replacing(OUTPUT, overwrite=True) as (temporary,):
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure(texts: list[str], truth: np.ndarray, model: str) -> list[str]:
    """Return a line for each way to judge: means over the draws of planted tags."""
    features = make_features(texts, model)
    found: dict[str, list[list[float]]] = {}
    for draw in DRAWS:
        Y = plant(truth, 0.15, random_state=draw)
        wrong = (truth < Y)[Y > 0]
        for what, confidences in judge(texts, features, Y):
            beliefs = confidences[Y > 0]
            order = np.argsort(beliefs, kind="stable")
            shares = [wrong[order[:n]].mean() for n in HEADS]
            found.setdefault(what, []).append([*shares, roc_auc_score(wrong, -beliefs)])
    first = np.array(next(iter(found.values())))
    lines = []
    for what, values in found.items():
        shown = [f"{mean:.3f}" for mean in np.mean(values, axis=0)]
        more = 100 * (np.array(values)[:, 0] - first[:, 0])
        error = more.std(ddof=1) / np.sqrt(len(DRAWS))
        gain = f"{more.mean():+.1f} ± {error:.1f}" if lines else ""
        lines.append(" | ".join([f"{Y.sum():,}", f"{wrong.sum():,}", what, *shown, gain]))
    return lines


def make_features(texts: list[str], model: str) -> dict[str, np.ndarray]:
    words = fit_text_features(texts).transform(as_text_column(texts))
    return {"words": np.asarray(words), "embeddings": np.asarray(embed_texts(texts, model), dtype=np.float64)}


def judge(
    texts: list[str], features: dict[str, np.ndarray], Y: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    yield "TF-IDF, logistic regression", compare(None, Y, texts)
    yield "TF-IDF, audit", audit(features["words"], Y, family="logistic").confidences
    yield "embeddings, audit", audit(features["embeddings"], Y, family="logistic").confidences
    ends = np.cumsum([0, *(each.shape[1] for each in features.values())]).tolist()
    views = {name: list(range(*ends[place : place + 2])) for place, name in enumerate(features)}
    both = np.hstack(list(features.values()))
    yield "both, audit", audit(both, Y, views=views, family="logistic").confidences


def read_applications(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the English descriptions of applications, and their categories."""
    import yaml

    with gzip.open(path, "rt", encoding="utf-8") as file:
        components = list(yaml.load_all(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    rows = []
    for component in components:
        summary = component.get("Summary", {}).get("C")
        if summary and component.get("Categories"):
            markup = component.get("Description", {}).get("C", "")
            text = f"{summary}. {html.unescape(re.sub('<[^>]+>', ' ', markup))}"
            rows.append((" ".join(text.split()), set(component["Categories"])))
    counts = Counter(category for _, categories in rows for category in categories)
    names = sorted(name for name, count in counts.items() if count >= LEAST)
    truth = np.array([[name in categories for name in names] for _, categories in rows])
    kept = truth.any(axis=1)
    return [text for (text, _), keep in zip(rows, kept, strict=True) if keep], truth[kept].astype(np.uint8)


def read_crowd(name: str) -> tuple[list[str], np.ndarray]:
    folder = os.environ.get("SKPML_CROWD")
    if folder is None:
        raise SystemExit(f"set SKPML_CROWD to the folder of {name}.npz")
    content = np.load(Path(folder) / f"{name}.npz", allow_pickle=False)
    truth = content["Y_true"]
    kept = truth.any(axis=1)
    return content["texts"][kept].tolist(), truth[kept][:, truth[kept].sum(axis=0) >= LEAST]


if __name__ == "__main__":
    main()
