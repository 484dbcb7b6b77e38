"""`Constraints` of the user, by column name or number, and the `Rules` that are made of them.

Rules are made once. Folds, half-samples and permutations of a problem keep its rules.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from exactk.errors import InputError, Setting, join_items, show_value, suggest
from exactk.params import Choice
from exactk.types import Count, Indices

__all__ = [
    "CONSTRAINTS",
    "Columns",
    "Constraints",
    "Group",
    "Quota",
    "Rules",
    "make_rules",
]


class Constraints(BaseEstimator):
    """Constraints on the selected features, for estimators and functions.

    Columns are names, or numbers of the table as it was given. The methods ``exchange``,
    ``greedy``, ``exhaustive`` and ``stability`` keep all constraints; every method keeps `exclude`.

    Parameters
    ----------
    include : list of str or int, or None
        Columns, or groups by name, that are always selected.
    exclude : list of str or int, or None
        Columns, or groups by name, that are never selected.
    feature_groups : mapping of str to list, list of lists, one label for each column, or None
        Columns that are selected together or not at all: a pathway, the bands of an instrument.
        The columns that encode a category are such a group already.
    count : {"groups", "columns"}
        Whether a group counts as one of the k features or as its number of columns.
    quotas : mapping of str to mapping, or None
        Minimum and maximum number of features from a set of columns:
        ``{"acids": {"columns": ["ash", "malic_acid"], "at_least": 1, "at_most": 1}}``.
        The columns may be groups by name, and quotas may overlap.
    costs : mapping or sequence of float, or None
        Cost of each column, or of each group by name.
    budget : float or None
        Maximum total cost of the selected columns.
    max_correlation : float or None
        Largest absolute correlation of two selected columns; columns of one group are exempt.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exactk import Constraints, TopKSelector
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> constraints = Constraints(include=["mean texture"], max_correlation=0.5)
    >>> selector = TopKSelector(k=3, constraints=constraints).fit(X, y)
    >>> selector.get_feature_names_out().tolist()
    ['mean texture', 'worst perimeter', 'worst smoothness']
    """

    def __init__(
        self,
        *,
        include: Any = None,
        exclude: Any = None,
        feature_groups: Any = None,
        count: Count = "groups",
        quotas: Any = None,
        costs: Any = None,
        budget: float | None = None,
        max_correlation: float | None = None,
    ) -> None:
        self.include = include
        self.exclude = exclude
        self.feature_groups = feature_groups
        self.count = count
        self.quotas = quotas
        self.costs = costs
        self.budget = budget
        self.max_correlation = max_correlation

    @classmethod
    def of(cls, value: Constraints | Mapping[str, Any] | None) -> Constraints:
        """Return constraints given as an object, as a dict or as None.

        Examples
        --------
        >>> Constraints.of({"exclude": ["age"]})
        Constraints(exclude=['age'])
        """
        if isinstance(value, Constraints):
            return value
        if value is None:
            return cls()
        if not isinstance(value, Mapping):
            raise InputError(
                parameter="constraints", value=value, expected="a Constraints object or a dict"
            )
        for name in value:
            if name not in CONSTRAINTS:
                raise InputError(
                    f"constraints has no {name!r}; it has {', '.join(CONSTRAINTS)}",
                    parameter="constraints", value=value, hint=suggest(str(name), CONSTRAINTS),
                )  # fmt: skip
        return cls(**value)

    def to_dict(self) -> dict[str, Any]:
        """Return the constraints that are set, by name.

        Examples
        --------
        >>> Constraints(include=["age"], budget=None).to_dict()
        {'include': ['age']}
        """
        values = {name: getattr(self, name) for name in CONSTRAINTS}
        unset: dict[str, Any] = {"count": "groups"}
        # Values may be arrays, which have no single truth value.
        return {
            name: value
            for name, value in values.items()
            if value is not None and not (isinstance(value, str) and value == unset.get(name))
        }


@dataclass(frozen=True)
class Group:
    """Columns that enter together or not at all."""

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Quota:
    """Columns of which at least and at most so many may be chosen, counted as k is."""

    name: str
    columns: tuple[int, ...]
    at_least: int = 0
    at_most: int | None = None


@dataclass(frozen=True)
class Rules:
    """What every choice must keep.

    Attributes
    ----------
    include, exclude : tuple of int
        Columns that are always and never in, sorted; of a group all of its columns.
    feature_groups : tuple of Group
        Disjoint.
    count : {"groups", "columns"}
        Whether a group counts as one of the k, or as its columns.
    quotas : tuple of Quota
    costs : tuple of float or None
        One for each column.
    budget : float or None
    max_correlation : float or None
        No two chosen columns have a larger absolute correlation, those of one group excepted.

    Examples
    --------
    >>> rules = Rules(include=(2,), feature_groups=(Group("colour", (3, 4)),))
    >>> rules.is_simple, rules.size_of([2, 3, 4])
    (False, 2)
    """

    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    feature_groups: tuple[Group, ...] = ()
    count: Count = "groups"
    quotas: tuple[Quota, ...] = ()
    costs: tuple[float, ...] | None = field(default=None, repr=False)
    budget: float | None = None
    max_correlation: float | None = None

    @property
    def is_simple(self) -> bool:
        """Whether they say no more than what is in and what is out."""
        return not (
            self.feature_groups
            or self.quotas
            or self.budget is not None
            or self.max_correlation is not None
        )

    @cached_property
    def group_of(self) -> dict[int, Group]:
        """The group of each column that has one."""
        return {column: group for group in self.feature_groups for column in group.columns}

    def size_of(self, support: Sequence[int] | Indices) -> int:
        """Return how many of the k these columns are; of a group all are there."""
        if self.count == "columns" or not self.feature_groups:
            return len(support)
        whole = {self.group_of[int(p)].columns for p in support if int(p) in self.group_of}
        alone = sum(1 for p in support if int(p) not in self.group_of)
        return alone + len(whole)


# The names of all constraints.
CONSTRAINTS = (
    "include", "exclude", "feature_groups", "count", "quotas", "costs", "budget", "max_correlation",
)  # fmt: skip
# More cannot be added up without an overflow, whatever the currency.
MOST_COST = 1e150


class Columns:
    """The columns of a table as a user knows them, and those that stand for each.

    Parameters
    ----------
    names : sequence of str
        Of the table as it was given.
    parts : sequence of sequence of int
        The columns of the problem that each stands for: several where a category was coded.
    coded : sequence of str
        Names of the columns of the problem.
    """

    def __init__(
        self, names: Sequence[str], parts: Sequence[Sequence[int]], coded: Sequence[str]
    ) -> None:
        self.names, self.coded = tuple(names), tuple(coded)
        self.parts = [tuple(int(p) for p in part) for part in parts]
        # Later ones give way: a group's name counts before a column's, that before a level's.
        self._known: dict[str, tuple[int, ...]] = {name: (j,) for j, name in enumerate(coded)}
        self._known.update(zip(self.names, self.parts, strict=True))

    def add_group(self, name: str, columns: tuple[int, ...]) -> None:
        """Let a name stand for the columns of a group."""
        self._known[name] = columns

    def find(self, what: str, column: Any) -> tuple[int, ...]:
        """Return the columns of the problem behind a name or a number."""
        if isinstance(column, str):
            if column not in self._known:
                known = suggest(column, list(self._known)) or f"it has {join_items(self.names)}"
                raise InputError(
                    (*_shown(what), f": the table has no column {show_value(column)}"),
                    parameter=_parameter(what), hint=known,
                )  # fmt: skip
            return self._known[column]
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (int, np.integer)):
            raise InputError(
                (*_shown(what), f": a column is a name or a number, not {show_value(column)}"),
                parameter=_parameter(what),
            )
        if not 0 <= column < len(self.parts):
            raise InputError(
                (
                    *_shown(what),
                    f": column {show_value(column)} is not in 0..{len(self.parts) - 1}",
                ),
                parameter=_parameter(what),
            )
        return self.parts[int(column)]

    def find_all(self, what: str, columns: Any) -> tuple[int, ...]:
        """Return the columns of the problem behind several, sorted."""
        if isinstance(columns, (str, int, np.integer)) and not isinstance(columns, bool):
            columns = [columns]
        # An iterator would be empty the second time it is asked.
        listed = isinstance(columns, Collection) and getattr(columns, "ndim", 1) == 1
        if not listed or isinstance(columns, (Mapping, bytes)):
            raise InputError(
                (
                    *_shown(what),
                    f" must be a list of column names or numbers, not {show_value(columns)}",
                ),
                parameter=_parameter(what),
            )
        return tuple(sorted({p for column in columns for p in self.find(what, column)}))


def _parameter(what: str) -> str:
    """Return the parameter of a place in it, such as ``quotas['a']``."""
    return what.partition("[")[0]


def _shown(what: str) -> tuple[Setting, str]:
    """Return a place in a parameter for a message."""
    name = _parameter(what)
    return Setting(name), what.removeprefix(name)


def make_rules(
    columns: Columns,
    categories: Sequence[Group] = (),
    *,
    include: Any = None,
    exclude: Any = None,
    feature_groups: Any = None,
    count: Count = "groups",
    quotas: Any = None,
    costs: Any = None,
    budget: float | None = None,
    max_correlation: float | None = None,
) -> Rules | None:
    """Return the rules that constraints come to; None if there are none.

    Parameters
    ----------
    columns : Columns
    categories : sequence of Group
        Columns that a category was coded as, which stay together.
    include, exclude, feature_groups, count, quotas, costs, budget, max_correlation
        As in `Problem.with_constraints`.

    Raises
    ------
    InputError
        Unknown names, values out of range, and constraints that contradict each other whatever
        k is, each by name.
    """
    Choice(("groups", "columns"))("count", count)
    together = _groups(columns, feature_groups, categories)
    for group in together:
        columns.add_group(group.name, group.columns)
    wanted = () if include is None else columns.find_all("include", include)
    barred = () if exclude is None else columns.find_all("exclude", exclude)
    of_group = {p: group for group in together for p in group.columns}
    # Who asks for one column of a group asks for all of it: they come together.
    wanted = tuple(sorted({q for p in wanted for q in _with_group(of_group, p)}))
    broken = _broken_group(of_group, barred)
    if broken is not None:
        raise InputError(
            f"exclude has only a part of the group {broken.name!r}, whose columns enter together",
            parameter="exclude", hint="exclude the whole group, or take columns out of it",
        )  # fmt: skip
    both = sorted(set(wanted) & set(barred))
    if both:
        raise InputError(
            f"include and exclude contradict each other: "
            f"{join_items(columns.coded[p] for p in both)} "
            f"is in both", parameter="include",
        )  # fmt: skip
    rules = Rules(
        include=wanted,
        exclude=barred,
        feature_groups=together,
        count=count,
        quotas=_quotas(columns, quotas, of_group),
        costs=_costs(columns, costs, budget),
        budget=_number("budget", budget, 0.0, MOST_COST),
        max_correlation=_number("max_correlation", max_correlation, 0.0, 1.0),
    )
    return None if rules == Rules(count=count) else rules


def _with_group(of_group: Mapping[int, Group], column: int) -> tuple[int, ...]:
    return of_group[column].columns if column in of_group else (column,)


def _broken_group(of_group: Mapping[int, Group], columns: Sequence[int]) -> Group | None:
    """A group of which some columns are among these and some are not."""
    inside = set(columns)
    parts = (of_group[p] for p in columns if p in of_group)
    return next((group for group in parts if not inside.issuperset(group.columns)), None)


def _groups(columns: Columns, groups: Any, categories: Sequence[Group]) -> tuple[Group, ...]:
    """Groups as given, and the categories that are in none of them."""
    if groups is None:
        return tuple(categories)
    found = [
        Group(name, columns.find_all(f"feature_groups[{name!r}]", members))
        for name, members in _named_groups(groups, len(columns.names)).items()
    ]
    owner: dict[int, str] = {}
    for group in found:
        if not group.columns:
            raise InputError(
                f"feature_groups[{group.name!r}] is empty", parameter="feature_groups",
                hint="name its columns or leave it out",
            )  # fmt: skip
        for p in group.columns:
            if p in owner:
                raise InputError(
                    f"column {columns.coded[p]!r} is in two groups, {owner[p]!r} and "
                    f"{group.name!r}", parameter="feature_groups",
                    hint="columns that may be chosen apart are a family",
                )  # fmt: skip
            owner[p] = group.name
    own = {name: set(part) for name, part in zip(columns.names, columns.parts, strict=True)}
    for group in found:
        if not own.get(group.name, set()) <= set(group.columns):
            raise InputError(
                f"feature_groups[{group.name!r}] has the name of a column that is not in it",
                parameter="feature_groups", hint="give it another name",
            )  # fmt: skip
    for category in categories:
        inside = [owner[p] for p in category.columns if p in owner]
        if inside and len(inside) < len(category.columns):
            raise InputError(
                f"feature_groups[{inside[0]!r}] has some levels of {category.name!r} and not all",
                parameter="feature_groups",
                hint=f"they enter together: name {category.name!r} itself",
            )
        if not inside:
            found.append(category)
    return tuple(found)


def _named_groups(groups: Any, n_columns: int) -> dict[str, Any]:
    """Read a mapping of names, a list of lists, or one label for each column."""
    if isinstance(groups, Mapping):
        return _by_text("feature_groups", groups)
    if isinstance(groups, str) or not isinstance(groups, (Sequence, np.ndarray)):
        raise InputError(
            f"feature_groups must map names to lists of columns, or be a list of such lists, or "
            f"one label for each column, not {type(groups).__name__}", parameter="feature_groups",
        )  # fmt: skip
    items = list(groups)
    lists = [isinstance(item, (list, tuple, set, np.ndarray)) for item in items]
    if all(lists):
        return {f"group {n}": list(item) for n, item in enumerate(items)}
    if any(lists):
        raise InputError(
            "feature_groups must be lists of columns, or labels, not a mixture of both",
            parameter="feature_groups",
        )
    if len(items) != n_columns:
        raise InputError(
            f"feature_groups has {len(items)} labels, the table {n_columns} columns",
            parameter="feature_groups",
            hint="give one for each, None for a column that stands alone",
        )
    named: dict[str, Any] = {}
    for j, label in enumerate(items):
        if label is not None and label != label:
            raise InputError(
                f"feature_groups: the label of column {j} is nan", parameter="feature_groups",
                hint="None is a column alone",
            )  # fmt: skip
        if label is not None:
            named.setdefault(str(label), []).append(j)
    return named


def _by_text(what: str, mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping with names that are text, or say which two are the same then."""
    named = {str(name): members for name, members in mapping.items()}
    if len(named) < len(mapping):
        raise InputError(
            f"{what} has two of the same name: {join_items(map(str, mapping))}", parameter=what
        )
    return named


