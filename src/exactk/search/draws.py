"""Rows in an order of their own, dealt out at random: draws that do not know where a row stands.

A draw by row numbers would be another for the same table sorted differently. Here each row has a
key, its share in ‖B‖² = ‖XᵀHY‖², which neither the order of rows nor order, sign, shift or scale of
columns nor the names of classes change; random numbers go with the place of a row in the order of
keys, within its class. A row of whole weight w takes w places, as w equal rows do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.problem import Problem
from exactk.sources import Rows
from exactk.targets import Target

__all__ = ["LEAST_PLACES", "Places", "count_places"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# A key is made of so many values of the table at most, but of so many columns at least, those
# that go best with the target first; rows that agree in all of them are told apart by number.
KEY_VALUES = 2**25
KEY_COLUMNS = 64
# Values that are standardised at a time, and columns at least: a sparse table is passed over for
# every chunk.
CHUNK_VALUES = 2**21
CHUNK_COLUMNS = 16
# More places than these are not shuffled: rows then go to one half or the other as a whole.
MOST_PLACES = 2**25
# On halves of two rows every column fits perfectly.
LEAST_PLACES = 6


def count_places(problem: Problem) -> int:
    """Return how many rows there are to draw from; one of whole weight w counts w times."""
    weights = problem.weights
    if weights is None or not _are_whole(weights):
        return problem.n_rows
    return int(weights.sum())


def _are_whole(weights: Floats) -> bool:
    """Whether weights are numbers of equal rows, few enough to be shuffled one by one."""
    return bool(weights.sum() <= MOST_PLACES and (weights == np.round(weights)).all())


@dataclass(frozen=True, eq=False)
class Places:
    """The rows of a problem in the order of their keys, class after class.

    Attributes
    ----------
    rows : Rows
    target : Target
    weights : ndarray or None
        As the problem has them; None also if they are counted by `strata`.
    strata : list of ndarray of intp
        Row numbers, one array for each class; a row of whole weight w is there w times.
    repeated : bool
        Whether any row is there more than once.
    """

    rows: Rows
    target: Target
    weights: Floats | None
    strata: list[Indices]
    repeated: bool

    @classmethod
    def of(cls, problem: Problem) -> Places:
        """Put the rows of a problem in memory into order."""
        rows, target, weights = problem.rows, problem.target, problem.weights
        assert rows is not None
        assert target is not None
        whole = weights is None or _are_whole(weights)
        alive = np.arange(rows.n_rows) if weights is None else np.flatnonzero(weights)
        order = alive[np.argsort(_row_keys(problem, rows, target)[alive], kind="stable")]
        counts = None if weights is None or not whole else weights[order].astype(np.intp)
        places = order if counts is None else np.repeat(order, counts)
        repeated = counts is not None and bool((counts > 1).any())
        return cls(rows, target, None if whole else weights, _by_class(places, target), repeated)

    def deal(self, n_parts: int, rng: np.random.Generator) -> list[Indices]:
        """Shuffle the rows of each class and deal them out; a row that is there twice may be split.

        Returns
        -------
        list of ndarray of intp
            Row numbers, as often as the rows count.
        """
        shuffled = [stratum[rng.permutation(len(stratum))] for stratum in self.strata]
        order = np.concatenate(shuffled)
        return [np.sort(order[part::n_parts]) for part in range(n_parts)]

    def taken(self, drawn: Indices) -> tuple[Rows, Target, Floats | None]:
        """Return the table, the target and the weights of rows that were drawn."""
        part, weights = drawn, None
        if self.repeated:
            part, counts = np.unique(drawn, return_counts=True)
            weights = counts.astype(np.float64)
        elif self.weights is not None:
            weights = self.weights[part]
        return self.rows.take(part), self.target.subset(part), weights


def _by_class(places: Indices, target: Target) -> list[Indices]:
    """Split rows by class, the class of the first row first: whatever the classes are called."""
    if target.codes is None:
        return [places]
    codes = target.codes[places]
    _, first = np.unique(codes, return_index=True)
    return [places[codes == codes[at]] for at in np.sort(first)]


def _row_keys(problem: Problem, rows: Rows, target: Target) -> Floats:
    """Return for each row its share in ‖B‖², of the columns that have most of it."""
    columns = np.setdiff1d(problem.usable, problem.copies)
    if columns.size == 0:
        raise InputError("every column is constant: there is nothing to draw half-samples for")
    alone = (problem.cross[:, columns] ** 2).sum(axis=0) / problem.scatter[columns]
    most = max(KEY_COLUMNS, KEY_VALUES // rows.n_rows)
    columns = columns[np.argsort(-alone, kind="stable")][:most]
    towards = np.zeros((rows.n_rows, problem.n_outputs))
    step = max(CHUNK_COLUMNS, CHUNK_VALUES // rows.n_rows)
    for start in range(0, len(columns), step):
        part = columns[start : start + step]
        x = (rows.columns(part) - problem.x_mean[part]) * problem.x_scale[part]
        towards += x @ problem.cross[:, part].T
    if target.codes is None:
        own = np.einsum("ij,ij->i", towards, target.block(0, rows.n_rows))
    else:
        own = towards[np.arange(rows.n_rows), target.codes]
    keys: Floats = own - towards @ problem.y_mean
    return keys
