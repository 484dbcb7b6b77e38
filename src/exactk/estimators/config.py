"""What a `TopKSelector` is asked for: checked, a problem made of a table, and solved."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args

import numpy as np
from sklearn.base import clone

from exactk.data.gram import GramMode
from exactk.data.open_table import is_dask
from exactk.errors import InputError
from exactk.losses.registry import read_loss, task_of
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.model_selection.choose_k import AutoKResult, check_size_options, choose_k, largest_size
from exactk.model_selection.cross_validation import row_groups
from exactk.model_selection.ridge import find_ridge
from exactk.params import Boolean, Choice, Number
from exactk.problem.constraints import CONSTRAINTS, Count
from exactk.problem.problem import Problem
from exactk.problem.validation import check_ridge
from exactk.proof.certify import certify
from exactk.proof.results import Certificate
from exactk.result import Result, Status
from exactk.solver import solve

__all__ = ["SelectorConfig"]

# Seconds for a proof where no number is given.
PROOF_SECONDS = 60.0


@dataclass(frozen=True, eq=False, kw_only=True)
class SelectorConfig:
    """The parameters of a `TopKSelector`, and what follows from them without scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from exactk import TopKSelector
    >>> asked = SelectorConfig.of(TopKSelector(k=2)).checked()
    >>> result, _ = asked.solve(asked.problem(*load_iris(return_X_y=True)))
    >>> result.support.tolist()
    [1, 3]
    """

    k: Any
    method_parameter: Any
    ridge: Any
    task: Any
    loss: Any
    class_weight: Any
    effort: Any
    time_limit: Any
    random_state: Any
    verbose: Any
    k_max: Any
    criterion: Any
    cv: Any
    rule: Any
    scoring: Any
    estimator: Any
    certify: Any
    constraints: dict[str, Any]

    @classmethod
    def of(cls, selector: Any) -> SelectorConfig:
        """Take the parameters of a selector as they are."""
        taken = {
            part.name: getattr(selector, part.name)
            for part in fields(cls)
            if part.name not in ("method_parameter", "constraints")
        }
        constraints = {name: getattr(selector, name) for name in CONSTRAINTS}
        return cls(method_parameter=selector.method, constraints=constraints, **taken)

    def checked(self) -> SelectorConfig:
        """Return itself, or say what is wrong that no table can make right."""
        if isinstance(self.k, str) and self.k != "auto":
            raise InputError(f"k must be a whole number or 'auto', not {self.k!r}")
        check_size_options(self.criterion, self.rule, self.k_max, self.cv)
        Choice(options=get_args(Count))("count", self.constraints["count"])
        self.method.check()
        loss = read_loss(self.loss)
        if self.certify and not loss.by_moments:
            raise InputError(
                f"certify proves choices by squared loss, and loss is {loss.name!r}; leave certify "
                f"out, or take loss='squared' or 'optimal_scoring'"
            )
        if not Boolean().allows(self.certify) and not Number("(0, inf]").allows(self.certify):
            raise InputError(
                f"certify must be True, False or a number of seconds above 0, not {self.certify!r}"
            )
        return self

    @property
    def is_auto(self) -> bool:
        """Whether the number of features is to be chosen, too."""
        return isinstance(self.k, str)

    @property
    def proof_seconds(self) -> float:
        """How long a proof may take; 0 is none."""
        if isinstance(self.certify, (bool, np.bool_)):
            return PROOF_SECONDS if self.certify else 0.0
        return float(self.certify)

    @property
    def gram(self) -> GramMode:
        """How the Gram matrix is held.

        Products of all pairs of columns are not made for a method that asks for few or none.
        """
        whole = (
            self.method.uses_gram or self.ridge == "cv" or self.is_auto or self.proof_seconds > 0
        )
        return "auto" if whole else "columns"

    @cached_property
    def method(self) -> Method:
        """The method with its parameters."""
        given: dict[str, Any] = {} if self.effort is None else {"effort": self.effort}
        if isinstance(self.method_parameter, str):
            if "random_state" in registry.method_class(self.method_parameter).option_names():
                given["random_state"] = self.random_state
            return registry.create(self.method_parameter, **given)
        if not isinstance(self.method_parameter, Method):
            raise InputError(
                f"method must be a name or a method object, not {self.method_parameter!r}"
            )
        method: Method = clone(self.method_parameter)
        if self.random_state is not None and "random_state" in method.option_names():
            given["random_state"] = self.random_state
        registry.check_options(type(method).__name__.lower(), method.option_names(), given)
        method.set_params(**given)
        return method

    def problem(self, X: Any, y: Any, sample_weight: Any = None) -> Problem:
        """Make the problem of a table, under the constraints."""
        if is_dask(X):
            if isinstance(sample_weight, str):
                raise InputError(f"sample_weight must be numbers, one a row, not {sample_weight!r}")
            if self.class_weight is not None:
                raise InputError(
                    "class_weight needs rows in memory, and X is a Dask collection; give the rows "
                    "their weights as sample_weight"
                )
            problem = Problem.from_dask(
                X, y, weights=sample_weight, task=task_of(self.loss, self.task)
            ).with_loss(self.loss)
        else:
            problem = Problem.from_arrays(
                X, y, sample_weight=sample_weight, task=self.task,
                loss=self.loss, class_weight=self.class_weight, gram=self.gram,
            )  # fmt: skip
        given = [name for name, value in self.constraints.items() if value is not None]
        if given != ["count"] or self.constraints["count"] != "groups":
            problem = problem.with_constraints(**self.constraints)
        return problem

    def solve(self, problem: Problem, groups: Any = None) -> tuple[Result, AutoKResult | None]:
        """Solve for k features, or for the number that the data choose.

        Parameters
        ----------
        problem : Problem
        groups : array-like or None
            Of the rows, for the folds that choose the number.
        """
        if groups is not None and problem.rows is not None:
            groups = row_groups(groups, problem.rows.n_rows)
        common: Any = {"time_limit": self.time_limit, "verbose": self.verbose}
        if self.is_auto:
            ridge = self.ridge if isinstance(self.ridge, str) else check_ridge(self.ridge)
            choice = choose_k(
                problem, self.k_max, criterion=self.criterion, method=self.method, cv=self.cv,
                rule=self.rule, ridge=ridge, random_state=self.random_state,
                scoring=self.scoring, estimator=self.estimator,
                groups=groups if self.criterion == "cv" else None, **common,
            )  # fmt: skip
            return choice.result, choice
        k = problem.check_k(self.k)
        return solve(self.with_ridge(problem, k), k, self.method, **common), None

    def prove(self, problem: Problem, result: Result) -> Certificate | None:
        """Prove a result of the problem, whatever its ridge, if that is asked for."""
        seconds = self.proof_seconds
        # Whoever stopped the search does not want to wait for a proof.
        if not seconds or result.status == Status.INTERRUPTED:
            return None
        return certify(
            problem.with_ridge(result.ridge), result, time_limit=seconds, verbose=self.verbose
        )

    def with_ridge(self, problem: Problem, k: int) -> Problem:
        """Return the problem with the ridge that is asked for, at k features."""
        ridge = find_ridge(self.ridge, problem, k, random_state=self.random_state)
        return problem.with_ridge(ridge)

    def largest(self, problem: Problem) -> int:
        """Return the largest size that is asked for."""
        return largest_size(problem, self.k_max) if self.is_auto else self.k
