"""RFS: l2,1 loss with l2,1 penalty."""

from __future__ import annotations

from exactk.papers.methods.base import ReweightedMethod

__all__ = ["RFS"]


class RFS(ReweightedMethod):
    """min ‖XW − Y‖₂,₁ + λ‖W‖₂,₁: `gsrfs` with r = p = 1.

    Robust against rows that do not fit. Solved by reweighted least squares (see
    `exactk.papers.methods.gsrfs`). Convex; the objective never rises.

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

    Notes
    -----
    Cost: O(n·m·min(n, m)) an iteration with m rows of W alive, at first all d, and O(d·n) memory
    for the standardised table; of files and clusters O(d²).

    Guaranteed: exactly k columns; the penalised problem is convex, and its objective never rises.
    That the k largest rows of W are the best k columns is not.

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

    @property
    def orders(self) -> tuple[float, float]:  # noqa: D102
        return 1.0, 1.0
