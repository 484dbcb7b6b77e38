"""The compiled fits, where the library could be built; see `native/losses.c`."""

from __future__ import annotations

from functools import cache
from typing import Any

from exactk.native.loader import built_library, open_library

__all__ = ["library"]

# What `native/losses.c` must say of itself.
VERSION = 2


@cache
def library() -> Any:
    """The compiled fits, or None if they cannot be used; NumPy's then do their work."""
    return open_library(built_library("losses"), "exactk_losses_version", VERSION)
