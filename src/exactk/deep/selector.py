"""The concrete selector layer: k nodes, each on the way to one column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

__all__ = ["concrete", "distinct", "gumbel", "temperature"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def temperature(epoch: int, epochs: int, start: float, end: float) -> float:
    """Return T = start·(end/start)^(epoch/epochs), and the end from then on.

    Examples
    --------
    >>> [round(temperature(epoch, 4, 10.0, 0.1), 3) for epoch in (0, 2, 4, 9)]
    [10.0, 1.0, 0.1, 0.1]
    """
    return float(start * (end / start) ** min(1.0, epoch / epochs))


def gumbel(rng: np.random.Generator, nodes: int, columns: int) -> Floats:
    """Return Gumbel noise, −ln(−ln u) of a uniform u: a row for each node."""
    return rng.gumbel(size=(nodes, columns))


def concrete(logits: torch.Tensor, noise: torch.Tensor, T: float) -> torch.Tensor:
    """Return softmax((ln α + g)/T) of each row: one sample of the concrete distribution."""
    import torch

    return torch.softmax((logits + noise) / T, dim=1)


def distinct(probabilities: Floats) -> Indices:
    """Give every node a column of its own: the largest probability first, each column once.

    Returns
    -------
    ndarray of intp of shape (k,)
        Columns, the surest first.

    Examples
    --------
    >>> distinct(np.array([[0.9, 0.1, 0.0], [0.7, 0.1, 0.2]]))
    array([0, 2])
    """
    k, m = probabilities.shape
    # Only the k largest of a node can be its column: at most k − 1 are taken before it.
    first = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(probabilities, first, axis=1).ravel()
    nodes, columns = np.repeat(np.arange(k), first.shape[1]), first.ravel()
    chosen: list[int] = []
    free_node, free_column = np.ones(k, dtype=bool), np.ones(m, dtype=bool)
    for place in np.argsort(-values, kind="stable"):
        node, column = nodes[place], columns[place]
        if free_node[node] and free_column[column]:
            free_node[node] = free_column[column] = False
            chosen.append(int(column))
    return np.array(chosen, dtype=np.intp)
