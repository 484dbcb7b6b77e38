"""TopKClassifier and TopKRegressor: k features and the model on them, in one estimator."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from exactk.data.design_matrix import refuse_non_finite
from exactk.data.frames import encode_like, is_frame, take_columns
from exactk.data.open_table import is_dask
from exactk.errors import InputError
from exactk.estimators.selector import TopKSelector
from exactk.losses.base import Loss
from exactk.losses.likelihood import Logistic, Poisson
from exactk.losses.registry import read_loss
from exactk.losses.squared import OptimalScoring
from exactk.methods.base import Method
from exactk.model_selection.choose_k import AutoK
from exactk.problem.problem import Problem
from exactk.types import Floats

__all__ = ["TopKClassifier", "TopKRegressor"]

# Scatter within classes counts as no less than this share of the whole.
LEAST_WITHIN = 1e-13


class _TopKModel(TopKSelector):
    """Predictions by the fit on the selected features."""

    def _checked(self) -> Method:
        method, loss = super()._checked(), read_loss(self.loss)
        if loss.task not in ("auto", self.task):
            other = "TopKClassifier" if loss.task == "classification" else "TopKRegressor"
            raise InputError(
                f"loss {loss.name!r} is for {loss.task}, and {type(self).__name__} is for "
                f"{self.task}",
                parameter="loss", value=self.loss, hint=f"use {other}, or another loss",
            )  # fmt: skip
        return method

    def _linear(self, X: Any) -> Floats:
        """Return the predictions of the linear fit, one column an output."""
        check_is_fitted(self)
        if is_dask(X):
            raise InputError(
                "X is a Dask collection, and predictions are made part by part", parameter="X",
                hint="use X.map_blocks(model.predict) or X.map_partitions(model.predict)",
            )  # fmt: skip
        chosen = np.flatnonzero(self.support_)
        if hasattr(self, "coded_feature_names_"):
            if not is_frame(X):
                raise InputError(
                    "the model was fitted on a table with text or categories, and X is an array",
                    parameter="X", hint="give a frame with the same columns",
                )  # fmt: skip
            validate_data(self, X, reset=False, skip_check_array=True)
            taken = encode_like(take_columns(X, chosen), self._coding)
            bad = np.count_nonzero(~np.isfinite(taken), axis=0)
            if bad.any():
                names = tuple(self.coded_feature_names_[self._columns])
                refuse_non_finite(bad, names, len(taken))
        else:
            taken = validate_data(self, X, reset=False, accept_sparse="csr")[:, chosen]
        predicted: Floats = np.asarray(taken @ self.coef_[:, self._columns].T) + self.intercept_
        return predicted


def _gives_probabilities(model: TopKClassifier) -> bool:
    # A fitted model keeps its loss, whatever was set since.
    name = model.result_.loss if hasattr(model, "result_") else read_loss(model.loss).name
    if name in (Logistic.name, OptimalScoring.name):
        return True
    raise AttributeError(
        f"loss {name!r} is not a model of probabilities; take loss='logistic' or 'optimal_scoring'"
    )


class TopKClassifier(ClassifierMixin, _TopKModel):
    """Classify with exactly k features: select them and fit the model on them.

    Multinomial logistic regression in which exactly k rows of the coefficients are not zero, with
    the least deviance; or another loss. It is a selector, too: ``transform`` gives the features.

    Parameters
    ----------
    k : int, "auto" or AutoK
        Number of features; see `TopKSelector`.
    method : str or Method
    loss : {"logistic", "optimal_scoring", "squared", "l21", "l2r", "huber"} or Loss
        Loss to minimise. With "optimal_scoring" the model is linear discriminant analysis on the
        selected features. The others are linear fits of one-hot classes: the class with the
        largest output is predicted, and there are no probabilities.
    ridge : "auto", "cv" or float
        Ridge penalty relative to the size of the columns and to the curvature of the loss.
    class_weight : None, "balanced" or dict of label to float
        Weight of each class.
    constraints : Constraints, dict or None
    effort : float or None
    time_limit : float or None
    certify : bool or float
        A proof needs loss "squared" or "optimal_scoring".
    random_state : int, Generator, RandomState or None
    verbose : int
        As in `TopKSelector`.

    Attributes
    ----------
    classes_ : ndarray
        Labels.
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients of every class, also if there are two; zero outside the selection. With
        "optimal_scoring" those of the discriminants; ``result_.coef`` has the fit of the scores.
    intercept_ : ndarray of shape (n_classes,)
    support_, selected_, ranking_, objective_, ridge_, status_, k_, result_, n_iter_
        As in `TopKSelector`.

    See Also
    --------
    TopKSelector : The selection alone, for a model of one's own.
    TopKRegressor : The same for numbers and counts.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exactk import TopKClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = TopKClassifier(k=3).fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['worst radius', 'worst texture', 'worst concave points']
    >>> model.predict_proba(X[:2]).round(3).tolist()
    [[1.0, 0.0], [0.999, 0.001]]
    >>> round(model.score(X, y), 3)
    0.968
    """

    def __init__(
        self, k: int | str | AutoK = 10, *, method: str | Method = "exchange",
        loss: str | Loss = "logistic", ridge: str | float | None = "auto", class_weight: Any = None,
        constraints: Any = None, effort: float | None = None, time_limit: float | None = None,
        certify: bool | float = False, random_state: Any = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            k, method=method, loss=loss, ridge=ridge, task="classification",
            class_weight=class_weight, constraints=constraints, effort=effort,
            time_limit=time_limit, certify=certify, random_state=random_state, verbose=verbose,
        )  # fmt: skip

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Find the k features and fit the model on them; see `TopKSelector.fit`."""
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; its column is used",
                DataConversionWarning, stacklevel=2,
            )  # fmt: skip
        return super().fit(X, y, sample_weight, groups=groups)

    def _check_target(self, problem: Problem) -> None:
        if problem.classes is None:
            raise InputError(
                "y has several labels for each row, and TopKClassifier predicts one label",
                parameter="y", hint="fit one for each column of y, or use TopKSelector",
            )  # fmt: skip

    def _note_result(self, problem: Problem, *parts: Any) -> None:
        super()._note_result(problem, *parts)
        if isinstance(problem.loss, OptimalScoring):
            self._discriminate(problem)

    def _discriminate(self, problem: Problem) -> None:
        """Replace the fit of the scores by the linear discriminants.

        They follow from the moments: class means from XᵀHY, the scatter within classes as the rest
        of XᵀHX. If classes are far apart, little is left, and it is computed from the rows.
        """
        S = self.result_.support
        target = problem.target
        assert target is not None
        assert target.scores is not None
        shares = problem.y_mean / target.scores
        counts = np.maximum(shares * problem.weight, np.finfo(float).tiny)
        means = problem.cross[:, S] / (target.scores * counts)[:, None]
        whole = problem.gram.block(S)
        within = whole - (means.T * counts) @ means
        if problem.reads_rows(len(S)) and target.codes is not None:
            counted = problem.weighted_rows
            codes = target.codes[counted]
            w = 1.0 if problem.weights is None else problem.weights[counted, None]
            x = problem.standardised(S)[0][counted] - means[codes]
            within = (x * w).T @ x
        # Columns that separate the classes perfectly have no scatter within them.
        within[np.diag_indices_from(within)] += problem.penalty + LEAST_WITHIN * np.diagonal(whole)
        W = np.linalg.solve(within / problem.weight, means.T).T
        with np.errstate(divide="ignore"):
            b = np.log(shares) - 0.5 * np.einsum("cj,cj->c", W, means)
        coef = W * problem.x_scale[S]
        self.coef_[:, S] = coef
        self.intercept_ = b - coef @ problem.x_mean[S]

    def decision_function(self, X: Any) -> Floats:
        """Return the linear output of each class (n × classes); for two, the difference (n)."""
        predicted = self._linear(X)
        return predicted if predicted.shape[1] > 2 else predicted[:, 1] - predicted[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the largest output for each row."""
        largest = np.argmax(self._linear(X), axis=1)
        labels: npt.NDArray[Any] = self.classes_[largest]
        return labels

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]  # no stubs
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class; for losses "logistic" and "optimal_scoring"."""
        probabilities: Floats = softmax(self._linear(X), axis=1)
        return probabilities

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]  # no stubs
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        """Declare what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.target_tags.single_output = True
        return tags


class TopKRegressor(RegressorMixin, _TopKModel):
    """Predict numbers or counts with exactly k features: select them and fit the model on them.

    Several outputs are divided by their standard deviations, so that all of them count, unless
    the loss is "poisson". Coefficients and predictions are in the units of y.

    Parameters
    ----------
    k : int, "auto" or AutoK
        Number of features; see `TopKSelector`.
    method : str or Method
    loss : {"squared", "l21", "l2r", "huber", "poisson"} or Loss
        Loss to minimise. "poisson" is for counts: it predicts their mean, exp(xW + b).
    ridge : "auto", "cv" or float
        Ridge penalty relative to the size of the columns and to the curvature of the loss.
    constraints : Constraints, dict or None
    effort : float or None
    time_limit : float or None
    certify : bool or float
        A proof needs loss "squared".
    random_state : int, Generator, RandomState or None
    verbose : int
        As in `TopKSelector`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, n_features)
        Coefficients, zero outside the selection.
    intercept_ : ndarray of shape (n_outputs,)
    support_, selected_, ranking_, objective_, ridge_, status_, k_, result_, n_iter_
        As in `TopKSelector`.

    See Also
    --------
    TopKSelector : The selection alone, for a model of one's own.
    TopKClassifier : The same for classes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from exactk import TopKRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TopKRegressor(k=3, loss="huber").fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['bmi', 'bp', 's5']
    >>> model.predict(X[:2]).shape
    (2,)
    """

    def __init__(
        self, k: int | str | AutoK = 10, *, method: str | Method = "exchange",
        loss: str | Loss = "squared", ridge: str | float | None = "auto",
        constraints: Any = None, effort: float | None = None, time_limit: float | None = None,
        certify: bool | float = False, random_state: Any = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            k, method=method, loss=loss, ridge=ridge, task="regression", constraints=constraints,
            effort=effort, time_limit=time_limit, certify=certify, random_state=random_state,
            verbose=verbose,
        )  # fmt: skip

    def predict(self, X: Any) -> Floats:
        """Return the prediction for each row (n), or for each output (n × outputs)."""
        predicted = self._linear(X)
        if self.result_.loss == Poisson.name:
            predicted = np.exp(predicted)
        return predicted[:, 0] if predicted.shape[1] == 1 else predicted

    def __sklearn_tags__(self) -> Any:
        """Declare what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        name = self.loss if isinstance(self.loss, str) else getattr(self.loss, "name", "")
        tags.target_tags.positive_only = name == Poisson.name
        return tags
