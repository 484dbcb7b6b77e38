"""The result of a selection: frozen, serialisable, and the same for every method."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, join_items
from exactk.types import Floats
from exactk.utils.records_table import RecordsTable, TableResult

__all__ = ["Answer", "Path", "Result", "Status"]


PATH_COLUMNS = (
    "k", "features", "support", "objective", "explained", "added", "removed", "status",
)  # fmt: skip
# Fields that results of earlier versions do not have, with the values that stand for them.
LATER_FIELDS: dict[str, Any] = {
    "scores": None, "selected": (), "k": 0, "loss": "squared", "input_columns": (), "included": (),
    "assumptions": (),
}  # fmt: skip


class Status(StrEnum):
    """How a solve ended.

    ``optimal``: proven the best. ``converged``: the method's own stopping rule was met.
    ``max_iter``, ``time_limit``, ``interrupted``: stopped before that; the best so far is given.
    ``rank_deficient``: the columns depend on each other, because no k independent ones exist, or
    because the method does not look for them.
    ``failed``: the iterates diverged; the support is that of the last good one.
    """

    OPTIMAL = "optimal"
    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    RANK_DEFICIENT = "rank_deficient"
    FAILED = "failed"


@dataclass(frozen=True)
class Answer:
    """What a method hands to `solve`: columns and how it came by them, no grades.

    Attributes
    ----------
    support : sequence of int
        Columns, in order of entry if ``ordered``; fewer than k where no more are independent.
    status : Status
    n_iter : int
        Steps of the method: forward steps, swaps, subsets or iterations.
    trace : sequence of float
        The method's own objective as it went.
    ordered : bool
        Whether the order of `support` means something; if not, `solve` finds one.
    scores : ndarray or None
        What the method thinks of each column of the table, the higher the better; nan for columns
        that cannot be chosen.
    theta : ndarray or None
        Coefficients by which the columns, sorted, were compared, intercepts last: where a loss has
        local minima the fit that is reported is no worse.
    """

    support: Sequence[int]
    status: Status
    n_iter: int
    trace: Sequence[float] = ()
    ordered: bool = False
    scores: Floats | None = None
    theta: Floats | None = None


@dataclass(frozen=True, eq=False)
class Result(TableResult):
    """The selected columns, the fit on them, and how they were found.

    Attributes
    ----------
    support : ndarray of int
        Selected columns, sorted.
    order : ndarray of int
        The same columns in order of entry, the most useful first. Columns that the constraints
        include have no such order among the others: see `table`.
    coef : ndarray of shape (n_outputs, k)
        Coefficients in the units of the table, columns as in `support`.
    intercept : ndarray of shape (n_outputs,)
    objective : float
        ``‖HY − HX_S W‖² + ridge·‖W‖²`` of standardised columns, recomputed in float64.
    residual : float
        The squared error ``‖HY − HX_S W‖²`` alone, without the ridge term.
    total : float
        ‖HY‖², the objective without features.
    status : Status
    message : str
        One sentence where the status needs one, else empty.
    trace : tuple of float
        Objective of the best set found, step by step.
    n_iter : int
    seconds : float
    method : str
    ridge : float
        The relative ridge used.
    feature_names : tuple of str
        Names of the selected columns, as in `support`.
    classes : tuple or None
        Labels of the outputs.
    scores : ndarray of shape (n_features,) or None
        Score of every column by a filter method, the higher the better; nan for constant columns.
        None for methods that do not score columns one by one.
    selected : tuple of str
        Names of the selected features in the order of `order`: columns, categories and groups.
    k : int
        Number of selected features: a group of columns may count as one.
    loss : str
        The loss that was minimised: "squared", unless the problem has another loss. Then
        `objective`, `residual` and `total` are of that loss: with its ridge term, without it, and
        without features; `coef` and `intercept` minimise it.
    input_columns : tuple of int
        Column of the user's table behind each of `support`: the same, unless text is encoded.
    included : tuple of str
        Those of `feature_names` that the constraints include. They have no rank.
    assumptions : tuple of str
        What was assumed about the target, and which parameter changes it.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> result = exactk.solve(problem, 2)
    >>> result.support
    array([1, 3])
    >>> Result.from_json(result.to_json()) == result
    True
    """

    support: npt.NDArray[np.intp]
    order: npt.NDArray[np.intp]
    coef: Floats
    intercept: Floats
    objective: float
    residual: float
    total: float
    status: Status
    message: str
    trace: tuple[float, ...] = field(repr=False)
    n_iter: int
    seconds: float
    method: str
    ridge: float
    feature_names: tuple[str, ...]
    classes: tuple[Any, ...] | None
    scores: Floats | None = field(default=None, repr=False)
    selected: tuple[str, ...] = ()
    k: int = 0
    loss: str = "squared"
    input_columns: tuple[int, ...] = ()
    included: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Lock the arrays: a result does not change."""
        if not self.selected:
            names = dict(zip(self.support.tolist(), self.feature_names, strict=True))
            object.__setattr__(self, "selected", tuple(names[p] for p in self.order.tolist()))
        if not self.input_columns:
            object.__setattr__(self, "input_columns", tuple(self.support.tolist()))
        if not self.k:
            object.__setattr__(self, "k", len(self.support))
        for name in ("support", "order", "coef", "intercept"):
            getattr(self, name).setflags(write=False)
        if self.scores is not None:
            self.scores.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from a pickle or a copy, locked as before."""
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def explained(self) -> float:
        """Share of the loss without features that the fit removes, without the ridge term.

        1 − `residual`/`total`: R² of squared loss, the share of the deviance of other losses.
        """
        return 1.0 - self.residual / self.total if self.total > 0 else 0.0

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same values."""
        if not isinstance(other, Result):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # holds arrays, as an ndarray does

    @property
    def table(self) -> RecordsTable:  # type: ignore[override]  # computed at first use
        """One row for each selected column: rank, index, feature, score and coefficients.

        The most useful column has rank 1. Columns that the constraints include come last, without
        a rank; a column ``included`` is there if there are such. ``index`` is the column of the
        user's table; ``score`` is there if the method scores columns. The coefficients have one
        column for each output: ``coef``, ``coef:0`` and so on for several numbers, ``coef:label``
        for classes.

        Examples
        --------
        >>> import exactk
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> problem = exactk.Problem.from_arrays(X, y)
        >>> exactk.solve(problem, 2).to_frame().iloc[:, :4].round(3)
           rank  index           feature  coef:0
        0     1      3  petal width (cm)  -0.478
        1     2      1  sepal width (cm)   0.349
        >>> ruled = problem.with_constraints(include=["sepal width (cm)"])
        >>> exactk.solve(ruled, 2).table[["rank", "feature", "included"]]
        rank  feature           included
        1     petal width (cm)  False
              sepal width (cm)  True
        """
        names = ["coef"]
        if self.classes is not None:
            names = [f"coef:{label}" for label in self.classes]
        elif len(self.coef) != 1:
            names = [f"coef:{output}" for output in range(len(self.coef))]
        scored = [] if self.scores is None else ["score"]
        forced = ["included"] if self.included else []
        rows: list[tuple[Any, ...]] = []
        last: list[tuple[Any, ...]] = []
        for p in self.order.tolist():
            at = int(np.searchsorted(self.support, p))
            name = self.feature_names[at]
            score = [] if self.scores is None else [self.scores[p]]
            is_included = name in self.included
            flag = [is_included] if forced else []
            own = (self.input_columns[at], name, *score, *self.coef[:, at], *flag)
            if is_included:
                last.append((None, *own))
            else:
                rows.append((len(rows) + 1, *own))
        return RecordsTable(["rank", "index", "feature", *scored, *names, *forced], [*rows, *last])

    def __repr__(self) -> str:
        """Return one line."""
        said = "".join(f"; {one}" for one in (str(self.status), self.message) if one)
        ranked = [name for name in self.selected if name not in self.included]
        forced = f"included: {join_items(self.included, 10, quoted=False)}" * bool(self.included)
        names = "; ".join(filter(None, (join_items(ranked, 10, quoted=False), forced)))
        return (
            f"Result({names}; {self.method}, k={self.k}, objective {self.objective:.6g}, "
            f"{self.explained:.2%} explained{said})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON."""
        out: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name == "scores" and value is not None:
                # JSON has no nan, and nan is not equal to itself.
                value = [None if np.isnan(score) else float(score) for score in value]
            elif isinstance(value, np.ndarray):
                value = value.tolist()
            elif isinstance(value, tuple):
                value = [_plain(v) for v in value]
            out[part.name] = str(value) if isinstance(value, Status) else value
        return out

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read what `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Result:
        """Read what `to_dict` gave; keys that a Result does not have are ignored."""
        values = {**LATER_FIELDS, **values}
        missing = [part.name for part in fields(cls) if part.name not in values]
        if missing:
            raise InputError(
                f"not a Result: {', '.join(missing)} missing", parameter="values", value=values
            )
        known = {part.name: values[part.name] for part in fields(cls)}
        n_outputs, k = len(known["intercept"]), len(known["support"])
        known["support"] = np.array(known["support"], dtype=np.intp)
        known["order"] = np.array(known["order"], dtype=np.intp)
        known["coef"] = np.array(known["coef"], dtype=np.float64).reshape(n_outputs, k)
        known["intercept"] = np.array(known["intercept"], dtype=np.float64)
        if known["scores"] is not None:
            known["scores"] = np.array(known["scores"], dtype=np.float64)
        known["status"] = Status(known["status"])
        known["trace"] = tuple(known["trace"])
        known["feature_names"] = tuple(known["feature_names"])
        for name in ("selected", "input_columns", "included", "assumptions"):
            known[name] = tuple(known[name])
        known["classes"] = None if known["classes"] is None else tuple(known["classes"])
        return cls(**known)


def _plain(value: Any) -> Any:
    """A value that JSON has; labels of other kinds (dates, intervals) by their text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


class Path(TableResult, Sequence[Result]):
    """Results for k = 1, 2, …, in that order: ``path.at(k)``, or ``path[i]`` by position.

    Under constraints sizes may be missing: those for which no set keeps the constraints.

    Parameters
    ----------
    results : sequence of Result

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> path = exactk.solve_path(problem, 3)
    >>> path.table[["k", "features", "added", "removed"]]
    k  features    added   removed
    1  x2          x2
    2  x3, x1      x3, x1  x2
    3  x2, x1, x3  x2
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = tuple(results)

    def at(self, k: int) -> Result:
        """Return the result for k features."""
        if k not in self.sizes:
            raise InputError(
                f"the path has k = {_size_range(self.sizes)}, not {k}", parameter="k", value=k
            )
        return self._results[self.sizes.index(k)]

    @property
    def sizes(self) -> list[int]:
        """The sizes of the path."""
        return [result.k for result in self._results]

    @property
    def objectives(self) -> Floats:
        """Objective for k = 1, 2 and so on."""
        return np.array([result.objective for result in self._results])

    @property
    def table(self) -> RecordsTable:  # type: ignore[override]  # computed at first use
        """One row for each size: k, names, columns of the user's table, objective, explained.

        ``explained`` is `Result.explained`. ``added`` and ``removed`` are the names that differ
        from the row before.
        """
        rows: list[Sequence[Any]] = []
        before: tuple[str, ...] = ()
        for result in self._results:
            added = [name for name in result.selected if name not in before]
            removed = [name for name in before if name not in result.selected]
            columns = sorted(set(result.input_columns))
            rows.append(
                (result.k, result.selected, columns, result.objective, result.explained, added,
                 removed, str(result.status))
            )  # fmt: skip
            before = result.selected
        return RecordsTable(PATH_COLUMNS, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON: one dict for each result."""
        return {"results": [result.to_dict() for result in self._results]}

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | Sequence[Result]:
        """Return the result at a position (k − 1)."""
        return self._results[index]

    def __len__(self) -> int:
        """Return the number of sizes."""
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        """Iterate over k = 1, 2 and so on."""
        return iter(self._results)

    def __repr__(self) -> str:
        """Return one line."""
        if not self._results:
            return "Path(empty)"
        first, last = self._results[0].objective, self._results[-1].objective
        return f"Path(k={_size_range(self.sizes)}, objective {first:.6g} to {last:.6g})"


def _size_range(sizes: Sequence[int]) -> str:
    """Return sizes in few words: 1..5, or 3, 6, 7 where some are missing."""
    if not sizes:
        return "nothing"
    whole = list(sizes) == list(range(sizes[0], sizes[-1] + 1))
    return f"{sizes[0]}..{sizes[-1]}" if whole else ", ".join(map(str, sizes))
