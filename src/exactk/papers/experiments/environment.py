"""What a record says about where it was made: enough to judge a time, nothing about a person."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from exactk._version import __version__

__all__ = ["machine", "versions"]

# What the numbers of a record can depend on.
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")
THREADS = 1


@cache
def machine() -> dict[str, Any]:
    """Return processor, cores, memory and system, and how a cell uses them.

    Examples
    --------
    >>> sorted(machine())
    ['compiled', 'cores', 'memory_gib', 'processor', 'system', 'threads']
    """
    from exactk.search import native_state

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": THREADS,
        "compiled": native_state.library() is not None,
    }


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that are installed.

    Examples
    --------
    >>> import numpy
    >>> versions()["numpy"] == numpy.__version__
    True
    """
    found = {"python": ".".join(map(str, sys.version_info[:3])), "exactk": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    """Return the name on the box; what Python calls a processor is an architecture on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return round(pages * size / 2**30, 1)
