"""From a stream of iterates to an answer: limits, the clock, Ctrl-C and divergence in one place.

A method writes its mathematics as a generator of `Step`; nothing else in it counts, times or
guards. Whatever ends the stream, the last good support is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Protocol

import numpy as np
import numpy.typing as npt

from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.search.descent import grow
from exactk.search.native_state import make_state
from exactk.types import Indices
from exactk.utils.monitor import Monitor

__all__ = [
    "IterationLog",
    "LazyStarts",
    "Start",
    "Starts",
    "Step",
    "best_answer",
    "fill_support",
    "iterate",
]


# Merits closer than this share are the same.
SAME_END = 1e-10


@dataclass(frozen=True)
class Step:
    """One iteration.

    Attributes
    ----------
    support : ndarray of intp or list of int
        The columns that the iterate stands for, the method's first choice first or sorted; fewer
        than k where the iterate has fewer rows that are not zero.
    value : float
        The method's own objective.
    converged : bool
        Whether the method's stopping rule is met.
    details : callable or None
        Returns what else an onlooker may want to see of the iterate: named arrays with one entry
        a candidate column. It is called only if somebody looks.
    """

    support: Indices | Sequence[int]
    value: float
    converged: bool = False
    details: Callable[[], Mapping[str, npt.NDArray[np.float64]]] | None = None


@dataclass
class IterationLog:
    """The iterations from one start, and how they ended.

    Attributes
    ----------
    support : list of int
        That of the last good iterate; empty if there was none.
    status : Status
    trace : list of float
        The method's own objective of each good iterate.
    """

    support: list[int] = field(default_factory=list)
    status: Status = Status.MAX_ITER
    trace: list[float] = field(default_factory=list)

    @property
    def value(self) -> float:
        """The last good objective; infinite if there was none."""
        return self.trace[-1] if self.trace else inf


def last_value(log: IterationLog) -> float:
    """What decides between starts where a method says nothing else."""
    return log.value


@dataclass(frozen=True)
class Start:
    """The iterations from one start, not begun yet.

    Attributes
    ----------
    steps : iterator of Step
    selection_score : callable
        From its log to the figure that decides between starts, the lower the better.
    """

    steps: Iterator[Step]
    selection_score: Callable[[IterationLog], float] = last_value


class Starts(Protocol):
    """Starts whose number is known: a list of them, or `LazyStarts`."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Start]: ...


class LazyStarts:
    """Starts that are made one after the other, when their turn comes.

    Parameters
    ----------
    count : int
    make : callable
        Makes the next start.
    """

    def __init__(self, count: int, make: Callable[[], Start]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        """Return how many there will be."""
        return self._count

    def __iter__(self) -> Iterator[Start]:
        """Make one start after the other."""
        return (self._make() for _ in range(self._count))


def iterate(
    steps: Iterator[Step], max_iter: int, monitor: Monitor, *, show: bool = True
) -> IterationLog:
    """Take iterations until one converges, fails, or something else ends them.

    Parameters
    ----------
    steps : iterator of Step
    max_iter : int
        Iterations to take at most.
    monitor : Monitor
    show : bool
        Whether to report progress.

    Returns
    -------
    IterationLog

    Examples
    --------
    >>> values = iter([3.0, 2.0, float("nan")])
    >>> log = iterate((Step([0], value) for value in values), 9, Monitor())
    >>> str(log.status), log.trace
    ('failed', [3.0, 2.0])
    """
    log = IterationLog()
    try:
        # Where an iterate overflows, the value of the step tells; NumPy need not.
        with np.errstate(all="ignore"):
            for step in steps:
                if not isfinite(step.value):
                    log.status = Status.FAILED
                    break
                log.support = [int(p) for p in step.support]
                log.trace.append(float(step.value))
                monitor.show_step(step)
                if show:
                    monitor.report(len(log.trace), max_iter, step.value)
                if step.converged:
                    log.status = Status.CONVERGED
                    break
                if len(log.trace) >= max_iter:
                    log.status = Status.MAX_ITER
                    break
                if monitor.expired:
                    log.status = Status.TIME_LIMIT
                    break
    except np.linalg.LinAlgError:
        log.status = Status.FAILED
    except KeyboardInterrupt:
        if not log.trace:
            raise
        log.status = Status.INTERRUPTED
    return log


def best_answer(
    problem: Problem, k: int, starts: Starts, max_iter: int, monitor: Monitor
) -> Answer:
    """Follow every start, keep the best, and fill its support up to k.

    Returns
    -------
    Answer
        With the trace and status of the one that was kept; if time or the user ended the
        starts before all were made, the status says so.
    """
    best, best_rank = IterationLog(status=Status.FAILED), (True, inf)
    ended: Status | None = None
    single = len(starts) == 1
    try:
        for number, start in enumerate(starts, start=1):
            log = iterate(start.steps, max_iter, monitor, show=single)
            if log.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
                ended = log.status
            elif number < len(starts) and monitor.expired:
                ended = Status.TIME_LIMIT
            # Its merit may take a while to find; nothing is compared with the first, and what
            # was cut short is not worth it.
            alone = single or not log.trace or (ended is not None and not best.trace)
            merit = log.value if alone else start.selection_score(log)
            # A start that diverged loses to any that did not. Of those that come to the same end
            # the first is kept, whatever rounding says.
            rank = (log.status == Status.FAILED, merit + SAME_END * abs(merit))
            if not best.trace or rank < best_rank:
                rank = (rank[0], merit)
                best, best_rank = log, rank
            if not single:
                monitor.report(number, len(starts), best_rank[1])
            if ended is not None:
                break
    except KeyboardInterrupt:
        if not best.trace:
            raise
        ended = Status.INTERRUPTED
    support = fill_support(problem, best.support, k)
    return Answer(support, ended or best.status, len(best.trace), tuple(best.trace))


def fill_support(problem: Problem, support: Sequence[int], k: int) -> list[int]:
    """Fill a support up to k columns, each the best addition to those before it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> fill_support(problem, [0], 2)
    [0, 2]
    """
    if len(support) >= k:
        return list(support)[:k]
    state = make_state(problem, k)
    for column in support:
        if state.D[column] > state.floor[column]:
            state.add(column)
    kept = state.size
    grow(state, kept + k - len(support))
    return [*support, *state.support[kept:]]
