"""Bars with whiskers, one a method, grouped by data set: times, redundancy, errors."""

from __future__ import annotations

from statistics import median

from exactk.papers.experiments.page.figures.panels import (
    HARMLESS,
    FigureContext,
    Panel,
    published_tip,
    tip,
    value_of,
)
from exactk.papers.experiments.page.labels import capital, name_of
from exactk.papers.experiments.page.study import Published, Summary
from exactk.report import styles, svg
from exactk.report.markup import Markup, join, tag
from exactk.report.scales import Scale, linear, logarithmic

__all__ = ["bars"]

ROW = 18.0
TOP = 34.0
# Names of methods stand left of the bars, numbers right of them.
LEFT, RIGHT = 132.0, 332.0
NAME_LENGTH = 22
# More panels than this are folded away behind one that sums them up.
MOST_PANELS = 16
# On a linear scale panels whose longest bars differ by more than this have axes of their own.
UNLIKE = 5.0


def bars(context: FigureContext) -> Markup:
    """Return one figure for each measure of the view."""
    return join(*(_bars(context, measure) for measure in context.view.measures))


def _bars(context: FigureContext, measure: str) -> Markup:
    study = context.study
    places = [
        (dataset, k)
        for dataset in study.datasets
        for k in study.sizes
        if any(study.missing(dataset, method, k)[0] != "not run" for method in study.methods)
    ]
    found = {
        place: {m: context.summary(place[0], m, place[1], measure) for m in study.methods}
        for place in places
    }
    paper = {
        place: {m: context.published(place[0], m, place[1], measure) for m in study.methods}
        for place in places
    }
    scales = _scales(context, found, paper)
    panels = []
    for dataset, k in places:
        values, prints = found[dataset, k], paper[dataset, k]
        heading = f"k = {k}" if len(study.sizes) > 1 else ""
        picture = _picture(context, scales[dataset, k], dataset, k, measure, values, prints)
        panels.append(Panel(dataset, picture, heading))
    hollow = any(one for prints in paper.values() for one in prints.values())
    numbers = [one for values in found.values() for one in values.values() if one]
    spread = "whisker" if any(one.sd for one in numbers) else ""
    note = context.means("Bar", {one.n for one in numbers}, spread)
    if len(set(scales.values())) > 1:
        note += " Each panel has an axis of its own."
    if hollow:
        note += " Hollow points: published."
    title = capital(name_of(measure, percent=context.view.scale == "percent"))
    if len(panels) <= MOST_PANELS:
        return context.figure(title, panels, [], note)
    middle = {m: _median([found[place][m] for place in places]) for m in study.methods}
    scale = _scale(context, [one for one in middle.values() if one], [])
    picture = _picture(context, scale, "all data sets", None, measure, middle, {})
    overview = Panel(None, picture, "median over data sets and sizes that have a number")
    rest = tag("summary", f"{title}: one panel for each data set and k ({len(panels)})")
    return join(
        context.figure(title, [overview], []),
        tag("details", rest, context.figure("", panels, [], note), class_="rest"),
    )


def _median(found: list[Summary | None]) -> Summary | None:
    """The median of the means, with how many there are."""
    means = [one.mean for one in found if one]
    if not means:
        return None
    return Summary(len(means), median(means), min(means), max(means), None)


def _scales(
    context: FigureContext,
    found: dict[tuple[str, int], dict[str, Summary | None]],
    paper: dict[tuple[str, int], dict[str, Published | None]],
) -> dict[tuple[str, int], Scale]:
    """One scale for all panels, so that bars can be compared, unless some would be too short."""
    numbers = {place: [one for one in found[place].values() if one] for place in found}
    prints = {place: [one for one in paper[place].values() if one] for place in paper}
    largest = [max(abs(one.mean) for one in values) for values in numbers.values() if values]
    if context.view.scale != "log" and largest and max(largest) > UNLIKE * min(largest):
        return {place: _scale(context, numbers[place], prints[place]) for place in found}
    common = _scale(
        context,
        [one for values in numbers.values() for one in values],
        [one for values in prints.values() for one in values],
    )
    return dict.fromkeys(found, common)


