"""Pictures: axes, lines with bands or error bars, points, bars; SVG and nothing else.

Colours, fonts and widths of lines are in report.css, so that light, dark and paper share one
picture. What a reader may want to read off a point is in its ``<title>``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from exactk.report import styles
from exactk.report.markup import Markup, join, tag
from exactk.report.scales import Scale

__all__ = [
    "BOTTOM",
    "HEIGHT",
    "LEFT",
    "RIGHT",
    "TOP",
    "WIDTH",
    "Plot",
    "Point",
    "cut",
    "number",
    "y_range",
]

WIDTH, HEIGHT = 400.0, 268.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 388.0, 24.0, 236.0
# Beyond so many points on a line, only some of them get a shape.
SHAPES_A_LINE = 24


@dataclass(frozen=True)
class Point:
    """A value in a picture; y is None where there is none, which breaks the line.

    n says how many numbers are behind it.
    """

    x: float
    y: float | None
    sd: float | None = None
    tip: str = ""
    n: int = 0


def number(value: float) -> str:
    """Return a coordinate, to a tenth of a unit.

    Examples
    --------
    >>> number(3.04), number(-0.01)
    ('3', '0')
    """
    return f"{round(value, 1) + 0.0:g}" if abs(value) < 1e5 else f"{value:.0f}"


def cut(text: str, most: int) -> str:
    """Shorten a name in its middle, where names that are alike differ least.

    Examples
    --------
    >>> cut("a rather long name, version 2", 15)
    'a rather…sion 2'
    """
    if len(text) <= most:
        return text
    tail = (most - 1) * 3 // 7
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


@dataclass
class Plot:
    """A picture under construction.

    Attributes
    ----------
    x, y : Scale
    name : str
        What it shows, in a line: its accessible name.
    about : str
        The same in a sentence or two, for who cannot see it.
    """

    x: Scale
    y: Scale
    name: str
    about: str = ""
    width: float = WIDTH
    height: float = HEIGHT
    parts: list[Markup] = field(default_factory=list)

    def axes(self, x_name: str, y_name: str) -> None:
        """Draw the grid, the ticks and the names of both axes."""
        left, right, bottom, top = self.x.start, self.x.end, self.y.start, self.y.end
        marks: list[Markup] = []
        for value, text in self.y.ticks:
            place = number(self.y(value))
            marks += [
                tag("path", class_="grid", d=f"M{number(left)} {place}H{number(right)}"),
                tag("text", text, class_="tick", x=number(left - 6), y=place, dy="0.34em",
                    text_anchor="end"),
            ]  # fmt: skip
        for value, text in self.x.ticks:
            place = number(self.x(value))
            marks += [
                tag("path", class_="axis", d=f"M{place} {number(bottom)}v4"),
                tag("text", text, class_="tick", x=place, y=number(bottom + 16),
                    text_anchor="middle"),
            ]  # fmt: skip
        marks += [
            tag("path", class_="axis", d=f"M{number(left)} {number(bottom)}H{number(right)}"),
            tag("text", cut(y_name, 56), class_="name", x="4", y=number(top - 10)),
            # In the middle: below the last tick it would read as the unit of its number.
            tag("text", cut(x_name, 40), class_="name", x=number((left + right) / 2),
                y=number(bottom + 30), text_anchor="middle"),
        ]  # fmt: skip
        self.parts.append(tag("g", *marks, class_="frame"))

    def add(self, *parts: Markup) -> None:
        """Add what was drawn elsewhere."""
        self.parts.extend(parts)

    def series(
        self,
        points: Sequence[Point],
        slot: int,
        *,
        spread: str = "band",
        steps: bool = False,
        published: Sequence[Point] = (),
        heavy: bool = False,
    ) -> None:
        """Draw one method: its line, its spread, its points and what a paper prints of it.

        Parameters
        ----------
        points : sequence of Point
            In the order of x.
        slot : int
            Style of the method.
        spread : {"band", "bars", "none"}
            How a standard deviation is shown.
        steps : bool
            Draw a staircase.
        published : sequence of Point
            Hollow points.
        heavy : bool
            Draw a thicker line.
        """
        drawn: list[Markup] = []
        runs = _runs(points)
        for run in runs:
            if spread == "band":
                drawn += self._band([p for p in run if p.sd is not None])
            places = [(self.x(p.x), self.y(p.y)) for p in run if p.y is not None]
            if len(places) > 1:
                path = _staircase(places) if steps else _polyline(places)
                drawn.append(
                    tag("path", class_="line", d=path, stroke_dasharray=styles.dashes(slot))
                )
        seen = [point for run in runs for point in run]
        every = max(1, -(-len(seen) // SHAPES_A_LINE))
        # Methods put their shapes at different points, so that they do not cover each other.
        for point in seen[slot % every :: every]:
            if spread == "bars":
                drawn += self._whisker(point)
            drawn.append(self._point(point, styles.shape(slot), "pt"))
        drawn += [
            part
            for point in published
            for part in (*self._whisker(point), self._point(point, styles.shape(slot), "pt hollow"))
        ]
        kind = f"series c{slot % styles.COLOURS}{' heavy' if heavy else ''}"
        self.parts.append(tag("g", *drawn, class_=kind))

    def level(self, value: float, text: str, tip: str, slot: int, *, above: float) -> None:
        """Draw a dashed line across, for what does not depend on x, and write its name on it.

        Parameters
        ----------
        value : float
        text, tip : str
            Written at its right end; said when it is pointed at.
        slot : int
            Style of the method.
        above : float
            Where the foot of the text is.
        """
        place = number(self.y(value))
        path = f"M{number(self.x.start)} {place}H{number(self.x.end)}"
        self.parts.append(
            tag(
                "g",
                tag("path", tag("title", tip), class_="line level", d=path),
                tag("text", text, tag("title", tip), class_="level-name", x=number(self.x.end),
                    y=number(above), text_anchor="end"),
                class_=f"series c{slot % styles.COLOURS}",
            )
        )  # fmt: skip

    def reference(self, path: str, tip: str) -> None:
        """Draw a line to compare with, such as the ideal."""
        self.parts.append(tag("path", tag("title", tip), class_="reference", d=path))

    def _point(self, point: Point, path: str, kind: str) -> Markup:
        place = f"translate({number(self.x(point.x))} {number(self.y(point.y or 0.0))})"
        return tag("path", tag("title", point.tip), class_=kind, transform=place, d=path)

    def _band(self, run: Sequence[Point]) -> list[Markup]:
        if len(run) < 2:
            return []
        upper = [(self.x(p.x), self.y((p.y or 0.0) + (p.sd or 0.0))) for p in run]
        lower = [(self.x(p.x), self.y((p.y or 0.0) - (p.sd or 0.0))) for p in reversed(run)]
        return [tag("path", class_="band", d=f"{_polyline(upper + lower)}z")]

    def _whisker(self, point: Point) -> list[Markup]:
        if not point.sd or point.y is None:
            return []
        x = self.x(point.x)
        low, high = number(self.y(point.y - point.sd)), number(self.y(point.y + point.sd))
        left = number(x - 3)
        return [
            tag(
                "path",
                class_="whisker",
                d=f"M{number(x)} {low}V{high}M{left} {low}h6M{left} {high}h6",
            )
        ]

    def __str__(self) -> str:
        """Return the picture."""
        return tag(
            "svg",
            tag("title", self.name),
            tag("desc", self.about) if self.about else "",
            join(*self.parts),
            viewBox=f"0 0 {number(self.width)} {number(self.height)}",
            xmlns="http://www.w3.org/2000/svg",
            role="img",
            aria_label=self.name,
        )

    def markup(self) -> Markup:
        """Return the picture as markup."""
        return Markup(str(self))


def y_range(points: Sequence[Point], floor: float | None = None) -> list[float]:
    """Return what a y axis must hold: values with their deviations, not below a floor."""
    ends: list[float] = []
    for point in points:
        if point.y is not None:
            spread = point.sd or 0.0
            low = point.y - spread
            # A deviation reaches below zero only on paper: there is no negative time.
            ends += [max(low, min(floor, point.y)) if floor is not None else low, point.y + spread]
    return ends


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    runs: list[list[Point]] = [[]]
    for point in points:
        if point.y is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _polyline(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in places)


def _staircase(places: Sequence[tuple[float, float]]) -> str:
    (x, y), *rest = places
    return f"M{number(x)} {number(y)}" + "".join(f"H{number(x)}V{number(y)}" for x, y in rest)
