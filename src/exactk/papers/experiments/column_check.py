"""Tables and supports as the measures take them, and standardised columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactk.errors import InputError, join_items
from exactk.types import Floats, Indices

__all__ = ["Standardiser", "checked_support", "checked_table", "standardiser"]


# Standard deviations whose squares are far from the ends of float64.
TINY, HUGE = 1e-140, 1e140


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Mean and one over the standard deviation of columns, 0 for those that are constant."""

    mean: Floats
    factor: Floats

    def apply(self, X: Floats) -> Floats:
        """Return other rows of the same columns, on the same scale."""
        Z = X - self.mean
        Z *= self.factor
        return Z


def standardiser(X: Floats) -> Standardiser:
    """Take mean and standard deviation (n − 1) of columns; a constant column becomes 0.

    Examples
    --------
    >>> rows = np.array([[0.0, 7.0], [2.0, 7.0]])
    >>> standardiser(rows).apply(np.array([[1.0, 9.0]]))
    array([[0., 0.]])
    """
    # The mean of equal numbers may differ from them by rounding, hence the range.
    varies = np.flatnonzero(np.ptp(X, axis=0) > 0)
    factor = np.zeros(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = X.mean(axis=0)
        if varies.size == 0:
            return Standardiser(mean, factor)
        spread = X[:, varies].std(axis=0, ddof=1)
    odd = np.flatnonzero(~((spread > TINY) & (spread < HUGE)))
    for place, column in zip(odd, varies[odd], strict=True):
        # Squares would leave the range of float64.
        size = np.abs(X[:, column]).max()
        mean[column] = (X[:, column] / size).mean() * size
        spread[place] = ((X[:, column] - mean[column]) / size).std(ddof=1) * size
    factor[varies] = 1.0 / spread
    return Standardiser(mean, factor)


def checked_table(name: str, X: Any) -> Floats:
    """Return X as float64, two-dimensional and finite, or say what is wrong with it."""
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers: {error}", parameter=name) from error
    if table.ndim != 2:
        raise InputError(
            f"{name} must be a table of rows and columns, not an array of shape {table.shape}",
            parameter=name,
        )
    if len(table) == 0:
        raise InputError(f"{name} has no rows", parameter=name)
    # A sum is finite unless one of the numbers is not (or they are huge): cheaper than all of them.
    if not np.isfinite(table.sum()):
        bad = np.argwhere(~np.isfinite(table))
        if bad.size:
            raise InputError(
                f"{name} has NaN or infinity in {len(bad)} place(s), first in row {bad[0][0]}, "
                f"column {bad[0][1]}", parameter=name, hint="fill it in or drop it first",
            )  # fmt: skip
    return table


def checked_support(support: Iterable[int], n_columns: int) -> Indices:
    """Return different column indices, as given, or say what is wrong with them."""
    if not isinstance(support, Iterable):
        raise InputError(f"support must be a list of columns, not {support!r}", parameter="support")
    given: list[Any] = list(support)
    wrong = [
        p
        for p in given
        if isinstance(p, bool) or not isinstance(p, (int, np.integer)) or not 0 <= p < n_columns
    ]
    if wrong:
        raise InputError(
            f"support must hold columns 0..{n_columns - 1}, not {join_items(wrong)}",
            parameter="support",
        )
    if len(set(given)) < len(given):
        raise InputError(
            f"support names a column twice: {join_items(p for p in given if given.count(p) > 1)}",
            parameter="support",
        )
    return np.array(given, dtype=np.intp)
