"""Covariance thresholding: the leading eigenvector of the strong correlations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from exactk.errors import InputError
from exactk.papers.filters.base import ROUNDING_DIGITS, Filter, Ranking
from exactk.papers.methods.standard_table import standard_rows
from exactk.params import Check, Choice, Number
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = ["CovTh"]


# The threshold that the paper of CD-LSR sets, times √n.
FACTOR = 5.0
# Columns of the correlation matrix at a time.
BLOCK = 256
# Bytes of an entry of a sparse matrix and its index.
ENTRY = 12
# Up to this many columns all eigenvalues cost little.
SMALL = 300
# Eigenvalues this close, relative to the largest, are one.
EQUAL = 1e-9
# Digits of an eigenvector that do not hang on how it was found.
DIGITS = 9


class CovTh(Filter):
    """Score each column by its entry |v_j| in the leading eigenvector of a thresholded matrix.

    The matrix is that of the correlations (the covariances of standardised columns); entries off
    its diagonal below t in absolute value are set to zero, and v belongs to the largest eigenvalue
    of what is left. y plays no part, and moments without rows serve as well.

    The graph of the correlations that are left falls into components, and v lives on the one with
    the largest eigenvalue, found by Lanczos or, where it is small, by a full decomposition. If
    several eigenvectors share that eigenvalue the score is the length of row j of all of them,
    which does not depend on how they are chosen. Columns where v is zero have no place in the
    paper's order; they come after the others, those with larger mean squared correlation q_j with
    all other columns first, by a score of q_j − 1. If no correlation reaches t, that is all there
    is. q_j also decides between equal entries of v, such as those of two columns that are joined
    to no other.

    Parameters
    ----------
    t : float or None
        Threshold for correlations; None is 5/√n (n the sum of weights), as the paper of CD-LSR
        sets it, which needs more than 25 rows.
    rule : {"hard", "soft"}
        "hard" keeps what reaches t as it is, the paper's algorithm; "soft" moves it towards zero
        by t, as in the analysis by Deshpande and Montanari.

    Notes
    -----
    Cost: O(n·d²) for the correlations, and Lanczos on those that are left. Memory: 12 bytes for
    each correlation that is left.

    Guaranteed: the k largest entries of the eigenvector. Nothing about y, which it does not look
    at.

    The paper thresholds the covariance matrix of a model with unit noise; correlations make t mean
    the same for columns in any units. What is left of the matrix is kept sparse, 12 bytes an
    entry, within the memory limit of the problem.

    References
    ----------
    R. Krauthgamer, B. Nadler, D. Vilenchik, "Do semidefinite relaxations solve sparse PCA up to
    the information limit?", Annals of Statistics 43, 2015.
    Y. Deshpande, A. Montanari, "Sparse PCA via covariance thresholding", JMLR 17, 2016.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> result = exactk.solve(problem, 2, method="covth")
    >>> result.support, result.scores.round(3)
    (array([2, 3]), array([0.546, 0.142, 0.6  , 0.567]))
    """

    needs_rows: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = False
    uses_target: ClassVar[bool] = False
    uses_gram: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        "t": Number("[0, 1)", none="5/√n"),
        "rule": Choice(options=("hard", "soft")),
    }

    def __init__(self, t: float | None = None, rule: Literal["hard", "soft"] = "hard") -> None:
        self.t = t
        self.rule = rule

    def check_problem(self, problem: Problem) -> None:  # noqa: D102
        if self.t is None and problem.weight <= FACTOR**2:
            raise InputError(
                f"covth needs more than {FACTOR**2:.0f} rows for its threshold {FACTOR:g}/√n to be "
                f"below 1, and there are {problem.weight:g}", parameter="t",
                hint="give t, for example t=0.5",
            )  # fmt: skip

    def rank(self, problem: Problem, k: int, monitor: Monitor) -> Ranking:  # noqa: D102
        t = FACTOR / np.sqrt(problem.weight) if self.t is None else float(self.t)
        strong, squares = self._strong(problem, t)
        others = squares / max(len(squares) - 1, 1)
        v = np.round(_leading(strong), DIGITS)
        scores = np.where(v > 0, v, others - 1.0)
        order = np.lexsort((-np.round(others, ROUNDING_DIGITS), -v))
        return Ranking(order, scores)

    def _strong(self, problem: Problem, t: float) -> tuple[Any, Floats]:
        """The thresholded correlations off the diagonal, sparse, and sums of squares of all."""
        # Imported here, for it takes longer than all the rest of exactk.
        from scipy.sparse import coo_array

        S, X = problem.candidates, _unit_columns(problem)
        m, root = len(S), np.sqrt(problem.scatter[S])
        squares = np.zeros(m)
        # As many entries as the memory takes: what is kept here is mirrored and sorted later.
        most, kept = problem.memory_limit // (4 * ENTRY), 0
        rows, columns, values = [], [], []
        for start in range(0, m, BLOCK):
            part = slice(start, min(start + BLOCK, m))
            own = np.arange(part.stop - part.start)
            if X is None:
                R = problem.gram_rows(S[part])[:, S]
                R /= root[part][:, None]
                R /= root
                R[own, own + start] = 0.0
                squares[part] = np.einsum("ij,ij->i", R, R)
                R = R[:, start:]
            else:
                # Each pair once, and its square for both of its columns.
                R = X[:, part].T @ X[:, start:]
                R[own, own] = 0.0
                squares[part] += np.einsum("ij,ij->i", R, R)
                beyond = R[:, len(own) :]
                squares[part.stop :] += np.einsum("ij,ij->j", beyond, beyond)
            # Each pair once: its two values may differ in the last digit.
            strong = np.abs(R) >= t
            strong[:, : len(own)] &= own[:, None] < own
            i, j = np.divmod(np.flatnonzero(strong), R.shape[1])
            value = R[i, j]
            if self.rule == "soft":
                value = np.sign(value) * (np.abs(value) - t)
            kept += len(value)
            if kept > most:
                raise InputError(
                    f"covth keeps more than {most:,} correlations of {t:.3g} and above, which "
                    f"take more than memory_limit={problem.memory_limit:,}",
                    parameter="memory_limit",
                    hint="give a larger t, or raise memory_limit in Problem.from_arrays",
                )
            rows.append((i + start).astype(np.int32))
            columns.append((j + start).astype(np.int32))
            values.append(value)
        upper = coo_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(m, m)
        ).tocsr()
        return upper + upper.T, squares


def _unit_columns(problem: Problem) -> Floats | None:
    """The candidates as columns of norm one where n < d, or None: there the Gram matrix serves.

    With fewer rows than columns the table is smaller than the matrix, and no column of that is
    asked for twice: it would be kept for nothing.
    """
    rows, m = problem.rows, len(problem.candidates)
    if rows is None or rows.n_rows >= m or 8 * rows.n_rows * m > problem.memory_limit:
        return None
    X, _, weights = standard_rows(problem)
    if weights is not None:
        X *= np.sqrt(weights)[:, None]
    X /= np.sqrt(np.einsum("ij,ij->j", X, X))
    return X


def _leading(A: Any) -> Floats:
    """Lengths of the rows of the eigenvectors of the largest eigenvalue; zeros if A is zero."""
    out = np.zeros(A.shape[0])
    best, found = 0.0, []
    for nodes, bound in _components(A):
        # No eigenvalue is larger than the largest sum of a row.
        if bound < best * (1.0 - EQUAL):
            break
        values, vectors = _eigenpairs(A[nodes][:, nodes])
        found.append((nodes, values, vectors))
        best = max(best, float(values.max()))
    for nodes, values, vectors in found:
        top = vectors[:, values >= best * (1.0 - EQUAL)]
        out[nodes] = np.sqrt((top**2).sum(axis=1))
    return out


def _components(A: Any) -> Iterator[tuple[Indices, float]]:
    """Connected columns, and the largest absolute row sum, from the largest such sum down."""
    from scipy.sparse.csgraph import connected_components

    count, which = connected_components(A, directed=False)
    sums = np.asarray(abs(A).sum(axis=1)).ravel()
    bounds = np.zeros(count)
    np.maximum.at(bounds, which, sums)
    members = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    for q in np.argsort(-bounds, kind="stable"):
        if bounds[q] == 0.0:
            break
        yield members[q], float(bounds[q])


def _eigenpairs(A: Any) -> tuple[Floats, Floats]:
    """All eigenpairs of a small matrix, the leading ones of a large one."""
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    if A.shape[0] > SMALL:
        # A start at random is in nobody's null space; always the same, so that answers repeat.
        start = np.random.default_rng(0).standard_normal(A.shape[0])
        try:
            values, vectors = eigsh(A, k=2, which="LA", v0=start)
            # Two that are equal may be more; only the whole spectrum would tell.
            if values.min() < values.max() * (1.0 - EQUAL):
                return values, vectors
        except ArpackNoConvergence:
            pass
    values, vectors = np.linalg.eigh(A.toarray())
    return values, vectors
