"""GSR-FS: l2,r loss with l2,p penalty, by reweighted least squares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from exactk.papers.methods.base import ReweightedMethod
from exactk.papers.methods.standard_table import Labels
from exactk.params import Check, Number

__all__ = ["GSRFS"]


class GSRFS(ReweightedMethod):
    """min ‖XW − Y‖₂,ᵣʳ + λ‖W‖₂,ₚᵖ (eq. 2), 0 < r ≤ 2, 0 < p ≤ 1.

    A smaller r is more robust against rows that do not fit, a smaller p makes W sparser. Each
    iteration solves a least-squares problem with weights of the last W (Algorithm 1), in the
    smaller of n and the number of rows of W that are alive (see `exactk.papers.methods.irls`). The
    objective never rises for r ≥ 1. It stops when it changes by at most `tol`. The columns are
    those of the k rows of W with the largest norm; rows that reached zero rank by how late they
    did.

    Parameters
    ----------
    r : float
        Order of the loss, in (0, 2]. The paper cross-validates 0.5, 1 and 2.
    p : float
        Order of the penalty, in (0, 1].
    lam : float
        λ, the weight of the penalty. The paper cross-validates 0.001 to 100.
    labels : {"plus-minus", "centred", "one-hot"}
        How classes are coded. The paper has −1 and 1 without a bias; centred classes fit better.
        Numbers are always centred.
    epsilon : float
        ε under the roots of the reweighting, against division by zero. The forms used here need
        none; it biases the objective for small p.
    max_iter : int
        Iterations at most.
    tol : float
        Change of the objective that counts as none. At the paper's 1e-4 it stops well before the
        rows have settled; 1e-10 may take two thousand iterations.

    Notes
    -----
    Cost: O(n·m·min(n, m)) an iteration with m rows of W alive, at first all d, and O(d·n) memory
    for the standardised table; of files and clusters O(d²).

    Guaranteed: exactly k columns; the objective of the penalised problem never rises for r ≥ 1, and
    for p = 1 what is approached is its optimum. That the k largest rows of W are the best k columns
    is not.

    For p = 1 and r ≥ 1 the problem is convex, and its optimum is what the iterations approach;
    else they end at a stationary point. For r < 1 rounding can raise the objective a little where
    rows are fitted exactly. Numbers as target are brought to unit size, for r < 2 about their
    median, and the ridge of the problem takes no part in the search. With r < 2 the search is
    robust against wrong rows; coefficients and objective of the result are of squared loss, as
    for every method.

    References
    ----------
    H. Peng, Y. Fan, "A general framework for sparsity regularized feature selection via
    iteratively reweighted least square minimization", AAAI 2017.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="gsrfs", p=0.5).support
    array([2, 3])
    """

    checks: ClassVar[Mapping[str, Check]] = {
        "r": Number("(0, 2]"),
        "p": Number("(0, 1]"),
        **ReweightedMethod.checks,
    }

    def __init__(
        self,
        r: float = 2.0,
        p: float = 0.5,
        lam: float = 1.0,
        labels: Labels = "plus-minus",
        epsilon: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        super().__init__(lam, labels, epsilon, max_iter, tol)
        self.r = r
        self.p = p

    @property
    def orders(self) -> tuple[float, float]:  # noqa: D102
        return self.r, self.p
