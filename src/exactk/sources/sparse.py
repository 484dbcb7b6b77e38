"""scipy sparse tables: never densified, never centred explicitly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.moments import Margins, Moments
from exactk.sources.base import Rows, offset_columns, refuse_non_finite
from exactk.targets import Target

__all__ = ["SparseRows"]

Floats = npt.NDArray[np.float64]

# Products of column pairs are taken a strip of this many entries at a time.
STRIP_ENTRIES = 2**21


class SparseRows(Rows):
    """Rows of a CSR or CSC matrix.

    Parameters
    ----------
    X : scipy sparse array or matrix of shape (n, d)
        Kept by reference and never changed.
    feature_names : tuple of str or None
    """

    def __init__(self, X: Any, feature_names: tuple[str, ...] | None = None) -> None:
        if X.dtype.itemsize > 8:
            X = X.astype(np.float64)
        if not X.has_canonical_format:
            # An entry stored in two parts would be squared in two parts.
            X = X.copy()
            X.sum_duplicates()
        self._X = X
        self.n_rows, self.n_features = X.shape
        self.feature_names = feature_names
        self.pass_cost = 2e-9 * X.nnz + 1e-9 * self.n_features
        # Sum over rows of (entries in the row)², from the mean: a lower estimate is enough.
        per_row = X.nnz / max(1, self.n_rows)
        self.gram_cost = 2e-9 * X.nnz * per_row + 8 * self.n_features**2 / 2e9

    def margins(self, target: Target, weights: Floats | None) -> Margins:  # noqa: D102
        n = self.n_rows
        w = np.ones(n) if weights is None else weights
        total = float(w.sum())
        y = target.block(0, n)
        y_mean = w @ y / total
        y = y - y_mean
        wy = w[:, None] * y
        x_mean, scatter = self._mean_and_scatter(w, total)
        xy = self.centred_products(wy, x_mean, offset_columns(x_mean, scatter, total))
        with np.errstate(over="ignore"):
            yy = wy.T @ y
        return Margins(int(np.count_nonzero(w)), total, x_mean, y_mean, scatter, xy.T, yy)

    def _mean_and_scatter(self, w: Floats, total: float) -> tuple[Floats, Floats]:
        """Means, and sums of squares about them, of entries stored and not stored."""
        self._check_finite()
        d = self.n_features
        stored = self._X.tocoo(copy=False)
        w_stored = w[stored.row]
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self.products(w[:, None])[0] / total
            residual = stored.data.astype(np.float64) - mean[stored.col]
            absent = total - np.bincount(stored.col, w_stored, minlength=d)
            absent = np.maximum(absent, 0.0)
            shift = np.bincount(stored.col, w_stored * residual, minlength=d) - absent * mean
            shift /= total
            scatter = np.bincount(stored.col, w_stored * residual**2, minlength=d)
            scatter = scatter + absent * mean**2 - total * shift**2
        if not np.isfinite(scatter).all():
            refuse_non_finite(np.zeros(d, dtype=np.intp), self.feature_names, self.n_rows)
        # The first mean is rounded; what is left of it would make a constant column look alive.
        return mean + shift, np.maximum(scatter, 0.0)

    def moments(self, target: Target, weights: Floats | None) -> Moments:  # noqa: D102
        margins = self.margins(target, weights)
        d, mean, total = self.n_features, margins.x_mean, margins.weight
        values = self._X.astype(np.float64)
        weighted = values if weights is None else values.multiply(weights[:, None])
        left, right = weighted.T.tocsr(), values.tocsc()
        xx = np.empty((d, d))
        step = max(1, STRIP_ENTRIES // max(1, d))
        for start in range(0, d, step):
            strip = slice(start, min(start + step, d))
            product = (left @ right[:, strip]).toarray()
            xx[:, strip] = product - total * np.outer(mean, mean[strip])
        np.fill_diagonal(xx, margins.scatter)
        self._centre_offset_columns(xx, margins, weights)
        return Moments(margins.n_rows, total, mean, margins.y_mean, xx, margins.xy, margins.yy)

    def _centre_offset_columns(self, xx: Floats, margins: Margins, weights: Floats | None) -> None:
        offset = offset_columns(margins.x_mean, margins.scatter, margins.weight)
        step = max(1, STRIP_ENTRIES // max(1, self.n_rows))
        for start in range(0, len(offset), step):
            columns = offset[start : start + step]
            z = self.columns(columns) - margins.x_mean[columns]
            z *= 1.0 if weights is None else weights[:, None]
            strip = self.centred_products(z, margins.x_mean, offset)
            strip[np.arange(len(columns)), columns] = margins.scatter[columns]
            xx[columns, :], xx[:, columns] = strip, strip.T

    def _check_finite(self) -> None:
        finite = np.isfinite(self._X.data)
        if finite.all():
            return
        stored = self._X.tocoo(copy=False)
        bad = np.bincount(stored.col[~finite], minlength=self.n_features).astype(np.intp)
        refuse_non_finite(bad, self.feature_names, self.n_rows)

    def columns(self, indices: npt.NDArray[np.intp]) -> Floats:  # noqa: D102
        return np.asarray(self._X[:, indices].toarray(), dtype=np.float64)

    def products(self, right: Floats) -> Floats:  # noqa: D102
        return np.ascontiguousarray((self._X.T @ right).T)

    def take(self, rows: npt.NDArray[np.intp]) -> SparseRows:  # noqa: D102
        return SparseRows(self._X.tocsr()[rows], self.feature_names)
