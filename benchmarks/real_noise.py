"""Noise as people and machines make it: what checked tags teach, whether intervals hold, and that nothing is harmed.

    python benchmarks/real_noise.py --part audits --jobs 2                   # audits without checked tags
    python benchmarks/real_noise.py --part order --jobs 2                    # 20 draws of checked tags
    python benchmarks/real_noise.py --part intervals --jobs 2                # 200 draws
    python benchmarks/real_noise.py --part test --jobs 2                     # the test of random noise, 100 draws
    python benchmarks/real_noise.py --part classifier --jobs 2
    python benchmarks/real_noise.py --part tables                            # results/real_noise.md, from the CSV files

Sets are called ``kind:data``: ``given`` has the candidates of the data set (uniform noise at k, or real), ``label`` and
``instance`` the other noises of :mod:`skpml.noise` at the same k, ``clean`` the truth as candidates, ``shuffled`` the
features of other rows, ``random`` random embeddings. Audits without checked tags are kept as NPZ in ``--cache``, so that
draws take seconds; checked tags are drawn at random from all tags, and their answers are the true labels. Finished
rows of results/real_noise_*.csv are not done again. Needs the data sets (SKPML_DATA) and the crowd sets (SKPML_CROWD).
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import normalize

from skpml import CandidateLikelihood
from skpml._writing import replacing
from skpml.cleaning._audit import _make_model, judge_by_model, judge_scores
from skpml.cleaning._evidence import conclude, make_spectrum
from skpml.cleaning._judging import count_from_sample, cross_fit
from skpml.datasets import load_dataset
from skpml.metrics import average_precision
from skpml.noise import instance_dependent, label_dependent, top_up

RESULTS = Path(__file__).parents[1] / "results"
REAL = ("mirflickr_subset5000", "medical_relations", "cal500_crowd", "unhealthy_comments")
MADE = ("emotions-4", "scene-3", "yeast-7", "birds-4", "image-3", "arts-7")
ORDERED = ("emotions-4", "scene-3", "arts-7", "birds-4")
TEN = (*MADE, "digits", *REAL[:3])
NOISY = [f"{kind}:{name}" for kind in ("given", "label", "instance") for name in MADE]
SETS = {
    "audits": [
        *(f"given:{name}" for name in (*REAL, "digits")),
        *NOISY,
        *(f"{kind}:{name}" for kind in ("clean", "shuffled", "random") for name in TEN),
    ],
    "order": [*(f"given:{name}" for name in REAL), *(name for name in NOISY if name.split(":")[1] in ORDERED)],
    "intervals": [
        "given:emotions-4", "label:emotions-4", "instance:emotions-4", "given:birds-4", "label:birds-4",
        "instance:birds-4", "given:medical_relations", "given:mirflickr_subset5000",
    ],
    "test": ["birds-4", "scene-3", "image-3", "genbase-5", "arts-7", "digits", "health-7",
             "foodtruck-4"],
    "classifier": [
        "given:mirflickr_subset5000", "label:scene-3", "instance:emotions-4", "instance:scene-3", "instance:birds-4",
        "instance:image-3", "instance:digits", "instance:genbase-5", "instance:yeast-7", "given:emotions-4",
        "given:scene-3",
    ],
}  # fmt: skip
CELLS = {"order": (10, 25, 50, 100, 200), "intervals": (30, 100, 300)}
DRAWS = {"order": 20, "intervals": 200, "test": 100}
RULE = {"drop_below": 0.25, "keep_above": 0.75, "budget": None}
# Rows of the sets on which random noise is tested.
MOST_ROWS = 2500
N_FOLDS = 5
QUIET = {"on_empty": "ignore"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--part", choices=("audits", "order", "intervals", "test", "classifier", "tables"), required=True
    )
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--cells", nargs="+", type=int, help="only these numbers of checked tags")
    parser.add_argument("--draws", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path("real_noise_cache"))
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the CSV files")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.part == "tables":
        with replacing(RESULTS / "real_noise.md", overwrite=True) as (temporary,):
            temporary.write_text(tables(options.output), encoding="utf-8")
        print((RESULTS / "real_noise.md").read_text(encoding="utf-8"), end="")
        return
    sets = options.sets or SETS[options.part]
    if options.part == "audits":
        left = [name for name in sets if not cached(options.cache, name).exists()]
        Parallel(options.jobs)(delayed(audit_without_checks)(name, options.cache) for name in left)
        sets = [name for name in sets if cached(options.cache, name).exists()]
    jobs = list(list_jobs(options, sets))
    path = options.output / f"real_noise_{options.part}.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {(row["set"], row.get("cells", 0), row["draw"]) for row in rows}
    left = [job for job in jobs if job[1:4] not in done]
    work = Parallel(options.jobs, return_as="generator_unordered", batch_size=1)
    for row in work(delayed(one_row)(*job, options.cache) for job in left):
        rows.append(row)
        if len(rows) % 20 == 0 or len(rows) == len(jobs):
            write_csv(rows, path)
            print(len(rows), row["set"], flush=True)
    write_csv(rows, path)


def write_csv(rows: list[dict], path: Path) -> None:
    frame = pd.DataFrame(rows).sort_values(["set", "cells", "draw"])
    with replacing(path, overwrite=True) as (temporary,):
        frame.to_csv(temporary, index=False, float_format="%.4g", lineterminator="\n")


def list_jobs(options: argparse.Namespace, sets: list[str]):
    """Yield (part, set, number of cells, draw)."""
    draws = options.draws or DRAWS.get(options.part, 1 if options.part == "audits" else 3)
    for name in sets:
        for cells in options.cells or CELLS.get(options.part, (200 if options.part == "classifier" else 0,)):
            for draw in range(draws):
                yield options.part, name, cells, draw


def one_row(part: str, name: str, cells: int, draw: int, cache: Path) -> dict:
    what = {
        "audits": no_checks,
        "order": checks,
        "intervals": checks,
        "test": noise_test,
        "classifier": classifier,
    }
    return {"set": name, "cells": cells, "draw": draw, **what[part](name, cells, draw, cache)}


# Data


def load(name: str):
    """Return features, candidates and truth of a set."""
    kind, base = name.split(":")
    random = np.random.RandomState(1)
    if base in REAL[1:]:
        X, Y, truth = load_crowd(base)
    else:
        data = load_dataset(base, random_state=0)
        X, Y, truth = data.X, np.asarray(data.candidates), np.asarray(data.truth)
    k = find_k(base)
    if kind == "label":
        Y = label_dependent(truth, k, random_state=0)
    elif kind == "instance":
        Y = instance_dependent(X, truth, k, random_state=0)
    elif kind == "clean":
        Y = truth
    elif kind == "shuffled":
        X = X[random.permutation(len(Y))]
    elif kind == "random":
        X = random.standard_normal((len(Y), 64))
    return X, np.asarray(Y, dtype=np.uint8), np.asarray(truth, dtype=np.uint8)


def find_k(name: str) -> int:
    """Return the number of candidates of each row, at least; 0 for real candidates."""
    if name == "digits":
        return 6
    return int(name.rsplit("-", 1)[1]) if name[-1].isdigit() and "-" in name else 0


def load_crowd(name: str):
    folder = os.environ.get("SKPML_CROWD")
    if folder is None:
        raise SystemExit(f"{name} is a crowd set: set SKPML_CROWD to the folder of the NPZ files")
    content = np.load(Path(folder) / f"{name}.npz", allow_pickle=False)
    Y = content["Y_candidate"]
    if "X" in content:
        X = content["X"].astype(np.float64)
    else:
        words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(content["texts"].tolist())
        X = normalize(TruncatedSVD(200, random_state=0).fit_transform(words))
    return X, Y, content["Y_true"] * (Y > 0)


def cached(cache: Path, name: str) -> Path:
    return cache / f"{name.replace(':', '_')}.npz"


def audit_without_checks(name: str, cache: Path) -> None:
    """Keep what an audit without checked tags needs."""
    X, Y, truth = load(name)
    model, scores, order = cross_fit(_make_model("candidate-likelihood", len(Y), N_FOLDS, 0), X, Y)
    cache.mkdir(exist_ok=True)
    with replacing(cached(cache, name), overwrite=True) as (temporary,), temporary.open("wb") as file:
        np.savez_compressed(file, Y=Y, truth=truth, scores=scores, order=order, of_all=model.confidences_)
    print("audited", name, flush=True)


_KNOWN: dict = {}


def known(name: str, cache: Path):
    """Return the judgment without checked tags, the spectrum, and the cached arrays, once in each process."""
    if name not in _KNOWN:
        _KNOWN.clear()
        content = dict(np.load(cached(cache, name)))
        first = judge_scores(
            content["scores"], content["Y"], of_all=content["of_all"], order=content["order"], random_state=0
        )
        _KNOWN[name] = first, make_spectrum(load(name)[0], 0), content
    return _KNOWN[name]


# Parts


def no_checks(name: str, cells: int, draw: int, cache: Path) -> dict:
    """What an audit without checked tags does."""
    first, _, content = known(name, cache)
    Y, truth = content["Y"], content["truth"]
    nothing = np.zeros(Y.shape, dtype=np.int8)
    found = conclude(
        first, None, Y, verified=nothing, sample=nothing > 0, rule=RULE, drop_precision=0.9, random_state=0
    )
    wrong, dropped = (Y > 0) & (truth == 0), found.actions == "drop"
    estimate, low, high = found.wrong.total
    return {
        "candidates": int(Y.sum()), "wrong": int(wrong.sum()), "estimate": estimate, "low": low, "high": high,
        "basis": found.wrong.basis, "dropped": int(dropped.sum()), "dropped_wrong": int((dropped & wrong).sum()),
        "promised": found.evidence.drops_wrong,
        "informative": first.informative, "random_noise": first.noise.random_noise,
        "clear_share": first.noise.clear_share, "rate_variation": first.noise.rate_variation,
        "p_value": first.noise.p_value, "auc": area(wrong, -found.confidences, Y > 0),
    }  # fmt: skip


def checks(name: str, cells: int, draw: int, cache: Path) -> dict:
    """What an audit does with randomly checked tags."""
    first, spectrum, content = known(name, cache)
    Y, truth = content["Y"], content["truth"]
    wrong = (Y > 0) & (truth == 0)
    places = np.argwhere(Y > 0)
    drawn = places[np.random.default_rng(draw).permutation(len(places))[:cells]]
    verified = np.zeros(Y.shape, dtype=np.int8)
    verified[tuple(drawn.T)] = np.where(truth[tuple(drawn.T)] > 0, 1, -1)
    left = (Y > 0) & (verified == 0)
    options = {"verified": verified, "sample": verified != 0, "spectrum": spectrum, "random_state": draw}
    found = conclude(first, None, Y, rule=RULE, drop_precision=0.9, **options)
    share = wrong.sum() / (Y > 0).sum()
    row = {
        "auc": area(wrong, -found.confidences, left),
        "before": area(wrong, -first.found.confidences, left),
    }
    order = np.argsort(found.confidences[left], kind="stable")
    found_wrong = np.cumsum(wrong[left][order])
    enough = np.searchsorted(found_wrong, 0.4 * found_wrong[-1])
    row["precision at recall 0.4"] = found_wrong[enough] / (enough + 1)
    for below in (0.2, 0.3):
        row |= precision_and_recall(found.confidences < below, wrong, left, str(below))
    certain = (found.actions == "drop") & left if found.evidence.drops == "verified" else np.zeros_like(left)
    row |= precision_and_recall(certain, wrong, left, "certified")
    for level in (0.9, 0.95):
        estimate, low, high = count_from_sample(
            found.judged, Y > 0, verified, verified != 0, level=level
        ).total
        row["estimate"] = estimate / Y.sum()
        row |= {f"held {level}": bool(low <= wrong.sum() <= high), f"width {level}": (high - low) / Y.sum()}
    return row | {"plain width": 2 * 1.645 * (share * (1 - share) / cells) ** 0.5}


def precision_and_recall(chosen, wrong, among, name: str) -> dict:
    chosen = chosen & among
    precision = float(np.mean(wrong[chosen])) if chosen.any() else np.nan
    return {
        f"precision {name}": precision,
        f"recall {name}": float((chosen & wrong).sum() / (wrong & among).sum()),
    }


def area(wrong, scores, among) -> float:
    outcome = wrong[among]
    return np.nan if outcome.all() or not outcome.any() else float(roc_auc_score(outcome, scores[among]))


def noise_test(name: str, cells: int, draw: int, cache: Path) -> dict:
    """The test of random noise under uniform noise, in audits of at most 2,500 rows."""
    if name not in _KNOWN:
        _KNOWN.clear()
        data = load_dataset(name, random_state=0)
        some = np.random.default_rng(0).permutation(data.X.shape[0])[:MOST_ROWS]
        _KNOWN[name] = data.X[some], np.asarray(data.truth)[some]
    X, truth = _KNOWN[name]
    Y = np.asarray(top_up(truth, find_k(name), random_state=draw))
    model = _make_model("candidate-likelihood", len(Y), N_FOLDS, draw)
    first = judge_by_model(model, X, Y, n_folds=N_FOLDS, max_rows=MOST_ROWS, random_state=draw)
    return {"informative": first.informative, **first.noise}


def classifier(name: str, cells: int, draw: int, cache: Path) -> dict:
    """Average precision of test rows: a fold for each draw."""
    X, Y, truth = load(name)
    train, test = list(KFold(10, shuffle=True, random_state=0).split(X))[draw]
    places = np.argwhere(Y[train] > 0)
    drawn = tuple(places[np.random.default_rng(draw).permutation(len(places))[:cells]].T)
    verified = np.zeros(Y[train].shape, dtype=np.int8)
    verified[drawn] = np.where(truth[train][drawn] > 0, 1, -1)

    def score(labels, **more) -> float:
        model = CandidateLikelihood(
            random_state=draw, **QUIET, **{k: v for k, v in more.items() if k == "family"}
        )
        model.fit(X[train], labels, **{k: v for k, v in more.items() if k == "verified"})
        return average_precision(truth[test], model.predict_proba(X[test]))

    return {
        "floor": score(Y[train], family="ridge"), "label-free": score(Y[train]),
        "verified": score(Y[train], verified=verified), "ceiling": score(truth[train], family="ridge"),
    }  # fmt: skip


# Tables


def tables(folder: Path) -> str:
    paths = {part: folder / f"real_noise_{part}.csv" for part in TABLES}
    return "\n".join(TABLES[part](pd.read_csv(path)) for part, path in paths.items() if path.exists())


def table(head: list[str], rows: list[list]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)]) + "\n"


def table_of_audits(frame: pd.DataFrame) -> str:
    rows = []
    for row in frame.to_dict("records"):
        counted = (
            f"{row['estimate']:.0f} ({row['low']:.0f}–{row['high']:.0f})"
            if row["basis"] != "unknown"
            else "not known"
        )
        kept = (
            ""
            if row["dropped"] == 0
            else f"{row['dropped_wrong'] / row['dropped']:.3f} ({row['promised']:.3f})"
        )
        rows.append([row["set"], row["candidates"], row["wrong"], counted, "yes" if row["informative"] else "no",
                     "yes" if row["random_noise"] else "no", row["dropped"], kept])  # fmt: skip
    head = ["set", "tags", "wrong", "estimated (interval)", "features inform", "noise looks random", "dropped",
            "of these wrong (promised, at least)"]  # fmt: skip
    return "Without checked tags:\n\n" + table(head, rows)


def table_of_order(frame: pd.DataFrame) -> str:
    rows = []
    for name in dict.fromkeys(SETS["order"]):
        of_set = frame[frame["set"] == name]
        if len(of_set):
            means = of_set.groupby("cells").mean(numeric_only=True)
            hundred = means.loc[100] if 100 in means.index else None
            drops = (
                []
                if hundred is None
                else [
                    *(f"{hundred[f'precision {b}']:.2f} / {hundred[f'recall {b}']:.2f}" for b in (0.2, 0.3)),
                    f"{hundred['precision at recall 0.4']:.3f}",
                ]
            )
            cells = [f"{means.loc[n, 'auc']:.3f}" if n in means.index else "" for n in CELLS["order"]]
            rows.append(
                [
                    name,
                    f"{means['before'].mean():.3f}",
                    *cells,
                    *drops,
                    f"{(means['auc'] - means['before']).min():+.3f}",
                ]
            )
    head = ["set", "without", *(str(n) for n in CELLS["order"]), "drops below .2: precision / recall", "below .3",
            "precision at recall .4", "least gain"]  # fmt: skip
    draws = frame["draw"].max() + 1
    text = f"Area under the ROC curve of wrong tags among the unchecked, by checked tags (mean of {draws} draws):"
    return f"{text}\n\n" + table(head, rows)


def table_of_intervals(frame: pd.DataFrame) -> str:
    rows = []
    for (name, cells), group in frame.groupby(["set", "cells"]):
        broken = (group["precision certified"] < 0.9).mean()
        rows.append([name, cells, len(group), f"{group['held 0.9'].mean():.1%}", f"{group['held 0.95'].mean():.1%}",
                     f"{(group['width 0.9'] / group['plain width']).mean():.2f}", f"{1 - broken:.1%}",
                     f"{group['recall certified'].mean():.2f}"])  # fmt: skip
    head = ["set", "checked", "draws", "90 % interval holds", "95 %", "width over plain binomial", "drops ≥ 90 % wrong",
            "recall of these drops"]  # fmt: skip
    return "Intervals of the share of wrong tags, and drops with a guarantee:\n\n" + table(head, rows)


def table_of_test(frame: pd.DataFrame) -> str:
    rows = [
        [name, len(group), f"{1 - group['random_noise'].mean():.0%}"] for name, group in frame.groupby("set")
    ]
    return "The test of random noise under uniform noise:\n\n" + table(["set", "draws", "rejected"], rows)


def table_of_classifier(frame: pd.DataFrame) -> str:
    means = frame.groupby("set").mean(numeric_only=True)
    count = frame.groupby("set").size()
    rows = [[name, count[name], *(f"{row[c]:.3f}" for c in ("floor", "label-free", "verified", "ceiling")),
             f"{(row['verified'] - row['floor']) / (row['ceiling'] - row['floor']):.0%}"]
            for name, row in means.iterrows()]  # fmt: skip
    head = ["set", "folds", "floor", "without checked tags", "200 checked", "ceiling", "gap closed"]
    return "Average precision of test rows:\n\n" + table(head, rows)


TABLES = {"audits": table_of_audits, "order": table_of_order, "intervals": table_of_intervals, "test": table_of_test,
          "classifier": table_of_classifier}  # fmt: skip


if __name__ == "__main__":
    main()