def _quotas(columns: Columns, quotas: Any, of_group: Mapping[int, Group]) -> tuple[Quota, ...]:
    if quotas is None:
        return ()
    if not isinstance(quotas, Mapping):
        raise InputError(
            f"quotas must map names to columns and bounds, not {show_value(quotas)}",
            parameter="quotas",
        )
    return tuple(
        _quota(columns, name, quota, of_group) for name, quota in _by_text("quotas", quotas).items()
    )


def _quota(columns: Columns, name: str, quota: Any, of_group: Mapping[int, Group]) -> Quota:
    what = f"quotas[{name!r}]"
    keys = ("columns", "at_least", "at_most")
    if not isinstance(quota, Mapping) or "columns" not in quota or not set(quota) <= {*keys}:
        raise InputError(
            f"{what} must have columns and at_least, at_most or both, such as "
            f"{{'columns': ['a', 'b'], 'at_most': 1}}, not {show_value(quota)}", parameter="quotas",
        )  # fmt: skip
    least, most = quota.get("at_least"), quota.get("at_most")
    if least is None and most is None:
        raise InputError(
            f"{what} has no bound", parameter="quotas", hint="give at_least, at_most or both"
        )
    for bound in (least, most):
        whole = isinstance(bound, (int, np.integer)) and not isinstance(bound, bool)
        if bound is not None and not (whole and bound >= 0):
            raise InputError(
                f"{what}: a bound must be a whole number from 0, not {show_value(bound)}",
                parameter="quotas",
            )
    if least is not None and most is not None and least > most:
        raise InputError(
            f"{what}: at_least={least} and at_most={most} contradict each other", parameter="quotas"
        )
    members = columns.find_all(what, quota["columns"])
    broken = _broken_group(of_group, members)
    if broken is not None:
        raise InputError(
            f"{what} has only a part of the group {broken.name!r}, whose columns enter together",
            parameter="quotas", hint="take all of it or nothing",
        )  # fmt: skip
    return Quota(name, members, int(least or 0), None if most is None else int(most))


