"""Masks of k columns: drawn, varied, and improved along the gradient of a network of masks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["MaskNet", "best_mask", "mask_matrix", "random_masks", "varied_masks"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class MaskNet:
    """f(m) = tanh(mV + b)·a, the loss that a mask m is thought to have, up to a constant.

    Examples
    --------
    >>> net = MaskNet(np.array([[1.0], [0.0]]), np.zeros(1), np.array([-1.0]))
    >>> net.values(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3)
    array([ 0.   , -0.762])
    >>> net.gradient(np.zeros(2)).tolist()
    [-1.0, 0.0]
    """

    V: Floats
    b: Floats
    a: Floats

    def values(self, masks: Floats) -> Floats:
        """Return f of each row."""
        values: Floats = np.tanh(masks @ self.V + self.b) @ self.a
        return values

    def gradient(self, mask: Floats) -> Floats:
        """Return the gradient of f at a mask."""
        slope = self.a * (1.0 - np.tanh(mask @ self.V + self.b) ** 2)
        gradient: Floats = self.V @ slope
        return gradient


def random_masks(rng: np.random.Generator, count: int, m: int, k: int) -> Indices:
    """Return `count` sets of k of m columns, each as likely as any other."""
    masks: Indices = np.argpartition(rng.random((count, m)), k - 1, axis=1)[:, :k]
    return masks


def varied_masks(
    rng: np.random.Generator, mask: Indices, count: int, m: int, swaps: int
) -> Indices:
    """Return copies of a set in which up to `swaps` members, drawn at random, are others."""
    k = len(mask)
    swaps = min(swaps, k, m - k)
    free = np.ones(m, dtype=bool)
    free[mask] = False
    outside = np.flatnonzero(free)
    masks = np.tile(mask, (count, 1))
    leave = random_masks(rng, count, k, swaps)
    enter = outside[random_masks(rng, count, m - k, swaps)]
    np.put_along_axis(masks, leave, enter, axis=1)
    return masks


def mask_matrix(masks: Indices, m: int) -> Floats:
    """Return the sets as rows of zeros and ones.

    Examples
    --------
    >>> mask_matrix(np.array([[0, 2], [1, 2]]), 3)
    array([[1., 0., 1.],
           [0., 1., 1.]])
    """
    matrix = np.zeros((len(masks), m))
    np.put_along_axis(matrix, masks, 1.0, axis=1)
    return matrix


def best_mask(net: MaskNet, k: int, swaps: int) -> Indices:
    """Return k columns where f is low, in order of their importance −∂f/∂m there.

    The k largest importances at m = ½ are taken first. Then, `swaps` times at most, the outsider
    of the largest importance takes the place of the member with which f falls most, as long as it
    falls.

    Examples
    --------
    >>> net = MaskNet(np.array([[1.0], [0.0], [2.0]]), np.zeros(1), np.array([-1.0]))
    >>> best_mask(net, 2, swaps=5).tolist()
    [2, 0]
    """
    m = len(net.V)
    # Far from the masks the slope may be all but zero: what is equal goes by relevance.
    members = np.sort(np.argsort(net.gradient(np.full(m, 0.5)), kind="stable")[:k])
    reach = net.V[members].sum(axis=0) + net.b
    bent = np.tanh(reach)
    gradient = net.V @ (net.a * (1.0 - bent**2))
    for _ in range(swaps):
        outsiders = gradient.copy()
        outsiders[members] = np.inf
        outsider = int(np.argmin(outsiders))
        reaches = reach + net.V[outsider] - net.V[members]
        values = np.tanh(reaches) @ net.a
        place = int(np.argmin(values))
        if not values[place] < bent @ net.a:
            break
        members[place], reach = outsider, reaches[place]
        bent = np.tanh(reach)
        gradient = net.V @ (net.a * (1.0 - bent**2))
    members = np.sort(members)
    chosen: Indices = members[np.argsort(gradient[members], kind="stable")]
    return chosen
