"""A measure against k, or against a parameter: one panel a data set, one line a method."""

from __future__ import annotations

from exactk.report import styles, svg
from exactk.report.figures.panels import (
    Panel,
    Sheet,
    missing_note,
    published_tip,
    tip,
    value_of,
)
from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import finite, plural
from exactk.report.scales import Scale, linear, logarithmic, whole_numbers
from exactk.report.words import name_of

__all__ = ["against_parameter", "curves", "y_scale"]

# In place of axes that would show nothing.
EMPTY = tag("p", "No numbers.", class_="empty")


def curves(sheet: Sheet) -> Markup:
    """Return one figure for each measure of the view."""
    return join(*(_against_k(sheet, measure) for measure in sheet.view.measures))


def y_scale(sheet: Sheet, points: list[svg.Point], *, zero: bool = False) -> Scale:
    """Return the y axis of a panel, as the view asks."""
    if sheet.view.scale == "log":
        ends = [point.y for point in points if point.y is not None]
        ends += [end for end in svg.y_range(points) if end > 0 and end >= min(ends, default=0)]
        return logarithmic(ends, svg.BOTTOM, svg.TOP)
    # A deviation below zero or above a hundred per cent would stretch the axis for nothing.
    floor = 0.0 if all((p.y or 0.0) >= 0 for p in points) else None
    ends = svg.y_range(points, floor)
    if sheet.view.scale == "percent":
        ends = [min(end, 100.0) for end in ends]
    return linear(ends, svg.BOTTOM, svg.TOP, zero=zero)


def _against_k(sheet: Sheet, measure: str) -> Markup:
    study = sheet.study
    panels, shown, hollow = [], set(), False
    for dataset in study.datasets:
        lines, papers = {}, {}
        gaps: dict[str, list[tuple[int, str, str]]] = {}
        for method in study.methods:
            line, lacking = _line(sheet, dataset, method, measure)
            if any(point.y is not None for point in line):
                lines[method] = line
            if lacking:
                gaps[method] = lacking
            paper = _published(sheet, dataset, method, measure)
            if paper:
                papers[method] = paper
        shown |= {*lines, *papers}
        hollow = hollow or bool(papers)
        if lines or papers or gaps:
            picture = EMPTY
            if lines or papers:
                picture = _picture(sheet, dataset, measure, lines, papers)
            panels.append(Panel(dataset, picture, notes=missing_note(sheet, gaps)))
    percent = sheet.view.scale == "percent"
    title = f"{_capital(name_of(measure, percent=percent))} against k"
    note = "Line: mean over the repeats; band: ± one standard deviation."
    if measure.startswith("sparsity"):
        note = "Line: mean over the repeats."
    if sheet.view.statistic != "mean":
        note = f"Line: the {sheet.view.statistic} over the repeats."
    if measure.startswith("sparsity"):
        note += " Dashed diagonal: as many rows as were asked for."
    if hollow:
        note += " Hollow points: published."
    return sheet.figure(title, panels, [name for name in study.methods if name in shown], note)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _line(
    sheet: Sheet, dataset: str, method: str, measure: str
) -> tuple[list[svg.Point], list[tuple[int, str, str]]]:
    points, lacking = [], []
    for k in sheet.study.sizes:
        found = sheet.summary(dataset, method, k, measure)
        if found is None:
            lacking.append((k, *sheet.study.missing(dataset, method, k)))
            points.append(svg.Point(k, None))
        else:
            value = value_of(found, sheet.view.statistic)
            sd = found.sd if sheet.view.statistic == "mean" else None
            points.append(svg.Point(k, value, sd, tip(sheet, method, f"k = {k}", found)))
    return points, lacking


def _published(sheet: Sheet, dataset: str, method: str, measure: str) -> list[svg.Point]:
    points = []
    for k in sheet.study.published_sizes(dataset, measure):
        found = sheet.published(dataset, method, k, measure)
        if found:
            words = published_tip(sheet, method, f"k = {k}", found)
            points.append(svg.Point(k, found.value, found.sd, words))
    return points


