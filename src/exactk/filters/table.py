"""The rows of a problem as filters read them: standardised columns, a class and a weight a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactk.columns import are_shares
from exactk.iterative.table import column_unit, standard_rows
from exactk.problem import Problem

__all__ = [
    "ClassTable",
    "Labels",
    "class_sizes",
    "class_table",
    "column_blocks",
    "labels",
    "scatters",
]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Values of a block of columns: some megabytes, so that a pass over it stays near the caches.
BLOCK_VALUES = 2**20
# Where classes do not overlap at all: what is left of the scatter within them is rounding.
LEAST_WITHIN = 1e-14
# A class of a smaller share of the weight than this has a mean and a size of rounding alone.
LEAST_SHARE = 1e-16


@dataclass(frozen=True, eq=False)
class Labels:
    """Class and weight of the rows that count.

    Attributes
    ----------
    rows : ndarray of intp or None
        Which rows these are; None for all.
    codes : ndarray of intp of shape (n,)
    weights : ndarray of shape (n,)
        Ones where the problem has no weights; weights that sum to one or less are shares, and are
        scaled to the number of rows.
    n_classes : int
    """

    rows: Indices | None
    codes: Indices
    weights: Floats
    n_classes: int

    @property
    def sizes(self) -> Floats:
        """Weight of each class: its number of rows where there are no weights."""
        sizes: Floats = np.bincount(self.codes, self.weights, self.n_classes).astype(np.float64)
        return sizes


@dataclass(frozen=True, eq=False)
class ClassTable:
    """All candidate columns, centred and standardised, with the labels of the rows."""

    X: Floats
    labels: Labels


def labels(problem: Problem) -> Labels:
    """Return class and weight of each row of weight above zero; `solve` has checked the classes."""
    assert problem.target is not None
    assert problem.target.codes is not None
    codes, weights = problem.target.codes, problem.weights
    rows = None
    if weights is not None:
        rows = np.flatnonzero(weights > 0)
        codes, weights = codes[rows], weights[rows]
    weights = np.ones(len(codes)) if weights is None else weights
    if are_shares(problem.weight):
        # Shares, not counts: neighbours are counted by weight.
        weights = weights * (len(codes) / problem.weight)
    return Labels(rows, codes, weights, problem.n_outputs)


def class_sizes(problem: Problem) -> Floats:
    """Return the weight of each class from the moments, above zero."""
    sizes: Floats = problem.weight * np.maximum(problem.y_mean, LEAST_SHARE)
    return sizes


def scatters(problem: Problem) -> tuple[Floats, Floats]:
    """Return the scatter of each candidate between the classes and within them.

    Functions of the moments: with one-hot classes row c of XᵀHY is n_c(μ_c − μ), and what does
    not lie between the classes lies within them.
    """
    S = problem.candidates
    cross, sizes = problem.cross[:, S], class_sizes(problem)
    between: Floats = np.einsum("cj,cj,c->j", cross, cross, 1.0 / sizes)
    total = problem.scatter[S]
    return between, np.maximum(total - between, LEAST_WITHIN * total)


def class_table(problem: Problem) -> ClassTable:
    """Return the whole table, for filters that compare rows."""
    return ClassTable(standard_rows(problem)[0], labels(problem))


def column_blocks(problem: Problem, rows: Indices | None) -> Iterator[tuple[slice, Floats]]:
    """Return some candidate columns at a time, centred and standardised.

    Parameters
    ----------
    problem : Problem
    rows : ndarray of intp or None
        The rows to keep (`Labels.rows`).

    Yields
    ------
    part : slice
        Positions among the candidates.
    X : ndarray of shape (n, m)
        A new array.
    """
    assert problem.rows is not None
    unit, step = column_unit(problem), max(1, BLOCK_VALUES // max(1, problem.rows.n_rows))
    for start in range(0, len(problem.candidates), step):
        part = slice(start, min(start + step, len(problem.candidates)))
        columns = problem.candidates[part]
        X = problem.rows.columns(columns)
        X = X if rows is None else X[rows]
        X -= problem.x_mean[columns]
        X *= problem.x_scale[columns] / unit
        yield part, X
