"""Moments: all that squared loss needs to know of a table, and they add.

Centred sums of squares and products of two parts of a table combine exactly (Chan, Golub and
LeVeque 1979), so blocks of a file, partitions of a cluster and folds of a cross-validation are
accumulated apart and merged. Nothing here subtracts large raw sums: an accumulator works about
a provisional centre taken from its first block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError

__all__ = [
    "Margins",
    "Moments",
    "MomentsAccumulator",
    "first_counted",
    "leave_one_out",
    "provisional_centre",
]

Floats = npt.NDArray[np.float64]

# Copies of row blocks (conversion to float64, centring, weighting) are at most this large.
BLOCK_BYTES = 16 * 2**20
# A column whose squared mean is below this many variances loses at most two of sixteen digits
# when summed about zero, so it needs no centring copy.
BENIGN_RATIO = 100.0
# Rows that the provisional centre is taken from.
HEAD_ROWS = 32


@dataclass(frozen=True, eq=False)
class Margins:
    """Moments without the d × d matrix: what wide data can afford.

    Attributes
    ----------
    n_rows : int
        Rows of non-zero weight.
    weight : float
        Sum of the weights (the number of rows where there are none).
    x_mean, y_mean : ndarray
        Weighted means of the d features and c outputs.
    scatter : ndarray of shape (d,)
        Centred sums of squares, the diagonal of XᵀHX.
    xy : ndarray of shape (d, c)
        XᵀHY.
    yy : ndarray of shape (c, c)
        YᵀHY.
    """

    n_rows: int
    weight: float
    x_mean: Floats
    y_mean: Floats
    scatter: Floats
    xy: Floats
    yy: Floats


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, weight, means and centred products of a table.

    Attributes
    ----------
    n_rows, weight, x_mean, y_mean, xy, yy
        As in `Margins`.
    xx : ndarray of shape (d, d)
        The centred Gram matrix XᵀHX.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.array([[1.0], [2.0], [6.0]]), np.array([[0.0], [1.0], [2.0]])
    >>> whole = Moments.from_arrays(X, Y)
    >>> parts = Moments.from_arrays(X[:1], Y[:1]).merge(Moments.from_arrays(X[1:], Y[1:]))
    >>> whole.xx, parts.xx
    (array([[14.]]), array([[14.]]))
    """

    n_rows: int
    weight: float
    x_mean: Floats
    y_mean: Floats
    xx: Floats
    xy: Floats
    yy: Floats

    @property
    def scatter(self) -> Floats:
        """Diagonal of `xx`."""
        diagonal: Floats = np.diagonal(self.xx)
        return diagonal

    def checked(self) -> Moments:
        """Return these moments in float64, or raise where they are not finite or do not fit."""
        d, c = len(self.x_mean), len(self.y_mean)
        shapes = {"x_mean": (d,), "y_mean": (c,), "xx": (d, d), "xy": (d, c), "yy": (c, c)}
        arrays = {name: np.asarray(getattr(self, name), dtype=np.float64) for name in shapes}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise InputError(f"moments: {name} has shape {arrays[name].shape}, not {shape}")
            if not np.isfinite(arrays[name]).all():
                raise InputError(f"moments: {name} holds NaN or infinity")
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise InputError(f"moments: weight must be above 0, not {self.weight!r}")
        return Moments(n_rows=self.n_rows, weight=float(self.weight), **arrays)

    @classmethod
    def from_arrays(cls, X: Any, Y: Any, sample_weight: Any = None) -> Moments:
        """Moments of arrays in memory, without a second copy of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
        Y : array-like of shape (n,) or (n, c)
            Numbers; code classes first.
        sample_weight : array-like of shape (n,) or None

        Returns
        -------
        Moments
        """
        X, Y = np.asarray(X), np.asarray(Y, dtype=np.float64)
        Y = Y[:, None] if Y.ndim == 1 else Y
        if X.ndim != 2 or len(X) != len(Y):
            raise ValueError(f"X has shape {X.shape}, Y has {len(Y)} rows: need n × d and n rows")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        accumulator = MomentsAccumulator(X.shape[1], Y.shape[1])
        accumulator.add(X, Y, weights)
        return accumulator.finish()

    @classmethod
    def from_blocks(cls, blocks: Iterable[tuple[Any, Any, Any]]) -> Moments:
        """Moments of a stream of ``(X, Y, weights or None)`` blocks."""
        accumulator: MomentsAccumulator | None = None
        for X, Y, weights in blocks:
            if accumulator is None:
                accumulator = MomentsAccumulator(X.shape[1], Y.shape[1])
            accumulator.add(X, Y, weights)
        if accumulator is None:
            raise ValueError("no blocks: moments of an empty stream are not defined")
        return accumulator.finish()

    def merge(self, other: Moments) -> Moments:
        """Moments of both tables together (Chan's update); neither is changed."""
        if len(self.x_mean) != len(other.x_mean) or len(self.y_mean) != len(other.y_mean):
            raise ValueError(
                f"moments of {len(self.x_mean)} features and {len(self.y_mean)} outputs cannot "
                f"merge with {len(other.x_mean)} and {len(other.y_mean)}"
            )
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        dx, dy = other.x_mean - self.x_mean, other.y_mean - self.y_mean
        pull = self.weight * share
        xx = self.xx + other.xx
        _add_outer(xx, dx, pull)
        return Moments(
            n_rows=self.n_rows + other.n_rows,
            weight=weight,
            x_mean=self.x_mean + share * dx,
            y_mean=self.y_mean + share * dy,
            xx=xx,
            xy=self.xy + other.xy + pull * np.outer(dx, dy),
            yy=self.yy + other.yy + pull * np.outer(dy, dy),
        )


