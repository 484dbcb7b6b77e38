"""Pieces of reStructuredText."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["heading", "indented", "table"]


def heading(title: str, line: str = "-") -> str:
    """Return a title with its line.

    Examples
    --------
    >>> print(heading("Cost"))
    Cost
    ----
    """
    return f"{title}\n{line * len(title)}"


def indented(text: str, by: int = 3) -> str:
    """Return a text indented, as the content of a directive."""
    return "\n".join(" " * by + line if line else "" for line in text.splitlines())


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a list table with the columns to the width of what is in them.

    Examples
    --------
    >>> print(table(["data", "k"], [["wine", "4"]]))
    .. list-table::
       :header-rows: 1
    <BLANKLINE>
       * - data
         - k
       * - wine
         - 4
    """
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (header, *rows):
        for mark, cell in zip(("* -", *["  -"] * (len(row) - 1)), row, strict=True):
            lines.append(f"   {mark} {cell}".rstrip())
    return "\n".join(lines)
