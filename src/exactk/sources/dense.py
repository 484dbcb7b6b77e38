"""Dense arrays of any numeric dtype and order, read in blocks, never copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.moments import (
    HEAD_ROWS,
    Margins,
    Moments,
    MomentsAccumulator,
    first_counted,
    provisional_centre,
)
from exactk.sources.base import Rows, refuse_non_finite
from exactk.targets import Target

__all__ = ["DenseRows"]

Floats = npt.NDArray[np.float64]

# A block this size is read from memory once and then served by the processor's cache for the
# sums, squares and products of a margins pass (measured: 1–3 MB is best, 10 MB a third slower).
CACHE_BYTES = 2 * 2**20
# Rates behind the choice of the Gram matrix; only their ratios matter. The whole matrix is
# written, mirrored and scaled, most of it memory never touched before.
FLOPS, BYTES, FIRST_TOUCH = 5e10, 2e10, 6e8


class DenseRows(Rows):
    """Rows of a dense array.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Numeric or boolean; kept by reference and never changed.
    feature_names : tuple of str or None
    """

    def __init__(self, X: npt.NDArray[Any], feature_names: tuple[str, ...] | None = None) -> None:
        self._X = X
        self.n_rows, self.n_features = X.shape
        self.feature_names = feature_names
        n, d = X.shape
        self.pass_cost = n * d * 8 / BYTES * (1 if X.dtype == np.float64 else 4) + 2e-5
        self.gram_cost = n * d * d / FLOPS + 8 * d * d / FIRST_TOUCH

    def margins(self, target: Target, weights: Floats | None) -> Margins:  # noqa: D102
        with np.errstate(over="ignore", invalid="ignore"):
            return self._margins(target, weights)

    def _margins(self, target: Target, weights: Floats | None) -> Margins:
        n, d, c = self.n_rows, self.n_features, target.n_outputs
        y_centre = target.take(first_counted(weights, n, HEAD_ROWS)).mean(axis=0)
        sums, squares = np.zeros((c + 1, d)), np.zeros(d)
        yy, y_sum, total = np.zeros((c, c)), np.zeros(c), 0.0
        centre = provisional_centre(self._X, weights)
        for rows, columns in self._tiles():
            w = np.ones(rows.stop - rows.start) if weights is None else weights[rows]
            right = np.column_stack(
                [target.block(rows.start, rows.stop) - y_centre, np.ones(len(w))]
            )
            weighted = right * w[:, None]
            x = self._centred(rows, columns, centre)
            sums[:, columns] += weighted.T @ x
            scaled = x if weights is None else x * w[:, None]
            squares[columns] += np.einsum("ij,ij->j", scaled, x)
            if columns.start == 0:
                yy += weighted[:, :c].T @ right[:, :c]
                y_sum += weighted[:, :c].sum(axis=0)
                total += float(w.sum())
        self._check_finite(squares)
        x_shift, y_shift = sums[c] / total, y_sum / total
        return Margins(
            n_rows=n if weights is None else int(np.count_nonzero(weights)),
            weight=total,
            x_mean=centre + x_shift,
            y_mean=y_centre + y_shift,
            scatter=squares - total * x_shift**2,
            xy=(sums[:c] - total * np.outer(y_shift, x_shift)).T,
            yy=yy - total * np.outer(y_shift, y_shift),
        )

    def _tiles(self) -> Iterator[tuple[slice, slice]]:
        """Yield tiles that fit the cache, along the axis in which memory runs."""
        n, d = self.n_rows, self.n_features
        if self._X.flags.f_contiguous and not self._X.flags.c_contiguous:
            step = max(1, CACHE_BYTES // (8 * n))
            return ((slice(0, n), slice(j, min(j + step, d))) for j in range(0, d, step))
        step = max(1, CACHE_BYTES // (8 * d))
        return ((slice(i, min(i + step, n)), slice(0, d)) for i in range(0, n, step))

    def _centred(self, rows: slice, columns: slice, centre: Floats) -> Floats:
        tile, part = self._X[rows, columns], centre[columns]
        if part.any():
            return np.subtract(tile, part, dtype=np.float64)
        return np.asarray(tile, dtype=np.float64)

    def moments(self, target: Target, weights: Floats | None) -> Moments:  # noqa: D102
        accumulator = MomentsAccumulator(self.n_features, target.n_outputs)
        # One-hot targets are made in slices; 2^16 rows of them are small beside any block of X.
        step = self.n_rows if self.n_rows * target.n_outputs < 2**22 else 2**16
        with np.errstate(invalid="ignore", over="ignore"):
            for start in range(0, self.n_rows, step):
                stop = min(start + step, self.n_rows)
                accumulator.add(
                    self._X[start:stop],
                    target.block(start, stop),
                    None if weights is None else weights[start:stop],
                )
            moments = accumulator.finish()
        self._check_finite(moments.scatter)
        return moments

    def _check_finite(self, sums: Floats) -> None:
        if np.isfinite(sums).all():
            return
        bad = np.zeros(self.n_features, dtype=np.intp)
        for rows, columns in self._tiles():
            bad[columns] += (~np.isfinite(self._X[rows, columns])).sum(axis=0)
        refuse_non_finite(bad, self.feature_names, self.n_rows)

    def columns(self, indices: npt.NDArray[np.intp]) -> Floats:  # noqa: D102
        if len(indices) and (np.diff(indices) == 1).all():
            # Neighbours are copied as they lie, at several times the speed.
            part = self._X[:, indices[0] : indices[-1] + 1]
            return np.array(part, dtype=np.float64, order="C")
        return np.asarray(self._X[:, indices], dtype=np.float64)

    def products(self, right: Floats) -> Floats:  # noqa: D102
        left = np.ascontiguousarray(right.T)
        if self._X.dtype == np.float64:
            return left @ self._X
        out = np.zeros((len(left), self.n_features))
        for rows, columns in self._tiles():
            out[:, columns] += left[:, rows] @ self._X[rows, columns].astype(np.float64)
        return out

    def class_scatter(  # noqa: D102
        self, members: Floats, codes: npt.NDArray[np.intp], centres: Floats
    ) -> Floats:
        out = np.zeros_like(centres)
        for rows, columns in self._tiles():
            x = centres[codes[rows], columns]
            np.subtract(self._X[rows, columns], x, out=x)
            x *= x
            out[:, columns] += members[:, rows] @ x
        return out

    def take(self, rows: npt.NDArray[np.intp]) -> DenseRows:  # noqa: D102
        return DenseRows(self._X[rows], self.feature_names)
