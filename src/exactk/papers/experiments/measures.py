"""Redundancy and stability of sets of columns, and the errors of linear fits on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from exactk.data.targets import encode_target
from exactk.errors import InputError
from exactk.papers.experiments.column_check import checked_support, checked_table, standardiser
from exactk.params import Choice, Integer
from exactk.types import Floats
from exactk.utils.set_similarity import mean_jaccard, nogueira_index

__all__ = [
    "jaccard",
    "linear_rmse",
    "nogueira",
    "redundancy",
    "residual",
]


def redundancy(X: Any, support: Iterable[int]) -> float:
    """Return the mean absolute correlation over all pairs of the chosen columns.

    A constant column correlates with none (0), and a single column has no pairs: 0.

    Parameters
    ----------
    X : array-like of shape (n, d)
    support : iterable of int

    Returns
    -------
    float
        Between 0 (uncorrelated) and 1 (copies of one column).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> round(redundancy(X, [2, 3]), 4), redundancy(X, [2])
    (0.9629, 0.0)
    """
    table = checked_table("X", X)
    columns = checked_support(support, table.shape[1])
    if columns.size < 2:
        return 0.0
    part = table[:, columns]
    Z = standardiser(part).apply(part)
    sizes = np.sqrt((Z**2).sum(axis=0))
    Z /= np.where(sizes > 0, sizes, 1.0)
    correlations = np.minimum(np.abs(Z.T @ Z), 1.0)
    return float(correlations[np.triu_indices(columns.size, 1)].mean())


def nogueira(supports: Sequence[Iterable[int]], d: int) -> float:
    """Return the stability of a selection by Nogueira's index.

    With M sets, p_f the share of those that hold column f, and s_f² = M/(M−1)·p_f(1−p_f):
    1 − mean_f(s_f²) / (k̄/d·(1 − k̄/d)), where k̄ is the mean size. It is corrected for chance: sets
    drawn at random have 0 on average, however large they are.

    Parameters
    ----------
    supports : sequence of iterables of int
        Two sets or more, for example one a split.
    d : int
        Number of columns they are chosen from.

    Returns
    -------
    float
        1 for equal sets, which holds also where they are empty or all columns; at least −1/(M−1).

    References
    ----------
    S. Nogueira, K. Sechidis, G. Brown, "On the stability of feature selection algorithms",
    JMLR 18(174), 2018.

    Examples
    --------
    >>> nogueira([[0, 1], [0, 1], [0, 1]], 10)
    1.0
    >>> round(nogueira([[0, 1], [0, 2], [0, 1]], 10), 4)
    0.5833
    """
    Integer(1)("d", d)
    sets = _several(supports)
    member = np.zeros((len(sets), d))
    for row, support in zip(member, sets, strict=True):
        row[checked_support(support, d)] = 1.0
    return nogueira_index(member)


def jaccard(supports: Sequence[Iterable[int]]) -> float:
    """Return the mean over all pairs of sets of their common columns by all columns of the two.

    Parameters
    ----------
    supports : sequence of iterables of int
        Two sets or more; two empty ones are equal, 1.

    Returns
    -------
    float

    Examples
    --------
    >>> round(jaccard([[0, 1], [0, 2], [0, 1]]), 4)
    0.5556
    """
    return mean_jaccard(_several(supports))


def linear_rmse(X_train: Any, Y_train: Any, X_test: Any, Y_test: Any) -> float:
    """Return the root mean squared error on the test part of a linear fit to the training part.

    Least squares with intercept on all columns given; of columns that depend on each other the
    solution of least norm (columns standardised) is taken. The mean is over rows and outputs.

    Parameters
    ----------
    X_train, X_test : array-like of shape (n, k) and (m, k)
        The chosen columns.
    Y_train, Y_test : array-like of shape (n,) or (n, c), and (m,) or (m, c)

    Returns
    -------
    float

    Examples
    --------
    >>> round(linear_rmse([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0], [[3.0]], [7.5]), 6)
    0.5
    """
    X, T = checked_table("X_train", X_train), checked_table("X_test", X_test)
    Y, U = _outputs("Y_train", Y_train, len(X)), _outputs("Y_test", Y_test, len(T))
    if X.shape[1] != T.shape[1]:
        raise InputError(
            f"X_train has {X.shape[1]} columns, X_test {T.shape[1]}", parameter="X_test"
        )
    if Y.shape[1] != U.shape[1]:
        raise InputError(
            f"Y_train has {Y.shape[1]} outputs, Y_test {U.shape[1]}", parameter="Y_test"
        )
    mean = Y.mean(axis=0)
    scale = standardiser(X)
    coef = np.linalg.lstsq(scale.apply(X), Y - mean, rcond=None)[0]
    return float(np.sqrt(((U - mean - scale.apply(T) @ coef) ** 2).mean()))


def _several(supports: Sequence[Iterable[int]]) -> list[list[int]]:
    try:
        sets = [list(support) for support in supports]
    except TypeError:
        raise InputError(
            f"supports must be a list of lists of columns, not {supports!r}", parameter="supports"
        ) from None
    if len(sets) < 2:
        raise InputError(
            f"supports must hold two sets or more to compare, not {len(sets)}", parameter="supports"
        )
    return sets


def _outputs(name: str, Y: Any, n_rows: int) -> Floats:
    values = np.asarray(Y)
    table = checked_table(name, values[:, None] if values.ndim == 1 else values)
    if len(table) != n_rows:
        raise InputError(f"{name} has {len(table)} rows, its table {n_rows}", parameter=name)
    return table


_TASK = Choice(options=("classification", "regression"))


def residual(X: Any, y: Any, support: Iterable[int], task: str) -> float:
    """Return ‖HY − HX_S W‖² of a least-squares fit on some columns.

    Columns are centred and divided by their standard deviation (n − 1); Y is one-hot for classes.
    It is computed from the rows by an orthogonal factorisation, apart from all that methods
    compute with; of columns that depend on each other only the space they span counts.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,) or (n, c)
        Labels or outputs.
    support : iterable of int
        Columns; none of them gives ‖HY‖².
    task : {"classification", "regression"}
        What y holds.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(residual(X, y, [2, 3], "classification"), 4)
    47.6774
    """
    _TASK("task", task)
    table = checked_table("X", X)
    columns = checked_support(support, table.shape[1])
    target = encode_target(y, task)  # type: ignore[arg-type]  # one of the two words by now
    if target.n_rows != len(table):
        raise InputError(f"X has {len(table)} rows, y has {target.n_rows}", parameter="y")
    Y = target.block(0, target.n_rows)
    Y = Y - Y.mean(axis=0)
    Z = standardiser(table[:, columns]).apply(table[:, columns])
    # Twice, for what rounding left of the projection the first time.
    for _ in range(2):
        Y = Y - _project(Z, Y)
    return float((Y**2).sum())


def _project(Z: Floats, Y: Floats) -> Floats:
    """Y on the space that the columns of Z span."""
    if Z.shape[1] == 0:
        return np.zeros_like(Y)
    Q, R = np.linalg.qr(Z)
    U, sizes, _ = np.linalg.svd(R, full_matrices=False)
    kept = sizes > sizes[0] * max(Z.shape) * np.finfo(np.float64).eps
    basis = Q @ U[:, kept]
    projection: Floats = basis @ (basis.T @ Y)
    return projection
