"""Which columns can be chosen, how they are scaled, and how they look at unit size."""

from __future__ import annotations

import numpy as np

from exactk.data.design_matrix import DesignMatrix
from exactk.data.gram import Gram
from exactk.data.moments import Margins, Moments
from exactk.errors import InputError, join_items
from exactk.types import Floats, Indices

__all__ = [
    "CONSTANT",
    "TINY_SQUARE",
    "UnitColumns",
    "are_proportions",
    "column_scales",
    "degrees_of_freedom",
    "usable_columns",
]


# Spread below this many roundings of the mean is no spread: the column is constant.
CONSTANT = 16 * np.finfo(np.float64).eps
# Sums of squares below this have lost digits to underflow.
TINY_SQUARE = 1e-290
# Values of columns that are compared with each other at once.
PAIR_VALUES = 2**20


def usable_columns(
    read: Margins | Moments, rows: DesignMatrix | None = None, weights: Floats | None = None
) -> Indices:
    """Return the columns that are not constant over the rows of non-zero weight."""
    spread = read.scatter
    with np.errstate(over="ignore"):
        floor = read.weight * (CONSTANT * np.abs(read.x_mean)) ** 2
    vanishing = np.flatnonzero((spread < TINY_SQUARE) & (np.abs(read.x_mean) < 1e-140))
    if rows is not None and vanishing.size:
        _refuse_underflow(rows, vanishing, weights)
    return np.flatnonzero(spread > floor)


def _refuse_underflow(
    rows: DesignMatrix, suspects: Indices, weights: Floats | None, step: int = 64
) -> None:
    """Columns whose squares are lost to underflow are not constant: say so."""
    counted = slice(None) if weights is None else np.flatnonzero(weights)
    names = rows.feature_names
    for start in range(0, len(suspects), step):
        part = suspects[start : start + step]
        values = rows.columns(part)[counted]
        lost = part[(values != values[:1]).any(axis=0)]
        if lost.size:
            shown = join_items(names[j] if names else f"x{j}" for j in lost)
            raise InputError(
                f"the values of column {shown} are so small that their squares vanish",
                parameter="X", hint="rescale them",
            )  # fmt: skip


def are_proportions(weight: float) -> bool:
    """Whether weights that sum to this are shares of the rows, not counts; rounding aside."""
    return weight <= 1.0 + 1e-9


def column_scales(read: Margins | Moments, usable: Indices, scale: bool) -> Floats:
    """Return what each column is multiplied by: 1 / sd, or 1; 0 for constant columns."""
    out = np.zeros(len(read.x_mean))
    if not scale:
        out[usable] = 1.0
        return out
    out[usable] = np.sqrt(degrees_of_freedom(read.weight) / read.scatter[usable])
    return out


def degrees_of_freedom(weight: float) -> float:
    """Return the divisor of a sum of squares that gives a variance."""
    # n − 1 as in the papers; weights that sum to one or less are shares, not counts.
    return weight if are_proportions(weight) else weight - 1


class UnitColumns:
    """Centred columns of norm one, as a table or, without one, a Gram matrix shows them."""

    def __init__(
        self,
        held: Gram,
        rows: DesignMatrix | None,
        weights: Floats | None,
        mean: Floats,
        scale: Floats,
        size: Floats,
    ) -> None:
        self._held, self._rows, self._weights = held, rows, weights
        self._mean, self._scale, self._size = mean, scale, size

    def random_projection(self) -> Floats:
        """Return the product of every column with one random vector."""
        rng = np.random.default_rng(0)
        unit = np.divide(1.0, self._size, out=np.zeros_like(self._size), where=self._size > 0)
        if self._rows is None:
            # A random combination of the columns stands in for the vector.
            mix = rng.standard_normal(len(unit)) * unit
            combined: Floats = (self._held.whole() @ mix) * unit
            return combined / max(1.0, float(np.abs(combined).max()))
        right = rng.standard_normal((self._rows.n_rows, 1)) / np.sqrt(self._rows.n_rows)
        if self._weights is not None:
            right *= np.sqrt(self._weights)[:, None]
        self._held.passes += 1
        product = self._rows.products(right)[0] - right.sum() * self._mean
        return product * self._scale * unit

    def pairwise_correlation(self, first: Indices, second: Indices) -> Floats:
        """Return the correlation of each column in `first` with that beside it in `second`."""
        out = np.empty(len(first))
        if self._rows is None:
            out[:] = self._held.whole()[first, second]
            return out / (self._size[first] * self._size[second])
        step = max(1, PAIR_VALUES // self._rows.n_rows)
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            # Many pairs have a column in common, which is read once.
            columns, place = np.unique([first[part], second[part]], return_inverse=True)
            z, (one, other) = self._unit(columns), place.reshape(2, -1)
            out[part] = np.einsum("ij,ij->j", z[:, one], z[:, other])
        return out

    def _unit(self, columns: Indices) -> Floats:
        assert self._rows is not None
        z = (self._rows.columns(columns) - self._mean[columns]) * self._scale[columns]
        if self._weights is not None:
            z *= np.sqrt(self._weights)[:, None]
        unit: Floats = z / self._size[columns]
        return unit
