"""Which planted wrong tags of texts stand at the head of the list? TF-IDF, embeddings, and logistic regression.

    python benchmarks/text_tags.py --model MODEL       # name or folder of a model for sentence-transformers

Of curated tags, 15 % more are planted at random. The table has the share of planted tags among the 200, 400 and 800 least
believed: by TF-IDF and logistic regression (five folds; C as in audit_speed.py), by the audit with its own text features,
and by the audit with embeddings of MODEL, alone and beside the text features. Writes results/text_tags.md. Needs Debian's
list of packages (``apt-cache dumpavail``), and the crowd set medical_relations (SKPML_CROWD), of which the texts and the
true relations are used.
"""

from __future__ import annotations

import argparse
import os
import warnings
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    head = ["texts", "tags", "planted", "judged by", *(f"planted among {n}" for n in HEADS), "AUC"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, (texts, truth) in {"packages": read_packages(2000, 20), "relations": read_relations()}.items():
        Y = plant(truth, 0.15)
        wrong = (truth < Y)[Y > 0]
        for what, confidences in judge(texts, Y, options.model):
            beliefs = confidences[Y > 0]
            order = np.argsort(beliefs, kind="stable")
            shares = [f"{wrong[order[:n]].mean():.3f}" for n in HEADS]
            area = f"{roc_auc_score(wrong, -beliefs):.3f}"
            cells = [
                f"{name}, {len(texts):,} × {Y.shape[1]}",
                f"{Y.sum():,}",
                f"{wrong.sum():,}",
                what,
                *shares,
                area,
            ]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    with replacing(OUTPUT, overwrite=True) as (temporary,):
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def judge(texts: list[str], Y: np.ndarray, model: str):
    yield "TF-IDF, logistic regression", compare(None, Y, texts)
    words = fit_text_features(texts).transform(as_text_column(texts))
    yield "TF-IDF, audit", audit(words, Y).confidences
    embedded = np.asarray(embed_texts(texts, model), dtype=np.float64)
    yield "embeddings, audit", audit(embedded, Y).confidences
    both = np.hstack([np.asarray(words), embedded])
    n_words, n_both = words.shape[1], both.shape[1]
    views = {"words": list(range(n_words)), "embeddings": list(range(n_words, n_both))}
    yield "both, audit", audit(both, Y, views=views).confidences


def read_relations() -> tuple[list[str], np.ndarray]:
    folder = os.environ.get("SKPML_CROWD")
    if folder is None:
        raise SystemExit("set SKPML_CROWD to the folder of medical_relations.npz")
    content = np.load(Path(folder) / "medical_relations.npz", allow_pickle=False)
    truth = content["Y_true"]
    kept = truth.any(axis=1)
    return content["texts"][kept].tolist(), truth[kept][:, truth[kept].sum(axis=0) >= 20]


if __name__ == "__main__":
    main()
