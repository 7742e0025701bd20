"""What the theory of the PML-MA paper claims, beside what is measured.

    python benchmarks/theory.py             # writes results/theory.md; some minutes on one core

The lemma on ‖R − T‖ is checked on whole data sets, for R of the low-rank orthogonal decomposition and of the three
variants of PML-MA; the bound by Rademacher complexity and the course of the objective on the first of ten folds. Weights
are those of the authors. Needs the data sets (SKPML_DATA).
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from reproduce import WEIGHTS
from sklearn.model_selection import KFold

from skpml import get_method
from skpml._writing import replacing
from skpml.datasets import load_dataset
from skpml.modal_alignment import low_rank_orthogonal

OUTPUT = Path(__file__).parents[1] / "results" / "theory.md"
LEMMA = ("emotions-3", "emotions-5", "birds-3", "image-3", "scene-3", "scene-5", "yeast-7", "yeast-9")
FOLD = ("emotions-3", "birds-3", "image-3", "scene-3", "yeast-7")
VARIANTS = {"recommended": "pml-ma", "printed": "pml-ma-printed", "released": "pml-ma-released"}
NAMES = ("low_rank_weight", "alignment_weight", "prototype_weight", "ridge_weight")
# Singular values below this share of the largest count as zero.
RANK_TOLERANCE = 1e-6
DRAWS = 20
SIZES = {"scene-3": (150, 300, 600, 1200, 2400), "yeast-7": (150, 300, 600, 1200, 2400)}


def main() -> None:
    warnings.simplefilter("ignore")  # a fit of a fixed number of iterations does not converge
    parts = {"lemma": check_lemma, "growth": check_growth, "bound": check_bound, "descent": check_descent}
    # The comments mark the parts that the documentation includes.
    text = "".join(f"<!-- {name} -->\n\n{check()}\n\n" for name, check in parts.items()) + "<!-- end -->\n"
    with replacing(OUTPUT, overwrite=True) as (temporary,):
        temporary.write_text(text, encoding="utf-8")
    print(text)


def fit(configuration: str, variant: str, X: np.ndarray, candidates: np.ndarray, **changes):
    """Fit a variant with the weights of the authors."""
    weights = WEIGHTS.get(configuration) or WEIGHTS[configuration.split("-")[0]]
    settings = dict(zip(NAMES, weights, strict=True)) | {"random_state": 0, "on_empty": "ignore"} | changes
    return get_method(VARIANTS[variant])(**settings).fit(X, candidates)


def first_fold(configuration: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features and candidates of the training and of the test rows."""
    data = load_dataset(configuration, random_state=0)
    train, test = next(iter(KFold(10, shuffle=True, random_state=0).split(data.X)))
    X = data.X.astype(np.float64)
    return X[train], data.candidates[train], X[test], data.candidates[test]


def count_rank(matrix: np.ndarray) -> int:
    values = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
    return int((values > RANK_TOLERANCE * values[0]).sum()) if values[0] > 0 else 0


def check_lemma() -> str:
    """‖R − T‖ ≤ ‖E‖, rank(R) ≤ rank(T), and the assumptions ‖E‖ ≪ ‖T‖ and rank(T) < c."""
    strengths = {f"decomposition, λ = {weight:g}": weight for weight in (10, 1000)}
    rows, holds = [], dict.fromkeys((*strengths, *VARIANTS), 0)
    for name in LEMMA:
        data = load_dataset(name, random_state=0)
        Y, T = data.candidates.astype(np.float64), data.truth.astype(np.float64)
        noise, size = np.linalg.norm(Y - T), np.linalg.norm(T)
        found = {
            key: low_rank_orthogonal(Y, low_rank_weight=weight).pseudo_labels
            for key, weight in strengths.items()
        }
        found |= {
            variant: fit(name, variant, data.X.astype(np.float64), data.candidates).confidences_
            for variant in VARIANTS
        }
        ratios = {key: np.linalg.norm(R - T) / noise for key, R in found.items()}
        for key, ratio in ratios.items():
            holds[key] += ratio <= 1
        ranks = "/".join(str(count_rank(R)) for R in found.values())
        rows.append(
            (
                *(name, str(Y.shape[1]), str(count_rank(T)), ranks, f"{noise / size:.2f}"),
                *(f"{ratio:.2f}" for ratio in ratios.values()),
            )
        )
    titles = ("data", "labels c", "rank of T", "ranks of R", "‖E‖ / ‖T‖")
    titles += tuple(f"‖R − T‖ / ‖E‖, {key}" for key in holds)
    counts = "; ".join(f"{key}: {count} of {len(LEMMA)}" for key, count in holds.items())
    return "\n".join([*make_table(titles, rows), "", f"Data sets with ‖R − T‖ ≤ ‖E‖: {counts}."])


