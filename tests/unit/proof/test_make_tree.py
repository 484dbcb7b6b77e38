"""Which tree serves a problem, and that all of them come to the same."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest

from exactk import Problem, solve
from exactk.proof import make_tree as make_tree_module
from exactk.proof.best_first import BestFirstSearch, BoundTree
from exactk.proof.column_tree import ColumnTree, library
from exactk.proof.make_tree import make_tree
from exactk.proof.unit_tree import UnitTree
from exactk.utils.monitor import Monitor
from tests.oracles.brute import make_classes, make_numbers

compiled = pytest.mark.skipif(library() is None, reason="the tree is not compiled here")


def _dependent(n: int = 8, d: int = 14, **options: Any) -> Problem:
    rng = np.random.default_rng(1)
    return Problem.from_arrays(rng.standard_normal((n, d)), rng.standard_normal(n), **options)


def _closed(problem: Problem, tree: Any) -> BestFirstSearch:
    search = BestFirstSearch(problem, tree)
    search.run(Monitor(), 1)
    assert search.is_closed
    return search


@compiled
def test_columns_that_are_independent_have_bounds() -> None:
    X, y = make_classes()
    problem = Problem.from_arrays(X, y)
    for k in (1, 4, 9):
        tree = make_tree(problem, k)
        assert isinstance(tree, ColumnTree)
        assert tree.doubt == 0.0
        assert 0 < tree.tolerance < 1e-9 * problem.total
    tree = make_tree(problem.with_constraints(include=[1], exclude=[3]), 4)
    assert isinstance(tree, ColumnTree)


def test_without_the_library_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_tree_module, "library", lambda: None)
    X, y = make_classes()
    problem = Problem.from_arrays(X, y)
    tree = make_tree(problem, 4)
    assert isinstance(tree, UnitTree)
    best = min(problem.objective(S) for S in combinations(range(9), 4))
    assert _closed(problem, tree).upper == pytest.approx(best)


def test_the_library_can_be_switched_off() -> None:
    code = (
        "from tests.oracles.brute import make_classes\n"
        "from exactk import Problem, certify\n"
        "from exactk.proof.make_tree import make_tree\n"
        "problem = Problem.from_arrays(*make_classes())\n"
        "certificate = certify(problem, features=[0, 1, 2, 3])\n"
        "print(type(make_tree(problem, 4)).__name__, certificate.proven, certificate.upper)\n"
    )
    seen = {}
    for native in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "EXACTK_NATIVE": native},
            capture_output=True,
            text=True,
            check=True,
        )
        seen[native] = done.stdout.split()
    assert seen["0"][0] == "UnitTree"
    assert seen["1"][0] == ("UnitTree" if library() is None else "ColumnTree")
    problem = Problem.from_arrays(*make_classes())
    best = min(problem.objective(S) for S in combinations(range(9), 4))
    for _, proven, upper in seen.values():
        assert proven == "True"
        assert float(upper) == pytest.approx(best)


@pytest.mark.parametrize(
    "rules",
    [
        {"feature_groups": {"G": [0, 1]}},
        {"costs": [1.0] * 9, "budget": 4},
        {"quotas": {"F": {"columns": [0, 1, 2], "at_most": 1}}},
        {"max_correlation": 0.9},
    ],
)
def test_other_rules_are_for_units(rules: dict[str, Any]) -> None:
    X, y = make_classes()
    assert isinstance(make_tree(Problem.from_arrays(X, y).with_constraints(**rules), 3), UnitTree)


def test_nothing_left_to_choose_is_for_units() -> None:
    X, y = make_classes()
    problem = Problem.from_arrays(X, y).with_constraints(include=[1, 4])
    tree = make_tree(problem, 2)
    assert isinstance(tree, UnitTree)
    assert _closed(problem, tree).sets[0].columns == (1, 4)
    # More columns than there are without copies.
    X = np.column_stack([X, X[:, 0]])
    problem = Problem.from_arrays(X, y)
    tree = make_tree(problem, 10)
    assert isinstance(tree, UnitTree)
    assert _closed(problem, tree).sets[0].columns == tuple(range(10))


@compiled
def test_columns_that_depend_are_looked_through_or_left_to_others() -> None:
    problem = _dependent()
    for k in (1, 2, 3):
        tree = make_tree(problem, k)
        assert isinstance(tree, ColumnTree)
        assert tree.doubt > 0
        assert tree.tolerance == pytest.approx(1e-8 * problem.total)
        best = min(problem.objective(S) for S in combinations(range(14), k))
        assert _closed(problem, tree).upper == pytest.approx(best)
    assert isinstance(make_tree(problem, 4), UnitTree)
    wide = _dependent(d=160)
    tree = make_tree(wide, 4)
    assert isinstance(tree, BoundTree)
    assert tree.root()[0].bound == 0.0
    # A ridge makes them independent enough.
    tree = make_tree(_dependent(ridge=0.1), 4)
    assert isinstance(tree, ColumnTree)
    assert tree.doubt == 0.0


@compiled
def test_memory_that_is_short_leaves_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_tree_module, "MOST_UNITS", 10)
    X, y = make_numbers(n=60, d=30)
    problem = Problem.from_arrays(X, y, memory_limit=20_000)
    assert isinstance(make_tree(problem, 6), BoundTree)
    assert isinstance(make_tree(Problem.from_arrays(X, y), 6), ColumnTree)


@compiled
@pytest.mark.parametrize("share", [1e-2, 1e-3])
def test_the_tolerance_knows_of_what_must_be_in(share: float) -> None:
    X, y = make_numbers(d=7)
    X[:, 5] = X[:, 1] + share * X[:, 5]
    problem = Problem.from_arrays(X, y)
    loose = make_tree(problem, 4).tolerance
    assert loose > 1e-11 * problem.total / 5
    # Taking one of two near columns in, or both, makes their digits no better.
    for include in ([1], [1, 5]):
        tree = make_tree(problem.with_constraints(include=include), 4)
        if isinstance(tree, ColumnTree) and tree.doubt == 0.0:
            assert tree.tolerance >= 0.3 * loose
    # Those that have nothing to do with it do not count.
    tree = make_tree(problem.with_constraints(include=[1, 2], exclude=[5]), 4)
    assert tree.tolerance <= loose


@compiled
@pytest.mark.parametrize("ridge", [0.05, 0.5])
def test_a_wide_table_is_thinned_and_loses_nothing(
    ridge: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((25, 40))
    Y = X[:, :3] @ rng.standard_normal((3, 2)) * 3.0 + 0.3 * rng.standard_normal((25, 2))
    problem = Problem.from_arrays(X, Y, ridge=ridge)
    every = sorted((problem.objective(S), S) for S in combinations(range(40), 3))
    whole = make_tree(problem, 3)
    assert isinstance(whole, ColumnTree)
    monkeypatch.setattr(make_tree_module, "WIDE", 10)
    monkeypatch.setattr(make_tree_module, "FIRST_WORKING", 12)
    for rank in (0, 1, 20):
        ceiling, _ = every[rank]
        tree = make_tree(problem, 3, ceiling + 1e-9)
        assert isinstance(tree, ColumnTree)
        kept = set(tree.columns_of(np.arange(len(tree.relaxed.columns))))
        for value, S in every:
            if value <= ceiling:
                assert set(S) <= kept
                assert set(tree.column_problem.inside) <= set(S)
        if rank == 0:
            assert len(kept) < 40
        assert tree.root()[0].bound <= every[0][0] + tree.tolerance
        search = BestFirstSearch(problem, tree, [every[rank][1]], n_best=rank + 1)
        search.run(Monitor(), 1)
        assert search.is_closed
        assert [one.columns for one in search.sets] == [S for _, S in every[: rank + 1]]


@compiled
def test_a_ceiling_below_everything_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_tree_module, "WIDE", 10)
    problem = _dependent(n=20, d=25, ridge=0.5)
    best = solve(problem, 3, "exhaustive").objective
    for ceiling in (0.0, 0.5 * best, best * (1 - 1e-9)):
        tree = make_tree(problem, 3, ceiling)
        search = BestFirstSearch(problem, tree, ceiling=ceiling)
        search.run(Monitor(), 1)
        assert search.sets == []
        assert search.lower <= ceiling


@compiled
def test_time_that_is_up_leaves_a_tree_that_is_right() -> None:
    X, y = make_classes(n=80, d=12)
    problem = Problem.from_arrays(X, y)
    tree = make_tree(problem, 5, inf, lambda: True)
    best = min(problem.objective(S) for S in combinations(range(12), 5))
    assert tree.root()[0].bound <= best
    assert _closed(problem, tree).upper == pytest.approx(best)
