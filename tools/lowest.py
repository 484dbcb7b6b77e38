"""Print the lower bounds that pyproject.toml promises, as pins for pip.

`make test-lowest` installs exactly these, so a bound that does not work cannot stay.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

# Not deep: its lower bound is the one version that `make test` installs anyway.
EXTRAS = ("cli", "pandas", "polars", "arrow", "dask", "spark", "plots", "omics")
PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def pins(pyproject: Path = PYPROJECT) -> list[str]:
    """Return one ``name==version`` for each runtime dependency and each extra in `EXTRAS`."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    found = {}
    for line in wanted:
        match = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\w.]+)", line)
        if match is None:
            raise SystemExit(f"pyproject.toml: {line!r} must read 'name>=version'")
        name, version = match.groups()
        if found.setdefault(name, version) != version:
            raise SystemExit(f"pyproject.toml: {name} has two lower bounds")
    return [f"{name}=={version}" for name, version in found.items()]


if __name__ == "__main__":
    print("\n".join(pins()))
