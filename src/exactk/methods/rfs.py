"""RFS: l2,1 loss with l2,1 penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from exactk.checks import Check
from exactk.iterative.course import Start
from exactk.iterative.irls import REWEIGHTED_CHECKS, reweighted
from exactk.iterative.table import Labels
from exactk.methods.base import IterativeMethod
from exactk.problem import Problem

__all__ = ["RFS"]


class RFS(IterativeMethod):
    """min ‖XW − Y‖₂,₁ + λ‖W‖₂,₁: `gsrfs` with r = p = 1.

    Robust against rows that do not fit. Solved by reweighted least squares (see
    `exactk.methods.gsrfs`). Convex; the objective never rises.

    Parameters
    ----------
    lam : float
        λ, the weight of the penalty.
    labels : {"plus-minus", "centred", "one-hot"}
        How classes are coded; numbers are centred.
    epsilon : float
        ε under the roots of the reweighting.
    max_iter : int
        Iterations at most.
    tol : float
        Change of the objective that counts as none.

    References
    ----------
    F. Nie, H. Huang, X. Cai, C. Ding, "Efficient and robust feature selection via joint
    l2,1-norms minimization", NIPS 2010.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="rfs").support
    array([2, 3])
    """

    needs_rows: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = REWEIGHTED_CHECKS

    def __init__(
        self,
        lam: float = 1.0,
        labels: Labels = "plus-minus",
        epsilon: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.lam = lam
        self.labels = labels
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.tol = tol

    def starts(self, problem: Problem, k: int) -> Sequence[Start]:  # noqa: D102
        return reweighted(
            problem, k, r=1.0, p=1.0, lam=self.lam, labels=self.labels,
            epsilon=self.epsilon, tol=self.tol,
        )  # fmt: skip