def _costs(columns: Columns, costs: Any, budget: Any) -> tuple[float, ...] | None:
    if costs is None:
        if budget is not None:
            raise InputError(
                (Setting("budget"), " needs ", Setting("costs"), " as well"), parameter="costs"
            )
        return None
    if isinstance(costs, Mapping) or hasattr(costs, "to_dict"):
        # A pandas Series has labels, which count, and not the places where they stand.
        pairs = list(costs.items())
    else:
        values = [costs] if np.ndim(costs) == 0 else list(costs)
        if len(values) != len(columns.names):
            raise InputError(
                f"costs has {len(values)} numbers, the table {len(columns.names)} columns",
                parameter="costs", hint="give one for each, or map names to costs",
            )  # fmt: skip
        pairs = list(enumerate(values))
    each = np.full(len(columns.coded), math.nan)
    for column, cost in pairs:
        if cost is None:
            raise InputError(
                f"costs[{column!r}] is None", parameter="costs",
                hint="give 0 for a column that costs nothing",
            )  # fmt: skip
        value = _number(f"costs[{column!r}]", cost, 0.0, MOST_COST)
        behind = list(columns.find("costs", column))
        if not np.isnan(each[behind]).all():
            raise InputError(
                f"costs names {column!r} twice, by itself and as part of a group", parameter="costs"
            )
        # What a group costs is shared out among its columns, which are bought together.
        each[behind] = (value or 0.0) / len(behind)
    without = [
        name
        for name, part in zip(columns.names, columns.parts, strict=True)
        if np.isnan(each[list(part)]).any()
    ]
    if without:
        raise InputError(
            f"costs has no number for {join_items(without)}", parameter="costs",
            hint="give 0 for columns that cost nothing",
        )  # fmt: skip
    if budget is None:
        raise InputError(
            (Setting("costs"), " needs ", Setting("budget"), " as well"), parameter="budget"
        )
    return tuple(each.tolist())


def _number(what: str, value: Any, low: float, high: float) -> float | None:
    if value is None:
        return None
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or not low <= value <= high:
        span = f"from {low:g} to {high:g}" if high < MOST_COST else f"of at least {low:g}"
        raise InputError(
            f"{what} must be a number {span}, not {show_value(value)}", parameter=_parameter(what)
        )
    return float(value)
