"""The compiled tree: what it gives back, and when it must not claim too much."""

from __future__ import annotations

import threading
import time
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from exactk import Problem, Status
from exactk.proof import column_tree as module
from exactk.proof.best_first import BestFirstSearch, BoundTree, Node
from exactk.proof.bounds import Relaxed, bound_of
from exactk.proof.column_tree import ColumnNode, ColumnTree, library, make_column_problem
from exactk.proof.make_tree import make_tree
from exactk.utils.monitor import Monitor
from tests.oracles.brute import make_classes, make_numbers

compiled = pytest.mark.skipif(library() is None, reason="the tree is not compiled here")


def _stop(value: int = 0) -> np.ndarray:
    return np.full(1, value, dtype=np.int64)


def _tree(problem: Problem, k: int, ceiling: float = inf) -> ColumnTree:
    tree = make_tree(problem, k, ceiling)
    assert isinstance(tree, ColumnTree)
    return tree


def _near(n: int = 40, share: float = 1e-5, pairs: int = 1) -> Problem:
    """Columns at so small a distance that their difference is read from the rows."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 9))
    for i in range(pairs):
        X[:, 2 * i + 1] = X[:, 2 * i] + share * rng.standard_normal(n)
    y = (X[:, 1] - X[:, 0]) / share + X[:, 8] + 0.5 * rng.standard_normal(n)
    return Problem.from_arrays(X, y)


def test_a_bound_alone_is_no_proof() -> None:
    X, y = make_classes()
    problem = Problem.from_arrays(X, y)
    best = min(problem.objective(S) for S in combinations(range(9), 3))
    tree = BoundTree(problem, 0.5 * best)
    search = BestFirstSearch(problem, tree, [(0, 1, 2)])
    assert search.run(Monitor(), 2) == Status.CONVERGED
    assert search.lower == 0.5 * best
    assert not search.is_closed
    assert not search.is_proven
    assert search.upper == problem.objective([0, 1, 2])
    # One that meets the set that is known is one.
    search = BestFirstSearch(problem, BoundTree(problem, problem.objective([0, 1, 2])), [(0, 1, 2)])
    assert search.run(Monitor(), 1) == Status.OPTIMAL


@compiled
def test_without_bounds_there_may_be_three_columns_at_most() -> None:
    problem = _near()
    column_problem = make_column_problem(problem, 4)
    assert column_problem is not None
    everything = Relaxed(np.arange(9), np.zeros(9), np.zeros(9), inf)
    E = column_problem.block(np.arange(9))
    with pytest.raises(ValueError, match="too many sets of 4 columns"):
        ColumnTree(column_problem, everything, E, tolerance=0.0, doubt=1e-4)


@compiled
def test_a_stop_gives_everything_back() -> None:
    X, y = make_classes()
    for k in (1, 2, 3, 4, 6):
        tree = _tree(Problem.from_arrays(X, y), k)
        (root,) = tree.root()
        explored = tree.explore(root, inf, 1, _stop(1), quick=False)
        assert explored.found == []
        (left,) = explored.left
        assert left.bound == root.bound
        branch: Any = left.state
        assert sorted(branch.free.tolist()) == list(range(9))
        assert branch.inside.size == 0


@compiled
def test_what_is_not_below_the_ceiling_is_passed_over() -> None:
    X, y = make_classes()
    problem = Problem.from_arrays(X, y)
    for k in (1, 2, 3, 4, 5):
        best = min(problem.objective(S) for S in combinations(range(9), k))
        tree = _tree(problem, k)
        (root,) = tree.root()
        for n_best in (1, 3):
            below = tree.explore(root, best * (1 - 1e-6), n_best, _stop(), quick=False)
            assert (below.found, below.left, below.is_sure) == ([], [], True)
            above = tree.explore(root, best * (1 + 1e-6), n_best, _stop(), quick=False)
            assert min(one.objective for one in above.found) == pytest.approx(best)


@compiled
def test_the_best_few_of_a_part_are_all_found() -> None:
    X, Y = make_numbers(c=2)
    problem = Problem.from_arrays(X, Y, ridge=0.05)
    for k in (1, 2, 3, 4, 7):
        every = {S: problem.objective(S) for S in combinations(range(9), k)}
        tree = _tree(problem, k)
        for n_best in (1, 2, 5, 1000):
            explored = tree.explore(tree.root()[0], inf, n_best, _stop(), quick=False)
            found = {one.columns: one.objective for one in explored.found}
            expected = sorted(every, key=every.__getitem__)[:n_best]
            assert found == pytest.approx({S: every[S] for S in expected})
            assert len(explored.found) == len(expected)


@compiled
def test_every_set_that_is_found_has_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    # Columns that are left when others were put aside may be too few for a set.
    monkeypatch.setattr(module, "QUICK_BUDGET", 100)
    for d, k in ((5, 5), (6, 5), (8, 6)):
        X, y = make_numbers(d=d)
        problem = Problem.from_arrays(X, y)
        tree = _tree(problem, k)
        parts = tree.root()
        while parts:
            explored = tree.explore(parts.pop(), inf, 4, _stop(), quick=True)
            assert {len(one.columns) for one in explored.found} <= {k}
            for part in explored.left:
                branch: Any = part.state
                assert len(branch.inside) + len(branch.free) >= k
            parts += explored.left


@compiled
@pytest.mark.parametrize("c", [1, 2, 3, 9])
@pytest.mark.parametrize("d", [13, 14, 15, 16, 24])
@pytest.mark.parametrize("taken", [0, 2])
def test_the_bound_of_a_part_is_that_of_numpy(
    c: int, d: int, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With three columns to choose, a part is bounded once and then looked through in batches.
    monkeypatch.setattr(module, "QUICK_BUDGET", 1)
    rng = np.random.default_rng(100 * c + d)
    X, Y = make_numbers(n=60, d=d, c=c, seed=d)
    tree = _tree(Problem.from_arrays(X, Y, ridge=0.1), 3 + taken)
    column_problem = tree.column_problem
    inside, free = np.arange(taken, dtype=np.int64), np.arange(taken, d, dtype=np.int64)
    E, C = column_problem.block(np.arange(d)), column_problem.C
    delta = tree.relaxed.delta[free] * rng.uniform(0.3, 1.0, d - taken)
    # Some columns are light, some so much so that they take no part.
    weights = rng.uniform(0.2, 1.0, d - taken)
    weights[3:6] = 1e-4
    weights *= 3.0 / weights.sum()
    assert weights.max() < 1.0
    assert (delta > 25.0 * weights).any()
    by = np.linalg.solve(E[:taken, :taken], E[:taken])
    E, C = E - E[:, :taken] @ by, C - by.T @ C[:taken]
    expected, _ = bound_of(E[np.ix_(free, free)], C[free], delta, weights, 3)
    before = column_problem.total - _objective_of(tree, inside)
    part = Node(-inf, ColumnNode(inside, free, delta, weights))
    (left,) = tree.explore(part, inf, 1, _stop(), quick=True).left
    assert column_problem.total - left.bound == pytest.approx(before + expected, rel=1e-9)


@compiled
@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("n_columns", [19, 26])
def test_batches_of_triples_that_there_was_no_time_for(
    k: int, n_columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_BUDGET", 1)
    X, Y = make_numbers(n=60, d=n_columns, c=2, seed=1)
    problem = Problem.from_arrays(X, Y, ridge=0.05)
    tree = _tree(problem, k)
    inside = np.array([7, 11][: k - 3], dtype=np.int64)
    free = np.setdiff1d(np.arange(n_columns), inside)
    rng = np.random.default_rng(0)
    delta = tree.relaxed.delta[free] * rng.uniform(0.3, 1.0, len(free))
    weights = rng.uniform(0.1, 0.5, len(free))
    weights *= 3.0 / weights.sum()
    given, found, parts = dict(zip(free.tolist(), delta, strict=True)), set(), 0
    left = [Node(0.0, ColumnNode(inside, free, delta, weights))]
    while left:
        (part,) = left
        branch: Any = part.state
        # Each column keeps its own part of the diagonal.
        assert branch.delta.tolist() == [given[j] for j in branch.free.tolist()]
        assert branch.inside.tolist() == inside.tolist()
        explored = tree.explore(part, inf, 10_000, _stop(), quick=True)
        found |= {one.columns for one in explored.found}
        left, parts = explored.left, parts + 1
    sets = {tuple(sorted((*inside.tolist(), *S))) for S in combinations(free.tolist(), 3)}
    assert sets <= found
    assert parts > 1


@compiled
@pytest.mark.parametrize("taken", range(6))
def test_parts_with_few_columns_left_to_choose(taken: int) -> None:
    X, Y = make_numbers(d=10, c=2)
    problem = Problem.from_arrays(X, Y, ridge=0.01)
    tree = _tree(problem, 5)
    (root,) = tree.root()
    branch: Any = root.state
    inside, free = branch.free[::-1][:taken].copy(), branch.free[: 10 - taken].copy()
    part = Node(0.0, ColumnNode(inside, free, branch.delta[free], branch.weights[free]))
    sets = [(*inside.tolist(), *S) for S in combinations(free.tolist(), 5 - taken)]
    every = {tuple(sorted(S)): problem.objective(S) for S in sets}
    explored = tree.explore(part, inf, 1000, _stop(), quick=False)
    assert {one.columns: one.objective for one in explored.found} == pytest.approx(every)
    best = min(every.values())
    for ceiling in (best * (1 + 1e-9), best * (1 - 1e-9)):
        found = tree.explore(part, ceiling, 1, _stop(), quick=False).found
        assert [one.objective for one in found] == pytest.approx([best] * (ceiling > best))


@compiled
@pytest.mark.parametrize("seed", range(12))
def test_a_diagonal_that_was_raised_too_far_is_taken_back(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From far below, the step of Newton leads beyond what keeps E − Δ positive definite.
    monkeypatch.setattr(module, "QUICK_BUDGET", 30_000)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 16))
    X += 0.5 * rng.standard_normal((50, 16))
    Y = X @ rng.standard_normal((16, 2)) + rng.standard_normal((50, 2))
    tree = _tree(Problem.from_arrays(X, Y), 7)
    E = tree.column_problem.block(np.arange(16))
    (root,) = tree.root()
    branch: Any = root.state
    low = branch.delta * 10.0 ** rng.uniform(-3.0, 0.0, 16)
    parts, seen = [Node(0.0, branch._replace(delta=low))], 0
    raised = False
    while parts and seen < 30:
        part = parts.pop()
        branch, seen = part.state, seen + 1
        order = [*branch.inside.tolist(), *branch.free.tolist()]
        M = E[np.ix_(order, order)]
        M[np.diag_indices_from(M)] -= np.append(np.zeros(len(branch.inside)), branch.delta)
        assert np.linalg.eigvalsh(M)[0] > 0
        raised |= bool((branch.delta > low[branch.free]).any())
        parts += tree.explore(part, inf, 1, _stop(), quick=True).left
    assert raised


def _objective_of(tree: ColumnTree, inside: np.ndarray) -> float:
    """The objective of the columns that are in."""
    problem = tree.column_problem.problem
    return problem.objective(tree.columns_of(inside)) if len(inside) else problem.total


@compiled
def test_columns_that_must_be_in_are_in() -> None:
    X, y = make_classes()
    problem = Problem.from_arrays(X, y, ridge=0.1).with_constraints(include=[2, 7], exclude=[4])
    tree = _tree(problem, 5)
    explored = tree.explore(tree.root()[0], inf, 1000, _stop(), quick=False)
    sets = [S for S in combinations(range(9), 5) if {2, 7} <= set(S) and 4 not in S]
    expected = {S: problem.objective(S) for S in sets}
    assert {one.columns: one.objective for one in explored.found} == pytest.approx(expected)


@compiled
def test_near_columns_are_handed_over_to_be_priced() -> None:
    problem = _near()
    tree = _tree(problem, 2)
    assert tree.doubt > 0
    explored = tree.explore(tree.root()[0], 0.99 * problem.total, 3, _stop(), quick=False)
    assert explored.is_sure
    assert (0, 1) in {one.columns for one in explored.found if one.objective == 0.0}
    search = BestFirstSearch(problem, tree, n_best=3)
    search.run(Monitor(), 1)
    every = sorted((problem.objective(S), S) for S in combinations(range(9), 2))
    assert [(one.objective, one.columns) for one in search.sets] == every[:3]


@compiled
@pytest.mark.parametrize("k", [2, 3])
def test_too_many_sets_in_doubt_are_no_proof(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DOUBTS", 1)
    problem = _near(pairs=3)
    tree = _tree(problem, k)
    explored = tree.explore(tree.root()[0], inf, 1, _stop(), quick=False)
    assert not explored.is_sure
    search = BestFirstSearch(problem, tree)
    search.run(Monitor(), 1)
    best = min(problem.objective(S) for S in combinations(range(9), k))
    assert not search.is_closed
    assert search.lower <= best
    monkeypatch.undo()
    search = BestFirstSearch(problem, _tree(problem, k))
    search.run(Monitor(), 1)
    assert search.is_closed
    assert search.upper == pytest.approx(best)


@compiled
def test_fewer_rows_than_columns() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((9, 24)), rng.standard_normal((9, 3))
    problem = Problem.from_arrays(X, Y)
    for k in (1, 2, 3):
        tree = _tree(problem, k)
        assert tree.doubt > 0
        search = BestFirstSearch(problem, tree, n_best=5)
        search.run(Monitor(), 1)
        every = sorted(problem.objective(S) for S in combinations(range(24), k))
        assert search.is_closed
        assert [one.objective for one in search.sets] == pytest.approx(every[:5])


@compiled
def test_a_stop_ends_a_long_exploration_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUDGET", 10**15)
    tree = _tree(Problem.from_arrays(*load_digits(return_X_y=True)), 14)
    stop, took = _stop(), float("nan")
    timer = threading.Timer(0.3, lambda: stop.__setitem__(0, 1))
    timer.start()
    begun = time.perf_counter()
    explored = tree.explore(tree.root()[0], inf, 1, stop, quick=False)
    took = time.perf_counter() - begun
    timer.join()
    assert 0.25 < took < 5.0
    assert explored.left
    assert explored.nodes > 0


@compiled
def test_the_budget_ends_an_exploration(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = _tree(Problem.from_arrays(*load_digits(return_X_y=True)), 14)
    nodes = []
    for budget in (10**5, 10**7):
        monkeypatch.setattr(module, "QUICK_BUDGET", budget)
        explored = tree.explore(tree.root()[0], inf, 1, _stop(), quick=True)
        assert 0 < len(explored.left) <= 15
        nodes.append(explored.nodes)
    assert nodes[0] < nodes[1]


@compiled
def test_an_exploration_does_the_same_every_time() -> None:
    problem = Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    seen = set()
    for _ in range(3):
        tree = _tree(problem, 12)
        explored = tree.explore(tree.root()[0], inf, 1, _stop(), quick=True)
        bounds = tuple(part.bound for part in explored.left)
        seen.add((explored.nodes, bounds, tuple(one.columns for one in explored.found)))
    assert len(seen) == 1


@compiled
def test_threads_have_a_workspace_each() -> None:
    problem = Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    tree = _tree(problem, 10)
    (root,) = tree.root()
    alone = tree.explore(root, 70.0, 1, _stop(), quick=False)
    answers: list[Any] = []
    barrier = threading.Barrier(3)

    def look() -> None:
        barrier.wait()
        answers.append(tree.explore(root, 70.0, 1, _stop(), quick=False))

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.found[0].columns for one in answers] == [alone.found[0].columns] * 3
    assert alone.found[0].objective == pytest.approx(63.0026, abs=1e-4)
    assert 1 <= len(tree._workspaces) <= 3
