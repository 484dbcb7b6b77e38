"""The critical-difference diagram: methods on an axis of mean ranks, joined if alike."""

from __future__ import annotations

from exactk.papers.experiments.page.figures.panels import FigureContext
from exactk.papers.experiments.page.ranks import MethodRanking, ties
from exactk.report import styles, svg
from exactk.report.markup import Markup, tag
from exactk.report.numbers import plural, short
from exactk.report.scales import linear

__all__ = ["diagram"]

WIDTH = 800.0
LEFT, RIGHT = 215.0, 585.0
AXIS = 52.0
ROW = 17.0
TIE = 7.0
NAME_LENGTH = 24


def diagram(context: FigureContext, found: MethodRanking) -> Markup:
    """Draw mean ranks; a thick bar joins methods that do not differ significantly."""
    count = len(found.methods)
    joined = ties(found.ranks, found.critical) if found.critical is not None else []
    levels = _levels(joined)
    first_row = AXIS + 14 + TIE * (max(levels, default=-1) + 1)
    half = (count + 1) // 2
    height = first_row + ROW * half + 8
    x = linear([1.0, float(max(count, 2))], LEFT, RIGHT, whole=True, tight=True, count=8)
    axis = svg.number(AXIS)
    parts = [tag("path", class_="axis", d=f"M{svg.number(LEFT)} {axis}H{svg.number(RIGHT)}")]
    for value, text in x.ticks:
        place = svg.number(x(value))
        parts += [
            tag("path", class_="axis", d=f"M{place} {axis}v-5"),
            tag("text", text, class_="tick", x=place, y=svg.number(AXIS - 9), text_anchor="middle"),
        ]
    parts.append(tag("text", "mean rank (1 is best)", class_="name", x=svg.number(LEFT), y="14"))
    if found.critical is not None and found.critical < x.high - x.low:
        parts += _ruler(found.critical, x(1.0 + found.critical) - x(1.0))
    for i, (method, rank) in enumerate(zip(found.methods, found.ranks, strict=True)):
        row = i if i < half else count - 1 - i
        parts.append(_method(context, method, rank, x(rank), first_row + ROW * row, left=i < half))
    for (first, last), level in zip(joined, levels, strict=True):
        y = svg.number(AXIS + 9 + TIE * level)
        a, b = svg.number(x(found.ranks[first]) - 3), svg.number(x(found.ranks[last]) + 3)
        words = f"no significant difference: {found.methods[first]} to {found.methods[last]}"
        parts.append(tag("path", tag("title", words), class_="tie", d=f"M{a} {y}H{b}"))
    best = f"best: {found.methods[0]} with mean rank {short(found.ranks[0], 3)}"
    return tag(
        "svg",
        tag("title", "Critical-difference diagram of mean ranks"),
        tag("desc", f"{plural(count, 'method')} over {plural(found.blocks, 'data set')}; {best}."),
        *parts,
        viewBox=f"0 0 {svg.number(WIDTH)} {svg.number(height)}",
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label="Critical-difference diagram of mean ranks",
        class_="diagram",
    )


def _levels(joined: list[tuple[int, int]]) -> list[int]:
    """Put bars that overlap below each other."""
    levels: list[int] = []
    ends: list[int] = []
    for first, last in joined:
        free = next((i for i, end in enumerate(ends) if end < first), len(ends))
        ends[free : free + 1] = [last]
        levels.append(free)
    return levels


def _ruler(critical: float, length: float) -> list[Markup]:
    start, end = RIGHT - length, RIGHT
    a, b = svg.number(start), svg.number(end)
    return [
        tag("path", class_="whisker", d=f"M{a} 22H{b}M{a} 19v6M{b} 19v6"),
        tag("text", f"critical difference {short(critical, 3)}", class_="name", x=b, y="14",
            text_anchor="end"),
    ]  # fmt: skip


def _method(
    context: FigureContext, method: str, rank: float, x: float, y: float, *, left: bool
) -> Markup:
    slot = context.style_index(method)
    edge = LEFT - 8 if left else RIGHT + 8
    words = f"{method}\nmean rank {short(rank, 4)}"
    place, height = svg.number(x), svg.number(y)
    side, anchor = (-1, "end") if left else (1, "start")
    return tag(
        "g",
        tag("path", class_="line", d=f"M{place} {svg.number(AXIS)}V{height}H{svg.number(edge)}"),
        tag("path", tag("title", words), class_="pt", d=styles.shape(slot),
            transform=f"translate({place} {svg.number(AXIS)})"),
        # Two texts: a name written from right to left must not turn the number round.
        tag("text", f"{rank:.2f}", class_="tick", y=height, dy="0.34em", text_anchor=anchor,
            x=svg.number(edge + side * 4)),
        tag("text", svg.cut(method, NAME_LENGTH), tag("title", words), class_="row-name", y=height,
            dy="0.34em", x=svg.number(edge + side * 46), text_anchor=anchor),
        class_=f"series c{slot % styles.COLOURS}",
    )  # fmt: skip
