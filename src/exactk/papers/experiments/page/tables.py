"""Tables: measured numbers in the form of the papers, leaderboards, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import isclose

from exactk.papers.experiments.classifiers import CLASSIFIERS
from exactk.papers.experiments.page.figures.panels import FigureContext, gap, value_of
from exactk.papers.experiments.page.labels import capital, higher_is_better, name_of
from exactk.papers.experiments.page.ranks import MethodRanking
from exactk.papers.experiments.page.study import Study, Summary
from exactk.papers.experiments.summary import Comparison, Failure
from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import DASH, percent, plural, short, signed
from exactk.report.tables import cell, head, table

__all__ = [
    "comparison_table",
    "failure_table",
    "leaderboard",
    "measured",
    "name_cell",
    "status_counts",
]


# A table of more columns than this is split by data set.
MOST_COLUMNS = 40
# So many repeats are named one by one.
NAMED_REPEATS = 8
# One number for all repeats together.
STABILITIES = ("jaccard", "nogueira")


def name_cell(context: FigureContext, method: str) -> Markup:
    """Return the first column: a method with its line."""
    return tag("th", context.key(method), label(method), scope="row")


def measured(context: FigureContext, measure: str) -> Markup:
    """Return methods by data sets and sizes, the best of each column in bold."""
    study = context.study
    columns = [
        (dataset, k)
        for dataset in study.datasets
        for k in study.sizes
        if any(study.summary(dataset, method, k, measure) for method in study.methods)
        or any(study.missing(dataset, method, k)[0] != "not run" for method in study.methods)
    ]
    if not columns:
        return tag("p", "No numbers yet.", class_="empty")
    if len(columns) <= MOST_COLUMNS:
        return _wide(context, measure, columns)
    return join(
        *(
            tag("div", tag("h5", label(name)), _wide(context, measure, part))
            for name in dict.fromkeys(dataset for dataset, _ in columns)
            if (part := [column for column in columns if column[0] == name])
        )
    )  # fmt: skip


def _wide(context: FigureContext, measure: str, columns: list[tuple[str, int]]) -> Markup:
    study = context.study
    several = len({k for _, k in columns}) > 1
    found = {
        (method, *column): context.summary(column[0], method, column[1], measure)
        for method in study.methods
        for column in columns
    }
    counts = Counter(one.n for one in found.values() if one)
    usual = counts.most_common(1)[0][0] if counts else 0
    best = {
        column: _best(context, measure, [found[m, *column] for m in study.methods])
        for column in columns
    }
    if several:
        groups = Counter(dataset for dataset, _ in columns)
        top = [
            tag("th", label(name), colspan=width, scope="colgroup")
            for name, width in groups.items()
        ]
        heads = [
            join(tag("td"), *top),
            join(
                head("method", numeric=False),
                *(head(f"k = {k}") for _, k in columns),
            ),
        ]
    else:
        names = [head(name) for name, _ in columns]
        heads = [join(head("method", numeric=False), *names)]
    rows = [
        tag(
            "tr",
            name_cell(context, method),
            *(
                _value(context, method, column, found[method, *column], best[column], usual)
                for column in columns
            ),
        )
        for method in study.methods
    ]
    prints = _prints(context, measure, columns)
    rows += prints
    named = name_of(measure, percent=context.view.scale == "percent")
    which = context.view.statistic
    if which == "mean" and any(one.sd is not None for one in found.values() if one):
        which = "mean ± standard deviation"
    over = f"{which} over {study.trials(usual)}"
    if measure in STABILITIES:
        over = f"between {study.trials(2).partition(' ')[2]}"
    elif usual == 1 and len(counts) == 1:
        over = f"a single {'fold' if study.folds else 'repeat'}"
    k = "" if several else f", k = {columns[0][1]}"
    bold = "; best in bold" if any(one is not None for one in best.values()) else ""
    caption = (
        f"{capital(named)}{k}: {over}"
        f"{', unless n says otherwise' if len(counts) > 1 else ''}{bold}."
        f"{' Grey: printed in the paper, not measured here.' if prints else ''}"
    )
    where = f" on {columns[0][0]}" if len({dataset for dataset, _ in columns}) == 1 else ""
    return table(
        rows, *heads, caption=caption, kind="wide", name=f"{capital(named)}{k}{where}, by method"
    )


def _prints(context: FigureContext, measure: str, columns: list[tuple[str, int]]) -> list[Markup]:
    """Rows of what the paper prints of methods that were not run."""
    comparisons = [one for one in context.study.comparisons if one.measure == measure]
    methods = dict.fromkeys(one.method for one in comparisons)
    rows = []
    for method in methods:
        found = [context.published(dataset, method, k, measure) for dataset, k in columns]
        if method in context.study.methods or not any(found):
            continue
        cells = []
        for one in found:
            if one is None:
                cells.append(cell(DASH))
                continue
            spread = "" if one.sd is None else tag("small", f" ± {context.text(one.sd, 2)}")
            cells.append(cell(join(context.text(one.value), spread), one.value))
        name = tag("th", label(method), " ", tag("small", "not measured"), scope="row")
        rows.append(tag("tr", name, *cells, class_="unmeasured"))
    return rows


def _best(context: FigureContext, measure: str, column: list[Summary | None]) -> float | None:
    better = higher_is_better(measure)
    values = [value_of(one, context.view.statistic) for one in column if one]
    # What a method itself minimises differs from method to method.
    if better is None or measure in ("own", "n_iter") or len(values) < 2:
        return None
    return max(values) if better else min(values)


def _value(
    context: FigureContext,
    method: str,
    column: tuple[str, int],
    found: Summary | None,
    best: float | None,
    usual: int,
) -> Markup:
    dataset, k = column
    if found is None:
        word, reason = context.study.missing(dataset, method, k)
        return cell(gap(word, reason))
    value = value_of(found, context.view.statistic)
    # The same columns graded in another order of summation are as good.
    is_best = best is not None and isclose(value, best, rel_tol=1e-9)
    parts: list[object] = [tag("b", context.text(value)) if is_best else context.text(value)]
    if found.sd is not None and context.view.statistic == "mean":
        parts.append(tag("small", f" ± {context.text(found.sd, 2)}"))
    if found.n != usual:
        parts.append(tag("small", f" n = {found.n}", class_="count"))
    return cell(join(*parts), value)


def leaderboard(context: FigureContext, found: MethodRanking) -> Markup:
    """Return the leaderboard; accuracies in per cent, as papers give them."""
    accuracies = all(measure in CLASSIFIERS for measure in context.view.measures)
    rows = []
    for i, method in enumerate(found.methods):
        mean, seconds = found.means[i], found.seconds[i]
        shown = None if mean is None else mean * (100.0 if accuracies else 1.0)
        rows.append(
            tag(
                "tr",
                cell(i + 1, i + 1),
                name_cell(context, method),
                cell(f"{found.ranks[i]:.2f}", found.ranks[i]),
                cell(percent(shown) if accuracies else short(shown), shown),
                cell(short(found.wins[i], 3), found.wins[i]),
                cell(short(seconds, 3), seconds),
                cell(found.failed[i], found.failed[i]),
                cell(found.not_run[i], found.not_run[i]),
            )
        )
    percent_sign = ", %" if accuracies else ""
    several = "mean of the measures" if len(context.view.measures) > 1 else "mean"
    heads = join(
        head("place"), head("method", numeric=False), head("mean rank"),
        head(f"{several}{percent_sign}"), head("wins"), head("median time, s"), head("failures"),
        head("not run"),
    )  # fmt: skip
    caption = (
        f"{plural(found.places, 'comparison')} (data set × k × measure) on "
        f"{plural(found.blocks, 'data set')}. A tie shares a win; a method without a number shares "
        f"the last ranks of that comparison."
    )
    return table(rows, heads, caption=caption, kind="standings", name="Leaderboard")


def failure_table(context: FigureContext) -> Markup:
    """Return the cells that failed or passed their time limit, with their reasons."""
    groups: dict[tuple[str, str, tuple[int, ...], str, str], list[Failure]] = {}
    for one in context.study.failures:
        place = (one.dataset, one.method, one.sizes, one.status, one.reason)
        groups.setdefault(place, []).append(one)
    if not groups:
        return Markup()
    rows = []
    for (dataset, method, sizes, status, reason), cells in groups.items():
        repeats = ", ".join(str(one.repeat) for one in cells[:NAMED_REPEATS])
        more = f" and {len(cells) - NAMED_REPEATS} more" if len(cells) > NAMED_REPEATS else ""
        rows.append(
            tag(
                "tr",
                tag("td", label(dataset)),
                name_cell(context, method),
                cell(_span(sizes), sizes[0] if sizes else None),
                tag("td", gap(status.replace("_", " "))),
                cell(len(cells), len(cells), title=f"repeats {repeats}{more}"),
                tag("td", label(reason), class_="reason"),
            )
        )
    heads = join(
        head("data set", numeric=False), head("method", numeric=False), head("k"),
        head("end", numeric=False), head("repeats"), head("reason", numeric=False),
    )  # fmt: skip
    caption = f"{plural(len(context.study.failures), 'cell')} did not finish."
    return table(rows, heads, caption=caption, kind="troubles")


def _span(sizes: Sequence[int]) -> str:
    if not sizes:
        return DASH
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]}{DASH}{sizes[-1]} ({len(sizes)})"


def status_counts(context: FigureContext) -> Markup:
    """Return how the solves of each method ended."""
    study: Study = context.study
    counts: dict[str, Counter[str]] = {method: Counter() for method in study.methods}
    for one in study.cells:
        for result in one["results"]:
            counts[str(one["method"])][str(result.get("status") or "not said")] += 1
        if not one["results"]:
            counts[str(one["method"])]["no result"] += 1
    kinds = list(dict.fromkeys(kind for counter in counts.values() for kind in sorted(counter)))
    rows = [
        tag(
            "tr",
            name_cell(context, method),
            *(cell(counter[kind] or DASH, counter[kind] or None) for kind in kinds),
        )
        for method, counter in counts.items()
    ]
    heads = join(head("method", numeric=False), *(head(kind.replace("_", " ")) for kind in kinds))
    return table(rows, heads, caption="How the solves ended, by method.", kind="endings")


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
