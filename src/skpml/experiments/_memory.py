"""How much memory a run took at its peak."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_SINCE_RESET = "VmHWM of the process, reset at the start of the run"
_OF_PROCESS = "ru_maxrss of the process since it began"

_CLEAR = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class PeakMemory:
    """The most memory that the process held since this object was made, where the system can tell (Linux).

    Elsewhere since the process began; :attr:`source` says which. Either way it is the memory of the whole process,
    interpreter and data included.
    """

    def __init__(self) -> None:
        self.source = _OF_PROCESS
        try:
            _CLEAR.write_text("5")
            if _high_water_mark() is not None:
                self.source = _SINCE_RESET
        except OSError:
            pass

    def megabytes(self) -> float | None:
        """In MB of 10⁶ bytes; None where the system tells nothing."""
        if self.source == _SINCE_RESET:
            return _high_water_mark()
        try:
            import resource
        except ImportError:
            return None
        unit = 1 if sys.platform == "darwin" else 1024
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)


def _high_water_mark() -> float | None:
    found = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    return None if found is None else round(int(found[1]) * 1024 / 1e6, 1)
