"""Text that others read: names shown on a terminal, and CSV that reads back as it was."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["csv_text", "escape_controls"]

# What moves the cursor, breaks a line, rings, turns the direction of writing, or cannot be
# written at all; joiners that some scripts need are not among them.
_HIDDEN = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: object) -> str:
    r"""Return a text with control characters as escapes, fit for one line on a terminal.

    Parameters
    ----------
    text : object
        Taken as ``str`` has it.

    Examples
    --------
    >>> print(escape_controls("red\x1b[31m\n"), escape_controls("wörter und 表"))
    red\x1b[31m\n wörter und 表
    """
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), str(text))


def csv_text(rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    r"""Return lines of CSV, each ended by a line feed.

    Parameters
    ----------
    rows : iterable of sequence
    delimiter : str

    Examples
    --------
    >>> csv_text([("a\rb", "c"), (1, None)])
    '"a\rb",c\n1,\n'
    """
    lines = _Lines()
    # The writer quotes what is in its line end, and readers take a carriage return alone for one.
    csv.writer(lines, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return lines.text.getvalue()


class _Lines:
    """Keeps what a CSV writer hands over, which is a row at a time."""

    def __init__(self) -> None:
        self.text = io.StringIO()

    def write(self, line: str) -> None:
        self.text.write(line.removesuffix("\r\n") + "\n")