def _picture(
    sheet: Sheet,
    dataset: str,
    measure: str,
    lines: dict[str, list[svg.Point]],
    papers: dict[str, list[svg.Point]],
) -> Markup:
    staircase = measure.startswith("sparsity")
    points = [p for line in [*lines.values(), *papers.values()] for p in line]
    held = list(points)
    if staircase:
        held += [svg.Point(k, float(k)) for k in sheet.study.sizes]
    x = whole_numbers([p.x for p in points], svg.LEFT, svg.RIGHT)
    percent = sheet.view.scale == "percent"
    named = name_of(measure, percent=percent)
    plot = svg.Plot(
        x, y_scale(sheet, held, zero=staircase),
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
    for method in sheet.study.methods:
        if method in lines or method in papers:
            plot.series(
                lines.get(method, []), sheet.slot(method), sheet.method(method),
                steps=staircase, spread="none" if staircase else "band",
                published=papers.get(method, []),
            )  # fmt: skip
    return plot.markup()


def against_parameter(sheet: Sheet) -> Markup:
    """Return a measure against an option in which methods differ: one line a measure."""
    study, option = sheet.study, sheet.view.x
    measures = sheet.view.measures
    groups: dict[str, list[tuple[float, str]]] = {}
    for method in study.methods:
        value = finite(study.options.get(method, {}).get(option))
        if value is not None:
            groups.setdefault(study.families.get(method, method), []).append((value, method))
    keys = [(family, measure) for family in groups for measure in measures]
    panels = []
    for dataset in study.datasets:
        for k in study.sizes:
            lines: dict[int, list[svg.Point]] = {}
            gaps: dict[str, list[tuple[int, str, str]]] = {}
            for slot, (family, measure) in enumerate(keys):
                for value, method in sorted(groups[family]):
                    found = sheet.summary(dataset, method, k, measure)
                    if found is None:
                        gaps.setdefault(method, [(k, *study.missing(dataset, method, k))])
                        lines.setdefault(slot, []).append(svg.Point(value, None))
                        continue
                    at = f"{option} = {value:g}"
                    words = tip(sheet, f"{family}: {name_of(measure)}", at, found)
                    lines.setdefault(slot, []).append(
                        svg.Point(value, found.mean, found.sd, words, sheet.method(method))
                    )
            points = [point for line in lines.values() for point in line]
            picture = EMPTY
            if any(point.y is not None for point in points):
                picture = _parameter_picture(sheet, dataset, k, lines)
            heading = f"k = {k}" if len(study.sizes) > 1 else ""
            panels.append(Panel(dataset, picture, heading, notes=missing_note(sheet, gaps)))
    names = [
        f"{family}: {name_of(measure)}" if len(groups) > 1 else name_of(measure)
        for family, measure in keys
    ]
    items = [tag("li", styles.key(slot), label(name)) for slot, name in enumerate(names)]
    note = "Line: mean over the repeats; band: ± one standard deviation."
    legend = tag("ul", *items, class_="legend fixed")
    return sheet.figure(f"Against {option}", panels, [], note, legend)


def _parameter_picture(
    sheet: Sheet, dataset: str, k: int, lines: dict[int, list[svg.Point]]
) -> Markup:
    option, measures = sheet.view.x, sheet.view.measures
    points = [point for line in lines.values() for point in line]
    x = linear([p.x for p in points], svg.LEFT, svg.RIGHT, tight=True, count=6)
    title = name_of(measures[0]) if len(measures) == 1 else "accuracy"
    title += ", %" if sheet.view.scale == "percent" else ""
    name = f"{title} against {option} on {dataset}, k = {k}"
    plot = svg.Plot(x, y_scale(sheet, points), name)
    plot.axes(option, title)
    for slot, line in lines.items():
        plot.series(line, slot, None)
    return plot.markup()
