"""Why these columns: what each is worth, what could stand in for it, and what else would do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactk.errors import InputError, join_items
from exactk.methods.base import generator
from exactk.model_selection.near_optimal import NearSets, near_sets
from exactk.params import Integer, Number
from exactk.problem.constraints import Rules
from exactk.problem.fit import check_squared
from exactk.problem.problem import Problem
from exactk.proof.incumbent import count_scope, units_of
from exactk.question import columns_of
from exactk.result import Result, Status
from exactk.search.feasibility import Feasible, InfeasibleError
from exactk.search.unit_pricing import UnitPricing
from exactk.search.units import Units
from exactk.solver import solve
from exactk.types import Indices
from exactk.utils.formatting import escape_controls
from exactk.utils.monitor import Monitor
from exactk.utils.records_table import RecordsTable

__all__ = [
    "Explanation",
    "explain",
]


TABLES = ("selected_features", "runners_up", "why_not", "alternatives", "pairs")
# Columns outside that a reader is shown.
NEAREST = 5


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why these columns were chosen, and not others.

    Prices are rises of the objective, which is the squared error and the ridge term; as
    `loss_fraction` they are parts of ‖HY‖², the objective of the empty set.

    Attributes
    ----------
    selected : tuple of str
        The columns (or groups, or categories) that are explained.
    support : ndarray of int
        Columns of the user's table, as wherever numbers of columns stand here.
    objective, total : float
    selected_features : RecordsTable
        One row for each that was chosen: the loss when it is dropped, its best substitute, and
        what the objective rises by with the substitute in its place (below zero, it would fall).
    runners_up : RecordsTable
        Those not chosen that come nearest: what the cheapest swap that brings each in costs, and
        for whom it comes in. At most so much is its regret.
    why_not : RecordsTable
        For each that was asked about: its regret, that is how much worse the best set found is
        that contains it, and that set.
    alternatives : RecordsTable
        Sets within the tolerance, the best first, by what they add and remove.
    is_complete : bool
        Whether there is no other set within the tolerance.
    tolerance : float
    pairs : RecordsTable
        Pairs of members that stand in for each other: most of what they are worth together is
        lost only if both go.
    message : str
        A sentence where one is needed: a better set was found, or the time ran out.
    """

    selected: tuple[str, ...]
    support: Indices
    objective: float
    total: float
    selected_features: RecordsTable
    runners_up: RecordsTable
    why_not: RecordsTable
    alternatives: RecordsTable
    is_complete: bool
    tolerance: float
    pairs: RecordsTable
    message: str = ""

    def to_frame(self, library: str = "pandas", *, table: str = "selected_features") -> Any:
        """Return one of the tables as a frame of pandas, or of ``library="polars"``.

        Parameters
        ----------
        library : {"pandas", "polars"}
        table : {"selected_features", "runners_up", "why_not", "alternatives", "pairs"}
        """
        if table not in TABLES:
            raise InputError(f"table must be one of {join_items(TABLES)}, not {table!r}")
        chosen: RecordsTable = getattr(self, table)
        return chosen.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON."""
        return {
            "selected": list(self.selected),
            "support": self.support.tolist(),
            "objective": self.objective,
            "total": self.total,
            "tolerance": self.tolerance,
            "is_complete": self.is_complete,
            "message": self.message,
            **{name: json.loads(getattr(self, name).to_json()) for name in TABLES},
        }

    def to_json(self, **options: Any) -> str:
        """Return the explanation as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    def __repr__(self) -> str:
        """Return what `to_text` does."""
        return self.to_text()

    def to_text(self) -> str:
        """Return the tables for a reader, most important first."""
        near = "these are all" if self.is_complete else "there may be others"
        within = f"sets within {self.tolerance:.3g} of the objective"
        lines = [
            *_part("chosen, and how much worse the fit is without them", self.selected_features, {
                "feature": "feature", "loss_fraction": "dropped", "substitute": "best substitute",
                "substitution_fraction": "substituted"}),
            *_part("asked about", self.why_not, {
                "feature": "feature", "loss_fraction": "regret", "added": "brings",
                "removed": "for"}),
            *(f"{escape_controls(row['feature'])}: {row['note']}" for row in self.why_not if
            row["note"]), *_part("nearest of the others", self.runners_up[:NEAREST], {
                "feature": "feature", "loss_fraction": "price", "instead_of": "for"}),
            *_part(f"{within} ({len(self.alternatives)}; {near})", self.alternatives, {
                "rank": "rank", "excess": "excess", "added": "added", "removed": "removed"}),
            *_part("pairs that stand in for each other", self.pairs, {
                "first": "first", "second": "second", "correlation": "correlation",
                "overlap": "overlap"}),
            "",
            "Shares are of the squared error without any feature; the excess is of the objective.",
        ]  # fmt: skip
        return "\n".join(lines[1:])


