"""Maps: a grid of numbers as colours, each with its number on it or behind it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, cos, radians, sin

from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import DASH, MINUS
from exactk.report.svg import number
from exactk.report.tables import table
from exactk.report.text_width import shortened, width_of

__all__ = ["heat_map"]

# Room for a name of a row, and of a column where it is written upwards, at this slope.
ROW_NAME, COLUMN_NAME, SLOPE = 156.0, 116.0, radians(50)
SIDE = 26.0
# Cells of fewer columns are wide enough for a number of two digits.
WITH_NUMBERS = 26
# The key to the colours: steps from one end to the other, and the size of one.
STEPS, STEP, KEY = 10, 13.0, 46.0


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    name: str,
    about: str,
    *,
    what: str,
    per_cent: bool = False,
    axis: str = "",
    marked: int | None = None,
) -> Markup:
    """Return a map of rows by columns, and its numbers in a table that is folded away.

    Parameters
    ----------
    rows, columns : sequence of str
    values : sequence of sequence of float or None
        One sequence for each row, from −1 to 1; None is left empty.
    name, about : str
        What it shows in a line, and in a sentence for who cannot see it.
    what : str
        What a number is, for the words that a cell says.
    per_cent : bool
        Write shares in per cent.
    axis : str
        What the columns count, where they are numbers; names are written upwards.
    marked : int or None
        A column with a frame.
    """
    names = shortened(rows, ROW_NAME)
    left = max(map(width_of, names), default=0.0) + 10.0
    heads, top, right = _heads(columns, axis, left)
    bottom = top + SIDE * len(rows)
    width = max(left + SIDE * len(columns) + right, STEP * STEPS + 48.0)
    numbered = len(columns) <= WITH_NUMBERS
    parts = heads
    for i, (row, line) in enumerate(zip(rows, values, strict=True)):
        y = top + SIDE * i
        parts.append(
            tag("text", names[i], tag("title", row), class_="row-name",
                x=number(left - 6), y=number(y + SIDE / 2), dy="0.34em", text_anchor="end")
        )  # fmt: skip
        for j, value in enumerate(line):
            if value is not None:
                tip = f"{row}, {_of(axis, columns[j])}\n{what}: {_text(value, per_cent)}"
                parts += _cell(left + SIDE * j, y, value, tip, numbered, per_cent)
    if marked is not None:
        parts.append(
            tag("rect", class_="frame-of", x=number(left + SIDE * marked), y=number(top),
                width=number(SIDE), height=number(bottom - top))
        )  # fmt: skip
    parts += _key(min(left, width - STEP * STEPS - 28.0), bottom + 12.0, per_cent)
    picture = tag(
        "svg",
        tag("title", name),
        tag("desc", about),
        *parts,
        viewBox=f"0 0 {number(width)} {number(bottom + KEY)}",
        width=number(width),
        height=number(bottom + KEY),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=name,
        class_="map",
    )
    return join(
        tag("div", picture, class_="scroll", tabindex="0", role="region", aria_label=name),
        _numbers(rows, columns, values, name, axis, per_cent),
    )


def _heads(columns: Sequence[str], axis: str, left: float) -> tuple[list[Markup], float, float]:
    """Names of columns, how much room is above the map for them, and right of it."""
    middles = [left + SIDE * (i + 0.5) for i in range(len(columns))]
    if axis:
        widest = max(map(width_of, columns), default=0.0)
        every = ceil((widest + 2.0) / SIDE)
        drawn = [
            tag("text", text, class_="tick", x=number(x), y="17", text_anchor="middle")
            for x, text in list(zip(middles, columns, strict=True))[::every]
        ]
        name = tag("text", axis, class_="name", x=number(left - 6), y="17", text_anchor="end")
        return [name, *drawn], 24.0, 8.0
    names = shortened(columns, COLUMN_NAME)
    longest = max(map(width_of, names), default=0.0)
    top = longest * sin(SLOPE) + 18.0
    drawn = [
        tag("text", name, tag("title", text), class_="row-name",
            transform=f"translate({number(x + 3)} {number(top - 7)}) rotate(-50)")
        for x, name, text in zip(middles, names, columns, strict=True)
    ]  # fmt: skip
    return drawn, top, longest * cos(SLOPE)


def _of(axis: str, column: str) -> str:
    return f"{axis} = {column}" if axis else column


def _key(left: float, top: float, per_cent: bool) -> list[Markup]:
    """The colours from one end to the other, with numbers below."""
    low = 0.0 if per_cent else -1.0
    shares = [low + (1.0 - low) * (i + 0.5) / STEPS for i in range(STEPS)]
    drawn = [
        tag("rect", class_="cold" if value < 0 else "hot", x=number(left + STEP * i), y=number(top),
            width=number(STEP), height="10", fill_opacity=f"{abs(value):.3g}")
        for i, value in enumerate(shares)
    ]  # fmt: skip
    ends = ("0", "50", "100 %") if per_cent else (f"{MINUS}1", "0", "1")
    width = STEP * STEPS
    drawn.append(
        tag("rect", class_="key-frame", x=number(left), y=number(top), width=number(width),
            height="10")
    )  # fmt: skip
    drawn += [
        tag("text", text, class_="tick", x=number(left + width * i / 2), y=number(top + 23),
            text_anchor="middle")
        for i, text in enumerate(ends)
    ]  # fmt: skip
    return drawn


def _numbers(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    name: str,
    axis: str,
    per_cent: bool,
) -> Markup:
    """What the colours stand for, for who has no mouse or does not see them."""
    heads = join(tag("td", axis), *(tag("th", label(text), scope="col") for text in columns))
    body = [
        tag(
            "tr",
            tag("th", label(row), scope="row"),
            *(tag("td", DASH if one is None else _bare(one, per_cent)) for one in line),
        )
        for row, line in zip(rows, values, strict=True)
    ]
    return tag(
        "details",
        tag("summary", "Numbers of this figure"),
        table(
            body,
            heads,
            kind="wide plain",
            name=f"{name}, in numbers",
            caption="In per cent" if per_cent else "",
        ),
        class_="numbers",
    )


def _cell(
    x: float, y: float, value: float, tip: str, numbered: bool, per_cent: bool
) -> list[Markup]:
    drawn = [
        tag("rect", tag("title", tip), class_="cold" if value < 0 else "hot", x=number(x + 0.5),
            y=number(y + 0.5), width=number(SIDE - 1), height=number(SIDE - 1),
            fill_opacity=f"{min(abs(value), 1.0):.3g}")
    ]  # fmt: skip
    # Of a map of shares nothing is best said by nothing.
    if numbered and (not per_cent or value >= 0.005):
        drawn.append(
            tag("text", _short(value, per_cent), class_="on-cell", x=number(x + SIDE / 2),
                y=number(y + SIDE / 2), dy="0.34em", text_anchor="middle")
        )  # fmt: skip
    return drawn


def _bare(value: float, per_cent: bool) -> str:
    return f"{100 * value:.0f}" if per_cent else f"{value:.2f}".replace("-", MINUS)


def _text(value: float, per_cent: bool) -> str:
    return f"{_bare(value, per_cent)}{' %' if per_cent else ''}"


def _short(value: float, per_cent: bool) -> str:
    if per_cent:
        return _bare(value, per_cent)
    text = f"{value:.1f}" if abs(value) >= 0.995 else f"{value:.2f}".replace("0.", ".")
    return text.replace("-", MINUS)
