"""The usual ways of scikit-learn to keep k columns, to be set beside the methods of exactk.

A way more is a function of a `TrainingData` and k that returns k columns, and one entry in
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
from sklearn.feature_selection import RFE, SelectKBest, f_classif, f_regression
from sklearn.linear_model import Lasso, LogisticRegression, MultiTaskLasso, Ridge
from sklearn.preprocessing import StandardScaler

from exactk.errors import ExactkError
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor

__all__ = ["BASELINES", "Baseline", "OutOfTimeError", "TrainingData"]


# Above so many columns (or 2k) a fifth of them goes at once, below one by one.
FEW_COLUMNS = 100
COARSE = 0.8
# Fits of the last part of an elimination.
MOST_FITS = 100
# A penalty is halved, and then the last interval halved, so many times at most.
HALVINGS = 17
REFINEMENTS = 12


class OutOfTimeError(ExactkError):
    """The time limit came before there was an answer."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training rows as scikit-learn takes them.

    Attributes
    ----------
    x : ndarray of shape (n, m)
        Columns that are not constant.
    y : ndarray
        A number for each row's class, shape (n,); or numbers, or labels of 0 and 1, shape (n, c).
    weights : ndarray of shape (n,) or None
    task : {"classification", "regression"}
    seed : int
    monitor : Monitor
        The clock.
    """

    x: Floats
    y: npt.NDArray[Any]
    weights: Floats | None
    task: str
    seed: int
    monitor: Monitor

    @property
    def has_classes(self) -> bool:
        """Whether each row has one label."""
        return self.y.ndim == 1

    @cached_property
    def standardised(self) -> Floats:
        """The columns with mean 0 and variance 1."""
        scaled: Floats = StandardScaler().fit(self.x, sample_weight=self.weights).transform(self.x)
        return scaled

    @property
    def counts(self) -> Floats:
        """What each row weighs."""
        return np.ones(len(self.x)) if self.weights is None else self.weights

    def outputs(self) -> Floats:
        """The target in columns, with mean 0 and variance 1; a column of 0 and 1 for each class."""
        values = self.y[:, None] == np.unique(self.y) if self.has_classes else self.y
        scaler = StandardScaler().fit(values.astype(np.float64), sample_weight=self.weights)
        scaled: Floats = scaler.transform(values.astype(np.float64))
        return scaled

    def check_clock(self) -> None:
        """Raise where the time is up."""
        if self.monitor.expired:
            raise OutOfTimeError("the time limit came before an answer")


Baseline = Callable[[TrainingData, int], Indices]


def select_k_best(training: TrainingData, k: int) -> Indices:
    """SelectKBest: the k columns with the largest F statistic, each by itself.

    With weights, or several outputs, by the share of variance that F grows with, weighted, and
    added up over the outputs.
    """
    simple = training.has_classes or training.y.shape[1] == 1
    if training.weights is not None or not simple:
        return _largest(_explained_alone(training), k)
    statistic = f_classif if training.has_classes else f_regression
    y = training.y if training.has_classes else training.y[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Indices = SelectKBest(statistic, k=k).fit(training.x, y).get_support(indices=True)
    return found


def select_rfe(training: TrainingData, k: int) -> Indices:
    """RFE: a linear model on standardised columns, the one of least weight goes, and again.

    Logistic regression for classes, ridge regression for numbers and for several labels a row.
    """
    x, left = training.standardised, np.arange(training.x.shape[1])
    few = max(FEW_COLUMNS, 2 * k)
    while len(left) > few:
        training.check_clock()
        model, y = _linear(training)
        weights = np.atleast_2d(model.fit(x[:, left], y, sample_weight=training.weights).coef_)
        kept = max(few, int(COARSE * len(left)))
        left = left[_largest((weights**2).sum(axis=0), kept)]

    def weights_in_time(model: Any) -> Any:
        training.check_clock()
        return model.coef_

    model, y = _linear(training)
    step = max(1, ceil((len(left) - k) / MOST_FITS))
    rfe = RFE(model, n_features_to_select=k, step=step, importance_getter=weights_in_time)
    weighted = {} if training.weights is None else {"sample_weight": training.weights}
    found: Indices = left[rfe.fit(x[:, left], y, **weighted).get_support(indices=True)]
    return found


def _linear(training: TrainingData) -> tuple[Any, npt.NDArray[Any]]:
    """A model with coefficients, and the target that it takes."""
    if training.has_classes:
        return LogisticRegression(max_iter=1000), training.y
    return Ridge(), training.y if training.y.shape[1] > 1 else training.y[:, 0]


def select_l1(training: TrainingData, k: int) -> Indices:
    """L1 penalty: the strongest at which k columns remain, then the largest coefficients.

    Logistic regressions, one for each class or label, or the lasso; the multi-task lasso for
    several outputs. Columns are standardised, and coefficients of one column taken together.
    """
    fit = _logistic_norms(training) if training.task == "classification" else _lasso_norms(training)
    if k == training.x.shape[1]:
        return np.arange(k)
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
    # Copies of a column that is in may never enter.
    return _largest(norms, k, _explained_alone(training))


def _logistic_norms(training: TrainingData) -> Callable[[float], Floats]:
    """Norms of the coefficients of each column, by the penalty as a share of the strongest."""
    x, w = training.standardised, training.counts
    labels = (
        training.y[:, None] == np.unique(training.y) if training.has_classes else training.y > 0
    )
    # One class after the other: the solver for all at once chooses nearly the same columns, and
    # takes many times as long on wide tables.
    if training.has_classes and labels.shape[1] == 2:
        labels = labels[:, :1]
    # Of a label that all rows have there is nothing to learn.
    labels = labels[:, labels.any(axis=0) & ~labels.all(axis=0)]
    shares = w @ labels / w.sum()
    strongest = np.abs(x.T @ (w[:, None] * (labels - shares))).max()
    # The name of the penalty has changed in scikit-learn 1.8.
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
    x, y = np.asfortranarray(training.standardised * root), training.outputs() * root
    strongest = np.linalg.norm(x.T @ y, axis=1).max() / len(x)
    options = {"fit_intercept": False, "max_iter": 10_000, "warm_start": True}
    several = y.shape[1] > 1
    model = MultiTaskLasso(**options) if several else Lasso(**options)
    target = np.asfortranarray(y) if several else y[:, 0]

    def fit(share: float) -> Floats:
        model.set_params(alpha=share * strongest).fit(x, target)
        return np.linalg.norm(np.atleast_2d(model.coef_), axis=0)

    return fit


def _explained_alone(training: TrainingData) -> Floats:
    """Share of variance that a column and each output or the classes have in common, summed."""
    x, w = training.standardised, training.counts
    if not training.has_classes:
        common: Floats = x.T @ (w[:, None] * training.outputs()) / w.sum()
        return (common**2).sum(axis=1)
    member = (training.y[:, None] == np.unique(training.y)) * w[:, None]
    sums: Floats = x.T @ member
    return (sums**2 / member.sum(axis=0)).sum(axis=1) / w.sum()


def _largest(values: Floats, k: int, then: Floats | None = None) -> Indices:
    """The k largest, among equals those that are larger by another measure, or come first."""
    order = np.lexsort((-values,) if then is None else (-then, -values))
    return np.sort(order[:k])


BASELINES: dict[str, Baseline] = {
    "selectkbest": select_k_best,
    "rfe": select_rfe,
    "l1": select_l1,
}
