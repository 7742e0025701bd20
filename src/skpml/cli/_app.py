"""The command and its parts."""

from __future__ import annotations

import click

from skpml import __version__
from skpml.cli._base import App
from skpml.cli._bench import bench
from skpml.cli._clean import clean
from skpml.cli._data import data
from skpml.cli._demo import demo
from skpml.cli._evaluate import evaluate
from skpml.cli._fit import fit
from skpml.cli._methods import methods
from skpml.cli._predict import predict


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="scikit-pml", message="%(prog)s %(version)s")
def app() -> None:
    """Learn from candidate labels: sets of labels of which some are wrong and none is missing.

    \b
    Examples:
      skpml data example digits                        doubtful tags to try 'clean' on
      skpml clean photos.csv --id file -o cleaned.csv --report review.html --model photos.skpml
      skpml predict photos.skpml new.csv -o tags.csv
      skpml evaluate photos.skpml checked.csv --true-tags tags
      skpml demo                                       a comparison, on data that come along
      skpml bench run quick                            an experiment: methods compared, fold by fold

    'skpml COMMAND --help' tells more of each.
    """


for _command in (demo, data, clean, methods, fit, predict, evaluate, bench):
    app.add_command(_command)