class MomentsAccumulator:
    """Adds row blocks into one set of moments, in place, in float64.

    Parameters
    ----------
    n_features, n_outputs : int

    Examples
    --------
    >>> import numpy as np
    >>> accumulator = MomentsAccumulator(1, 1)
    >>> accumulator.add(np.array([[1], [3]]), np.array([[0.0], [1.0]]))
    >>> accumulator.finish().xx
    array([[2.]])
    """

    def __init__(self, n_features: int, n_outputs: int) -> None:
        self._n_rows, self._weight = 0, 0.0
        self._x_centre: Floats | None = None
        self._y_centre = np.zeros(n_outputs)
        self._x_sum, self._y_sum = np.zeros(n_features), np.zeros(n_outputs)
        self._xx: Floats | None = None
        self._yx, self._yy = np.zeros((n_outputs, n_features)), np.zeros((n_outputs, n_outputs))

    def add(self, X: npt.NDArray[Any], Y: Floats, weights: Floats | None = None) -> None:
        """Add rows; X may have any numeric dtype and order and is not changed."""
        if len(X) == 0 or (weights is not None and not weights.any()):
            return
        if self._x_centre is None:
            self._start(X, Y, weights)
        assert self._x_centre is not None
        as_is = X.dtype == np.float64 and weights is None and not self._x_centre.any()
        as_is = as_is and (X.flags.c_contiguous or X.flags.f_contiguous)
        step = len(X) if as_is else max(1, BLOCK_BYTES // (8 * max(1, X.shape[1])))
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            self._add_block(X[rows], Y[rows], None if weights is None else weights[rows], as_is)

    def _start(self, X: npt.NDArray[Any], Y: Floats, weights: Floats | None) -> None:
        self._x_centre = provisional_centre(X, weights)
        self._y_centre = Y[first_counted(weights, len(Y), HEAD_ROWS)].mean(axis=0)

    def _add_block(
        self, X: npt.NDArray[Any], Y: Floats, weights: Floats | None, as_is: bool
    ) -> None:
        assert self._x_centre is not None
        x = X if as_is else np.subtract(X, self._x_centre, dtype=np.float64, order="C")
        y = Y - self._y_centre
        ones = np.ones(len(y))
        if weights is not None:
            # With rows multiplied by the root of their weight every product is weighted.
            ones = np.sqrt(weights)
            x *= ones[:, None]
            y *= ones[:, None]
        self._n_rows += int(np.count_nonzero(ones))
        self._weight += float(ones @ ones)
        self._x_sum += ones @ x
        self._y_sum += ones @ y
        self._yx += y.T @ x
        self._yy += y.T @ y
        # NumPy sees that both factors are one array and does half the work (syrk).
        product = x.T @ x
        if self._xx is None:
            self._xx = product
        else:
            self._xx += product

    def finish(self) -> Moments:
        """Return the moments of all rows added; the accumulator is used up."""
        if self._xx is None or self._x_centre is None:
            raise ValueError("no rows of positive weight were added: moments are not defined")
        x_shift, y_shift = self._x_sum / self._weight, self._y_sum / self._weight
        _add_outer(self._xx, x_shift, -self._weight)
        return Moments(
            n_rows=self._n_rows,
            weight=self._weight,
            x_mean=self._x_centre + x_shift,
            y_mean=self._y_centre + y_shift,
            xx=self._xx,
            xy=(self._yx - self._weight * np.outer(y_shift, x_shift)).T,
            yy=self._yy - self._weight * np.outer(y_shift, y_shift),
        )


def first_counted(weights: Floats | None, n_rows: int, most: int) -> Any:
    """The first rows of non-zero weight, as an index."""
    if weights is None:
        return slice(0, min(most, n_rows))
    alive = np.flatnonzero(weights[: 64 * most])[:most]
    return alive if alive.size else np.flatnonzero(weights)[:most]


def provisional_centre(X: npt.NDArray[Any], weights: Floats | None) -> Floats:
    """Centre about which sums lose no digits, from the first rows: zero where zero will do."""
    head = np.asarray(X[first_counted(weights, len(X), HEAD_ROWS)], dtype=np.float64)
    mean = np.ones(len(head)) @ head / len(head)
    scatter = np.einsum("ij,ij->j", head, head)
    scatter -= len(head) * mean**2
    benign = len(head) * mean**2 <= BENIGN_RATIO * np.maximum(scatter, 0.0)
    return np.where(benign, 0.0, mean)


def leave_one_out(parts: list[Moments]) -> list[Moments]:
    """Moments of all parts but one, for each, by prefix and suffix merges.

    Parameters
    ----------
    parts : list of Moments
        At least two, the folds of a cross-validation for example.

    Returns
    -------
    list of Moments
        Item i is the merge of every part except ``parts[i]``: about 3K merges in all, no pass
        over rows.
    """
    if len(parts) < 2:
        raise ValueError(f"leave_one_out needs two parts or more, not {len(parts)}")
    suffixes = [parts[-1]]
    for part in parts[-2:0:-1]:
        suffixes.append(part.merge(suffixes[-1]))
    suffixes.reverse()
    rest, prefix = [suffixes[0]], parts[0]
    for i in range(1, len(parts) - 1):
        rest.append(prefix.merge(suffixes[i]))
        prefix = prefix.merge(parts[i])
    return [*rest, prefix]


def _add_outer(matrix: Floats, vector: Floats, factor: float, step: int = 256) -> None:
    """``matrix += factor · vector vectorᵀ`` without a d × d temporary."""
    for start in range(0, len(vector), step):
        matrix[start : start + step] += factor * np.outer(vector[start : start + step], vector)
