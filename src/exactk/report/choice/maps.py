"""Maps: a grid of numbers as colours, each with its number on it or behind it."""

from __future__ import annotations

from collections.abc import Sequence

from exactk.report.markup import Markup, tag
from exactk.report.numbers import MINUS
from exactk.report.svg import cut, number

__all__ = ["heat_map"]

# Room for the names of rows, and of columns where they are written upwards.
NAMES, SLANTED = 164.0, 96.0
SIDE = 26.0
# Cells of fewer columns are wide enough for a number of two digits.
WITH_NUMBERS = 26
LONGEST = 23


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    name: str,
    about: str,
    *,
    what: str,
    per_cent: bool = False,
    slanted: bool = True,
    marked: int | None = None,
) -> Markup:
    """Return a map of rows by columns.

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
    slanted : bool
        Write names of columns upwards, where they are no numbers.
    marked : int or None
        A column with a frame.
    """
    top = SLANTED if slanted else 24.0
    width = NAMES + SIDE * len(columns) + (76.0 if slanted else 8.0)
    height = top + SIDE * len(rows) + 6.0
    numbered = len(columns) <= WITH_NUMBERS
    parts = [_column(text, i, top, slanted) for i, text in enumerate(columns)]
    for i, (row, line) in enumerate(zip(rows, values, strict=True)):
        y = top + SIDE * i
        parts.append(
            tag("text", cut(row, LONGEST), tag("title", row), class_="row-name",
                x=number(NAMES - 6), y=number(y + SIDE / 2), dy="0.34em", text_anchor="end")
        )  # fmt: skip
        for j, value in enumerate(line):
            if value is not None:
                tip = f"{row}, {columns[j]}\n{what}: {_text(value, per_cent)}"
                parts += _cell(NAMES + SIDE * j, y, value, tip, numbered, per_cent)
    if marked is not None:
        parts.append(
            tag("rect", class_="frame-of", x=number(NAMES + SIDE * marked), y=number(top),
                width=number(SIDE), height=number(SIDE * len(rows)))
        )  # fmt: skip
    picture = tag(
        "svg",
        tag("title", name),
        tag("desc", about),
        *parts,
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=number(width),
        height=number(height),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=name,
        class_="map",
    )
    return tag("div", picture, class_="scroll", tabindex="0", role="region", aria_label=name)


def _column(text: str, i: int, top: float, slanted: bool) -> Markup:
    x, y = NAMES + SIDE * i + SIDE / 2, top - 7
    if not slanted:
        return tag("text", text, class_="tick", x=number(x), y=number(y), text_anchor="middle")
    place = f"translate({number(x + 3)} {number(y)}) rotate(-50)"
    return tag("text", cut(text, 16), tag("title", text), class_="row-name", transform=place)


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


def _text(value: float, per_cent: bool) -> str:
    return f"{100 * value:.0f} %" if per_cent else f"{value:.2f}".replace("-", MINUS)


def _short(value: float, per_cent: bool) -> str:
    if per_cent:
        return f"{100 * value:.0f}"
    text = f"{value:.1f}" if abs(value) >= 0.995 else f"{value:.2f}".replace("0.", ".")
    return text.replace("-", MINUS)
