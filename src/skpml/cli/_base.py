"""What all commands share: ``--traceback``, and what becomes of errors, warnings and Ctrl-C."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any, NoReturn

import click

from skpml.cli._console import show_error, show_warning
from skpml.cli._wording import one_sentence

INPUT_ERROR = 2
INTERRUPTED = 130


def _ask_for_traceback(_: click.Context, __: click.Parameter, value: bool) -> None:
    if value:
        App.wants_traceback = True


def _traceback_option() -> click.Option:
    return click.Option(
        ["--traceback"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_ask_for_traceback,
        help="On an error, show where in the code it arose.",
    )


class Command(click.Command):
    """A command that takes ``--traceback``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(_traceback_option())


class Group(click.Group):
    """A group whose commands take ``--traceback``."""

    command_class = Command


class App(Group):
    """The whole command: one sentence on stderr for whatever goes wrong, and an exit code."""

    wants_traceback = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(_traceback_option())

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run, and leave with 0, 2 (wrong usage or input), 130 (Ctrl-C) or 1 (our own mistake)."""
        App.wants_traceback = False
        kwargs["standalone_mode"] = False
        with warnings.catch_warnings():
            _route_warnings()
            sys.exit(self._run(*args, **kwargs))

    def _run(self, *args: Any, **kwargs: Any) -> int:
        try:
            return super().main(*args, **kwargs) or 0
        except (click.Abort, KeyboardInterrupt):
            show_error("interrupted; no file is left half-written")
            return INTERRUPTED
        except click.ClickException as error:
            # A command without any argument shows its help; the class has a name only since click 8.2.
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()
                return INPUT_ERROR
            show_error(_usage_sentence(error))
            self._show_traceback()
            return INPUT_ERROR
        except (ValueError, LookupError, OSError, ImportError) as error:
            show_error(one_sentence(error))
            self._show_traceback()
            return INPUT_ERROR
        except MemoryError:
            show_error("there is not enough memory for this")
            self._show_traceback()
            return INPUT_ERROR
        except Exception as error:
            show_error(
                f"unexpected {type(error).__name__} ({error}); this is a mistake in scikit-pml: "
                "run again with --traceback and report it"
            )
            self._show_traceback()
            return 1

    def _show_traceback(self) -> None:
        if App.wants_traceback:
            traceback.print_exc()


def _usage_sentence(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{message}. See '{error.ctx.command_path} --help'."
    return f"{message}."


def _route_warnings() -> None:
    """Show what the library warns of in one line each, and keep other packages' notes to developers away."""
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", category=UserWarning)

    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        # Data and estimator may notice the same thing.
        if str(message) not in shown:
            shown.add(str(message))
            show_warning(str(message))

    warnings.showwarning = show
