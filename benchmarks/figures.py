"""Figures of the pages: panels two by two with one legend, as one SVG file."""

from __future__ import annotations

from collections.abc import Sequence

from exactk.report import svg
from exactk.report.markup import Markup, join, tag
from exactk.report.styles import key as key_of

# A figure is a file of its own: it follows what the reader's system asks for, on paper of its own.
STYLE = """
svg { --paper: #fff; --ink: #1b1f24; --soft: #5a6472; --grid: #e6e9ed;
  --c0: #0072b2; --c1: #009e73; --c2: #c98a00; --c3: #d55e00; --c4: #9a4f86; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #14171b; --ink: #e7eaee; --soft: #a0aab6; --grid: #272d34;
    --c0: #55aeea; --c1: #2fc796; --c2: #f0b93a; --c3: #ff8b48; --c4: #e590c9; }
}
text { font: 11px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: var(--soft); }
.paper { fill: var(--paper); }
.head { font-size: 13px; font-weight: 600; fill: var(--ink); }
.grid { stroke: var(--grid); fill: none; } .axis { stroke: var(--soft); fill: none; }
.line { fill: none; stroke: currentColor; stroke-width: 1.7; stroke-linejoin: round; }
.heavy .line { stroke-width: 3; }
.pt { fill: currentColor; stroke: var(--paper); stroke-width: 0.6; }
.whisker { fill: none; stroke: currentColor; stroke-width: 1; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); }
.c3 { color: var(--c3); } .c4 { color: var(--c4); }
"""

TOP, GAP = 30.0, 22.0
# What a letter of the legend takes, and the line before it.
LETTER, LINE = 6.4, 46.0


def grid(
    title: str, panels: Sequence[tuple[str, svg.Plot]], lines: Sequence[str], head: str = ""
) -> str:
    """Return panels with their headings, below a legend of the lines that all of them have."""
    height = TOP + -(-len(panels) // 2) * (svg.HEIGHT + GAP)
    drawn: list[Markup] = []
    for i, (name, plot) in enumerate(panels):
        place = f"translate({i % 2 * svg.WIDTH:g} {TOP + i // 2 * (svg.HEIGHT + GAP) + GAP:g})"
        drawn.append(
            tag("g", tag("text", name, class_="head", x="4", y="-2"), *plot.parts, transform=place)
        )
    legend: list[Markup] = [tag("text", head, x="4", y="19")]
    left = 4 + LETTER * len(head) + (8 if head else 0)
    for slot, text in enumerate(lines):
        sample = key_of(slot).replace("<svg", f'<svg x="{left:g}" y="8" width="34" height="14"', 1)
        legend += [Markup(sample), tag("text", text, x=f"{left + 38:g}", y="19")]
        left += LINE + LETTER * len(text)
    return tag(
        "svg", tag("title", title), tag("style", Markup(STYLE)),
        tag("rect", class_="paper", width="100%", height="100%"), join(*legend, *drawn),
        viewBox=f"0 0 {2 * svg.WIDTH:g} {height:g}", xmlns="http://www.w3.org/2000/svg",
        role="img", aria_label=title,
    )  # fmt: skip
