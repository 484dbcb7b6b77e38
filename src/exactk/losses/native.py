"""The compiled fits, where the library could be built; see `_native.c`."""

from __future__ import annotations

from functools import cache
from typing import Any

from exactk.compiled import open_library, path_beside

__all__ = ["library"]

# What `_native.c` must say of itself.
VERSION = 2


@cache
def library() -> Any:
    """The compiled fits, or None if they cannot be used; NumPy's then do their work."""
    return open_library(path_beside(__file__), "exactk_losses_version", VERSION)
