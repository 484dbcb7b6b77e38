"""Opening what the build compiled: plain C libraries beside the module that calls them."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["open_library", "path_beside"]


def path_beside(module: str) -> Path:
    """Where the build puts the library of a room, given the ``__file__`` of a module in it."""
    return Path(module).with_name("_native.dll" if sys.platform == "win32" else "_native.so")


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
