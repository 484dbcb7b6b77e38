"""CD-LSR: coordinate descent over the members of the support, coefficients held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, ClassVar

import numpy as np

from exactk.methods.base import IterativeMethod, generator, initial_supports
from exactk.methods.iteration import LazyStarts, Start, Starts, Step
from exactk.papers.methods.standard_table import column_unit, random_support
from exactk.params import Anything, Check, Integer, Number, Seed
from exactk.problem.problem import Problem
from exactk.types import Indices

__all__ = ["CDLSR"]


# The published code looks at changes only after this many iterations, and at this many of them.
FIRST_ITERATIONS = 4
QUIET_CHANGES = 3


class CDLSR(IterativeMethod):
    """Coordinate descent for ‖HY − HXW‖² with ‖W‖₂,₀ = k, from random supports.

    W = S·V with a selection matrix S (d × k, column i the unit vector of ξ_i) and coefficients V
    (k × c). Each iteration solves V = (SᵀAS)⁻¹SᵀB (eq. 12), then goes through the slots and, with
    V held and U = VVᵀ, moves slot i to the column p outside the others that minimises (eq. 16)

        2·Σ_{j≠i} A_{p,ξ_j} U_{ji} + A_pp U_ii − 2·B_p·V_i,

    one product of k Gram columns a slot. H (n × n) is never formed, and the whole A (d × d) only
    once it costs less than the columns that are asked for. The objective never rises. It stops,
    as the published code does, after more than four iterations when three relative changes in a
    row are at most `tol`.

    Parameters
    ----------
    n_starts : int
        Random supports to start from; the lowest objective is kept. The paper takes 40.
    init : array-like of int, or sequence of such, or None
        Supports to start from instead, in slot order; `n_starts` then has no effect.
    epsilon : float
        Added to the diagonal of SᵀAS, as the published code does, for columns of unit standard
        deviation.
    max_iter : int
        Iterations from one start at most.
    tol : float
        Relative change of the objective that counts as none.
    random_state : int, Generator, RandomState or None
        Seed of the starts; None is a fixed seed.

    Notes
    -----
    Cost: O(d·k·(k + c)) an iteration of one start, beside the Gram columns that it asks for, O(n·d)
    each; some five to ten iterations a start. Memory: d numbers for each Gram column read, or d².

    Guaranteed: exactly k columns; from each start the objective never rises. Not the global
    optimum, nor that no swap improves it.

    A ridge of the problem is part of A, so that eq. 4 becomes the objective of `exactk.solve`.
    A step keeps V: a column can replace another only if it fits the coefficients of the old one,
    down to its sign, so that with few starts the answer can change when a column is negated.
    `exchange` refits every swap, at the same cost, and is better nearly everywhere. In eq. 16 as
    printed, e_ii depends on p too. Ties go to the lowest index (published code: the highest).

    References
    ----------
    L. Xu, R. Wang, F. Nie, X. Li, "Efficient top-k feature selection using coordinate descent
    method", AAAI 2023.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="cdlsr").support
    array([1, 3])
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "n_starts": Integer(1),
        "init": Anything("a list of k columns, or several such lists, or None"),
        "epsilon": Number("[0, inf)"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_starts: int = 40,
        init: object = None,
        epsilon: float = 1e-7,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: object = None,
    ) -> None:
        self.n_starts = n_starts
        self.init = init
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def check_init(self, problem: Problem, k: int) -> None:  # noqa: D102
        # Where there is something to choose, `starts` does it.
        if len(problem.candidates) <= k:
            initial_supports(self.init, problem, k)

    def starts(self, problem: Problem, k: int, prepared: Any) -> Starts:  # noqa: D102
        if self.init is not None:
            supports = initial_supports(self.init, problem, k)
            return [Start(self._iterations(problem, support)) for support in supports]
        rng = generator(self.random_state)

        def make() -> Start:
            return Start(self._iterations(problem, random_support(problem, k, rng)))

        return LazyStarts(self.n_starts, make)

    def _iterations(self, problem: Problem, xi: Indices) -> Iterator[Step]:
        xi = xi.copy()
        B, k = problem.cross, len(xi)
        A_S = problem.gram_rows(xi)
        barred = np.flatnonzero(problem.diagonal == 0)
        jitter = self.epsilon * column_unit(problem) ** 2 * np.eye(k)
        A_SS, B_S = A_S[:, xi], B[:, xi].T
        value, quiet, t = inf, 0, 0
        while True:
            t += 1
            V = np.asarray(np.linalg.solve(A_SS + jitter, B_S), dtype=np.float64)
            U = V @ V.T
            # Eq. 16 for all slots and columns; a slot that moves changes those after it.
            own = np.diagonal(U).copy()
            F = 2.0 * ((U - np.diag(own)) @ A_S - V @ B)
            F += np.outer(own, problem.diagonal)
            F[:, barred] = inf
            for i in range(k):
                row, before = F[i], xi[i]
                here = row[before]
                row[xi] = inf
                row[before] = here
                p = int(row.argmin())
                if p != before:
                    column = problem.gram_rows([p])[0]
                    F[i + 1 :] += np.outer(2.0 * U[i + 1 :, i], column - A_S[i])
                    xi[i], A_S[i] = p, column
            A_SS, B_S, last = A_S[:, xi], B[:, xi].T, value
            # ‖HY − HX_S V‖² + ridge·‖V‖² at these coefficients, not refitted.
            value = problem.total - float((V * (2.0 * B_S - A_SS @ V)).sum())
            same = last < inf and abs(last - value) <= self.tol * abs(last)
            quiet = quiet + 1 if same else 0
            done = t > FIRST_ITERATIONS and quiet >= QUIET_CHANGES
            yield Step(xi.copy(), value, done)