def _scale(context: FigureContext, found: list[Summary], paper: list[Published]) -> Scale:
    values = [value_of(one, context.view.statistic) for one in found]
    values += [one.value for one in paper]
    ends = [one.mean + one.sd for one in found if one.sd and context.view.statistic == "mean"]
    if context.view.scale == "log":
        positive = [value for value in values if value > 0]
        # The smallest bar must have a length: the axis starts below it.
        lowest = [min(positive) * 0.7] if positive else []
        return logarithmic([*positive, *ends, *lowest], LEFT, RIGHT)
    return linear([*values, *ends], LEFT, RIGHT, zero=True, count=4)


def _picture(
    context: FigureContext,
    scale: Scale,
    dataset: str,
    k: int | None,
    measure: str,
    found: dict[str, Summary | None],
    paper: dict[str, Published | None],
) -> Markup:
    height = TOP + ROW * len(found) + 6
    named = name_of(measure, percent=context.view.scale == "percent")
    name = f"{named} on {dataset}{'' if k is None else f', k = {k}'}"
    frame = [tag("text", svg.cut(named, 56), class_="name", x="4", y="12")]
    for value, text in scale.ticks:
        place = svg.number(scale(value))
        frame += [
            tag("path", class_="grid", d=f"M{place} {svg.number(TOP - 4)}V{svg.number(height)}"),
            tag("text", text, class_="tick", x=place, y=svg.number(TOP - 8), text_anchor="middle"),
        ]
    rows = [
        _row(context, scale, dataset, k, method, found[method], paper.get(method), TOP + ROW * i)
        for i, method in enumerate(found)
    ]
    return tag(
        "svg",
        tag("title", name),
        tag("desc", f"One bar a method{', on a logarithmic scale' if scale.log else ''}."),
        tag("g", *frame, class_="frame"),
        *rows,
        viewBox=f"0 0 {svg.number(svg.WIDTH)} {svg.number(height)}",
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=name,
    )


def _row(
    context: FigureContext,
    scale: Scale,
    dataset: str,
    k: int | None,
    method: str,
    found: Summary | None,
    paper: Published | None,
    top: float,
) -> Markup:
    slot = context.style_index(method)
    middle = ROW / 2
    parts = [
        tag("text", svg.cut(method, NAME_LENGTH), tag("title", method), class_="row-name",
            x=svg.number(LEFT - 6), y=svg.number(middle), dy="0.34em", text_anchor="end"),
    ]  # fmt: skip
    if found is None:
        word, reason = "no number", "on any data set"
        if k is not None:
            word, reason = context.study.missing(dataset, method, k)
        kind = "gap mild" if word in HARMLESS else "gap"
        parts.append(
            tag("text", word, tag("title", f"{method}: {reason}"), class_=kind, x=LEFT + 6,
                y=svg.number(middle), dy="0.34em")
        )  # fmt: skip
    else:
        parts += _bar(context, scale, method, k, found)
    if paper:
        words = published_tip(context, method, f"k = {k}", paper)
        place = f"translate({svg.number(scale(paper.value))} {svg.number(middle)})"
        path = styles.shape(slot)
        parts.append(tag("path", tag("title", words), class_="pt hollow", transform=place, d=path))
    return tag(
        "g",
        *parts,
        class_=f"row c{slot % styles.COLOURS}",
        transform=f"translate(0 {svg.number(top)})",
    )


def _bar(
    context: FigureContext, scale: Scale, method: str, k: int | None, found: Summary
) -> list[Markup]:
    value = value_of(found, context.view.statistic)
    start, end = sorted((scale(0.0) if not scale.log else LEFT, scale(value)))
    words = tip(context, method, "median" if k is None else f"k = {k}", found)
    parts = [
        tag("rect", tag("title", words), class_="bar", x=svg.number(start), y="3",
            width=svg.number(max(end - start, 0.5)), height=svg.number(ROW - 6)),
    ]  # fmt: skip
    reach = end
    if found.sd and context.view.statistic == "mean":
        low, reach = scale(value - found.sd), max(end, scale(value + found.sd))
        a, b, y = svg.number(low), svg.number(reach), svg.number(ROW / 2)
        parts.append(tag("path", class_="whisker", d=f"M{a} {y}H{b}M{a} {y}m0-3v6M{b} {y}m0-3v6"))
    number = context.text(value, 3)
    parts.append(
        tag(
            "text",
            number,
            class_="value",
            x=svg.number(reach + 5),
            y=svg.number(ROW / 2),
            dy="0.34em",
        )
    )
    return parts
