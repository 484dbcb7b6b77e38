"""Likelihoods: multinomial logistic regression for classes, Poisson regression for counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from exactk.data.targets import Target, Task
from exactk.errors import InputError, Row, Setting
from exactk.losses.base import Criterion, Loss, contrasts, refuse_numbers
from exactk.losses.newton import MANY_OUTPUTS, LikelihoodCriterion
from exactk.losses.softmax_native import CompiledSoftmax, compiled_softmax
from exactk.types import Floats, Indices

__all__ = ["Logistic", "Poisson"]


# Logit of a class without rows; the others' add up to zero.
ABSENT = -30.0


class Logistic(Loss):
    """The deviance of multinomial logistic regression, −2 Σ log p(y_i | x_i).

    The probabilities are softmax(x_i W + b) over all classes, for two classes as for more: W has
    one column a class, and exactly k of its rows are not zero. Without a ridge, columns that
    separate the classes have no best coefficients: the deviance falls towards its limit while they
    grow without end. The choice of columns can still be made; the message of the result says so.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> problem = exactk.Problem.from_arrays(X, y, loss="logistic", ridge=0.001)
    >>> result = exactk.solve(problem, 3)
    >>> result.support, round(result.residual, 2)
    (array([21, 23, 27]), 98.76)
    """

    name: ClassVar[str] = "logistic"
    summary: ClassVar[str] = "−2 log p(y | x) of multinomial logistic regression"
    task: ClassVar[Task] = "classification"

    def check_task(self, task: str, *, classes: bool) -> None:  # noqa: D102
        refuse_numbers(self.name, task, classes)

    def bind(self, target: Target, weights: Floats) -> Criterion:  # noqa: D102
        assert target.codes is not None
        return _Multinomial(target.codes, target.n_outputs, weights)

    def total(self, target: Target, weights: Floats) -> Callable[[Floats], float]:  # noqa: D102
        # Of all classes: rows held out may lack some, and are none the likelier for that.
        rows, codes = np.arange(target.n_rows), target.codes
        return lambda P: 2.0 * float(weights @ (logsumexp(P, axis=1) - P[rows, codes]))


class Poisson(Loss):
    """The deviance of Poisson regression with a logarithmic link, for counts.

    2 Σ y log(y/μ) − (y − μ) with log μ = xW + b, summed over outputs if there are several; what
    scikit-learn's ``PoissonRegressor`` minimises. y is zero or more.

    Examples
    --------
    >>> import exactk
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 8))
    >>> y = rng.poisson(np.exp(1 + 0.5 * X[:, 2] - 0.4 * X[:, 5]))
    >>> problem = exactk.Problem.from_arrays(X, y, loss="poisson", task="regression")
    >>> exactk.solve(problem, 2).support
    array([2, 5])
    """

    name: ClassVar[str] = "poisson"
    summary: ClassVar[str] = "deviance of Poisson regression with a logarithmic link"
    task: ClassVar[Task] = "regression"

    def check_task(self, task: str, *, classes: bool) -> None:  # noqa: D102
        if task != "regression":
            raise InputError(
                "loss 'poisson' is for counts, and y was taken for classes", parameter="task",
                hint=("set ", Setting("task", "regression"), " (TopKRegressor has it)"),
            )  # fmt: skip

    def check_rows(self, target: Target, weights: Floats, numbers: Indices) -> None:  # noqa: D102
        Y = target.block(0, target.n_rows)
        negative = np.argwhere(Y < 0)
        if len(negative):
            row, column = negative[0]
            raise InputError(
                (f"loss 'poisson' is for counts, zero or more, and y is {Y[row, column]:g} in ",
                 Row(int(numbers[row]))),
                parameter="y", hint=("take ", Setting("loss", "squared"), " or 'huber'"),
            )  # fmt: skip
        empty = np.flatnonzero(weights @ Y == 0)
        if empty.size:
            raise InputError(
                f"output {empty[0]} of y is zero in every row that counts (of a fold, in every row "
                f"to train on): there is nothing to predict", parameter="y",
            )  # fmt: skip

    def bind(self, target: Target, weights: Floats) -> Criterion:  # noqa: D102
        return _Poisson(target.block(0, target.n_rows), weights)


class _Multinomial(LikelihoodCriterion):
    """Rows in the coordinates of `contrasts`: a constant for all classes changes nothing.

    A class may have no row here, as in a fold. Its best intercept is minus infinity, its best
    coefficients are zero: it is left out of the fit and gets next to no probability.
    """

    def __init__(self, codes: Indices, n_classes: int, w: Floats) -> None:
        present, self.codes = np.unique(codes, return_inverse=True)
        self.n_classes = len(present)
        self._among = among = contrasts(self.n_classes)
        basis, offset = np.zeros((n_classes, among.shape[1])), np.full(n_classes, ABSENT)
        basis[present], offset[present] = among, 0.0
        super().__init__(among[self.codes], w, basis, offset)
        first, second = self.pairs
        self._products = np.ascontiguousarray((among[:, first] * among[:, second]).T)
        self._rows = np.arange(len(codes))

    def centre(self) -> Floats:
        return np.log(np.bincount(self.codes, weights=self.w)) @ self._among

    def compiled(self, X: Floats, penalty: float) -> CompiledSoftmax | None:
        if self.n_outputs > MANY_OUTPUTS:
            return None
        return compiled_softmax(X, self.codes, self.w, self._among, penalty, self.limits)

    def forward(self, F: Floats) -> tuple[float, Floats]:
        """Return the deviance, and the probabilities, a row for each class."""
        eta = self._among @ F.T
        eta -= eta.max(axis=0)
        taken = eta[self.codes, self._rows]
        np.exp(eta, out=eta)
        total = eta.sum(axis=0)
        eta /= total
        return 2.0 * float((np.log(total) - taken) @ self.w), eta

    def derivatives(self, means: Floats) -> tuple[Floats, Floats]:
        mean = self._among.T @ means
        first, second = self.pairs
        h = self._products @ means
        h -= mean[first] * mean[second]
        h *= self.w
        return (self.T - mean.T) * self.w[:, None], h

    def working_residuals(self, means: Floats) -> Floats:
        return (self.T - means.T @ self._among) * self.w[:, None]

    def mean_curvature(self, means: Floats) -> Floats:
        omega: Floats = self.w * (means * (1.0 - means)).sum(axis=0) / (self.n_classes - 1)
        return omega

    def hessian_product(self, means: Floats, Z: Floats, theta: Floats) -> Floats:
        # Over classes, not contrasts: there h_i is diagonal but for one product.
        U = (self._among @ theta.T) @ Z
        U *= means
        U -= means * U.sum(axis=0)
        U *= self.w
        return (Z @ U.T) @ self._among


class _Poisson(LikelihoodCriterion):
    """Outputs side by side: each has a Hessian of its own."""

    def __init__(self, Y: Floats, w: Floats) -> None:
        c = Y.shape[1]
        super().__init__(Y, w, np.eye(c), np.zeros(c))
        self._counted, self._log = Y.T > 0, np.log(np.where(Y > 0, Y, 1.0)).T

    @property
    def scale(self) -> float:
        """All counts."""
        return float(self.w @ self.T.sum(axis=1))

    def _pairs(self) -> tuple[Indices, Indices]:
        each = np.arange(self.n_outputs)
        return each, each

    def centre(self) -> Floats:
        return np.log(np.average(self.T, axis=0, weights=self.w))

    def forward(self, F: Floats) -> tuple[float, Floats]:
        """Return the deviance, and the means, a row for each output."""
        mean, off = np.exp(F.T), F.T - self._log
        # y log(y/μ) − (y − μ) as y(eᵗ − 1 − t), t = log(μ/y): large counts do not cancel.
        rows = np.where(self._counted, self.T.T * (np.expm1(off) - off), mean)
        return 2.0 * float(rows.sum(axis=0) @ self.w), mean

    def derivatives(self, means: Floats) -> tuple[Floats, Floats]:
        return self.working_residuals(means), means * self.w

    def working_residuals(self, means: Floats) -> Floats:
        return (self.T - means.T) * self.w[:, None]

    def mean_curvature(self, means: Floats) -> Floats:
        omega: Floats = self.w * means.mean(axis=0)
        return omega

    def hessian_product(self, means: Floats, Z: Floats, theta: Floats) -> Floats:
        return Z @ ((means * self.w).T * (Z.T @ theta))
