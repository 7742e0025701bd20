"""Options that the commands of ``skpml bench`` share."""

from __future__ import annotations

from pathlib import Path

import click

data_option = click.option(
    "--data", "data_home", metavar="FOLDER", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of the data sets.  [default: that of 'skpml data list']",
)  # fmt: skip
folder_option = click.option(
    "--folder", metavar="RESULTS", type=click.Path(path_type=Path, file_okay=False), default=Path("bench"),
    show_default=True, help="Folder of the results, one file a run.",
)  # fmt: skip
