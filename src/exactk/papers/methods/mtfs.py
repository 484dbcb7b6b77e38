"""MTFS: squared loss with l2,1 penalty, the multi-task lasso."""

from __future__ import annotations

from exactk.papers.methods.base import ReweightedMethod

__all__ = ["MTFS"]


class MTFS(ReweightedMethod):
    """min ‖XW − Y‖² + λ‖W‖₂,₁: `gsrfs` with r = 2 and p = 1.

    The same problem as scikit-learn's ``MultiTaskLasso`` with alpha = λ/(2n), solved here by
    reweighted least squares so that it has a trace and a ranking of all columns (see
    `exactk.papers.methods.gsrfs`). Convex; the objective never rises. At the default `tol` it stops
    a little above the optimum.

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
    Cost: O(n·d²) or O(n²·d) once, whichever is less, then at most O(m³) an iteration with m rows of
    W alive. Memory: the standardised table; of files and clusters O(d²).

    Guaranteed: exactly k columns; the penalised problem is convex, and its objective never rises.
    That the k largest rows of W are the best k columns is not.

    References
    ----------
    G. Obozinski, B. Taskar, M. Jordan, "Multi-task feature selection", technical report,
    University of California, Berkeley, 2006.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="mtfs").support
    array([2, 3])
    """

    @property
    def orders(self) -> tuple[float, float]:  # noqa: D102
        return 2.0, 1.0
