"""A score of the user's on rows held out: any estimator, refitted on the columns chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from exactk.choose.folds import Fold, HeldOut
from exactk.errors import InputError
from exactk.problem import Problem
from exactk.result import Result

__all__ = ["FoldScorer", "check_takes_weights", "fit_weighted", "target_labels"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


class FoldScorer:
    """Fits an estimator on chosen columns of the training rows, and scores it on the others.

    Columns are plain arrays in the order of the table. Rows of weight zero are left out; where
    there are other weights, fit and score get them, and an estimator or a score that does not
    take ``sample_weight`` is refused. In a pipeline every step that takes weights gets them.

    Parameters
    ----------
    problem : Problem
        With its rows in memory.
    scoring : str, callable or None
        As in scikit-learn, the larger the better; None is the ``score`` of the estimator.
    estimator : estimator or None
        None standardises, and fits a logistic regression on classes, a linear one on numbers.
    """

    def __init__(self, problem: Problem, scoring: Any, estimator: Any) -> None:
        target = problem.target
        if problem.rows is None or target is None:
            raise InputError(
                "scoring fits an estimator on rows, and this problem does not have them in "
                "memory; call problem.in_memory() first, or leave scoring and estimator out"
            )
        self._y = target_labels(problem)
        self._weighted = problem.weights is not None
        self._estimator = _default(problem) if estimator is None else clone(estimator)
        self._score = _scorer(self._estimator, scoring)
        if self._weighted:
            check_takes_weights(self._estimator, self._score)

    def __call__(self, fold: HeldOut, results: Sequence[Result]) -> Floats:
        """Return the score of each choice of columns."""
        if not isinstance(fold, Fold):
            raise InputError("scoring needs folds of rows in memory")
        union = np.unique(np.concatenate([r.support for r in results]))
        train, held = (_counted(fold, part) for part in (fold.trained_on, fold.held_out))
        columns = fold.rows.columns(union)
        x, z = columns[train], columns[held]
        places = [np.searchsorted(union, r.support) for r in results]
        return np.array([self._one(fold, x[:, at], train, z[:, at], held) for at in places])

    def _one(self, fold: Fold, x: Floats, train: Indices, z: Floats, held: Indices) -> float:
        fitted, weights = clone(self._estimator), fold.weights
        if not self._weighted or weights is None:
            fitted.fit(x, self._y[train])
            value = self._score(fitted, z, self._y[held])
        else:
            fit_weighted(fitted, x, self._y[train], weights[train])
            value = self._score(fitted, z, self._y[held], sample_weight=weights[held])
        if not isinstance(value, (int, float, np.number)) or not np.isfinite(value):
            raise InputError(f"scoring must give one finite number for each fold, not {value!r}")
        return float(value)


def _counted(fold: Fold, part: Indices) -> Indices:
    return part if fold.weights is None else part[fold.weights[part] > 0]


def target_labels(problem: Problem) -> npt.NDArray[Any]:
    """The target as an estimator of scikit-learn expects it."""
    target = problem.target
    assert target is not None
    if target.codes is not None and target.classes is not None:
        return target.classes[target.codes]
    assert target.values is not None
    values = target.values if target.values.shape[1] > 1 else target.values[:, 0]
    return values.astype(int) if problem.task == "classification" else values


def _default(problem: Problem) -> Any:
    # Imported here, for they take longer than all the rest of exactk.
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if problem.task == "classification" and problem.classes is None:
        raise InputError("scoring of several labels a row needs an estimator of yours: estimator=…")
    last = LinearRegression() if problem.classes is None else LogisticRegression(max_iter=1000)
    return make_pipeline(StandardScaler(), last)


def _scorer(estimator: Any, scoring: Any) -> Callable[..., Any]:
    from sklearn.metrics import check_scoring

    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise InputError(f"scoring must be a name or a scorer of scikit-learn, not {scoring!r}")
    try:
        found: Callable[..., Any] = check_scoring(estimator, scoring=scoring)
    except (TypeError, ValueError) as error:
        raise InputError(f"scoring={scoring!r} cannot be used: {error}") from error
    return found


def check_takes_weights(estimator: Any, score: Callable[..., Any]) -> None:
    """Raise where weights of rows would be ignored by the fit or by the score."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if not has_fit_parameter(last, "sample_weight"):
        raise InputError(
            f"rows have weights, and {type(last).__name__} takes none; give an estimator whose fit "
            f"has sample_weight, or leave scoring and estimator out"
        )
    metric = getattr(score, "_score_func", score)
    parameters = signature(metric).parameters
    open_ended = any(p.kind == Parameter.VAR_KEYWORD for p in parameters.values())
    if "sample_weight" not in parameters and not open_ended:
        raise InputError(
            "rows have weights, and the function given as scoring does not take sample_weight; "
            "give one that does"
        )


def fit_weighted(estimator: Any, x: Any, y: npt.NDArray[Any], weights: Floats) -> None:
    """Fit with weights; the steps of a pipeline one by one, as a pipeline would need routing."""
    if not hasattr(estimator, "steps"):
        estimator.fit(x, y, sample_weight=weights)
        return
    for _, step in estimator.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        taken = {"sample_weight": weights} if has_fit_parameter(step, "sample_weight") else {}
        x = step.fit(x, y, **taken).transform(x)
    fit_weighted(estimator.steps[-1][1], x, y, weights)
