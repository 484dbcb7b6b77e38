"""Tables whose rows are parted into some to choose and learn from and some to test on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse

from exactk.data.frames import is_frame
from exactk.data.open_table import is_dask
from exactk.data.usable_columns import usable_columns
from exactk.errors import InputError, join_items
from exactk.estimators.config import SelectorConfig
from exactk.estimators.selector import TopKSelector
from exactk.model_selection.cross_validation import row_groups
from exactk.model_selection.scoring import target_labels
from exactk.problem.problem import Problem
from exactk.result import Result, Status
from exactk.types import Indices

__all__ = ["ArrayData", "EvaluationData", "ProblemData", "Selection"]


# What a selector says of the search; the rest is about making a problem, which is made already.
SEARCH = (
    "k", "k_max", "criterion", "cv", "rule", "scoring", "estimator", "method", "ridge", "effort",
    "time_limit", "random_state", "verbose",
)  # fmt: skip


@dataclass(frozen=True)
class Selection:
    """What was chosen on some rows.

    Attributes
    ----------
    support : ndarray of intp
        Columns of the problem, which an estimator gets; a category has several.
    names : tuple of str
        Of columns of the user's table.
    k : int
    ridge : float
    """

    support: Indices
    names: tuple[str, ...]
    k: int
    ridge: float


class EvaluationData:
    """A table and a target, with what chooses columns of it.

    An estimator gets columns of the problem, in which text is coded as 0 and 1.

    Attributes
    ----------
    config : SelectorConfig
        How columns are chosen.
    problem : Problem
        That of all rows, with its rows in memory.
    y : ndarray
        Labels, or numbers, one or several a row.
    weights : ndarray or None
    n_columns : int
        Of the table as it was given.
    """

    def __init__(
        self,
        config: SelectorConfig,
        problem: Problem,
        y: npt.NDArray[Any],
        n_columns: int,
        groups: Any,
    ) -> None:
        self.config, self.problem, self.y = config, problem, y
        # Classes weigh in the choice; the estimator and the score have rows as they are.
        self.weights, self.n_columns = problem.row_weights, n_columns
        self._groups = groups

    @cached_property
    def groups(self) -> npt.NDArray[Any] | None:
        """The group of each row, where the user names them."""
        if self._groups is None:
            return None
        if isinstance(self._groups, Mapping):
            raise InputError(
                "groups names the group of each row here; groups of features go into a Problem: "
                "problem.with_constraints(groups=...)"
            )
        return row_groups(self._groups, len(self.y))

    def groups_of(self, rows: Indices) -> npt.NDArray[Any] | None:
        """The groups of some rows."""
        return None if self.groups is None else self.groups[rows]

    @property
    def all_rows(self) -> Indices:
        """The rows of weight above zero."""
        if self.weights is None:
            return np.arange(len(self.y))
        return np.flatnonzero(self.weights)

    def choose(self, rows: Indices) -> Selection:
        """Choose columns by these rows alone."""
        result = self.solve(rows, self.config)
        return Selection(
            support=result.support, names=self.names_of(result.support), k=result.k,
            ridge=result.ridge,
        )  # fmt: skip

    def solve(self, rows: Indices, config: SelectorConfig) -> Result:
        """Choose columns by these rows alone, in a way that may be another than `config`.

        Text is coded once, by all rows: its levels say nothing of the target, and a fold has too
        few rows to tell a category from an identifier.
        """
        whole = self.problem
        assert whole.rows is not None
        assert whole.target is not None
        part = Problem.from_rows(
            whole.rows.take(rows), whole.target.subset(rows), whole.weights_of(rows),
            scale=whole.scaled, gram=config.gram, memory_limit=whole.memory_limit,
        )  # fmt: skip
        result, _ = config.solve(part.with_settings_of(whole), self.groups_of(rows))
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt(result.message)
        return result

    def names_of(self, support: Indices) -> tuple[str, ...]:
        """Columns of the user's table that these columns of the problem are of."""
        names = self.problem.original_names
        return tuple(names[j] for j in np.unique(self.problem.input_columns[support]))

    def values(self, rows: Indices, columns: Indices) -> Any:
        """Some columns of some rows, as an estimator takes them."""
        assert self.problem.rows is not None
        return self.problem.rows.columns(columns)[rows]

    @property
    def is_sparse(self) -> bool:
        """Whether an estimator gets sparse tables."""
        return False

    def usable_in(self, rows: Indices) -> Indices:
        """Columns of the problem that are not constant in these rows."""
        whole, target = self.problem.rows, self.problem.target
        assert whole is not None
        assert target is not None
        weights = None if self.weights is None else self.weights[rows]
        part = whole.take(rows)
        return usable_columns(part.margins(target.subset(rows), weights), part, weights)


class ArrayData(EvaluationData):
    """Arrays, sparse matrices or frames; an estimator gets columns of numbers as they are there.

    Where any column is text, it gets those of the problem: the same for frames of every library.
    """

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, selector: TopKSelector, groups: Any
    ) -> None:
        if is_dask(X):
            raise InputError(
                f"X is a dask {type(X).__name__}, whose rows are not in memory to be parted; "
                f"compute it first, or take a part of its rows"
            )
        if y is None:
            raise InputError("y is None: give the target beside X, or one Problem in place of both")
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        config = SelectorConfig.of(selector).checked()
        # Made at once: what is wrong with the table is said before anything else.
        problem = config.problem(X, labels, sample_weight)
        super().__init__(config, problem, labels, len(problem.original_names), groups)
        self._table: Any = None
        self._frame: Any = None
        if problem.categories:
            return
        if sparse.issparse(X):
            # Few columns of it are asked for again and again.
            self._table = X.tocsc()
        elif type(X) is not np.ndarray and is_frame(X):
            self._frame = _frame(X)
        else:
            self._table = np.asarray(X)

    def values(self, rows: Indices, columns: Indices) -> Any:  # noqa: D102
        if self.problem.categories:
            return super().values(rows, columns)
        if self.is_sparse:
            return self._table[:, columns].tocsr()[rows]
        if self._frame is None:
            return self._table[np.ix_(rows, columns)]
        part = self._frame[rows.tolist(), columns.tolist()]
        # scikit-learn knows no Arrow tables.
        return part.to_numpy() if part.implementation.is_pyarrow() else part.to_native()

    @property
    def is_sparse(self) -> bool:  # noqa: D102
        return sparse.issparse(self._table)


class ProblemData(EvaluationData):
    """A problem with its rows; rules, scaling and coding are the problem's.

    Its ridge is set by whoever makes the selector: see `exactk.score_selection`.
    """

    def __init__(self, problem: Problem, selector: TopKSelector, groups: Any) -> None:
        default = TopKSelector().get_params(deep=False)
        other = [
            name
            for name, value in selector.get_params(deep=False).items()
            if name not in SEARCH and name in default and repr(value) != repr(default[name])
        ]
        if other:
            raise InputError(
                f"{join_items(other)} cannot be given beside a Problem, which has been made; give "
                "it "
                f"where the problem is made, or X and y in its place"
            )
        config = SelectorConfig.of(selector).checked()
        held = problem.in_memory(verbose=selector.verbose)
        super().__init__(config, held, target_labels(held), len(held.original_names), groups)


def _frame(X: Any) -> Any:
    """A frame that gives rows and columns by number, whatever library it is of."""
    return nw.from_native(X, eager_only=True)
