"""FIRDL: one network predicts y from a mask of columns, another its loss from the mask alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import inf
from typing import ClassVar

import numpy as np

from exactk.methods.base import IterativeMethod, generator
from exactk.methods.iteration import Start, Starts, Step
from exactk.papers.deep.training import (
    Adam,
    DeepTable,
    Target,
    deep_table,
    require_torch,
    row_batches,
    start_bias,
    start_weights,
    tanh_,
    tensor,
)
from exactk.params import Check, Integer, Number, Seed
from exactk.problem.problem import Problem
from exactk.result import Answer
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = [
    "FIRDL",
    "MaskNet",
    "best_mask",
    "random_masks",
    "varied_masks",
]


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


# Epochs whose masks the selector network learns from at a time, as in the authors' program.
MEMORY = 8
# Swaps with which a mask is improved at most; theirs are 5 while learning and 12 at the end.
SWAPS = 12
# Share by which the loss must fall to count as fallen.
FALL = 0.01
# Values of the masked table that are held at a time: tens of megabytes with all that follows.
BLOCK_VALUES = 2**20


class FIRDL(IterativeMethod):
    """Dual nets: an operator f_O(x∘m, m) that predicts y, a selector f_S(m) that knows its loss.

    A mask m has k ones. In every epoch `n_masks` masks are given to the operator, which takes one
    step of Adam on the mean over masks of the loss L(m) = Σ_i w_i ℓ(f_O(x_i∘m, m), y_i), with
    Σ w_i = 1 and ℓ the cross-entropy for classes, the squared error for numbers. The selector then
    takes a step on the mean of (f_S(m) − L(m) + L̄)² over the masks of the last eight epochs, L̄
    being the mean loss of the random masks of the same epoch. Where f_S is low there is a good mask
    m*: the k largest of −∂f_S/∂m at m = ½, improved by swaps along the gradient at the mask itself
    while f_S falls. The masks are

    * `warm_up` epochs long drawn at random (phase I);
    * from then on (phase II) one half at random, m*, the best of the epoch before, and copies of
      m* with up to `perturbation` members exchanged at random.

    It stops in phase II when m* has not changed, or L(m*) not fallen by a hundredth of its lowest
    value, for `patience` epochs. The columns are those of m* in order of their importance
    −∂f_S/∂m at m*. What is found depends on the seed: nothing is guaranteed.

    Parameters
    ----------
    hidden : int
        Width of the one hidden layer (tanh) of either network.
    n_masks : int
        Masks in an epoch.
    warm_up : int
        Epochs of phase I.
    perturbation : int
        Members of m* that are exchanged at most in its copies.
    learning_rate : float
        Of both networks.
    batch_size : int or None
        Rows of a step; None is all of them. With batches the order of the rows matters.
    patience : int
        Epochs without a change, or without a fall, that end it.
    max_iter : int
        Epochs at most.
    random_state : int, Generator, RandomState or None
        Seed of the weights and masks; None is a fixed seed.

    Notes
    -----
    Cost: O(n_masks·n·hidden·(k + c)) an epoch. Memory: the standardised table in float64,
    2·d·hidden weights, blocks of rows.

    Guaranteed: exactly k columns. Nothing of their quality: what is found depends on the seed.

    It sees what columns do together: of the pair x₁x₂ > 0 no column says anything alone, and both
    are found, as long as random masks of k columns meet them often enough.

    The paper has networks of several layers, batches of rows, thousands of steps, and stops by
    the loss on validation rows. Here the networks are small, a step sees all rows, and all rows
    choose, so that the answer does not depend on their order. The selector is taught differences
    of losses, for these all fall while the operator learns. Rows take part by weight; columns
    are standardised and come in an order and with a sign of their own
    (`exactk.papers.deep.training`). The ridge of the problem takes no part.

    References
    ----------
    M. A. Wojtas, K. Chen, "Feature importance ranking for deep learning", NeurIPS 2020.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="firdl").support
    array([2, 3])
    """

    needs_rows: ClassVar[bool] = True
    extra: ClassVar[str] = "deep"
    checks: ClassVar[Mapping[str, Check]] = {
        "hidden": Integer(1, 100_000),
        "n_masks": Integer(4, 10_000),
        "warm_up": Integer(1),
        "perturbation": Integer(1),
        "learning_rate": Number("(0, inf)"),
        "batch_size": Integer(1, none="all rows"),
        "patience": Integer(1),
        "max_iter": Integer(1),
        "random_state": Seed(),
    }

    def __init__(
        self,
        hidden: int = 16,
        n_masks: int = 16,
        warm_up: int = 60,
        perturbation: int = 2,
        learning_rate: float = 0.03,
        batch_size: int | None = None,
        patience: int = 20,
        max_iter: int = 1000,
        random_state: object = None,
    ) -> None:
        self.hidden = hidden
        self.n_masks = n_masks
        self.warm_up = warm_up
        self.perturbation = perturbation
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.patience = patience
        self.max_iter = max_iter
        self.random_state = random_state

    def check(self) -> None:  # noqa: D102
        super().check()
        require_torch("firdl")

    def prepare(self, problem: Problem) -> DeepTable:  # noqa: D102
        return deep_table(problem)

    def starts(self, problem: Problem, k: int, prepared: DeepTable) -> Starts:  # noqa: D102
        return [Start(self._epochs(prepared, k))]

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        return _ordered(super().run(problem, k, monitor))

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer]:  # noqa: D102
        for answer in super().run_path(problem, k_max, monitor):
            yield _ordered(answer)

    def _epochs(self, table: DeepTable, k: int) -> Iterator[Step]:
        rng = generator(self.random_state)
        n, m = table.X.shape
        operator = _Operator(table, k, self.hidden, self.learning_rate, rng)
        selector = _Selector(m, self.hidden, self.learning_rate, rng)
        half = self.n_masks // 2
        best = chosen = np.arange(k)
        low, since_low, since_change = inf, 0, 0
        for epoch in count():
            masks = random_masks(rng, self.n_masks, m, k)
            if second := epoch >= self.warm_up:
                spare = self.n_masks - half - 2
                masks[half], masks[half + 1] = chosen, best
                masks[half + 2 :] = varied_masks(rng, chosen, spare, m, self.perturbation)
            losses = np.zeros(self.n_masks)
            for rows in row_batches(n, self.batch_size, rng):
                losses += operator.learn(masks, rows)
            selector.learn(masks, losses - losses[:half].mean())
            best, last = masks[int(np.argmin(losses))], chosen
            chosen = best_mask(selector.net, k, SWAPS)
            value = float(losses[half] if second else losses.mean())
            if second:
                same = np.array_equal(np.sort(chosen), np.sort(last))
                since_change = since_change + 1 if same else 0
                since_low = 0 if value < (1.0 - FALL) * low else since_low + 1
                low = min(low, value)
            settled = max(since_change, since_low) >= self.patience
            yield Step(table.columns[chosen], value, settled)


class _Operator:
    """f_O: tanh((x∘m)A + mB + b₁)·W + b₂, taught for several masks at once."""

    def __init__(
        self, table: DeepTable, k: int, hidden: int, rate: float, rng: np.random.Generator
    ) -> None:
        m, c = table.X.shape[1], table.Y.shape[1]
        # Columns as rows: those of a mask are then read as wholes.
        self.X, self.target = tensor(table.X.T), Target.of(table)
        # Of m columns k take part at a time: the sums are to be of size one for these.
        size = np.sqrt((m + hidden) / (k + hidden))
        weights = [
            size * start_weights(rng, m, hidden),
            size * start_weights(rng, m, hidden),
            np.zeros(hidden),
            np.zeros((hidden, c)),
            start_bias(table.Y, table.weights, table.kind),
        ]
        self.adam = Adam(weights, [rate] * len(weights))

    def learn(self, masks: Indices, rows: Indices | slice) -> Floats:
        """Take a step on the mean loss of the masks; return the part of these rows in each.

        Only the k columns of a mask are looked at, and so many rows at a time as fit; the step is
        that of all rows together.
        """
        import torch

        X, target, weight = self.X, self.target, 1.0
        if not isinstance(rows, slice):
            X, target = X[:, rows], target.rows(rows)
            weight = target.weight
        count, k = masks.shape
        which = torch.from_numpy(masks).flatten()
        A, B, b1, W, b2 = self.adam.parts
        in_A, in_B, in_b1, in_W, in_b2 = self.adam.slopes
        A = A.index_select(0, which).view(count, k, -1)
        shift = B.index_select(0, which).view(count, k, -1).sum(1).add_(b1)[:, :, None]
        W, b2 = W.expand(count, -1, -1), b2[:, None]
        self.adam.clear()
        losses = torch.zeros(count, dtype=X.dtype)
        to_A, to_shift = torch.zeros_like(A), torch.zeros_like(shift)
        n, block = X.shape[1], max(1, BLOCK_VALUES // masks.size)
        for start in range(0, n, block):
            part = slice(start, start + block)
            x = X[:, part].index_select(0, which).view(count, k, -1)
            hidden = tanh_(torch.baddbmm(shift, A.mT, x))
            some, slope = target.rows(part).losses(torch.baddbmm(b2, W.mT, hidden))
            losses += some
            slope.div_(count * weight)
            in_W += (hidden @ slope.mT).sum(0)
            in_b2 += slope.sum((0, 2))
            slope = torch.bmm(W, slope)
            slope.addcmul_(slope, hidden.square_(), value=-1.0)
            to_A.baddbmm_(x, slope.mT)
            to_shift += slope.sum(2, keepdim=True)
        in_A.index_add_(0, which, to_A.flatten(0, 1))
        in_B.index_add_(0, which, to_shift.mT.expand(-1, k, -1).flatten(0, 1))
        torch.sum(to_shift[:, :, 0], 0, out=in_b1)
        self.adam.step()
        return losses.numpy()


class _Selector:
    """f_S: a `MaskNet` that learns from the masks of the last few epochs."""

    def __init__(self, m: int, hidden: int, rate: float, rng: np.random.Generator) -> None:
        weights = [start_weights(rng, m, hidden), np.zeros(hidden), np.zeros(hidden)]
        self.adam = Adam(weights, [rate] * len(weights))
        self.net = MaskNet(*self.adam.arrays())
        self.memory: list[tuple[Indices, Floats]] = []

    def learn(self, masks: Indices, losses: Floats) -> None:
        """Take a step on the squared errors, of these and of what is remembered."""
        import torch

        self.memory = [*self.memory, (masks, losses)][-MEMORY:]
        masks, losses = (np.concatenate(parts) for parts in zip(*self.memory, strict=True))
        count, k = masks.shape
        which = torch.from_numpy(masks).flatten()
        V, b, a = self.adam.parts
        in_V, in_b, in_a = self.adam.slopes
        hidden = tanh_(V.index_select(0, which).view(count, k, -1).sum(1).add_(b))
        slope = torch.mv(hidden, a).sub_(torch.from_numpy(losses)).mul_(2.0 / count)
        torch.mv(hidden.T, slope, out=in_a)
        slopes = slope[:, None] * a
        slopes.addcmul_(slopes, hidden.square_(), value=-1.0)
        torch.sum(slopes, 0, out=in_b)
        in_V.zero_().index_add_(0, which, slopes.repeat_interleave(k, 0))
        self.adam.step()


def _ordered(answer: Answer) -> Answer:
    """The same columns, in order of importance where networks were trained."""
    return replace(answer, ordered=answer.n_iter > 0)
