"""Tables whose rows are parted into some to choose and learn from and some to test on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone

from exactk.choose.scoring import target_labels
from exactk.columns import usable_columns
from exactk.errors import InputError, listing
from exactk.methods.base import Method
from exactk.problem import Problem
from exactk.result import Status
from exactk.selector import TopKSelector
from exactk.sources.frames import is_frame
from exactk.sources.open import is_dask
from exactk.targets import code_weights

__all__ = ["Chosen", "Given", "GivenArrays", "GivenProblem", "text_columns"]

Indices = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]

# What a selector says of the search; the rest is about making a problem, which is made already.
SEARCH = (
    "k", "k_max", "criterion", "cv", "rule", "scoring", "estimator", "method", "ridge", "effort",
    "time_limit", "random_state", "verbose",
)  # fmt: skip


@dataclass(frozen=True)
class Chosen:
    """What was chosen on some rows.

    Attributes
    ----------
    columns : ndarray of intp
        What an estimator gets.
    features : ndarray of intp
        Columns of the user's table; a category is one of them.
    names : tuple of str
        Of the features.
    k : int
    ridge : float
    """

    columns: Indices
    features: Indices
    names: tuple[str, ...]
    k: int
    ridge: float


class Given(ABC):
    """A table and a target, with what chooses columns of it.

    Attributes
    ----------
    y : ndarray
        Labels, or numbers, one or several a row.
    weights : ndarray or None
    n_columns : int
        Of the table as it was given.
    """

    y: npt.NDArray[Any]
    weights: Floats | None
    n_columns: int

    def __init__(self, selector: TopKSelector, groups: Any) -> None:
        self.selector = selector
        self._groups = groups

    @cached_property
    def groups(self) -> npt.NDArray[Any] | None:
        """The group of each row, where the user names them."""
        if self._groups is None:
            return None
        if isinstance(self._groups, Mapping):
            raise InputError(
                "groups names the group of each row here; groups of features go to "
                "selector=TopKSelector(groups=...)"
            )
        values = np.asarray(self._groups)
        if values.shape != (len(self.y),):
            raise InputError(
                f"groups must name the group of each of the {len(self.y)} rows, not have shape "
                f"{values.shape}"
            )
        return values

    def groups_of(self, rows: Indices) -> npt.NDArray[Any] | None:
        """The groups of some rows."""
        return None if self.groups is None else self.groups[rows]

    @cached_property
    def method(self) -> Method:
        """The method that searches, with its parameters."""
        return self.selector._configured_method()

    @property
    @abstractmethod
    def problem(self) -> Problem:
        """The problem of all rows."""

    @abstractmethod
    def choose(self, rows: Indices) -> Chosen:
        """Choose columns by these rows alone."""

    @abstractmethod
    def values(self, rows: Indices, columns: Indices) -> Any:
        """Some columns of some rows, as an estimator takes them."""

    @property
    def is_sparse(self) -> bool:
        """Whether an estimator gets sparse tables."""
        return False

    @property
    def has_text(self) -> bool:
        """Whether an estimator may get columns of text or categories."""
        return False

    def usable_in(self, rows: Indices) -> int:
        """How many columns are not constant in these rows."""
        whole, target = self.problem.rows, self.problem.target
        assert whole is not None
        assert target is not None
        weights = None if self.weights is None else self.weights[rows]
        part = whole.take(rows)
        return len(usable_columns(part.margins(target.subset(rows), weights), part, weights))


class GivenArrays(Given):
    """Arrays, sparse matrices or frames; what is chosen is what `TopKSelector.fit` chooses."""

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, selector: TopKSelector, groups: Any
    ) -> None:
        super().__init__(selector, groups)
        if is_dask(X):
            raise InputError(
                f"X is a dask {type(X).__name__}, whose rows are not in memory to be parted; "
                f"compute it first, or take a part of its rows"
            )
        self._frame: Any = None
        if y is None:
            raise InputError("y is None: give the target beside X, or one Problem in place of both")
        if not sparse.issparse(X) and type(X) is not np.ndarray and is_frame(X):
            self._frame = _frame(X)
        elif sparse.issparse(X):
            self._table = X.tocsr()
        else:
            self._table = np.asarray(X)
        self.y = np.asarray(y)
        if self.y.ndim == 2 and self.y.shape[1] == 1:
            self.y = self.y[:, 0]
        self._given = X, self.y, sample_weight
        # Made at once: what is wrong with the table is said before anything else.
        n_coded = self.problem.n_features
        self.n_columns = n_coded if self._frame is None else self._frame.shape[1]
        self.weights = code_weights(sample_weight, len(self.y))

    @cached_property
    def problem(self) -> Problem:  # noqa: D102
        return clone(self.selector)._problem(*self._given, self.method)

    def choose(self, rows: Indices) -> Chosen:  # noqa: D102
        weights = None if self.weights is None else self.weights[rows]
        selector = clone(self.selector).fit(
            self._rows(rows), self.y[rows], sample_weight=weights, groups=self.groups_of(rows)
        )
        columns = selector.get_support(indices=True)
        names = tuple(map(str, selector.get_feature_names_out()))
        return Chosen(columns, columns, names, selector.k_, selector.ridge_)

    def _rows(self, rows: Indices) -> Any:
        if self._frame is not None:
            return self._frame[rows.tolist(), :].to_native()
        return self._table[rows]

    def values(self, rows: Indices, columns: Indices) -> Any:  # noqa: D102
        if self._frame is None:
            return self._table[rows][:, columns]
        part = self._frame[rows.tolist(), columns.tolist()]
        # scikit-learn knows no Arrow tables.
        return part.to_numpy() if part.implementation.is_pyarrow() else part.to_native()

    @property
    def is_sparse(self) -> bool:  # noqa: D102
        return self._frame is None and sparse.issparse(self._table)

    @property
    def has_text(self) -> bool:  # noqa: D102
        return self._frame is not None and bool(text_columns(self._frame.to_native()))


class GivenProblem(Given):
    """A problem with its rows; rules, scaling and coding are the problem's."""

    def __init__(self, problem: Problem, selector: TopKSelector, groups: Any) -> None:
        super().__init__(selector, groups)
        default = TopKSelector().get_params(deep=False)
        other = [
            name
            for name, value in selector.get_params(deep=False).items()
            if name not in SEARCH and name in default and repr(value) != repr(default[name])
        ]
        if other:
            raise InputError(
                f"{listing(other)} cannot be given beside a Problem, which has been made; give it "
                f"where the problem is made, or X and y in its place"
            )
        self._problem = problem.in_memory(verbose=selector.verbose)
        self.y = target_labels(self._problem)
        self.weights = self._problem.weights
        self.n_columns = len(self._problem.original_names)

    @property
    def problem(self) -> Problem:  # noqa: D102
        return self._problem

    def choose(self, rows: Indices) -> Chosen:  # noqa: D102
        whole, selector = self._problem, self.selector
        assert whole.rows is not None
        assert whole.target is not None
        part = Problem.from_rows(
            whole.rows.take(rows),
            whole.target.subset(rows),
            None if self.weights is None else self.weights[rows],
            scale=whole.scaled,
            memory_limit=whole.memory_limit,
        ).under(whole.rules)
        result, _ = selector._solve(part, self.method, self.groups_of(rows))
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt(result.message)
        features = np.unique(whole.origins[result.support])
        names = tuple(whole.original_names[j] for j in features)
        return Chosen(result.support, features, names, result.k, result.ridge)

    def values(self, rows: Indices, columns: Indices) -> Floats:  # noqa: D102
        assert self._problem.rows is not None
        return self._problem.rows.columns(columns)[rows]


def text_columns(X: Any) -> list[str]:
    """Names of the columns of a frame that are not numbers; a function that a pickle can name."""
    schema = nw.from_native(X, eager_only=True).schema
    return [name for name, kind in schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]


def _frame(X: Any) -> Any:
    """A frame that gives rows and columns by number, whatever library it is of."""
    if type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        X = pa.Table.from_batches([X])
    return nw.from_native(X, eager_only=True)
