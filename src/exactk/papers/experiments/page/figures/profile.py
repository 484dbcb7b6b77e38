"""Arrays of a method's last iterate: norms by column, sorted entries (IPFS, figure 2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from exactk.papers.experiments.page.figures.panels import FigureContext, Panel
from exactk.papers.experiments.page.labels import name_of
from exactk.report import styles, svg
from exactk.report.markup import Markup, join, tag
from exactk.report.numbers import exact, plural, short
from exactk.report.scales import linear, logarithmic

__all__ = ["profiles", "thinned"]

# A panel cannot show more columns than this apart.
MOST_COLUMNS = 660
SORTED = ("weights",)


def thinned(values: npt.NDArray[np.float64], most: int) -> list[tuple[int, float]]:
    """Return the value of largest size in each of at most so many runs of neighbours.

    Examples
    --------
    >>> thinned(np.array([0.0, 3.0, 1.0, -2.0]), 2)
    [(1, 3.0), (3, -2.0)]
    """
    kept = []
    for run in np.array_split(np.arange(len(values)), min(most, len(values))):
        place = int(run[np.argmax(np.abs(values[run]))])
        kept.append((place, float(values[place])))
    return kept


def profiles(context: FigureContext) -> Markup:
    """Return panels by data set, method and k for each array that the view names."""
    return join(*(_profile(context, name) for name in context.view.measures))


def _profile(context: FigureContext, name: str) -> Markup:
    study = context.study
    panels = []
    for dataset in study.datasets:
        for method in study.methods:
            found = _array(context, dataset, method, name)
            if found is not None:
                k, values = found
                picture = _picture(context, dataset, method, k, name, values)
                panels.append(Panel(dataset, picture, f"{method} · k = {k}"))
    note = "The first repeat at the largest k; points: the k largest."
    if not panels:
        note = "No method kept this array: it is asked for under measure.details."
    named = name_of(name)
    return context.figure(named[:1].upper() + named[1:], panels, [], note)


def _array(
    context: FigureContext, dataset: str, method: str, name: str
) -> tuple[int, npt.NDArray[np.float64]] | None:
    """The array at the largest k; of the repeats the first, as iterates cannot be averaged."""
    for k in reversed(context.study.sizes):
        for result in context.study.results(dataset, method, k):
            raw = (result.get("details") or {}).get(name)
            values = np.array([np.nan if v is None else v for v in raw or ()], dtype=np.float64)
            if len(values) and np.isfinite(values).all():
                return k, values
    return None


def _picture(
    context: FigureContext,
    dataset: str,
    method: str,
    k: int,
    name: str,
    values: npt.NDArray[np.float64],
) -> Markup:
    ordered = np.sort(values)[::-1] if name in SORTED else values
    kept = thinned(ordered, MOST_COLUMNS)
    x = linear([1.0, float(len(values))], svg.LEFT, svg.RIGHT, whole=True, tight=True, count=5)
    heights = [value for _, value in kept]
    log = context.view.scale == "log"
    y = (
        logarithmic(np.abs(heights), svg.BOTTOM, svg.TOP)
        if log
        else linear(heights, svg.BOTTOM, svg.TOP, zero=True)
    )
    largest = short(float(np.abs(values).max()))
    above = int((np.abs(values) > 1e-3 * np.abs(values).max()).sum())
    plot = svg.Plot(
        x, y, f"{name_of(name)}: {method} on {dataset}, k = {k}",
        f"{plural(len(values), 'value')}, the largest {largest}; {above} above a thousandth of it.",
    )  # fmt: skip
    plot.axes("rank" if name in SORTED else "column", name_of(name))
    foot = svg.number(svg.BOTTOM if log else y(0.0))
    stems = "".join(
        f"M{svg.number(x(place + 1))} {foot}V{svg.number(y(value))}"
        for place, value in kept
        if value
    )
    slot = context.style_index(method)
    top = sorted(kept, key=lambda pair: -abs(pair[1]))[:k]
    points = [
        tag("path", tag("title", f"{place + 1}: {exact(value)}"), class_="pt", d=styles.shape(slot),
            transform=f"translate({svg.number(x(place + 1))} {svg.number(y(value))})")
        for place, value in top
    ]  # fmt: skip
    plot.add(
        tag(
            "g",
            tag("path", class_="stem", d=stems),
            *points,
            class_=f"series c{slot % styles.COLOURS}",
        )
    )
    return plot.markup()
