"""TopKSelector: the scikit-learn face of `solve`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from exactk import registry
from exactk.choose.ridge import resolve_ridge
from exactk.errors import InputError
from exactk.gram import GramMode
from exactk.methods.base import Method
from exactk.problem import Problem
from exactk.result import Path, Status
from exactk.solve import solve, solve_path
from exactk.sources.open import is_dask
from exactk.targets import Task

__all__ = ["TopKSelector"]


class TopKSelector(SelectorMixin, BaseEstimator):
    """Select exactly k features: the best k that can be found.

    Minimises the squared error of a linear fit of the target (one-hot classes, one or several
    numbers) on k columns, with a small ridge, over all sets of k columns.

    Parameters
    ----------
    k : int
        How many features.
    method : str or Method
        A name (see ``exactk.registry.names()``) or a configured method object such as
        ``exactk.registry.create("gsrfs", lam=0.1)``, whose parameters a grid search reaches as
        ``method__lam``.
    ridge : "auto", "cv" or float
        Ridge relative to the size of the columns. "auto" is 0.1·√(d/n) between 0.1 and 3, "cv"
        takes the best of a grid by cross-validated squared error, 0 is plain least squares.
    scale : bool
        Standardise the columns first (the features that come out are not changed).
    task : {"auto", "classification", "regression"}
        What y holds; "auto" follows scikit-learn's ``type_of_target``.
    effort : float or None
        How hard the method searches: 0 is greedy and swaps alone, None its measured default, or
        "until the time limit" where one is given.
    time_limit : float or None
        Seconds after which the best found is taken.
    random_state : int, RandomState or None
        Seed of the search. None is a fixed seed: the same input gives the same answer.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features_in_,)
        Mask of the selected features.
    selected_ : ndarray of int of shape (k,)
        Selected features in order of entry, the most useful first.
    ranking_ : ndarray of int of shape (n_features_in_,)
        1..k for the selected features in order of entry, k + 1 for all others.
    coef_ : ndarray of shape (n_outputs, n_features_in_)
        Coefficients of the linear fit, zero outside the selection.
    intercept_ : ndarray of shape (n_outputs,)
    objective_ : float
        Squared error of that fit plus the ridge term.
    ridge_ : float
        The ridge used.
    status_ : str
        "optimal", "converged", "time_limit", … (see `exactk.Status`).
    n_iter_ : int
        Steps of the method.
    result_ : Result
        All of it, serialisable.
    classes_ : ndarray
        Labels, for classification.
    scores_ : ndarray of shape (n_features_in_,)
        What a filter thinks of each feature, the higher the better; only with methods that score.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has string column names.

    See Also
    --------
    exactk.solve : The same without scikit-learn's conventions.

    Notes
    -----
    The criterion is linear: a feature that matters only through its product with another, as in
    a parity, is invisible to it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exactk import TopKSelector
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = TopKSelector(k=3).fit(X, y)
    >>> selector.get_feature_names_out()
    array(['worst radius', 'worst texture', 'worst concave points'], dtype=object)
    >>> selector.transform(X).shape
    (569, 3)
    """

    def __init__(
        self,
        k: int = 10,
        *,
        method: str | Method = "exchange",
        ridge: str | float = "auto",
        scale: bool = True,
        task: Task = "auto",
        effort: float | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.k = k
        self.method = method
        self.ridge = ridge
        self.scale = scale
        self.task = task
        self.effort = effort
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TopKSelector:
        """Find the k features.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n, d)
            A Dask array or dataframe is read where it is, in one pass for most methods; see
            `Problem.from_dask`.
        y : array-like of shape (n,) or (n, c)
            For a Dask table a Dask array or series, too.
        sample_weight : array-like of shape (n,) or None

        Returns
        -------
        TopKSelector
            Itself.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C; the selector is then fitted with the best found until then.
        """
        method = self._configured_method()
        problem = self._problem(X, y, sample_weight, method)
        k = problem.check_k(self.k)
        problem = problem.with_ridge(
            resolve_ridge(self.ridge, problem, k, random_state=self.random_state)
        )
        result = solve(problem, k, method, time_limit=self.time_limit, verbose=self.verbose)
        self.result_ = result
        self.support_ = np.zeros(problem.n_features, dtype=bool)
        self.support_[result.support] = True
        self.selected_ = result.order.copy()
        self.ranking_ = np.full(problem.n_features, k + 1)
        self.ranking_[result.order] = np.arange(1, k + 1)
        self.coef_ = np.zeros((problem.n_outputs, problem.n_features))
        self.coef_[:, result.support] = result.coef
        self.intercept_ = result.intercept.copy()
        self.objective_ = result.objective
        self.ridge_ = result.ridge
        self.status_ = str(result.status)
        self.n_iter_ = result.n_iter
        if problem.classes is not None:
            self.classes_ = problem.classes
        elif hasattr(self, "classes_"):
            del self.classes_
        if result.scores is not None:
            self.scores_ = result.scores.copy()
        elif hasattr(self, "scores_"):
            del self.scores_
        if result.status == Status.INTERRUPTED:
            # Fitted with the best found so far; but a loop around this fit must end as well.
            raise KeyboardInterrupt(result.message)
        return self

    def path(self, X: Any, y: Any, k_max: int | None = None, sample_weight: Any = None) -> Path:
        """Select k features for every k = 1..k_max; the selector itself stays as it is.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        k_max : int or None
            The largest size; None takes the parameter `k`.

        Returns
        -------
        Path
            One `Result` for each k.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> path = TopKSelector(ridge=0).path(*load_iris(return_X_y=True), k_max=3)
        >>> [result.support.tolist() for result in path]
        [[2], [1, 3], [1, 2, 3]]
        """
        method = self._configured_method()
        # A copy takes the marks of this table (names, widths), so that a fitted selector keeps its.
        problem = clone(self)._problem(X, y, sample_weight, method)
        k_max = problem.check_k(self.k if k_max is None else k_max)
        ridge = resolve_ridge(self.ridge, problem, k_max, random_state=self.random_state)
        return solve_path(
            problem.with_ridge(ridge),
            k_max,
            method,
            time_limit=self.time_limit,
            verbose=self.verbose,
        )

    def transform(self, X: Any) -> Any:
        """Reduce a table to the selected features.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n, d)
            Of a Dask array or dataframe nothing is computed.

        Returns
        -------
        array, sparse matrix, or Dask collection of the same kind
            The selected columns, in the order of the table.
        """
        if not is_dask(X):
            return super().transform(X)
        mask = self.get_support()
        own = getattr(self, "_sklearn_output_config", {})
        container = own.get("transform", get_config()["transform_output"])
        if container != "default":
            raise InputError(
                f"set_output(transform={container!r}) would load a Dask table whole; choose "
                f"'default', or compute the table first"
            )
        validate_data(self, _header(X), reset=False, skip_check_array=True)
        if hasattr(type(X), "columns"):
            return X[list(X.columns[mask])]
        return X[:, np.flatnonzero(mask)]

    def _problem(self, X: Any, y: Any, sample_weight: Any, method: Method) -> Problem:
        if is_dask(X):
            if isinstance(sample_weight, str):
                raise InputError(f"sample_weight must be numbers, one a row, not {sample_weight!r}")
            problem = Problem.from_dask(
                X, y, weights=sample_weight, scale=self.scale, task=self.task
            )
        else:
            # Products of all pairs of columns are not made for a method that asks for few or none.
            gram: GramMode = "auto" if method.uses_gram or self.ridge == "cv" else "columns"
            problem = Problem.from_arrays(
                X, y, sample_weight=sample_weight, scale=self.scale, task=self.task, gram=gram
            )
        # Values are checked by now; names and width are noted as scikit-learn does.
        validate_data(self, _header(X), skip_check_array=True)
        self.n_features_in_ = problem.n_features
        return problem

    def _configured_method(self) -> Method:
        """Return the method with its parameters, checked before the table is read."""
        given: dict[str, Any] = {} if self.effort is None else {"effort": self.effort}
        if isinstance(self.method, str):
            if "random_state" in registry.method_class(self.method).option_names():
                given["random_state"] = self.random_state
            method = registry.create(self.method, **given)
        elif isinstance(self.method, Method):
            method = clone(self.method)
            if self.random_state is not None and "random_state" in method.option_names():
                given["random_state"] = self.random_state
            registry.check_options(type(method).__name__.lower(), method.option_names(), given)
            method.set_params(**given)
        else:
            raise InputError(f"method must be a name or a method object, not {self.method!r}")
        method.check()
        return method

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        check_is_fitted(self)
        mask: npt.NDArray[np.bool_] = self.support_
        return mask

    def __sklearn_tags__(self) -> Any:
        """Declare what scikit-learn may expect: a target is needed, sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def _header(X: Any) -> Any:
    """What scikit-learn reads names and width from: of a Dask collection a table without rows."""
    if not is_dask(X):
        return X
    return X._meta if hasattr(type(X), "columns") else np.empty((0, X.shape[1]))
