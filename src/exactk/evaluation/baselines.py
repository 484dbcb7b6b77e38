"""Selection methods of scikit-learn, to be compared with those of exactk.

A new one is a function of `TrainingData` and k that returns k columns, and one entry in
`BASELINES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import Lasso, LogisticRegression, MultiTaskLasso, Ridge
from sklearn.preprocessing import StandardScaler

from exactk.errors import ExactkError, InputError
from exactk.methods.base import Method
from exactk.native.threads import limit_threads
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = ["BASELINES", "Baseline", "OutOfTimeError", "TrainingData"]

# The elimination drops a fifth of the columns at a time until this many (or 2k) are left.
FEW_COLUMNS, KEPT_SHARE = 100, 0.8
# Largest number of fits for the last columns.
MAX_FITS = 100
# Halvings of the L1 penalty until k columns remain, then of the last interval.
HALVINGS, REFINEMENTS = 17, 12


class OutOfTimeError(ExactkError):
    """The time limit ended a baseline before it had an answer."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training rows as scikit-learn takes them; `x` has no constant columns.

    The target is the class number of each row, or a matrix of numbers, or of labels 0 and 1.
    """

    x: Floats
    y: npt.NDArray[Any]
    weights: Floats | None
    task: str
    seed: int
    monitor: Monitor

    @cached_property
    def standardised(self) -> Floats:
        """The columns with mean 0 and variance 1."""
        return self._scaled(self.x)

    @cached_property
    def outputs(self) -> Floats:
        """The numbers or labels of the target with mean 0 and variance 1."""
        return self._scaled(self.y.astype(np.float64))

    def _scaled(self, values: Floats) -> Floats:
        scaler = StandardScaler().fit(values, sample_weight=self.weights)
        scaled: Floats = scaler.transform(values)
        return scaled

    @property
    def counts(self) -> Floats:
        """Weight of each row."""
        return np.ones(len(self.x)) if self.weights is None else self.weights

    def check_clock(self) -> None:
        """Raise if the time is up."""
        if self.monitor.expired:
            raise OutOfTimeError(
                "the time limit ended the search before it had an answer",
                parameter="time_limit", hint="raise it",
            )  # fmt: skip


class Baseline(Method):
    """One of `BASELINES` as a method of exactk, which never selects some columns."""

    needs_rows = True

    def __init__(self, name: str, exclude: Any = (), random_state: int | None = None) -> None:
        self.name, self.exclude, self.random_state = name, exclude, random_state

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        rows, target = problem.rows, problem.target
        assert rows is not None
        assert target is not None
        columns = np.setdiff1d(problem.usable, self.exclude)
        if k > len(columns):
            most = f"a whole number of at most {len(columns)} for {self.name}"
            raise InputError(parameter="k", value=k, expected=most)
        size = 8 * rows.n_rows * len(columns)
        if size > problem.memory_limit:
            raise InputError(
                f"{self.name} needs {rows.n_rows:,} rows and {len(columns):,} columns as an array "
                f"of {size / 2**30:.1f} GiB, and memory_limit is {problem.memory_limit}",
                parameter="memory_limit", value=problem.memory_limit, hint="raise it",
            )  # fmt: skip
        y: Any = target.values if target.codes is None else target.codes
        if problem.output_scale is not None:
            y = y * problem.output_scale
        training = TrainingData(
            rows.columns(columns), y, problem.weights, problem.task, self.random_state or 0, monitor
        )
        with limit_threads(training.x.size):
            found = columns[BASELINES[self.name](training, k)]
        return Answer(found.tolist(), Status.CONVERGED, 0)


def select_k_best(training: TrainingData, k: int) -> Indices:
    """SelectKBest: the k columns with the largest F statistic.

    F grows with the share of variance that a column has in common with the target, which is also
    defined for weighted rows and several outputs.
    """
    # Of equal columns scikit-learn selects the last ones.
    return np.sort(np.argsort(_relevance(training), kind="stable")[-k:])


def select_rfe(training: TrainingData, k: int) -> Indices:
    """RFE: a linear model on standardised columns; the column of least weight is dropped, again.

    Logistic regression for classes; ridge regression for numbers and several labels per row. The
    class of scikit-learn drops equally many columns each time: slow, or coarse at the end.
    """
    x, y, left = training.standardised, training.y, np.arange(training.x.shape[1])
    model = LogisticRegression(max_iter=1000) if y.ndim == 1 else Ridge()
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    few = min(max(FEW_COLUMNS, 2 * k), len(left))
    step = max(1, ceil((few - k) / MAX_FITS))
    while len(left) > k:
        training.check_clock()
        coef = np.atleast_2d(model.fit(x[:, left], y, sample_weight=training.weights).coef_)
        kept = max(few, int(KEPT_SHARE * len(left))) if len(left) > few else len(left) - step
        left = left[_largest((coef**2).sum(axis=0), max(k, kept))]
    return left


def select_l1(training: TrainingData, k: int) -> Indices:
    """L1 penalty: the strongest one that leaves k columns, then the largest coefficients.

    One logistic regression for each class or label; the lasso for numbers, the multi-task lasso
    for several outputs. Columns are standardised, and the norm of a column's coefficients counts.
    """
    fit = _logistic_norms(training) if training.task == "classification" else _lasso_norms(training)
    weak = strong = 1.0
    norms = np.zeros(training.x.shape[1])
    for _ in range(HALVINGS):
        weak, strong = weak / 2.0, weak
        training.check_clock()
        norms = fit(weak)
        if np.count_nonzero(norms) >= k:
            break
    for _ in range(REFINEMENTS):
        if np.count_nonzero(norms) <= k:
            break
        training.check_clock()
        middle = np.sqrt(weak * strong)
        found = fit(middle)
        if np.count_nonzero(found) >= k:
            weak, norms = middle, found
        else:
            strong = middle
    # Copies of a selected column may never get a coefficient.
    return _largest(norms, k, _relevance(training))


def _logistic_norms(training: TrainingData) -> Callable[[float], Floats]:
    """Norms of the coefficients of each column, by the penalty as a share of the strongest."""
    x, y, w = training.standardised, training.y, training.counts
    # Class by class: the solver for all classes at once selects nearly the same columns, and is
    # many times slower on wide tables.
    labels = y > 0 if y.ndim == 2 else y[:, None] == np.unique(y)
    if y.ndim == 1 and labels.shape[1] == 2:
        labels = labels[:, :1]
    labels = labels[:, labels.any(axis=0) & ~labels.all(axis=0)]
    shares = w @ labels / w.sum()
    strongest = np.abs(x.T @ (w[:, None] * (labels - shares))).max()
    # scikit-learn 1.8 renamed the parameter.
    old = LogisticRegression().get_params()["penalty"] == "l2"
    kind: dict[str, Any] = {"penalty": "l1"} if old else {"l1_ratio": 1.0}

    def fit(share: float) -> Floats:
        model = LogisticRegression(
            C=1.0 / (share * strongest), solver="liblinear", max_iter=1000,
            random_state=training.seed, **kind,
        )  # fmt: skip
        coefs = []
        for label in labels.T:
            training.check_clock()
            coefs.append(model.fit(x, label, sample_weight=training.weights).coef_[0])
        return np.linalg.norm(coefs, axis=0)

    return fit


def _lasso_norms(training: TrainingData) -> Callable[[float], Floats]:
    """The same for numbers."""
    root = np.sqrt(training.counts / training.counts.mean())[:, None]
    x, y = np.asfortranarray(training.standardised * root), training.outputs * root
    strongest = np.linalg.norm(x.T @ y, axis=1).max() / len(x)
    several = y.shape[1] > 1
    kind = MultiTaskLasso if several else Lasso
    model = kind(fit_intercept=False, max_iter=10_000, warm_start=True)
    target = np.asfortranarray(y) if several else y[:, 0]

    def fit(share: float) -> Floats:
        model.set_params(alpha=share * strongest).fit(x, target)
        return np.linalg.norm(np.atleast_2d(model.coef_), axis=0)

    return fit


def _relevance(training: TrainingData) -> Floats:
    """Share of variance that each column shares with each output or with the classes, summed."""
    x, w = training.standardised, training.counts
    if training.y.ndim == 2:
        common: Floats = x.T @ (w[:, None] * training.outputs) / w.sum()
        return (common**2).sum(axis=1)
    member = (training.y[:, None] == np.unique(training.y)) * w[:, None]
    sums: Floats = x.T @ member
    return (sums**2 / member.sum(axis=0)).sum(axis=1) / w.sum()


def _largest(values: Floats, k: int, then: Floats | None = None) -> Indices:
    """Return the k largest; equal ones by a second measure, then by position."""
    order = np.lexsort((-values,) if then is None else (-then, -values))
    return np.sort(order[:k])


BASELINES: dict[str, Callable[[TrainingData, int], Indices]] = {
    "selectkbest": select_k_best,
    "rfe": select_rfe,
    "l1": select_l1,
}
