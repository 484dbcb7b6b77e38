"""How far sets of columns agree: arithmetic on which set holds which column."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from math import sqrt
from statistics import NormalDist

import numpy as np

from exactk.types import Floats

__all__ = ["mean_jaccard", "nogueira_index", "nogueira_interval", "normal_quantile", "wilson"]


def nogueira_index(member: Floats) -> float:
    """Return Nogueira's stability index of the rows of a matrix of zeros and ones.

    Parameters
    ----------
    member : ndarray of shape (M, d)
        Row i says which columns set i holds; M is two or more.

    Examples
    --------
    >>> round(nogueira_index(np.array([[1.0, 1, 0, 0], [1, 0, 1, 0]])), 4)
    0.0
    """
    if (member == member[0]).all():
        return 1.0
    share = member.mean(axis=0)
    spread = len(member) / (len(member) - 1) * (share * (1.0 - share)).mean()
    size = share.mean()
    return float(1.0 - spread / (size * (1.0 - size)))


def nogueira_interval(member: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the asymptotic confidence interval of Nogueira's index.

    With Φ the index, p the shares of the columns, k̄ the mean size and k_i that of set i,
    φ_i = [mean_f(z_if p_f) − k_i k̄/d² + Φ/2 · (2 k_i k̄/d² − k_i/d − k̄/d + 1)] / (k̄/d·(1 − k̄/d)),
    the variance of Φ is 4/M² · Σ(φ_i − φ̄)².

    References
    ----------
    S. Nogueira, K. Sechidis, G. Brown, JMLR 18(174), 2018.

    Examples
    --------
    >>> nogueira_interval(np.array([[1.0, 0, 0], [1, 0, 0]]))
    (1.0, 1.0)
    """
    index = nogueira_index(member)
    if (member == member[0]).all():
        return index, index
    share, sizes = member.mean(axis=0), member.mean(axis=1)
    size = share.mean()
    common = member @ share / member.shape[1]
    own = common - sizes * size + index / 2.0 * (2.0 * sizes * size - sizes - size + 1.0)
    own /= size * (1.0 - size)
    error = 2.0 / len(member) * sqrt(float(((own - own.mean()) ** 2).sum()))
    reach = normal_quantile(level) * error
    return index - reach, index + reach


def mean_jaccard(sets: Sequence[Collection[int]]) -> float:
    """Return the mean over all pairs of the columns in both by the columns in either.

    Examples
    --------
    >>> mean_jaccard([{0, 1}, {1, 2}, {1, 2}])
    0.5555555555555555
    """
    held = [frozenset(one) for one in sets]
    shares = [len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(held, 2)]
    return float(np.mean(shares))


def wilson(share: Floats, n: int, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return Wilson's interval for shares of n trials.

    Examples
    --------
    >>> low, high = wilson(np.array([0.5, 1.0]), 100)
    >>> low.round(4), high.round(4)
    (array([0.4038, 0.963 ]), array([0.5962, 1.    ]))
    """
    z = normal_quantile(level)
    about = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # At the ends the interval ends there too, and not a rounding error away.
    low, high = np.where(share > 0, about - reach, 0.0), np.where(share < 1, about + reach, 1.0)
    return low, high


def normal_quantile(level: float) -> float:
    """Return how many standard deviations about the mean hold this share of a normal variable.

    Examples
    --------
    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    return NormalDist().inv_cdf(0.5 + level / 2.0)
