"""RK1U: squared loss with l2,p penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from exactk.papers.methods.base import ReweightedMethod
from exactk.papers.methods.standard_table import Labels
from exactk.params import Check, Number

__all__ = ["RK1U"]


class RK1U(ReweightedMethod):
    """min ‖XW − Y‖² + λ‖W‖₂,ₚᵖ, 0 < p ≤ 1: `gsrfs` with r = 2.

    The problem is that of the rank-one update method; it is solved here by reweighted least
    squares (see `exactk.papers.methods.gsrfs`), not by rank-one updates. Sparser than `mtfs`, which
    is p = 1, and not convex below. The objective never rises.

    Parameters
    ----------
    p : float
        Order of the penalty, in (0, 1].
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
    Cost: O(n·d²) or O(n²·d) once, whichever is less, then at most O(m³) an iteration with m rows of
    W alive. Memory: the standardised table; of files and clusters O(d²).

    Guaranteed: exactly k columns; the objective of the penalised problem never rises. Below p = 1
    it is not convex: what is found is a stationary point.

    References
    ----------
    M. Zhang, C. Ding, Y. Zhang, F. Nie, "Feature selection at the discrete limit", AAAI 2014.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="rk1u").support
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
        return 2.0, self.p
