"""Leaps and bounds, plainly: the best subset of one size from products alone, in NumPy.

The idea is that of Furnival and Wilson (1974). A node is a set of features that are still allowed,
some of them for good. No subset of it fits better than all of it, and that is the bound. Which
features to drop next is read off the inverse of its products, all of them at once; those that
cost most to drop come first, so that the branch in which most may still be dropped has the highest
bound and is the first to be cut off. Several outputs are traces where one is a number.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

__all__ = ["Leaps", "best_subset"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Nodes between two looks at the clock.
LOOK_EVERY = 256


@dataclass(frozen=True)
class Leaps:
    """What came of it.

    Attributes
    ----------
    support : tuple of int
        The best subset below the ceiling, sorted; empty if there is none.
    objective : float
    nodes : int
        Sets of allowed features that were taken apart.
    priced : int
        Subsets whose fit was read off on the way.
    seconds : float
    finished : bool
        Whether nothing is left: the subset is then the best there is.
    """

    support: tuple[int, ...]
    objective: float
    nodes: int
    priced: int
    seconds: float
    finished: bool


def best_subset(
    X: Floats, Y: Floats, k: int, ceiling: float = inf, time_limit: float = inf
) -> Leaps:
    """Return the k columns of X with the least squared error for Y.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Centred, of full rank.
    Y : ndarray of shape (n, c)
        Centred.
    k : int
    ceiling : float
        Subsets that are not below it are of no interest: a little more than the error of a good
        subset saves the time to find one.
    time_limit : float
        Seconds.
    """
    tree = _Tree(k, ceiling, time_limit)
    inverse = np.linalg.inv(X.T @ X)
    coef = inverse @ (X.T @ Y)
    everything = float(np.sum((Y - X @ coef) ** 2))
    finished = True
    try:
        tree.visit(np.hstack((inverse, coef)), np.arange(X.shape[1]), 0, everything)
    except TimeoutError:
        finished = False
    seconds = time.perf_counter() - tree.start
    return Leaps(tree.support, tree.best, tree.nodes, tree.priced, seconds, finished)


class _Tree:
    """The best subset so far, and what it took."""

    def __init__(self, k: int, ceiling: float, time_limit: float) -> None:
        self.k, self.best = k, ceiling
        self.support: tuple[int, ...] = ()
        self.nodes = self.priced = 0
        self.start = time.perf_counter()
        self._end = self.start + time_limit

    def visit(self, swept: Floats, allowed: Ints, kept: int, error: float) -> None:
        """Look for better subsets of the allowed features, the first `kept` of which stay.

        Parameters
        ----------
        swept : ndarray of shape (v, v + c)
            Inverse of the products of the allowed features, and their coefficients.
        allowed : ndarray of shape (v,)
        kept : int
        error : float
            Squared error with all of them.
        """
        self.nodes += 1
        if self.nodes % LOOK_EVERY == 0 and time.perf_counter() > self._end:
            raise TimeoutError
        v = len(allowed)
        if v == self.k:
            self._note(allowed, error)
            return
        costs = (swept[kept:, v:] ** 2).sum(axis=1) / swept.diagonal()[kept:]
        self.priced += len(costs)
        if v == self.k + 1:
            at = int(costs.argmin())
            self._note(np.delete(allowed, kept + at), error + float(costs[at]))
            return
        order = np.argsort(-costs, kind="stable")
        errors = error + costs[order]
        places = np.concatenate((np.arange(kept), kept + order))
        swept = swept[np.ix_(places, np.concatenate((places, np.arange(v, swept.shape[1]))))]
        allowed = allowed[places]
        # What comes before the dropped feature stays; enough must come after it to drop.
        for i in range(len(costs) - (v - self.k), -1, -1):
            if errors[i] >= self.best:
                return
            at = kept + i
            self.visit(_without(swept, at), np.delete(allowed, at), at, float(errors[i]))

    def _note(self, subset: Ints, error: float) -> None:
        if error < self.best:
            self.best, self.support = error, tuple(sorted(subset.tolist()))


def _without(swept: Floats, at: int) -> Floats:
    """Inverse and coefficients after a feature is dropped."""
    others = np.delete(np.arange(len(swept)), at)
    column = swept[others, at] / swept[at, at]
    left = np.delete(swept, at, axis=1)
    result: Floats = left[others] - np.outer(column, left[at])
    return result
