"""Checks before the first run: names, custom methods and data files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from skpml.datasets import DIGITS, READERS, REGISTRY, present_files
from skpml.experiments._execute import FoldData
from skpml.experiments._runs import Plan, Run, custom_estimator
from skpml.experiments._suite import (
    KeyPath,
    SuiteError,
    dataset_of,
    find_close,
    find_unknown_parameters,
    is_data_file,
)


def check_names(plan: Plan) -> None:
    """Raise SuiteError for configurations that are mistakes and not merely absent; opens no file."""
    for position, name in enumerate(plan.suite.configurations):
        problem = _find_impossible_noise(name, plan.data_home)
        if name in plan.absent and is_data_file(name):
            beside = [path.name for path in (plan.suite.folder or Path()).iterdir()]
            problem = plan.absent[name] + find_close(name, filter(is_data_file, beside))
        elif name in plan.absent and (data := dataset_of(name)) not in REGISTRY:
            known = [DIGITS.name, *REGISTRY, *present_files(plan.data_home)]
            problem = f"there is no data set {data!r}{find_close(data, known, name.removeprefix(data))}"
            problem += f" ('skpml data list' lists names, a data file ends in {', '.join(READERS)})"
        if problem is not None:
            raise plan.suite._error_at(("configurations", position), problem)


def check_methods(plan: Plan) -> None:
    """Raise SuiteError for custom methods that cannot be imported, or lack a parameter that is set."""
    code = {entry.run.method: entry.run.code for entry in plan.entries}
    labels = {entry.label for entry in plan.entries}
    for position, method in enumerate(plan.suite.methods):
        if ":" not in method.name or method.label not in labels:
            continue
        place: KeyPath = ("methods", position)
        try:
            model = custom_estimator(method.name, plan.suite.folder, code.get(method.name))
        except SuiteError as error:
            raise plan.suite._error_at((*place, "name"), error.problem) from error
        for path, problem in find_unknown_parameters(method, place, model.get_params()):
            raise plan.suite._error_at(path, problem)


def check_data(plan: Plan, runs: Iterable[Run]) -> None:
    """Read each data file of these runs once; raise SuiteError if nothing can be learned or scored."""
    for run in {run.configuration: run for run in runs if run.data is not None}.values():
        try:
            n_rows = len(FoldData(run, plan.data_home, plan.suite.folder).dataset.candidates)
        except (ValueError, TypeError) as error:
            place: KeyPath = ("reading", run.configuration)
            if run.configuration not in plan.suite.reading:
                place = ("configurations", plan.suite.configurations.index(run.configuration))
            raise plan.suite._error_at(place, str(error)) from error
        if n_rows < run.folds:
            problem = f"{run.configuration} has {n_rows} rows: too few for {run.folds} folds"
            raise plan.suite._error_at(("folds",), problem)


def _find_impossible_noise(configuration: str, data_home: Path | None) -> str | None:
    found = re.fullmatch(r"(.+)-(\d+)", configuration)
    if found is None or is_data_file(configuration) or configuration in present_files(data_home):
        return None
    facts = {DIGITS.name: DIGITS, **REGISTRY}.get(found[1])
    if facts is None or facts.n_labels is None or int(found[2]) <= facts.n_labels:
        return None
    return f"{int(found[2])} candidates per row are too many: {facts.name} has {facts.n_labels} labels"
