"""CAE: the concrete autoencoder, whose k nodes each settle on one column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import count
from math import nan
from typing import TYPE_CHECKING, ClassVar, Literal

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
    shared,
    start_bias,
    start_weights,
    tanh_,
)
from exactk.params import Check, Choice, Integer, Number, Seed
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices

if TYPE_CHECKING:
    import torch

__all__ = [
    "CAE",
    "assign_unique",
    "concrete",
    "gumbel",
    "temperature",
]


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


def assign_unique(logits: Floats, chances: Floats) -> tuple[Indices, Floats]:
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
    >>> assign_unique(np.log(chances), chances)
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


# Mean of the nodes' largest probabilities at which they have decided; the authors' program.
DECIDED = 0.998


class CAE(IterativeMethod):
    """Concrete autoencoder: a decoder behind k nodes that are soft choices of one column each.

    Node i sees z_i = Σ_j M_ij x_j with M_i = softmax((ln α_i + g_i)/T), a sample of the concrete
    distribution: g is Gumbel noise, drawn anew for each step. The decoder tanh(zW₁ + b₁)W₂ + b₂
    predicts y, or the whole table. One step of Adam on Σ_i w_i ℓ_i with Σ w_i = 1, ℓ being the
    cross-entropy for classes and the squared error for numbers, moves ln α and the decoder
    together. The temperature falls from T₀ to T_B in B = `annealing` epochs,
    T(b) = T₀(T_B/T₀)^{b/B}, and stays there: soft choices become hard ones.

    It stops when the largest probability of softmax(ln α_i) is 0.998 in the mean of the nodes, or
    when the temperature is at its end and the k columns have not changed for `patience` epochs.
    Nodes may agree on a column. Each gets one of its own then, the largest probability of all
    first, so that there are always k. What is found depends on the seed: nothing is guaranteed.

    Parameters
    ----------
    mode : {"supervised", "reconstruction"}
        What the decoder predicts: y, or all columns of the table, in which case y is not looked
        at.
    hidden : int
        Width of the decoder's hidden layer.
    start_temperature, end_temperature : float
        T₀ and T_B: 10 and 0.01 in the paper, 10 and 0.1 in the authors' program.
    annealing : int
        B, the epochs in which the temperature falls.
    learning_rate : float
        Of the decoder.
    selector_rate : float
        Of ln α, which have further to go.
    batch_size : int or None
        Rows of a step; None is all of them. With batches the order of the rows matters.
    patience : int
        Epochs without a change that end it.
    max_iter : int
        Epochs at most.
    random_state : int, Generator, RandomState or None
        Seed of the weights and the noise; None is a fixed seed.

    Notes
    -----
    Cost: O(n·k·(d + hidden) + n·hidden·c) an epoch, c being d for a reconstruction. Memory: the
    standardised table in float64, k·d probabilities.

    Guaranteed: exactly k columns. Nothing of their quality: what is found depends on the seed.

    While they are warm the nodes see means of many columns, in which what a column tells in a
    curve alone, such as y = [|x| > 1], or only together with another, is lost: such columns are
    found by chance. `firdl` sees them.

    The paper reconstructs the table or predicts from it with decoders of up to two hidden layers,
    in batches of rows and thousands of steps at a small rate. Here a step sees all rows, so that
    their order does not matter, and there are fewer and larger ones. The program stops by the
    probabilities alone and begins anew with twice the epochs if they do not get there. Rows take
    part by weight; columns are standardised and come in an order and with a sign of their own
    (`exactk.papers.deep.training`). The ridge of the problem takes no part.

    References
    ----------
    M. F. Balın, A. Abid, J. Zou, "Concrete autoencoders: differentiable feature selection and
    reconstruction", ICML 2019.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="cae").support
    array([2, 3])
    """

    needs_rows: ClassVar[bool] = True
    extra: ClassVar[str] = "deep"
    checks: ClassVar[Mapping[str, Check]] = {
        "mode": Choice(options=("supervised", "reconstruction")),
        "hidden": Integer(1, 100_000),
        "start_temperature": Number("(0, inf)"),
        "end_temperature": Number("(0, inf)"),
        "annealing": Integer(1),
        "learning_rate": Number("(0, inf)"),
        "selector_rate": Number("(0, inf)"),
        "batch_size": Integer(1, none="all rows"),
        "patience": Integer(1),
        "max_iter": Integer(1),
        "random_state": Seed(),
    }

    def __init__(
        self,
        mode: Literal["supervised", "reconstruction"] = "supervised",
        hidden: int = 16,
        start_temperature: float = 10.0,
        end_temperature: float = 0.1,
        annealing: int = 200,
        learning_rate: float = 0.1,
        selector_rate: float = 0.2,
        batch_size: int | None = None,
        patience: int = 20,
        max_iter: int = 1000,
        random_state: object = None,
    ) -> None:
        self.mode = mode
        self.hidden = hidden
        self.start_temperature = start_temperature
        self.end_temperature = end_temperature
        self.annealing = annealing
        self.learning_rate = learning_rate
        self.selector_rate = selector_rate
        self.batch_size = batch_size
        self.patience = patience
        self.max_iter = max_iter
        self.random_state = random_state

    def check(self) -> None:  # noqa: D102
        super().check()
        require_torch("cae")

    def prepare(self, problem: Problem) -> DeepTable:  # noqa: D102
        return deep_table(problem, reconstruct=self.mode == "reconstruction")

    def starts(self, problem: Problem, k: int, prepared: DeepTable) -> Starts:  # noqa: D102
        return [Start(self._epochs(prepared, k))]

    def _epochs(self, table: DeepTable, k: int) -> Iterator[Step]:
        rng = generator(self.random_state)
        network = _Network(self, table, k, rng)
        chosen, same = np.empty(0, dtype=np.intp), 0
        for epoch in count():
            T = temperature(epoch, self.annealing, self.start_temperature, self.end_temperature)
            value = 0.0
            for rows in row_batches(len(table.X), self.batch_size, rng):
                value += network.learn(rows, T, rng)
            last = chosen
            chosen, largest = assign_unique(*network.probabilities())
            if not np.isfinite(largest).all():
                # What has overflowed names no columns.
                yield Step(table.columns[last], nan)
                return
            same = same + 1 if set(chosen.tolist()) == set(last.tolist()) else 0
            decided = largest.mean() >= DECIDED
            waited = epoch >= self.annealing and same >= self.patience
            yield Step(table.columns[chosen], value, bool(decided or waited))


class _Network:
    """Selector layer and decoder."""

    def __init__(self, method: CAE, table: DeepTable, k: int, rng: np.random.Generator) -> None:
        import torch

        m, c = table.X.shape[1], table.Y.shape[1]
        self.X = shared(table.X)
        self.target = Target.of(table)
        weights = [
            start_weights(rng, k, m),
            start_weights(rng, k, method.hidden),
            np.zeros(method.hidden),
            np.zeros((method.hidden, c)),
            start_bias(table.Y, table.weights, table.kind),
        ]
        self.adam = Adam(weights, [method.selector_rate, *4 * [method.learning_rate]])
        self.sample = torch.empty_like(self.adam.parts[0])

    def learn(self, rows: Indices | slice, T: float, rng: np.random.Generator) -> float:
        """Take a step on the mean loss of some rows; return their part in the mean of all."""
        if isinstance(rows, slice):
            loss = self.differentiate(self.X, self.target, T, 1.0, rng)
        else:
            target = self.target.rows(rows)
            loss = self.differentiate(self.X[rows], target, T, target.weight, rng)
        self.adam.step()
        return loss

    def differentiate(
        self, X: torch.Tensor, target: Target, T: float, weight: float, rng: np.random.Generator
    ) -> float:
        """Put the gradient of the loss, divided by a weight, into `adam`; return the loss."""
        import torch

        logits, W1, b1, W2, b2 = self.adam.parts
        in_logits, in_W1, in_b1, in_W2, in_b2 = self.adam.slopes
        # Noise and gradient are never there at the same time: one memory serves both.
        M = concrete(logits, gumbel(rng, out=in_logits), T, out=self.sample)
        z = M @ X.T
        hidden = tanh_(torch.addmm(b1[:, None], W1.T, z))
        losses, slopes = target.losses(torch.addmm(b2[:, None], W2.T, hidden)[None])
        slope = slopes[0] if weight == 1.0 else slopes[0].div_(weight)
        torch.mm(hidden, slope.T, out=in_W2)
        torch.sum(slope, 1, out=in_b2)
        slope = W2 @ slope
        slope.addcmul_(slope, hidden.square_(), value=-1.0)
        torch.mm(z, slope.T, out=in_W1)
        torch.sum(slope, 1, out=in_b1)
        slope = (W1 @ slope).mul_(1.0 / T)
        # M∘(S − Σ_j M_j S_j) with S = slope·X: the sum over the columns is one over the rows.
        torch.mm(slope, X, out=in_logits).sub_(slope.mul_(z).sum(1, keepdim=True)).mul_(M)
        return float(losses)

    def probabilities(self) -> tuple[Floats, Floats]:
        """Return ln α and the nodes' probabilities."""
        import torch

        logits = self.adam.parts[0]
        return logits.numpy(), torch.softmax(logits, 1, out=self.sample).numpy()
