"""A score of the user's on rows held out: any estimator, refitted on the columns chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from exactk.errors import InputError, did_you_mean
from exactk.model_selection.cross_validation import Fold, HeldOut
from exactk.native.threads import limit_threads
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.types import Floats, Indices

__all__ = [
    "ESTIMATORS",
    "FoldScorer",
    "HoldoutScorer",
    "read_estimator",
    "read_scoring",
    "target_labels",
]


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
            f"{name!r}{did_you_mean(name, list(ESTIMATORS))}"
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


class FoldScorer:
    """Fits an estimator on chosen columns of the training rows, and scores it on the others.

    Columns are plain arrays in the order of the table. Rows of weight zero are left out; where
    there are other weights, fit and score get them, and an estimator or a score that does not
    take ``sample_weight`` is refused. In a pipeline every step that takes weights gets them.
    Weights of classes are for the choice alone, as in `exactk.score_selection`.

    Parameters
    ----------
    problem : Problem
        With its rows in memory.
    scoring : str, callable or None
        As in scikit-learn, the larger the better; None is the ``score`` of the estimator.
    estimator : estimator, str or None
        As in `exactk.model_selection.scoring.read_estimator`.
    """

    def __init__(self, problem: Problem, scoring: Any, estimator: Any) -> None:
        if problem.rows is None or problem.target is None:
            raise InputError(
                "scoring fits an estimator on rows, and this problem does not have them in "
                "memory; call problem.in_memory() first, or leave scoring and estimator out"
            )
        self._y = target_labels(problem)
        several = problem.task == "classification" and problem.classes is None
        made = read_estimator(estimator, problem.task, several_labels=several)
        # Classes weigh in the choice; the estimator and the score have rows as they are.
        self._weights = problem.row_weights
        self._trial = HoldoutScorer.of(made, scoring, weighted=self._weights is not None)

    @property
    def name(self) -> str:
        """Name of the score."""
        return self._trial.scoring

    def __call__(self, fold: HeldOut, results: Sequence[Result]) -> Floats:
        """Return the score of each choice of columns."""
        if not isinstance(fold, Fold):
            raise InputError("scoring needs folds of rows in memory")
        union = np.unique(np.concatenate([r.support for r in results]))
        train, held = (_counted(fold, part) for part in (fold.trained_on, fold.held_out))
        columns = fold.rows.columns(union)
        x, z = columns[train], columns[held]
        places = [np.searchsorted(union, r.support) for r in results]
        y, t = self._y[train], self._y[held]
        given = self._weights
        weights = None if given is None else (given[train], given[held])
        return np.array([self._trial.score(x[:, at], y, z[:, at], t, weights) for at in places])


@dataclass(frozen=True, eq=False)
class HoldoutScorer:
    """An estimator that is trained on some rows and scored on others.

    Attributes
    ----------
    estimator : estimator
        A copy is trained each time.
    scorer : callable
        Takes a fitted estimator, a table and a target.
    scoring : str
        Its name.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> trial = HoldoutScorer.of(DecisionTreeClassifier(random_state=0), "accuracy")
    >>> round(trial.score(X[::2], y[::2], X[1::2], y[1::2]), 2)
    0.96
    """

    estimator: Any
    scorer: Callable[..., Any]
    scoring: str

    @classmethod
    def of(cls, estimator: Any, scoring: Any, *, weighted: bool = False) -> HoldoutScorer:
        """Check that the score can be had of the estimator, and with weights if there are any."""
        scorer, name = read_scoring(scoring, estimator)
        if weighted:
            _check_takes_weights(estimator, scorer)
        return cls(estimator, scorer, name)

    def score(
        self, x: Any, y: Any, z: Any, t: Any, weights: tuple[Floats, Floats] | None = None
    ) -> float:
        """Train on x and y, and score on z and t; weights are those of both."""
        fitted = clone(self.estimator)
        try:
            with limit_threads(int(np.prod(x.shape))):
                if weights is None:
                    fitted.fit(x, y)
                    value = self.scorer(fitted, z, t)
                else:
                    _fit_weighted(fitted, x, y, weights[0])
                    value = self.scorer(fitted, z, t, sample_weight=weights[1])
        except (AttributeError, TypeError, ValueError) as error:
            # How scikit-learn says that a target, an estimator and a score do not go together.
            last = fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted
            words = str(error).rstrip(".")
            raise InputError(
                f"{type(last).__name__} with scoring {self.scoring} fails on a fold: {words}"
                f"{_hint(words, self.scoring)}"
            ) from error
        if not isinstance(value, (int, float, np.number)):
            raise InputError(
                f"scoring {self.scoring} gives {value!r}, which is not one number; give one score"
            )
        if not np.isfinite(value):
            raise InputError(
                f"scoring {self.scoring} gives {value}, which is not finite, for the {len(t)} test "
                f"rows of a fold; use fewer folds, or a score that is defined for them"
            )
        return float(value)


def _hint(message: str, scoring: str) -> str:
    """What to do about a score that scikit-learn refuses."""
    if "multi_class must be in" in message:
        return "; for three classes or more use 'roc_auc_ovr' or 'roc_auc_ovo'"
    if "average='binary'" in message:
        return f"; for three classes or more use '{scoring}_macro' or '{scoring}_weighted'"
    if "pos_label" in message:
        # Of labels that are text none is the positive one.
        return f"; use '{scoring}_macro' or '{scoring}_weighted', which need no positive class"
    if "predict_proba" in message:
        return (
            "; this score needs probabilities: use an estimator that gives them, such as "
            "'logistic', 'knn' or 'forest', or a score of labels, such as 'balanced_accuracy'"
        )
    return ""


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


def read_scoring(scoring: Any, estimator: Any) -> tuple[Callable[..., Any], str]:
    """Return a score as scikit-learn calls it, and its name.

    Parameters
    ----------
    scoring : str, callable or None
        The larger the better; None is the ``score`` of the estimator.
    estimator : estimator

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> read_scoring(None, DecisionTreeClassifier())[1]
    'score'
    """
    # Imported here, for it takes longer than all the rest of exactk.
    from sklearn.metrics import check_scoring, get_scorer_names

    named = isinstance(scoring, str)
    known = get_scorer_names()
    if not (scoring is None or callable(scoring) or (named and scoring in known)):
        close = did_you_mean(scoring, known) if named else ""
        raise InputError(
            f"scoring must be a score of scikit-learn such as 'accuracy', 'balanced_accuracy', "
            f"'roc_auc' or 'r2', or a function of (estimator, X, y), not {scoring!r}{close}"
        )
    try:
        found: Callable[..., Any] = check_scoring(estimator, scoring=scoring)
    except (TypeError, ValueError) as error:
        raise InputError(f"scoring={scoring!r} cannot be used: {error}") from error
    return found, _score_name(scoring)


def _score_name(scoring: Any) -> str:
    if scoring is None or isinstance(scoring, str):
        return scoring or "score"
    # What make_scorer returns has no name of its own.
    named = getattr(scoring, "_score_func", scoring)
    return str(getattr(named, "__name__", type(named).__name__))


def _check_takes_weights(estimator: Any, score: Callable[..., Any]) -> None:
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


def _fit_weighted(estimator: Any, x: Any, y: npt.NDArray[Any], weights: Floats) -> None:
    """Fit with weights; the steps of a pipeline one by one, as a pipeline would need routing."""
    if not hasattr(estimator, "steps"):
        estimator.fit(x, y, sample_weight=weights)
        return
    for _, step in estimator.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        taken = {"sample_weight": weights} if has_fit_parameter(step, "sample_weight") else {}
        x = step.fit(x, y, **taken).transform(x)
    _fit_weighted(estimator.steps[-1][1], x, y, weights)
