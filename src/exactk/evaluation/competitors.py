"""What chooses features in a comparison: methods of exactk, and rivals, behind one call."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from exactk.errors import InputError, UnknownMethodError, did_you_mean
from exactk.estimators.config import SelectorConfig
from exactk.evaluation.fold_data import EvaluationData
from exactk.evaluation.holdout import stability_of
from exactk.evaluation.sklearn_baselines import BASELINES, Baseline, TrainingData
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.native.threads import limit_threads
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.types import Floats, Indices
from exactk.utils.monitor import Monitor
from exactk.utils.set_similarity import nogueira_index

__all__ = ["Competitor", "MethodSelection", "make_competitors", "method_names", "named_methods"]


@dataclass(frozen=True)
class MethodSelection:
    """Columns of the problem, how the choice of them ended, and how long it took."""

    support: Indices
    status: str
    note: str
    seconds: float


class Competitor(ABC):
    """Something that chooses k columns by some rows.

    Attributes
    ----------
    name : str
    keeps_rules : bool
        Whether what it chooses keeps the rules of the problem.
    """

    name: str
    keeps_rules: bool = True

    @abstractmethod
    def choose(self, rows: Indices) -> MethodSelection:
        """Choose by these rows alone."""

    @abstractmethod
    def stability(self, supports: Sequence[Indices]) -> float:
        """Nogueira's index over what it can choose."""


class MethodEntry(Competitor):
    """A method of exactk, which keeps the rules of the problem or refuses."""

    def __init__(self, name: str, data: EvaluationData, config: SelectorConfig) -> None:
        self.name, self._evaluation_data, self._asked = name, data, config

    def choose(self, rows: Indices) -> MethodSelection:
        clock = Monitor()
        with warnings.catch_warnings():
            # The status and its message say the same.
            warnings.simplefilter("ignore")
            result = self._evaluation_data.solve(rows, self._asked)
        return MethodSelection(result.support, str(result.status), result.message, clock.seconds)

    def stability(self, supports: Sequence[Indices]) -> float:
        return stability_of(supports, self._evaluation_data.problem)


class BaselineEntry(Competitor):
    """A way of scikit-learn, which knows columns of numbers alone; of rules it keeps `exclude`."""

    def __init__(
        self, name: str, run: Baseline, data: EvaluationData, seed: int, time_limit: float | None
    ) -> None:
        self.name, self._run, self._evaluation_data = name, run, data
        self._seed, self._limit = seed, time_limit
        self._note = _unsupported_constraints(data.problem)
        self.keeps_rules = not self._note

    def choose(self, rows: Indices) -> MethodSelection:
        data, problem, k = (
            self._evaluation_data,
            self._evaluation_data.problem,
            self._evaluation_data.config.k,
        )
        columns = np.setdiff1d(data.usable_in(rows), _excluded(problem))
        if k > len(columns):
            raise InputError(f"k={k} is more than the {len(columns)} columns that can be chosen")
        x = _values(problem, rows, columns)
        target = problem.target
        assert target is not None
        y = target.values if target.codes is None else target.codes
        assert y is not None
        # The clock starts with an array, which is what scikit-learn would be given.
        clock = Monitor(self._limit)
        training = TrainingData(
            x, y[rows], problem.weights_of(rows), problem.task, self._seed, clock
        )
        with limit_threads(x.size), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            support = columns[self._run(training, k)]
        seconds = clock.seconds
        unfinished = any(issubclass(one.category, ConvergenceWarning) for one in caught)
        words = ["a fit ended before it converged"] if unfinished else []
        status = Status.MAX_ITER if unfinished else Status.CONVERGED
        return MethodSelection(support, str(status), "; ".join([*self._note, *words]), seconds)

    def stability(self, supports: Sequence[Indices]) -> float:
        if len(supports) < 2:
            return float("nan")
        problem = self._evaluation_data.problem
        # Copies, too: scikit-learn does not know them as such.
        free = np.setdiff1d(problem.usable, _excluded(problem))
        features = np.unique(problem.input_columns[free])
        sets = [problem.input_columns[support] for support in supports]
        return nogueira_index(np.array([np.isin(features, held) for held in sets], dtype=float))


