"""Folds, estimators and scores of `score_selection`, checked before anything takes long."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from exactk.checks import Whole
from exactk.choose.scoring import check_takes_weights, fit_weighted
from exactk.errors import InputError, nearest
from exactk.evaluate.parts import Given, text_columns
from exactk.methods.base import generator

__all__ = ["ESTIMATORS", "Split", "Trial", "make_splits"]

Indices = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]
Split = tuple[Indices, Indices]

# Names for a command line, and for which task; the first of a task is its default.
ESTIMATORS: dict[str, tuple[str, ...]] = {
    "logistic": ("classification",),
    "ridge": ("regression",),
    "svm": ("classification", "regression"),
    "knn": ("classification", "regression"),
    "forest": ("classification", "regression"),
}


def make_splits(given: Given, cv: Any, random_state: object) -> list[Split]:
    """Return training and test rows of each fold; rows of weight zero are in none of them."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv

    y, groups, labelled = given.y, given.groups, given.problem.classes is not None
    counts = Counter(y[_alive(given, np.arange(len(y)))].tolist()) if labelled else Counter()
    if isinstance(cv, (int, np.integer)) or cv is None:
        Whole(2, len(y))("cv", cv)
        n_folds: Any = cv
        _check_enough(n_folds, counts, groups)
        seed = _split_seed(random_state)
        if groups is not None:
            splitter: Any = GroupKFold(cv)
        elif labelled:
            splitter = StratifiedKFold(cv, shuffle=True, random_state=seed)
        else:
            splitter = KFold(cv, shuffle=True, random_state=seed)
    else:
        splitter = cv
    try:
        found = list(check_cv(splitter).split(np.zeros(len(y)), y, groups))
    except (TypeError, ValueError) as error:
        raise InputError(f"cv={cv!r} does not split these rows: {error}") from error
    splits = [(_alive(given, train), _alive(given, test)) for train, test in found]
    _check_splits(splits, y, labelled)
    return splits


def _split_seed(random_state: object) -> int:
    if isinstance(random_state, (int, np.integer)):
        # What scikit-learn takes; the same number gives the folds that it gives there.
        return int(random_state) % 2**32
    return 0 if random_state is None else int(generator(random_state).integers(2**31))


def _alive(given: Given, rows: Any) -> Indices:
    rows = np.asarray(rows)
    places: Indices = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.intp)
    return places if given.weights is None else places[given.weights[places] > 0]


def _check_enough(cv: int, counts: Counter[Any], groups: npt.NDArray[Any] | None) -> None:
    if groups is not None:
        n_groups = len(np.unique(groups))
        if n_groups < cv:
            raise InputError(
                f"cv={cv} folds of whole groups need as many groups, and groups has {n_groups}; "
                f"use cv={max(n_groups, 2)} or fewer"
            )
        return
    for label, count in sorted(counts.items(), key=lambda item: item[1]):
        if count < cv:
            way = f"use cv={count} or fewer, " if count > 1 else ""
            raise InputError(
                f"class {str(label)!r} has {count} row{'s' * (count != 1)}, fewer than the cv={cv} "
                f"folds, each of which is to test it; {way}join it with another class, or leave "
                f"its rows out"
            )


def _check_splits(splits: list[Split], y: npt.NDArray[Any], labelled: bool) -> None:
    if not splits:
        raise InputError("cv gives no folds")
    for number, (train, test) in enumerate(splits, start=1):
        if train.size < 2 or test.size == 0:
            raise InputError(
                f"fold {number} has {train.size} training rows and {test.size} test rows (of "
                f"weight above zero); use fewer folds"
            )
        if np.intersect1d(train, test).size:
            raise InputError(f"fold {number} tests rows that it is trained on")
        if labelled and len(np.unique(y[train])) < 2:
            raise InputError(
                f"fold {number} has one class only in its training rows; use other folds"
            )


