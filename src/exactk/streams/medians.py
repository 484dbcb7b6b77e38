"""Exact weighted medians of the numbers of a stream, in a few passes and little memory.

A pass counts the weight in the cells of a bracket that the median lies in, and the next pass looks
at its cell alone, until there are so few different values that they can be kept and sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from exactk.linalg import row_norms
from exactk.streams.base import Block, Fold, OnRows, Stream
from exactk.streams.coding import Coding
from exactk.streams.moments import check_block, outputs

__all__ = ["norm_median", "output_medians"]

Floats = npt.NDArray[np.float64]

CELLS = 4096
# Different values that are kept and sorted at most.
FEW_VALUES = 2**14
# Brackets are wider than need be by this share of a cell: edges have rounding errors.
SLACK = 1e-3
# Weights below a value that differ from one half by less than this share are one half: as for
# repeated rows, the median is then the mean of two values.
ROUNDING = 1e-12


@dataclass(frozen=True)
class _Bracket:
    """Where one of the two values about the middle lies.

    Attributes
    ----------
    column : int
        Of the numbers.
    upper : bool
        Whether the smallest value is meant up to which there is more than half of the weight, and
        not at least half.
    low, high : float
    """

    column: int
    upper: bool
    low: float
    high: float

    def cells(self, values: Floats) -> npt.NDArray[np.intp]:
        """Return the cell of each value."""
        width = self.high - self.low
        share = (values - self.low) / width if width > 0 else np.zeros(len(values))
        return np.minimum((share * CELLS).astype(np.intp), CELLS - 1)

    def cell(self, below: Floats, total: float) -> _Bracket:
        """Return the cell that the value lies in, given the weight up to the end of each."""
        i, size = self.first(below, total), (self.high - self.low) / CELLS
        low = np.nextafter(self.low + (i - SLACK) * size, -np.inf)
        high = np.nextafter(self.low + (i + 1 + SLACK) * size, np.inf)
        return replace(self, low=max(float(low), self.low), high=min(float(high), self.high))

    def first(self, below: Floats, total: float) -> int:
        """Return the first place with half of the weight, or more, up to it."""
        half = 0.5 * total
        if self.upper:
            place = np.searchsorted(below, half * (1.0 + ROUNDING), side="right")
        else:
            place = np.searchsorted(below, half * (1.0 - ROUNDING))
        return min(int(place), len(below) - 1)


@dataclass
class _Count:
    """What a pass found about one bracket.

    Attributes
    ----------
    before : float
        Weight of the values below it.
    cells : ndarray
        Weight in each cell.
    values, weights : ndarray or None
        The values in it; None if they are too many.
    """

    before: float
    cells: Floats
    values: Floats | None
    weights: Floats | None

    def keep(self, values: Floats, weights: Floats) -> None:
        """Take values in, equal ones once."""
        if self.values is None or self.weights is None:
            return
        together = np.concatenate([self.values, values])
        found, which = np.unique(together, return_inverse=True)
        if len(found) > FEW_VALUES:
            self.values = self.weights = None
            return
        both = np.concatenate([self.weights, weights])
        self.values = found
        self.weights = np.bincount(which, both, len(found)).astype(np.float64)


@dataclass
class _Counts:
    total: float
    of: list[_Count]


class _CountFold(Fold[_Counts, _Counts]):
    """Counts the weights in brackets; of the numbers, or of their distances from a centre."""

    def __init__(self, coding: Coding, brackets: list[_Bracket], centre: Floats | None) -> None:
        self.coding, self.brackets, self.centre = coding, brackets, centre

    def begin(self) -> _Counts:
        return _Counts(
            0.0, [_Count(0.0, np.zeros(CELLS), np.zeros(0), np.zeros(0)) for _ in self.brackets]
        )

    def add(self, state: _Counts, block: Block) -> None:
        check_block(block)
        Y = outputs(block, self.coding, None)
        weights = np.ones(len(Y)) if block.weights is None else block.weights
        Y, weights = Y[weights > 0], weights[weights > 0]
        if self.centre is not None:
            Y = row_norms(Y - self.centre)[:, None]
        state.total += float(weights.sum())
        for bracket, count in zip(self.brackets, state.of, strict=True):
            values = Y[:, bracket.column]
            count.before += float(weights[values < bracket.low].sum())
            inside = (values >= bracket.low) & (values <= bracket.high)
            values, own = values[inside], weights[inside]
            count.cells += np.bincount(bracket.cells(values), own, CELLS)
            count.keep(values, own)

    def close(self, state: _Counts) -> _Counts | None:
        return state if state.total > 0 else None

    def merge(self, one: _Counts, other: _Counts) -> _Counts:
        merged = _Counts(one.total + other.total, [])
        for mine, theirs in zip(one.of, other.of, strict=True):
            count = _Count(
                mine.before + theirs.before, mine.cells + theirs.cells, mine.values, mine.weights
            )
            if theirs.values is None or theirs.weights is None:
                count.values = count.weights = None
            else:
                count.keep(theirs.values, theirs.weights)
            merged.of.append(count)
        return merged


def output_medians(
    stream: Stream, coding: Coding, mean: Floats, spread: float, on_rows: OnRows | None = None
) -> Floats:
    """Return the weighted median of each output.

    Parameters
    ----------
    stream : Stream
    coding : Coding
        Of numbers.
    mean : ndarray of shape (c,)
        Their weighted means.
    spread : float
        At least the standard deviation of each: no median is farther from the mean.
    on_rows : callable or None
        Told how many rows were read, in each pass.

    Returns
    -------
    ndarray of shape (c,)
    """
    reach = spread * (1.0 + 1e-6)
    brackets = [
        _Bracket(column, upper, float(middle - reach), float(middle + reach))
        for column, middle in enumerate(mean)
        for upper in (False, True)
    ]
    return _medians(stream, coding, brackets, None, on_rows)


def norm_median(
    stream: Stream, coding: Coding, centre: Floats, bound: float, on_rows: OnRows | None = None
) -> float:
    """Return the weighted median of the distances of the outputs from a centre.

    Parameters
    ----------
    stream, coding, on_rows
        As in `output_medians`.
    centre : ndarray of shape (c,)
    bound : float
        Root of the mean squared distance: no median is above √2 times that.

    Returns
    -------
    float
    """
    high = bound * np.sqrt(2.0) * (1.0 + 1e-6)
    brackets = [_Bracket(0, upper, 0.0, float(high)) for upper in (False, True)]
    return float(_medians(stream, coding, brackets, centre, on_rows)[0])


def _medians(
    stream: Stream,
    coding: Coding,
    brackets: list[_Bracket],
    centre: Floats | None,
    on_rows: OnRows | None,
) -> Floats:
    """Narrow brackets down, all in the same passes; they come in pairs, the lower first."""
    found: dict[tuple[int, bool], float] = {}
    while brackets:
        counts = stream.reduce(_CountFold(coding, brackets, centre), on_rows)
        narrower = []
        for bracket, count in zip(brackets, counts.of, strict=True):
            if count.values is None:
                below = count.before + np.cumsum(count.cells)
                narrower.append(bracket.cell(below, counts.total))
            else:
                below = count.before + np.cumsum(cast(Floats, count.weights))
                place = bracket.first(below, counts.total)
                found[bracket.column, bracket.upper] = float(count.values[place])
        brackets = narrower
    n_columns = len(found) // 2
    return np.array([0.5 * (found[j, False] + found[j, True]) for j in range(n_columns)])
