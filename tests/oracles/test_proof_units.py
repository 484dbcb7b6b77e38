"""The tree over units against plain enumeration: any rules, and columns that depend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactk import Problem
from exactk.proof.best_first import BestFirstSearch
from exactk.proof.unit_tree import UnitTree
from exactk.utils.monitor import Monitor
from tests.oracles.brute import Reference
from tests.oracles.test_constraints import NAMES, Case, cases

D = len(NAMES)


@dataclass
class Posed:
    """A table of some kind, and the sets that may be chosen with what they are worth."""

    case: Case
    ridge: float
    weights: np.ndarray | None
    copied: tuple[int, int] | None

    def problem(self) -> Problem:
        case, y = self.case, self.case.Y
        problem = Problem.from_arrays(
            case.X, y, feature_names=NAMES, ridge=self.ridge, sample_weight=self.weights
        )
        return problem.with_constraints(**case.constraints) if case.constraints else problem

    def objectives(self) -> dict[tuple[int, ...], float]:
        """What there is to choose from, copies kept apart if that can be, by definition."""
        reference = Reference(self.case.X, self.case.Y, ridge=self.ridge, weights=self.weights)
        keeping = self.case.keeping()
        if self.copied is not None:
            keeping = [S for S in keeping if not self._has_both(S)] or keeping
        return {S: reference.objective(S) for S in keeping}

    def _has_both(self, support: tuple[int, ...]) -> bool:
        """Whether a set has both copies, as single columns of which one is there by choice."""
        assert self.copied is not None
        names = [NAMES[j] for j in self.copied]
        groups = self.case.constraints.get("feature_groups", {})
        alone = not any(name in members for members in groups.values() for name in names)
        forced = set(names) <= set(self.case.constraints.get("include", ()))
        return alone and not forced and set(self.copied) <= set(support)

    @property
    def takes_first_copy(self) -> bool:
        """Whether rules are so plain that only the first of two copies counts."""
        said = {name for name, value in self.case.constraints.items() if value}
        return self.copied is not None and said <= {"exclude"}


@st.composite
def posed(draw: st.DrawFn) -> Posed:
    case = draw(cases())
    if draw(st.integers(0, 3)) == 0:
        case.constraints = {}
    elif draw(st.integers(0, 3)) == 0:
        only = {k: v for k, v in case.constraints.items() if k in ("include", "exclude")}
        in_group = {"G", "H"}
        case.constraints = {k: [n for n in v if n not in in_group] for k, v in only.items()}
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    kind = draw(st.sampled_from(["plain", "near", "chain", "sum", "copies", "wide", "exact"]))
    i, j, p = rng.permutation(D)[:3]
    copied = None
    if kind == "near":
        share = draw(st.sampled_from([1e-2, 1e-3, 1e-4]))
        case.X[:, j] = case.X[:, i] + share * rng.standard_normal(len(case.X))
        # What the two differ in matters.
        case.Y = case.Y + (case.X[:, [j]] - case.X[:, [i]]) / share
    elif kind == "chain":
        for a in range(1, 4):
            case.X[:, a] = case.X[:, a - 1] + 1e-3 * rng.standard_normal(len(case.X))
    elif kind == "sum":
        case.X[:, p] = case.X[:, i] - 2.0 * case.X[:, j]
    elif kind == "copies":
        case.X[:, j] = 3.0 - 2.0 * case.X[:, i]
        copied = (int(i), int(j))
    elif kind == "wide":
        case.X, case.Y = case.X[:6], case.Y[:6]
    elif kind == "exact":
        case.Y = case.X[:, [i]] + case.X[:, [j]] + np.zeros((1, 2))
    if draw(st.booleans()) and kind != "exact":
        case.Y = np.arange(len(case.Y)) % 3 if draw(st.booleans()) else case.Y[:, 0]
    weights = None
    if "max_correlation" not in case.constraints and draw(st.booleans()):
        weights = rng.uniform(0.2, 2.0, len(case.X))
    return Posed(case, draw(st.sampled_from([0.0, 0.0, 1e-6, 0.05, 1.0])), weights, copied)


class Steps(Monitor):
    """Time for one exploration at a time."""

    expired_now = False

    @property
    def expired(self) -> bool:
        return self.expired_now

    def report(self, *_: Any) -> None:
        self.expired_now = True


def check(one: Posed, n_best: int) -> None:
    problem, k = one.problem(), one.case.k
    objectives = one.objectives()
    tree = UnitTree(problem, k)
    search = BestFirstSearch(problem, tree, n_best=n_best)
    best = min(objectives.values(), default=inf)
    slack = tree.tolerance + 1e-8 * problem.total
    for _ in range(1000):
        search.run(Steps(), 1)
        assert search.lower <= best + slack
        assert search.upper >= best - slack
        if search.is_closed:
            break
    assert search.is_closed
    assert {found.columns for found in search.sets} <= objectives.keys()
    for found in search.sets:
        assert found.objective == pytest.approx(objectives[found.columns], abs=slack)
    if one.takes_first_copy:
        # Sets with the other copy are the same sets once more.
        assert bool(search.sets) == bool(objectives)
        assert search.upper <= best + slack
        return
    expected = sorted(objectives.values())[:n_best]
    assert [found.objective for found in search.sets] == pytest.approx(expected, abs=2 * slack)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(posed(), st.sampled_from([1, 1, 3, 1000]))
def test_the_tree_finds_what_enumeration_finds(one: Posed, n_best: int) -> None:
    check(one, n_best)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(posed(), st.data())
def test_known_sets_and_ceilings_lose_nothing(one: Posed, data: st.DataObject) -> None:
    problem, objectives = one.problem(), one.objectives()
    if not objectives or one.takes_first_copy:
        return
    start = data.draw(st.sampled_from(sorted(objectives)))
    tree = UnitTree(problem, one.case.k)
    slack = tree.tolerance + 1e-8 * problem.total
    ceiling = objectives[start] + 2 * slack
    search = BestFirstSearch(problem, tree, [start], ceiling=ceiling, n_best=1000)
    search.run(Monitor(), 1)
    assert search.is_closed
    found = {one.columns for one in search.sets}
    for support, objective in objectives.items():
        if objective < ceiling - slack:
            assert support in found
        if objective > ceiling + slack:
            assert support not in found


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(posed())
def test_moments_alone_give_the_same_bounds_but_for_digits(one: Posed) -> None:
    # Of near copies the Gram matrix knows half the digits that the rows do.
    problem, objectives = one.problem(), one.objectives()
    rows, target = problem.rows, problem.target
    assert rows is not None
    assert target is not None
    alone = Problem.from_moments(rows.moments(target, problem.weights), ridge=one.ridge)
    alone = replace(alone.with_rules(problem.rules), given_names=problem.given_names)
    search = BestFirstSearch(alone, UnitTree(alone, one.case.k))
    search.run(Monitor(), 1)
    best = min(objectives.values(), default=inf)
    slack = 1e-4 * problem.total
    assert search.lower <= best + slack
    # With near copies and without rows the search may stop with a gap, and then proves nothing.
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(one.case.X.T))
    if not ((eigenvalues > 1e-12) & (eigenvalues < 1e-5)).any():
        assert search.is_closed
        assert search.upper == best or search.upper <= best + slack
