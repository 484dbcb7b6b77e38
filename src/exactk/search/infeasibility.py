"""Whether any set of a size keeps the rules, and if not, which of them are in conflict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from exactk.errors import join_items
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.search.feasibility import SECONDS, Feasible, InfeasibleError, UndecidedError
from exactk.search.units import Units

__all__ = ["check_feasible", "find_feasible", "possible_sizes"]

# Seconds for each of the many sizes of a path, and for each constraint that may be to blame.
EACH_SECONDS = 1.0


def find_feasible(
    units: Units, k: int, seconds: float = SECONDS
) -> tuple[Feasible, list[int]] | None:
    """Return the sets that keep the rules at a size, and one of them; None if there is none.

    Copies of a column are kept apart if that can be, and otherwise make up the number.

    Raises
    ------
    UndecidedError
        None was found in time.
    """
    undecided: UndecidedError | None = None
    for forbid_duplicates in (True, False):
        feasible = Feasible(units, k, forbid_duplicates=forbid_duplicates, seconds=seconds)
        if feasible.is_plain and not feasible.completable(units.included):
            witness = None
        else:
            try:
                witness = feasible.completed(units.included)
            except UndecidedError as error:
                undecided, witness = error, None
        if witness is not None:
            return feasible, witness
        if not units.has_duplicates:
            break
    if undecided is not None:
        raise undecided
    return None


def check_feasible(problem: Problem, k: int, seconds: float | None = None) -> None:
    """Raise an error that names the constraints in conflict, if no set of size k keeps them.

    Parameters
    ----------
    problem : Problem
    k : int
    seconds : float or None
        Most time for an answer.
    """
    if problem.rules is None:
        return
    limit = SECONDS if seconds is None else min(SECONDS, seconds)
    if find_feasible(Units(problem), k, limit) is not None:
        return
    rules, blamed = problem.rules, []
    units = Units(problem)
    n_included = int(units.weights[units.included].sum())
    if n_included > k:
        names = join_items(units.names[u] for u in units.included)
        raise InfeasibleError(
            f"k={k} is less than include asks for: {names} count {n_included}", parameter="k",
            hint=f"ask for at least k={n_included}, or include fewer",
        )  # fmt: skip
    each = min(EACH_SECONDS, limit)
    for part in _parts(problem):
        without = part.drop(rules)
        # What can be left out without a way opening has no part in the conflict.
        if _can(problem.with_rules(without), k, each):
            blamed.append(part.text)
        else:
            rules = without
    if not blamed:
        raise InfeasibleError(
            f"k={k} cannot be made up of the {len(units)} columns and groups that can be chosen",
            parameter="k",
        )
    kept = f"all of: {'; '.join(blamed)}" if len(blamed) > 1 else blamed[0]
    relax = "; relax one" if len(blamed) > 1 else "; relax it"
    raise InfeasibleError(f"no set of k={k} keeps {kept}{relax}", parameter="constraints")


def possible_sizes(problem: Problem, k_max: int) -> list[int]:
    """Return the sizes up to k_max for which a set that keeps the rules was found."""
    units = Units(problem)
    if not Feasible(units, k_max).is_closed:
        return [k for k in range(1, k_max + 1) if _can(problem, k, EACH_SECONDS)]
    # A part of a set that keeps them keeps them, too: only the largest size is in question.
    least, most = max(1, len(units.included)), k_max
    if not _can(problem, k_max, EACH_SECONDS):
        low, high = least - 1, k_max
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _can(problem, middle, EACH_SECONDS) else (low, middle)
        most = low
    return list(range(least, most + 1))


def _can(problem: Problem, k: int, seconds: float) -> bool:
    """Whether a set of a size was found in time."""
    try:
        return find_feasible(Units(problem), k, seconds) is not None
    except UndecidedError:
        return False


@dataclass(frozen=True)
class _Part:
    """One constraint: what to call it, and the field of the rules with and without it."""

    text: str
    field: str
    item: Any = None

    def drop(self, rules: Rules) -> Rules:
        """Return the rules without this one."""
        now = getattr(rules, self.field)
        if self.field == "quotas":
            name, without = self.item
            changed: Any = tuple(replace(f, **without) if f.name == name else f for f in now)
        elif self.field == "include":
            changed = tuple(p for p in now if p not in self.item)
        elif self.field == "exclude":
            changed = ()
        else:
            changed = None
        return replace(rules, **{self.field: changed})


def _parts(problem: Problem) -> list[_Part]:
    """Return the constraints of a problem one by one, those that are blamed last first."""
    rules, units = problem.rules or Rules(), Units(problem)
    parts = []
    if rules.max_correlation is not None:
        parts.append(_Part(f"max_correlation={rules.max_correlation:g}", "max_correlation"))
    if rules.budget is not None:
        parts.append(_Part(f"budget={rules.budget:g}", "budget"))
    for quota in rules.quotas:
        # Each bound by itself: the one may be in the way and the other not.
        if quota.at_most is not None:
            text = f"at most {quota.at_most} of {quota.name!r}"
            parts.append(_Part(text, "quotas", (quota.name, {"at_most": None})))
        if quota.at_least:
            text = f"at least {quota.at_least} of {quota.name!r}"
            parts.append(_Part(text, "quotas", (quota.name, {"at_least": 0})))
    for unit in units.included:
        columns = set(units.columns(unit).tolist())
        parts.append(_Part(f"include {units.names[unit]!r}", "include", columns))
    if rules.exclude:
        names = [problem.name(p) for p in rules.exclude]
        parts.append(_Part(f"exclude {join_items(names)}", "exclude"))
    return parts
