"""TopKSelector: the scikit-learn face of `solve`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from exactk.data.frames import is_frame, take_columns
from exactk.data.open_table import is_dask
from exactk.data.targets import Task
from exactk.errors import InputError
from exactk.estimators.config import SelectorConfig
from exactk.export.saved_selection import SavedSelection
from exactk.losses.base import Loss
from exactk.methods.base import Method
from exactk.problem.problem import Problem
from exactk.proof.results import Certificate
from exactk.result import Path, Status
from exactk.solver import solve_path
from exactk.types import Count

__all__ = ["TopKSelector"]


class TopKSelector(SelectorMixin, BaseEstimator):
    """Select exactly k features: the best k that can be found.

    Minimises the squared error of a linear fit of the target (one-hot classes, one or several
    numbers) on k columns, or another loss, with a small ridge, over all sets of k columns.

    Parameters
    ----------
    k : int or "auto"
        How many features. "auto" chooses the number, from 1 to `k_max`, by `criterion`; see
        `exactk.choose_k`.
    method : str or Method
        A name (see ``exactk.methods.registry.names()``) or a configured method object such as
        ``exactk.methods.registry.create("gsrfs", lam=0.1)``, whose parameters a grid search reaches
        as ``method__lam``.
    ridge : "auto", "cv" or float
        Ridge relative to the size of the columns. "auto" is 0.1·√(d/n) between 0.1 and 3, "cv"
        takes the best of a grid by cross-validated squared error at k features (at `k_max` where
        k is "auto"), 0 is plain least squares.
    task : {"auto", "classification", "regression"}
        What y holds; "auto" follows scikit-learn's ``type_of_target``.
    loss : str or Loss
        What is minimised: "squared"; "l21", "l2r" or "huber", which do not let a few wrong rows
        decide; "logistic" (classes) and "poisson" (counts), likelihoods; "optimal_scoring", the
        criterion of linear discriminants. Or an object such as
        ``exactk.losses.create("l2r", r=0.5)``, whose parameters a grid search reaches as
        ``loss__r``. Methods ``exchange``, ``greedy`` and ``exhaustive`` choose by it; others choose
        by their own criterion, and the loss fits and grades what they chose.
    class_weight : None, "balanced" or mapping of label to float
        What rows of a class weigh, times their own weight; "balanced" makes all classes weigh the
        same.
    effort : float or None
        How hard the method searches: 0 is greedy and swaps alone, None its measured default, or
        "until the time limit" where one is given.
    time_limit : float or None
        Seconds after which the best found is taken.
    random_state : int, RandomState or None
        Seed of the search. None is a fixed seed: the same input gives the same answer.
    verbose : int
        1 shows a progress bar on a terminal.
    k_max : int or None
        For ``k="auto"``, as the parameters below: the largest number to try; where there are
        fewer columns, all of them. None is 50, or less where columns or rows are few.
    criterion : {"cv", "bic", "ebic", "aicc", "cp"}
        Squared error on held-out rows, or a criterion of the fits on all rows.
    cv : int, splitter of scikit-learn, iterable or None
        Folds of criterion "cv"; None is five, or fewer where there are fewer rows or groups.
    rule : {"one_se", "paired", "best"}
        The smallest number within one standard error of the best by cross-validation, the same
        with the standard error of the difference, or the best.
    scoring : str, callable or None
        With criterion "cv" a score, the larger the better, in place of the squared error.
    estimator : estimator, str or None
        What is scored, fitted anew on the features of each size in each fold; None is logistic
        regression, or ridge regression for numbers, on standardised features.
    include, exclude : list of str or int, or None
        Features that are always and never in; see `Problem.with_constraints`, as for all below.
    feature_groups : mapping, list of lists, labels, or None
        Features that enter together.
    count : {"groups", "columns"}
        Whether a group is one of the k, or as many as it has columns.
    quotas : mapping of str to mapping, or None
        At least and at most how many of some features are selected.
    costs, budget : mapping or list, and float, or None
        What features cost, and what those chosen may cost together.
    max_correlation : float or None
        Largest absolute correlation of two chosen features.
    certify : bool or float
        Prove after the search that no other k features have a lower objective, for so many seconds
        at most; True is 60. A better set that the proof finds takes the place of the method's, so
        that the answer is then the best by this objective whatever the method chose by. With
        ``k="auto"`` the number that was chosen is kept. See `exactk.certify`.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        Mask of the selected features.
    selected_ : ndarray of int of shape (n_selected,)
        Selected columns of X in order of entry, the most useful first: k of them, or more where
        `feature_groups` count as one.
    ranking_ : ndarray of int of shape (n_features,)
        1..n_selected for the selected columns in order of entry, n_selected + 1 for all others.
    coef_ : ndarray of shape (n_outputs, n_features)
        Coefficients of the linear fit, zero outside the selection. Where X has text or
        categories, one for each column of 0 and 1 that they are coded as: see
        ``coded_feature_names_``.
    intercept_ : ndarray of shape (n_outputs,)
    objective_ : float
        Loss of that fit plus the ridge term.
    ridge_ : float
        The ridge used.
    status_ : str
        "optimal", "converged", "time_limit", … (see `exactk.Status`); "optimal" if proven.
    n_iter_ : int
        Steps of the method.
    result_ : Result
        All of it, serialisable.
    k_ : int
        How many features: `k`, or the number chosen.
    path_ : RecordsTable
        With ``k="auto"`` one row a size: features, objective, criterion, mean and standard error
        over folds, added and removed features, and whether it was chosen.
    choice_ : AutoKResult
        With ``k="auto"`` the choice with all that it rests on.
    proven_ : bool
        With `certify`, as the three below: whether no other k features are better.
    lower_bound_ : float
        No k features have a lower objective.
    gap_ : float
        By how much the objective could fall at most, as a share of itself.
    certificate_ : Certificate
        All of it, with a sentence to quote: ``certificate_.summary``.
    classes_ : ndarray
        Labels, for classification.
    scores_ : ndarray of shape (n_features,)
        What a filter thinks of each feature, the higher the better; only with methods that score.
        Of a category the best of its levels.
    coded_feature_names_ : ndarray of str
        Names of the columns of ``coef_``, such as "colour=red"; only where X has text or
        categories. The level that most rows have is left out.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has string column names.

    See Also
    --------
    exactk.solve : The same without scikit-learn's conventions.
    exactk.TopKClassifier, exactk.TopKRegressor : Selection and model in one.

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
    >>> panel = TopKSelector(k=3, include=["mean texture"], max_correlation=0.5).fit(X, y)
    >>> panel.get_feature_names_out().tolist()
    ['mean texture', 'worst perimeter', 'worst smoothness']
    >>> TopKSelector(k="auto").fit(X, y).k_
    8
    >>> TopKSelector(k=3, certify=True).fit(X, y).proven_
    True
    >>> TopKSelector(k=3, loss="logistic").fit(X, y).get_feature_names_out().tolist()
    ['worst radius', 'worst texture', 'worst concave points']
    """

    def __init__(
        self,
        k: int | str = 10,
        *,
        method: str | Method = "exchange",
        ridge: str | float = "auto",
        task: Task = "auto",
        loss: str | Loss = "squared",
        class_weight: Any = None,
        effort: float | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
        k_max: int | None = None,
        criterion: str = "cv",
        cv: Any = None,
        rule: str = "one_se",
        scoring: Any = None,
        estimator: Any = None,
        include: Any = None,
        exclude: Any = None,
        feature_groups: Any = None,
        count: Count = "groups",
        quotas: Any = None,
        costs: Any = None,
        budget: float | None = None,
        max_correlation: float | None = None,
        certify: bool | float = False,
    ) -> None:
        self.k = k
        self.method = method
        self.ridge = ridge
        self.task = task
        self.loss = loss
        self.class_weight = class_weight
        self.effort = effort
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.k_max = k_max
        self.criterion = criterion
        self.cv = cv
        self.rule = rule
        self.scoring = scoring
        self.estimator = estimator
        self.include = include
        self.exclude = exclude
        self.feature_groups = feature_groups
        self.count = count
        self.quotas = quotas
        self.costs = costs
        self.budget = budget
        self.max_correlation = max_correlation
        self.certify = certify

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> TopKSelector:
        """Find the k features.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n, d)
            Columns of a frame may hold text or categories; each is one feature, in or out with
            all of its levels. A Dask array or dataframe is read where it is, in one pass for most
            methods; see `Problem.from_dask`.
        y : array-like of shape (n,) or (n, c)
            For a Dask table a Dask array or series, too.
        sample_weight : array-like of shape (n,) or None
        groups : array-like of shape (n,) or None
            Handed to the splitter where ``k="auto"`` cross-validates, else checked and not used;
            with a number of folds the rows of a group stay together.

        Returns
        -------
        TopKSelector
            Itself.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C; the selector is then fitted with the best found until then, unless
            ``k="auto"`` had not tried all sizes.
        """
        asked = SelectorConfig.of(self).checked()
        problem = asked.problem(X, y, sample_weight)
        self._check(problem)
        # Values are checked by now; names and width are noted as scikit-learn does.
        validate_data(self, _header(X), skip_check_array=True)
        self.n_features_in_ = int(problem.input_columns[-1]) + 1
        result, choice = asked.solve(problem, groups)
        certificate = asked.prove(problem, result)
        if certificate is not None:
            result = certificate.result
        self._note_proof(certificate)
        self.result_, self.k_ = result, result.k
        self._note("choice_", choice)
        self._note("path_", None if choice is None else choice.table)
        origins = problem.input_columns
        # The columns that a category is coded as enter together: the first stands for all.
        chosen = list(dict.fromkeys(origins[result.order].tolist()))
        self.selected_ = np.array(chosen, dtype=np.intp)
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[chosen] = True
        self.ranking_ = np.full(self.n_features_in_, len(chosen) + 1)
        self.ranking_[chosen] = np.arange(1, len(chosen) + 1)
        self.coef_ = np.zeros((problem.n_outputs, problem.n_features))
        self.coef_[:, result.support] = result.coef
        self.intercept_ = result.intercept.copy()
        self.objective_ = result.objective
        self.ridge_ = result.ridge
        self.status_ = str(result.status)
        self.n_iter_ = result.n_iter
        first = np.flatnonzero(np.diff(origins, prepend=-1))
        scores, names = result.scores, problem.feature_names if problem.categories else None
        self._note("classes_", problem.classes)
        self._note("scores_", None if scores is None else np.fmax.reduceat(scores, first))
        self._note("coded_feature_names_", None if names is None else np.array(names, dtype=object))
        self._finish(problem.with_ridge(result.ridge))
        stopped = result if certificate is None else certificate
        if stopped.status == Status.INTERRUPTED:
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
            The largest size; None takes the parameter `k`, or `k_max` where that is "auto".

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
        asked = SelectorConfig.of(self).checked()
        problem = asked.problem(X, y, sample_weight)
        k_max = problem.check_k(asked.largest(problem) if k_max is None else k_max)
        return solve_path(
            asked.with_ridge(problem, k_max),
            k_max,
            asked.method,
            time_limit=self.time_limit,
            verbose=self.verbose,
        )

    def problem(self, X: Any, y: Any, sample_weight: Any = None) -> Problem:
        """Return the problem that `fit` solves, with its ridge and constraints.

        For `exactk.explain`, `exactk.stability` and all else that takes a problem.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        Problem
            With the ridge of this selector if it is fitted.

        Examples
        --------
        >>> import exactk
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> selector = TopKSelector(k=2).fit(X, y)
        >>> exactk.explain(selector.problem(X, y), selector.result_).support
        array([1, 3])
        """
        asked = SelectorConfig.of(self).checked()
        problem = asked.problem(X, y, sample_weight)
        if hasattr(self, "ridge_"):
            return problem.with_ridge(self.ridge_)
        return asked.with_ridge(problem, problem.check_k(asked.largest(problem)))

    def export(self, path: str | os.PathLike[str] | None = None) -> SavedSelection:
        """Return what was chosen as plain values, for production without exactk.

        Parameters
        ----------
        path : path-like or None
            Where to write it, as JSON.

        Returns
        -------
        SavedSelection

        Raises
        ------
        NotFittedError
            There is no choice yet.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> choice = TopKSelector(k=2).fit(*load_iris(return_X_y=True)).export()
        >>> choice.names, choice.order
        (('x1', 'x3'), ('x3', 'x1'))
        """
        check_is_fitted(self)
        choice = SavedSelection.from_selector(self)
        if path is not None:
            choice.save(path)
        return choice

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the selected features as a frame, most useful first; see `Result.to_frame`.

        Parameters
        ----------
        library : {"pandas", "polars"}

        Returns
        -------
        pandas or polars DataFrame
            Rank, index in X, name, and coefficients of each.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> TopKSelector(k=2).fit(X, y).to_frame()["feature"].tolist()
        ['petal width (cm)', 'sepal width (cm)']
        """
        check_is_fitted(self)
        return self.result_.to_frame(library)

    def transform(self, X: Any) -> Any:
        """Reduce a table to the selected features.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n, d)
            Of a Dask array or dataframe nothing is computed.

        Returns
        -------
        array, sparse matrix, or Dask collection of the same kind
            The selected columns, in the order of the table. Of a selector fitted on text or
            categories, a frame of the same kind with its columns as they are.
        """
        mask = self.get_support()
        framed = hasattr(self, "coded_feature_names_") and is_frame(X)
        if not framed and not is_dask(X):
            return super().transform(X)
        own = getattr(self, "_sklearn_output_config", {})
        container = own.get("transform", get_config()["transform_output"])
        if framed:
            validate_data(self, X, reset=False, skip_check_array=True)
            return take_columns(X, np.flatnonzero(mask), container)
        if container != "default":
            raise InputError(
                f"set_output(transform={container!r}) would load a Dask table whole; choose "
                f"'default', or compute the table first"
            )
        validate_data(self, _header(X), reset=False, skip_check_array=True)
        if hasattr(type(X), "columns"):
            return X[list(X.columns[mask])]
        return X[:, np.flatnonzero(mask)]

    def inverse_transform(self, X: Any) -> Any:
        """Put the selected columns back in their places, zeros in all others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, k)

        Returns
        -------
        array or sparse matrix of shape (n, d)

        Raises
        ------
        InputError
            The selector was fitted on text or categories, which have no zero.
        """
        check_is_fitted(self)
        if hasattr(self, "coded_feature_names_"):
            raise InputError(
                "inverse_transform fills columns that were not selected with zeros, which text and "
                "categories do not have; take what you need from the table itself"
            )
        return super().inverse_transform(X)

    def _check(self, problem: Problem) -> None:
        """Raise, before it is solved, for a problem that this estimator is not for."""
        return

    def _finish(self, problem: Problem) -> None:
        """Note how the selected features are coded; estimators made of this one do more."""
        chosen = np.flatnonzero(self.support_).tolist()
        coded = {category.column: category for category in problem.categories}
        self._coding = {at: coded[j] for at, j in enumerate(chosen) if j in coded}
        # Columns of `coef_` that the selected features are coded as, in their order.
        self._columns = np.flatnonzero(np.isin(problem.input_columns, chosen))
        self._task = problem.task

    def _note_proof(self, certificate: Certificate | None) -> None:
        """Set what a proof shows, or take that of an earlier fit away."""
        for name, part in (("proven_", "proven"), ("lower_bound_", "lower"), ("gap_", "gap")):
            self._note(name, None if certificate is None else getattr(certificate, part))
        self._note("certificate_", certificate)

    def _note(self, name: str, value: Any) -> None:
        """Set an attribute that some fits have; None takes that of an earlier fit away."""
        if value is not None:
            setattr(self, name, value)
        elif hasattr(self, name):
            delattr(self, name)

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
