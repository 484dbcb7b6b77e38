"""Least squares on few columns, what counts as dependent, and kernels on the rows of a matrix."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

import numpy as np

from exactk.types import Floats, Indices

__all__ = [
    "DEPENDENT",
    "SINGULAR",
    "add_gram",
    "gram_rounding",
    "largest",
    "largest_eigenvalue",
    "least_squares",
    "orthogonal",
    "row_norms",
    "shrink_rows",
    "solve_dependent",
    "solve_unit_diagonal",
    "spectral_norm",
    "sum_rounding",
    "weighted_median",
    "wide_least_squares",
]


# A column of which less than this share is left after projection on others depends on them.
DEPENDENT = 1e-8
# The same when a fit is made: as far as float64 can tell columns apart.
SINGULAR = 1e-12
# Up to this many columns the whole spectrum costs less than its largest value alone.
FEW = 100
# With eigenvalues below this the Gram matrix has lost digits that matter.
NEARLY_SINGULAR = 1e-6
EPS = float(np.finfo(np.float64).eps)
# How SciPy declares the routine that `add_gram` calls: integers of 32 bits, numbers of 64.
SYRK = re.compile(
    rb"void \(char \*, char \*, int \*, int \*, (double|\w+cython_blas_d) \*, \1 \*, "
    rb"int \*, \1 \*, \1 \*, int \*\)"
)


def add_gram(total: Floats, X: Floats) -> None:
    """Add XᵀX to the upper half of `total` in place, while other threads run.

    Parameters
    ----------
    total : ndarray of shape (d, d)
        In Fortran order; what lies below its diagonal is left alone.
    X : ndarray of shape (n, d)
        In Fortran order.

    Examples
    --------
    >>> total = np.zeros((2, 2), order="F")
    >>> add_gram(total, np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]))
    >>> total
    array([[10., 14.],
           [ 0., 20.]])
    """
    if not (total.flags.f_contiguous and X.flags.f_contiguous):
        raise ValueError("add_gram needs arrays in Fortran order")
    syrk = _syrk()
    if syrk is None:
        from scipy.linalg import blas

        blas.dsyrk(1.0, X, beta=1.0, c=total, trans=1, overwrite_c=1)
        return
    (n, d), one = X.shape, ctypes.byref(ctypes.c_double(1.0))
    rows, columns = ctypes.byref(ctypes.c_int(n)), ctypes.byref(ctypes.c_int(d))
    syrk(b"U", b"T", columns, rows, one, X.ctypes, rows, one, total.ctypes, columns)


@cache
def _syrk() -> Any:
    """BLAS itself: SciPy's own wrapper, unlike this call, holds up all other threads.

    None where SciPy was built with integers of another width.
    """
    # Costs a third of what importing exactk does, and only streams need it.
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__["dsyrk"]
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    text, number = ctypes.c_char_p, ctypes.c_void_p
    signature = name_of(capsule)
    if not SYRK.fullmatch(signature):
        return None
    address = pointer_of(capsule, signature)
    return ctypes.CFUNCTYPE(None, text, text, *[number] * 8)(address)


def solve_unit_diagonal(A: Floats, B: Floats) -> Floats | None:
    """Solve A V = B for a positive definite A with unit diagonal that is not nearly singular.

    The least eigenvalue decides: a chain of near copies has harmless pivots throughout, and yet
    is almost singular. A − τI has a Cholesky factor if and only if all eigenvalues are above τ,
    up to k² roundings, so one factorisation is proof.

    Parameters
    ----------
    A : ndarray of shape (k, k)
    B : ndarray of shape (k, c)

    Returns
    -------
    ndarray of shape (k, c) or None
        None if an eigenvalue is below `NEARLY_SINGULAR`: digits that matter would be lost.

    Examples
    --------
    >>> solve_unit_diagonal(np.eye(2), np.ones((2, 1))).ravel()
    array([1., 1.])
    >>> solve_unit_diagonal(np.ones((2, 2)), np.ones((2, 1))) is None
    True
    """
    A = 0.5 * (A + A.T)
    shifted = A.copy()
    shifted.flat[:: len(A) + 1] -= NEARLY_SINGULAR
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return None
    return np.linalg.solve(A, B).astype(np.float64, copy=False)


def solve_dependent(A: Floats, B: Floats, noise: float = 0.0) -> tuple[Floats, int]:
    """Solve A V = B as `solve_unit_diagonal` does, for an A that may be singular; and its rank.

    Eigenvalues that count as zero are left out with their directions, so that BᵀV is too small if
    they were not zero, never too large. Where there are rows, `least_squares` knows better.

    Parameters
    ----------
    A : ndarray of shape (k, k)
    B : ndarray of shape (k, c)
    noise : float
        Rounding in the eigenvalues of A. Those below a hundred times that, or below `SINGULAR`
        times k, count as zero; so all others, and what they add to BᵀV, have two digits and more.

    Returns
    -------
    V : ndarray of shape (k, c)
        The solution of least norm.
    rank : int

    Examples
    --------
    >>> V, rank = solve_dependent(np.ones((2, 2)), np.ones((2, 1)))
    >>> V.ravel(), rank
    (array([0.5, 0.5]), 1)
    """
    values, vectors = np.linalg.eigh(0.5 * (A + A.T))
    keep = values > max(SINGULAR * len(A), 100.0 * noise)
    inner = (vectors[:, keep].T @ B) / values[keep][:, None]
    return vectors[:, keep] @ inner, int(keep.sum())


def sum_rounding(n: int) -> float:
    """Return the relative error to expect of a sum of n products: more was never seen.

    Examples
    --------
    >>> f"{sum_rounding(100):.0e}"
    '2e-15'
    """
    return EPS * float(np.sqrt(n))


def gram_rounding(V: Floats, total: float, n: int) -> float:
    """Return how far off ``total − BᵀV`` may be, V solved from a Gram matrix of unit diagonal.

    An error of the matrix enters with V on either side. Rows of V, and the total, whose sums are
    off by more are to be enlarged first: the total by as much, the rows by the root of it.

    Examples
    --------
    >>> f"{gram_rounding(np.array([[1e3], [-1e3]]), 1.0, 100):.0e}"
    '9e-09'
    """
    return sum_rounding(n) * float(total + (np.abs(V).sum(axis=0) ** 2).sum())


def least_squares(
    x: Floats, y: Floats, weights: Floats | None, penalty: float
) -> tuple[Floats, float, int]:
    """Return the ridge fit of y on centred columns x, from the rows, its objective and the rank.

    Twice as many digits survive as in the normal equations. Singular values of the columns, at
    unit norm, that are below ``eps · max(n, k)`` times the largest count as zero.

    Examples
    --------
    >>> V, objective, rank = least_squares(np.eye(2), np.array([[1.0], [2.0]]), None, 0.0)
    >>> V.ravel(), objective, rank
    (array([1., 2.]), 0.0, 2)
    """
    x, y = _weighted(x, y, weights)
    if penalty > 0:
        k = x.shape[1]
        x = np.vstack([x, np.sqrt(penalty) * np.eye(k)])
        y = np.vstack([y, np.zeros((k, y.shape[1]))])
    # Columns of unit norm: what counts as zero must not hang on their units.
    norms = np.sqrt((x**2).sum(axis=0))
    V, _, rank, _ = np.linalg.lstsq(x / norms, y, rcond=None)
    V = V.astype(np.float64, copy=False) / norms[:, None]
    return V, float(((y - x @ V) ** 2).sum()), int(rank)


def wide_least_squares(
    x: Floats, y: Floats, weights: Floats | None, penalty: float
) -> tuple[Floats, float, int]:
    """As `least_squares` where columns outnumber rows, in as many unknowns as rows.

    Examples
    --------
    >>> V, objective, rank = wide_least_squares(np.ones((1, 2)), np.ones((1, 1)), None, 0.0)
    >>> V.ravel().round(12), round(objective, 12), rank
    (array([0.5, 0.5]), 0.0, 1)
    """
    if penalty == 0:
        return least_squares(x, y, weights, penalty)
    x, y = _weighted(x, y, weights)
    K = x @ x.T
    if penalty > NEARLY_SINGULAR * np.linalg.norm(K):
        K[np.diag_indices_from(K)] += penalty
        V = x.T @ np.linalg.solve(K, y)
    else:
        # A ridge this small would be lost in K.
        left, s, right = np.linalg.svd(x, full_matrices=False)
        V = right.T @ ((s / (s**2 + penalty))[:, None] * (left.T @ y))
    return V, float(((y - x @ V) ** 2).sum() + penalty * (V**2).sum()), x.shape[1]


def _weighted(x: Floats, y: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    if weights is None:
        return x, y
    root = np.sqrt(weights)[:, None]
    return x * root, y * root


def orthogonal(x: Floats) -> tuple[Floats, Floats]:
    """Return orthogonal columns of unit size that span the same, and the way back.

    Returns
    -------
    columns : ndarray of shape (n, rank)
    back : ndarray of shape (rank, k)
        Coefficients v of these are the coefficients ``v @ back`` of x.

    Examples
    --------
    >>> x = np.array([[1.0, 2.0], [0.0, 0.0], [-1.0, -2.0]])
    >>> columns, back = orthogonal(x)
    >>> columns.shape, np.allclose(x @ back.T, columns)
    ((3, 1), True)
    """
    size = np.sqrt(np.einsum("ij,ij->j", x, x))
    size[size == 0] = 1.0
    left, s, right = np.linalg.svd(x / size, full_matrices=False)
    keep = s > np.finfo(float).eps * max(x.shape) * s.max(initial=0.0)
    unit = np.sqrt(len(x))
    return unit * left[:, keep], (unit / s[keep, None]) * right[keep] / size


def row_norms(W: Floats) -> Floats:
    """Return the Euclidean norm of each row.

    Examples
    --------
    >>> row_norms(np.array([[3.0, 4.0], [0.0, 2.0]]))
    array([5., 2.])
    """
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", W, W))
    return norms


def largest(scores: Floats, k: int, *, positive: bool = True) -> Indices:
    """Return the indices of the k largest scores, sorted; ties go to the lowest index.

    Scores of zero or less, and nan, are never among them unless `positive` is false: fewer than
    k may be returned.

    Examples
    --------
    >>> largest(np.array([1.0, 3.0, 2.0, 3.0, 0.0]), 2)
    array([1, 3])
    """
    eligible = np.flatnonzero(scores > 0) if positive else np.arange(len(scores))
    if len(eligible) <= k:
        return eligible
    values = scores[eligible]
    least = np.partition(values, len(values) - k)[len(values) - k]
    above = np.flatnonzero(values > least)
    level = np.flatnonzero(values == least)[: k - len(above)]
    chosen: Indices = eligible[np.sort(np.concatenate([above, level]))]
    return chosen


def weighted_median(values: Floats, weights: Floats) -> float:
    """Return the weighted median, which for whole weights is that of the repeated values.

    Examples
    --------
    >>> weighted_median(np.array([1.0, 5.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    2.0
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    half = 0.5 * below[-1]
    first = int(np.searchsorted(below, half * (1.0 - 1e-12)))
    last = int(np.searchsorted(below, half * (1.0 + 1e-12), side="right"))
    last = min(last, len(values) - 1)
    return float(0.5 * (values[order[first]] + values[order[last]]))


def shrink_rows(W: Floats, by: Floats | float) -> Floats:
    """Shorten each row by a length, to zero if it is shorter: the prox of a sum of row norms.

    Examples
    --------
    >>> shrink_rows(np.array([[3.0, 4.0], [0.0, 2.0]]), 2.5)
    array([[1.5, 2. ],
           [0. , 0. ]])
    """
    norms = row_norms(W)
    kept = np.divide(by, norms, out=np.ones_like(norms), where=norms > by)
    return W * (1.0 - kept)[:, None]


def spectral_norm(X: Floats) -> float:
    """Return the largest singular value, from the smaller of the two products with itself.

    Examples
    --------
    >>> round(spectral_norm(np.diag([1.0, 3.0, 2.0])), 12)
    3.0
    """
    product = X @ X.T if len(X) <= X.shape[1] else X.T @ X
    return float(np.sqrt(max(largest_eigenvalue(product), 0.0)))


def largest_eigenvalue(A: Floats) -> float:
    """Return the largest eigenvalue of a positive semi-definite matrix.

    Examples
    --------
    >>> largest_eigenvalue(np.diag([1.0, 3.0, 2.0]))
    3.0
    """
    if len(A) <= FEW:
        return float(np.linalg.eigvalsh(A)[-1]) if len(A) else 0.0
    # Imported here, for it takes longer than all the rest of exactk.
    from scipy.sparse.linalg import eigsh

    # Lanczos: some dozens of products with a vector, not the whole spectrum.
    # A start at random is in nobody's null space; always the same, so that answers repeat.
    start = np.random.default_rng(0).standard_normal(len(A))
    values = eigsh(A, k=1, which="LA", v0=start, return_eigenvectors=False)
    return float(values[0])
