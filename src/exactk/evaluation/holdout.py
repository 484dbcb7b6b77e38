"""Scores on held-out rows: an estimator is trained on columns of the training rows of each fold."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from exactk.data.frames import is_frame
from exactk.data.open_table import is_dask
from exactk.errors import ExactkError, InputError
from exactk.model_selection.cross_validation import Split
from exactk.model_selection.scoring import HoldoutScorer, read_estimator, target_labels
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices

__all__ = ["FoldScores", "TableColumns"]

# The score with all features is left out for larger tables: it could take longer than the rest.
ALL_COLUMNS, ALL_VALUES = 1_000, 2_000_000


class TableColumns:
    """The columns of a table as an estimator gets them.

    An estimator gets columns of the user's table: of a frame a frame. If the table has text
    columns, or is a Problem, it gets an array of the columns of the problem.

    Parameters
    ----------
    X : array-like, sparse matrix, frame or Problem
    problem : Problem
        Made of X, with its rows in memory.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> TableColumns(X, Problem.from_arrays(X, y)).values(np.array([0, 1]), np.array([3]))
       petal width (cm)
    0               0.2
    1               0.2
    """

    def __init__(self, X: Any, problem: Problem) -> None:
        self._rows = problem.rows
        self._table: Any = None
        self._frame: Any = None
        if isinstance(X, Problem) or problem.categories or is_dask(X):
            return
        if sparse.issparse(X):
            # A few columns of it are read many times.
            self._table = X.tocsc()
        elif type(X) is not np.ndarray and is_frame(X):
            self._frame = nw.from_native(X, eager_only=True)
        else:
            self._table = np.asarray(X)

    @property
    def is_sparse(self) -> bool:
        """Whether an estimator gets sparse matrices."""
        return sparse.issparse(self._table)

    def values(self, rows: Indices, columns: Indices) -> Any:
        """Return some columns of some rows."""
        if self.is_sparse:
            return self._table[:, columns].tocsr()[rows]
        if self._table is not None:
            return self._table[np.ix_(rows, columns)]
        if self._frame is None:
            assert self._rows is not None
            return self._rows.columns(columns)[rows]
        part = self._frame[rows.tolist(), columns.tolist()]
        # scikit-learn does not read Arrow tables.
        return part.to_numpy() if part.implementation.is_pyarrow() else part.to_native()


class FoldScores:
    """The scores of an estimator on the held-out rows of folds, for any columns.

    Parameters
    ----------
    X : array-like, sparse matrix, frame or Problem
    problem : Problem
        Made of X, with its rows in memory.
    splits : list of (train, test)
    estimator : estimator, str or None
    scoring : str, callable or None

    Attributes
    ----------
    scoring, estimator : str
        Names of the score and of the estimator.
    baseline : list of float
        Score of each fold without features: of the most frequent class, or of the mean.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> rows = np.arange(150)
    >>> folds = [(rows[::2], rows[1::2])]
    >>> scores = FoldScores(X, Problem.from_arrays(X, y), folds, None, None)
    >>> score, predictions = scores.score(0, np.array([2, 3]))
    >>> round(score, 2), predictions.shape, round(scores.baseline[0], 2)
    (0.96, (75,), 0.33)
    """

    def __init__(
        self, X: Any, problem: Problem, splits: list[Split], estimator: Any, scoring: Any
    ) -> None:
        self._problem, self._splits = problem, splits
        self._columns = TableColumns(X, problem)
        self._y, self._weights = target_labels(problem), problem.row_weights
        classes = problem.task == "classification"
        made = read_estimator(
            estimator, problem.task, several_labels=classes and self._y.ndim == 2,
            sparse=self._columns.is_sparse,
        )  # fmt: skip
        if scoring is None:
            scoring = "accuracy" if classes else "r2"
        self._scorer = HoldoutScorer.of(made, scoring, weighted=self._weights is not None)
        # Code of the user may raise anything; scikit-learn's and ours must not.
        self._is_foreign = callable(scoring) or not (estimator is None or type(estimator) is str)
        self._found: dict[tuple[int, bytes], tuple[float, Any]] = {}
        self.scoring = self._scorer.scoring
        steps = getattr(made, "steps", None)
        self.estimator = type(steps[-1][1] if steps else made).__name__
        self.baseline = self._without_features()

    def score(self, fold: int, columns: Indices) -> tuple[float, Any]:
        """Return the score of a fold and the predictions for its held-out rows, computed once."""
        key = fold, columns.tobytes()
        if key not in self._found:
            self._found[key] = self._score(self._scorer, fold, columns)
        return self._found[key]

    def all_features(self) -> float:
        """Return the mean score with all features that are not excluded; nan if expensive."""
        problem = self._problem
        excluded = [] if problem.rules is None else list(problem.rules.exclude)
        columns = np.setdiff1d(np.arange(problem.n_features), excluded)
        if len(columns) > ALL_COLUMNS or len(columns) * problem.n_rows > ALL_VALUES:
            return nan
        try:
            return float(np.mean([self.score(fold, columns)[0] for fold in range(self.n_folds)]))
        except InputError:
            # An estimator for k features may not take all of them; the rest is still worth having.
            return nan

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self._splits)

    def _without_features(self) -> list[float]:
        from sklearn.dummy import DummyClassifier, DummyRegressor

        classes = self._problem.task == "classification"
        dummy = DummyClassifier(strategy="prior") if classes else DummyRegressor()
        scorer = replace(self._scorer, estimator=dummy)
        any_column = np.zeros(1, dtype=np.intp)
        return [self._score(scorer, fold, any_column)[0] for fold in range(self.n_folds)]

    def _score(self, scorer: HoldoutScorer, fold: int, columns: Indices) -> tuple[float, Any]:
        train, test = self._splits[fold]
        x, z = self._columns.values(train, columns), self._columns.values(test, columns)
        weights: tuple[Floats, Floats] | None = None
        if self._weights is not None:
            weights = self._weights[train], self._weights[test]
        kept = _KeepPredictions(scorer.scorer)
        try:
            found = replace(scorer, scorer=kept).score(x, self._y[train], z, self._y[test], weights)
        except ExactkError:
            raise
        except Exception as error:
            # An estimator or a score of the user may raise anything; our own bugs pass.
            if not self._is_foreign:
                raise
            raise InputError(
                f"{self.estimator} with scoring {self.scoring} fails on fold {fold + 1}: "
                f"{type(error).__name__}: {error}",
                parameter="estimator",
            ) from error
        return found, kept.predictions


class _KeepPredictions:
    """A score that also keeps the predictions of the estimator."""

    def __init__(self, scorer: Any) -> None:
        self._scorer, self.predictions = scorer, None

    def __call__(self, fitted: Any, X: Any, y: Any, **weights: Any) -> Any:
        """Return the score of a fitted estimator."""
        if hasattr(fitted, "predict"):
            self.predictions = fitted.predict(X)
        return self._scorer(fitted, X, y, **weights)
