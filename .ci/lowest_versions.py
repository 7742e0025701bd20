"""Print a pip constraint for the lowest version of every dependency that pyproject.toml declares."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
groups = [project["dependencies"], *project["optional-dependencies"].values()]
lowest: dict[str, tuple[int, ...]] = {}
for requirement in (line for group in groups for line in group):
    if match := re.match(r"([\w-]+)(?:\[[\w,-]+\])?>=([\d.]+)", requirement):
        version = tuple(map(int, match[2].split(".")))
        lowest[match[1]] = max(version, lowest.get(match[1], ()))
for name, version in sorted(lowest.items()):
    print(f"{name}=={'.'.join(map(str, version))}")
