"""The command ``skpml``: parses arguments, calls the library and shows the results."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; if its own dependencies are missing, say what to install."""
    try:
        from skpml.cli._app import app
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted; no file is left half-written\n")
        sys.exit(130)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        sys.exit(f'The command skpml needs {error.name}: pip install "scikit-pml[cli]"')
    app()
