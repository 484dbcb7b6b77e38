"""How public functions such as `exactk.certify` read their table, their k and their features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from exactk.data.gram import GramMode
from exactk.data.open_table import is_dask
from exactk.errors import InputError, Setting, join_items
from exactk.losses.registry import task_of
from exactk.params import validate
from exactk.problem.constraints import Constraints, Rules
from exactk.problem.problem import Problem
from exactk.result import Answer, Result, Status
from exactk.search.feasibility import Feasible
from exactk.search.units import Units
from exactk.solver import grade, solve
from exactk.types import Indices

if TYPE_CHECKING:
    from exactk.model_selection.choose_k import AutoKResult

__all__ = [
    "Question",
    "columns_of",
    "count_scope",
    "has_same_objective",
    "is_auto",
    "largest_size",
    "read_problem",
    "read_question",
    "units_of",
]

# Objectives of the same columns that differ by no more, as a share of themselves and of the total,
# differ by rounding: another machine adds in another order.
SAME, SAME_OF_TOTAL = 1e-6, 1e-9
# Sizes that are tried at most if no `k_max` is given.
MOST_SIZES = 50
# Name of the method of a result that is made of a list of columns.
GIVEN = "given"
# Parameters of a fitted selector that belong to its problem.
OF_PROBLEM = ("loss", "class_weight", "constraints")


def read_problem(
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    task: Any = "auto",
    loss: Any = None,
    class_weight: Any = None,
    constraints: Any = None,
    gram: GramMode = "auto",
) -> Problem:
    """Return the problem of a table and a target, or a problem that is given.

    Several numeric outputs of a table are divided by their standard deviations.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Dask collection or Problem
    y, sample_weight, task
        Not allowed if X is a Problem, which has its own.
    loss, class_weight, constraints
        None keeps those of a Problem; otherwise they replace them.
    gram : {"auto", "full", "columns"}
        How the Gram matrix of a table in memory is computed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> read_problem(X, y, constraints={"exclude": [3]}).candidates
    array([0, 1, 2])
    """
    validate({"task": task, "loss": loss, "class_weight": class_weight, "constraints": constraints})
    if isinstance(X, Problem):
        problem = _given_problem(X, y, sample_weight, task)
        if loss is not None:
            problem = problem.with_loss(loss)
        if class_weight is not None:
            problem = problem.with_class_weight(class_weight)
    elif y is None:
        raise InputError(
            "y is None", parameter="y", hint="give the target, or a Problem in place of X and y"
        )
    elif is_dask(X):
        problem = _dask_problem(X, y, sample_weight, task, loss or "squared", class_weight)
    else:
        problem = Problem.from_arrays(
            X, y, sample_weight=sample_weight, task=task, loss=loss or "squared",
            class_weight=class_weight, gram=gram,
        ).with_scaled_outputs()  # fmt: skip
    given = Constraints.of(constraints)
    return problem.with_constraints(given) if given.to_dict() else problem


def _given_problem(problem: Problem, y: Any, sample_weight: Any, task: Any) -> Problem:
    given = {"y": y is not None, "sample_weight": sample_weight is not None, "task": task != "auto"}
    for name, is_given in given.items():
        if is_given:
            raise InputError(
                f"{name} cannot be given together with a Problem, which has its own",
                parameter=name, hint="leave it out, or give X and y in place of the Problem",
            )  # fmt: skip
    return problem


def _dask_problem(
    X: Any, y: Any, sample_weight: Any, task: Any, loss: Any, class_weight: Any
) -> Problem:
    if isinstance(sample_weight, str):
        raise InputError(
            parameter="sample_weight", value=sample_weight, expected="one number for each row"
        )
    if class_weight is not None:
        raise InputError(
            "class_weight needs the rows in memory, and X is a Dask collection",
            parameter="class_weight", value=class_weight,
            hint="give each row the weight of its class as sample_weight",
        )  # fmt: skip
    problem = Problem.from_dask(X, y, weights=sample_weight, task=task_of(loss, task))
    return problem.with_loss(loss).with_scaled_outputs()


@dataclass(frozen=True, eq=False)
class Question:
    """What a public function was asked: a problem, and a number of features or a selection.

    Attributes
    ----------
    problem : Problem
        With its ridge.
    k : int
        Number of features, as they are counted: a group may count as one.
    columns : ndarray of intp or None
        Columns of the problem that were given as `features`, in order of entry.
    result : Result or None
        The result that was given as `features`, or found when k was chosen.
    choice : AutoKResult or None
        How k was chosen.
    """

    problem: Problem
    k: int
    columns: Indices | None = None
    result: Result | None = None
    choice: AutoKResult | None = None

    def solved(
        self, *, method: Any = "exchange", time_limit: float | None = None, verbose: int = 0,
        **options: Any,
    ) -> Result:  # fmt: skip
        """Return the selection: the given one, or that of a method.

        A result of other rows is fitted again: only its columns are given.

        Raises
        ------
        KeyboardInterrupt
            The search was stopped by Ctrl-C.
        """
        if self.result is not None and (
            self.columns is None or has_same_objective(self.problem, self.result)
        ):
            return self.result
        if self.columns is not None:
            answer = Answer(self.columns.tolist(), Status.CONVERGED, 0)
            return grade(self.problem, self.k, answer, GIVEN)
        result = solve(
            self.problem, self.k, method, time_limit=time_limit, verbose=verbose, **options
        )
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt(result.message)
        return result


def read_question(
    X: Any,
    y: Any = None,
    *,
    k: Any = None,
    features: Any = None,
    ridge: Any = None,
    method: Any = "exchange",
    groups: Any = None,
    random_state: Any = None,
    time_limit: float | None = None,
    verbose: int = 0,
    **table: Any,
) -> Question:
    """Return the problem with its ridge, and k or the features that were given.

    Parameters
    ----------
    X, y : array-like, or Problem and None
    k : int, "auto", AutoK or None
        Number of features; "auto" chooses it.
    features : list of str or int, Result, fitted selector or None
        An existing selection that keeps the constraints, in place of k. A result or a selector
        also gives its ridge, loss and task, a selector its class weights and constraints, if these
        are not given and X is a table. A result has the name of its loss only: give `loss` if it
        has parameters.
    ridge : "auto", "cv", float or None
        None is the ridge of a Problem, or "auto" for a table.
    method, groups, random_state, time_limit, verbose
        Of the choice of k; groups and the seed also of the ridge.
    **table
        As in `read_problem`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from exactk import TopKSelector
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> read_question(X, y, features=["petal width (cm)", 0]).columns
    array([0, 3])
    >>> question = read_question(X, y, features=TopKSelector(k=2).fit(X, y))
    >>> question.k, question.problem.ridge
    (2, 0.1)
    """
    validate({"k": k, "ridge": ridge, "features": features})
    if (k is None) == (features is None):
        raise InputError(
            ("" if k is None else "not both; ", "give ", Setting("k"), ", the number of features, "
             "or ", Setting("features"), ", an existing selection"),
            parameter="k" if k is None else "features",
        )  # fmt: skip
    given = _result_of(features)
    if not isinstance(X, Problem):
        for name, value in _settings_of(features, given).items():
            if table.get(name) is None or (name == "task" and table[name] == "auto"):
                table[name] = value
        if ridge is None:
            ridge = "auto" if given is None else given.ridge
    problem = read_problem(X, y, **table)
    if features is not None:
        return _with_features(problem, features, given, ridge, random_state, groups)
    if is_auto(k):
        # The core below does not choose k: imported when it is needed.
        from exactk.model_selection.choose_k import AutoK, choose_k

        auto = k if isinstance(k, AutoK) else AutoK()
        choice = choose_k(
            problem, **auto.get_params(deep=False), method=method, ridge=ridge,
            groups=groups if "cv" in (auto.criterion, ridge) else None,
            random_state=random_state, time_limit=time_limit, verbose=verbose,
        )  # fmt: skip
        if choice.status == Status.INTERRUPTED:
            raise KeyboardInterrupt(choice.message)
        result = choice.result
        return Question(problem.with_ridge(result.ridge), result.k, None, result, choice)
    k = problem.check_k(k)
    if ridge is not None:
        problem = problem.with_ridge(ridge, k, random_state=random_state, groups=groups)
    return Question(problem, k)


def is_auto(k: Any) -> bool:
    """Return whether k is to be chosen: "auto" or an AutoK object, checked before."""
    return not isinstance(k, (int, np.integer))


def largest_size(problem: Problem, k_max: int | None = None, n_rows: int | None = None) -> int:
    """Return the largest number of features to try: what was given, or the default.

    Parameters
    ----------
    problem : Problem
    k_max : int or None
    n_rows : int or None
        Rows that each search has, if these are fewer than those of the problem.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> largest_size(Problem.from_arrays(*load_iris(return_X_y=True)))
    4
    """
    problem.check_k(1)
    if k_max is not None:
        return min(int(k_max), problem.n_usable)
    rules = problem.rules or Rules()
    rows = problem.n_rows if n_rows is None else n_rows
    available, needed = rules.size_of(problem.candidates), rules.size_of(rules.include)
    return max(min(available, MOST_SIZES, (rows - 1) // 2), needed, 1)


def _result_of(features: Any) -> Result | None:
    """Return the result behind a selection: itself, of a selector, or of a certificate."""
    for name in ("result_", "result"):
        features = getattr(features, name, features)
    return features if isinstance(features, Result) else None


def _settings_of(features: Any, result: Result | None) -> dict[str, Any]:
    """Return what a selection says of its problem."""
    if result is None:
        return {}
    if hasattr(features, "result_"):
        settings = {name: getattr(features, name, None) for name in OF_PROBLEM}
        return {**settings, "task": features._task}
    if result.classes is None and len(result.intercept) > 1:
        return {"loss": result.loss}
    task = "regression" if result.classes is None else "classification"
    return {"loss": result.loss, "task": task}


def _with_features(
    problem: Problem, features: Any, given: Result | None, ridge: Any, random_state: Any,
    groups: Any,
) -> Question:  # fmt: skip
    if given is None and hasattr(features, "get_support"):
        try:
            check_is_fitted(features)
        except NotFittedError as error:
            raise InputError(
                f"features is a {type(features).__name__} that is not fitted",
                parameter="features", value=features, hint="call its fit first",
            ) from error  # fmt: skip
        features = features.get_support(indices=True)
    columns = columns_of(problem, features if given is None else given)
    if columns.size == 0:
        raise InputError("features is empty", parameter="features", hint="name a column")
    units_of(problem, Units(problem), columns)
    k = (problem.rules or Rules()).size_of(columns)
    if ridge is not None:
        problem = problem.with_ridge(ridge, k, random_state=random_state, groups=groups)
    if given is not None and given.ridge != problem.ridge:
        raise InputError(
            f"the selection was found with ridge={given.ridge:g}, and the problem has "
            f"ridge={problem.ridge:g}",
            parameter="ridge", value=problem.ridge, hint=("use ", Setting("ridge", given.ridge)),
        )  # fmt: skip
    return Question(problem, k, columns, given)


def units_of(problem: Problem, units: Units, columns: Indices) -> list[int]:
    """Return the units of the columns, or say why no method can select them."""
    found = units.units_of(columns.tolist())
    names = join_items(problem.original_names[j] for j in problem.table_columns(columns))
    if found is None:
        raise InputError(
            f"{names} cannot be selected together: constant or excluded columns, or parts of "
            f"groups, are among them",
            parameter="features",
        )  # fmt: skip
    if count_scope(units, found) is None:
        raise InputError(
            f"{names} cannot be selected together: they break constraints of the problem",
            parameter="features",
        )
    return found


def count_scope(units: Units, members: Sequence[int]) -> Feasible | None:
    """The sets of the same size that keep the rules, if this one does; copies apart if they are."""
    k = int(units.weights[list(members)].sum())
    both = (Feasible(units, k), Feasible(units, k, forbid_duplicates=False))
    return next((feasible for feasible in both if feasible.keeps(members)), None)


def has_same_objective(problem: Problem, result: Result) -> bool:
    """Return whether the columns of a result have the objective here that it says."""
    objective = problem.objective(result.support)
    slack = SAME * max(objective, result.objective) + SAME_OF_TOTAL * problem.total
    return bool(abs(objective - result.objective) <= slack)


def columns_of(problem: Problem, features: Any) -> Indices:
    """Return the columns of the problem behind a selection, in order of entry.

    Parameters
    ----------
    problem : Problem
    features : Result, or list of str or int
        Names, or numbers of columns of the table as it was given; also a boolean mask of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> columns_of(problem, [3, "x0"])
    array([0, 3])
    """
    if isinstance(features, Result):
        columns, names = features.order, problem.feature_names
        known = [names[p] for p in features.support if p < len(names)]
        if tuple(known) != features.feature_names:
            raise InputError(
                f"the result is of another table: it has the columns "
                f"{join_items(features.feature_names)}",
                parameter="features",
            )
        return columns
    named: Any = [features] if isinstance(features, str) else features
    is_list = isinstance(named, Collection) and not isinstance(named, (bytes, Mapping, Set))
    listed = list(named.tolist() if hasattr(named, "tolist") else named) if is_list else []
    if not is_list or not all(isinstance(one, (str, int, np.integer, np.bool_)) for one in listed):
        raise InputError(
            parameter="features", value=features,
            expected="a list of columns, a Result or a fitted selector",
        )  # fmt: skip
    flags = all(isinstance(one, (bool, np.bool_)) for one in listed)
    if flags and len(listed) == len(problem.original_names):
        listed = [place for place, one in enumerate(listed) if one]
    twice = next((one for one, count in Counter(listed).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"features has {twice!r} twice", parameter="features", hint="name it once")
    return np.array(problem.find_columns(listed, "features"), dtype=np.intp)
