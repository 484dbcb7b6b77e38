"""What a store says about one recipe, arranged for tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from exactk.papers.experiments.recipe import ALL_FEATURES
from exactk.papers.experiments.summary import (
    OF_RESULT,
    Comparison,
    Failure,
    Row,
    compare,
    failures,
    summarise,
)
from exactk.report.numbers import finite, plural

__all__ = ["FigureView", "Published", "Study", "Summary"]

Record = Mapping[str, Any]

# A deviation below this share of its mean is that of rounding.
NOISE = 1e-9


@dataclass(frozen=True)
class Summary:
    """A measure of one method at one size on one data set, over its repeats, in the units shown.

    Attributes
    ----------
    n : int
        Repeats that gave a number.
    mean, low, high : float
    sd : float or None
        With n − 1; None for a single repeat.
    """

    n: int
    mean: float
    low: float
    high: float
    sd: float | None

    @classmethod
    def of(cls, row: Row) -> Summary:
        """Take what counts from a row of the summary."""
        # Below rounding a deviation says nothing.
        sd = 0.0 if row.sd is not None and row.sd <= NOISE * abs(row.mean) else row.sd
        return cls(row.n, row.mean, row.lowest, row.highest, sd)

    def scaled(self, factor: float) -> Summary:
        """Return the same in other units."""
        sd = None if self.sd is None else self.sd * factor
        return Summary(self.n, self.mean * factor, self.low * factor, self.high * factor, sd)


@dataclass(frozen=True)
class Published:
    """A number that a paper prints, with its deviation if it states one."""

    value: float
    sd: float | None = None


@dataclass(frozen=True)
class FigureView:
    """A table or figure that the recipe asks for."""

    kind: str
    measures: tuple[str, ...]
    title: str = ""
    scale: str = "linear"
    x: str = "k"
    statistic: str = "mean"
    caption: str = ""

    @property
    def factor(self) -> float:
        """What a measured number is multiplied by to be in the units of the paper."""
        return 100.0 if self.scale == "percent" else 1.0


@dataclass(frozen=True)
class Study:
    """One recipe and its cells.

    Attributes
    ----------
    name : str
    definition : mapping
        The recipe as it was run; empty if the store does not hold it.
    cells : sequence of mapping
    """

    name: str
    definition: Mapping[str, Any]
    cells: Sequence[Record]

    @property
    def title(self) -> str:
        """What to call it in headings."""
        title = str(self.definition.get("title") or self.name)
        return f"{title} (small version)" if self.small else title

    @property
    def small(self) -> bool:
        """Whether it is the small version of the recipe, of ``--quick``."""
        return bool(self.definition.get("small"))

    @cached_property
    def requested_datasets(self) -> list[str]:
        """Names in the order of the recipe, then those that the store alone knows."""
        asked = [str(name) for name in self.definition.get("datasets") or ()]
        return _unique([*asked, *(str(cell["dataset"]) for cell in self.cells)])

    @cached_property
    def requested_methods(self) -> list[str]:
        """Labels in the order of the recipe, then those that the store alone knows."""
        asked = [str(entry.get("label", "")) for entry in self.definition.get("methods") or ()]
        return _unique([*asked, *(str(cell["method"]) for cell in self.cells)])

    @cached_property
    def datasets(self) -> list[str]:
        """Those of `requested_datasets` that have a cell, finished or not."""
        have = {str(cell["dataset"]) for cell in self.cells}
        return [name for name in self.requested_datasets if name in have]

    @cached_property
    def methods(self) -> list[str]:
        """Those of `requested_methods` that have a cell, finished or not."""
        have = {str(cell["method"]) for cell in self.cells}
        return [name for name in self.requested_methods if name in have]

    @property
    def folds(self) -> int:
        """Folds of a repeat; 0 where rows are not split into folds."""
        return int((self.definition.get("split") or {}).get("folds") or 0)

    def trials(self, count: int) -> str:
        """Say over what a mean of so many numbers is taken: repeats, or folds of them."""
        if not self.folds:
            return plural(count, "repeat")
        several, rest = divmod(count, self.folds)
        if several > 1 and not rest:
            return f"{several} × {self.folds} folds"
        return plural(count, "fold")

    @cached_property
    def selection_methods(self) -> list[str]:
        """The methods that select: all of `methods` but the baseline of all features."""
        entries = self.definition.get("methods") or ()
        whole = {str(e.get("label", "")) for e in entries if e.get("method") == ALL_FEATURES}
        return [method for method in self.methods if method not in whole]

    @cached_property
    def sizes(self) -> list[int]:
        """Every k that has a result or was tried."""
        tried = [k for cell in self.cells for k in cell.get("sizes") or ()]
        return sorted({*tried, *(k for _, k, _ in self._results)})

    @cached_property
    def measures(self) -> list[str]:
        """Names of all that was measured, the standard ones last."""
        named = _unique(
            name for _, _, result in self._results for name in result.get("measures") or ()
        )
        plain = [
            name
            for name in OF_RESULT
            if any(finite(result.get(name)) is not None for _, _, result in self._results)
        ]
        return [*named, *plain]

    @cached_property
    def classifiers(self) -> list[str]:
        """Accuracies that were measured."""
        asked = [
            str(name) for name in (self.definition.get("measure") or {}).get("classifiers") or ()
        ]
        return [name for name in asked if name in self.measures]

    @cached_property
    def views(self) -> list[FigureView]:
        """What the recipe asks for; without a recipe, one table a measure."""
        asked = self.definition.get("views")
        if not asked:
            return [FigureView("table", (name,)) for name in self.measures]
        return [_view(entry, self.classifiers or self.measures[:1]) for entry in asked]

    @cached_property
    def options(self) -> dict[str, dict[str, Any]]:
        """Fixed options of each label."""
        found: dict[str, dict[str, Any]] = {}
        for entry in self.definition.get("methods") or ():
            found[str(entry.get("label", ""))] = dict(entry.get("options") or {})
        for cell in self.cells:
            found.setdefault(str(cell["method"]), dict(cell.get("options") or {}))
        return found

    @cached_property
    def families(self) -> dict[str, str]:
        """Registered name of each label."""
        return {str(cell["method"]): str(cell.get("name", cell["method"])) for cell in self.cells}

    @cached_property
    def failures(self) -> list[Failure]:
        """Cells that failed or passed their time limit."""
        return failures(self.cells)

    @cached_property
    def _results(self) -> list[tuple[Record, int, Mapping[str, Any]]]:
        return [
            (cell, int(result["k"]), result)
            for cell in self.cells
            for result in cell.get("results") or ()
            if result.get("k") is not None
        ]

    @cached_property
    def _rows(self) -> dict[tuple[str, str, int, str], Row]:
        rows = summarise(self.cells)
        return {(row.dataset, row.method, row.k, row.measure): row for row in rows}

    def summary(self, dataset: str, method: str, k: int, measure: str) -> Summary | None:
        """Return a measure over the repeats, or None where there is no number."""
        row = self._rows.get((dataset, method, k, measure))
        return Summary.of(row) if row and finite(row.mean) is not None else None

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """What papers print beside what was measured, for data sets and sizes that were run."""
        if not self.definition.get("published"):
            return []
        record = {"type": "recipe", "name": self.name, "definition": self.definition}
        found = compare([record], self._rows.values())
        return [one for one in found if one.dataset in self.datasets and one.k in self.sizes]

    def results(self, dataset: str, method: str, k: int) -> list[Mapping[str, Any]]:
        """Return the results of all repeats, in their order."""
        found = self._by_place.get((dataset, method, k), [])
        return [result for _, result in sorted(found, key=lambda pair: pair[0])]

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, int], list[tuple[int, Mapping[str, Any]]]]:
        found: dict[tuple[str, str, int], list[tuple[int, Mapping[str, Any]]]] = {}
        for cell, k, result in self._results:
            place = (str(cell["dataset"]), str(cell["method"]), k)
            found.setdefault(place, []).append((int(cell["repeat"]), result))
        return found

    def missing(self, dataset: str, method: str, k: int) -> tuple[str, str]:
        """Say in a word, and in a sentence, why there is no number here."""
        ends = [
            t for t in self._failures_of.get((dataset, method), ()) if k in t.sizes or not t.sizes
        ]
        if ends:
            words = {"time_limit": "time limit", "failed": "failed"}
            return words.get(ends[0].status, ends[0].status), ends[0].reason
        diverged = [r for r in self.results(dataset, method, k) if r.get("status") == "failed"]
        if diverged:
            return "failed", "the iterates diverged"
        if self.results(dataset, method, k):
            return "no number", "the measure was not taken, or was not finite"
        return "not run", "the store has no such cell"

    @cached_property
    def _failures_of(self) -> dict[tuple[str, str], list[Failure]]:
        found: dict[tuple[str, str], list[Failure]] = {}
        for trouble in self.failures:
            found.setdefault((trouble.dataset, trouble.method), []).append(trouble)
        return found

    def published(self, dataset: str, method: str, k: int, measure: str) -> Published | None:
        """Return what the paper prints here, in its units, or None."""
        table = self.definition.get("published") or {}
        for step in (measure, dataset, str(k), method):
            table = table.get(step) if isinstance(table, Mapping) else None
        pair = table if isinstance(table, (list, tuple)) else [table]
        value = finite(pair[0]) if pair else None
        if value is None:
            return None
        return Published(value, finite(pair[1]) if len(pair) > 1 else None)

    def published_sizes(self, dataset: str, measure: str) -> list[int]:
        """Return every k for which the paper prints something."""
        table = ((self.definition.get("published") or {}).get(measure) or {}).get(dataset) or {}
        return sorted(int(k) for k in table if str(k).isdigit())


def _view(entry: Mapping[str, Any], default: Sequence[str]) -> FigureView:
    measure = entry.get("measure") or default
    measures = (measure,) if isinstance(measure, str) else tuple(str(name) for name in measure)
    return FigureView(
        kind=str(entry.get("kind", "table")),
        measures=measures,
        title=str(entry.get("title") or ""),
        scale=str(entry.get("scale") or "linear"),
        x=str(entry.get("x") or "k"),
        statistic=str(entry.get("statistic") or "mean"),
        caption=str(entry.get("caption") or ""),
    )


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
