"""What papers print beside what was measured."""

from __future__ import annotations

from collections.abc import Callable

from exactk.papers.experiments.classifiers import CLASSIFIERS
from exactk.papers.experiments.page.figures.panels import FigureContext, gap
from exactk.papers.experiments.page.labels import higher_is_better, name_of
from exactk.papers.experiments.page.tables import name_cell
from exactk.papers.experiments.summary import Comparison
from exactk.report.markup import (
    Markup,
    join,
    label,
    tag,
)
from exactk.report.numbers import (
    DASH,
    percent,
    plural,
    short,
    signed,
)
from exactk.report.tables import (
    cell,
    head,
    table,
)

__all__ = ["comparison_table"]


def comparison_table(context: FigureContext, measure: str) -> Markup:
    """Return what the paper prints beside what was measured, in the units of the paper."""
    # Methods that were not run stand beside the others in the table of means.
    found = [
        one
        for one in context.study.comparisons
        if one.measure == measure and one.method in context.study.methods
    ]
    if not found:
        return Markup()
    rows = [_compared(context, one) for one in found]
    judged = [one for one in found if one.within_deviation is not None]
    inside = sum(bool(one.within_deviation) for one in judged)
    total = (
        f"{inside} of {len(judged)} within the stated deviation"
        if judged
        else "no deviations stated"
    )
    have = sum(one.measured is not None for one in found)
    unit = ", %" if measure in CLASSIFIERS else ""
    caption = (
        f"Published and measured {name_of(measure)}{unit}: {plural(len(found), 'printed number')}, "
        f"{have} measured here; {total}."
    )
    heads = join(
        head("data set", numeric=False), head("k"), head("method", numeric=False),
        head("published"), head("measured"), head("n"), head("difference"),
        head("in standard errors", title="difference over its standard error, where both sides "
             "state a deviation"),
        head("within the stated deviation", numeric=False),
    )  # fmt: skip
    name = f"Published and measured {name_of(measure)}"
    return table(rows, heads, caption=caption, kind="compare", name=name)


def _compared(context: FigureContext, one: Comparison) -> Markup:
    write = percent if one.measure in CLASSIFIERS else short
    found = context.study.summary(one.dataset, one.method, one.k, one.measure)
    sd = 0.0 if found and found.sd == 0 else one.measured_sd
    measured_text: object = _with_spread(write, one.measured, sd)
    if one.measured is None:
        word, reason = context.study.missing(one.dataset, one.method, one.k)
        if word == "not run":
            word, reason = "not measured", "the paper prints it, and it was not run here"
        measured_text = gap(word, reason)
    errors = one.standard_errors
    return tag(
        "tr",
        tag("td", label(one.dataset)),
        cell(one.k, one.k),
        name_cell(context, one.method),
        cell(_with_spread(write, one.published, one.published_sd), one.published),
        cell(measured_text, one.measured),
        cell(one.n or DASH, one.n or None),
        cell(signed(write(one.difference)), one.difference),
        cell(DASH if errors is None else signed(f"{errors:.1f}".replace("-", "−")), errors),
        _verdict(one),
    )


def _with_spread(
    write: Callable[[float | None], str], value: float | None, sd: float | None
) -> Markup:
    return join(write(value), tag("small", f" ± {short(sd)}") if sd is not None else "")


def _verdict(one: Comparison) -> Markup:
    if one.difference is None:
        return tag("td", DASH)
    better = higher_is_better(one.measure)
    if one.within_deviation:
        return tag("td", tag("span", "yes", class_="verdict yes"))
    if one.within_deviation is None:
        return tag("td", tag("span", "none stated", class_="verdict none"))
    if better is None:
        return tag("td", tag("span", "no", class_="verdict no"))
    good = (one.difference > 0) == better
    words, kind = ("no, better", "better") if good else ("no, worse", "no")
    return tag("td", tag("span", words, class_=f"verdict {kind}"))
