"""Random starts that do not hang on the order of columns, rows or classes.

Random numbers are handed out to columns in order of relevance, so that a table with its columns
moved gets the same starts.

Columns are standardised and numeric targets scaled to unit size before a paper's γ, λ, μ or ρ is
applied. So answers do not depend on units.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np

from exactk.errors import InputError
from exactk.params import Choice
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices
from exactk.utils.linalg import row_norms, weighted_median

__all__ = [
    "LABELS",
    "TINY_SHARE",
    "Labels",
    "StandardTable",
    "column_unit",
    "random_matrix",
    "random_support",
    "standard_rows",
    "standard_table",
    "target_unit",
    "validate_init",
    "whole_table",
]


Labels = Literal["centred", "one-hot", "plus-minus"]
LABELS = Choice(options=("centred", "one-hot", "plus-minus"))
# A median this small beside the root mean square belongs to rows that are all but equal.
TINY_SHARE = 1e-9


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
        return row_norms(E) / self.root


def standard_table(
    problem: Problem,
    labels: Labels = "centred",
    *,
    robust: bool = False,
    merge: bool = False,
) -> StandardTable:
    """Read the candidate columns and the target of a problem.

    Parameters
    ----------
    problem : Problem
        With rows; `solve` has checked that.
    labels : {"centred", "one-hot", "plus-minus"}
        How classes are coded: one-hot with the means taken off, 0 and 1, or −1 and 1. Numbers
        are centred and divided by their common size, so that a paper's penalties mean the same
        in any units.
    robust : bool
        Numbers are centred at their medians, and their size is the median, not the root mean
        square: a few wrong rows move neither. For losses that are not squared.
    merge : bool
        The same row several times becomes one row with their weights.

    Returns
    -------
    StandardTable
    """
    X, Y, weights = standard_rows(problem)
    Y = _coded(problem, Y, weights, labels, robust)
    columns = problem.candidates
    if merge:
        X, Y, weights = _merged(X, Y, weights)
    if weights is None:
        return StandardTable(X, Y, np.ones(len(X)), columns)
    root = np.sqrt(weights)
    X *= root[:, None]
    return StandardTable(X, Y * root[:, None], root, columns)


def standard_rows(problem: Problem) -> tuple[Floats, Floats, Floats | None]:
    """Return candidate columns, centred and standardised, the target as given, and the weights.

    Rows of weight zero are left out.
    """
    rows, target = problem.rows, problem.target
    assert rows is not None
    assert target is not None
    columns = problem.candidates
    X, Y, weights = whole_table(problem), target.block(0, rows.n_rows), problem.weights
    if weights is not None:
        counted = np.flatnonzero(weights > 0)
        X, Y, weights = X[counted], Y[counted], weights[counted]
    # The columns were copied when they were read: from here on in place.
    X = np.ascontiguousarray(X)
    X -= problem.x_mean[columns]
    X *= problem.x_scale[columns] / column_unit(problem)
    return X, Y, weights


def whole_table(problem: Problem) -> Floats:
    """Return all candidate columns as they are, a new array, if memory allows."""
    rows, columns = problem.rows, problem.candidates
    assert rows is not None
    size = 8 * rows.n_rows * len(columns)
    if size > problem.memory_limit:
        raise InputError(
            f"this method reads the whole table as float64, {size / 2**30:.1f} GiB, more than "
            f"memory_limit={problem.memory_limit:,}", parameter="memory_limit",
            hint="raise memory_limit in Problem.from_arrays, or use method='exchange'",
        )  # fmt: skip
    return rows.columns(columns)


def _coded(
    problem: Problem, Y: Floats, weights: Floats | None, labels: Labels, robust: bool
) -> Floats:
    if problem.task == "classification":
        if labels == "centred":
            return Y - problem.y_mean
        return 2.0 * Y - 1.0 if labels == "plus-minus" else Y
    if not robust:
        return (Y - problem.y_mean) / target_unit(problem)
    w = np.ones(len(Y)) if weights is None else weights
    Y = Y - np.array([weighted_median(column, w) for column in Y.T])
    size = weighted_median(row_norms(Y), w) / np.sqrt(Y.shape[1])
    # Where most rows are equal the median says nothing about the others.
    return Y / (size if size > TINY_SHARE * target_unit(problem) else target_unit(problem))


def _merged(X: Floats, Y: Floats, weights: Floats | None) -> tuple[Floats, Floats, Floats | None]:
    """Rows that differ from each other, with the sum of the weights of their copies."""
    places: dict[tuple[bytes, bytes], int] = {}
    which = np.array(
        [
            places.setdefault((blake2b(x.tobytes()).digest(), y.tobytes()), len(places))
            for x, y in zip(X, Y, strict=True)
        ]
    )
    if len(places) == len(X):
        return X, Y, weights
    first = np.unique(which, return_index=True)[1]
    return X[first], Y[first], np.bincount(which, weights=weights).astype(np.float64)


def target_unit(problem: Problem) -> float:
    """Root mean square of centred numbers, all outputs together; 1 for classes."""
    if problem.task == "classification":
        return 1.0
    return float(np.sqrt(problem.total / (problem.weight * problem.n_outputs)))


def column_unit(problem: Problem) -> float:
    """Common size of the columns: 1 if they are standardised, else their root mean square."""
    if problem.scaled:
        return 1.0
    return float(np.sqrt(problem.scatter[problem.candidates].mean() / problem.weight))


def validate_init(init: object, problem: Problem) -> Floats:
    """Return a given W⁰ (features × outputs, standardised columns) for the candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> validate_init(np.zeros((4, 2)), problem)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: init must be a matrix of shape (4, 3), a row for each column of X
    and a column for each output, not of shape (4, 2)
    """
    shape = (problem.n_features, problem.n_outputs)
    try:
        raw = np.asarray(init)
        if raw.dtype.kind not in "iufO" or np.ma.isMaskedArray(init):
            raise TypeError(f"not {type(init).__name__} of {raw.dtype}")
        W = raw.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"init must be a matrix of numbers of shape {shape}: {error}", parameter="init"
        ) from error
    if W.shape != shape:
        raise InputError(
            f"init must be a matrix of shape {shape}, a row for each column of X and a column "
            f"for each output, not of shape {W.shape}", parameter="init",
        )  # fmt: skip
    if not np.isfinite(W).all():
        raise InputError("init has NaN or infinite entries", parameter="init")
    return np.ascontiguousarray(W[problem.candidates])


def random_support(problem: Problem, k: int, rng: np.random.Generator) -> Indices:
    """Return k candidates drawn at random, each set as likely as any other."""
    order = problem.by_relevance
    chosen: Indices = problem.candidates[order[rng.choice(len(order), size=k, replace=False)]]
    return chosen


def random_matrix(problem: Problem, rng: np.random.Generator, size: float) -> Floats:
    """Return a random W⁰ for the candidates: row norms of normal size, along the rows of XᵀHY.

    Directions drawn at random would tie the start to the order of the classes; the papers leave
    the distribution open.
    """
    order = problem.by_relevance
    sizes = np.empty(len(order))
    sizes[order] = rng.standard_normal(len(order))
    B = problem.cross[:, problem.candidates].T
    norms = np.sqrt((B**2).sum(axis=1, keepdims=True))
    directions = np.divide(B, norms, out=np.zeros_like(B), where=norms > 0)
    return size * sizes[:, None] * directions