@dataclass(frozen=True, eq=False)
class Trial:
    """An estimator that is trained on some rows and scored on others."""

    estimator: Any
    scorer: Any
    scoring: str

    @classmethod
    def of(cls, given: Given, estimator: Any, scoring: Any) -> Trial:
        """Check both, and take the defaults of the task."""
        made = _estimator(given, estimator)
        task = given.problem.task
        if scoring is None:
            scoring = "accuracy" if task == "classification" else "r2"
        trial = cls(made, _scorer(scoring), scoring if isinstance(scoring, str) else _name(scoring))
        if given.weights is not None:
            check_takes_weights(trial.estimator, trial.scorer)
        return trial

    def baseline(self, given: Given) -> Trial:
        """Return the trial that does not look at features: the commonest class, or the mean."""
        from sklearn.dummy import DummyClassifier, DummyRegressor

        classes = given.problem.task == "classification"
        return Trial(
            DummyClassifier(strategy="prior") if classes else DummyRegressor(),
            self.scorer,
            self.scoring,
        )

    def score(self, given: Given, split: Split, columns: Indices) -> float:
        """Train on the columns of the training rows, and score on those of the test rows."""
        train, test = split
        estimator = clone(self.estimator)
        x, z = given.values(train, columns), given.values(test, columns)
        weights = given.weights
        if weights is None:
            estimator.fit(x, given.y[train])
            value = self.scorer(estimator, z, given.y[test])
        else:
            fit_weighted(estimator, x, given.y[train], weights[train])
            value = self.scorer(estimator, z, given.y[test], sample_weight=weights[test])
        if not isinstance(value, (int, float, np.number)):
            raise InputError(
                f"scoring {self.scoring} gives {value!r}, which is not one number; give one score"
            )
        if not np.isfinite(value):
            raise InputError(
                f"scoring {self.scoring} gives {value} for the {len(test)} test rows of a fold; "
                f"use fewer folds, or a score that is defined for them"
            )
        return float(value)


def _estimator(given: Given, estimator: Any) -> Any:
    if estimator is None:
        estimator = "logistic" if given.problem.task == "classification" else "ridge"
    if isinstance(estimator, str):
        return _named(given, estimator)
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        what = f"the class {estimator.__name__}" if isinstance(estimator, type) else repr(estimator)
        raise InputError(
            f"estimator must be a scikit-learn estimator with fit and predict, such as "
            f"LogisticRegression(), not {what}"
        )
    try:
        return clone(estimator)
    except TypeError as error:
        raise InputError(f"estimator cannot be cloned for each fold: {error}") from error


def _named(given: Given, name: str) -> Any:
    """A known estimator on standardised columns; text becomes columns of 0 and 1."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    task = given.problem.task
    if name not in ESTIMATORS:
        raise InputError(
            f"estimator must be a scikit-learn estimator or one of {', '.join(ESTIMATORS)}, not "
            f"{name!r}{nearest(name, list(ESTIMATORS))}"
        )
    if task not in ESTIMATORS[name]:
        fitting = [other for other, tasks in ESTIMATORS.items() if task in tasks]
        raise InputError(f"estimator {name!r} is not for {task}; use {', '.join(fitting)}")
    if task == "classification" and given.y.ndim == 2 and name in ("logistic", "svm"):
        raise InputError(
            f"y holds several labels a row, which estimator {name!r} cannot predict; use 'knn' or "
            f"'forest', or give an estimator that can"
        )
    scaler: Any = StandardScaler(with_mean=not given.is_sparse)
    if given.has_text:
        coder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        scaler = ColumnTransformer([("text", coder, text_columns)], remainder=scaler)
    return make_pipeline(scaler, _model(name, task))


def _model(name: str, task: str) -> Any:
    from sklearn import ensemble, linear_model, neighbors, svm

    classes = task == "classification"
    if name == "logistic":
        return linear_model.LogisticRegression(max_iter=1000)
    if name == "ridge":
        return linear_model.Ridge()
    if name == "svm":
        return svm.SVC() if classes else svm.SVR()
    if name == "knn":
        return neighbors.KNeighborsClassifier() if classes else neighbors.KNeighborsRegressor()
    forest = ensemble.RandomForestClassifier if classes else ensemble.RandomForestRegressor
    return forest(random_state=0)


def _scorer(scoring: Any) -> Any:
    from sklearn.metrics import get_scorer, get_scorer_names

    if callable(scoring):
        return scoring
    known = get_scorer_names()
    if not isinstance(scoring, str) or scoring not in known:
        close = nearest(scoring, known) if isinstance(scoring, str) else ""
        raise InputError(
            f"scoring must be a score of scikit-learn such as 'accuracy', 'balanced_accuracy', "
            f"'roc_auc' or 'r2', or a function of (estimator, X, y), not {scoring!r}{close}"
        )
    return get_scorer(scoring)


def _name(scoring: Any) -> str:
    return str(getattr(scoring, "__name__", type(scoring).__name__))
