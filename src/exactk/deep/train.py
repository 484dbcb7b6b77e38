"""Weights of a network in one vector, Adam on it, and the losses of the targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from exactk.deep.table import Kind

if TYPE_CHECKING:
    import torch

__all__ = ["Adam", "row_losses", "start_bias", "start_weights", "tensor"]

Floats = npt.NDArray[np.float64]

# Decay of the means of gradients and of their squares, as in the paper of Adam.
BETA_1, BETA_2 = 0.9, 0.999
# A gradient that is zero but for rounding (1e-17) must not become a step: larger than usual.
EPSILON = 1e-7
# Least share of a class in a start, so that its logarithm is one.
RAREST = 1e-6


def tensor(array: npt.ArrayLike) -> torch.Tensor:
    """Return a float64 tensor with a copy of an array."""
    import torch

    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


class Adam:
    """Adam on all the weights of a network, which are one vector in float64.

    PyTorch's own optimiser loads its compiler for more than a second and needs twice the time for
    a step of a small network.

    Parameters
    ----------
    arrays : sequence of ndarray
        The weights at the start.
    rates : sequence of float
        Learning rate of each.

    Examples
    --------
    >>> adam = Adam([np.array([3.0])], [0.1])
    >>> for _ in range(200):
    ...     (x,) = adam.parts()
    ...     adam.step(((x - 1.0) ** 2).sum())
    >>> round(float(adam.arrays()[0][0]), 2)
    1.0
    """

    def __init__(self, arrays: Sequence[Floats], rates: Sequence[float]) -> None:
        import torch

        self._shapes = [array.shape for array in arrays]
        self._sizes = [array.size for array in arrays]
        self._vector = tensor(np.concatenate([array.ravel() for array in arrays]))
        self._vector.requires_grad_(True)
        self._rates = tensor(np.repeat(np.asarray(rates, dtype=np.float64), self._sizes))
        self._mean = torch.zeros_like(self._vector, requires_grad=False)
        self._square = torch.zeros_like(self._mean)
        self._steps = 0

    def parts(self) -> list[torch.Tensor]:
        """Return the weights, each in its shape, to compute a loss from."""
        pieces = self._vector.split(self._sizes)
        return [piece.view(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]

    def arrays(self) -> list[Floats]:
        """Return copies of the weights."""
        return [part.detach().numpy().copy() for part in self.parts()]

    def gradient(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the gradient of a loss with respect to all weights, as one vector."""
        import torch

        (gradient,) = torch.autograd.grad(loss, self._vector)
        return gradient

    def step(self, loss: torch.Tensor) -> None:
        """Take a step against the gradient of a loss."""
        self.follow(self.gradient(loss))

    def follow(self, gradient: torch.Tensor) -> None:
        """Take a step against a gradient."""
        import torch

        self._steps += 1
        with torch.no_grad():
            self._mean.lerp_(gradient, 1.0 - BETA_1)
            self._square.mul_(BETA_2).addcmul_(gradient, gradient, value=1.0 - BETA_2)
            size = (self._square / (1.0 - BETA_2**self._steps)).sqrt_().add_(EPSILON)
            self._vector.sub_(self._rates * self._mean / size / (1.0 - BETA_1**self._steps))


def row_losses(output: torch.Tensor, Y: torch.Tensor, kind: Kind) -> torch.Tensor:
    """Return the loss of each row: the last axis, the outputs, is gone.

    Cross-entropy for classes; its mean over the labels where there are several in a row; the mean
    squared error for numbers.
    """
    import torch

    if kind == "classes":
        return torch.logsumexp(output, -1) - (output * Y).sum(-1)
    if kind == "labels":
        return (torch.nn.functional.softplus(output) - output * Y).mean(-1)
    return ((output - Y) ** 2).mean(-1)


def start_weights(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    """Return normal weights of variance 2 / (rows + columns)."""
    return rng.standard_normal((rows, columns)) * np.sqrt(2.0 / (rows + columns))


def start_bias(Y: Floats, weights: Floats, kind: Kind) -> Floats:
    """Return the outputs that fit best without any column.

    The weights of the last layer start at zero beside it, so that neither the order of the
    classes nor the sign of a number means anything.
    """
    share = weights @ Y
    if kind == "numbers":
        return share
    share = np.clip(share, RAREST, 1.0 - RAREST)
    logit: Floats = np.log(share) if kind == "classes" else np.log(share / (1.0 - share))
    return logit
