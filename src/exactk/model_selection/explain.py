"""Why these features: what each is worth, its substitutes, and other sets that are as good."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactk.params import validated
from exactk.problem.constraints import Rules
from exactk.problem.fit import check_squared
from exactk.problem.problem import Problem
from exactk.proof.best_first import BestFirstSearch, Tree
from exactk.proof.make_tree import make_tree
from exactk.proof.unit_tree import UnitTree
from exactk.question import Question, count_scope, read_question, units_of
from exactk.result import Status
from exactk.search.feasibility import Feasible, InfeasibleError
from exactk.search.unit_pricing import UnitPricing
from exactk.search.units import Units
from exactk.solver import solve
from exactk.types import Indices
from exactk.utils.formatting import escape_controls
from exactk.utils.monitor import Monitor
from exactk.utils.records_table import RecordsTable, TableResult

__all__ = ["Explanation", "explain"]

TABLES = ("selected_features", "runners_up", "why_not", "alternatives", "pairs")
SELECTED = (
    "feature", "columns", "loss", "loss_fraction", "substitute", "substitution_cost",
    "substitution_fraction", "included",
)  # fmt: skip
RUNNERS_UP = ("feature", "substitution_cost", "loss_fraction", "instead_of")
WHY_NOT = (
    "feature", "columns", "regret", "loss_fraction", "added", "removed", "features", "note",
)  # fmt: skip
ALTERNATIVES = ("rank", "objective", "excess", "added", "removed", "features", "support")
PAIRS = ("first", "second", "correlation", "loss_first", "loss_second", "loss_both", "overlap")
# Runners-up that are listed, and how many of them the text shows.
MOST_RUNNERS_UP, SHOWN_RUNNERS_UP = 20, 5
# Two features are a pair if dropping both loses this share more than dropping one and the other.
OVERLAP = 0.5
# The enumeration of all sets: columns up to which it is tried, and nodes and seconds after which
# it is given up (nodes take long where columns depend on each other).
MOST_COLUMNS, MOST_NODES, MOST_SECONDS = 80, 20_000, 5.0
# Sets are sought up to this share of the total above the bound: bounds are rounded.
SLACK = 1e-7


@dataclass(frozen=True, eq=False)
class Explanation(TableResult):
    """Why these features were selected, and not others.

    Costs are increases of the objective, which is the squared error plus the ridge term. A
    fraction is a share of ‖HY‖², the objective without features.

    Attributes
    ----------
    selected : tuple of str
        The features (columns, groups or categories) that are explained.
    support : ndarray of int
        Their columns in the user's table, as wherever this class has numbers of columns.
    objective, total : float
    selected_features : RecordsTable
        One row for each selected feature: the loss increase when it is dropped and the others are
        refitted, its best substitute, and the loss increase with the substitute in its place
        (below zero, the substitute is better).
    runners_up : RecordsTable
        The best features that were not selected: the cost of the cheapest swap that selects each,
        and the feature that it replaces. The regret of a feature is at most this cost.
    why_not : RecordsTable
        One row for each feature of `why_not`: its regret, which is the loss increase of the best
        set found that contains it, and that set.
    alternatives : RecordsTable
        Sets within the tolerance, the best first, by the features that they add and remove.
    is_complete : bool
        Whether there is no other set within the tolerance.
    tolerance : float
    pairs : RecordsTable
        Pairs of selected features that can replace each other: most of what the two are worth
        together is lost only if both are dropped.
    message : str
        A sentence where one is needed: a better set was found, or the list is incomplete.
    status : Status
        ``converged``, or ``time_limit`` or ``interrupted`` if it was stopped early.
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
    status: Status = Status.CONVERGED

    @property
    def table(self) -> RecordsTable:  # type: ignore[override]  # computed at first use
        """The selected features: `selected_features`."""
        return self.selected_features

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON."""
        named = ("objective", "total", "tolerance", "is_complete", "message")
        return {
            "selected": list(self.selected),
            "support": self.support.tolist(),
            **{name: getattr(self, name) for name in named},
            "status": str(self.status),
            **{name: getattr(self, name).to_plain() for name in TABLES},
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the loss increases as bars and return the matplotlib Axes."""
        from exactk.plots.explain import ExplainDisplay

        return ExplainDisplay(self).plot(ax)

    def __repr__(self) -> str:
        """Return the tables as text, the most important first."""
        more = "all such sets" if self.is_complete else "there may be more"
        within = f"Sets within {100 * self.tolerance:.3g} % of the objective"
        notes = [
            f"{escape_controls(row['feature'])}: {row['note']}"
            for row in self.why_not
            if row["note"]
        ]
        lines = [
            *_text("Selected features", self.selected_features, {
                "feature": "feature", "loss_fraction": "loss increase when dropped",
                "substitute": "best substitute",
                "substitution_fraction": "loss increase with it"}),
            *_text("Why not", self.why_not, {
                "feature": "feature", "loss_fraction": "loss increase", "added": "added",
                "removed": "removed"}),
            *notes,
            *_text("Runners-up", self.runners_up[:SHOWN_RUNNERS_UP], {
                "feature": "feature", "loss_fraction": "loss increase",
                "instead_of": "instead of"}),
            *_text(f"{within} ({len(self.alternatives)}, {more})", self.alternatives, {
                "rank": "rank", "excess": "excess", "added": "added", "removed": "removed"}),
            *_text("Pairs that can replace each other", self.pairs, {
                "first": "first", "second": "second", "correlation": "correlation",
                "overlap": "overlap"}),
            "",
            "Loss increases are shares of the loss without features, after a refit; the excess is "
            "a share of the objective.",
            *([f"{self.message[0].upper()}{self.message[1:]}."] if self.message else []),
        ]  # fmt: skip
        return "\n".join(lines[1:])