def _part(title: str, table: RecordsTable, columns: dict[str, str]) -> list[str]:
    """A table with some of its columns, under other names, or nothing if it is empty."""
    if not len(table):
        return []
    rows = [tuple(_shown(name, row[name]) for name in columns) for row in table]
    return ["", f"{title}:", RecordsTable(list(columns.values()), rows).to_text()]


def _shown(name: str, value: Any) -> Any:
    """Shares as percent."""
    if name in ("loss_fraction", "substitution_fraction", "excess") and value == value:
        return f"{value:.2%}"
    return f"{value:.2f}" if isinstance(value, float) and value == value else value


# Of what two members are worth together, this share is lost only if both go: they stand in for
# each other.
INTERCHANGEABLE = 0.5
# Columns outside that are listed, those nearest to being chosen.
MOST_OUTSIDE = 20


def explain(
    problem: Problem,
    chosen: Result | Sequence[str | int] | int,
    *,
    why_not: str | int | Sequence[str | int] | None = (),
    tolerance: float = 0.01,
    max_sets: int = 100,
    effort: float | None = None,
    random_state: object = None,
    time_limit: float | None = None,
) -> Explanation:
    """Explain a choice: what each column is worth, its substitutes, and the sets that are near.

    All of it comes from the moments of the table: no rows are read.

    Parameters
    ----------
    problem : Problem
        The one that was solved, with its ridge and its constraints; substitutes and other sets
        keep them as well.
    chosen : Result, list of str or int, or int
        What to explain: a result, columns by name or number, or a k to solve for first.
    why_not : str, int, list of such, or None
        Columns, groups or categories that were not chosen and are asked about.
    tolerance : float
        Sets count as near whose objective is at most ``1 + tolerance`` times that of this one.
    max_sets : int
        Most near sets to list.
    effort, random_state
        As of ``exchange``, for the sets with a column that is asked about.
    time_limit : float or None
        Seconds after which the list of near sets is cut short.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> problem = exactk.Problem.from_arrays(X, y, ridge=0.1)
    >>> why = exactk.explain(problem, 3, why_not=["mean radius"])
    >>> why.selected_features["feature"], why.selected_features["substitute"]
    (['worst concave points', 'worst radius', 'worst texture'],
     ['mean concave points', 'worst perimeter', 'mean texture'])
    >>> why.why_not["removed"], why.is_complete
    ([['worst radius']], True)
    """
    if not isinstance(problem, Problem):
        raise InputError(
            f"problem must be an exactk.Problem, not {type(problem).__name__}; make one with "
            f"Problem.from_arrays(X, y) or TopKSelector.problem(X, y)"
        )
    check_squared(problem, "explain")
    Number("[0, inf)")("tolerance", tolerance)
    Integer(1)("max_sets", max_sets)
    Number("(0, inf]", none="no limit")("time_limit", time_limit)
    Number("[0, inf)", none="1")("effort", effort)
    generator(random_state)
    monitor = Monitor(time_limit, None)
    units = Units(problem)
    members = _members(problem, units, chosen, effort, random_state)
    blocks = UnitPricing(units)
    blocks.load(members)
    feasible = count_scope(units, members)
    assert feasible is not None  # looked at when the members were found
    if why_not is None or isinstance(why_not, (str, int, np.integer)):
        why_not = [] if why_not is None else [why_not]
    questions = [_make_question(problem, column) for column in why_not]
    # A perfect fit may come out a rounding below zero.
    objective, total = max(blocks.objective, 0.0), problem.total
    own, outside = _swaps(blocks, feasible)
    pairs = _pairs(blocks)
    rows = [
        _regret(problem, units, blocks, feasible, one, objective, effort, random_state)
        for one in questions
    ]
    blocks.load(members)
    bound = objective * (1.0 + tolerance) + blocks.tie_tolerance
    near = near_sets(blocks, feasible, members, bound, max_sets, monitor)
    return Explanation(
        selected=tuple(units.names[u] for u in members),
        support=np.array(problem.table_columns(units.columns_of(members)), dtype=np.intp),
        objective=objective,
        total=total,
        selected_features=own,
        runners_up=outside,
        why_not=RecordsTable(
            [
                "feature",
                "columns",
                "regret",
                "loss_fraction",
                "added",
                "removed",
                "features",
                "note",
            ],
            rows,
        ),
        alternatives=_alternatives(units, members, near, objective, blocks.tie_tolerance),
        is_complete=near.is_complete,
        tolerance=float(tolerance),
        pairs=pairs,
        message=_message(near, rows, objective, blocks.tie_tolerance, monitor.expired, max_sets),
    )


