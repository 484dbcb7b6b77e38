"""Parameters as one types them: ``name=value``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

__all__ = ["read_settings"]


def read_settings(values: Sequence[str], example: str = "lam=0.1") -> dict[str, Any]:
    """Read ``name=value`` pairs; a value is a number, true, false, none, or a word.

    Examples
    --------
    >>> read_settings(["lam=0.1", "max-iter=1e4", "labels=centred"])
    {'lam': 0.1, 'max_iter': 10000, 'labels': 'centred'}
    """
    settings: dict[str, Any] = {}
    for pair in values:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not text.strip():
            raise click.BadParameter(f"{pair!r} is not of the form NAME=VALUE, such as {example}.")
        if name in settings:
            raise click.BadParameter(f"{name!r} is given twice.")
        settings[name] = _value(text.strip())
    return settings


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    # 1e4 is how one writes a whole number of iterations.
    return int(number) if "." not in text and number.is_integer() else number
