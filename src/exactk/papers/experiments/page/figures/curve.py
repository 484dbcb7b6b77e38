"""A measure against k, or against a parameter: one panel a data set, one line a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exactk.papers.experiments.page.figures.panels import (
    MANY,
    FigureContext,
    Gaps,
    Panel,
    all_not_run,
    everywhere,
    missing_note,
    published_tip,
    tip,
    value_of,
)
from exactk.papers.experiments.page.labels import capital, name_of, symbol
from exactk.report import styles, svg
from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import finite, plural
from exactk.report.scales import Scale, linear, logarithmic, whole_numbers, with_ends

__all__ = ["against_parameter", "curves", "y_scale"]

# In place of axes that would show nothing.
EMPTY = tag("p", "No numbers.", class_="empty")
# The least span of an axis of percentages.
LEAST_POINTS = 2.0

Lines = dict[str, list[svg.Point]]


@dataclass(frozen=True)
class Level:
    """A number that does not depend on x: of which method, and what to write on its line."""

    method: str
    value: float
    text: str
    tip: str


def curves(context: FigureContext) -> Markup:
    """Return one figure for each measure of the view."""
    return join(*(_against_k(context, measure) for measure in context.view.measures))


def y_scale(context: FigureContext, points: list[svg.Point], *, zero: bool = False) -> Scale:
    """Return the y axis of a panel, as the view asks."""
    if context.view.scale == "log":
        ends = [point.y for point in points if point.y is not None]
        ends += [end for end in svg.y_range(points) if end > 0 and end >= min(ends, default=0)]
        return logarithmic(ends, svg.BOTTOM, svg.TOP)
    # A deviation below zero or above a hundred per cent would stretch the axis for nothing.
    floor = 0.0 if all((p.y or 0.0) >= 0 for p in points) else None
    ends = svg.y_range(points, floor)
    if context.view.scale == "percent":
        ends = [min(end, 100.0) for end in ends]
        ends += _room(ends)
    return linear(ends, svg.BOTTOM, svg.TOP, zero=zero)


def _room(ends: Sequence[float]) -> list[float]:
    """Ends of an axis of percentages that does not make mountains of a tenth of a point."""
    if not ends or max(ends) - min(ends) >= LEAST_POINTS:
        return []
    middle = (max(ends) + min(ends)) / 2
    high = min(100.0, max(middle, LEAST_POINTS / 2) + LEAST_POINTS / 2)
    return [high - LEAST_POINTS, high]


def _against_k(context: FigureContext, measure: str) -> Markup:
    study = context.study
    drawn: list[tuple[str, Lines, Lines]] = []
    every_gap: list[Gaps] = []
    counts: set[int] = set()
    for dataset in study.datasets:
        lines, papers, gaps = {}, {}, {}
        for method in study.methods:
            line, lacking = _line(context, dataset, method, measure)
            if any(point.y is not None for point in line):
                lines[method] = line
            if lacking:
                gaps[method] = lacking
            paper = _published(context, dataset, method, measure)
            if paper:
                papers[method] = paper
        if lines or papers or not all_not_run(gaps, len(study.methods)):
            drawn.append((dataset, lines, papers))
            every_gap.append(gaps)
            counts |= {point.n for line in lines.values() for point in line if point.n}
    left, note = everywhere(context, every_gap)
    shown = {name for _, lines, papers in drawn for name in (*lines, *papers)}
    methods = [name for name in study.methods if name in shown]
    staircase = measure.startswith("sparsity")
    bands = not staircase and len(methods) < MANY
    panels = []
    for (dataset, lines, papers), gaps in zip(drawn, left, strict=True):
        picture = EMPTY
        if lines or papers:
            picture = _picture(context, dataset, measure, lines, papers, bands=bands)
        panels.append(Panel(dataset, picture, notes=missing_note(gaps)))
    spread = _spread([line for _, lines, _ in drawn for line in lines.values()]) if bands else ""
    words = [context.means("Line", counts, spread)]
    if staircase:
        words.append("Dashed diagonal: as many rows as were asked for.")
    if any(papers for _, _, papers in drawn):
        words.append("Hollow points: published.")
    title = f"{capital(name_of(measure, percent=context.view.scale == 'percent'))} against k"
    return context.figure(title, panels, methods, join(" ".join(words), note))


def _spread(lines: Sequence[Sequence[svg.Point]]) -> str:
    """What shows the deviation; empty if nothing does."""
    # A band is drawn between two points at least.
    return "band" if any(sum(bool(point.sd) for point in line) > 1 for line in lines) else ""


def _line(
    context: FigureContext, dataset: str, method: str, measure: str
) -> tuple[list[svg.Point], list[tuple[int, str, str]]]:
    points, lacking = [], []
    for k in context.study.sizes:
        found = context.summary(dataset, method, k, measure)
        if found is None:
            lacking.append((k, *context.study.missing(dataset, method, k)))
            points.append(svg.Point(k, None))
        else:
            value = value_of(found, context.view.statistic)
            sd = found.sd if context.view.statistic == "mean" else None
            words = tip(context, method, f"k = {k}", found)
            points.append(svg.Point(k, value, sd, words, n=found.n))
    return points, lacking


def _published(context: FigureContext, dataset: str, method: str, measure: str) -> list[svg.Point]:
    points = []
    for k in context.study.published_sizes(dataset, measure):
        found = context.published(dataset, method, k, measure)
        if found:
            words = published_tip(context, method, f"k = {k}", found)
            points.append(svg.Point(k, found.value, found.sd, words))
    return points


def _picture(
    context: FigureContext,
    dataset: str,
    measure: str,
    lines: dict[str, list[svg.Point]],
    papers: dict[str, list[svg.Point]],
    *,
    bands: bool,
) -> Markup:
    """Draw a panel."""
    staircase = measure.startswith("sparsity")
    points = [p for line in [*lines.values(), *papers.values()] for p in line]
    held = list(points)
    if staircase:
        held += [svg.Point(k, float(k)) for k in context.study.sizes]
    x = whole_numbers([p.x for p in points], svg.LEFT, svg.RIGHT)
    percent = context.view.scale == "percent"
    named = name_of(measure, percent=percent)
    plot = svg.Plot(
        x, y_scale(context, held, zero=staircase),
        f"{named} against k on {dataset}",
        f"{plural(len(lines), 'line')}, one a method; k from {x.low:g} to {x.high:g}. "
        f"The numbers are in the table of this section or in the titles of the points.",
    )  # fmt: skip
    plot.axes("k", named)
    if staircase:
        low, high = max(x.low, plot.y.low), min(x.high, plot.y.high)
        ends = [(plot.x(v), plot.y(v)) for v in (low, high)]
        path = "L".join(f"{svg.number(a)} {svg.number(b)}" for a, b in ends)
        plot.reference(f"M{path}", "as many rows as asked for")
    shown = [method for method in context.study.methods if method in lines or method in papers]
    # A thick line goes below, where it can be seen on both sides of a thin one.
    shown.sort(key=lambda method: not context.is_highlighted(method))
    for method in shown:
        plot.series(
            lines.get(method, []), context.style_index(method),
            steps=staircase, spread="band" if bands else "none",
            published=papers.get(method, []), heavy=context.is_highlighted(method),
        )  # fmt: skip
    return plot.markup()


def against_parameter(context: FigureContext) -> Markup:
    """Return a measure against an option in which methods differ: one line a measure."""
    study, option = context.study, context.view.x
    measures = context.view.measures
    sign = symbol(option)
    groups: dict[str, list[tuple[float, str]]] = {}
    constant: list[str] = []
    for method in study.methods:
        value = finite(study.options.get(method, {}).get(option))
        if value is not None:
            groups.setdefault(study.families.get(method, method), []).append((value, method))
        else:
            constant.append(method)
    keys = [(family, measure) for family in groups for measure in measures]
    panels = []
    counts: set[int] = set()
    drawn: list[list[svg.Point]] = []
    for dataset in study.datasets:
        for k in study.sizes:
            lines: dict[int, list[svg.Point]] = {}
            gaps: Gaps = {}
            for slot, (family, measure) in enumerate(keys):
                for value, method in sorted(groups[family]):
                    found = context.summary(dataset, method, k, measure)
                    if found is None:
                        gaps.setdefault(method, [(k, *study.missing(dataset, method, k))])
                        lines.setdefault(slot, []).append(svg.Point(value, None))
                        continue
                    at = f"{sign} = {value:g}"
                    counts.add(found.n)
                    words = tip(context, f"{family}: {name_of(measure)}", at, found)
                    lines.setdefault(slot, []).append(svg.Point(value, found.mean, found.sd, words))
            drawn += lines.values()
            levels = _levels(context, dataset, k, constant)
            for method in constant:
                if not any(one.method == method for one in levels):
                    gaps[method] = [(k, *study.missing(dataset, method, k))]
            if all_not_run(gaps, len(study.methods)):
                continue
            points = [point for line in lines.values() for point in line]
            picture = EMPTY
            if any(point.y is not None for point in points):
                picture = _parameter_picture(context, dataset, k, lines, levels)
            heading = f"k = {k}" if len(study.sizes) > 1 else ""
            panels.append(Panel(dataset, picture, heading, notes=missing_note(gaps)))
    names = [
        f"{family}: {name_of(measure)}" if len(groups) > 1 else name_of(measure)
        for family, measure in keys
    ]
    items = [tag("li", styles.key(slot), label(name)) for slot, name in enumerate(names)]
    note = context.means("Line", counts, _spread(drawn))
    if constant:
        note += f" Dashed: methods without {sign}."
    legend = tag("ul", *items, class_="legend")
    return context.figure(f"Against {sign}", panels, [], note, legend)


def _levels(context: FigureContext, dataset: str, k: int, methods: Sequence[str]) -> list[Level]:
    """Numbers of methods that do not have the option, with the words on their lines."""
    levels = []
    for measure in context.view.measures:
        for method in methods:
            found = context.summary(dataset, method, k, measure)
            if found is not None:
                value = value_of(found, context.view.statistic)
                name = svg.cut(method, 28)
                if len(context.view.measures) > 1:
                    name += f", {name_of(measure)}"
                words = tip(context, f"{method}: {name_of(measure)}", f"k = {k}", found)
                levels.append(Level(method, value, f"{name} {context.text(value)}", words))
    return levels


def _parameter_picture(
    context: FigureContext,
    dataset: str,
    k: int,
    lines: dict[int, list[svg.Point]],
    levels: list[Level],
) -> Markup:
    sign, measures = symbol(context.view.x), context.view.measures
    points = [point for line in lines.values() for point in line]
    x = with_ends(linear([p.x for p in points], svg.LEFT, svg.RIGHT, tight=True, count=6))
    held = [*points, *(svg.Point(x.low, level.value) for level in levels)]
    title = name_of(measures[0]) if len(measures) == 1 else "accuracy"
    title += ", %" if context.view.scale == "percent" else ""
    name = f"{title} against {sign} on {dataset}, k = {k}"
    plot = svg.Plot(x, y_scale(context, held), name)
    plot.axes(sign, title)
    for slot, line in lines.items():
        plot.series(line, slot)
    foot = svg.BOTTOM
    for level in sorted(levels, key=lambda level: level.value):
        # Texts of lines that are close stand above each other.
        foot = min(plot.y(level.value) - 4, foot - 12)
        plot.level(
            level.value, level.text, level.tip, len(lines) + context.style_index(level.method),
            above=foot,
        )  # fmt: skip
    return plot.markup()
