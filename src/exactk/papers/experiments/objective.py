"""The one function that grades every method: the squared error of a refit, from the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from exactk.data.targets import encode_target
from exactk.errors import InputError
from exactk.papers.experiments.column_check import (
    checked_support,
    checked_table,
    standardiser,
)
from exactk.params import Choice
from exactk.types import Floats

__all__ = ["residual"]


_TASK = Choice(words=("classification", "regression"))


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
        raise InputError(f"X has {len(table)} rows, y has {target.n_rows}")
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
