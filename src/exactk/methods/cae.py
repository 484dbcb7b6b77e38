"""CAE: the concrete autoencoder, whose k nodes each settle on one column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from math import nan
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactk.checks import Check, Choice, Number, Seed, Whole
from exactk.deep.need import need_torch
from exactk.deep.selector import concrete, distinct, gumbel, temperature
from exactk.deep.table import DeepTable, deep_table, row_batches
from exactk.deep.train import Adam, Target, bend, shared, start_bias, start_weights
from exactk.iterative.course import Start, Starts, Step
from exactk.methods.base import IterativeMethod, generator
from exactk.problem import Problem

if TYPE_CHECKING:
    import torch

__all__ = ["CAE"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

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
    (`exactk.deep.table`). The ridge of the problem takes no part.

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
        "mode": Choice(words=("supervised", "reconstruction")),
        "hidden": Whole(1, 100_000),
        "start_temperature": Number("(0, inf)"),
        "end_temperature": Number("(0, inf)"),
        "annealing": Whole(1),
        "learning_rate": Number("(0, inf)"),
        "selector_rate": Number("(0, inf)"),
        "batch_size": Whole(1, none="all rows"),
        "patience": Whole(1),
        "max_iter": Whole(1),
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
        need_torch("cae")

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
            chosen, largest = distinct(*network.chances())
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
        hidden = bend(torch.addmm(b1[:, None], W1.T, z))
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

    def chances(self) -> tuple[Floats, Floats]:
        """Return ln α and the nodes' probabilities."""
        import torch

        logits = self.adam.parts[0]
        return logits.numpy(), torch.softmax(logits, 1, out=self.sample).numpy()
