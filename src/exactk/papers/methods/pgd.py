"""PGD: a gradient step, then the k largest rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, sqrt
from typing import ClassVar

import numpy as np

from exactk.data.gram import WholeGram
from exactk.errors import InputError
from exactk.methods.base import IterativeMethod, generator
from exactk.methods.iteration import LazyStarts, Start, Starts, Step
from exactk.papers.methods.standard_table import (
    column_unit,
    random_matrix,
    standard_table,
    validate_init,
)
from exactk.params import Anything, Check, Integer, Number, Seed
from exactk.problem.problem import Problem
from exactk.types import Floats
from exactk.utils.linalg import largest, largest_eigenvalue, row_norms, spectral_norm

__all__ = ["PGD"]


class PGD(IterativeMethod):
    """Projected gradient for ‖HY − HXW‖² with ‖W‖₂,₀ = k: W ← k largest rows of W − 2η(AW − B).

    With η ≤ 1/(2‖A‖₂), which is the default, the objective never rises. W has k rows, so that a
    step needs k Gram columns and O(dkc). It stops when the relative change of the objective is at
    most `tol`.

    Parameters
    ----------
    eta : float or None
        Step length η; None is 1/(2‖A‖₂). Larger steps can be better, or diverge (status
        ``failed``).
    n_starts : int
        The first start is W⁰ = 0, whose first step ranks the columns one by one; the others are
        random. The lowest objective is kept.
    init : array-like of shape (n_features, n_outputs), "random" or None
        W⁰ to start from instead, for standardised columns; `n_starts` then has no effect. With
        "random" every start is, also the first: for experiments, zero being the better one.
    max_iter : int
        Iterations from one start at most.
    tol : float
        Relative change of the objective that counts as none.
    random_state : int, Generator, RandomState or None
        Seed of the starts; None is a fixed seed.

    Notes
    -----
    Cost: O(d·k·c) an iteration, beside Gram columns of members that are new, O(n·d) each, and the
    largest eigenvalue of A once. Memory: d numbers for each Gram column read, or d².

    Guaranteed: exactly k columns; with the default `eta` the objective never rises. What is found
    is a fixed point of the step, not an optimum.

    A ridge of the problem is part of A. What is found is a fixed point of the step, which every
    good support is, and many bad ones: `exchange` is better.

    References
    ----------
    T. Pang, F. Nie, J. Han, X. Li, "Efficient feature selection via l2,0-norm constrained sparse
    regression", IEEE Trans. Knowl. Data Eng. 31(5), 2019.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="pgd").support
    array([2, 3])
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "eta": Number("(0, inf)", none="1/(2‖A‖₂)"),
        "n_starts": Integer(1),
        "init": Anything("a matrix W⁰, features × outputs, 'random', or None"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
        "random_state": Seed(),
    }

    def __init__(
        self,
        eta: float | None = None,
        n_starts: int = 1,
        init: object = None,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: object = None,
    ) -> None:
        self.eta = eta
        self.n_starts = n_starts
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def check_init(self, problem: Problem, k: int) -> None:  # noqa: D102
        if self.init is not None and not self._random_first:
            validate_init(self.init, problem)

    @property
    def _random_first(self) -> bool:
        return isinstance(self.init, str) and self.init == "random"

    def prepare(self, problem: Problem) -> float:  # noqa: D102
        return 0.5 / _largest_eigenvalue(problem) if self.eta is None else float(self.eta)

    def starts(self, problem: Problem, k: int, prepared: float) -> Starts:  # noqa: D102
        if self.init is not None and not self._random_first:
            W0 = validate_init(self.init, problem)
            return [Start(self._iterations(problem, k, prepared, W0))]
        rng = generator(self.random_state)
        # As large as the coefficients of k columns that share the target between them.
        size = sqrt(problem.total / (k * float(problem.diagonal[problem.candidates].mean())))
        zero = np.zeros((len(problem.candidates), problem.n_outputs))
        first = iter([] if self._random_first else [zero])

        def make() -> Start:
            W0 = next(first, None)
            W0 = random_matrix(problem, rng, size) if W0 is None else W0
            return Start(self._iterations(problem, k, prepared, W0))

        return LazyStarts(self.n_starts, make)

    def _iterations(self, problem: Problem, k: int, eta: float, W0: Floats) -> Iterator[Step]:
        columns = problem.candidates
        B = problem.cross[:, columns].T
        S = largest(row_norms(W0), k)
        V, A_S, value = W0[S], problem.gram_rows(columns[S])[:, columns], inf
        while True:
            W = (2.0 * eta) * (B - A_S.T @ V)
            W[S] += V
            chosen = largest(row_norms(W), k)
            if not np.array_equal(chosen, S):
                S, A_S = chosen, problem.gram_rows(columns[chosen])[:, columns]
            V, last = W[S], value
            value = problem.total - float((V * (2.0 * B[S] - A_S[:, S] @ V)).sum())
            settled = last < inf and abs(last - value) <= self.tol * abs(last)
            yield Step(columns[S], value, settled)


def _largest_eigenvalue(problem: Problem) -> float:
    """‖A‖₂ of the candidates, from the Gram matrix or, where it is not at hand, the rows."""
    columns = problem.candidates
    if problem.rows is not None and not isinstance(problem.gram, WholeGram):
        if 8 * problem.n_rows * len(columns) > problem.memory_limit:
            raise InputError(
                "pgd reads the whole table to find its step length, and that is more than "
                f"memory_limit={problem.memory_limit:,}", parameter="memory_limit",
                hint="give eta, or raise memory_limit in Problem.from_arrays",
            )  # fmt: skip
        size = spectral_norm(standard_table(problem).X) * column_unit(problem)
        return size**2 + problem.penalty
    A = problem.gram.whole()[np.ix_(columns, columns)]
    return largest_eigenvalue(A) + problem.penalty
