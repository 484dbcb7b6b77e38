"""The rows of a problem as the papers' methods read them: standardised, and all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactk.checks import Choice
from exactk.errors import InputError
from exactk.problem import Problem

__all__ = [
    "LABELS",
    "Labels",
    "StandardTable",
    "given_matrices",
    "standard_table",
    "start_matrix",
    "target_unit",
]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Labels = Literal["centred", "one-hot", "plus-minus"]
LABELS = Choice(words=("centred", "one-hot", "plus-minus"))


@dataclass(frozen=True, eq=False)
class StandardTable:
    """Candidate columns and target as dense arrays.

    Rows of weight zero are left out; the others are multiplied by the root of their weight, so
    that squares add up as the weights say.

    Attributes
    ----------
    X : ndarray of shape (n, m)
        Centred, standardised candidate columns, times √w.
    Y : ndarray of shape (n, c)
        The target, times √w.
    root : ndarray of shape (n,)
        √w; ones where the problem has no weights.
    columns : ndarray of shape (m,)
        Which columns of the problem these are.
    """

    X: Floats
    Y: Floats
    root: Floats
    columns: Indices

    @property
    def weight(self) -> float:
        """Sum of the row weights: the number of rows that whole weights stand for."""
        return float(self.root @ self.root)

    def row_norms(self, E: Floats) -> Floats:
        """Norms of the rows of a residual, without their weights."""
        norms: Floats = np.sqrt(np.einsum("ij,ij->i", E, E)) / self.root
        return norms


def standard_table(problem: Problem, labels: Labels = "centred") -> StandardTable:
    """Read the candidate columns and the target of a problem.

    Parameters
    ----------
    problem : Problem
        With rows; `solve` has checked that.
    labels : {"centred", "one-hot", "plus-minus"}
        How classes are coded: one-hot with the means taken off, 0 and 1, or −1 and 1. Numbers
        are centred, and divided by their common root mean square so that a paper's penalties
        mean the same in any units.

    Returns
    -------
    StandardTable
    """
    rows, target = problem.rows, problem.target
    assert rows is not None
    assert target is not None
    size = 8 * rows.n_rows * len(problem.candidates)
    if size > problem.memory_limit:
        raise InputError(
            f"this method reads the whole table as float64, {size / 2**30:.1f} GiB, more than "
            f"memory_limit={problem.memory_limit:,}; raise memory_limit in Problem.from_arrays, "
            f"or use method='exchange'"
        )
    columns = problem.candidates
    X = rows.columns(columns)
    X = np.subtract(X, problem.x_mean[columns], order="C")
    X *= problem.x_scale[columns]
    Y = target.block(0, rows.n_rows)
    if problem.task != "classification" or labels == "centred":
        Y = (Y - problem.y_mean) / target_unit(problem)
    elif labels == "plus-minus":
        Y = 2.0 * Y - 1.0
    if problem.weights is None:
        return StandardTable(X, Y, np.ones(len(X)), columns)
    counted = problem.weights > 0
    root = np.sqrt(problem.weights[counted])
    return StandardTable(X[counted] * root[:, None], Y[counted] * root[:, None], root, columns)


def target_unit(problem: Problem) -> float:
    """Root mean square of centred numbers, all outputs together; 1 for classes."""
    if problem.task == "classification":
        return 1.0
    return float(np.sqrt(problem.total / (problem.weight * problem.n_outputs)))


def given_matrices(init: object, n_starts: int, problem: Problem) -> list[Floats]:
    """Return the W⁰ in an ``init``, if any: one start, which leaves no room for random ones."""
    if init is None:
        return []
    if n_starts != 1:
        raise InputError("init is one start; leave it out, or n_starts at 1")
    return [start_matrix(init, problem)]


def start_matrix(init: object, problem: Problem) -> Floats:
    """Return a given W⁰ (features × outputs, standardised columns) for the candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> start_matrix(np.zeros((4, 2)), problem)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: init must be a matrix of shape (4, 3), a row for each column of X
    and a column for each output, not of shape (4, 2)
    """
    shape = (problem.n_features, problem.n_outputs)
    try:
        W = np.array(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"init must be a matrix of numbers of shape {shape}: {error}") from error
    if W.shape != shape:
        raise InputError(
            f"init must be a matrix of shape {shape}, a row for each column of X and a column "
            f"for each output, not of shape {W.shape}"
        )
    if not np.isfinite(W).all():
        raise InputError("init has NaN or infinite entries")
    return np.ascontiguousarray(W[problem.candidates])
