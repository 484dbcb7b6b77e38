"""Dense arrays of any numeric dtype and order, read in blocks, never copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.accumulate import (
    HEAD_ROWS,
    MomentsAccumulator,
    first_weighted_rows,
    provisional_centre,
)
from exactk.data.categories import Category
from exactk.data.design_matrix import DesignMatrix, refuse_non_finite
from exactk.data.moments import Margins, Moments
from exactk.data.targets import Target
from exactk.types import Floats

__all__ = ["DenseRows"]


# A block this size is read from memory once and then served by the processor's cache for the
# sums, squares and products of a margins pass (measured: 1–3 MB is best, 10 MB a third slower).
CACHE_BYTES = 2 * 2**20
# Values that a tile takes along the axis in which memory runs. Tiles of few long rows would have
# the sums of every column fetched and stored anew for each of them (measured, 1,000 × 200,000
# float32: 0.14 s a pass, 1.7 s in single rows).
TILE_WIDTH = 1024
# Tiles for products with several vectors are so many times larger: fewer calls of BLAS, whose
# threads wait for each other at the end of each, and on a busy machine long.
PRODUCT_TILE = 4
# The columns that a provisional centre is found for at once.
CENTRE_COLUMNS = 2**16
# Rates behind the choice of the Gram matrix; only their ratios matter. The whole matrix is
# written, mirrored and scaled, most of it memory never touched before.
FLOPS, BYTES, FIRST_TOUCH = 5e10, 2e10, 6e8


class DenseRows(DesignMatrix):
    """Rows of a dense array.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Numeric or boolean; kept by reference and never changed.
    feature_names : tuple of str or None
    categories : tuple of Category
        Which columns code a category; a subset of columns has none.
    """

    def __init__(
        self,
        X: npt.NDArray[Any],
        feature_names: tuple[str, ...] | None = None,
        categories: tuple[Category, ...] = (),
    ) -> None:
        self._X = X
        self.n_rows, self.n_features = X.shape
        self.feature_names = feature_names
        self.categories = categories
        n, d = X.shape
        self.pass_cost = n * d * 8 / BYTES * (1 if X.dtype == np.float64 else 2) + 2e-5
        self.column_cost = min(2 * n * d / FLOPS, self.pass_cost)
        self.column_bytes = n * X.dtype.itemsize
        self.gram_cost = n * d * d / FLOPS + 8 * d * d / FIRST_TOUCH

    def margins(self, target: Target, weights: Floats | None) -> Margins:  # noqa: D102
        with np.errstate(over="ignore", invalid="ignore"):
            return self._margins(target, weights)

    def _margins(self, target: Target, weights: Floats | None) -> Margins:
        n, d, c = self.n_rows, self.n_features, target.n_outputs
        y_centre = target.take(first_weighted_rows(weights, n, HEAD_ROWS)).mean(axis=0)
        sums, squares = np.zeros((c + 1, d)), np.zeros(d)
        yy, y_sum, total = np.zeros((c, c)), np.zeros(c), 0.0
        centre = np.concatenate(
            [
                provisional_centre(self._X[:, j : j + CENTRE_COLUMNS], weights)
                for j in range(0, d, CENTRE_COLUMNS)
            ]
        )
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

    def _tiles(self, larger: int = 1) -> Iterator[tuple[slice, slice]]:
        """Yield tiles that fit the cache, or larger ones, along the axis in which memory runs."""
        n, d = self.n_rows, self.n_features
        values = larger * CACHE_BYTES // 8
        if self._X.flags.f_contiguous and not self._X.flags.c_contiguous:
            height = min(n, max(TILE_WIDTH, values // d))
            width = max(1, values // height)
            for j in range(0, d, width):
                for i in range(0, n, height):
                    yield slice(i, min(i + height, n)), slice(j, min(j + width, d))
            return
        width = min(d, max(TILE_WIDTH, values // n))
        height = max(1, values // width)
        for i in range(0, n, height):
            for j in range(0, d, width):
                yield slice(i, min(i + height, n)), slice(j, min(j + width, d))

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
        contiguous = self._X.flags.c_contiguous or self._X.flags.f_contiguous
        if self._X.dtype == np.float64 and contiguous:
            return left @ self._X
        out = np.zeros((len(left), self.n_features))
        room: Floats | None = None
        for rows, columns in self._tiles(1 if len(left) == 1 else PRODUCT_TILE):
            part = self._X[rows, columns]
            # The first tile is the largest; memory that was touched before is faster.
            room = np.empty(part.size) if room is None else room
            tile = room[: part.size].reshape(part.shape)
            np.copyto(tile, part)
            out[:, columns] += left[:, rows] @ tile
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

    def select(self, indices: npt.NDArray[np.intp]) -> DenseRows:  # noqa: D102
        names = self.feature_names
        chosen = None if names is None else tuple(names[j] for j in indices)
        # Indexing gives columns that lie in one piece; sums run along rows.
        return DenseRows(np.ascontiguousarray(self._X[:, indices]), chosen)

    def take(self, rows: npt.NDArray[np.intp]) -> DenseRows:  # noqa: D102
        return DenseRows(self._X[rows], self.feature_names, self.categories)
