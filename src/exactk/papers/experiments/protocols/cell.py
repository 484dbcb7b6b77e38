"""What every protocol does with a cell: load, draw the rows, select, time, grade."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.methods.base import Method
from exactk.methods.iteration import Step
from exactk.model_selection.ridge import find_ridge
from exactk.papers.datasets import Dataset, load
from exactk.papers.experiments.cells import Cell, shares_sizes
from exactk.papers.experiments.measures import redundancy, residual
from exactk.papers.experiments.pool import limit_time
from exactk.papers.experiments.recipe import Measure, MethodSpec, method_class
from exactk.papers.experiments.several_sizes import select_sizes
from exactk.papers.experiments.splits import fold_splits, share_split
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.solver import solve, solve_path
from exactk.types import Floats, Indices

__all__ = [
    "Selection",
    "TrainingData",
    "dataset_of",
    "draw",
    "ready_options",
    "select",
    "soft_limit",
]


# Floats of a trace are for a figure: what a plot cannot show is not kept.
TRACE_POINTS = 1000


@lru_cache(maxsize=1)
def dataset_of(name: str) -> Dataset:
    """Load a data set; the last one is kept, for the next cell is likely to want it too."""
    return load(name)


@dataclass(frozen=True)
class TrainingData:
    """The rows that a method sees."""

    X: Floats
    y: npt.NDArray[Any]
    task: Any


@dataclass(frozen=True)
class Selection:
    """What a method chose at one size, and what it took.

    Attributes
    ----------
    k : int
    result : Result
    seconds : float
        From the raw rows to the columns: standardising, products, the ridge and the solve.
    options : mapping
        The parameters it ran with.
    last : Step or None
        The last iteration, where the method iterates and somebody looks.
    """

    k: int
    result: Result
    seconds: float
    options: Mapping[str, Any]
    last: Step | None = field(default=None, repr=False)

    def record(self, part: TrainingData, measure: Measure) -> dict[str, Any]:
        """Return what every protocol tells about a size."""
        result = self.result
        support = [int(p) for p in result.support]
        found: dict[str, Any] = {
            "k": self.k,
            "status": str(result.status),
            "n_iter": result.n_iter,
            "seconds": self.seconds,
            "support": support,
            "objective": residual(part.X, part.y, support, part.task),
            "own": result.trace[-1] if result.trace else None,
            "measures": {},
        }
        if measure.trace:
            found["trace"] = list(result.trace[:TRACE_POINTS])
        if measure.redundancy:
            found["measures"]["redundancy"] = redundancy(part.X, support)
        inside = self.last.details() if self.last is not None and self.last.details else {}
        if measure.details:
            found["details"] = {
                name: [float(v) for v in inside[name]] for name in measure.details if name in inside
            }
        norms = next((inside[name] for name in measure.norms if name in inside), None)
        if norms is not None:
            for tol in measure.sparsity:
                found["measures"][f"sparsity@{tol:g}"] = int((norms > tol).sum())
        return found


def draw(cell: Cell, dataset: Dataset) -> tuple[Indices, Indices]:
    """Return the training and test rows of a cell."""
    share, folds = cell.split.train, cell.split.folds
    if folds is not None:
        split = fold_splits(dataset.y, folds, random_state=cell.rows_seed, task=dataset.task)
        return split[cell.repeat % folds]
    assert share is not None, "a recipe that tests has one of the two"
    return share_split(dataset.y, share, random_state=cell.rows_seed, task=dataset.task)


@contextmanager
def quiet() -> Iterator[None]:
    """Let no warning through: what it says is in the status of the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def select(
    part: TrainingData,
    cell: Cell,
    sizes: Sequence[int],
    options: Mapping[str, Any],
    time_limit: float | None,
) -> tuple[list[Selection], float]:
    """Run the method of a cell with these options at some sizes, sharing what sizes share.

    Parameters
    ----------
    part : Part
    cell : Cell
    sizes : sequence of int
        Those above the number of columns that are not constant are left out.
    options : mapping
        Parameters of the method; its random state comes from the cell where it is not among them.
    time_limit : float or None
        Seconds for one solve.

    Returns
    -------
    selections : list of Selection
    seconds : float
        Of all solves together.
    """
    variant = cell.variant
    cls = method_class(variant.method)
    method = cls(**ready_options(cell, options))
    limit = soft_limit(cell, time_limit)
    # Those that do not look at the clock, or not often, are ended from outside.
    hard = None if time_limit is None else 2.0 * time_limit + 30.0
    with quiet():
        start = time.perf_counter()
        gram: Any = "auto" if cls.uses_gram or variant.ridge == "cv" else "columns"
        problem = Problem.from_arrays(part.X, part.y, task=part.task, gram=gram)
        built = time.perf_counter() - start
        sizes = sorted(k for k in sizes if k <= problem.n_usable)
        if not sizes:
            return [], 0.0
        if not shares_sizes(variant):
            separate = [_solve_size(problem, cell, k, method, limit, hard) for k in sizes]
            return [
                Selection(k, result, built + took, options, last)
                for k, (result, took, last) in zip(sizes, separate, strict=True)
            ], built + sum(took for _, took, _ in separate)
        with limit_time(hard):
            results = _solve_path(problem, variant, sizes, method, limit)
    # What a size takes is what the run takes until it has that size.
    until = built + np.cumsum([result.seconds for result in results])
    found = zip(sizes, results, until.tolist(), strict=True)
    return [Selection(k, result, took, options) for k, result, took in found], float(until[-1])


def ready_options(cell: Cell, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a cell's method with what the repeat decides: seed and starts."""
    names = method_class(cell.variant.method).option_names()
    given = dict(options)
    if "random_state" in names:
        given.setdefault("random_state", cell.seed)
    if cell.measure.one_start and "n_starts" in names:
        given["n_starts"] = 1
    return given


def soft_limit(cell: Cell, time_limit: float | None) -> float | None:
    """Return the limit that a method is told.

    A search with an effort ends by itself; told a limit, it would use all of it.
    """
    effort = "effort" in method_class(cell.variant.method).option_names()
    return None if effort else time_limit


def _solve_size(
    problem: Problem, cell: Cell, k: int, method: Method, limit: float | None, hard: float | None
) -> tuple[Result, float, Step | None]:
    """One size by itself: the result, the solver's seconds, the last iteration if it is wanted."""
    last: Step | None = None

    def look(step: Step) -> None:
        nonlocal last
        last = step

    looks = bool(cell.measure.details or cell.measure.sparsity)
    with limit_time(hard):
        start = time.perf_counter()
        ready = problem.with_ridge(_ridge(cell.variant, problem, k))
        choosing = time.perf_counter() - start
        result = solve(ready, k, method, time_limit=limit, callback=look if looks else None)
    return result, choosing + result.seconds, last


def _solve_path(
    problem: Problem, variant: MethodSpec, sizes: Sequence[int], method: Method, limit: float | None
) -> list[Result]:
    """Every size from one run; their seconds add up to its time."""
    ready = problem.with_ridge(_ridge(variant, problem, max(sizes)))
    if not variant.path:
        return select_sizes(ready, sizes, method, time_limit=limit)
    path = solve_path(ready, max(sizes), method, time_limit=limit)
    ends = [0, *sizes]
    return [
        replace(path.at(k), seconds=sum(path.at(j).seconds for j in range(before + 1, k + 1)))
        for before, k in pairwise(ends)
    ]


def _ridge(variant: MethodSpec, problem: Problem, k: int) -> float:
    return find_ridge(variant.ridge, problem, k)
