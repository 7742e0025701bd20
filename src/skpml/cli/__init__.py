"""The command ``skpml``: parses, calls the library, shows what came of it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; say what to install where its own dependencies are missing."""
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
