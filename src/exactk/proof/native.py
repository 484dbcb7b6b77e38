"""The compiled tree over columns; see `_native.c`."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from exactk.compiled import open_library, path_beside

__all__ = ["Task", "library", "library_path"]

_POINTER, _WHOLE, _REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class Task(ctypes.Structure):
    """Mirror of the struct in `_native.c`."""

    _fields_ = (
        *((name, _WHOLE) for name in ("d", "c", "k", "stride")),
        *((name, _POINTER) for name in ("A", "B", "work", "stop")),
        *((name, _REAL) for name in ("margin", "threshold")),
        *((name, _WHOLE) for name in ("budget", "n_in", "n_free")),
        *((name, _POINTER) for name in ("inside", "free", "delta", "weight")),
        *((name, _WHOLE) for name in ("n_best", "n_found")),
        *((name, _POINTER) for name in ("found_value", "found_sets")),
        ("n_open", _WHOLE),
        *((name, _POINTER) for name in ("open_bound", "open_counts", "open_columns")),
        *((name, _POINTER) for name in ("open_delta", "open_weight")),
        *((name, _WHOLE) for name in ("nodes", "spent")),
        ("habits", _POINTER),
        ("bounds", _WHOLE),
        ("doubt", _REAL),
        *((name, _WHOLE) for name in ("n_doubts", "most_doubts", "overflow")),
        ("doubts", _POINTER),
    )


def library_path() -> Path:
    """Where the build puts the compiled tree."""
    return path_beside(__file__)


@cache
def library() -> Any:
    """The compiled tree, or None if it cannot be used; then `UnitTree` gives the same answers."""
    # CDLL lets other threads run meanwhile: all that a call touches is its own or constant.
    loaded = open_library(library_path(), "exactk_proof_layout", ctypes.sizeof(Task))
    if loaded is None:
        return None
    loaded.exactk_proof_room.argtypes = (_WHOLE,) * 5
    loaded.exactk_proof_room.restype = _WHOLE
    loaded.exactk_proof_habits.restype = _WHOLE
    loaded.exactk_prove.argtypes = (_POINTER,)
    loaded.exactk_prove.restype = None
    return loaded
