"""From records to figures: means over repeats, stability, and what the papers print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from exactk.papers.experiments.classifiers import CLASSIFIERS
from exactk.papers.experiments.measures import jaccard, nogueira

__all__ = [
    "OF_RESULT",
    "Comparison",
    "Failure",
    "Row",
    "compare",
    "definitions",
    "failures",
    "summarise",
]

Record = Mapping[str, Any]

# What a result carries beside its measures.
OF_RESULT = ("objective", "own", "seconds", "n_iter")


@dataclass(frozen=True)
class Row:
    """One measure of one method at one k on one data set, over the repeats.

    Attributes
    ----------
    recipe, dataset, method : str
    k : int
    measure : str
    n : int
        Repeats that have it.
    mean, lowest, highest : float
    sd : float or None
        None with a single repeat.
    """

    recipe: str
    dataset: str
    method: str
    k: int
    measure: str
    n: int
    mean: float
    sd: float | None
    lowest: float
    highest: float

    @property
    def unit(self) -> float:
        """What to multiply by for the units of the papers: accuracies are per cent there."""
        return 100.0 if self.measure in CLASSIFIERS else 1.0

    def value(self, statistic: str = "mean") -> float:
        """Return the mean, "min" or "max" over the repeats."""
        return {"mean": self.mean, "min": self.lowest, "max": self.highest}[statistic]


@dataclass(frozen=True)
class Comparison:
    """A printed figure beside the measured one, both in the units of the paper.

    Attributes
    ----------
    recipe, measure, dataset, method : str
    k : int
    published : float
    published_sd : float or None
    measured, measured_sd : float or None
        None where nothing was measured.
    n : int
        Repeats measured.
    repeats : int
        Repeats that the recipe has, as the paper had.
    """

    recipe: str
    measure: str
    dataset: str
    k: int
    method: str
    published: float
    published_sd: float | None
    measured: float | None
    measured_sd: float | None
    n: int
    repeats: int

    @property
    def difference(self) -> float | None:
        """Measured less published."""
        return None if self.measured is None else self.measured - self.published

    @property
    def within_deviation(self) -> bool | None:
        """Whether the measured mean lies within the printed standard deviation of the mean."""
        if self.difference is None or self.published_sd is None:
            return None
        return abs(self.difference) <= self.published_sd

    @property
    def standard_errors(self) -> float | None:
        """The difference in standard errors of a difference of two means.

        None where a side states no deviation, as a single repeat does not.
        """
        if self.difference is None or self.published_sd is None or self.measured_sd is None:
            return None
        error = sqrt(self.published_sd**2 / self.repeats + self.measured_sd**2 / self.n)
        return self.difference / error if error > 0 else None


@dataclass(frozen=True)
class Failure:
    """A cell without results, or one that a time limit cut short."""

    recipe: str
    dataset: str
    method: str
    sizes: tuple[int, ...]
    repeat: int
    status: str
    reason: str


def definitions(records: Iterable[Record]) -> dict[str, Record]:
    """Return the definition of each recipe, the last one written."""
    return {r["name"]: r["definition"] for r in records if r.get("type") == "recipe"}


def measured(records: Iterable[Record]) -> list[Record]:
    """Return the cells, each once: of a cell that was run again the last record counts."""
    return list({r["key"]: r for r in records if r.get("type") == "cell"}.values())


def failures(records: Iterable[Record]) -> list[Failure]:
    """Return the cells that failed or met a time limit."""
    return [
        Failure(
            r["recipe"], r["dataset"], r["method"], tuple(r["sizes"]), r["repeat"], r["status"],
            r["reason"] or "no reason was recorded",
        )
        for r in measured(records)
        if r["status"] != "done"
    ]  # fmt: skip


def summarise(records: Iterable[Record]) -> list[Row]:
    """Return means over the repeats, data sets and methods in the order of their recipe.

    Examples
    --------
    >>> result = {"k": 2, "objective": 3.0, "support": [0, 1], "measures": {"1nn": 0.5}}
    >>> cell = {
    ...     "type": "cell",
    ...     "key": "a",
    ...     "recipe": "r",
    ...     "dataset": "iris",
    ...     "features": 4,
    ...     "method": "m",
    ...     "status": "done",
    ...     "results": [result],
    ... }
    >>> [(row.measure, row.n, row.mean) for row in summarise([cell])]
    [('objective', 1, 3.0), ('1nn', 1, 0.5)]
    """
    values: dict[tuple[str, str, str, int, str], list[float]] = {}
    supports: dict[tuple[str, str, str, int], list[Sequence[int]]] = {}
    # By recipe, since one may have been run before the data of that name were replaced.
    features: dict[tuple[str, str], int] = {}
    records = list(records)
    for record in measured(records):
        features[record["recipe"], record["dataset"]] = record.get("features") or 0
        for result in record["results"]:
            where = (record["recipe"], record["dataset"], record["method"], result["k"])
            figures = {name: result.get(name) for name in OF_RESULT} | result.get("measures", {})
            for measure, value in figures.items():
                if value is not None:
                    values.setdefault((*where, measure), []).append(float(value))
            if result.get("support"):
                supports.setdefault(where, []).append(result["support"])
    for where, sets in supports.items():
        if len(sets) > 1:
            values[(*where, "jaccard")] = [jaccard(sets)]
            if len(sets[0]) < features[where[:2]]:
                values[(*where, "nogueira")] = [nogueira(sets, features[where[:2]])]
    return [
        Row(
            *key,
            n=len(found),
            mean=float(np.mean(found)),
            sd=float(np.std(found, ddof=1)) if len(found) > 1 else None,
            lowest=min(found),
            highest=max(found),
        )
        for key, found in sorted(values.items(), key=_by_recipe(records))
    ]


def _by_recipe(records: Sequence[Record]) -> Callable[[tuple[Any, ...]], tuple[int, ...]]:
    """Return what sorts figures as their recipes do, and not as their cells happened to end."""
    places: dict[tuple[str, str, str], int] = {}
    for name, recipe in definitions(records).items():
        for dataset in recipe.get("datasets", ()):
            places.setdefault((name, "dataset", dataset), len(places))
        for variant in recipe.get("methods", ()):
            places.setdefault((name, "method", variant.get("label", "")), len(places))
    for record in measured(records):
        for kind in ("dataset", "method"):
            places.setdefault((record["recipe"], kind, record[kind]), len(places))
    recipes = {name: number for number, name in enumerate(dict.fromkeys(key[0] for key in places))}

    def place(entry: tuple[Any, ...]) -> tuple[int, ...]:
        recipe, dataset, method, k, _ = entry[0]
        return (
            recipes[recipe],
            places[recipe, "dataset", dataset],
            k,
            places[recipe, "method", method],
        )

    return place


def compare(records: Iterable[Record], rows: Iterable[Row] | None = None) -> list[Comparison]:
    """Return every printed figure of the recipes beside the measured one.

    Those of data sets and sizes that were not asked for are left out; methods that were not run are
    there without a measured figure, to be set beside those that were.

    Parameters
    ----------
    records : iterable of mapping
    rows : iterable of Row or None
        What `summarise` gives for them, where it is at hand.
    """
    records = list(records)
    rows = summarise(records) if rows is None else rows
    by_place = {(r.recipe, r.measure, r.dataset, r.k, r.method): r for r in rows}
    found = []
    for name, recipe in definitions(records).items():
        for measure, by_set in recipe.get("published", {}).items():
            for dataset, by_size in by_set.items():
                for k, by_label in by_size.items():
                    if dataset not in recipe["datasets"] or int(k) not in recipe["sizes"]:
                        continue
                    for label, printed in by_label.items():
                        row = by_place.get((name, measure, dataset, int(k), label))
                        found.append(
                            _beside(name, measure, dataset, int(k), label, printed, row, recipe)
                        )
    return found


def _beside(
    name: str,
    measure: str,
    dataset: str,
    k: int,
    label: str,
    printed: float | Sequence[float],
    row: Row | None,
    recipe: Record,
) -> Comparison:
    value, sd = printed if isinstance(printed, Sequence) else (printed, None)
    unit = row.unit if row else 1.0
    return Comparison(
        recipe=name,
        measure=measure,
        dataset=dataset,
        k=k,
        method=label,
        published=float(value),
        published_sd=None if sd is None else float(sd),
        measured=row.mean * unit if row else None,
        measured_sd=row.sd * unit if row and row.sd is not None else None,
        n=row.n if row else 0,
        repeats=recipe.get("published_repeats") or recipe["repeats"],
    )
