"""Dots with whiskers, one a row: means of classes, scores of methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from exactk.report.markup import Markup, tag
from exactk.report.scales import linear
from exactk.report.styles import COLOURS, shape
from exactk.report.svg import Plot, number
from exactk.report.text_width import fit, shortened, width_of

__all__ = ["Dot", "dot_plot"]

WIDTH, TOP = 400.0, 14.0
ROW = 19.0
# Room for a name.
LONGEST = 150.0


@dataclass(frozen=True)
class Dot:
    """A row: its name, a value with its spread, and what it says when it is pointed at."""

    name: str
    value: float | None
    spread: float | None
    tip: str
    slot: int = 0


def dot_plot(
    dots: Sequence[Dot],
    title: str,
    about: str,
    x_name: str,
    *,
    reference: float | None = None,
    reference_tip: str = "",
    ends: tuple[float, float] | None = None,
) -> Markup:
    """Return a picture of dots in rows.

    Parameters
    ----------
    dots : sequence of Dot
    title, about : str
        What it shows in a line, and in a sentence for who cannot see it.
    x_name : str
        Empty where what stands above the picture says it.
    reference : float or None
        A line down, such as the mean of all, where it lies among the dots.
    reference_tip : str
    ends : (float, float) or None
        Values that the axis must hold.
    """
    names = shortened([dot.name for dot in dots], LONGEST)
    left = 14.0 + max(map(width_of, names), default=0.0)
    bottom = TOP + ROW * len(dots)
    held: list[float] = []
    for dot in dots:
        if dot.value is not None:
            spread = dot.spread or 0.0
            held += [dot.value - spread, dot.value + spread]
    x = linear([*held, *(ends or ())], left, WIDTH, count=4)
    # The last number stands in the middle of its tick, and not beyond the picture.
    x = replace(x, end=WIDTH - 4.0 - max(8.0, width_of(x.ticks[-1][1]) / 2))
    height = bottom + (38.0 if x_name else 24.0)
    plot = Plot(x, linear([0.0, 1.0], bottom, TOP), title, about, WIDTH, height)
    _axis(plot, bottom, x_name)
    # What lies far off would press the dots together.
    if reference is not None and x.low <= reference <= x.high:
        place = number(x(reference))
        plot.reference(f"M{place} {number(bottom)}V{number(TOP - 4)}", reference_tip)
    for i, (dot, name) in enumerate(zip(dots, names, strict=True)):
        _row(plot, dot, name, TOP + ROW * (i + 0.5))
    return plot.markup()


def _axis(plot: Plot, bottom: float, x_name: str) -> None:
    x = plot.x
    for value, text in x.ticks:
        place = number(x(value))
        plot.add(
            tag("path", class_="grid", d=f"M{place} {number(TOP - 4)}V{number(bottom)}"),
            tag("text", text, class_="tick", x=place, y=number(bottom + 15), text_anchor="middle"),
        )
    plot.add(
        tag("path", class_="axis", d=f"M{number(x.start)} {number(bottom)}H{number(x.end)}"),
    )
    if x_name:
        plot.add(
            tag("text", fit(x_name, x.end - x.start), class_="name",
                x=number((x.start + x.end) / 2), y=number(bottom + 31), text_anchor="middle")
        )  # fmt: skip


def _row(plot: Plot, dot: Dot, name: str, y: float) -> None:
    plot.add(
        tag("text", name, tag("title", dot.name), class_="row-name", x=number(plot.x.start - 8),
            y=number(y), dy="0.34em", text_anchor="end")
    )  # fmt: skip
    if dot.value is None:
        return
    parts = []
    if dot.spread:
        low, high = (number(plot.x(dot.value + sign * dot.spread)) for sign in (-1, 1))
        ends = f"M{low} {number(y - 3)}v6M{high} {number(y - 3)}v6"
        parts.append(tag("path", class_="whisker", d=f"M{low} {number(y)}H{high}{ends}"))
    place = f"translate({number(plot.x(dot.value))} {number(y)})"
    parts.append(
        tag("path", tag("title", dot.tip), class_="pt", transform=place, d=shape(dot.slot))
    )
    plot.add(tag("g", *parts, class_=f"series c{dot.slot % COLOURS}"))
