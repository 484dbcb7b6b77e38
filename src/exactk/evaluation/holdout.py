"""Folds, estimators and scores of held-out rows, checked before anything takes long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.targets import MANY_CLASSES
from exactk.errors import InputError
from exactk.evaluation.fold_data import EvaluationData
from exactk.methods.base import generator
from exactk.model_selection.cross_validation import (
    N_FOLDS,
    Split,
    check_cv,
    group_folds,
    is_number,
    list_splits,
)
from exactk.model_selection.scoring import HoldoutScorer, read_estimator
from exactk.params import Integer
from exactk.problem.problem import Problem
from exactk.search.selection_frequency import Features
from exactk.types import Indices
from exactk.utils.set_similarity import nogueira_index

__all__ = [
    "check_sizes",
    "estimator_name",
    "make_baseline_scorer",
    "make_scorer",
    "make_splits",
    "score_baseline",
    "score_columns",
    "search_seed",
    "stability_of",
]


def make_splits(data: EvaluationData, cv: Any, random_state: object) -> list[Split]:
    """Return training and test rows of each fold; rows of weight zero are in none of them."""
    y, labelled = data.y, data.problem.classes is not None
    if is_number(cv):
        cv = _splitter(data, cv, random_state)
    else:
        check_cv(cv)
    found = list_splits(cv, y, data.groups, data.weights)
    splits = [(_alive(data, train), _alive(data, test)) for train, test in found]
    _check_splits(splits, y, labelled)
    return splits


def _splitter(data: EvaluationData, cv: int | None, random_state: object) -> Any:
    """What makes a number of folds of whole groups, of every class, or of any rows."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    alive = _alive(data, np.arange(len(data.y)))
    Integer(2, len(alive), none="five folds")("cv", cv)
    if data.groups is not None:
        return GroupKFold(group_folds(cv, data.groups[alive]))
    n_folds = min(N_FOLDS, len(alive)) if cv is None else int(cv)
    seed = _split_seed(random_state)
    if data.problem.classes is None:
        return KFold(n_folds, shuffle=True, random_state=seed)
    _check_enough(n_folds, Counter(data.y[alive].tolist()))
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed)


def _split_seed(random_state: object) -> int:
    if isinstance(random_state, (int, np.integer)):
        # What scikit-learn takes; the same number gives the folds that it gives there.
        return int(random_state) % 2**32
    return 0 if random_state is None else int(generator(random_state).integers(2**31))


def _alive(data: EvaluationData, rows: Indices) -> Indices:
    return rows if data.weights is None else rows[data.weights[rows] > 0]


def _check_enough(cv: int, counts: Counter[Any]) -> None:
    for label, count in sorted(counts.items(), key=lambda item: item[1]):
        if count < cv:
            way = f"use cv={count} or fewer, " if count > 1 else ""
            if isinstance(label, (int, float)) and len(counts) > MANY_CLASSES:
                way = f"if these are amounts, say task='regression'; if classes, {way}"
            raise InputError(
                f"class {str(label)!r} has {count} row{'s' * (count != 1)}, fewer than the cv={cv} "
                f"folds, each of which is to test it; {way}join it with another class, or leave "
                f"its rows out"
            )


def _check_splits(splits: list[Split], y: npt.NDArray[Any], labelled: bool) -> None:
    for number, (train, test) in enumerate(splits, start=1):
        if train.size < 2 or test.size == 0:
            raise InputError(
                f"fold {number} has {train.size} training rows and {test.size} test rows (of "
                f"weight above zero); use fewer folds"
            )
        if labelled and len(np.unique(y[train])) < 2:
            raise InputError(
                f"fold {number} has one class only in its training rows; use other folds"
            )


def make_scorer(data: EvaluationData, estimator: Any, scoring: Any) -> HoldoutScorer:
    """Check estimator and score, and take the defaults of the task."""
    task = data.problem.task
    several = task == "classification" and data.y.ndim == 2
    made = read_estimator(estimator, task, several_labels=several, sparse=data.is_sparse)
    if scoring is None:
        scoring = "accuracy" if task == "classification" else "r2"
    return HoldoutScorer.of(made, scoring, weighted=data.weights is not None)


def make_baseline_scorer(data: EvaluationData, scorer: HoldoutScorer) -> HoldoutScorer:
    """Return a trial that learns nothing of the columns: the commonest class, or the mean."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    classes = data.problem.task == "classification"
    dummy = DummyClassifier(strategy="prior") if classes else DummyRegressor()
    return replace(scorer, estimator=dummy)


def score_columns(
    scorer: HoldoutScorer, data: EvaluationData, split: Split, columns: Indices
) -> float:
    """Train on the columns of the training rows, and score on those of the test rows."""
    train, test = split
    x, z = data.values(train, columns), data.values(test, columns)
    weights = None if data.weights is None else (data.weights[train], data.weights[test])
    return scorer.score(x, data.y[train], z, data.y[test], weights)


def score_baseline(data: EvaluationData, scorer: HoldoutScorer, splits: list[Split]) -> list[float]:
    """Score without features; it costs nothing, and shows what is wrong with the score."""
    dummy = make_baseline_scorer(data, scorer)
    first = np.zeros(1, dtype=np.intp)
    try:
        return [score_columns(dummy, data, split, first) for split in splits]
    except InputError:
        raise
    except Exception as error:  # a score of one's own may raise anything
        raise InputError(
            f"scoring {scorer.scoring} cannot score this target: {type(error).__name__}: {error}"
        ) from error


def check_sizes(data: EvaluationData, splits: list[Split]) -> None:
    """Raise for a k that some training rows cannot serve, before others are searched."""
    k: Any = data.config.k
    if isinstance(k, str):
        return
    data.problem.check_k(k)
    for number, (train, _) in enumerate(splits, start=1):
        usable = len(data.usable_in(train))
        if k > usable:
            raise InputError(
                f"k={k} is more than the {usable} columns that are not constant in the training "
                f"rows of fold {number}; ask for k <= {usable}, or use other folds"
            )


def search_seed(random_state: object) -> int | None:
    """Return one number for all folds: a generator would go on from one to the next."""
    if random_state is None:
        return None
    whole = isinstance(random_state, (int, np.integer))
    return int(random_state if whole else generator(random_state).integers(2**31))  # type: ignore[call-overload]  # an integer, or drawn


def stability_of(supports: Sequence[Indices], problem: Problem) -> float:
    """Return Nogueira's index over what can be chosen and need not be; nan for a single fold."""
    if len(supports) < 2:
        return nan
    features = Features.of(problem)
    # What the rules have in every set says nothing of how stable the choice is.
    free = features.members(supports)[:, ~features.is_included]
    return nogueira_index(free) if free.size else 1.0


def estimator_name(estimator: Any) -> str:
    """Return the name of an estimator, or of the last step of a pipeline."""
    steps = getattr(estimator, "steps", None)
    return type(steps[-1][1] if steps else estimator).__name__