def check_growth() -> str:
    """‖R − T‖ / ‖T‖ with more and more rows."""
    rows = []
    for name, sizes in SIZES.items():
        data = load_dataset(name, random_state=0)
        order = np.random.default_rng(0).permutation(data.X.shape[0])
        for size in sizes:
            chosen = order[:size]
            T = data.truth[chosen].astype(np.float64)
            R = fit(
                name, "recommended", data.X[chosen].astype(np.float64), data.candidates[chosen]
            ).confidences_
            noise = np.linalg.norm(data.candidates[chosen] - T)
            rows.append(
                (
                    name,
                    str(len(chosen)),
                    f"{noise / np.linalg.norm(T):.2f}",
                    f"{np.linalg.norm(R - T) / np.linalg.norm(T):.2f}",
                )
            )
    return "\n".join(make_table(("data", "rows", "‖Y − T‖ / ‖T‖", "‖R − T‖ / ‖T‖, recommended"), rows))


def check_bound() -> str:
    """Twice the bound of the Rademacher complexity against the difference of test and training loss.

    The class is the ball of linear classifiers whose norm is that of the fitted one; sup ⟨W, X̂⟩ is then B‖X̂‖.
    """
    rows = []
    for name in FOLD:
        X, Y, X_test, Y_test = first_fold(name)
        model = fit(name, "recommended", X, Y)
        mapped = model.feature_map_.transform(model.scaler_.transform(X))
        n, c = Y.shape
        norm = np.linalg.norm(model.coef_)
        rng = np.random.default_rng(0)
        sums = [np.linalg.norm(mapped.T @ rng.choice((-1.0, 1.0), size=(n, c))) for _ in range(DRAWS)]
        bound = 2 * np.sqrt(2) * 2 * c / n * norm * np.mean(sums)
        errors = model.decision_function(X) - Y
        test_errors = model.decision_function(X_test) - Y_test
        loss, test_loss = (float((part**2).sum(axis=1).mean()) for part in (errors, test_errors))
        steepest = 2 * np.linalg.norm(errors, axis=1).max()
        rows.append(
            (
                name,
                str(n),
                str(c),
                f"{norm:.1f}",
                f"{np.mean(sums):.0f}",
                f"{bound:.0f}",
                f"{loss:.2f}",
                f"{test_loss:.2f}",
                f"{test_loss - loss:.2f}",
                f"{Y_test.sum(axis=1).mean():.2f}",
                f"{steepest:.1f} ≤ {2 * c}" if steepest <= 2 * c else f"{steepest:.1f} > {2 * c}",
            )
        )
    titles = ("data", "n", "c", "B = ‖W‖", "E‖X̂‖", "bound on the gap", "training loss", "test loss",
              "measured gap", "test loss of the zero classifier", "largest slope, and 2c")  # fmt: skip
    return "\n".join(make_table(titles, rows))


def check_descent() -> str:
    """Whether the objective rises during fifty iterations."""
    rows = []
    cases = {f"{variant}, authors' weights": (variant, {}) for variant in VARIANTS}
    exact = {"low_rank_weight": 0.0, "prototype_weight": 0.0}
    cases |= {f"{variant}, λ = β = 0": (variant, exact) for variant in ("recommended", "printed")}
    cases["printed, least squares, λ = 0"] = (
        "printed",
        {"low_rank_weight": 0.0, "prototypes": "least-squares"},
    )
    for name in FOLD:
        X, Y, *_ = first_fold(name)
        cells = [name]
        for variant, changes in cases.values():
            course = fit(name, variant, X, Y, tol=0.0, max_iter=50, **changes).history_["objective"]
            steps = np.diff(course) / course[:-1]
            # Rounding errors of a sum of many terms are not rises.
            rises = int((steps > 1e-12).sum())
            lowest = int(course.argmin()) + 1
            cells.append(
                f"{rises} rises, lowest at {lowest}, then +{course[-1] / course.min() - 1:.1%}"
                if rises
                else "falls"
            )
        rows.append(tuple(cells))
    return "\n".join(make_table(("data", *cases), rows))


def make_table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [
        f"| {' | '.join(titles)} |",
        "|---" * len(titles) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


if __name__ == "__main__":
    main()
