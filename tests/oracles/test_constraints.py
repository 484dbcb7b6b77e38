"""Constraints of every kind, drawn at random, against plain enumeration."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactk import InputError, Problem, solve, solve_path
from exactk.search.feasibility import InfeasibleError

NAMES = tuple("abcdefg")
ROWS = 24


@dataclass
class Case:
    """A table, constraints as a user would give them, and what keeps them, by definition."""

    X: np.ndarray
    Y: np.ndarray
    k: int
    constraints: dict[str, Any] = field(default_factory=dict)

    def problem(self, ridge: float = 0.05) -> Problem:
        problem = Problem.from_arrays(self.X, self.Y, feature_names=NAMES, ridge=ridge)
        return problem.with_constraints(**self.constraints)

    def keeping(self, k: int | None = None) -> list[tuple[int, ...]]:
        everything = (
            support
            for size in range(1, len(NAMES) + 1)
            for support in combinations(range(len(NAMES)), size)
        )
        return [support for support in everything if self._keeps(support, k or self.k)]

    def _keeps(self, support: tuple[int, ...], k: int) -> bool:
        c = self.constraints
        chosen = {NAMES[j] for j in support}
        groups = {name: set(members) for name, members in c.get("feature_groups", {}).items()}
        whole = {name for name, members in groups.items() if members & chosen}
        if any(not groups[name] <= chosen for name in whole):
            return False

        def size(members: set[str]) -> int:
            inside = members & chosen
            if c.get("count", "groups") == "columns":
                return len(inside)
            alone = inside - {m for group in groups.values() for m in group}
            return len(alone) + sum(1 for name in whole if groups[name] <= inside)

        if size(set(NAMES)) != k:
            return False
        wanted = set(c.get("include", ()))
        for name in list(wanted & set(groups)):
            wanted = (wanted - {name}) | groups[name]
        barred = set(c.get("exclude", ()))
        for name in list(barred & set(groups)):
            barred = (barred - {name}) | groups[name]
        if not wanted <= chosen or barred & chosen:
            return False
        for quota in c.get("quotas", {}).values():
            if not quota["at_least"] <= size(set(quota["columns"])) <= quota["at_most"]:
                return False
        if "costs" in c and sum(c["costs"][name] for name in chosen) > c["budget"]:
            return False
        if "max_correlation" in c:
            R = np.abs(np.corrcoef(self.X.T))
            for i, j in combinations(support, 2):
                together = any({NAMES[i], NAMES[j]} <= members for members in groups.values())
                if not together and R[i, j] > c["max_correlation"]:
                    return False
        return True

    def objective(self, support: tuple[int, ...], ridge: float = 0.05) -> float:
        Z = (self.X - self.X.mean(axis=0)) / self.X.std(axis=0, ddof=1)
        penalty = ridge * (len(Z) - 1)
        top = np.vstack([Z[:, support], np.sqrt(penalty) * np.eye(len(support))])
        low = np.vstack([self.Y - self.Y.mean(axis=0), np.zeros((len(support), self.Y.shape[1]))])
        W, *_ = np.linalg.lstsq(top, low, rcond=None)
        return float(((low - top @ W) ** 2).sum())


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    latent = rng.standard_normal((ROWS, 3))
    X = latent @ rng.standard_normal((3, len(NAMES))) + rng.standard_normal((ROWS, len(NAMES)))
    Y = X @ rng.standard_normal((len(NAMES), 2)) + 2.0 * rng.standard_normal((ROWS, 2))
    case = Case(X, Y, draw(st.integers(1, 5)))
    c = case.constraints
    kinds = draw(
        st.sets(
            st.sampled_from(
                ["include", "exclude", "feature_groups", "quotas", "costs", "correlation"]
            ),
            min_size=1,
        )
    )
    free = list(NAMES)
    if "feature_groups" in kinds:
        mixed = draw(st.permutations(NAMES))
        n, m = draw(st.integers(2, 3)), draw(st.integers(0, 3))
        c["feature_groups"] = {"G": sorted(mixed[:n])} | (
            {"H": sorted(mixed[n : n + m])} if m else {}
        )
        c["count"] = draw(st.sampled_from(["groups", "columns"]))
        inside = {name for group in c["feature_groups"].values() for name in group}
        free = [name for name in NAMES if name not in inside] + list(c["feature_groups"])
    if "include" in kinds:
        c["include"] = draw(st.lists(st.sampled_from(free), max_size=2, unique=True))
    if "exclude" in kinds:
        others = [name for name in free if name not in c.get("include", ())]
        if others:
            c["exclude"] = draw(st.lists(st.sampled_from(others), max_size=3, unique=True))
    if "quotas" in kinds:
        units = draw(st.lists(st.sampled_from(free), min_size=1, unique=True))
        members = [m for unit in units for m in c.get("feature_groups", {}).get(unit, [unit])]
        more = draw(st.lists(st.sampled_from(free), min_size=1, unique=True))
        other = [m for unit in more for m in c.get("feature_groups", {}).get(unit, [unit])]
        least = {"F": draw(st.integers(0, 2)), "O": draw(st.integers(0, 1))}
        c["quotas"] = {
            name: {
                "columns": columns,
                "at_least": least[name],
                "at_most": draw(st.integers(least[name], 4)),
            }
            for name, columns in (("F", members), ("O", other))
        }
    if "costs" in kinds:
        c["costs"] = {name: draw(st.integers(0, 5)) for name in NAMES}
        c["budget"] = draw(st.integers(0, 15))
    if "correlation" in kinds:
        c["max_correlation"] = draw(st.sampled_from([0.2, 0.4, 0.6, 0.8]))
    return case


def _most(problem: Problem) -> int:
    return len(NAMES) if problem.rules is None else problem.rules.size_of(range(len(NAMES)))


@settings(max_examples=200, deadline=None)
@given(cases())
def test_every_constraint_is_kept_and_nothing_beats_enumeration(case: Case) -> None:
    keeping = case.keeping()
    problem = case.problem()
    if not keeping:
        # More than there are is an error of k alone, and of no constraint.
        with pytest.raises(InfeasibleError if case.k <= _most(problem) else InputError):
            solve(problem, case.k)
        return
    best = min(case.objective(support) for support in keeping)
    for method in ("exchange", "greedy"):
        result = solve(problem, case.k, method)
        assert tuple(result.support) in keeping, method
        assert result.k == case.k
        assert result.objective == pytest.approx(case.objective(tuple(result.support)), rel=1e-9)
        assert result.objective >= best - 1e-9 * problem.total
    proven = solve(problem, case.k, "exhaustive")
    assert tuple(proven.support) in keeping
    assert proven.objective == pytest.approx(best, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_a_path_has_every_size_that_can_be_had(case: Case) -> None:
    problem = case.problem()
    possible = [k for k in range(1, len(NAMES) + 1) if case.keeping(k)]
    if not possible:
        with pytest.raises(InfeasibleError):
            solve_path(problem, _most(problem))
        return
    for method in ("exchange", "greedy", "exhaustive"):
        path = solve_path(problem, _most(problem), method)
        assert path.sizes == possible
        for result in path:
            assert tuple(result.support) in case.keeping(result.k)


def test_the_search_finds_the_best_in_almost_every_case() -> None:
    found, asked = 0, 0

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(cases())
    def count(case: Case) -> None:
        nonlocal found, asked
        keeping = case.keeping()
        if keeping:
            best = min(case.objective(support) for support in keeping)
            asked += 1
            found += solve(case.problem(), case.k).objective <= best * (1 + 1e-9)

    count()
    assert asked > 60
    assert found >= 0.98 * asked


@pytest.mark.parametrize("native", [True, False])
def test_compiled_and_plain_moves_hold_the_same_columns(
    native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn.datasets import load_digits

    from exactk.search import native_state as compiled

    if not native:
        monkeypatch.setattr(compiled, "library", lambda: None)
    problem = Problem.from_arrays(*load_digits(return_X_y=True))
    problem = problem.with_constraints(include=[0 + 5, 9], exclude=[33, 21])
    result = solve(problem, 6)
    assert {5, 9} <= set(result.support)
    assert not {33, 21} & set(result.support)
    # By an independent look: no allowed swap of one member improves it.
    inside = [p for p in result.support if p not in (5, 9)]
    outside = np.setdiff1d(problem.usable, [*result.support, 33, 21])
    for i in inside:
        rest = [p for p in result.support if p != i]
        assert min(problem.objective([*rest, p]) for p in outside) >= result.objective - 1e-9


def test_contradictions_are_named_before_any_search() -> None:
    case = Case(np.random.default_rng(0).standard_normal((ROWS, 7)), np.zeros((ROWS, 1)), 3)
    case.Y = case.X[:, :1] + case.X[:, 1:2]
    with pytest.raises(InputError, match="include and exclude contradict each other: 'a'"):
        case.problem().with_constraints(include=["a", "b"], exclude=["a"])
    tight = case.problem().with_constraints(
        include=["a", "b"],
        quotas={"F": {"columns": ["a", "b", "c"], "at_most": 1}},
        costs=[1] * 7,
        budget=9,
    )
    with pytest.raises(InfeasibleError) as error:
        solve(tight, 3)
    text = str(error.value)
    assert "at most 1 of 'F'" in text
    assert "include 'a'" in text
    assert "include 'b'" in text
    assert "budget" not in text
