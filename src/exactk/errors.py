"""What exactk raises: one family, so that a caller can catch all bad input in one place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = [
    "ConstantTargetError",
    "ExactkError",
    "InputError",
    "MissingExtraError",
    "UnknownMethodError",
    "UnknownOptionError",
    "did_you_mean",
    "join_items",
]


class ExactkError(Exception):
    """Base of every error that exactk raises on purpose."""


class InputError(ExactkError, ValueError):
    """The input cannot be used as it is; the message names it and the way out."""


class ConstantTargetError(InputError):
    """All rows that count have the same target."""


class MissingExtraError(InputError):
    """The method needs a library that is not installed."""


class UnknownMethodError(InputError):
    """No method of that name is registered."""


class UnknownOptionError(ExactkError, TypeError):
    """The method has no option of that name."""


def join_items(items: Iterable[object], limit: int = 5, *, quoted: bool = True) -> str:
    """Join the first few items for a message and count the rest.

    Examples
    --------
    >>> join_items(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    >>> join_items(["2 in 'a'", "1 in 'b'"], quoted=False)
    "2 in 'a', 1 in 'b'"
    """
    items = list(items)
    text = ", ".join(repr(str(item)) if quoted else str(item) for item in items[:limit])
    return text if len(items) <= limit else f"{text} and {len(items) - limit} more"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest known name, or an empty string.

    Examples
    --------
    >>> did_you_mean("exchnage", ["greedy", "exchange"])
    "; did you mean 'exchange'?"
    >>> did_you_mean("zzz", ["greedy", "exchange"])
    ''
    """
    lowered = {other.lower(): other for other in known}
    match = difflib.get_close_matches(name.lower(), list(lowered), n=1)
    return f"; did you mean {lowered[match[0]]!r}?" if match else ""
