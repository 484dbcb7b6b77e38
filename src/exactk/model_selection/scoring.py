"""Scores on held-out rows: an estimator is trained on the selected columns of training rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils.validation import has_fit_parameter

from exactk.errors import InputError, suggest
from exactk.model_selection.cross_validation import Fold
from exactk.native.threads import limit_threads
from exactk.params import PARAMS
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.types import Floats

__all__ = [
    "ESTIMATORS", "FoldScorer", "HoldoutScorer", "read_estimator", "read_scoring", "target_labels",
]  # fmt: skip

# Estimators by name, and their tasks; the first of a task is its default.
ESTIMATORS: dict[str, tuple[str, ...]] = {
    "logistic": ("classification",),
    "ridge": ("regression",),
    "svm": ("classification", "regression"),
    "knn": ("classification", "regression"),
    "forest": ("classification", "regression"),
}
ONE_LABEL = ("logistic", "svm")
# Scores of scikit-learn that need two classes of numbers, and scores that need probabilities.
OF_TWO_CLASSES = ("f1", "precision", "recall", "jaccard")
OF_PROBABILITIES = (
    "neg_log_loss", "neg_brier_score", "d2_log_loss_score", "roc_auc_ovr", "roc_auc_ovo",
    "roc_auc_ovr_weighted", "roc_auc_ovo_weighted",
)  # fmt: skip


def read_estimator(estimator: Any, task: str, *, several_labels: bool = False) -> Any:
    """Return a copy of an estimator, or the estimator that a name stands for.

    None is "logistic" for classes and "ridge" for numbers. A name stands for an estimator of
    scikit-learn with its default parameters, on standardised columns.

    Examples
    --------
    >>> read_estimator(None, "regression").steps[-1][0]
    'ridge'
    """
    fitting = [name for name, tasks in ESTIMATORS.items() if task in tasks]
    if estimator is None:
        estimator = fitting[0]
    expected = str(PARAMS["estimator"].check)
    if isinstance(estimator, str):
        if estimator not in ESTIMATORS:
            raise InputError(
                parameter="estimator", value=estimator, expected=expected,
                hint=suggest(estimator, list(ESTIMATORS)),
            )  # fmt: skip
        if estimator not in fitting:
            raise InputError(
                f"estimator {estimator!r} is not for {task}", parameter="estimator",
                value=estimator, hint=f"use one of {', '.join(fitting)}",
            )  # fmt: skip
        if several_labels and estimator in ONE_LABEL:
            raise InputError(
                f"y has several labels per row, which estimator {estimator!r} cannot predict",
                parameter="estimator", value=estimator,
                hint="use 'knn', 'forest' or an estimator that can",
            )  # fmt: skip
        # Imported here because it takes longer than all the rest of exactk.
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), _model(estimator, task))
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise InputError(
            parameter="estimator", value=estimator, expected=expected,
            hint="give an object, such as LogisticRegression()",
        )  # fmt: skip
    if not (is_classifier(estimator) or is_regressor(estimator)):
        raise InputError(
            f"{type(_last_step(estimator)).__name__} is neither a classifier nor a regressor",
            parameter="estimator", value=estimator, hint="give one, such as LogisticRegression()",
        )  # fmt: skip
    try:
        return clone(estimator)
    except TypeError as error:
        raise InputError(
            f"estimator cannot be cloned for each fold: {error}", parameter="estimator"
        ) from error


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
    """Trains an estimator on selected columns of the training rows, and scores it on the others.

    Columns are plain arrays in the order of the table. Rows of weight zero are left out. Other
    weights go to fit and score, and an estimator or a score that takes none is refused. Class
    weights count in the selection only, as in `exactk.evaluate`. `name` is that of the score.
    """

    def __init__(self, problem: Problem, scoring: Any, estimator: Any) -> None:
        if problem.rows is None or problem.target is None:
            raise InputError(
                "an estimator needs the rows in memory, and this problem does not have them",
                parameter="estimator" if scoring is None else "scoring",
                hint="leave scoring and estimator out, or call problem.in_memory() first",
            )  # fmt: skip
        self._y = target_labels(problem)
        several = problem.task == "classification" and problem.classes is None
        made = read_estimator(estimator, problem.task, several_labels=several)
        self._weights = problem.row_weights
        self._scorer = HoldoutScorer.of(made, scoring, weighted=self._weights is not None)
        self.name = self._scorer.scoring

    def __call__(self, fold: Fold, results: Sequence[Result]) -> Floats:
        """Return the score of each selection."""
        assert fold.by_rows is not None
        source, (train, test) = fold.by_rows
        assert source.rows is not None
        if source.weights is not None:
            train, test = (part[source.weights[part] > 0] for part in (train, test))
        union = np.unique(np.concatenate([r.support for r in results]))
        columns = source.rows.columns(union)
        x, z = columns[train], columns[test]
        y, t = self._y[train], self._y[test]
        weights = None if self._weights is None else (self._weights[train], self._weights[test])
        places = [np.searchsorted(union, r.support) for r in results]
        return np.array([self._scorer.score(x[:, at], y, z[:, at], t, weights) for at in places])


@dataclass(frozen=True, eq=False)
class HoldoutScorer:
    """An estimator, a copy of which is trained on some rows and scored on others.

    `scorer` takes a fitted estimator, a table and a target; `scoring` is its name.

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
        """Check that the estimator can be scored, and with weights if there are any."""
        scorer, name = read_scoring(scoring, estimator)
        if weighted:
            _check_takes_weights(estimator, scorer)
        return cls(estimator, scorer, name)

    def score(
        self, x: Any, y: Any, z: Any, t: Any, weights: tuple[Floats, Floats] | None = None
    ) -> float:
        """Train on x and y, and score on z and t; weights are those of both."""
        fitted = clone(self.estimator)
        fit_options, score_options = dict[str, Any](), dict[str, Any]()
        if weights is not None:
            fit_options = dict.fromkeys(_weight_options(fitted), weights[0])
            score_options = {"sample_weight": weights[1]}
        parameter = "estimator"
        try:
            with limit_threads(int(np.prod(x.shape))):
                fitted.fit(x, y, **fit_options)
                parameter = "scoring"
                value = self.scorer(fitted, z, t, **score_options)
        except Exception as error:
            # All code here is of scikit-learn or of the user, and that may raise anything.
            if not _predicts(fitted, z):
                parameter = "estimator"
            raise InputError(
                f"{type(_last_step(fitted)).__name__} with scoring {self.scoring} fails on a fold: "
                f"{type(error).__name__}: {error}".rstrip(".: "),
                parameter=parameter,
                hint=self._hint(np.asarray(y)) if parameter == "scoring" else "",
            ) from error  # fmt: skip
        if not (isinstance(value, (int, float, np.number)) and np.isfinite(value)):
            raise InputError(
                f"scoring {self.scoring} gives {value!r} for the {len(t)} test rows of a fold, "
                f"which is not a finite number",
                parameter="scoring", hint="use fewer folds, or another score",
            )  # fmt: skip
        return float(value)

    def _hint(self, y: npt.NDArray[Any]) -> str:
        """Return what to do if the score is known not to suit the classes or the estimator."""
        if is_regressor(self.estimator):
            return ""
        several = y.ndim == 1 and len(np.unique(y)) > 2
        if self.scoring == "roc_auc" and several:
            return "for three or more classes use 'roc_auc_ovr' or 'roc_auc_ovo'"
        if self.scoring in OF_TWO_CLASSES and (several or y.dtype.kind not in "biuf"):
            return f"use '{self.scoring}_macro' or '{self.scoring}_weighted'"
        if self.scoring in OF_PROBABILITIES and not hasattr(self.estimator, "predict_proba"):
            return (
                "use an estimator that gives probabilities, such as 'logistic', 'knn' or 'forest', "
                "or a score of labels, such as 'balanced_accuracy'"
            )
        return ""


