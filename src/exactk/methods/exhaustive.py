"""Enumeration of all subsets: the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, islice
from math import comb
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactk.checks import Check, Number
from exactk.errors import InputError
from exactk.linalg import DEPENDENT, SINGULAR
from exactk.methods.base import Method
from exactk.monitor import Monitor
from exactk.problem import Problem
from exactk.result import Answer, Status
from exactk.search.state import TIE

__all__ = ["Exhaustive"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Prefixes priced at once; more only costs memory.
BATCH = 2048


class Exhaustive(Method):
    """Every subset of k columns, by definition the best.

    Subsets of k − 1 columns are enumerated and the last column is added in closed form to all
    prefixes of a batch at once, so the work is that of C(d, k) gains, not of C(d, k) fits. Of
    subsets that tie the first in lexicographic order is given. Where columns depend on each other
    so nearly that float64 cannot price them, the status is ``converged`` and not ``optimal``.

    Parameters
    ----------
    max_subsets : int
        Refuse problems with more subsets than this.

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

    def __init__(self, max_subsets: int = 50_000_000) -> None:
        self.max_subsets = max_subsets

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        columns = problem.candidates
        if k > len(columns):
            return Answer(columns.tolist(), Status.RANK_DEFICIENT, 0)
        count = comb(len(columns), k)
        if count > self.max_subsets:
            raise InputError(
                f"exhaustive search over {count:,} subsets ({k} of {len(columns)} columns) is "
                f"more than max_subsets={self.max_subsets:,}; use method='exchange', a smaller "
                f"k, or raise max_subsets"
            )
        if 8 * len(columns) ** 2 > problem.memory_limit:
            raise InputError(
                f"exhaustive search needs the whole Gram matrix of {len(columns)} columns, which "
                f"is more than memory_limit={problem.memory_limit:,}; use method='exchange'"
            )
        # Columns of unit size: what counts as dependent must not hang on their units.
        root = 1.0 / np.sqrt(problem.diagonal[columns])
        A = problem.gram_rows(columns)[:, columns] * np.outer(root, root)
        B = problem.cross[:, columns].T * root[:, None]
        best_explained, done = -np.inf, 0
        best: tuple[int, ...] = ()
        slack = TIE * problem.total
        status = Status.OPTIMAL
        try:
            for prefixes in _batches(combinations(range(len(columns) - 1), k - 1), k - 1):
                explained, last, doubtful = _complete(A, B, prefixes, slack)
                if doubtful:
                    # Columns so nearly dependent that the Gram matrix cannot price them.
                    status = Status.CONVERGED
                top = float(explained.max())
                if top > best_explained + slack:
                    row = int(np.argmax(explained >= top - slack))
                    best_explained = float(explained[row])
                    best = (*prefixes[row].tolist(), int(last[row]))
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


def _batches(prefixes: Iterator[tuple[int, ...]], width: int) -> Iterator[Indices]:
    while batch := list(islice(prefixes, BATCH)):
        yield np.array(batch, dtype=np.intp).reshape(len(batch), width)


def _complete(
    A: Floats, B: Floats, prefixes: Indices, slack: float
) -> tuple[Floats, Indices, bool]:
    """Explained sum of squares of each prefix with its best later column, and that column.

    The last is whether some column was left out although it may not depend on the prefix.
    """
    m, d = len(prefixes), len(A)
    diagonal = np.diagonal(A)
    if prefixes.shape[1] == 0:
        explained, C, D = np.zeros(m), np.broadcast_to(B, (m, *B.shape)), diagonal[None]
    else:
        block = A[prefixes[:, :, None], prefixes[:, None, :]]
        values, vectors = np.linalg.eigh(block)
        # Directions that the columns share are counted once.
        keep = values > DEPENDENT * values[:, -1:]
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
    doubtful = later & (D <= DEPENDENT * diagonal) & (D > SINGULAR * diagonal)
    return explained + gains[np.arange(m), last], last, bool(doubtful.any())
