"""Objective against iteration: mean and deviation over the repeats, panels by data set and k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactk.papers.experiments.page.figures.curve import EMPTY, y_scale
from exactk.papers.experiments.page.figures.panels import (
    FigureContext,
    Gaps,
    Panel,
    all_not_run,
    everywhere,
    missing_note,
)
from exactk.report import svg
from exactk.report.markup import Markup, join
from exactk.report.scales import linear, logarithmic

__all__ = ["pooled", "traces"]

# A panel is some 340 units wide: more points than this cannot be told apart.
MOST_POINTS = 120
UNEQUAL = 10


def pooled(runs: Sequence[Sequence[float]]) -> tuple[list[float], list[float | None]]:
    """Return mean and standard deviation by iteration; a run that ended keeps its last value.

    Examples
    --------
    >>> pooled([[4.0, 2.0], [6.0, 4.0, 1.0]])
    ([5.0, 3.0, 1.5], [1.4142135623730951, 1.4142135623730951, 0.7071067811865476])
    >>> pooled([[4.0, 2.0]])
    ([4.0, 2.0], [None, None])
    """
    length = max(len(run) for run in runs)
    table = np.array([[*run, *[run[-1]] * (length - len(run))] for run in runs], dtype=np.float64)
    means = [float(value) for value in table.mean(axis=0)]
    if len(runs) == 1:
        return means, [None] * length
    return means, [float(value) for value in table.std(axis=0, ddof=1)]


def traces(context: FigureContext) -> Markup:
    """Return one panel for every data set and k."""
    study = context.study
    drawn: list[tuple[str, int, dict[str, list[svg.Point]]]] = []
    every_gap: list[Gaps] = []
    counts: set[int] = set()
    longest = 0
    for dataset in study.datasets:
        for k in study.sizes:
            lines: dict[str, list[svg.Point]] = {}
            gaps: Gaps = {}
            for method in study.methods:
                runs = _finite_runs(study.results(dataset, method, k))
                if runs:
                    lines[method] = _points(context, method, runs)
                    longest = max(longest, *map(len, runs))
                    counts.add(len(runs))
                else:
                    word, reason = study.missing(dataset, method, k)
                    if word == "no number":
                        word, reason = "no trace", "the method keeps none, or it is not finite"
                    gaps[method] = [(k, word, reason)]
            if lines or not all_not_run(gaps, len(study.methods)):
                drawn.append((dataset, k, lines))
                every_gap.append(gaps)
    left, lacking = everywhere(context, every_gap)
    panels = [
        Panel(
            dataset,
            _picture(context, dataset, k, lines) if lines else EMPTY,
            f"k = {k}" if len(study.sizes) > 1 else "",
            notes=missing_note(gaps),
        )
        for (dataset, k, lines), gaps in zip(drawn, left, strict=True)
    ]
    every_point = [p for _, _, lines in drawn for line in lines.values() for p in line]
    note = context.means("Points", counts, "error bars" if any(p.sd for p in every_point) else "")
    if max(counts, default=0) > 1:
        note += " A run that ended keeps its last value."
    if longest > MOST_POINTS:
        note += f" Of more than {MOST_POINTS} iterations, some are drawn."
    shown = {name for _, _, lines in drawn for name in lines}
    methods = [name for name in study.methods if name in shown]
    return context.figure("Objective against iteration", panels, methods, join(note, lacking))


def _finite_runs(results: Sequence[object]) -> list[list[float]]:
    runs = []
    for result in results:
        trace = result.get("trace") or () if isinstance(result, dict) else ()
        values = [float(v) for v in trace if v is not None and np.isfinite(v)]
        # A value that is not finite in the middle would shift all that follow.
        if values and len(values) == len(trace):
            runs.append(values)
    return runs


def _points(context: FigureContext, method: str, runs: list[list[float]]) -> list[svg.Point]:
    means, deviations = pooled(runs)
    places = _places(len(means))
    points = []
    for place in places:
        mean, sd = means[place], deviations[place]
        spread = "" if sd is None else f" ± {context.text(sd, 2)}"
        words = f"{method}\niteration {place + 1}: {context.text(mean)}{spread} (n = {len(runs)})"
        points.append(svg.Point(float(place + 1), mean, sd, words))
    return points


def _places(length: int) -> list[int]:
    """Iterations to draw: all, or some that are dense enough on a linear and on a log axis."""
    if length <= MOST_POINTS:
        return list(range(length))
    even = np.linspace(0, length - 1, MOST_POINTS // 2)
    early = np.geomspace(1, length, MOST_POINTS // 2) - 1
    return [int(place) for place in np.unique(np.concatenate([even, early]).round())]


def _picture(
    context: FigureContext, dataset: str, k: int, lines: dict[str, list[svg.Point]]
) -> Markup:
    points = [point for line in lines.values() for point in line]
    lengths = [line[-1].x for line in lines.values()]
    # Ten iterations beside a thousand can be seen on a log axis alone.
    log = max(lengths) > UNEQUAL * min(lengths)
    x = linear([p.x for p in points], svg.LEFT, svg.RIGHT, whole=True, tight=True, count=6)
    if log:
        x = logarithmic([p.x for p in points], svg.LEFT, svg.RIGHT)
    plot = svg.Plot(
        x, y_scale(context, points), f"objective against iteration on {dataset}, k = {k}",
        f"One line a method, {x.high:g} iterations at most.",
    )  # fmt: skip
    plot.axes("iteration, log scale" if log else "iteration", "objective, the method’s own")
    for method, line in lines.items():
        plot.series(
            line, context.style_index(method), spread="bars",
            heavy=context.is_highlighted(method),
        )  # fmt: skip
    return plot.markup()