def _excluded(problem: Problem) -> list[int]:
    return [] if problem.rules is None else list(problem.rules.exclude)


def _unsupported_constraints(problem: Problem) -> list[str]:
    """What the answer of a rival lacks that others have, in words."""
    rules, words = problem.rules or Rules(), []
    levels = {p for category in problem.categories for p in category.columns}
    if levels:
        words.append(
            f"chooses among the {problem.n_features} coded columns, single levels of a category too"
        )
    config = [group for group in rules.feature_groups if not levels.issuperset(group.columns)]
    if config or replace(rules, feature_groups=(), exclude=()) != Rules(count=rules.count):
        words.append("does not keep constraints other than exclude")
    return words


def _values(problem: Problem, rows: Indices, columns: Indices) -> Floats:
    size = 8 * len(rows) * len(columns)
    if size > problem.memory_limit:
        raise InputError(
            f"needs {len(rows):,} rows and {len(columns):,} columns as an array of "
            f"{size / 2**30:.1f} GiB, more than memory_limit={problem.memory_limit}; raise it, "
            f"as in Problem.from_arrays(memory_limit=...)"
        )
    assert problem.rows is not None
    return np.asarray(problem.rows.take(rows).columns(columns), dtype=np.float64)


def method_names() -> list[str]:
    """Return the names of all that can be compared.

    Examples
    --------
    >>> method_names()[-3:]
    ['selectkbest', 'rfe', 'l1']
    """
    return [*registry.names(), *BASELINES]


def named_methods(methods: Any) -> dict[str, str | Method]:
    """Return methods by their names in a table, or say which there is not.

    Examples
    --------
    >>> list(named_methods(["exchange", "rfe"]))
    ['exchange', 'rfe']
    """
    data = [methods] if isinstance(methods, (str, Method)) else methods
    if not isinstance(data, Iterable) or not (listed := list(data)):
        raise InputError(
            f"methods must be a list of names or method objects, one or more, not {methods!r}"
        )
    words = [_name(method) for method in listed]
    named: dict[str, str | Method] = {}
    for word, method in zip(words, listed, strict=True):
        # Two of a kind are told apart by their parameters.
        name = word if isinstance(method, str) or words.count(word) == 1 else repr(method)
        if name in named:
            raise InputError(f"methods names {name!r} twice")
        named[name] = method
    return named


def _name(method: Any) -> str:
    if isinstance(method, Method):
        return type(method).__name__.lower()
    known = method_names()
    if method not in known:
        close = did_you_mean(str(method), known)
        raise UnknownMethodError(
            f"unknown method {method!r}{close} (known methods: {', '.join(known)})"
        )
    return str(method)


def make_competitors(
    named: dict[str, str | Method],
    data: EvaluationData,
    seed: int | None,
    time_limit: float | None,
) -> list[Competitor]:
    """Return what chooses, with its parameters checked."""
    found: list[Competitor] = []
    for name, method in named.items():
        if isinstance(method, str) and method in BASELINES:
            found.append(BaselineEntry(name, BASELINES[method], data, seed or 0, time_limit))
            continue
        effort = _effort(method, data.config.effort, time_limit)
        config = replace(data.config, method_parameter=method, effort=effort)
        found.append(MethodEntry(name, data, config.checked()))
    return found


def _effort(method: str | Method, effort: Any, time_limit: float | None) -> Any:
    """How hard a method searches: where the time limit is but a guard, it ends by itself."""
    made = registry.create(method) if isinstance(method, str) else method
    if "effort" not in made.option_names():
        return None
    own = made.get_params(deep=False)["effort"]
    return 1.0 if effort is None and own is None and time_limit is not None else effort