def target_labels(problem: Problem) -> npt.NDArray[Any]:
    """Return the target as an estimator of scikit-learn expects it."""
    target = problem.target
    assert target is not None
    if target.codes is not None and target.classes is not None:
        return target.classes[target.codes]
    assert target.values is not None
    values = target.values if target.values.shape[1] > 1 else target.values[:, 0]
    return values.astype(int) if problem.task == "classification" else values


def read_scoring(scoring: Any, estimator: Any) -> tuple[Callable[..., Any], str]:
    """Return a score as scikit-learn calls it, and its name.

    The larger the better; None is the ``score`` of the estimator.
    """
    # Imported here because it takes longer than all the rest of exactk.
    from sklearn.metrics import check_scoring, get_scorer_names

    named, known = isinstance(scoring, str), get_scorer_names()
    is_function = callable(scoring) and not isinstance(scoring, type)
    if not (scoring is None or is_function or (named and scoring in known)):
        raise InputError(
            parameter="scoring", value=scoring,
            expected="a score of scikit-learn, such as 'accuracy', 'balanced_accuracy', 'roc_auc' "
            "or 'r2', or a function of (estimator, X, y)",
            hint=suggest(scoring, known) if named else "",
        )  # fmt: skip
    try:
        found: Callable[..., Any] = check_scoring(estimator, scoring=scoring)
    except (TypeError, ValueError) as error:
        raise InputError(f"scoring cannot be used: {error}", parameter="scoring") from error
    if scoring is None or named:
        return found, scoring or "score"
    # What make_scorer returns has no name of its own.
    function = getattr(scoring, "_score_func", scoring)
    return found, str(getattr(function, "__name__", type(function).__name__))


def _predicts(fitted: Any, z: Any) -> bool:
    try:
        fitted.predict(z)
    except Exception:  # of the user or of scikit-learn: the cause of an error only
        return False
    return True


def _last_step(estimator: Any) -> Any:
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _check_takes_weights(estimator: Any, score: Callable[..., Any]) -> None:
    """Raise if weights of rows would be ignored by the fit or by the score."""
    last = _last_step(estimator)
    if not has_fit_parameter(last, "sample_weight"):
        raise InputError(
            f"rows have weights, and {type(last).__name__} takes none", parameter="estimator",
            hint="give an estimator whose fit has sample_weight, or leave scoring and estimator "
            "out",
        )  # fmt: skip
    parameters = signature(getattr(score, "_score_func", score)).parameters
    takes_any = any(p.kind == Parameter.VAR_KEYWORD for p in parameters.values())
    if "sample_weight" not in parameters and not takes_any:
        raise InputError(
            "rows have weights, and scoring does not take sample_weight", parameter="scoring",
            hint="give a score that takes them",
        )  # fmt: skip


def _weight_options(estimator: Any) -> list[str]:
    """Return the options of `fit` for weights: of each step that takes them in a pipeline."""
    if not hasattr(estimator, "steps"):
        return ["sample_weight"]
    return [
        f"{name}__sample_weight"
        for name, step in estimator.steps
        if hasattr(step, "fit") and has_fit_parameter(step, "sample_weight")
    ]
