"""The search by a loss that needs rows: for one size, for all, greedily, and of every set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb, inf

import numpy as np

from exactk.errors import InputError
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.search.find_best import best_path, good_supports
from exactk.search.loss_local_search import LossLocalSearch
from exactk.search.loss_pricing import LossTable, Support
from exactk.search.path import PATH_SHARE
from exactk.types import Floats
from exactk.utils.monitor import Monitor

__all__ = [
    "FITS_COST",
    "best_by_loss",
    "best_path_by_loss",
    "enumerate_by_loss",
    "greedy_by_loss",
    "requires_rows",
]


# Share of effort for the squared search that gives the first supports.
SEED_EFFORT = 0.25
# Subsets that are fitted side by side, and what a fit costs beside a closed form.
BATCH = 256
FITS_COST = 50
# Steps and tolerance of the fits of an enumeration.
ENUMERATED_STEPS, ENUMERATED = 600, 1e-9
# Eigenvalues below this share of the largest are those of columns that nearly depend on each other.
NEARLY = 1e-10


def requires_rows(problem: Problem) -> bool:
    """Whether a problem is searched here: by a loss that needs rows, column by column.

    Under rules about groups, quotas, costs or correlations `exactk.search.unit_search` searches
    by units, whatever the loss.
    """
    return not problem.loss.by_moments and (problem.rules is None or problem.rules.is_simple)


def best_by_loss(
    problem: Problem,
    k: int,
    effort: float,
    rng: np.random.Generator,
    monitor: Monitor,
    starts: Sequence[Sequence[int]] = (),
) -> Answer:
    """Search for the best k columns by the loss of a problem.

    Parameters
    ----------
    problem : Problem
        With rows in memory and rules that at most include and exclude columns.
    k, effort, rng, monitor, starts
        As in `exactk.search.find_best.best_support`.
    """
    table = LossTable(problem)
    search = LossLocalSearch(table, k, rng, monitor)
    if _is_trivial(search):
        return _only_choice(search)
    squared = problem.with_squared_loss
    seeds = good_supports(squared, k, 0.0, rng, monitor)[:1]
    try:
        if effort > 0:
            seeds += good_supports(squared, k, min(effort, 1.0) * SEED_EFFORT, rng, monitor)
    except KeyboardInterrupt:
        search.grow(search.fitted(_places(table, seeds[0])), k)
        return search.answer(Status.INTERRUPTED)
    starts = [seeds[0], *starts, *seeds[1:]]
    try:
        status = search.run([_places(table, start) for start in starts], effort)
    except KeyboardInterrupt:
        # Not one fit was made: what squared loss would choose is better than nothing.
        if len(seeds[0]) < k:
            raise
        return Answer(list(seeds[0]), Status.INTERRUPTED, 0)
    return search.answer(status)


def _places(table: LossTable, columns: Sequence[int]) -> list[int]:
    places: list[int] = np.searchsorted(table.columns, columns).tolist()
    return places


def _is_trivial(search: LossLocalSearch) -> bool:
    """Whether there is nothing to choose."""
    return search.k >= len(search.table) or search.k == len(search.table.fixed)


def _only_choice(search: LossLocalSearch) -> Answer:
    """All columns, or those that must be in."""
    table, k = search.table, search.k
    columns = table.columns if k >= len(table) else table.columns[list(table.fixed)]
    best = Status.OPTIMAL if table.problem.loss.convex else Status.CONVERGED
    status = best if len(columns) == k else Status.RANK_DEFICIENT
    theta = None if search.best is None else search.best.theta
    return Answer(columns.tolist(), status, 0, theta=theta)


def best_path_by_loss(
    problem: Problem, k_max: int, effort: float, rng: np.random.Generator, monitor: Monitor
) -> Iterator[Answer | None]:
    """Search every size, each from the size before and from the best by squared loss.

    So the loss never rises with the size.
    """
    table = LossTable(problem)
    squared = best_path(
        problem.with_squared_loss, k_max, min(effort, 1.0) * SEED_EFFORT, rng, monitor
    )
    before: Support | None = None
    ended = Status.CONVERGED
    for k, seed in enumerate(squared, start=1):
        if seed is None:
            yield None
            continue
        search = LossLocalSearch(table, k, rng, monitor)
        if _is_trivial(search):
            if before is not None and len(before.members) < k == len(table):
                search.grow(before, k)
            yield _only_choice(search)
            continue
        if seed.status == Status.INTERRUPTED:
            ended = Status.INTERRUPTED
        if before is not None:
            # However soon it ends: a size more is never worse.
            search.grow(before, k)
        if search.best is not None and ended != Status.INTERRUPTED and monitor.expired:
            ended = Status.TIME_LIMIT
            before = search.best
            yield search.answer(ended)
            continue
        starts = [_places(table, seed.support)]
        if search.best is not None:
            starts.append(list(search.best.members))
        if ended != Status.INTERRUPTED:
            ended = search.run(starts, effort * PATH_SHARE / k_max, grown=before is not None)
        elif search.best is None:
            search.fitted(starts[0])
        before = search.best
        yield search.answer(ended)


def greedy_by_loss(problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer | None]:
    """Forward selection: the best of the best priced additions, one after the other."""
    table = LossTable(problem)
    search = LossLocalSearch(table, len(table.fixed), np.random.default_rng(0), monitor)
    support = search.fitted(table.fixed)
    order, trace = [*table.fixed], [support.value]
    yield from [None] * min(len(order) - 1, k_max)
    for k in range(max(1, len(order)), k_max + 1):
        if k > len(order) and len(order) < len(table):
            search.k = k
            support = search.grow(support, k)
            order.append(next(p for p in support.members if p not in order))
            trace.append(support.value)
        monitor.report(k, k_max, support.value)
        status = Status.OPTIMAL if len(order) == len(table) else Status.CONVERGED
        if len(order) < k:
            status = Status.RANK_DEFICIENT
        yield Answer(table.columns[order].tolist(), status, k, tuple(trace), ordered=True)


def enumerate_by_loss(problem: Problem, k: int, most: int, monitor: Monitor) -> Answer:
    """Fit every set of k columns.

    Parameters
    ----------
    problem : Problem
        With rules that at most include and exclude columns.
    k : int
    most : int
        Refuse problems with more sets than this.
    monitor : Monitor
    """
    table = LossTable(problem)
    search = LossLocalSearch(table, k, np.random.default_rng(0), monitor)
    if _is_trivial(search):
        return _only_choice(search)
    free = [p for p in range(len(table)) if p not in table.fixed]
    left = k - len(table.fixed)
    count = comb(len(free), left)
    if count > most:
        raise InputError(
            f"exhaustive search would fit loss {problem.loss.name!r} on {count:,} subsets ({left} "
            f"of {len(free)} columns), more than {most:,}, which is max_subsets over "
            f"{FITS_COST:,}", parameter="max_subsets",
            hint="use method='exchange', a smaller k, or raise max_subsets",
        )  # fmt: skip
    status = Status.OPTIMAL if problem.loss.convex else Status.CONVERGED
    best: tuple[int, ...] = ()
    least, done = inf, 0
    doubts = _DependentSets(table, k)
    subsets = ([*table.fixed, *chosen] for chosen in combinations(free, left))
    try:
        while batch := list(islice(subsets, BATCH)):
            values = table.fits(batch, steps=ENUMERATED_STEPS, tol=ENUMERATED, ceiling=least).values
            at = int(np.argmin(values))
            if values[at] < least:
                best, least = tuple(batch[at]), float(values[at])
            near = doubts.of(batch)
            while near and not monitor.expired:
                members = tuple(batch[near.pop()])
                value = problem.objective(table.columns[list(members)])
                if value < least:
                    best, least = members, value
            done += len(batch)
            monitor.report(done, count, least)
            if near or (done < count and monitor.expired):
                status = Status.TIME_LIMIT
                break
    except KeyboardInterrupt:
        if not best:
            raise
        status = Status.INTERRUPTED
    return Answer(table.columns[list(best)].tolist(), status, done)


class _DependentSets:
    """Which sets depend on each other so nearly that only a fit of their own can price them.

    The fits of many sets solve normal equations; the one that is reported has orthogonal
    coordinates.
    """

    def __init__(self, table: LossTable, k: int) -> None:
        self._A: Floats | None = None
        if k < 2:
            return
        A = table.X @ table.X.T
        A.ravel()[:: len(A) + 1] += table.penalty
        root = 1.0 / np.sqrt(np.maximum(np.diagonal(A), np.finfo(float).tiny))
        A *= np.outer(root, root)
        values = np.linalg.eigvalsh(A)
        # The least eigenvalue of a part is never below that of the whole.
        if not values[0] > NEARLY * values[-1]:
            self._A = A

    def of(self, batch: Sequence[Sequence[int]]) -> list[int]:
        """Return the places of such sets."""
        if self._A is None:
            return []
        S = np.array(batch, dtype=np.intp)
        values = np.linalg.eigvalsh(self._A[S[:, :, None], S[:, None, :]])
        near: list[int] = np.flatnonzero(~(values[:, 0] > NEARLY * values[:, -1])).tolist()
        return near
