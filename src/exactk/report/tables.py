"""."""

from __future__ import annotations

from collections.abc import Sequence

from exactk.report.markup import Markup, label, tag
from exactk.report.numbers import exact

__all__ = [
    "cell",
    "head",
    "table",
]


def table(
    rows: Sequence[Markup],
    *heads: Markup,
    caption: object = "",
    kind: str = "",
    name: str = "",
) -> Markup:
    """Put rows under one or more rows of headings, in a box that scrolls sideways.

    The caption stands outside the box: inside it would be as wide as the table.

    Parameters
    ----------
    rows, *heads : Markup
    caption : object
        What it shows and how to read it; the name of the box, unless it has one of its own.
    kind : str
        Classes for the style sheet.
    name : str
        What to call it in a few words, for who hears it: a long caption would be read twice.
    """
    box = tag(
        "div",
        tag(
            "table",
            tag("thead", *(tag("tr", one) for one in heads)),
            tag("tbody", *rows),
            class_=f"sortable {kind}".strip(),
        ),
        class_="scroll",
        # What scrolls must be reachable by keyboard.
        tabindex="0",
        role="region",
        aria_label=name or caption or "Table",
    )
    return tag("div", tag("p", caption, class_="caption") if caption else "", box, class_="tabled")


def head(text: object, *, numeric: bool = True, **attributes: object) -> Markup:
    """Return the heading of a column that can be sorted by."""
    kind = "number" if numeric else "text"
    return tag("th", label(text), scope="col", data_sort=kind, **attributes)


def cell(text: object, value: float | None = None, **attributes: object) -> Markup:
    """Return a number; what has no value is sorted last."""
    classes = f"number {attributes.pop('class_', '')}".strip()
    sort_by = "" if value is None else exact(value)
    return tag("td", text, class_=classes, data_v=sort_by or True, **attributes)
