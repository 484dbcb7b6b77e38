"""scipy sparse tables: read where they lie, never densified, never centred explicitly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from exactk.data.accumulate import BENIGN_RATIO, MomentsAccumulator, mirror_upper
from exactk.data.design_matrix import DesignMatrix, far_from_zero, refuse_non_finite
from exactk.data.moments import Margins, Moments, add_outer
from exactk.data.sparse_entries import CSRKernels, open_entries
from exactk.data.sparse_kernels import blocks, entries
from exactk.data.targets import Target
from exactk.errors import InputError
from exactk.types import Floats, Indices

__all__ = ["SparseRows"]


# Values of a dense strip, of columns or of outputs, that is worked on at a time.
STRIP_ENTRIES = 2**21
# Rough seconds, in two threads, to add an entry to a sum, to look at its index, to find a column
# in a row, for one multiplication of BLAS, for a row and a column of the table that is dense in
# between, and for a call.
ADD, LOOK, FIND, MULTIPLY = 1.2e-9, 2.5e-10, 1.8e-7, 2.5e-11
ROW, COLUMN, CALL = 4e-9, 1.5e-8, 1e-4


class SparseRows(DesignMatrix):
    """Rows of a CSR or CSC matrix.

    Parameters
    ----------
    X : scipy sparse array or matrix of shape (n, d)
        Kept by reference and never changed.
    feature_names : tuple of str or None
    """

    def __init__(self, X: Any, feature_names: tuple[str, ...] | None = None) -> None:
        _check_ends(X)
        if X.dtype.itemsize > 8:
            X = X.astype(np.float64)
        _check_places(X)
        fresh = _without_memory(X)
        if not fresh.has_canonical_format:
            # An entry stored in two parts would be squared in two parts.
            X = fresh.copy()
            X.sum_duplicates()
        self._X = X
        self._entries = open_entries(X)
        self.n_rows, self.n_features = X.shape
        self.feature_names = feature_names
        self._estimate()

    def _estimate(self) -> None:
        n, d, stored = self.n_rows, self.n_features, self._X.nnz
        around = ROW * n + COLUMN * d
        if self._X.format == "csr":
            counts = np.diff(self._X.indptr).astype(np.float64)
            pairs = float(counts @ counts)
            # Of a column only the rows are read that it has an entry in.
            self.column_cost = ADD * pairs / max(1, d) + around
            self.pass_cost = self.column_cost + min(LOOK * stored, FIND * n) + CALL
        else:
            pairs = stored * stored / max(1, n)
            self.column_cost = ADD * stored / 4 + around
            self.pass_cost = ADD * stored + around + CALL
        self._sparse_cost, self._dense_cost = ADD * pairs, MULTIPLY * n * d * d
        margins = 10 * (ADD * stored + around + CALL)
        self.gram_cost = margins + min(self._sparse_cost, self._dense_cost) + 8 * d * d / 2e9
        entry = self._X.dtype.itemsize + self._X.indices.dtype.itemsize
        self.column_bytes = entry * stored / max(1, d) + 1

    def margins(self, target: Target, weights: Floats | None) -> Margins:  # noqa: D102
        w = np.ones(self.n_rows) if weights is None else np.ascontiguousarray(weights)
        total = float(w.sum())
        self._check_finite()
        y_mean, yy = _output_moments(target, w, total)
        xy = np.empty((target.n_outputs, self.n_features))
        with np.errstate(over="ignore", invalid="ignore"):
            for outputs, right in _weighted_outputs(target, w, y_mean):
                xy[outputs] = self.products(right)
            # Classes make up the whole.
            sums = xy.sum(axis=0) if target.codes is not None else self.products(w[:, None])[0]
            x_mean, scatter = self._mean_and_scatter(sums / total, w, total)
            offset = far_from_zero(x_mean, scatter, total)
            for outputs, right in _weighted_outputs(target, w, y_mean):
                self.centre_products(xy[outputs], right, x_mean, offset)
        return Margins(int(np.count_nonzero(w)), total, x_mean, y_mean, scatter, xy.T, yy)

    def _mean_and_scatter(self, mean: Floats, w: Floats, total: float) -> tuple[Floats, Floats]:
        """Means, and sums of squares about them, of entries stored and not stored."""
        absent, shift, square = self._entries.centred_sums(w, mean)
        shift = (shift - absent * mean) / total
        scatter = square + absent * mean**2 - total * shift**2
        if not np.isfinite(scatter).all():
            self._refuse_large()
        # The first mean is rounded; what is left of it would make a constant column look alive.
        return mean + shift, np.maximum(scatter, 0.0)

    def moments(self, target: Target, weights: Floats | None) -> Moments:  # noqa: D102
        if not isinstance(self._entries, CSRKernels):
            return SparseRows(self._X.tocsr(), self.feature_names).moments(target, weights)
        if self._dense_cost < self._sparse_cost:
            return self._moments_of_blocks(target, weights)
        margins = self.margins(target, weights)
        mean, total = margins.x_mean, margins.weight
        xx = self._entries.gram_upper(weights)
        add_outer(xx, mean, -total)
        mirror_upper(xx)
        far = np.flatnonzero(total * mean**2 > BENIGN_RATIO * margins.scatter)
        offset = far_from_zero(mean, margins.scatter, total)
        for strip in _strips(len(far), max(self.n_rows, self.n_features)):
            columns = far[strip]
            xx[columns] = self.gram_columns(columns, weights, mean, offset)
            xx[:, columns] = xx[columns].T
        np.fill_diagonal(xx, margins.scatter)
        return Moments(margins.n_rows, total, mean, margins.y_mean, xx, margins.xy, margins.yy)

    def _moments_of_blocks(self, target: Target, weights: Floats | None) -> Moments:
        """Moments of a table so full that blocks of its rows are better multiplied dense."""
        self._check_finite()
        accumulator = MomentsAccumulator(self.n_features, target.n_outputs)
        with np.errstate(over="ignore", invalid="ignore"):
            for rows in _strips(self.n_rows, self.n_features + target.n_outputs):
                accumulator.update(
                    self._X[rows].astype(np.float64).toarray(order="F"),
                    target.block(rows.start, rows.stop),
                    None if weights is None else weights[rows],
                )
            moments = accumulator.finish()
        if not np.isfinite(moments.scatter).all():
            self._refuse_large()
        return moments

    def _refuse_large(self) -> None:
        """Say that sums of finite values are not finite."""
        refuse_non_finite(np.zeros(self.n_features, dtype=np.intp), self.feature_names, self.n_rows)

    def gram_columns(  # noqa: D102
        self, indices: Indices, weights: Floats | None, mean: Floats, offset: Indices
    ) -> Floats:
        out = np.empty((len(indices), self.n_features))
        total = self.n_rows if weights is None else float(weights.sum())
        for strip in _strips(len(indices), self.n_rows):
            part = mean[indices[strip]]
            z = self.columns(indices[strip])
            weighted = z if weights is None else z * weights[:, None]
            # Rows without an entry need not be read as long as nothing is subtracted, and nothing
            # is lost by that where the mean is not larger than the spread.
            far = np.flatnonzero(2 * total * part**2 > np.einsum("ij,ij->j", weighted, z))
            weighted[:, far] -= part[far] if weights is None else np.outer(weights, part[far])
            out[strip] = self.centred_products(weighted, mean, offset)
        return out

    def class_scatter(  # noqa: D102
        self, members: Floats, codes: Indices, centres: Floats
    ) -> Floats:
        out = np.empty_like(centres)
        for own, weights, centre in zip(out, members, centres, strict=True):
            absent, _, square = self._entries.centred_sums(np.ascontiguousarray(weights), centre)
            own[:] = square + absent * centre**2
        return out

    def _check_finite(self) -> None:
        # SciPy allows room to spare behind the last entry.
        values = self._X.data[: self._X.nnz]
        starts = range(0, len(values), STRIP_ENTRIES)
        if values.dtype.kind != "f" or all(
            np.isfinite(values[start : start + STRIP_ENTRIES]).all() for start in starts
        ):
            return
        bad = np.zeros(self.n_features, dtype=np.intp)
        for block in blocks(self._X, slice(0, len(self._X.indptr) - 1)):
            line, place, value = entries(self._X, block)
            column = place if self._X.format == "csr" else line
            bad += np.bincount(column[~np.isfinite(value)], minlength=self.n_features)
        refuse_non_finite(bad, self.feature_names, self.n_rows)

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        return self._entries.columns(indices)

    def products(self, right: Floats) -> Floats:  # noqa: D102
        return self._entries.products(right)

    def select(self, indices: Indices) -> SparseRows:  # noqa: D102
        names = self.feature_names
        chosen = None if names is None else tuple(names[j] for j in indices)
        if isinstance(self._entries, CSRKernels) and len(np.unique(indices)) == len(indices):
            return _adopted(self._entries.select(indices), chosen)
        # By rows, as products of all pairs of columns are made.
        return _adopted(self._X[:, indices].tocsr(), chosen)

    def take(self, rows: Indices) -> SparseRows:  # noqa: D102
        return _adopted(self._X[rows], self.feature_names)


def _adopted(X: Any, feature_names: tuple[str, ...] | None) -> SparseRows:
    """Rows of a table that belongs to nobody else: put in order where it is."""
    X.sum_duplicates()
    return SparseRows(X, feature_names)


def _strips(n: int, width: int) -> Iterator[slice]:
    """Cut n lines of `width` numbers each into strips of bounded memory."""
    step = max(1, STRIP_ENTRIES // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _output_moments(target: Target, w: Floats, total: float) -> tuple[Floats, Floats]:
    """Mean of the outputs, and their centred products."""
    with np.errstate(over="ignore", invalid="ignore"):
        if target.codes is None:
            assert target.values is not None
            y_mean = w @ target.values / total
            y = target.values - y_mean
            return y_mean, (w[:, None] * y).T @ y
        known = target.codes >= 0
        counts = np.bincount(target.codes[known], w[known], minlength=target.n_outputs)
        return counts / total, np.diag(counts) - np.outer(counts, counts / total)


def _weighted_outputs(target: Target, w: Floats, y_mean: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield outputs times weights, n × m: numbers about their mean, classes as zeros and ones."""
    for strip in _strips(target.n_outputs, len(w)):
        if target.codes is None:
            assert target.values is not None
            yield strip, w[:, None] * (target.values[:, strip] - y_mean[strip])
            continue
        right = np.zeros((strip.stop - strip.start, len(w)))
        here = np.flatnonzero((target.codes >= strip.start) & (target.codes < strip.stop))
        right[target.codes[here] - strip.start, here] = w[here]
        yield strip, right.T