def _text(title: str, table: RecordsTable, columns: dict[str, str]) -> list[str]:
    """Return the lines of a table with some of its columns, or none if it is empty."""
    if not len(table):
        return []
    rows = [tuple(_shown(name, row[name]) for name in columns) for row in table]
    return ["", f"{title}:", RecordsTable(list(columns.values()), rows).to_text()]


def _shown(name: str, value: Any) -> Any:
    """Return a share as percent, another number with two digits, anything else as it is."""
    if not isinstance(value, float) or value != value:
        return value
    is_share = name in ("loss_fraction", "substitution_fraction", "excess")
    return f"{value:.2%}" if is_share else f"{value:.2f}"


@validated
def explain(
    X: Any,
    y: Any = None,
    *,
    k: Any = None,
    features: Any = None,
    why_not: Any = None,
    tolerance: float = 0.02,
    max_sets: int = 100,
    ridge: Any = None,
    effort: float | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
    sample_weight: Any = None,
    task: Any = "auto",
    loss: Any = None,
    class_weight: Any = None,
    constraints: Any = None,
) -> Explanation:
    """Explain a selection: what each feature is worth, its substitutes, and similar sets.

    Everything is computed from the moments of the table; no rows are read.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Dask collection or Problem
        Substitutes and other sets keep the constraints of a Problem.
    y : array-like or None
    k : int, "auto", AutoK or None
        Number of features to select first.
    features : list of str or int, Result, fitted selector or None
        An existing selection to explain, in place of k.
    why_not : str, int, list of both, or None
        Columns, groups or categories that were not selected.
    tolerance : float
        Sets are listed whose objective is at most ``1 + tolerance`` times that of this one.
    max_sets : int
        Largest number of sets to list.
    ridge : "auto", "cv", float or None
        None is the ridge of a Problem, or "auto" for a table.
    effort : float or None
        Search effort for k and for the sets that contain a feature of `why_not`.
    time_limit : float or None
        Maximum time in seconds.
    random_state : int, Generator, RandomState or None
        Seed of the searches. None is a fixed seed.
    verbose : int
        1 shows a progress bar on a terminal.
    sample_weight, task, loss, class_weight, constraints
        As in `TopKSelector`; loss, class weights and constraints of a Problem are kept unless
        others are given.

    Returns
    -------
    Explanation
        After Ctrl-C: with what was found until then.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> why = exactk.explain(X, y, k=3, why_not=["mean radius"])
    >>> why.selected_features["feature"], why.selected_features["substitute"]
    (['worst concave points', 'worst radius', 'worst texture'],
     ['mean concave points', 'worst perimeter', 'mean texture'])
    >>> why.why_not["removed"], why.is_complete
    ([['worst radius']], True)
    """
    monitor = Monitor(time_limit)
    question = read_question(
        X, y, k=k, features=features, ridge=ridge, random_state=random_state,
        time_limit=time_limit, verbose=verbose, sample_weight=sample_weight, task=task, loss=loss,
        class_weight=class_weight, constraints=constraints,
    )  # fmt: skip
    check_squared(question.problem, "explain")
    if why_not is None or isinstance(why_not, (str, int, np.integer)):
        why_not = [] if why_not is None else [why_not]
    asked = [_unit_of(question.problem, column) for column in why_not]
    options = {"effort": effort, "random_state": random_state, "verbose": verbose}
    return _Explainer(question, monitor, options).explanation(asked, tolerance, max_sets)


