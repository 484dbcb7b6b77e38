"""The results of a store as tables: measured values, published values and mean ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from statistics import fmean
from typing import TYPE_CHECKING, Any

from exactk.papers.experiments.classifiers import CLASSIFIERS
from exactk.papers.experiments.page.ranks import ranking
from exactk.papers.experiments.summary import Comparison, Row, compare, failures, summarise
from exactk.utils.records_table import RecordsTable, TableResult

if TYPE_CHECKING:
    from exactk.papers.experiments.page.study import Study

__all__ = ["StoreResults"]

Record = dict[str, Any]

# A longer table shows means over k.
MOST_ROWS = 60
# A smaller share of the mean is a rounding error, and shown as a deviation of 0.
ROUNDING = 1e-9


class StoreResults(TableResult):
    """What a store has measured, with the values that the papers print.

    Parameters
    ----------
    records : sequence of dict
        Of one or several recipes, as from `exactk.papers.experiments.merge.gather`.

    Attributes
    ----------
    table : RecordsTable
        One row for each recipe, data set, method, k and measure. Published values are in the unit
        of the measured ones; papers print accuracies in percent.
    message : str
        A note on the run that measured them; empty by default.
    interrupted : bool
        Whether that run was interrupted.

    Examples
    --------
    >>> results = StoreResults([])
    >>> results
    no records yet
    >>> results.to_dict()
    {'rows': [], 'published': [], 'failures': []}
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.message = ""
        self.interrupted = False
        self.rows = summarise(records)
        self.published = compare(records, self.rows)
        self.table = row_table(self.rows, self.published)

    def to_dict(self) -> dict[str, Any]:
        """Return measured values, published values and failed cells as plain values."""
        return {
            "rows": [asdict(row) for row in self.rows],
            "published": [
                asdict(one)
                | {
                    "difference": one.difference,
                    "within_deviation": one.within_deviation,
                    "standard_errors": one.standard_errors,
                }
                for one in self.published
            ],
            "failures": [asdict(failure) for failure in failures(self.records)],
        }

    def __repr__(self) -> str:
        """Return the tables of each recipe: published values, means and mean ranks."""
        from exactk.papers.experiments.page.arrange import studies

        if not self.records:
            return "no records yet"
        return "\n\n".join("\n\n".join(self._blocks(study)) for study in studies(self.records))

    def _blocks(self, study: Study) -> list[str]:
        views = study.views if study.definition.get("views") else []
        tables = [
            comparison_table(one for one in self.published if one.recipe == study.name),
            mean_table(study, self.rows),
            *(rank_table(study, view.measures) for view in views if view.kind == "ranks"),
        ]
        return [title_of(study), *(table.to_text() for table in tables if table)]


def row_table(rows: Iterable[Row], comparisons: Iterable[Comparison]) -> RecordsTable:
    """Return one row for each measured value, with the published one beside it."""
    published = {(c.recipe, c.measure, c.dataset, c.k, c.method): c for c in comparisons}
    names = [field.name for field in fields(Row)]
    lines: list[list[Any]] = []
    for row in rows:
        one = published.get((row.recipe, row.measure, row.dataset, row.k, row.method))
        values = (one.published, one.published_sd) if one else (None, None)
        lines.append(
            [
                *asdict(row).values(),
                *(None if value is None else value / row.unit for value in values),
                one.within_deviation if one else None,
            ]
        )
    return RecordsTable([*names, "published", "published_sd", "within_deviation"], lines)


def title_of(study: Study) -> str:
    """Return the name and title of a recipe, and how many cells have which status."""
    statuses = Counter(cell["status"] for cell in study.cells)
    counts = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in statuses.items())
    title = f"{study.name}: {study.definition.get('title', '')}".rstrip(": ")
    small = ", small version" if study.small else ""
    return f"{title}{small} ({counts or 'no cells'})"


def comparison_table(comparisons: Iterable[Comparison]) -> RecordsTable:
    """Return one row for each value that a paper prints, with the measured value."""
    columns = [
        *("measure", "data", "k", "method", "published", "measured", "difference"),
        *("within sd", "standard errors"),
    ]
    return RecordsTable(
        columns,
        [
            (
                one.measure,
                one.dataset,
                one.k,
                one.method,
                _mean_and_sd(one.published, one.published_sd),
                _mean_and_sd(one.measured, one.measured_sd) or "not measured",
                "" if one.difference is None else f"{one.difference:+.4g}",
                {None: "", True: "yes", False: "no"}[one.within_deviation],
                "" if one.standard_errors is None else f"{one.standard_errors:+.1f}",
            )
            for one in comparisons
        ],
    )


def mean_table(study: Study, rows: Iterable[Row]) -> RecordsTable:
    """Return one row for each data set, k and method with the means of the measures it shows.

    Parameters
    ----------
    study : Study
        Its views say which measures; without views all are shown.
    rows : iterable of Row
        As from `summarise`; rows of other recipes are ignored.
    """
    rows = [row for row in rows if row.recipe == study.name]
    known = list(dict.fromkeys(row.measure for row in rows))
    views = study.views if study.definition.get("views") else []
    shown = dict.fromkeys(measure for view in views for measure in view.measures)
    measures = [measure for measure in shown if measure in known] or known
    rows = [row for row in rows if row.measure in measures]
    pooled = len({(row.dataset, row.method, row.k) for row in rows}) > MOST_ROWS
    found: dict[tuple[str, int, str], dict[str, list[Row]]] = {}
    for row in rows:
        place = found.setdefault((row.dataset, 0 if pooled else row.k, row.method), {})
        place.setdefault(row.measure, []).append(row)
    return RecordsTable(
        ["data", "k", "method", *measures, "n"],
        [
            (
                dataset,
                "mean" if pooled else k,
                method,
                *(_mean(by_measure.get(measure, [])) for measure in measures),
                max(row.n for some in by_measure.values() for row in some),
            )
            for (dataset, k, method), by_measure in found.items()
        ],
    )


def rank_table(study: Study, measures: Sequence[str]) -> RecordsTable | None:
    """Return one row for each method, best mean rank first; None if there is no result.

    The mean of accuracies is in percent.
    """
    found = ranking(study, measures)
    if found is None:
        return None
    unit = 100.0 if all(measure in CLASSIFIERS for measure in measures) else 1.0
    return RecordsTable(
        ["method", "mean rank", "mean", "wins", "seconds", "failed", "not run"],
        [
            (
                method,
                f"{found.ranks[i]:.2f}",
                _number(None if (mean := found.means[i]) is None else unit * mean),
                _number(found.wins[i]),
                _number(found.seconds[i]),
                found.failed[i],
                found.not_run[i],
            )
            for i, method in enumerate(found.methods)
        ],
    )


def _mean(rows: Sequence[Row]) -> str:
    """Return the mean with its deviation, or the mean of several rows."""
    if not rows:
        return ""
    first = rows[0]
    sd = first.sd * first.unit if len(rows) == 1 and first.sd is not None else None
    return _mean_and_sd(fmean(row.mean * row.unit for row in rows), sd)


def _mean_and_sd(mean: float | None, sd: float | None) -> str:
    if mean is not None and sd is not None and abs(sd) < ROUNDING * abs(mean):
        sd = 0.0
    return _number(mean) + (f" ± {_number(sd)}" if sd is not None else "")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
