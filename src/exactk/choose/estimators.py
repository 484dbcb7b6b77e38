"""Estimators that a choice of columns is scored with: the user's, or a known one by its name."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from exactk.errors import InputError, nearest

__all__ = ["ESTIMATORS", "read_estimator"]

# Names for a command line, and for which task; the first of a task is its default.
ESTIMATORS: dict[str, tuple[str, ...]] = {
    "logistic": ("classification",),
    "ridge": ("regression",),
    "svm": ("classification", "regression"),
    "knn": ("classification", "regression"),
    "forest": ("classification", "regression"),
}
ONE_LABEL = ("logistic", "svm")


def read_estimator(
    estimator: Any,
    task: str,
    *,
    several_labels: bool = False,
    sparse: bool = False,
) -> Any:
    """Return an estimator of one's own to train, of what the user gave.

    Parameters
    ----------
    estimator : estimator, str or None
        None is "logistic" for classes and "ridge" for numbers. A word stands for an estimator of
        scikit-learn with its default parameters, on standardised columns.
    task : {"classification", "regression"}
    several_labels : bool
        Whether rows have several labels each.
    sparse : bool
        Whether it will be given sparse tables, which are not centred.

    Examples
    --------
    >>> read_estimator(None, "regression").steps[-1][0]
    'ridge'
    """
    if estimator is None:
        estimator = next(name for name, tasks in ESTIMATORS.items() if task in tasks)
    if isinstance(estimator, str):
        _check_name(estimator, task, several_labels)
        return _standardised(_model(estimator, task), sparse)
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


def _check_name(name: str, task: str, several_labels: bool) -> None:
    if name not in ESTIMATORS:
        raise InputError(
            f"estimator must be a scikit-learn estimator or one of {', '.join(ESTIMATORS)}, not "
            f"{name!r}{nearest(name, list(ESTIMATORS))}"
        )
    if task not in ESTIMATORS[name]:
        fitting = [other for other, tasks in ESTIMATORS.items() if task in tasks]
        raise InputError(f"estimator {name!r} is not for {task}; use {', '.join(fitting)}")
    if several_labels and name in ONE_LABEL:
        raise InputError(
            f"y holds several labels a row, which estimator {name!r} cannot predict; use 'knn' or "
            f"'forest', or give an estimator that can"
        )


def _standardised(model: Any, sparse: bool) -> Any:
    # Imported here, for they take longer than all the rest of exactk.
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=not sparse), model)


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
