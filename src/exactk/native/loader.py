"""Loading the libraries that the build compiled.

NumPy defines every function that is compiled here; tests hold both to the same answers. The
libraries use no headers of Python or NumPy, so one wheel serves all Python versions.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["built_library", "open_library"]


def built_library(name: str) -> Path:
    """Where the build puts the library that is compiled from ``<name>.c``."""
    suffix = ".dll" if sys.platform == "win32" else ".so"
    return Path(__file__).with_name(f"_{name}{suffix}")


def open_library(
    path: Path, symbol: str, wanted: int, loader: Callable[[str], Any] = ctypes.CDLL
) -> Any:
    """Return a library, or None: not built here, or switched off by ``EXACTK_NATIVE=0``.

    Parameters
    ----------
    path : Path
    symbol : str
        A function without arguments that says what the library was built for.
    wanted : int
        What it must say: a library built for another machine or version is left alone.
    loader : callable
        ``ctypes.CDLL`` lets other threads run meanwhile, ``ctypes.PyDLL`` does not.
    """
    if os.environ.get("EXACTK_NATIVE") == "0" or not path.exists():
        return None
    try:
        loaded = loader(str(path))
        function = getattr(loaded, symbol)
        function.restype = ctypes.c_int64
        return loaded if function() == wanted else None
    except (OSError, AttributeError):
        return None
