"""What can be told before any run is started: wrong names, methods and data files, each with its place in the suite."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from skpml.datasets import DIGITS, READERS, REGISTRY, present_files
from skpml.experiments._consistency import dataset_of, is_data_file, unknown_parameters
from skpml.experiments._execute import FoldData
from skpml.experiments._own_code import own_estimator
from skpml.experiments._protocol import SuiteError
from skpml.experiments._runs import Plan, Run


def check_names(plan: Plan) -> None:
    """Raise for configurations that are a mistake, not absent data; opens no file.

    Raises
    ------
    SuiteError
        For a data file that is not there, a name that nobody knows, and more candidates than there are labels.
    """
    for position, name in enumerate(plan.suite.configurations):
        problem = _impossible_noise(name, plan.data_home)
        if name in plan.absent and is_data_file(name):
            problem = plan.absent[name] + _nearest_file(name, plan.suite.folder)
        elif name in plan.absent and dataset_of(name) not in REGISTRY:
            problem = _unheard_of(name, plan.data_home)
        if problem is not None:
            raise plan.suite.error_at(("configurations", position), problem)


def check_methods(plan: Plan) -> None:
    """Raise for methods of one's own that cannot be imported, are no estimators, or lack a parameter that is given.

    Raises
    ------
    SuiteError
    """
    labels = {entry.label for entry in plan.entries}
    for position, method in enumerate(plan.suite.methods):
        if ":" not in method.name or method.label not in labels:
            continue
        place = ("methods", position)
        try:
            model = own_estimator(method.name, plan.suite.folder, plan.code.get(method.name))
        except SuiteError as error:
            raise plan.suite.error_at((*place, "name"), str(error)) from error
        for path, problem in unknown_parameters(method, place, model.get_params()):
            raise plan.suite.error_at(path, problem)


def check_data(plan: Plan, runs: Iterable[Run]) -> None:
    """Read each data file of these runs once, and raise if it cannot be learned from and scored.

    Raises
    ------
    SuiteError
    """
    for run in {run.configuration: run for run in runs if run.data is not None}.values():
        try:
            n_rows = len(FoldData(run, plan.data_home, plan.suite.folder).dataset.candidates)
        except (ValueError, TypeError) as error:
            place: tuple[str | int, ...] = ("reading", run.configuration)
            if run.configuration not in plan.suite.reading:
                place = ("configurations", plan.suite.configurations.index(run.configuration))
            raise plan.suite.error_at(place, str(error)) from error
        if n_rows < run.folds:
            problem = f"{run.configuration} has {n_rows} rows: too few for {run.folds} folds"
            raise plan.suite.error_at(("folds",), problem)


def _impossible_noise(configuration: str, data_home: Path | None) -> str | None:
    found = re.fullmatch(r"(.+)-(\d+)", configuration)
    if found is None or is_data_file(configuration) or configuration in present_files(data_home):
        return None
    facts = {DIGITS.name: DIGITS, **REGISTRY}.get(found[1])
    if facts is None or facts.n_labels is None or int(found[2]) <= facts.n_labels:
        return None
    return f"{int(found[2])} candidates a row are too many: {facts.name} has {facts.n_labels} labels"


def _unheard_of(configuration: str, data_home: Path | None) -> str:
    name = dataset_of(configuration)
    near = get_close_matches(name, [DIGITS.name, *REGISTRY, *present_files(data_home)], n=1)
    meant = f"; did you mean {near[0] + configuration.removeprefix(name)!r}?" if near else ""
    return (
        f"there is no data set {name!r}{meant} ('skpml data list' gives all names, a data file ends in "
        f"{', '.join(READERS)})"
    )


def _nearest_file(name: str, folder: Path | None) -> str:
    here = Path() if folder is None else folder
    near = get_close_matches(name, [path.name for path in here.iterdir() if is_data_file(path.name)], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
