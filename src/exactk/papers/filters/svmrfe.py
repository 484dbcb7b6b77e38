"""SVM-RFE: columns of the least weight in a linear support vector machine go, round by round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from exactk.papers.filters.base import Filter, Ranking, by_score, class_table
from exactk.params import Check, Integer, Number
from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = ["SVMRFE"]


# Newton's method needs ten or twenty steps; rounding could in principle keep it from its end.
MOST_STEPS = 200
# Halvings of the interval in which the best step lies.
HALVINGS = 50
# Costs beyond these leave no digit of the penalty beside the loss, or of the loss at all: systems
# would be singular, or overflow.
LEAST_COST, MOST_COST = 1e-100, 1e10


@dataclass(frozen=True)
class _Step(Check):
    """A share of the columns, or a number of them."""

    def __str__(self) -> str:
        """Return what to say in an error."""
        return "a number in (0, 1) or a whole number of at least 1"

    def allows(self, value: Any) -> bool:
        return Integer(1).allows(value) or Number("(0, 1)").allows(value)


class SVMRFE(Filter):
    """Fit a linear support vector machine, drop the columns of least Σ_c w_cj², and fit again.

    The machine is that of scikit-learn's `LinearSVC`, on columns standardised with n − 1, one class
    against the rest: ½‖w‖² + ½b² + C·Σ_i max(0, 1 − y_i(wᵀx_i + b))², each row times its weight.
    Every round drops `step` columns, as scikit-learn's `RFE` does; the elimination goes on to the
    last column, and the columns of one round are ordered by their weights. The first k in that
    order are what `RFE` keeps for that k, so one run serves every k. Scores are −1 for the last
    column that is left, −2 for that before it, and so on.

    Time up, or Ctrl-C, ends it within a round: what is left is then ordered by the weights of the
    last whole round, and the status says so.

    Parameters
    ----------
    step : int or float
        Columns that each round drops; below 1, their share of all columns, at least one. The
        paper drops single columns, or chunks where there are many.
    C : float
        Weight of the loss.

    Notes
    -----
    Cost: a round has c machines with some ten or twenty systems each, O(n·m·min(n, m)) a system
    with m columns left; ten rounds by default, d with ``step=1``. Memory: the table and min(n, d)²
    numbers.

    Guaranteed: the columns that scikit-learn's `RFE` keeps with that machine, solved to the last
    digits. Nothing of the whole set.

    The squared hinge loss replaces the paper's hinge: its minimum is unique, and neither rows nor
    columns in another order change what is dropped. It is found to the last digits by Newton's
    method, some ten or twenty systems in the smaller of n and the columns left; liblinear, behind
    `LinearSVC`, is slow where columns outnumber rows and many digits are wanted. `RFE` is not
    called, for it cannot be stopped on the way. With the default step there are ten or eleven
    rounds, with ``step=1`` as many as columns. The ridge of the problem takes no part.

    References
    ----------
    I. Guyon, J. Weston, S. Barnhill, V. Vapnik, "Gene selection for cancer classification using
    support vector machines", Machine Learning 46, 2002.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> result = exactk.solve(problem, 2, method="svmrfe")
    >>> result.support, result.scores
    (array([2, 3]), array([-4., -3., -1., -2.]))
    """

    checks: ClassVar[Mapping[str, Check]] = {"step": _Step(), "C": Number("(0, inf)")}

    def __init__(self, step: float = 0.1, C: float = 1.0) -> None:
        self.step = step
        self.C = C

    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:  # noqa: D102
        table = class_table(problem)
        m = table.X.shape[1]
        drop = int(max(1, self.step * m)) if self.step < 1 else int(self.step)
        left, gone = np.arange(m), np.zeros(0, dtype=np.intp)
        status = Status.CONVERGED
        codes, n_classes = table.labels.codes, table.labels.n_classes
        # Of two classes the machines are each other's opposite.
        signs = [np.where(codes == c, 1.0, -1.0) for c in range(1 if n_classes == 2 else n_classes)]
        with np.errstate(over="ignore", under="ignore"):
            costs = np.clip(self.C * table.labels.weights, LEAST_COST, MOST_COST)
        # Rows with a loss, by class: few change from one round to the next.
        lost: list[Indices | None] = [None] * len(signs)
        try:
            while len(left) > 1:
                squares = np.zeros(len(left))
                system = make_system(table.X[:, left], costs)
                for c, y in enumerate(signs):
                    # The first round is finished whatever the clock says.
                    if gone.size and monitor.expired:
                        status = Status.TIME_LIMIT
                        break
                    w, lost[c] = fit_squared_hinge(system, y, lost[c])
                    squares += w**2
                if status is Status.TIME_LIMIT:
                    break
                left = left[by_score(np.sqrt(squares))]
                kept = max(len(left) - drop, 0)
                if kept and monitor.expired:
                    status = Status.TIME_LIMIT
                    break
                left, gone = left[:kept], np.concatenate([left[kept:], gone])
                monitor.report(len(gone), m, float(kept))
        except KeyboardInterrupt:
            if not gone.size:
                raise
            status = Status.INTERRUPTED
        order = np.concatenate([left, gone])
        scores = np.empty(m)
        scores[order] = -np.arange(1.0, m + 1.0)
        return Ranking(order, scores, status=status)


def make_system(X: Floats, costs: Floats) -> _System:
    """Return the system of some columns, in the smaller of its two forms."""
    return _Wide(X, costs) if len(X) <= X.shape[1] else _Tall(X, costs)


def fit_squared_hinge(
    system: _System, y: Floats, lost: Indices | None = None
) -> tuple[Floats, Indices]:
    """Return argmin ½‖w‖² + ½b² + Σ_i costs_i·max(0, 1 − y_i(wᵀx_i + b))².

    Newton's method with an exact search along each step: it ends after finitely many, when a step
    leaves the rows with a loss the same, and that solution is exact.

    Parameters
    ----------
    system : _System
        Of columns (n, m) and costs (n,) above zero.
    y : ndarray of shape (n,)
        1 or −1.
    lost : ndarray of intp or None
        Rows that are thought to have a loss, to begin with; None for all.

    Returns
    -------
    w : ndarray of shape (m,)
        Without b.
    lost : ndarray of intp
        The rows that have a loss.

    Examples
    --------
    >>> system = make_system(np.array([[-1.0], [1.0]]), np.ones(2))
    >>> fit_squared_hinge(system, np.array([-1.0, 1.0]))
    (array([0.8]), array([0, 1]))
    """
    at, found = _newton(system, y, np.arange(len(y)) if lost is None else lost)
    return system.coefficients(at), found


class _System(ABC):
    """Least squares on some of the rows, and what it says of all of them."""

    costs: Floats

    @abstractmethod
    def solve(self, y: Floats, rows: Indices) -> Floats:
        """Minimise ½‖w‖² + ½b² + Σ costs_i(y_i − wᵀx_i − b)² over these rows."""

    @abstractmethod
    def outputs(self, solution: Floats) -> Floats:
        """wᵀx_i + b of every row."""

    @abstractmethod
    def square(self, solution: Floats, outputs: Floats) -> float:
        """‖w‖² + b²."""

    @abstractmethod
    def coefficients(self, solution: Floats) -> Floats:
        """W."""


class _Tall(_System):
    """In m + 1 unknowns, w and b."""

    def __init__(self, X: Floats, costs: Floats) -> None:
        self.X, self.costs = np.column_stack([X, np.ones(len(X))]), costs

    def solve(self, y: Floats, rows: Indices) -> Floats:
        X = self.X[rows]
        if len(rows) < X.shape[1]:
            # Fewer rows than unknowns: w = Xᵀβ, in as many as rows.
            K = X @ X.T
            K[np.diag_indices_from(K)] += 0.5 / self.costs[rows]
            return X.T @ np.linalg.solve(K, y[rows])
        XC = X.T * (2.0 * self.costs[rows])
        A = XC @ X
        A[np.diag_indices_from(A)] += 1.0
        solution: Floats = np.linalg.solve(A, XC @ y[rows]).astype(np.float64, copy=False)
        return solution

    def outputs(self, solution: Floats) -> Floats:
        return self.X @ solution

    def square(self, solution: Floats, outputs: Floats) -> float:
        return float(solution @ solution)

    def coefficients(self, solution: Floats) -> Floats:
        return solution[:-1]


class _Wide(_System):
    """In n unknowns: w = Xᵀβ and b = 1ᵀβ."""

    def __init__(self, X: Floats, costs: Floats) -> None:
        self.X, self.costs, self.K = X, costs, X @ X.T + 1.0

    def solve(self, y: Floats, rows: Indices) -> Floats:
        A = self.K[np.ix_(rows, rows)]
        A[np.diag_indices_from(A)] += 0.5 / self.costs[rows]
        beta = np.zeros(len(y))
        beta[rows] = np.linalg.solve(A, y[rows])
        return beta

    def outputs(self, solution: Floats) -> Floats:
        return self.K @ solution

    def square(self, solution: Floats, outputs: Floats) -> float:
        return float(solution @ outputs)

    def coefficients(self, solution: Floats) -> Floats:
        return self.X.T @ solution


def _newton(system: _System, y: Floats, lost: Indices) -> tuple[Floats, Indices]:
    at = system.solve(y, lost)
    f = system.outputs(at)
    for _ in range(MOST_STEPS):
        lost = np.flatnonzero(y * f < 1.0)
        new = system.solve(y, lost)
        g = system.outputs(new)
        if np.array_equal(np.flatnonzero(y * g < 1.0), lost):
            return new, lost
        step, move = new - at, g - f
        # d/dt of ½‖w + t·step‖²: a + t·b.
        b = system.square(step, move)
        a = 0.5 * (system.square(new, g) - system.square(at, f) - b)
        t = _search(a, b, y * f, y * move, system.costs)
        at, f = at + t * step, f + t * move
    return at, lost


def _search(a: float, b: float, margins: Floats, moves: Floats, costs: Floats) -> float:
    """Where a + t·b − 2·Σ costs·moves·max(0, 1 − margins − t·moves), which rises, is zero."""

    def slope(t: float) -> float:
        losses = np.maximum(1.0 - margins - t * moves, 0.0)
        return a + t * b - 2.0 * float((costs * moves) @ losses)

    low, high = 0.0, 1.0
    while slope(high) < 0.0:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)
