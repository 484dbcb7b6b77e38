"""What every protocol does with a cell: load, draw the rows, select, time, grade."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.bench.cells import Cell, shares_sizes
from exactk.bench.recipe import Measure, Variant, method_class
from exactk.bench.worker import within
from exactk.choose.ridge import resolve_ridge
from exactk.datasets import Dataset, load
from exactk.evaluate import (
    fold_splits,
    redundancy,
    redundancy_paper,
    residual,
    select_sizes,
    share_split,
    sparsity_level,
)
from exactk.iterative.course import Step
from exactk.methods.base import Method
from exactk.problem import Problem
from exactk.result import Result
from exactk.solve import solve, solve_path

__all__ = ["Part", "Selection", "dataset_of", "draw", "select"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Floats of a trace are for a figure: what a plot cannot show is not kept.
TRACE_POINTS = 1000


@lru_cache(maxsize=1)
def dataset_of(name: str) -> Dataset:
    """Load a data set; the last one is kept, for the next cell is likely to want it too."""
    return load(name)


@dataclass(frozen=True)
class Part:
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
        From the raw rows to the columns: standardising, products and the solve.
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

    def record(self, part: Part, measure: Measure) -> dict[str, Any]:
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
            found["measures"]["redundancy_paper"] = redundancy_paper(part.X, support)
        inside = self.last.inside() if self.last is not None and self.last.inside else {}
        if measure.details:
            found["details"] = {
                name: [float(v) for v in inside[name]] for name in measure.details if name in inside
            }
        norms = next((inside[name] for name in measure.norms if name in inside), None)
        for tol in measure.sparsity if norms is not None else ():
            found["measures"][f"sparsity@{tol:g}"] = sparsity_level(norms, tol)
        return found


def draw(cell: Cell, dataset: Dataset) -> tuple[Indices, Indices]:
    """Return the training and test rows of a cell."""
    share, folds = cell.split.train, cell.split.folds
    if folds is not None:
        return fold_splits(dataset.y, folds, random_state=cell.seed)[cell.repeat % folds]
    assert share is not None, "a recipe that tests has one of the two"
    return share_split(dataset.y, share, random_state=cell.seed)


@contextmanager
def quiet() -> Iterator[None]:
    """Let no warning through: what it says is in the status of the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def select(
    part: Part,
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
    variant, measure = cell.variant, cell.measure
    cls = method_class(variant.method)
    given = dict(options)
    if "random_state" in cls.option_names():
        given.setdefault("random_state", cell.seed)
    if measure.one_start and "n_starts" in cls.option_names():
        given["n_starts"] = 1
    # Without a limit of its own the default search ends by itself; with one it uses all of it.
    limit = None if "effort" in cls.option_names() else time_limit
    # Those that do not look at the clock, or not often, are ended from outside.
    hard = None if time_limit is None else 2.0 * time_limit + 30.0
    looks = bool(measure.details or measure.sparsity)
    with quiet():
        start = time.perf_counter()
        gram: Any = "auto" if cls.uses_gram or variant.ridge == "cv" else "columns"
        problem = Problem.from_arrays(part.X, part.y, task=part.task, gram=gram)
        built = time.perf_counter() - start
        sizes = [k for k in sizes if k <= problem.n_usable]
        if not sizes:
            return [], 0.0
        if shares_sizes(variant):
            start = time.perf_counter()
            with within(hard):
                results = _together(problem, variant, sizes, cls(**given), limit)
            took = built + time.perf_counter() - start
            pairs = zip(sizes, results, strict=True)
            return [Selection(k, result, took, options) for k, result in pairs], took
        selections, total = [], built
        for k in sizes:
            steps: list[Step] = []

            def look(step: Step, steps: list[Step] = steps) -> None:
                steps[:] = [step]

            start = time.perf_counter()
            with within(hard):
                ready = problem.with_ridge(_ridge(variant, problem, k))
                result = solve(
                    ready, k, cls(**given), time_limit=limit, on_step=look if looks else None
                )
            took = time.perf_counter() - start
            last = steps[0] if steps else None
            selections.append(Selection(k, result, built + took, options, last))
            total += took
        return selections, total


def _together(
    problem: Problem, variant: Variant, sizes: Sequence[int], method: Method, limit: float | None
) -> list[Result]:
    """Every size from one run."""
    ready = problem.with_ridge(_ridge(variant, problem, max(sizes)))
    if not variant.path:
        return select_sizes(ready, sizes, method, time_limit=limit)
    path = solve_path(ready, max(sizes), method, time_limit=limit)
    return [path.at(k) for k in sizes]


def _ridge(variant: Variant, problem: Problem, k: int) -> float:
    return resolve_ridge(variant.ridge, problem, k)
