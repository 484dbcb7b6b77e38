"""TopKSelector: the search for k features as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from exactk.data.frames import is_frame, take_columns
from exactk.data.open_table import is_dask
from exactk.data.targets import Task
from exactk.errors import InputError, Setting
from exactk.export.saved_selection import SavedSelection
from exactk.losses.base import Loss
from exactk.losses.registry import read_loss
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.model_selection.choose_k import AutoK, AutoKResult, choose_k
from exactk.model_selection.cross_validation import row_groups
from exactk.params import PARAMS, validate
from exactk.problem.constraints import Constraints
from exactk.problem.problem import Problem
from exactk.proof.certify import certify
from exactk.proof.results import Certificate
from exactk.question import is_auto, largest_size, read_problem
from exactk.result import Path, Result, Status
from exactk.solver import solve, solve_path

__all__ = ["TopKSelector"]

# Seconds for a proof with certify=True.
PROOF_SECONDS = 60.0


class TopKSelector(SelectorMixin, BaseEstimator):
    """Select the best k features.

    Minimises the squared error of a linear fit of the target (one-hot classes, one or several
    numbers) on k columns, or another loss, with a small ridge, over all sets of k columns.

    Parameters
    ----------
    k : int, "auto" or AutoK
        Number of features. "auto" chooses it by cross-validation; an `exactk.AutoK` object says
        how, and a grid search reaches its parameters as ``k__criterion``. If the table has fewer
        columns than k, all of them are selected, with a warning.
    method : str or Method
        A name (see ``exactk.registry.names()``) or a method object such as
        ``exactk.registry.create("gsrfs", lam=0.1)``, whose parameters a grid search reaches as
        ``method__lam``.
    loss : str or Loss
        Loss to minimise: "squared"; "l21", "l2r" or "huber", which are robust against wrong rows;
        "logistic" for classes; "poisson" for counts; "optimal_scoring", the criterion of linear
        discriminants. Or an object such as ``exactk.losses.create("l2r", r=0.5)``. The methods
        ``exchange``, ``greedy`` and ``exhaustive`` search with this loss. The others search with
        their own criterion; then the loss only fits and grades the selected features.
    ridge : "auto", "cv" or float
        Ridge penalty relative to the size of the columns. "auto" is 0.1·√(d/n) between 0.1 and 3,
        "cv" takes the best of a grid by cross-validation at k features, 0 is least squares.
    task : {"auto", "classification", "regression"}
        Type of the target. "auto" takes text, booleans and few whole numbers for classes, and many
        whole numbers for amounts; ``result_.assumptions`` says what was assumed. If y has several
        numeric columns, each is divided by its standard deviation, so that all of them count (not
        with loss "poisson"). Coefficients stay in the units of y.
    class_weight : None, "balanced" or dict of label to float
        Weight of each class, times the weight of its rows.
    constraints : Constraints, dict or None
        Constraints on the selection, such as ``Constraints(include=["age"])``. A grid search
        reaches those of an object as ``constraints__max_correlation``.
    effort : float or None
        Search effort: 0 stops at the first set that no swap improves, None is the default of the
        method, infinity searches until the time limit.
    time_limit : float or None
        Maximum time of the search in seconds; the best set found so far is selected.
    certify : bool or float
        Maximum seconds for a proof, after the search, that no other k features have a lower
        objective; True is 60. A better set that the proof finds is selected instead. With
        ``k="auto"`` the number that was chosen is kept. See `exactk.certify`.
    random_state : int, Generator, RandomState or None
        Seed of the search. None is a fixed seed: the same input gives the same answer.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        Mask of the selected features.
    selected_ : ndarray of int of shape (n_selected,)
        Selected columns of X in order of entry: included columns, then the most useful ones. There
        are k, or more if a group counts as one feature.
    ranking_ : ndarray of int of shape (n_features,)
        1..n_selected for the selected columns in order of entry, n_selected + 1 for all others.
    coef_, intercept_ : ndarrays of shape (n_outputs, n_features) and (n_outputs,)
        The linear fit, zero outside the selection. For a table with text or categories, ``coef_``
        has a column for each of ``coded_feature_names_``.
    objective_, ridge_ : float
        Loss of that fit plus the ridge term, and the ridge that was used.
    status_ : str
        "optimal", "converged", "time_limit", … (see `exactk.Status`); "optimal" means proven.
    n_iter_ : int
        Steps of the method.
    result_ : Result
        All of this and ``assumptions``, serialisable.
    k_ : int
        Number of features: `k`, or the number that was chosen.
    choice_, path_ : AutoKResult and its table
        How the number was chosen; only if it was.
    certificate_ : Certificate
        The proof; only with `certify`. ``proven_``, ``lower_bound_`` and ``gap_`` are part of it.
    classes_ : ndarray
        Labels, for classification.
    scores_ : ndarray of shape (n_features,)
        Score of each feature, if the method has scores; for a category that of its best level.
    coded_feature_names_ : ndarray of str
        Names of the columns of ``coef_`` for a table with text or categories, such as
        "colour=red". The most frequent level has no column.

    See Also
    --------
    exactk.solve : The same for a `Problem`.
    exactk.TopKClassifier, exactk.TopKRegressor : Selection and model in one.

    Notes
    -----
    The criterion is linear: a feature that matters only through its product with another one, as
    in a parity, is not detected.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exactk import AutoK, Constraints, TopKSelector
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = TopKSelector(k=3).fit(X, y)
    >>> selector.get_feature_names_out()
    array(['worst radius', 'worst texture', 'worst concave points'], dtype=object)
    >>> selector.transform(X).shape
    (569, 3)
    >>> constraints = Constraints(include=["mean texture"], max_correlation=0.5)
    >>> panel = TopKSelector(k=3, constraints=constraints).fit(X, y)
    >>> panel.get_feature_names_out().tolist()
    ['mean texture', 'worst perimeter', 'worst smoothness']
    >>> TopKSelector(k="auto").fit(X, y).k_, TopKSelector(k=AutoK(k_max=5)).fit(X, y).k_
    (8, 3)
    >>> TopKSelector(k=3, certify=True).fit(X, y).proven_
    True
    """

    def __init__(
        self, k: int | str | AutoK = 10, *, method: str | Method = "exchange",
        loss: str | Loss = "squared", ridge: str | float | None = "auto", task: Task = "auto",
        class_weight: Any = None, constraints: Any = None, effort: float | None = None,
        time_limit: float | None = None, certify: bool | float = False, random_state: Any = None,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        self.k = k
        self.method = method
        self.loss = loss
        self.ridge = ridge
        self.task = task
        self.class_weight = class_weight
        self.constraints = constraints
        self.effort = effort
        self.time_limit = time_limit
        self.certify = certify
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Find the k features.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n, d)
            Columns of a frame may hold text or categories; each is one feature. A Dask array or
            data frame is streamed; see `Problem.from_dask`.
        y : array-like of shape (n,) or (n, c)
        sample_weight : array-like of shape (n,) or None
        groups : array-like of shape (n,) or None
            Group of each row, for the folds by which ``k="auto"`` chooses the number, and
            ``ridge="cv"`` the ridge. Rows of one group stay together.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C; the selector is then fitted with the best set found so far.
        """
        method = self._checked()
        problem = self._problem(X, y, sample_weight, method)
        self._check_target(problem)
        # Values are checked by now; names and width are noted as scikit-learn does.
        validate_data(self, _header(X), skip_check_array=True)
        self.n_features_in_ = int(problem.input_columns[-1]) + 1
        if groups is not None and problem.rows is not None:
            groups = row_groups(groups, problem.rows.n_rows)
        result, choice = self._solve(problem, method, groups)
        problem = problem.with_ridge(result.ridge)
        certificate = self._prove(problem, result, choice)
        if certificate is not None:
            result = certificate.result
        self._note_result(problem, result, choice, certificate)
        parts = [part for part in (choice, result, certificate) if part is not None]
        stopped = [part.message for part in parts if part.status == Status.INTERRUPTED]
        if stopped:
            # Fitted with the best set so far; but a loop around this fit must end as well.
            raise KeyboardInterrupt(stopped[0])
        return self

    def path(self, X: Any, y: Any, sample_weight: Any = None, *, k_max: int | None = None) -> Path:
        """Return a `Result` for every k = 1..k_max; the selector itself is not changed.

        Without k_max, the largest number is `k`, or the largest that "auto" tries.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> path = TopKSelector(ridge=0).path(*load_iris(return_X_y=True), k_max=3)
        >>> [result.support.tolist() for result in path]
        [[2], [1, 3], [1, 2, 3]]
        """
        method = self._checked()
        problem = self._problem(X, y, sample_weight, method)
        k_max = self._largest(problem) if k_max is None else problem.check_k(k_max)
        return solve_path(
            self._with_ridge(problem, k_max), k_max, method,
            time_limit=self.time_limit, verbose=self.verbose,
        )  # fmt: skip

    def problem(self, X: Any, y: Any, sample_weight: Any = None) -> Problem:
        """Return the problem that `fit` solves, with its constraints and its ridge.

        Examples
        --------
        >>> import exactk
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> selector = TopKSelector(k=2).fit(X, y)
        >>> exactk.explain(selector.problem(X, y), features=selector).support
        array([1, 3])
        """
        problem = self._problem(X, y, sample_weight, self._checked())
        if hasattr(self, "ridge_"):
            return problem.with_ridge(self.ridge_)
        return self._with_ridge(problem, self._largest(problem))

    def export(self, path: str | os.PathLike[str] | None = None) -> SavedSelection:
        """Return the selection as plain values, and write them to a JSON file if it is named.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> saved = TopKSelector(k=2).fit(*load_iris(return_X_y=True)).export()
        >>> saved.names, saved.order
        (('x1', 'x3'), ('x3', 'x1'))
        """
        check_is_fitted(self)
        saved = SavedSelection.from_selector(self)
        if path is not None:
            saved.save(path)
        return saved

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the selected features as a frame, most useful first; see `Result.to_frame`."""
        check_is_fitted(self)
        return self.result_.to_frame(library)

    def transform(self, X: Any) -> Any:
        """Return the selected columns of a table, in the order of the table.

        A frame with text or categories and a Dask collection stay what they are; of the latter
        nothing is computed.
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
                f"set_output(transform={container!r}) would load a whole Dask table",
                parameter="X", hint="use set_output(transform='default'), or X.compute() first",
            )  # fmt: skip
        validate_data(self, _header(X), reset=False, skip_check_array=True)
        if hasattr(type(X), "columns"):
            return X[list(X.columns[mask])]
        return X[:, np.flatnonzero(mask)]

    def inverse_transform(self, X: Any) -> Any:
        """Return a table with the selected columns in their places and zeros elsewhere."""
        check_is_fitted(self)
        if hasattr(self, "coded_feature_names_"):
            raise InputError(
                "inverse_transform fills other columns with zeros, and the table has text or "
                "categories",
                parameter="X", hint="take the columns from the table itself",
            )  # fmt: skip
        return super().inverse_transform(X)

    def _checked(self) -> Method:
        """Check all parameters before the table is read, and return the method."""
        defaults = {name: param.default for name, param in PARAMS.items()}
        validate(self.get_params(deep=False), defaults)
        if isinstance(self.k, AutoK):
            validate(self.k.get_params(deep=False), defaults)
        validate(Constraints.of(self.constraints).get_params(deep=False))
        loss = read_loss(self.loss)
        if self.certify and not loss.by_moments:
            raise InputError(
                ("a proof is for squared loss, and loss is ", repr(loss.name)),
                parameter="certify", value=self.certify,
                hint=("leave out ", Setting("certify"), ", or set ", Setting("loss", "squared")),
            )  # fmt: skip
        return self._method()

    def _method(self) -> Method:
        """Return the method with its parameters: a copy, whose check has passed."""
        given: dict[str, Any] = {} if self.effort is None else {"effort": self.effort}
        if isinstance(self.method, str):
            if "random_state" in registry.method_class(self.method).option_names():
                given["random_state"] = self.random_state
            method = registry.create(self.method, **given)
        else:
            method = clone(self.method)
            if self.random_state is not None and "random_state" in method.option_names():
                given["random_state"] = self.random_state
            registry.check_options(type(method).__name__.lower(), method.option_names(), given)
            method.set_params(**given)
        method.check()
        return method

    def _problem(self, X: Any, y: Any, sample_weight: Any, method: Method) -> Problem:
        """Return the problem of a table, with the loss and the constraints."""
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None",
                parameter="y",
            )
        # Without these, a method reads single columns of the Gram matrix, or none.
        whole = method.uses_gram or self.ridge == "cv" or is_auto(self.k) or bool(self.certify)
        return read_problem(
            X, y, sample_weight=sample_weight, task=self.task, loss=self.loss,
            class_weight=self.class_weight, constraints=self.constraints,
            gram="auto" if whole else "columns",
        )  # fmt: skip

    def _with_ridge(self, problem: Problem, k: int, groups: Any = None) -> Problem:
        ridge = "auto" if self.ridge is None else self.ridge
        return problem.with_ridge(ridge, k, random_state=self.random_state, groups=groups)

    def _size(self, problem: Problem) -> int:
        """Return k, or the number of columns that can be selected if there are fewer."""
        rules, usable, k = problem.rules, problem.usable, cast("int", self.k)
        most = len(usable) if rules is None else rules.size_of(np.setdiff1d(usable, rules.exclude))
        if not 0 < most < k:
            return problem.check_k(k)
        words = f"k={k} is more than the {most} columns that can be selected; k={most} is used"
        warnings.warn(words, UserWarning, stacklevel=4)
        return most

    def _largest(self, problem: Problem) -> int:
        """Return the largest number of features that may be selected."""
        if is_auto(self.k):
            return largest_size(problem, self.k.k_max if isinstance(self.k, AutoK) else None)
        return self._size(problem)

    def _solve(
        self, problem: Problem, method: Method, groups: Any
    ) -> tuple[Result, AutoKResult | None]:
        common: Any = {"method": method, "time_limit": self.time_limit, "verbose": self.verbose}
        if not is_auto(self.k):
            k = self._size(problem)
            return solve(self._with_ridge(problem, k, groups), k, **common), None
        auto = self.k if isinstance(self.k, AutoK) else AutoK()
        choice = choose_k(
            problem, **auto.get_params(deep=False), **common,
            ridge="auto" if self.ridge is None else self.ridge, random_state=self.random_state,
            groups=groups if "cv" in (auto.criterion, self.ridge) else None,
        )  # fmt: skip
        return choice.result, choice

    def _prove(
        self, problem: Problem, result: Result, choice: AutoKResult | None
    ) -> Certificate | None:
        """Try to prove a result if `certify` is set, unless the search was interrupted."""
        statuses = (result.status, None if choice is None else choice.status)
        if not self.certify or Status.INTERRUPTED in statuses:
            return None
        seconds = PROOF_SECONDS if isinstance(self.certify, (bool, np.bool_)) else self.certify
        return certify(problem, features=result, time_limit=float(seconds), verbose=self.verbose)

    def _check_target(self, problem: Problem) -> None:
        """Raise, before it is solved, for a problem that this estimator is not for."""

    def _note_result(
        self, problem: Problem, result: Result, choice: AutoKResult | None,
        certificate: Certificate | None,
    ) -> None:  # fmt: skip
        """Set the attributes of a fit."""
        self.result_, self.k_ = result, result.k
        self.objective_, self.ridge_ = result.objective, result.ridge
        stopped = choice is not None and choice.status == Status.INTERRUPTED
        self.status_ = str(Status.INTERRUPTED if stopped else result.status)
        self.n_iter_ = result.n_iter
        origins = problem.input_columns
        # The columns that encode a category enter together: the first stands for all.
        chosen = list(dict.fromkeys(origins[result.order].tolist()))
        self.selected_ = np.array(chosen, dtype=np.intp)
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[chosen] = True
        self.ranking_ = np.full(self.n_features_in_, len(chosen) + 1)
        self.ranking_[chosen] = np.arange(1, len(chosen) + 1)
        self.coef_ = np.zeros((problem.n_outputs, problem.n_features))
        self.coef_[:, result.support] = result.coef
        self.intercept_ = result.intercept.copy()
        coded = {category.column: category for category in problem.categories}
        self._coding = {at: coded[j] for at, j in enumerate(sorted(chosen)) if j in coded}
        # Columns of `coef_` of the selected features, in their order.
        self._columns, self._task = np.flatnonzero(np.isin(origins, chosen)), problem.task
        first = np.flatnonzero(np.diff(origins, prepend=-1))
        scores, names = result.scores, problem.feature_names if problem.categories else None
        of_some_fits = {
            "choice_": choice, "path_": getattr(choice, "table", None),
            "certificate_": certificate, "proven_": getattr(certificate, "proven", None),
            "lower_bound_": getattr(certificate, "lower", None),
            "gap_": getattr(certificate, "gap", None), "classes_": problem.classes,
            "scores_": None if scores is None else np.fmax.reduceat(scores, first),
            "coded_feature_names_": None if names is None else np.array(names, dtype=object),
        }  # fmt: skip
        for name, value in of_some_fits.items():
            if value is not None:
                setattr(self, name, value)
            elif hasattr(self, name):
                # Of an earlier fit.
                delattr(self, name)

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        check_is_fitted(self)
        mask: npt.NDArray[np.bool_] = self.support_
        return mask

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended; a fit that failed leaves the number of columns only."""
        return hasattr(self, "support_")

    def __sklearn_tags__(self) -> Any:
        """Declare what scikit-learn may expect: a target is needed, sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def _header(X: Any) -> Any:
    """Return what has the names and the width of X: for a Dask collection, without rows."""
    if not is_dask(X):
        return X
    return X._meta if hasattr(type(X), "columns") else np.empty((0, X.shape[1]))
