"""Styles of methods in figures: colour, dashes and shape of points."""

from __future__ import annotations

from exactk.report.markup import Markup, tag

__all__ = [
    "COLOURS",
    "dashes",
    "key",
    "shape",
]


# Colours themselves are in report.css, one set for light and one for dark: classes c0 to c7.
COLOURS = 8
DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "4 2 1 2 1 2")
# Drawn about the origin, about six units across.
SHAPES = (
    "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",  # circle
    "M-2.7-2.7h5.4v5.4h-5.4z",  # square
    "M0-3.6L3.4 2.6H-3.4z",  # triangle
    "M0-3.8L3.8 0L0 3.8L-3.8 0z",  # diamond
    "M0 3.6L3.4-2.6H-3.4z",  # triangle, downwards
    "M-3.2-1.1h2.1v-2.1h2.2v2.1h2.1v2.2h-2.1v2.1h-2.2v-2.1h-2.1z",  # plus
    "M0-3.7L3.5-1.1L2.2 3H-2.2L-3.5-1.1z",  # pentagon
)


def dashes(slot: int) -> str | None:
    """Return the dashes of a line: solid for the first eight, others for each further eight."""
    return DASHES[slot // COLOURS % len(DASHES)] or None


def shape(slot: int) -> str:
    """Return the path of a point; seven shapes and eight colours do not repeat in 56 slots."""
    return SHAPES[slot % len(SHAPES)]


def key(slot: int, *, heavy: bool = False) -> Markup:
    """Return the line and point of a method for a legend."""
    return tag(
        "svg",
        tag("path", class_="line", d="M1 7H33", stroke_dasharray=dashes(slot)),
        tag("path", class_="pt", d=shape(slot), transform="translate(17 7)"),
        class_=f"key c{slot % COLOURS}{' heavy' if heavy else ''}",
        viewBox="0 0 34 14",
        aria_hidden="true",
    )
