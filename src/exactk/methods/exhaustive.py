"""Enumeration of all subsets: the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, combinations, islice
from math import comb, inf
from typing import ClassVar

import numpy as np

from exactk.errors import InputError
from exactk.methods.base import Method
from exactk.params import Check, Number
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.search.infeasibility import find_feasible
from exactk.search.loss_search import FITS_COST, enumerate_by_loss, requires_rows
from exactk.search.state import TIE
from exactk.search.units import Units
from exactk.types import Floats, Indices
from exactk.utils.linalg import DEPENDENT
from exactk.utils.monitor import Monitor

__all__ = ["Exhaustive"]


# Prefixes priced at once; more only costs memory.
BATCH = 2048
# Sets of columns that nearly depend on each other that are fitted from the rows, at most.
MOST_FITTED = 20_000


class Exhaustive(Method):
    """Every subset of k columns, by definition the best.

    Subsets of k − 1 columns are enumerated and the last column is added in closed form to all
    prefixes of a batch at once, so the work is that of C(d, k) gains, not of C(d, k) fits. Of
    subsets that tie the first in lexicographic order is given. Columns that depend on each other
    so nearly that their products cannot price them are fitted from the rows; where these are too
    many, or rows are too many or not at hand, the status is ``converged`` and not ``optimal``.
    With another loss than the squared error every subset is fitted, which costs far more: the limit
    is then a fiftieth of `max_subsets`. Where the loss is not convex the status is ``converged``.

    Parameters
    ----------
    max_subsets : int
        Refuse problems with more subsets than this.

    Notes
    -----
    Cost: O(C(d, k)·(k + c)) on the Gram matrix, which takes O(n·d·(d + c)) once; `max_subsets`
    refuses what would not end. Memory: d² numbers and one batch of subsets.

    Guaranteed: the lowest objective of all sets of k columns, where the status is ``optimal``.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> result = exactk.solve(problem, 2, method="exhaustive")
    >>> result.support, str(result.status)
    (array([1, 3]), 'optimal')
    """

    checks: ClassVar[Mapping[str, Check]] = {"max_subsets": Number("[1, inf)")}

    takes_rules: ClassVar[bool] = True
    takes_losses: ClassVar[bool] = True

    def __init__(self, max_subsets: int = 50_000_000) -> None:
        self.max_subsets = max_subsets

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        if requires_rows(problem):
            return enumerate_by_loss(problem, k, int(self.max_subsets // FITS_COST), monitor)
        if problem.rules is not None and (problem.rules.include or not problem.rules.is_simple):
            return self._run_units(problem, k, monitor)
        columns = problem.candidates
        if k > len(columns):
            return Answer(columns.tolist(), Status.RANK_DEFICIENT, 0)
        count = comb(len(columns), k)
        if count > self.max_subsets:
            raise InputError(
                f"exhaustive search over {count:,} subsets ({k} of {len(columns)} columns) is "
                f"more than max_subsets={self.max_subsets:,}", parameter="max_subsets",
                hint="use method='exchange', a smaller k, or raise max_subsets",
            )  # fmt: skip
        if 8 * len(columns) ** 2 > problem.memory_limit:
            raise InputError(
                f"exhaustive search needs the whole Gram matrix of {len(columns)} columns, which "
                f"is more than memory_limit={problem.memory_limit:,}", parameter="memory_limit",
                hint="use method='exchange'",
            )  # fmt: skip
        # Columns of unit size: what counts as dependent must not hang on their units.
        root = 1.0 / np.sqrt(problem.diagonal[columns])
        A = problem.gram_rows(columns)[:, columns] * np.outer(root, root)
        B = problem.cross[:, columns].T * root[:, None]
        best_explained, done = -np.inf, 0
        best: tuple[int, ...] = ()
        slack = TIE * problem.total
        status = Status.OPTIMAL
        # How many sets may still be fitted from the rows.
        left = MOST_FITTED if problem.reads_rows(k) else 0
        try:
            for prefixes in _batches(combinations(range(len(columns) - 1), k - 1), k - 1):
                explained, last, doubtful = _complete(A, B, prefixes, slack)
                top = float(explained.max())
                if top > best_explained + slack:
                    row = int(np.argmax(explained >= top - slack))
                    best_explained = float(explained[row])
                    best = (*prefixes[row].tolist(), int(last[row]))
                for row, column in doubtful[: max(0, left)]:
                    if monitor.expired:
                        break
                    chosen = (*prefixes[row].tolist(), int(column))
                    value = problem.total - problem.objective(columns[list(chosen)])
                    if value > best_explained + slack:
                        best, best_explained = chosen, value
                left -= len(doubtful)
                if left < 0:
                    status = Status.CONVERGED
                done += len(prefixes)
                monitor.report(done, comb(len(columns) - 1, k - 1), problem.total - best_explained)
                if monitor.expired:
                    status = Status.TIME_LIMIT
                    break
        except KeyboardInterrupt:
            if not best:
                raise
            status = Status.INTERRUPTED
        return Answer([int(columns[j]) for j in best], status, done)

    def _run_units(self, problem: Problem, k: int, monitor: Monitor) -> Answer:
        """Fit every set of columns and groups that keeps the rules, one by one."""
        units = Units(problem)
        settled = find_feasible(units, k)
        assert settled is not None  # `solve` has seen to it that the rules can be kept
        feasible = settled[0]
        free = [u for u in np.flatnonzero(units.selectable).tolist() if u not in units.included]
        left = k - int(units.weights[units.included].sum())
        least = int(units.weights[free].min(initial=1))
        sizes = range(left // max(1, int(units.weights[free].max(initial=1))), left // least + 1)
        count = sum(comb(len(free), size) for size in sizes)
        most = self.max_subsets / (1 if problem.loss.by_moments else FITS_COST)
        if count > most:
            raise InputError(
                f"exhaustive search over {count:,} sets of {len(free)} columns and groups is more "
                f"than max_subsets={self.max_subsets:,} allows", parameter="max_subsets",
                hint="use method='exchange', a smaller k, or raise max_subsets",
            )  # fmt: skip
        best: list[int] = []
        least_objective, done = inf, 0
        status = Status.OPTIMAL if problem.loss.convex else Status.CONVERGED
        slack = TIE * problem.objective([])
        try:
            for chosen in chain.from_iterable(combinations(free, size) for size in sizes):
                done += 1
                if done % BATCH == 0:
                    monitor.report(done, count, least_objective)
                    if best and monitor.expired:
                        status = Status.TIME_LIMIT
                        break
                members = [*units.included, *chosen]
                if feasible.keeps(members):
                    support = units.columns_of(members)
                    objective = problem.objective(support)
                    if objective < least_objective - slack:
                        best, least_objective = support, objective
        except KeyboardInterrupt:
            if not best:
                raise
            status = Status.INTERRUPTED
        return Answer(best, status, done)


def _batches(prefixes: Iterator[tuple[int, ...]], width: int) -> Iterator[Indices]:
    while batch := list(islice(prefixes, BATCH)):
        yield np.array(batch, dtype=np.intp).reshape(len(batch), width)


def _complete(
    A: Floats, B: Floats, prefixes: Indices, slack: float
) -> tuple[Floats, Indices, Indices]:
    """Explained sum of squares of each prefix with its best later column, and that column.

    Last the places (prefix, column) of sets that depend on each other so nearly that the Gram
    matrix cannot price them.
    """
    m, d = len(prefixes), len(A)
    diagonal = np.diagonal(A)
    near = np.zeros(m, dtype=bool)
    if prefixes.shape[1] == 0:
        explained, C, D = np.zeros(m), np.broadcast_to(B, (m, *B.shape)), diagonal[None]
    else:
        block = A[prefixes[:, :, None], prefixes[:, None, :]]
        values, vectors = np.linalg.eigh(block)
        # Directions that the columns share are counted once.
        keep = values > DEPENDENT * values[:, -1:]
        near = np.logical_not(keep.all(axis=1))
        root = np.divide(1.0, np.sqrt(np.abs(values)), out=np.zeros_like(values), where=keep)
        whiten = np.swapaxes(vectors * root[:, None, :], 1, 2)
        Q = whiten @ A[prefixes]
        QB = whiten @ B[prefixes]
        explained = np.einsum("mij,mij->m", QB, QB)
        C = B[None] - np.swapaxes(Q, 1, 2) @ QB
        D = diagonal[None] - np.einsum("mkj,mkj->mj", Q, Q)
    C2 = np.einsum("mjc,mjc->mj", C, C)
    gains = np.divide(C2, D, out=np.zeros_like(C2), where=D > DEPENDENT * diagonal)
    later = np.arange(d)[None] > (prefixes[:, -1:] if prefixes.shape[1] else -1)
    gains = np.where(later, gains, -np.inf)
    last = np.argmax(gains >= gains.max(axis=1, keepdims=True) - slack, axis=1)
    doubtful = np.argwhere(later & (near[:, None] | (D <= DEPENDENT * diagonal)))
    return explained + gains[np.arange(m), last], last, doubtful
