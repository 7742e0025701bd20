"""Shared fixtures. Tests that need the real data sets look in SKPML_DATA and skip with a reason where it is unset."""

import os
import signal
from pathlib import Path
from typing import Any

# Before SciPy is imported: lets scikit-learn's own array API check run instead of being skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import hypothesis
import numpy as np
import pytest

# Started in the background, a process ignores Ctrl-C and hands that down; the tests that send one need it heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Both limits measure how busy the machine is, not the code.
hypothesis.settings.register_profile(
    "skpml", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("skpml")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("SKPML_DATA")
    if not folder:
        pytest.skip("SKPML_DATA is not set: the real data sets are not at hand")
    return Path(folder)


@pytest.fixture
def partial_problem():
    """A small problem with known truth: (X, candidates, truth), continuous features, no tied neighbours."""
    from sklearn.datasets import make_multilabel_classification

    from skpml.noise import top_up

    rng = np.random.default_rng(0)
    X, truth = make_multilabel_classification(
        120, n_features=10, n_classes=6, n_labels=2, allow_unlabeled=False, random_state=0
    )
    X = X + 0.1 * rng.normal(size=X.shape)
    return X, top_up(truth, 4, random_state=0), truth


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skipped-before", action="store_true", help="run only the tests that the previous run skipped"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--skipped-before"):
        skipped = set(config.cache.get("skpml/skipped", []))
        chosen = [item for item in items if item.nodeid in skipped or item.nodeid.split("::")[0] in skipped]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Remember what was skipped; what is skipped at import is remembered by its file."""
    if not config.getoption("--skipped-before"):
        skipped = {report.nodeid for report in terminalreporter.stats.get("skipped", [])}
        config.cache.set("skpml/skipped", sorted(skipped))
