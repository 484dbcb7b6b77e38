"""What the measurements of the papers' methods share: data sets, quiet solves, single steps."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import exactk
from benchmarks import data
from exactk.methods import registry

Record = dict[str, Any]
Records = dict[str, list[Record]]

K = 10


@dataclass
class Scope:
    """How much is asked for, and the data sets that were not there."""

    quick: bool = False
    sizes: tuple[int, ...] = (K,)
    missing: set[str] = field(default_factory=set)

    def sets(self, names: Sequence[str], quick: int = 1) -> Iterator[data.Dataset]:
        """The data sets that can be loaded; in a quick run the first few."""
        here, missing = data.available(names)
        self.missing.update(missing)
        return data.load_all(here[:quick] if self.quick else here)


def run_parts(
    parts: Mapping[str, Callable[[Scope], Records]], only: Sequence[str], scope: Scope
) -> tuple[Records, dict[str, float]]:
    """Measure some parts, in their order: their records, and the seconds that each took."""
    records: Records = {}
    took: dict[str, float] = {}
    for name in (name for name in parts if name in only):
        start = time.perf_counter()
        records |= parts[name](scope)
        took[name] = time.perf_counter() - start
        print(f"{name}: {took[name]:.1f} s", file=sys.stderr, flush=True)
    if scope.missing:
        print(f"left out, no file: {', '.join(sorted(scope.missing))} (set {data.FOLDER_VARIABLE})")
    return records, took


def build(dataset: data.Dataset) -> exactk.Problem:
    """The problem of a data set, ridge 0."""
    return exactk.Problem.from_arrays(dataset.X, dataset.y, task=dataset.task)


def solve(problem: exactk.Problem, k: int, method: str, **options: Any) -> exactk.Result:
    """Solve without the warnings about iteration limits, which the status tells, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return exactk.solve(problem, k, method, **options)


@dataclass
class Course:
    """A method's iterations one by one.

    Attributes
    ----------
    setup : float
        Seconds before the first iteration.
    seconds : list of float
        Seconds of each iteration.
    seen : list of ndarray
        What was looked at after each.
    settled : int or None
        The iteration after which the stopping rule was met, if it was.
    """

    setup: float
    seconds: list[float] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    settled: int | None = None


def course(
    problem: exactk.Problem, k: int, method: str, most: int, look: str = "", **options: Any
) -> Course:
    """Take iterations of a method's first start until it converges.

    Parameters
    ----------
    look : str
        Name of the variable of the method's generator to read after each iteration: what a
        method does not tell in its steps is still its own, and not a copy of its code.
    """
    chosen: Any = registry.create(method, **options)
    start = time.perf_counter()
    steps: Any = next(iter(chosen.starts(problem, k, chosen.prepare(problem)))).steps
    found = Course(time.perf_counter() - start)
    while len(found.seconds) < most and found.settled is None:
        start = time.perf_counter()
        step = next(steps)
        found.seconds.append(time.perf_counter() - start)
        if look:
            found.seen.append(np.array(steps.gi_frame.f_locals[look]))
        if step.converged:
            found.settled = len(found.seconds)
    return found
