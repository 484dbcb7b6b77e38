"""What was measured, as tables for a person, rows for a spreadsheet, or JSON for a program."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from statistics import fmean
from typing import TYPE_CHECKING, Any

from exactk.utils.formatting import csv_text

if TYPE_CHECKING:
    from exactk.papers.experiments.page.study import Study
    from exactk.papers.experiments.summary import Comparison, Row

__all__ = ["render"]

Record = dict[str, Any]

# A table longer than this is shown as means over k.
LINES = 60
# A deviation smaller than this share of its mean is none.
ROUNDING = 1e-9


def render(records: Sequence[Record], style: str) -> str:
    """Return the whole output, line break at the end included.

    Parameters
    ----------
    records : sequence of dict
        Of one or several recipes.
    style : {"text", "csv", "json"}
    """
    from exactk.papers.experiments.summary import compare, failures, summarise

    rows = summarise(records)
    printed = compare(records, rows)
    if style == "csv":
        return _csv(rows, printed)
    if style == "json":
        content = {
            "rows": [asdict(row) for row in rows],
            "published": [_with_difference(one) for one in printed],
            "failures": [asdict(failure) for failure in failures(records)],
        }
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    if not records:
        return "no records yet\n"
    from exactk.papers.experiments.page.arrange import studies

    return "\n".join(_text(study, rows, printed) for study in studies(records))


def _with_difference(one: Comparison) -> dict[str, Any]:
    return asdict(one) | {
        "difference": one.difference,
        "within_deviation": one.within_deviation,
        "standard_errors": one.standard_errors,
    }


def _csv(rows: Iterable[Row], printed: Iterable[Comparison]) -> str:
    from exactk.papers.experiments.summary import Row

    beside = {(c.recipe, c.measure, c.dataset, c.k, c.method): c for c in printed}
    names = [field.name for field in fields(Row)]
    lines: list[list[Any]] = [[*names, "published", "published_sd", "within_deviation"]]
    for row in rows:
        one = beside.get((row.recipe, row.measure, row.dataset, row.k, row.method))
        # In the units of the row: papers print accuracies per cent.
        published = [
            None if value is None else value / row.unit
            for value in ((one.published, one.published_sd) if one else (None, None))
        ]
        within = one.within_deviation if one else None
        lines.append([*asdict(row).values(), *published, within])
    return csv_text(lines)


def _text(study: Study, rows: Sequence[Row], printed: Sequence[Comparison]) -> str:
    mine = [row for row in rows if row.recipe == study.name]
    beside = [one for one in printed if one.recipe == study.name]
    statuses = Counter(cell["status"] for cell in study.cells)
    counts = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in statuses.items())
    heading = f"{study.name}: {study.definition.get('title', '')}".rstrip(": ")
    if study.definition.get("small"):
        heading += ", small version"
    blocks = [f"{heading} ({counts or 'no cells'})"]
    if beside:
        blocks.append(_published(beside))
    views = study.views if study.definition.get("views") else []
    shown = [measure for view in views for measure in view.measures]
    known = dict.fromkeys(row.measure for row in mine)
    measures = [m for m in dict.fromkeys(shown) if m in known] or list(known)
    shown_rows = [row for row in mine if row.measure in measures]
    if shown_rows:
        blocks.append(_measured(shown_rows, measures))
    blocks += [_standings(study, view.measures) for view in views if view.kind == "ranks"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _published(printed: Sequence[Comparison]) -> str:
    """Set each printed figure beside the measured one."""
    names = ["measure", "data", "k", "method", "published", "measured", "difference"]
    table = [[*names, "within sd", "standard errors"]]
    table += [
        [
            one.measure,
            one.dataset,
            str(one.k),
            one.method,
            _figure(one.published, one.published_sd),
            _figure(one.measured, one.measured_sd) or "not measured",
            "" if one.difference is None else f"{one.difference:+.4g}",
            {None: "", True: "yes", False: "no"}[one.within_deviation],
            "" if one.standard_errors is None else f"{one.standard_errors:+.1f}",
        ]
        for one in printed
    ]
    return _aligned(table, left=4)


def _measured(rows: Sequence[Row], measures: Sequence[str]) -> str:
    """Give means over the repeats; where there are many sizes, over these as well."""
    pooled = len({(row.dataset, row.method, row.k) for row in rows}) > LINES
    found: dict[tuple[str, int], dict[str, dict[str, list[Row]]]] = {}
    for row in rows:
        place = found.setdefault((row.dataset, 0 if pooled else row.k), {})
        place.setdefault(row.method, {}).setdefault(row.measure, []).append(row)
    table = [["data", "k", "method", *measures, "n"]]
    for (dataset, k), by_method in found.items():
        for method, by_measure in by_method.items():
            figures = [_mean(by_measure.get(measure, [])) for measure in measures]
            repeats = max(row.n for some in by_measure.values() for row in some)
            table.append([dataset, "mean" if pooled else str(k), method, *figures, str(repeats)])
    return _aligned(table, left=3)


def _mean(rows: Sequence[Row]) -> str:
    """Write one mean with its deviation, or the mean of several."""
    if not rows:
        return ""
    first = rows[0]
    sd = first.sd * first.unit if len(rows) == 1 and first.sd is not None else None
    return _figure(fmean(row.mean * row.unit for row in rows), sd)


def _standings(study: Study, measures: Sequence[str]) -> str:
    """Give the methods by mean rank; a mean of accuracies is in per cent."""
    from exactk.papers.experiments.classifiers import CLASSIFIERS
    from exactk.papers.experiments.page.ranks import ranking

    found = ranking(study, measures)
    if found is None:
        return ""
    unit = 100.0 if all(measure in CLASSIFIERS for measure in measures) else 1.0
    table = [["method", "mean rank", "mean", "wins", "seconds", "failed", "not run"]]
    table += [
        [
            method,
            f"{found.ranks[i]:.2f}",
            _number(None if (mean := found.means[i]) is None else unit * mean),
            f"{found.wins[i]:.4g}",
            _number(found.seconds[i]),
            str(found.failed[i]),
            str(found.not_run[i]),
        ]
        for i, method in enumerate(found.methods)
    ]
    return _aligned(table, left=1)


def _figure(mean: float | None, sd: float | None) -> str:
    if mean is not None and sd is not None and abs(sd) < ROUNDING * abs(mean):
        sd = 0.0
    return _number(mean) + (f" ± {_number(sd)}" if sd is not None else "")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _aligned(table: Sequence[Sequence[str]], left: int) -> str:
    """Lay out columns, the first ones to the left and figures to the right."""
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left and not cell.isdigit() else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    )