def _unit_of(problem: Problem, column: Any) -> tuple[str, tuple[int, ...]]:
    """Return the name and the columns of a group, a column or a category of `why_not`."""
    columns = problem.find_columns([column], "why_not")
    group = (problem.rules or Rules()).group_of.get(columns[0])
    if group is not None:
        return group.name, group.columns
    return problem.original_names[problem.input_columns[columns[0]]], columns


class _Explainer:
    """A selection as units, the prices of other units, and the sets found near it.

    Attributes
    ----------
    near : dict of tuple of int to float
        Sets of units within the tolerance, with their objectives.
    is_complete : bool
        Whether these are all such sets.
    has_better_answer : bool
        Whether a set with a feature of `why_not` is better than the one that is explained.
    """

    def __init__(self, question: Question, monitor: Monitor, options: dict[str, Any]) -> None:
        self.problem, self.monitor, self.options = question.problem, monitor, options
        self.units = Units(question.problem)
        columns, result = question.columns, question.result
        if columns is None:
            result = question.solved(time_limit=self._left, **options)
            columns = result.order
        self.members = units_of(self.problem, self.units, columns)
        if result is not None:
            place = {int(p): n for n, p in enumerate(columns)}
            self.members.sort(key=lambda u: min(place[int(p)] for p in self.units.columns(u)))
        self.fixed = set(self.units.included)
        self.pricing = UnitPricing(self.units)
        self.pricing.load(self.members)
        feasible = count_scope(self.units, self.members)
        assert feasible is not None  # checked when the members were found
        self.feasible: Feasible = feasible
        # The objective of a perfect fit may be a rounding error below zero.
        self.objective = max(self.pricing.objective, 0.0)
        self.slack = self.pricing.tie_tolerance
        self.near = {tuple(sorted(self.members)): self.pricing.objective}
        self.is_complete, self.has_better_answer = False, False

    @property
    def _left(self) -> float | None:
        """Seconds that are left; a little if the time is up."""
        limit = self.monitor.time_limit
        return None if limit is None else max(limit - self.monitor.seconds, 1e-9)

    def explanation(
        self, asked: Sequence[tuple[str, tuple[int, ...]]], tolerance: float, max_sets: int
    ) -> Explanation:
        """Return all tables; after Ctrl-C those that need a search are incomplete."""
        selected_features, runners_up = self._swaps()
        pairs, answers = self._pairs(), list[tuple[Any, ...]]()
        status = Status.CONVERGED
        try:
            for name, columns in asked:
                answers.append(self._why_not(name, columns))
            self._find_near(self.objective * (1.0 + tolerance) + self.slack, max_sets)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if status == Status.CONVERGED and self.monitor.expired and not self.is_complete:
            status = Status.TIME_LIMIT
        best = sorted(self.near.items(), key=lambda item: (item[1], item[0]))[:max_sets]
        said = []
        if best[0][1] < self.objective - self.slack:
            said.append("a better set was found: it is the first of the alternatives")
        elif self.has_better_answer:
            said.append("a better set was found with a feature of why_not: see the table why_not")
        if status == Status.INTERRUPTED:
            said.append("stopped by the user: why_not and the alternatives are incomplete")
        elif status == Status.TIME_LIMIT:
            said.append("the time limit ended the search for alternatives")
        elif not self.is_complete and len(best) == max_sets:
            said.append(f"{max_sets} alternatives are listed, there may be more: raise max_sets")
        return Explanation(
            selected=tuple(self.units.names[u] for u in self.members),
            support=np.array(self._table_columns(self.members), dtype=np.intp),
            objective=self.objective, total=self.problem.total,
            selected_features=selected_features, runners_up=runners_up,
            why_not=RecordsTable(WHY_NOT, answers), alternatives=self._alternatives(best),
            is_complete=self.is_complete, tolerance=float(tolerance), pairs=pairs,
            message="; ".join(said), status=status,
        )  # fmt: skip

    def _table_columns(self, members: Sequence[int]) -> list[int]:
        return list(self.problem.table_columns(self.units.columns_of(list(members))))

    def _swaps(self) -> tuple[RecordsTable, RecordsTable]:
        """Return the tables of the selected features and of the runners-up."""
        names, total, members = self.units.names, self.problem.total, self.members
        at, losses = self.feasible.totals(members), self.pricing.losses()
        best = np.full(len(self.units), -np.inf)
        instead_of = np.full(len(self.units), -1)
        rows = []
        for i, unit in enumerate(members):
            substitute, cost = None, np.nan
            if unit not in self.fixed:
                gains = self.pricing.swap_gains(i, self.feasible.swaps(members, at, unit))
                better = gains > best
                best[better], instead_of[better] = gains[better], unit
                top = float(gains.max())
                if np.isfinite(top):
                    other = int(np.argmax(gains >= top - self.slack))
                    substitute, cost = names[other], -float(gains[other])
            rows.append((
                names[unit], self._table_columns([unit]), losses[i], losses[i] / total, substitute,
                cost, cost / total, unit in self.fixed,
            ))  # fmt: skip
        nearest = np.argsort(-best, kind="stable")[:MOST_RUNNERS_UP].tolist()
        others = [
            (names[u], -best[u], -best[u] / total, names[instead_of[u]])
            for u in nearest
            if np.isfinite(best[u])
        ]
        return RecordsTable(SELECTED, rows), RecordsTable(RUNNERS_UP, others)

    def _pairs(self) -> RecordsTable:
        names, losses, rows = self.units.names, self.pricing.losses(), []
        for i, first in enumerate(self.members):
            for j in range(i + 1, len(self.members)):
                both = self.pricing.loss_together([i, j])
                overlap = 1.0 - (losses[i] + losses[j]) / both if both > self.slack else 0.0
                if overlap >= OVERLAP:
                    second = self.members[j]
                    pair = (names[first], names[second], self._correlation(first, second))
                    rows.append((*pair, losses[i], losses[j], both, overlap))
        return RecordsTable(PAIRS, sorted(rows, key=lambda row: -row[-1]))

    def _correlation(self, first: int, second: int) -> float:
        """Return the correlation of the largest absolute value between columns of both."""
        one, other = self.units.columns(first), self.units.columns(second)
        block = self.problem.gram.block(np.concatenate([one, other]))
        size = np.sqrt(np.maximum(np.diagonal(block), np.finfo(float).tiny))
        across = (block / np.outer(size, size))[: len(one), len(one) :].ravel()
        return float(across[np.argmax(np.abs(across))])

    def _why_not(self, name: str, columns: tuple[int, ...]) -> tuple[Any, ...]:
        """Return the row of a feature of `why_not`."""
        problem, rules, note = self.problem, self.problem.rules or Rules(), ""
        head = (name, problem.table_columns(list(columns)))
        if not np.isin(columns, problem.usable).any():
            note = "constant: it cannot be selected"
            return (*head, np.nan, np.nan, [], [], [], note)
        if set(columns) <= set(self.units.columns_of(self.members)):
            return (*head, 0.0, 0.0, [], [], [], "it is selected")
        is_excluded = not set(columns).isdisjoint(rules.exclude)
        if is_excluded:
            note = "excluded by a constraint; this answer ignores that constraint"
        elif len(columns) == 1 and columns[0] in problem.duplicates:
            original = problem.originals[problem.duplicates.tolist().index(columns[0])]
            note = f"a duplicate of {problem.name(original)!r}"
        with_it = replace(
            rules,
            include=tuple(sorted({*rules.include, *columns})),
            exclude=tuple(p for p in rules.exclude if p not in columns),
        )
        try:
            found = solve(
                problem.with_rules(with_it), self.feasible.k, time_limit=self._left,
                **self.options,
            )  # fmt: skip
        except InfeasibleError as error:
            return (*head, np.nan, np.nan, [], [], [], str(error))
        if found.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        before = [self.units.names[u] for u in self.members]
        regret = found.objective - self.objective
        self.has_better_answer |= regret < -self.slack and not is_excluded
        return (
            *head, regret, regret / problem.total,
            [other for other in found.selected if other not in before],
            [other for other in before if other not in found.selected],
            list(found.selected), note,
        )  # fmt: skip

    def _find_near(self, bound: float, most: int) -> None:
        """Find the sets that keep the constraints and whose objective is at most `bound`.

        All sets are looked at by branch and bound where there are few columns. Elsewhere, and
        where the tree is too large, single swaps are made from sets that were found.
        """
        selectable = np.flatnonzero(self.units.selectable).tolist()
        if len(self.units.columns_of(selectable)) <= MOST_COLUMNS:
            self._enumerate(bound, most)
        if not self.is_complete:
            self._swap(bound, most)

    def _enumerate(self, bound: float, most: int) -> None:
        problem, slack = self.problem, SLACK * self.problem.total
        tree: Tree
        if self.units.rules.is_simple and not self.units.has_duplicates:
            # Sets at the bound are to be found, whatever rounding makes of it.
            tree = make_tree(problem, self.feasible.k, bound + slack)
        else:
            # Whether duplicates may be in one set depends on the set that is explained.
            tree = UnitTree(problem, self.feasible.k, self.feasible)
        ceiling = bound + min(2.0 * tree.tolerance, slack)
        own = tuple(sorted(self.units.columns_of(self.members)))
        search = BestFirstSearch(problem, tree, [own], ceiling=ceiling, n_best=most + 1)
        left = MOST_SECONDS if self._left is None else min(MOST_SECONDS, self._left)
        # One thread: whether the list is complete must not depend on the number of threads.
        ended = search.run(_NodeLimit(left), 1)
        for columns, objective in search.sets:
            # The set itself is near, although rounding may put its objective above the bound.
            if objective <= bound or columns == own:
                self.near[tuple(self.units.units_of(columns) or ())] = objective
        if ended == Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.is_complete = search.is_closed and len(self.near) <= most

    def _swap(self, bound: float, most: int) -> None:
        """Add the sets that swaps reach from those that are known, the best of these first."""
        near, queue = self.near, [(value, key) for key, value in self.near.items()]
        heapq.heapify(queue)
        for _ in range(most):
            if not queue or self.monitor.expired:
                return
            _, key = heapq.heappop(queue)
            self.pricing.load(key)
            at = self.feasible.totals(key)
            for i, unit in enumerate(key):
                if unit in self.fixed:
                    continue
                gains = self.pricing.swap_gains(i, self.feasible.swaps(key, at, unit))
                values = self.pricing.objective - gains
                for other in np.flatnonzero(values <= bound).tolist():
                    new = tuple(sorted({*key, other} - {unit}))
                    if new not in near:
                        near[new] = float(values[other])
                        heapq.heappush(queue, (near[new], new))
            if len(near) > 2 * most:
                # A set that is not among so many is of no interest.
                for value, new in sorted((value, new) for new, value in near.items())[most:]:
                    del near[new]
                    bound = min(bound, value)

    def _alternatives(self, sets: Sequence[tuple[tuple[int, ...], float]]) -> RecordsTable:
        names, own, rows = self.units.names, set(self.members), []
        for rank, (key, value) in enumerate(sets, start=1):
            # Below the slack the fit is perfect, and differences are rounding.
            excess = value / self.objective - 1.0 if self.objective > self.slack else 0.0
            rows.append((
                rank, value, 0.0 if set(key) == own else excess,
                [names[u] for u in key if u not in own],
                [names[u] for u in self.members if u not in key],
                [names[u] for u in key], self._table_columns(key),
            ))  # fmt: skip
        return RecordsTable(ALTERNATIVES, rows)


class _NodeLimit(Monitor):
    """A monitor that also expires after a number of nodes."""

    nodes = 0

    @property
    def expired(self) -> bool:
        return self.nodes > MOST_NODES or super().expired

    def report(self, done: int, total: int | None, objective: float, note: str = "") -> None:
        self.nodes = done
