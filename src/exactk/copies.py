"""Columns that are copies of an earlier one, up to shift, scale and sign.

A copy adds nothing, yet with a ridge two copies share the shrinkage and look better than one.
Only the first of them is a candidate. Copies have the same product with the target and, up to
sign, with any other vector, so sorting by two such products brings them together, and only
neighbours need a closer look.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["find_copies"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Agreement of two copies: rounding of their sums is far below, other columns far above.
SAME = 1e-10
# Columns read at once for the closer look.
BLOCK = 64


def find_copies(
    cross: Floats,
    size: Floats,
    total: float,
    shadows: Callable[[], Floats],
    correlate: Callable[[int, Indices], Floats],
) -> tuple[Indices, Indices]:
    """Return the columns that copy one of lower index, and which one each copies.

    Parameters
    ----------
    cross : ndarray of shape (c, d)
        Products of the columns with the target.
    size : ndarray of shape (d,)
        Norms of the centred columns; 0 leaves a column out.
    total : float
        Squared norm of the centred target.
    shadows : callable
        Gives the product of every column, centred and of norm one, with a fixed random vector of
        about norm one; asked only if the target leaves doubt.
    correlate : callable
        Gives the correlations of a column with others.

    Returns
    -------
    copies : ndarray of intp
        Sorted.
    originals : ndarray of intp
        For each of them the first column that it is a copy of.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0, -2.0], [-1.0, 1.0, 2.0], [0.0, -1.0, 0.0]])
    >>> y, g = np.array([[1.0, 2.0, -3.0]]), np.array([0.6, 0.0, 0.8])
    >>> norms = np.linalg.norm(X, axis=0)
    >>> Z = X / norms
    >>> find_copies(y @ X, norms, 14.0, lambda: g @ Z, lambda p, others: Z[:, p] @ Z[:, others])
    (array([2]), array([0]))
    """
    alive = np.flatnonzero(size > 0)
    share = np.sqrt(np.einsum("ij,ij->j", cross, cross)[alive]) / size[alive]
    alike = _groups(alive, share, SAME * np.sqrt(total))
    if not alike[1].any():
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    members, group = alike[0][alike[1] > 0], alike[1][alike[1] > 0]
    shadow = np.abs(shadows())[members]
    # Shadows are of order one: large steps keep the groups apart in one sort.
    step = 2.0 * shadow.max() + 1.0
    rounding = 4.0 * np.finfo(np.float64).eps * step * group.max()
    members, group = _groups(members, shadow + step * group, SAME + float(rounding))
    found: dict[int, int] = {}
    for number in range(1, int(group.max(initial=0)) + 1):
        found |= _copies_among(np.sort(members[group == number]), correlate)
    copies = np.array(sorted(found), dtype=np.intp)
    return copies, np.array([found[p] for p in copies.tolist()], dtype=np.intp)


def _groups(items: Indices, values: Floats, slack: float) -> tuple[Indices, Indices]:
    """Items sorted by value, and the number of the group of close values each is in.

    Groups of two and more are numbered from 1; an item alone has 0.
    """
    order = np.argsort(values)
    close = np.diff(values[order]) <= slack
    together = np.zeros(len(items), dtype=bool)
    together[:-1] |= close
    together[1:] |= close
    starts = together.copy()
    starts[1:] &= ~close
    return items[order], np.where(together, np.cumsum(starts), 0)


def _copies_among(group: Indices, correlate: Callable[[int, Indices], Floats]) -> dict[int, int]:
    """Compare with the first; what is no copy of it is compared among itself."""
    found: dict[int, int] = {}
    while len(group) > 1:
        first, others = int(group[0]), group[1:]
        parts = [others[i : i + BLOCK] for i in range(0, len(others), BLOCK)]
        same = np.concatenate([np.abs(correlate(first, part)) > 1.0 - SAME for part in parts])
        found |= dict.fromkeys(others[same].tolist(), first)
        group = others[~same]
    return found