def _members(
    problem: Problem, units: Units, chosen: Any, effort: float | None, random_state: object
) -> list[int]:
    """Units of what is explained, in order of entry."""
    if isinstance(chosen, (int, np.integer)) and not isinstance(chosen, bool):
        chosen = _solved(problem, int(chosen), effort, random_state)
    columns = columns_of(problem, chosen)
    if columns.size == 0:
        raise InputError("there is nothing to explain: the support is empty")
    found = units_of(problem, units, columns)
    place = {int(p): n for n, p in enumerate(columns)}
    if isinstance(chosen, Result):
        return sorted(found, key=lambda u: min(place[int(p)] for p in units.columns(u)))
    return found


def _solved(problem: Problem, k: int, effort: float | None, random_state: object) -> Result:
    result = solve(problem, k, effort=effort, random_state=random_state)
    if result.status == Status.INTERRUPTED:
        # An explanation of half of what was asked for is none.
        raise KeyboardInterrupt
    return result


def _swaps(blocks: UnitPricing, feasible: Feasible) -> tuple[RecordsTable, RecordsTable]:
    """The tables of members and of those outside that come nearest."""
    units, total = blocks.units, blocks.problem.total
    members, fixed = list(blocks.members), set(units.included)
    at, losses = feasible.totals(members), blocks.losses()
    best = np.full(len(units), -np.inf)
    instead_of = np.full(len(units), -1)
    rows = []
    for i, unit in enumerate(members):
        substitute, price = None, np.nan
        if unit not in fixed:
            falls = blocks.swap_gains(i, feasible.swaps(members, at, unit))
            better = falls > best
            best[better], instead_of[better] = falls[better], unit
            top = float(falls.max())
            if np.isfinite(top):
                other = int(np.argmax(falls >= top - blocks.tie_tolerance))
                substitute, price = units.names[other], -float(falls[other])
        columns = blocks.problem.table_columns(units.columns(unit))
        rows.append((
            units.names[unit], columns, losses[i], losses[i] / total, substitute, price,
            price / total, unit in fixed,
        ))  # fmt: skip
    own = RecordsTable(
        [
            "feature",
            "columns",
            "loss",
            "loss_fraction",
            "substitute",
            "substitution_cost",
            "substitution_fraction",
            "included",
        ],
        rows,
    )
    nearest_first = np.argsort(-best, kind="stable")[:MOST_OUTSIDE]
    outside = RecordsTable(
        ["feature", "substitution_cost", "loss_fraction", "instead_of"],
        [
            (units.names[u], -best[u], -best[u] / total, units.names[instead_of[u]])
            for u in nearest_first.tolist()
            if np.isfinite(best[u])
        ],
    )
    return own, outside


def _pairs(blocks: UnitPricing) -> RecordsTable:
    units, problem, members = blocks.units, blocks.problem, blocks.members
    losses = blocks.losses()
    rows = []
    for i, first in enumerate(members):
        for j in range(i + 1, len(members)):
            both = blocks.loss_together([i, j])
            overlap = 1.0 - (losses[i] + losses[j]) / both if both > blocks.tie_tolerance else 0.0
            if overlap >= INTERCHANGEABLE:
                names = units.names[first], units.names[members[j]]
                correlation = _correlation(problem, units, first, members[j])
                rows.append((*names, correlation, losses[i], losses[j], both, overlap))
    columns = ["first", "second", "correlation", "loss_first", "loss_second", "loss_both",
               "overlap"]  # fmt: skip
    return RecordsTable(columns, sorted(rows, key=lambda row: -row[-1]))


