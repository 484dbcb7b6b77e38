"""Which parameters of a method classify best: cross-validated within the training part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from exactk.errors import InputError
from exactk.methods import registry
from exactk.methods.base import Method, generator
from exactk.model_selection.ridge import find_ridge
from exactk.papers.experiments.classifiers import accuracy, check_classifier
from exactk.papers.experiments.column_check import checked_table
from exactk.papers.experiments.several_sizes import select_sizes
from exactk.papers.experiments.splits import fold_splits
from exactk.params import Integer, Seed
from exactk.problem.problem import Problem
from exactk.problem.validation import check_ridge
from exactk.result import Result, Status
from exactk.types import Floats, Indices

__all__ = ["TuneResult", "tune"]

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class TuneResult:
    """The best of several settings of a method at one size.

    Attributes
    ----------
    options : dict
        The setting that is best; of equals the first.
    score : float
        Its mean accuracy over the folds; nan if it was the only setting, for then nothing is run.
    scores : list of float
        The same for each setting, in the order given; nan for one that failed in a fold.
    seconds : float
        What the selections took, without the classifiers.
    failures : dict
        Why a setting failed, by its position.
    """

    options: dict[str, Any]
    score: float
    scores: list[float]
    seconds: float
    failures: dict[int, str] = field(default_factory=dict)


@overload
def tune(
    X: Any, y: Any, k: int, settings: Sequence[Setting], *, method: str | Method,
    ridge: float | str = ..., classifier: str = ..., folds: int = ..., random_state: object = ...,
    time_limit: float | None = ...,
) -> TuneResult: ...  # fmt: skip
@overload
def tune(
    X: Any, y: Any, k: Sequence[int], settings: Sequence[Setting], *, method: str | Method,
    ridge: float | str = ..., classifier: str = ..., folds: int = ..., random_state: object = ...,
    time_limit: float | None = ...,
) -> list[TuneResult]: ...  # fmt: skip
def tune(
    X: Any,
    y: Any,
    k: int | Sequence[int],
    settings: Sequence[Setting],
    *,
    method: str | Method,
    ridge: float | str = 0.0,
    classifier: str = "svm",
    folds: int = 5,
    random_state: object = None,
    time_limit: float | None = None,
) -> TuneResult | list[TuneResult]:
    """Choose between settings of a method by the accuracy of a classifier in stratified folds.

    For each fold columns are chosen on its training rows and scored on its test rows. A fold with
    fewer than k columns that are not constant takes what it has. A setting that fails in a fold
    (an error, or iterates that diverge) scores nan and loses.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The training part.
    y : array-like of shape (n,)
        Labels.
    k : int or sequence of int
        One size, or several: methods whose order of columns does not depend on k then run once.
    settings : sequence of mappings
        Options of the method.
    method : str or Method
    ridge : float, "auto" or "cv"
        As in `exactk.TopKSelector`; found anew on the training rows of each fold.
    classifier : str
        One of `CLASSIFIERS`.
    folds : int
        Between 2 and the number of rows.
    random_state : int, Generator or None
        Seed of the folds; None is a fixed seed.
    time_limit : float or None
        Seconds for each selection; one that it ends counts with the best found until then.

    Returns
    -------
    TuneResult or list of TuneResult
        A list, one for each size, where `k` is a sequence.

    Raises
    ------
    InputError
        If every setting failed, with the reasons.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> found = tune(X, y, 2, [{"lam": 0.1}, {"lam": 100.0}], method="gsrfs")
    >>> found.options, round(found.score, 3)
    ({'lam': 100.0}, 0.894)
    """
    several = isinstance(k, Iterable)
    sizes: list[Any] = list(k) if isinstance(k, Iterable) else [k]
    table, labels = checked_table("X", X), np.asarray(y)
    if len(labels) != len(table):
        raise InputError(f"X has {len(table)} rows, y has {len(labels)}", parameter="y")
    for size in sizes:
        Integer(1, table.shape[1])("k", size)
    if not sizes:
        raise InputError("k is empty: give one size or more", parameter="k")
    options = _checked_settings(method, settings)
    check_classifier(classifier)
    Seed()("random_state", random_state)
    if not (isinstance(ridge, str) and ridge in ("auto", "cv")):
        check_ridge(ridge)
    # A generator goes on with every draw, and what is drawn when must not matter.
    drawn = isinstance(random_state, (np.random.Generator, np.random.RandomState))
    seed = int(generator(random_state).integers(2**31)) if drawn else random_state
    splits = fold_splits(labels, folds, seed, task="classification")
    if len(options) == 1:
        results = [TuneResult(options[0], nan, [nan], 0.0) for _ in sizes]
        return results if several else results[0]
    trial = _TuningRun(method, sizes, ridge, classifier, seed, time_limit)
    scores = np.full((len(options), len(splits), len(sizes)), nan)
    seconds = np.zeros(len(sizes))
    failures: dict[int, str] = {}
    for f, (train, test) in enumerate(splits):
        fold = _Fold(table, labels, train, test)
        for s, setting in enumerate(options):
            if s in failures:
                continue
            try:
                found = trial.select(fold, setting)
                scores[s, f] = [trial.score(fold, result) for result in found]
                seconds += [result.seconds for result in found]
            except Exception as error:  # one's own methods may raise anything
                failures[s] = f"{type(error).__name__}: {error}"
    means = scores.mean(axis=1).round(12)
    if len(failures) == len(options):
        reasons = "; ".join(f"{options[s]}: {why}" for s, why in failures.items())
        raise InputError(
            f"every setting of {method!r} failed in a fold: {reasons}", parameter="method"
        )
    results = []
    for i in range(len(sizes)):
        best = int(np.nanargmax(means[:, i]))
        results.append(
            TuneResult(
                options[best],
                float(means[best, i]),
                means[:, i].tolist(),
                float(seconds[i]),
                dict(failures),
            )
        )
    return results if several else results[0]


def _checked_settings(method: str | Method, settings: Sequence[Setting]) -> list[dict[str, Any]]:
    """Settings whose options the method has, with values that it allows."""
    options = [dict(setting) for setting in settings]
    if not options:
        raise InputError(
            "settings is empty: give one or more mappings of options, for example {}",
            parameter="settings",
        )
    for setting in options:
        if isinstance(method, str):
            registry.create(method, **setting).check()
        else:
            name = type(method).__name__.lower()
            registry.check_options(name, method.option_names(), setting)
            clone(method).set_params(**setting).check()
    return options


class _Fold:
    """The two parts of one fold, the problem of the first, and accuracies found before."""

    def __init__(self, X: Floats, y: npt.NDArray[Any], train: Indices, test: Indices) -> None:
        self.X, self.y, self.X_test, self.y_test = X[train], y[train], X[test], y[test]
        self.seen: dict[tuple[int, ...], float] = {}
        self._problems: dict[str, Problem] = {}

    def problem(self, gram: Any) -> Problem:
        """Made when it is asked for: what is wrong with it is then the failure of a setting."""
        if gram not in self._problems:
            self._problems[gram] = Problem.from_arrays(
                self.X, self.y, task="classification", gram=gram
            )
        return self._problems[gram]


@dataclass(frozen=True, eq=False)
class _TuningRun:
    """What every setting is tried with."""

    method: str | Method
    sizes: list[int]
    ridge: float | str
    classifier: str
    seed: object
    time_limit: float | None

    def select(self, fold: _Fold, setting: dict[str, Any]) -> list[Result]:
        """The columns of every size by one setting."""
        cls = registry.method_class(self.method) if isinstance(self.method, str) else self.method
        problem = fold.problem("auto" if cls.uses_gram or self.ridge == "cv" else "columns")
        # Several sizes may shrink to the same one.
        sizes = [min(k, problem.n_usable) for k in self.sizes]
        together = [sorted(set(sizes))] if self.ridge != "cv" else [[k] for k in sorted(set(sizes))]
        found: dict[int, Result] = {}
        for group in together:
            ridge = find_ridge(self.ridge, problem, group[-1], random_state=self.seed)
            results = select_sizes(
                problem.with_ridge(ridge), group, self.method, time_limit=self.time_limit, **setting
            )
            for result in results:
                if result.status == Status.INTERRUPTED:
                    # A choice among settings that were not all tried would be no choice.
                    raise KeyboardInterrupt
                if result.status == Status.FAILED:
                    raise ArithmeticError(result.message)
                found[result.k] = result
        return [found[k] for k in sizes]

    def score(self, fold: _Fold, result: Result) -> float:
        """Accuracy on the test rows; the same columns are not scored twice."""
        key = tuple(result.support.tolist())
        if key not in fold.seen:
            fold.seen[key] = accuracy(
                self.classifier,
                fold.X[:, result.support],
                fold.y,
                fold.X_test[:, result.support],
                fold.y_test,
                random_state=self.seed,
            )
        return fold.seen[key]
