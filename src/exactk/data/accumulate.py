"""Adds row blocks up into moments, about a provisional centre and in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.moments import Moments, add_outer
from exactk.types import Floats
from exactk.utils.linalg import add_gram

__all__ = [
    "BENIGN_RATIO",
    "HEAD_ROWS",
    "MomentsAccumulator",
    "first_weighted_rows",
    "mirror_upper",
    "provisional_centre",
]


# Copies of row blocks (conversion to float64, centring, weighting) are at most this large.
BLOCK_BYTES = 16 * 2**20
# A column whose squared mean is below this many variances loses at most two of sixteen digits
# when summed about zero, so it needs no centring copy.
BENIGN_RATIO = 100.0
# Rows that the provisional centre is taken from.
HEAD_ROWS = 32


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
        # Its upper half is added up in place by `update`.
        self._half: Floats | None = None
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

    def update(self, X: Floats, Y: Floats, weights: Floats | None = None) -> None:
        """Add rows in float64 and Fortran order that nobody else needs: X is overwritten.

        Products are added up in place by SciPy's BLAS, so that d × d numbers are held once; the
        threads that accumulate side by side should leave it one thread each.
        """
        if len(X) == 0 or (weights is not None and not weights.any()):
            return
        if self._x_centre is None:
            self._start(X, Y, weights)
        assert self._x_centre is not None
        if self._x_centre.any():
            X -= self._x_centre
        self._add_sums(X, Y - self._y_centre, weights)
        if self._half is None:
            self._half = np.zeros((X.shape[1], X.shape[1]), order="F")
        add_gram(self._half, X)

    def add_outputs(self, n_outputs: int) -> None:
        """Make room for outputs that were zero in all rows so far: new classes."""
        more = n_outputs - len(self._y_sum)
        self._y_centre, self._y_sum = (
            np.pad(self._y_centre, (0, more)),
            np.pad(self._y_sum, (0, more)),
        )
        self._yx, self._yy = np.pad(self._yx, ((0, more), (0, 0))), np.pad(self._yy, (0, more))

    def _start(self, X: npt.NDArray[Any], Y: Floats, weights: Floats | None) -> None:
        self._x_centre = provisional_centre(X, weights)
        self._y_centre = Y[first_weighted_rows(weights, len(Y), HEAD_ROWS)].mean(axis=0)

    def _add_block(
        self, X: npt.NDArray[Any], Y: Floats, weights: Floats | None, as_is: bool
    ) -> None:
        assert self._x_centre is not None
        x = X if as_is else np.subtract(X, self._x_centre, dtype=np.float64, order="C")
        self._add_sums(x, Y - self._y_centre, weights)
        # NumPy sees that both factors are one array and does half the work (syrk).
        product = x.T @ x
        if self._xx is None:
            self._xx = product
        else:
            self._xx += product

    @property
    def is_empty(self) -> bool:
        """Whether no row of positive weight was added yet."""
        return self._x_centre is None

    @property
    def is_finite(self) -> bool:
        """Whether neither NaN nor infinity was added, and no sum has overflowed."""
        diagonal = self._xx if self._half is None else self._half
        sums = [self._x_sum, self._y_sum]
        sums += [] if diagonal is None else [np.diagonal(diagonal)]
        return all(bool(np.isfinite(part).all()) for part in sums)

    def _add_sums(self, x: Floats, y: Floats, weights: Floats | None) -> None:
        """Add all but the Gram matrix, of centred rows; weighted rows are multiplied in place."""
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

    def _whole(self) -> Floats | None:
        """The products of all pairs of columns, both halves."""
        if self._half is None:
            return self._xx
        mirror_upper(self._half)
        if self._xx is not None:
            self._half += self._xx
        return self._half

    def finish(self) -> Moments:
        """Return the moments of all rows added; the accumulator is used up."""
        xx = self._whole()
        if xx is None or self._x_centre is None:
            raise ValueError("no rows of positive weight were added: moments are not defined")
        x_shift, y_shift = self._x_sum / self._weight, self._y_sum / self._weight
        add_outer(xx, x_shift, -self._weight)
        return Moments(
            n_rows=self._n_rows,
            weight=self._weight,
            x_mean=self._x_centre + x_shift,
            y_mean=self._y_centre + y_shift,
            xx=xx,
            xy=(self._yx - self._weight * np.outer(y_shift, x_shift)).T,
            yy=self._yy - self._weight * np.outer(y_shift, y_shift),
        )


def first_weighted_rows(weights: Floats | None, n_rows: int, most: int) -> Any:
    """The first rows of non-zero weight, as an index."""
    if weights is None:
        return slice(0, min(most, n_rows))
    alive = np.flatnonzero(weights[: 64 * most])[:most]
    return alive if alive.size else np.flatnonzero(weights)[:most]


def provisional_centre(X: npt.NDArray[Any], weights: Floats | None) -> Floats:
    """Centre about which sums lose no digits, from the first rows: zero where zero will do."""
    head = np.asarray(X[first_weighted_rows(weights, len(X), HEAD_ROWS)], dtype=np.float64)
    mean = np.ones(len(head)) @ head / len(head)
    scatter = np.einsum("ij,ij->j", head, head)
    scatter -= len(head) * mean**2
    benign = len(head) * mean**2 <= BENIGN_RATIO * np.maximum(scatter, 0.0)
    # About NaN or infinity every row would turn out to be bad, and not the one that is.
    return np.where(benign | ~np.isfinite(mean), 0.0, mean)


def mirror_upper(matrix: Floats, step: int = 256) -> None:
    """Write the upper half of a matrix into its lower half, in blocks that fit the cache."""
    for start in range(0, len(matrix), step):
        rows = slice(start, start + step)
        for left in range(0, start, step):
            columns = slice(left, left + step)
            matrix[rows, columns] = matrix[columns, rows].T
        block = np.triu(matrix[rows, rows])
        matrix[rows, rows] = block + np.triu(block, 1).T
