"""The concrete selector layer: k nodes, each on the way to one column."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

__all__ = ["concrete", "distinct", "gumbel", "temperature"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# u may be zero, once in 2⁵³ numbers, and the logarithm of −ln 1 is none; below any other −ln.
LEAST = 2.0**-54


def temperature(epoch: int, epochs: int, start: float, end: float) -> float:
    """Return T = start·(end/start)^(epoch/epochs), and the end from then on.

    Examples
    --------
    >>> [round(temperature(epoch, 4, 10.0, 0.1), 3) for epoch in (0, 2, 4, 9)]
    [10.0, 1.0, 0.1, 0.1]
    """
    return float(start * (end / start) ** min(1.0, epoch / epochs))


def gumbel(rng: np.random.Generator, out: torch.Tensor) -> torch.Tensor:
    """Fill a tensor with Gumbel noise, −ln(−ln(1 − u)) of a uniform u.

    These are the numbers of ``rng.gumbel``, in half its time.
    """
    rng.random(out=out.numpy())
    return out.neg_().add_(1.0).log_().neg_().clamp_min_(LEAST).log_().neg_()


def concrete(
    logits: torch.Tensor, noise: torch.Tensor, T: float, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Return softmax((ln α + g)/T) of each row: one sample of the concrete distribution.

    The noise is used up: its memory holds something else afterwards.
    """
    import torch

    return torch.softmax(noise.add_(logits).mul_(1.0 / T), dim=1, out=out)


def distinct(logits: Floats, chances: Floats) -> tuple[Indices, Floats]:
    """Give every node a column of its own: the largest probability first, each column once.

    Parameters
    ----------
    logits : ndarray of shape (k, m)
        A row for each node.
    chances : ndarray of shape (k, m)
        Their softmax, row by row.

    Returns
    -------
    columns : ndarray of intp of shape (k,)
        The surest first.
    largest : ndarray of shape (k,)
        The largest probability of each node, whether it got that column or not.

    Examples
    --------
    >>> chances = np.array([[0.8, 0.1, 0.1], [0.7, 0.1, 0.2]])
    >>> distinct(np.log(chances), chances)
    (array([0, 2]), array([0.8, 0.7]))
    """
    k, m = logits.shape
    first = logits.argmax(axis=1)
    places = first + m * np.arange(k)
    largest = chances.ravel()[places]
    wanted = first.tolist()
    if len(set(wanted)) == k:
        return first[np.argsort(-largest, kind="stable")], largest
    # A node that comes too late looks for its next column that is free: at most k − 1 are taken.
    # Logarithms, for a probability may be too small for a number.
    logs = np.log(largest)
    levels = (logits.ravel()[places] - logs).tolist()
    queue = [(-value, node, wanted[node], 0) for node, value in enumerate(logs.tolist())]
    heapify(queue)
    rankings: dict[int, list[int]] = {}
    taken: dict[int, None] = {}
    while queue:
        _, node, column, rank = heappop(queue)
        if column not in taken:
            taken[column] = None
            continue
        if node not in rankings:
            rankings[node] = _first(logits[node], k)
        while (column := rankings[node][rank]) in taken:
            rank += 1
        heappush(queue, (levels[node] - float(logits[node, column]), node, column, rank))
    return np.array(list(taken), dtype=np.intp), largest


def _first(row: Floats, k: int) -> list[int]:
    """The k largest of a row, the largest first."""
    some = np.sort(np.argpartition(-row, k - 1)[:k])
    first: list[int] = some[np.argsort(-row[some], kind="stable")].tolist()
    return first
