"""What a table in memory offers to a Problem."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from exactk.data.categories import Category
from exactk.data.moments import Margins, Moments
from exactk.data.targets import Target
from exactk.errors import InputError
from exactk.types import Floats, Indices

__all__ = ["DesignMatrix", "far_from_zero", "refuse_non_finite"]


# A column whose squared mean is this many times its variance is centred on its own before it is
# multiplied: the products of its mean would cost it more than three of sixteen digits.
OFFSET_RATIO = 1e6
# Such columns are read this many at a time.
OFFSET_BLOCK = 64


def far_from_zero(mean: Floats, scatter: Floats, weight: float) -> Indices:
    """Columns so far from zero that they are centred on their own."""
    with np.errstate(over="ignore"):
        return np.flatnonzero(weight * mean**2 > OFFSET_RATIO * scatter)


class DesignMatrix(ABC):
    """A table that can be read again: margins, moments, and products with its columns.

    Attributes
    ----------
    n_rows, n_features : int
    feature_names : tuple of str or None
        Column names where the table has them.
    categories : tuple of Category
        Columns of the user's table that are coded as columns of 0 and 1 here.
    pass_cost : float
        Rough seconds of one pass over the table, for the choice between the whole Gram matrix
        and single columns.
    column_cost : float
        Rough seconds that a pass takes longer for each further vector that it multiplies.
    column_bytes : float
        Memory of one column of `select`.
    gram_cost : float
        Rough seconds of the products of all pairs of columns.
    """

    n_rows: int
    n_features: int
    feature_names: tuple[str, ...] | None
    categories: tuple[Category, ...] = ()
    pass_cost: float
    column_cost: float
    column_bytes: float
    gram_cost: float

    @abstractmethod
    def margins(self, target: Target, weights: Floats | None) -> Margins:
        """Means, centred sums of squares and cross-products with the target, in one pass."""

    @abstractmethod
    def moments(self, target: Target, weights: Floats | None) -> Moments:
        """Margins and the centred Gram matrix, in one pass."""

    @abstractmethod
    def columns(self, indices: npt.NDArray[np.intp]) -> Floats:
        """The columns named, n × m, as float64."""

    @abstractmethod
    def products(self, right: Floats) -> Floats:
        """``rightᵀ X`` (m × d) for an n × m matrix."""

    def centred_products(self, right: Floats, mean: Floats, offset: Indices) -> Floats:
        """``rightᵀ (X − mean)``, exact also for the columns in `offset`, far from zero.

        For most columns one centred side is enough; where the mean is a thousand times the
        spread, the product of the mean with rounding errors would show.
        """
        out = self.products(right)
        self.centre_products(out, right, mean, offset)
        return out

    def centre_products(self, out: Floats, right: Floats, mean: Floats, offset: Indices) -> None:
        """Make ``rightᵀ X`` into ``rightᵀ (X − mean)``, in place."""
        for row, total in zip(out, right.sum(axis=0), strict=True):
            # A row at a time: all of them together would be a second array of this size.
            row -= total * mean
        for start in range(0, len(offset), OFFSET_BLOCK):
            part = offset[start : start + OFFSET_BLOCK]
            out[:, part] = right.T @ (self.columns(part) - mean[part])

    def gram_columns(
        self, indices: Indices, weights: Floats | None, mean: Floats, offset: Indices
    ) -> Floats:
        """Columns of the centred Gram matrix, as the rows of an m × d array.

        Parameters
        ----------
        indices : ndarray of intp of shape (m,)
        weights : ndarray of shape (n,) or None
        mean : ndarray of shape (d,)
            Weighted means of all columns.
        offset : ndarray of intp
            Columns that are far from zero, see `far_from_zero`.
        """
        z = self.columns(indices) - mean[indices]
        if weights is not None:
            z *= weights[:, None]
        return self.centred_products(z, mean, offset)

    @abstractmethod
    def class_scatter(self, members: Floats, codes: Indices, centres: Floats) -> Floats:
        """Scatter of the rows of each class about a centre of its own, c × d.

        Parameters
        ----------
        members : ndarray of shape (c, n)
            Weight of each row in its class, zero in others.
        codes : ndarray of intp of shape (n,)
            Class of each row; anything for rows of weight zero.
        centres : ndarray of shape (c, d)
        """

    @abstractmethod
    def select(self, indices: Indices) -> DesignMatrix:
        """Return a table of some columns only, in the order named, for problems of their own."""

    @abstractmethod
    def take(self, rows: npt.NDArray[np.intp]) -> DesignMatrix:
        """Return a copy of some rows, for folds."""


def refuse_non_finite(
    bad_counts: npt.NDArray[np.intp], names: tuple[str, ...] | None, n_rows: int
) -> None:
    """Raise an error that names the columns with NaN or infinity and how many each has."""
    columns = np.flatnonzero(bad_counts)
    if columns.size == 0:
        raise InputError(
            "Input X contains values too large for float64 sums: their sum is infinite although "
            "each is finite", parameter="X", hint="rescale the columns first",
        )  # fmt: skip
    first = [(names[j] if names else f"x{j}", bad_counts[j]) for j in columns[:5]]
    shown = ", ".join(f"{name!r} ({count} of {n_rows} rows)" for name, count in first)
    more = f" and {columns.size - 5} more columns" if columns.size > 5 else ""
    raise InputError(
        f"Input X contains NaN or infinity in column {shown}{more}", parameter="X",
        hint="fill them in (sklearn.impute), drop those rows, or drop those columns",
    )  # fmt: skip
