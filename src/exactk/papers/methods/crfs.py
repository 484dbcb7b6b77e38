"""CRFS: correntropy in place of squared loss, l2,1 penalty, half-quadratic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import ClassVar

import numpy as np

from exactk.methods.iteration import Start, Starts, Step
from exactk.papers.methods.base import PenaltyMethod
from exactk.papers.methods.irls import ActiveSet
from exactk.papers.methods.standard_table import LABELS, Labels, StandardTable, standard_table
from exactk.params import Check, Integer, Number
from exactk.problem.problem import Problem
from exactk.utils.linalg import row_norms

__all__ = ["CRFS"]


# σ² beside the mean squared residual, where σ is not given.
KERNEL_SHARE = 2.0
# A larger σ changes no digit, and its square would overflow.
MOST_SIGMA = 1e100


class CRFS(PenaltyMethod):
    """max Σ_i exp(−‖e_i‖²/(2σ²)) − λ/(2σ²)·‖W‖₂,₁, e_i = y_i − Wᵀx_i: l2,1 penalised correntropy.

    A row whose residual is well above σ hardly counts. Written as min 2σ²·Σ_i (1 −
    exp(−‖e_i‖²/(2σ²))) + λ‖W‖₂,₁, which is the trace, the loss is ‖e_i‖² for small residuals and at
    most 2σ² for any; as σ grows the problem becomes that of `mtfs` with the same λ. The
    half-quadratic method takes in turn

    * the weights p_i = exp(−‖e_i‖²/(2σ²)), all 1 at first;
    * W = (XᵀPX + λD)⁻¹XᵀPY with D = diag(1/(2‖w_j‖)) of the last W, D = I at first,

    the latter in the smaller of n and the number of rows that are alive (see
    `exactk.papers.methods.irls`). With a given σ the objective never rises, and what is approached
    is a stationary point: the problem is not convex. It stops when the relative change of the
    objective is at most `tol`. The columns are those of the k rows of W with the largest norm; rows
    that reached zero rank by how late they did.

    Parameters
    ----------
    lam : float
        λ, the weight of the penalty, for standardised columns, of length √(n − 1). Papers that
        compare with it search 1e-6 to 1e6.
    sigma : float or None
        σ, in units of the coded classes, or of the usual deviation of numbers from their median.
        None sets σ² to twice the mean squared residual, anew in each iteration, as published code
        for the paper does; then each value of the trace has the σ of its time, and may be above
        the last.
    labels : {"centred", "one-hot", "plus-minus"}
        How classes are coded. That code has 0 and 1 without a bias; centred classes need
        none.
    max_iter : int
        Iterations at most; that code makes 5.
    tol : float
        Relative change of the objective that counts as none.

    Notes
    -----
    Cost: O(n·m·min(n, m)) an iteration with m rows of W alive, at first all d, and O(d·n) memory
    for the standardised table.

    Guaranteed: exactly k columns; with a given σ the objective never rises. The problem is not
    convex: what is found is a stationary point.

    The constant 2σ² is part of λ here, as in that code, so that λ means the same for any
    σ; the code's weights of the penalty are four times D. It adds a small number to ‖w_j‖² against
    division by zero; the forms used here need none. Numbers as target are brought to unit size
    about their median, and the ridge of the problem takes no part in the search. Since the mean
    squared residual is itself not robust, σ by that rule is large where single rows are wild: they
    weigh little but not nothing, and with fewer rows than columns the first fit, all weights 1,
    may follow them for good. A σ that is given, or a larger λ, then may find the columns.
    Coefficients and objective of the result are of squared loss, as for every method.

    References
    ----------
    R. He, T. Tan, L. Wang, W.-S. Zheng, "l2,1 regularized correntropy for robust feature
    selection", CVPR 2012.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="crfs").support
    array([1, 3])
    """

    needs_rows: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        "lam": Number("(0, inf)"),
        "sigma": Number("(0, inf)", none="twice the mean squared residual, for σ²"),
        "labels": LABELS,
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
    }

    def __init__(
        self,
        lam: float = 10.0,
        sigma: float | None = None,
        labels: Labels = "centred",
        max_iter: int = 1000,
        tol: float = 1e-5,
    ) -> None:
        self.lam = lam
        self.sigma = sigma
        self.labels = labels
        self.max_iter = max_iter
        self.tol = tol

    def prepare(self, problem: Problem) -> StandardTable:  # noqa: D102
        return standard_table(problem, self.labels, robust=True)

    def starts(self, problem: Problem, k: int, prepared: StandardTable) -> Starts:  # noqa: D102
        return [Start(self._iterations(prepared, k))]

    def _iterations(self, table: StandardTable, k: int) -> Iterator[Step]:
        Y, counts, rows = table.Y, table.root**2, ActiveSet(table.X)
        p, value = np.ones(len(Y)), inf
        while True:
            W = rows.solve(Y, self.lam, weights=p)
            squares = table.row_norms(rows.X @ W - Y) ** 2
            double = 2.0 * self._kernel(float(counts @ squares) / table.weight)
            p = np.exp(-squares / double)
            w, last = row_norms(W), value
            value = float(-double * (counts @ np.expm1(-squares / double)) + self.lam * w.sum())
            rows.reweight(w)
            settled = abs(last - value) <= self.tol * abs(value)
            yield Step(table.columns[rows.ranked(k)], value, settled)

    def _kernel(self, mean: float) -> float:
        """σ², given the mean squared residual; where that is zero any will do."""
        if self.sigma is not None:
            return min(float(self.sigma), MOST_SIGMA) ** 2
        return KERNEL_SHARE * mean or 1.0
