"""The ``skpml`` command: its subcommands, and how errors, warnings and Ctrl-C are reported."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from skpml import __version__
from skpml.cli._bench import bench
from skpml.cli._clean import clean
from skpml.cli._console import format_error, show_error, show_warning
from skpml.cli._data import data
from skpml.cli._fit import fit, methods
from skpml.cli._predict import evaluate, predict

_TRACEBACK = "--traceback"
_DONE, _INTERNAL_ERROR, _INPUT_ERROR, _INTERRUPTED = 0, 1, 2, 130


class _StoppedError(KeyboardInterrupt):
    """A request to stop, handled as Ctrl-C is, so that no temporary file is left."""

    def __init__(self, number: int) -> None:
        super().__init__()
        # What a shell reports for a process that the signal has ended.
        self.code = 128 + number


@contextmanager
def _handling_requests_to_stop() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into exceptions, unless they are ignored, as nohup does."""

    def stop(number: int, _: Any) -> None:
        raise _StoppedError(number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    names = [name for name in ("SIGTERM", "SIGHUP") if in_main_thread and hasattr(signal, name)]
    numbers = [
        number for name in names if signal.getsignal(number := getattr(signal, name)) is signal.SIG_DFL
    ]
    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


class App(click.Group):
    """A group that reports every error in one line on stderr and exits with a code."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **options: Any) -> NoReturn:
        """Run, and exit with 0, 2 (wrong usage or input), 130 (Ctrl-C), 129, 143 (other stops) or 1 (internal error)."""
        options["standalone_mode"] = False
        # Read from the arguments, since parsing them may be what fails.
        wants_traceback = _TRACEBACK in (sys.argv[1:] if args is None else args)
        with warnings.catch_warnings(), _handling_requests_to_stop():
            _route_warnings()
            try:
                sys.exit(super().main(args, *others, **options) or _DONE)
            except (Exception, KeyboardInterrupt) as error:
                code = _report(error)
                if wants_traceback and not _is_interruption(error):
                    click.echo(traceback.format_exc(), err=True, nl=False)
                sys.exit(code)


def _is_interruption(error: BaseException) -> bool:
    return isinstance(error, (click.Abort, KeyboardInterrupt))


def _report(error: BaseException) -> int:
    """Print one line about an error and return the exit code."""
    if _is_interruption(error):
        show_error("interrupted; no file is left half-written")
        # click raises Abort from the exception.
        return next(
            (part.code for part in (error, error.__cause__) if isinstance(part, _StoppedError)), _INTERRUPTED
        )
    if isinstance(error, click.ClickException):
        # A command without arguments shows its help; the class is public only since click 8.2.
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return _INPUT_ERROR
        message = error.format_message().rstrip(".") + "."
        if isinstance(error, click.UsageError) and error.ctx is not None:
            message += f" See '{error.ctx.command_path} --help'."
        show_error(message)
    elif isinstance(error, MemoryError):
        show_error("not enough memory")
    elif isinstance(error, (ValueError, LookupError, OSError, ImportError)):
        show_error(format_error(error))
    else:
        show_error(
            f"unexpected {type(error).__name__} ({error}); this is a bug in scikit-pml: "
            f"run again with {_TRACEBACK} and report it"
        )
        return _INTERNAL_ERROR
    return _INPUT_ERROR


def _route_warnings() -> None:
    """Print each distinct user warning once, in one line; hide warnings meant for developers."""
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", category=UserWarning)
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        # The data set and the estimator may warn about the same thing.
        if str(message) not in shown:
            shown.add(str(message))
            show_warning(str(message))

    warnings.showwarning = show


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="scikit-pml", message="%(prog)s %(version)s")
def app() -> None:
    """Learn from candidate labels: label sets in which some labels are wrong and none is missing.

    \b
    Examples:
      skpml data example digits                        write doubtful tags to try 'clean' on
      skpml clean photos.csv --id file -o cleaned.csv --report review.html --model photos.skpml
      skpml predict photos.skpml new.csv -o tags.csv
      skpml evaluate photos.skpml checked.csv --true-tags tags
      skpml bench run quick                            compare methods by cross-validation

    'skpml COMMAND --help' describes each command.
    """


def _add_traceback_option(command: click.Command) -> None:
    option = click.Option(
        [_TRACEBACK], is_flag=True, expose_value=False, help="Show the traceback of an error."
    )
    command.params.append(option)
    for subcommand in getattr(command, "commands", {}).values():
        _add_traceback_option(subcommand)


for _command in (data, clean, methods, fit, predict, evaluate, bench):
    app.add_command(_command)
_add_traceback_option(app)
