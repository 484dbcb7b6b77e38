"""Weights of a network in one vector, Adam on it, and the losses of the targets.

Gradients are written out: for networks of one hidden layer these are few lines, and PyTorch's own
differentiation takes longer than the products themselves where a table is small.

Networks train on all rows at once in float64. Columns are sorted by relevance and have a common
sign, and last layers start at zero. So answers do not depend on order, names or units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from exactk.errors import MissingExtraError
from exactk.papers.methods.standard_table import standard_rows, target_unit
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices

if TYPE_CHECKING:
    import torch

__all__ = [
    "Adam",
    "DeepTable",
    "Kind",
    "Target",
    "deep_table",
    "require_torch",
    "row_batches",
    "shared",
    "start_bias",
    "start_weights",
    "tanh_",
    "tensor",
]


def require_torch(method: str) -> None:
    """Raise unless PyTorch is installed.

    Parameters
    ----------
    method : str
        The name of the method that asks.
    """
    if find_spec("torch") is None:
        raise MissingExtraError(
            f"{method} trains networks with PyTorch (torch), which is not installed: "
            f'pip install "exactk[deep]", or use a method that does not need it such as '
            f"'exchange'"
        )


Kind = Literal["classes", "labels", "numbers"]


@dataclass(frozen=True, eq=False)
class DeepTable:
    """Candidate columns and what is to be predicted from them, as dense arrays.

    Attributes
    ----------
    X : ndarray of shape (n, m)
        Centred, standardised candidate columns in the order of `columns`, each turned to the sign
        that `deep_table` describes.
    Y : ndarray of shape (n, c)
        0 and 1 for classes and labels; numbers are centred and of unit size.
    weights : ndarray of shape (n,)
        Weights of the rows; their sum is 1.
    columns : ndarray of shape (m,)
        Which columns of the problem these are.
    kind : {"classes", "labels", "numbers"}
        One class a row, several labels a row, or numbers.
    """

    X: Floats
    Y: Floats
    weights: Floats
    columns: Indices
    kind: Kind


def deep_table(problem: Problem, *, reconstruct: bool = False) -> DeepTable:
    """Read the candidate columns and the target of a problem.

    Columns stand in order of relevance, and where y is to have no part in it, of their fourth
    moment. A column is turned so that its mean product with the squared length of the rows,
    Σ_i w_i x_ij ‖x_i‖², is positive: a rule that does not hang on the order of rows or columns,
    nor on the signs of the others.

    Parameters
    ----------
    problem : Problem
        With rows; `solve` has checked that.
    reconstruct : bool
        The target is the table itself, and y is not looked at.

    Returns
    -------
    DeepTable
    """
    X, Y, weights = standard_rows(problem)
    w = np.full(len(X), 1.0 / len(X)) if weights is None else weights / weights.sum()
    order = np.argsort(-(w @ X**4), kind="stable") if reconstruct else problem.by_relevance
    X = np.ascontiguousarray(X[:, order])
    X *= np.where((w * np.einsum("ij,ij->i", X, X)) @ X < 0, -1.0, 1.0)
    columns = problem.candidates[order]
    if reconstruct:
        return DeepTable(X, X, w, columns, "numbers")
    if problem.task == "classification":
        return DeepTable(X, Y, w, columns, "labels" if problem.classes is None else "classes")
    return DeepTable(X, (Y - problem.y_mean) / target_unit(problem), w, columns, "numbers")


def row_batches(
    n: int, batch_size: int | None, rng: np.random.Generator
) -> Iterator[Indices | slice]:
    """Return the rows of one step after the other, until every row has had its turn.

    All rows at once where there is no `batch_size`; the generator is then left alone.

    Examples
    --------
    >>> [rows for rows in row_batches(5, None, np.random.default_rng(0))]
    [slice(None, None, None)]
    >>> sorted(len(rows) for rows in row_batches(5, 2, np.random.default_rng(0)))
    [1, 2, 2]
    """
    if batch_size is None or batch_size >= n:
        yield slice(None)
        return
    moved = rng.permutation(n)
    for start in range(0, n, batch_size):
        yield moved[start : start + batch_size]


# Decay of the means of gradients and of their squares, as in the paper of Adam.
BETA_1, BETA_2 = 0.9, 0.999
# A gradient that is zero but for rounding (1e-17) must not become a step: larger than usual.
EPSILON = 1e-7
# Least share of a class in a start, so that its logarithm is one.
RAREST = 1e-6
# Weights that Adam moves at a time: with what belongs to them they stay in the processor's cache.
BLOCK = 2**15


def tensor(array: npt.ArrayLike) -> torch.Tensor:
    """Return a float64 tensor with a copy of an array."""
    import torch

    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def shared(array: Floats) -> torch.Tensor:
    """Return a tensor on the memory of an array, which must not be written to."""
    import torch

    return torch.from_numpy(array) if array.flags.writeable else tensor(array)


def tanh_(x: torch.Tensor) -> torch.Tensor:
    """Put tanh x in the place of x, as 2/(1 + exp(−2x)) − 1.

    PyTorch's own tanh of float64 takes longer.
    """
    return x.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


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

    Attributes
    ----------
    parts : list of Tensor
        The weights, each in its shape. A step changes them in place.
    slopes : list of Tensor
        Where the gradient is to be put before a step. A step leaves something else there.

    Examples
    --------
    >>> adam = Adam([np.array([3.0])], [0.1])
    >>> for _ in range(200):
    ...     _ = adam.slopes[0].copy_(2.0 * (adam.parts[0] - 1.0))
    ...     adam.step()
    >>> round(float(adam.arrays()[0][0]), 2)
    1.0
    """

    def __init__(self, arrays: Sequence[Floats], rates: Sequence[float]) -> None:
        import torch

        shapes = [array.shape for array in arrays]
        sizes = [array.size for array in arrays]
        vector = tensor(np.concatenate([array.ravel() for array in arrays]))
        self._gradient, mean, square = (torch.zeros_like(vector) for _ in range(3))
        self.parts, self.slopes = (
            [piece.view(shape) for piece, shape in zip(whole.split(sizes), shapes, strict=True)]
            for whole in (vector, self._gradient)
        )
        # Neighbours of the same rate are moved together.
        ends = np.cumsum(sizes)
        last = np.append(np.diff(rates) != 0, True)
        pieces = np.diff(ends[last], prepend=0).tolist()
        state = (vector, self._gradient, mean, square)
        self._blocks = [
            (rate, *block)
            for rate, *whole in zip(
                np.asarray(rates)[last].tolist(), *(of.split(pieces) for of in state), strict=True
            )
            for block in zip(*(piece.split(BLOCK) for piece in whole), strict=True)
        ]
        self._steps = 0

    def arrays(self) -> list[Floats]:
        """Return the weights as arrays, which a step changes in place too."""
        return [part.numpy() for part in self.parts]

    def clear(self) -> None:
        """Set the gradient to zero, to add to it."""
        self._gradient.zero_()

    def step(self) -> None:
        """Take a step against the gradient."""
        import torch

        self._steps += 1
        # g/(1 − β₁ᵗ) / (√(s/(1 − β₂ᵗ)) + ε) with the constants taken out of the vectors.
        root = (1.0 - BETA_2**self._steps) ** 0.5
        length = root / (1.0 - BETA_1**self._steps)
        for rate, weights, gradient, mean, square in self._blocks:
            mean.lerp_(gradient, 1.0 - BETA_1)
            square.mul_(BETA_2).addcmul_(gradient, gradient, value=1.0 - BETA_2)
            size = torch.sqrt(square, out=gradient).add_(EPSILON * root)
            weights.addcdiv_(mean, size, value=-rate * length)


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted: the losses of outputs, and how they change with the outputs.

    Cross-entropy for classes; its mean over the labels where there are several in a row; the mean
    squared error for numbers. Outputs stand first, so that sums over these few run along the many
    rows.

    Attributes
    ----------
    Y : Tensor of shape (c, n)
    w : Tensor of shape (n,)
        Weights of the rows, divided by c where the loss is a mean over the outputs.
    products : Tensor of shape (c, n)
        w_i times Y.
    kind : {"classes", "labels", "numbers"}
    """

    Y: torch.Tensor
    w: torch.Tensor
    products: torch.Tensor
    kind: Kind

    @classmethod
    def of(cls, table: DeepTable) -> Target:
        """Return the target of a table."""
        Y, w = tensor(table.Y.T), tensor(table.weights)
        if table.kind != "classes":
            w /= len(Y)
        return cls(Y, w, w * Y, table.kind)

    def rows(self, rows: Indices | slice) -> Target:
        """Return the same of some rows; their weights are what they were."""
        return Target(self.Y[:, rows], self.w[rows], self.products[:, rows], self.kind)

    @property
    def weight(self) -> float:
        """Sum of the weights of the rows: 1 for all of them."""
        return float(self.w.sum()) * (1 if self.kind == "classes" else len(self.Y))

    def losses(self, output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return Σ_i w_i ℓ_i of several outputs, and its gradients.

        Parameters
        ----------
        output : Tensor of shape (p, c, n)
            p outputs for all the rows.

        Returns
        -------
        losses : Tensor of shape (p,)
        slopes : Tensor of shape (p, c, n)
            May be the memory of the output.
        """
        import torch

        if self.kind == "classes":
            logs = torch.log_softmax(output, 1)
            losses = -(logs.flatten(1) @ self.products.flatten())
            return losses, logs.exp_().mul_(self.w).sub_(self.products)
        if self.kind == "labels":
            losses = (torch.nn.functional.softplus(output) @ self.w).sum(1)
            losses -= output.flatten(1) @ self.products.flatten()
            return losses, output.sigmoid_().mul_(self.w).sub_(self.products)
        errors = output.sub_(self.Y)
        slopes = errors * self.w
        losses = (slopes * errors).sum((1, 2))
        return losses, slopes.mul_(2.0)


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
