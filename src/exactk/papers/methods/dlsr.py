"""DLSR: least squares whose class targets may be dragged away from each other, l2,1 penalty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import ClassVar

import numpy as np

from exactk.methods.iteration import Start, Starts, Step
from exactk.papers.methods.base import PenaltyMethod
from exactk.papers.methods.irls import ActiveSet
from exactk.papers.methods.standard_table import StandardTable, standard_table
from exactk.params import Check, Integer, Number
from exactk.problem.problem import Problem
from exactk.utils.linalg import row_norms

__all__ = ["DLSR"]


class DLSR(PenaltyMethod):
    """min ‖XW + 1tᵀ − Y − B∘M‖² + λ‖W‖₂,₁ over W, t and M ≥ 0: ε-dragging.

    Y is one-hot, and B is 1 at the own class of a row and −1 elsewhere: with M the target of the
    own class may be dragged above 1 and the others below 0, so that a row that is on the right
    side by more than that costs nothing. An iteration is, from M = 0,

    * T = Y + B∘M, and t its mean, for the columns are centred;
    * W = (XᵀX + λD)⁻¹Xᵀ(T − 1tᵀ) with D = diag(1/(2‖w_j‖)) of the last W, D = I at first;
    * M = max(B∘(XW + 1tᵀ − Y), 0).

    None of them can raise the objective, which is jointly convex: what the iterations approach is
    its optimum. W is solved for in the smaller of n and the number of rows that are alive (see
    `exactk.papers.methods.irls`). It stops when the relative change of the objective is at most
    `tol`. The columns are those of the k rows of W with the largest norm; rows that reached zero
    rank by how late they did.

    Parameters
    ----------
    lam : float
        λ, the weight of the penalty, for standardised columns, of length √(n − 1). Papers that
        compare with it search 0.001 to 1; at such values convergence is slow here.
    max_iter : int
        Iterations at most.
    tol : float
        Relative change of the objective that counts as none. At the default it stops well before
        all rows that will be zero are.

    Notes
    -----
    Cost: O(n·m·min(n, m)) an iteration with m rows of W alive, at first all d, and O(d·n) memory
    for the standardised table.

    Guaranteed: exactly k columns; the penalised problem is convex, and its objective never rises.
    That the k largest rows of W are the best k columns is not.

    With the best M the loss is Σ (1 − f)₊² over own classes and Σ f₊² over the others, f = XW +
    1tᵀ: a squared hinge. The reweighting is not smoothed: the forms used here need no small number
    against division by zero. M follows every single W. The stopping rule is ours, and the ridge of
    the problem takes no part in the search.

    References
    ----------
    S. Xiang, F. Nie, G. Meng, C. Pan, C. Zhang, "Discriminative least squares regression for
    multiclass classification and feature selection", IEEE Trans. Neural Netw. Learn. Syst. 23(11),
    2012.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="dlsr").support
    array([2, 3])
    """

    needs_rows: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        "lam": Number("(0, inf)"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
    }

    def __init__(self, lam: float = 10.0, max_iter: int = 1000, tol: float = 1e-5) -> None:
        self.lam = lam
        self.max_iter = max_iter
        self.tol = tol

    def prepare(self, problem: Problem) -> StandardTable:  # noqa: D102
        return standard_table(problem, "one-hot")

    def starts(self, problem: Problem, k: int, prepared: StandardTable) -> Starts:  # noqa: D102
        return [Start(self._iterations(prepared, k))]

    def _iterations(self, table: StandardTable, k: int) -> Iterator[Step]:
        # Rows are times √w, and so are Y, M and the residual.
        Y, root, rows = table.Y, table.root[:, None], ActiveSet(table.X)
        B = np.where(Y > 0, 1.0, -1.0)
        M, value = np.zeros_like(Y), inf
        while True:
            T = Y + B * M
            base = root * ((root * T).sum(axis=0) / table.weight)
            W = rows.solve(T - base, self.lam)
            E = rows.X @ W + base - Y
            M = np.maximum(B * E, 0.0)
            w, last = row_norms(W), value
            value = float(((E - B * M) ** 2).sum() + self.lam * w.sum())
            rows.reweight(w)
            settled = abs(last - value) <= self.tol * abs(value)
            yield Step(table.columns[rows.ranked(k)], value, settled)
