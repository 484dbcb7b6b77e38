"""Columns that are copies of an earlier one, up to shift, scale and sign.

A copy adds nothing, yet with a ridge two copies share the shrinkage and look better than one.
Only the first of them is a candidate. Copies have the same product with the target, so sorting
by its size brings them together and only neighbours need a closer look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["find_copies"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Agreement of two copies: rounding of their sums is far below, other columns far above.
SAME = 1e-10
# Columns compared in full at once.
MOST_COMPARED = 512


def find_copies(
    cross: Floats, size: Floats, total: float, unit_columns: Callable[[Indices], Floats]
) -> Indices:
    """Return the columns that copy one of lower index.

    Parameters
    ----------
    cross : ndarray of shape (c, d)
        Products of the columns with the target.
    size : ndarray of shape (d,)
        Norms of the centred columns; 0 leaves a column out.
    total : float
        Squared norm of the centred target.
    unit_columns : callable
        Gives centred columns of norm one (n × m).

    Returns
    -------
    ndarray of intp

    Examples
    --------
    >>> X = np.array([[1.0, 0.0, -2.0], [-1.0, 1.0, 2.0], [0.0, -1.0, 0.0]])
    >>> y = np.array([[1.0, 2.0, -3.0]])
    >>> norms = np.linalg.norm(X, axis=0)
    >>> find_copies(y @ X, norms, 14.0, lambda p: X[:, p] / norms[p])
    array([2])
    """
    alive = np.flatnonzero(size > 0)
    share = np.sqrt((cross[:, alive] ** 2).sum(axis=0)) / size[alive]
    copies: list[int] = []
    for run in _runs(alive, share, SAME * np.sqrt(total)):
        columns = unit_columns(run)
        # Projections on a random direction tell apart what the target did not.
        direction = np.random.default_rng(0).standard_normal(len(columns))
        shadow = np.abs(direction @ columns)
        for part in _runs(np.arange(len(run)), shadow, SAME * float(np.linalg.norm(direction))):
            copies += _copies_among(run[part], columns[:, part])
    return np.array(sorted(copies), dtype=np.intp)


def _runs(items: Indices, values: Floats, slack: float) -> Iterator[Indices]:
    """Yield groups of two and more items whose sorted values follow each other closely."""
    order = np.argsort(values, kind="stable")
    breaks = np.flatnonzero(np.diff(values[order]) > slack) + 1
    if len(breaks) == len(values) - 1:
        return
    for group in np.split(order, breaks):
        if len(group) > 1:
            yield np.sort(items[group])


def _copies_among(indices: Indices, columns: Floats) -> list[int]:
    found = np.zeros(len(indices), dtype=bool)
    for start in range(0, len(indices), MOST_COMPARED):
        block = slice(start, start + MOST_COMPARED)
        same = np.abs(columns[:, block].T @ columns) > 1.0 - SAME
        earlier = np.arange(len(indices))[None, :] < np.arange(len(indices))[block, None]
        found[block] |= (same & earlier).any(axis=1)
    return [int(p) for p in indices[found]]