def _check_ends(X: Any) -> None:
    """Raise where lines do not lie one after the other: compiled code would read elsewhere."""
    ends, n_lines = X.indptr, X.shape[0] if X.format == "csr" else X.shape[1]
    if (
        len(ends) != n_lines + 1
        or ends[0] != 0
        or ends[-1] > min(len(X.indices), len(X.data))
        or (ends[1:] < ends[:-1]).any()
    ):
        _refuse_broken(X)


def _check_places(X: Any) -> None:
    """Raise where an index leads out of the table: compiled code would write elsewhere."""
    width = X.shape[1] if X.format == "csr" else X.shape[0]
    places = X.indices[: X.indptr[-1]]
    if len(places) and (places.min() < 0 or places.max() >= width):
        _refuse_broken(X)


def _without_memory(X: Any) -> Any:
    """Return the same arrays as a table that has not noted yet whether they are in order.

    SciPy notes it once, and whoever exchanges the arrays leaves the note as it was.
    """
    fresh = type(X)(X.shape, dtype=X.dtype)
    # Given to the constructor, wide indices would be copied to narrow ones.
    fresh.data, fresh.indices, fresh.indptr = X.data, X.indices, X.indptr
    return fresh


def _refuse_broken(X: Any) -> None:
    raise InputError(
        f"X is a broken sparse table: its indices do not fit its shape {X.shape}", parameter="X",
        hint="X.check_format() says where",
    )  # fmt: skip
