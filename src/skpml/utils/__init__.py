"""Versions of packages for bug reports, and checks of custom methods in :mod:`skpml.utils.estimator_checks`."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, requires, version

__all__ = ["show_versions"]


def show_versions() -> None:
    """Print the versions of Python, of the system and of all dependencies, for bug reports.

    Examples
    --------
    >>> import skpml
    >>> skpml.show_versions()  # doctest: +ELLIPSIS
    python: ...
    """
    print(f"python: {platform.python_version()} ({sys.executable})")
    print(f"system: {platform.platform()}")
    names = {"scikit-pml"}
    try:
        # "numpy>=1.26; extra == ..." without the version and the marker.
        needed = requires("scikit-pml") or []
    except PackageNotFoundError:
        needed = []
    for requirement in needed:
        if 'extra == "dev"' in requirement:
            continue
        end = next((i for i, sign in enumerate(requirement) if not (sign.isalnum() or sign in "-_.")), None)
        names.add(requirement[:end])
    for name in sorted(names):
        try:
            print(f"{name}: {version(name)}")
        except PackageNotFoundError:
            print(f"{name}: not installed")
