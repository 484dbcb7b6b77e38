"""The rows of a problem as networks read them: an order and a sign of the columns of their own.

Networks start from random weights. Handed out to the columns as they stand in the table, these
would make the answer depend on the order of the columns and on their signs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactk.iterative.table import standard_rows, target_unit
from exactk.problem import Problem

__all__ = ["DeepTable", "Kind", "deep_table", "row_batches"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Kind = Literal["classes", "labels", "numbers"]


@dataclass(frozen=True, eq=False)
class DeepTable:
    """Candidate columns and what is to be predicted from them, as dense arrays.

    Attributes
    ----------
    X : ndarray of shape (n, m)
        Centred, standardised candidate columns in the order of `columns`, each turned to the sign
        that `deep_table` describes.
    Y : ndarray of shape (n, c)
        0 and 1 for classes and labels; numbers are centred and of unit size.
    weights : ndarray of shape (n,)
        Weights of the rows; their sum is 1.
    columns : ndarray of shape (m,)
        Which columns of the problem these are.
    kind : {"classes", "labels", "numbers"}
        One class a row, several labels a row, or numbers.
    """

    X: Floats
    Y: Floats
    weights: Floats
    columns: Indices
    kind: Kind


def deep_table(problem: Problem, *, reconstruct: bool = False) -> DeepTable:
    """Read the candidate columns and the target of a problem.

    Columns stand in order of relevance, and where y is to have no part in it, of their fourth
    moment. A column is turned so that its mean product with the squared length of the rows,
    Σ_i w_i x_ij ‖x_i‖², is positive: a rule that does not hang on the order of rows or columns,
    nor on the signs of the others.

    Parameters
    ----------
    problem : Problem
        With rows; `solve` has checked that.
    reconstruct : bool
        The target is the table itself, and y is not looked at.

    Returns
    -------
    DeepTable
    """
    X, Y, weights = standard_rows(problem)
    w = np.full(len(X), 1.0 / len(X)) if weights is None else weights / weights.sum()
    order = np.argsort(-(w @ X**4), kind="stable") if reconstruct else problem.by_relevance
    X = np.ascontiguousarray(X[:, order])
    X *= np.where((w * np.einsum("ij,ij->i", X, X)) @ X < 0, -1.0, 1.0)
    columns = problem.candidates[order]
    if reconstruct:
        return DeepTable(X, X, w, columns, "numbers")
    if problem.task == "classification":
        return DeepTable(X, Y, w, columns, "labels" if problem.classes is None else "classes")
    return DeepTable(X, (Y - problem.y_mean) / target_unit(problem), w, columns, "numbers")


def row_batches(
    n: int, batch_size: int | None, rng: np.random.Generator
) -> Iterator[Indices | slice]:
    """Return the rows of one step after the other, until every row has had its turn.

    All rows at once where there is no `batch_size`; the generator is then left alone.

    Examples
    --------
    >>> [rows for rows in row_batches(5, None, np.random.default_rng(0))]
    [slice(None, None, None)]
    >>> sorted(len(rows) for rows in row_batches(5, 2, np.random.default_rng(0)))
    [1, 2, 2]
    """
    if batch_size is None or batch_size >= n:
        yield slice(None)
        return
    moved = rng.permutation(n)
    for start in range(0, n, batch_size):
        yield moved[start : start + batch_size]