def _correlation(problem: Problem, units: Units, first: int, second: int) -> float:
    """The largest absolute correlation of a column of the one with one of the other, signed."""
    one, other = units.columns(first), units.columns(second)
    block = problem.gram.block(np.concatenate([one, other]))
    size = np.sqrt(np.maximum(np.diagonal(block), np.finfo(float).tiny))
    across = (block / np.outer(size, size))[: len(one), len(one) :].ravel()
    return float(across[np.argmax(np.abs(across))])


@dataclass(frozen=True)
class _Question:
    """A feature that was asked about, its columns, and what kept it from being chosen, if any."""

    name: str
    columns: tuple[int, ...]
    note: str = ""


def _make_question(problem: Problem, column: Any) -> _Question:
    """Find what is asked about among the groups and columns as the user knows them."""
    rules, originals = problem.rules or Rules(), problem.original_names
    columns = problem.find_columns([column], "why_not")
    whole = rules.group_of.get(columns[0])
    if whole is not None:
        columns = whole.columns
    name = whole.name if whole is not None else originals[problem.input_columns[columns[0]]]
    if not np.isin(columns, problem.usable).any():
        return _Question(name, columns, "constant")
    if set(columns) & set(rules.exclude):
        return _Question(name, columns, "excluded by a constraint, which is lifted for this answer")
    copied = np.flatnonzero(np.isin(problem.duplicates, columns))
    if len(columns) == 1 and copied.size:
        return _Question(name, columns, f"a copy of {problem.name(problem.originals[copied[0]])!r}")
    return _Question(name, columns)


def _regret(
    problem: Problem,
    units: Units,
    blocks: UnitPricing,
    feasible: Feasible,
    question: _Question,
    objective: float,
    effort: float | None,
    random_state: object,
) -> tuple[Any, ...]:
    """The row of a feature that was asked about."""
    columns = list(question.columns)
    of_table = problem.table_columns(columns)
    chosen = set(units.columns_of(blocks.members))
    if question.note == "constant":
        note = "constant: it cannot be chosen"
        return (question.name, of_table, np.nan, np.nan, [], [], [], note)
    if chosen.issuperset(columns):
        return (question.name, of_table, 0.0, 0.0, [], [], [], "it is among the chosen")
    rules = problem.rules or Rules()
    with_it = replace(
        rules,
        include=tuple(sorted({*rules.include, *columns})),
        exclude=tuple(p for p in rules.exclude if p not in columns),
    )
    try:
        found = _solved(problem.with_rules(with_it), feasible.k, effort, random_state)
    except InfeasibleError as error:
        return (question.name, of_table, np.nan, np.nan, [], [], [], str(error))
    names = {int(p): units.names[u] for u in blocks.members for p in units.columns(u)}
    before = list(dict.fromkeys(names.values()))
    regret = found.objective - objective
    return (
        question.name, of_table, regret, regret / problem.total,
        [name for name in found.selected if name not in before],
        [name for name in before if name not in found.selected],
        list(found.selected), question.note,
    )  # fmt: skip


def _alternatives(
    units: Units, members: Sequence[int], near: NearSets, objective: float, slack: float
) -> RecordsTable:
    own = set(members)
    rows = []
    for rank, (key, value) in enumerate(zip(near.sets, near.objectives, strict=True), start=1):
        # Below the slack a fit is perfect, and what differs is rounding.
        excess = value / objective - 1.0 if objective > slack else 0.0
        rows.append((
            rank, value, 0.0 if set(key) == own else excess,
            [units.names[u] for u in key if u not in own],
            [units.names[u] for u in members if u not in key],
            [units.names[u] for u in key],
            units.problem.table_columns(units.columns_of(key)),
        ))  # fmt: skip
    return RecordsTable(
        ["rank", "objective", "excess", "added", "removed", "features", "support"], rows
    )


def _message(
    near: NearSets,
    rows: Sequence[tuple[Any, ...]],
    objective: float,
    slack: float,
    expired: bool,
    most: int,
) -> str:
    if near.objectives and near.objectives[0] < objective - slack:
        return "a better set than this was found: it is the first of the alternatives"
    if any(row[2] < -slack and "lifted" not in row[-1] for row in rows):
        return "a better set than this was found for a column that was asked about: see why_not"
    if expired:
        return "the time limit cut the list of near sets short"
    if not near.is_complete and len(near.sets) == most:
        return f"{most} near sets are listed, and there may be more: raise max_sets"
    return ""
