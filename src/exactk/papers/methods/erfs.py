"""Extended RFS: l2,p loss with l2,p penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from exactk.papers.methods.base import ReweightedMethod
from exactk.papers.methods.standard_table import Labels
from exactk.params import Check, Number

__all__ = ["ERFS"]


class ERFS(ReweightedMethod):
    """min ‖XW − Y‖₂,ₚᵖ + λ‖W‖₂,ₚᵖ, 0 < p ≤ 1: `gsrfs` with r = p.

    More robust and sparser than `rfs`, which is p = 1, and not convex below. Solved by
    reweighted least squares (see `exactk.papers.methods.gsrfs`).

    Parameters
    ----------
    p : float
        Order of loss and penalty, in (0, 1].
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

    Notes
    -----
    Cost: O(n·m·min(n, m)) an iteration with m rows of W alive, at first all d, and O(d·n) memory
    for the standardised table; of files and clusters O(d²).

    Guaranteed: exactly k columns. Below p = 1 the problem is not convex: what is found is a
    stationary point.

    References
    ----------
    L. Wang, S. Chen, "l2,p matrix norm and its application in feature selection", 2013.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="erfs").support
    array([2, 3])
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "p": Number("(0, 1]"),
        **ReweightedMethod.checks,
    }

    def __init__(
        self,
        p: float = 0.5,
        lam: float = 1.0,
        labels: Labels = "plus-minus",
        epsilon: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        super().__init__(lam, labels, epsilon, max_iter, tol)
        self.p = p

    @property
    def orders(self) -> tuple[float, float]:  # noqa: D102
        return self.p, self.p
