"""Columns that are copies of an earlier one, up to shift, scale and sign.

A copy adds nothing, yet with a ridge two copies share the shrinkage and look better than one.
Only the first of them is a candidate. Copies have the same product with the target and, up to
sign, with any other vector, so sorting by two such products brings them together, and only
neighbours need a closer look.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exactk.types import Floats, Indices

__all__ = ["find_duplicates"]


# Agreement of two copies: rounding of their sums is far below, other columns far above.
SAME = 1e-10


def find_duplicates(
    cross: Floats,
    size: Floats,
    total: float,
    random_projection: Callable[[], Floats],
    correlate: Callable[[Indices, Indices], Floats],
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
    random_projection : callable
        Gives the product of every column, centred and of norm one, with a fixed random vector of
        about norm one; asked only if the target leaves doubt.
    correlate : callable
        Gives the correlation of each column of a list with that at its place in another.

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
    >>> find_duplicates(
    ...     y @ X,
    ...     norms,
    ...     14.0,
    ...     lambda: g @ Z,
    ...     lambda first, second: (Z[:, first] * Z[:, second]).sum(axis=0),
    ... )
    (array([2]), array([0]))
    """
    alive = np.flatnonzero(size > 0)
    share = np.sqrt(np.einsum("ij,ij->j", cross, cross)[alive]) / size[alive]
    alike = _groups(alive, share, SAME * np.sqrt(total))
    if not alike[1].any():
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    members, group = alike[0][alike[1] > 0], alike[1][alike[1] > 0]
    projection = np.abs(random_projection())[members]
    # Shadows are of order one: large steps keep the groups apart in one sort.
    step = 2.0 * projection.max() + 1.0
    rounding = 4.0 * np.finfo(np.float64).eps * step * group.max()
    members, group = _groups(members, projection + step * group, SAME + float(rounding))
    return _copies_among(members[group > 0], group[group > 0], correlate)


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


def _copies_among(
    members: Indices, group: Indices, correlate: Callable[[Indices, Indices], Floats]
) -> tuple[Indices, Indices]:
    """Compare each with the first of its group; what is no copy of it is compared among itself."""
    order = np.lexsort((members, group))
    members, group = members[order], group[order]
    copies, originals = [members[:0]], [members[:0]]
    while members.size:
        leads = np.ones(len(members), dtype=bool)
        leads[1:] = group[1:] != group[:-1]
        first = members[leads][np.cumsum(leads) - 1]
        members, group, first = members[~leads], group[~leads], first[~leads]
        same = np.abs(correlate(first, members)) > 1.0 - SAME
        copies.append(members[same])
        originals.append(first[same])
        members, group = members[~same], group[~same]
    found = np.concatenate(copies)
    order = np.argsort(found)
    return found[order], np.concatenate(originals)[order]
