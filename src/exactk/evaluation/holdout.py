"""Scores on held-out rows: an estimator is trained on columns of the training rows of each fold."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from exactk.data.frames import is_frame
from exactk.data.open_table import is_dask
from exactk.errors import InputError
from exactk.model_selection.cross_validation import Split
from exactk.model_selection.scoring import HoldoutScorer, read_estimator, target_labels
from exactk.problem.problem import Problem
from exactk.types import Indices

__all__ = ["FoldScores"]

# The score with all features is left out for larger tables: it could take longer than the rest.
ALL_COLUMNS, ALL_VALUES = 1_000, 2_000_000


class FoldScores:
    """The scores of an estimator on the held-out rows of folds, for any columns.

    The problem is made of X and has its rows in memory. `scoring` and `estimator` are names,
    `baseline` the scores of the folds without features: of the most frequent class or the mean.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = np.arange(150)
    >>> folds = [(rows[::2], rows[1::2])]
    >>> scores = FoldScores(X, Problem.from_arrays(X, y), folds, None, None)
    >>> score, predictions = scores.score(0, np.array([2, 3]), keep=True)
    >>> round(score, 2), len(predictions), round(scores.baseline[0], 2)
    (0.96, 75, 0.33)
    """

    def __init__(
        self, X: Any, problem: Problem, splits: list[Split], estimator: Any, scoring: Any
    ) -> None:
        from sklearn.dummy import DummyClassifier, DummyRegressor

        self.splits, self._problem, self._frame = splits, problem, None
        if not (isinstance(X, Problem) or problem.categories or is_dask(X)) and is_frame(X):
            self._frame = nw.from_native(X, eager_only=True)
        self._y, self._weights = target_labels(problem), problem.row_weights
        classes = problem.task == "classification"
        several = classes and self._y.ndim == 2
        made = read_estimator(estimator, problem.task, several_labels=several)
        if scoring is None:
            scoring = "accuracy" if classes else "r2"
        self._scorer = HoldoutScorer.of(made, scoring, weighted=self._weights is not None)
        self._found: dict[tuple[int, bytes], tuple[float, Any]] = {}
        self.scoring = self._scorer.scoring
        last = made.steps[-1][1] if hasattr(made, "steps") else made
        self.estimator = type(last).__name__
        # Without features; this also checks that the score is defined for the target.
        dummy = DummyClassifier(strategy="prior") if classes else DummyRegressor()
        constant = replace(self._scorer, estimator=dummy)
        any_column = np.zeros(1, dtype=np.intp)
        folds = range(len(splits))
        self.baseline = [self._score(constant, fold, any_column) for fold in folds]

    def score(self, fold: int, columns: Indices, *, keep: bool = False) -> tuple[float, Any]:
        """Return the score of a fold, computed once, and the predictions if they are kept."""
        key = fold, columns.tobytes()
        if key not in self._found:
            predictions: list[Any] = []

            def keeping(fitted: Any, X: Any, y: Any, **weights: Any) -> Any:
                if hasattr(fitted, "predict"):
                    predictions[:] = np.asarray(fitted.predict(X)).tolist()
                return self._scorer.scorer(fitted, X, y, **weights)

            scorer = replace(self._scorer, scorer=keeping) if keep else self._scorer
            self._found[key] = self._score(scorer, fold, columns), predictions
        return self._found[key]

    def all_features(self) -> float:
        """Return the mean score with all features that are not excluded; nan if expensive."""
        problem = self._problem
        excluded = [] if problem.rules is None else list(problem.rules.exclude)
        columns = np.setdiff1d(np.arange(problem.n_features), excluded)
        if len(columns) > ALL_COLUMNS or len(columns) * problem.n_rows > ALL_VALUES:
            return nan
        try:
            scores = [self.score(fold, columns)[0] for fold in range(len(self.splits))]
        except InputError:
            # An estimator for k features may not take all of them; the rest is still worth having.
            return nan
        return float(np.mean(scores))

    def _table(self, rows: Indices, columns: Indices) -> Any:
        """Return columns of the user's frame if there is one, else of the problem as an array."""
        if self._frame is None:
            assert self._problem.rows is not None
            return self._problem.rows.columns(columns)[rows]
        part = self._frame[rows.tolist(), columns.tolist()]
        # scikit-learn does not read Arrow tables.
        return part.to_numpy() if part.implementation.is_pyarrow() else part.to_native()

    def _score(self, scorer: HoldoutScorer, fold: int, columns: Indices) -> float:
        (train, test), w = self.splits[fold], self._weights
        x, z = self._table(train, columns), self._table(test, columns)
        weights = None if w is None else (w[train], w[test])
        return scorer.score(x, self._y[train], z, self._y[test], weights)
