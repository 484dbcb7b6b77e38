"""The tree over units: what its bounds rest on, and where it must not claim too much."""

from __future__ import annotations

from itertools import combinations
from math import inf

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from exactk import Problem, solve
from exactk.problem.constraints import Quota, Rules
from exactk.proof.best_first import BestFirstSearch, Node, NodeResult
from exactk.proof.unit_tree import Propagation, UnitTree
from exactk.proof.unrestricted_fit import UnrestrictedFit
from exactk.search.feasibility import Feasible, UndecidedError
from exactk.search.units import Units
from exactk.utils.monitor import Monitor
from tests.oracles.brute import make_classes, make_numbers


def _stop(value: int = 0) -> np.ndarray:
    return np.full(1, value, dtype=np.int64)


def _closed(problem: Problem, tree: UnitTree, n_best: int = 1) -> BestFirstSearch:
    search = BestFirstSearch(problem, tree, n_best=n_best)
    search.run(Monitor(), 1)
    assert search.is_closed
    return search


def _explored(tree: UnitTree, part: Node, ceiling: float = inf) -> NodeResult:
    return tree.explore(part, ceiling, 1, _stop(), quick=False)


def _near_copies(share: float = 1e-4, ridge: float = 0.0) -> Problem:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 8))
    X[:, 5] = X[:, 1] + share * rng.standard_normal(40)
    y = (X[:, 5] - X[:, 1]) / share + X[:, 2] + rng.standard_normal(40)
    return Problem.from_arrays(X, y, ridge=ridge)


@pytest.mark.parametrize("k", [3, 10, 20])
def test_proven_optima_of_a_real_table(k: int) -> None:
    problem = Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    search = _closed(problem, UnitTree(problem, k))
    assert search.upper == pytest.approx({3: 76.2388, 10: 63.0026, 20: 60.1553}[k], abs=1e-4)
    assert search.lower == search.upper


@pytest.mark.parametrize(
    "rules",
    [
        {"feature_groups": {"G": [0, 2, 3], "H": [20, 22]}, "max_correlation": 0.9},
        {"feature_groups": {"G": [0, 2, 3], "H": [20, 22]}, "count": "columns"},
        {
            "quotas": {
                "F": {"columns": [0, 1, 2, 20, 21], "at_most": 1},
                "O": {"columns": [7, 27], "at_most": 1},
            }
        },
        {"costs": list(range(30)), "budget": 60},
    ],
)
def test_the_best_under_rules_is_that_of_enumeration(rules: dict[str, object]) -> None:
    problem = Problem.from_arrays(*load_breast_cancer(return_X_y=True), ridge=0.1)
    problem = problem.with_constraints(**rules)  # type: ignore[arg-type]
    best = solve(problem, 3, "exhaustive")
    search = _closed(problem, UnitTree(problem, 3))
    assert search.sets[0].columns == tuple(best.support)
    assert search.upper == pytest.approx(best.objective)


def test_bounds_of_all_parts_hold_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactk.proof.unit_tree.QUICK", 5e-4)
    X, y = make_classes(n=80, d=14, seed=1)
    problem = Problem.from_arrays(X, y).with_constraints(feature_groups={"G": [0, 1]}, exclude=[3])
    tree = UnitTree(problem, 6)
    best = solve(problem, 6, "exhaustive").objective
    parts, found, rounds = tree.root(), inf, 0
    while parts:
        assert min([part.bound for part in parts] + [found]) <= best + tree.tolerance
        part = parts.pop(0)
        explored = tree.explore(part, inf, 1, _stop(), quick=True)
        assert all(left.bound >= part.bound for left in explored.left)
        found = min([found] + [one.objective for one in explored.found])
        parts += explored.left
        rounds += 1
    assert found == pytest.approx(best)
    assert rounds > 5


def test_a_stop_gives_everything_back() -> None:
    X, y = make_classes()
    tree = UnitTree(Problem.from_arrays(X, y), 4)
    (root,) = tree.root()
    explored = tree.explore(root, inf, 1, _stop(1), quick=False)
    assert explored.found == []
    assert [part.bound for part in explored.left] == [root.bound]


def test_what_is_not_below_the_ceiling_is_passed_over() -> None:
    X, y = make_classes()
    problem = Problem.from_arrays(X, y)
    tree = UnitTree(problem, 4)
    best = min(problem.objective(S) for S in combinations(range(9), 4))
    (root,) = tree.root()
    assert _explored(tree, root, best - tree.tolerance).found == []
    assert _explored(tree, root, best * (1 + 1e-6)).found


@pytest.mark.parametrize("ridge", [0.0, 1e-9])
def test_near_copies_are_priced_by_the_rows(ridge: float) -> None:
    problem = _near_copies(ridge=ridge)
    tree = UnitTree(problem, 3)
    assert not tree.allowed.is_well
    search = _closed(problem, tree, n_best=4)
    expected = sorted(problem.objective(S) for S in combinations(range(8), 3))[:4]
    assert {1, 5} <= set(search.sets[0].columns)
    assert [one.objective for one in search.sets] == pytest.approx(expected, abs=tree.tolerance)


def test_more_rows_than_are_read_leave_a_bound_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = _near_copies(1e-4)
    best = min(exact.objective(S) for S in combinations(range(8), 3))
    monkeypatch.setattr("exactk.problem.problem.FEW_VALUES", 10)
    problem = _near_copies(1e-4)
    tree = UnitTree(problem, 3)
    assert tree.root()[0].bound <= best
    search = BestFirstSearch(problem, tree)
    search.run(Monitor(), 1)
    # Sets that cannot be priced are not passed over in silence.
    assert search.lower <= best
    assert not search.is_sure
    assert not search.is_closed
    X = np.random.default_rng(0).standard_normal((40, 5))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    problem = Problem.from_arrays(X, X[:, 0] * X[:, 2])
    # Of a dependence the Gram matrix cannot tell how exact it is.
    assert UnitTree(problem, 2).root()[0].bound == 0.0


def test_fits_are_the_same_updated_and_anew() -> None:
    X, Y = make_numbers(n=50, d=9, c=2)
    problem = Problem.from_arrays(X, Y, ridge=0.01)
    allowed = UnrestrictedFit(problem, np.arange(9))
    fit, left = allowed.fit(np.arange(9)), list(range(9))
    for places in ([4], [0, 7], [2]):
        rise = fit.loss_together(np.array(places))
        left = [p for p in left if p not in places]
        fresh = problem.objective(left)
        assert fit.objective + rise == pytest.approx(fresh)
        fit = allowed.without(fit, np.array(places))
        assert fit.at.tolist() == left
        assert fit.objective == pytest.approx(fresh)
        assert fit.losses() == pytest.approx(
            [problem.objective([q for q in left if q != p]) - fresh for p in left]
        )
    prices = allowed.one_more(np.array([1, 3]), np.array([5, 6]), 0.0)
    assert prices == pytest.approx([problem.objective([1, 3, p]) for p in (5, 6)])
    assert allowed.one_more(np.zeros(0, dtype=np.intp), np.array([8]), 0.0) == pytest.approx(
        [problem.objective([8])]
    )


def test_columns_that_may_be_dependent_are_not_priced_in_closed_form() -> None:
    allowed = UnrestrictedFit(_near_copies(1e-4), np.arange(8))
    assert allowed.one_more(np.array([1, 5]), np.array([2]), 1e-4) is None
    prices = allowed.one_more(np.array([1]), np.array([2, 5]), 1e-4)
    assert prices is not None
    assert np.isfinite(prices).tolist() == [True, False]


def test_the_rules_narrow_a_part() -> None:
    X, y = make_classes(d=6)
    rules = Rules(
        quotas=(Quota("F", (0, 1), at_least=1), Quota("O", (2, 3), at_most=1)),
        costs=(5.0, 5.0, 1.0, 1.0, 1.0, 4.0),
        budget=10.0,
    )
    problem = Problem.from_arrays(X, y).with_rules(rules)
    narrow = Propagation(Feasible(Units(problem), 3))
    everything = np.arange(6)
    assert narrow([2], np.array([3, 4, 5])) is None  # none of F
    assert narrow([0, 1], np.array([2])) is None  # too dear
    assert narrow([2, 3], everything[[0, 1]]) is None  # two of O
    narrowed = narrow([0, 2], everything[[1, 3, 4, 5]])
    assert narrowed is not None
    assert narrowed[1].tolist() == [4, 5]
    narrowed = narrow([0], everything[[3, 4]])
    assert narrowed is not None
    assert sorted(narrowed[0]) == [0, 3, 4]  # all that are left are needed


def test_no_set_is_no_part() -> None:
    X, y = make_classes(d=6)
    problem = Problem.from_arrays(X, y).with_constraints(costs=[5] * 6, budget=9)
    tree = UnitTree(problem, 2)
    assert tree.root() == []
    assert _closed(problem, tree).sets == []


def test_what_could_not_be_decided_is_not_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_question(self: Feasible, chosen: object) -> None:
        raise UndecidedError("no time")

    X, y = make_classes(d=6)
    problem = Problem.from_arrays(X, y).with_constraints(max_correlation=0.9)
    monkeypatch.setattr(Feasible, "completed", open_question)
    with pytest.raises(UndecidedError):
        UnitTree(problem, 2)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_copies_make_up_the_number_as_in_solve(ridge: float) -> None:
    X, y = make_classes(d=5)
    X = np.column_stack([X[:, :3], 2.0 - X[:, 0], X[:, 3], X[:, 1]])
    problem = Problem.from_arrays(X, y, ridge=ridge)
    assert problem.candidates.tolist() == [0, 1, 2, 4]
    for k in (2, 4):
        tree = UnitTree(problem, k)
        found = _closed(problem, tree, n_best=100).sets
        expected = {S: problem.objective(S) for S in combinations((0, 1, 2, 4), k)}
        assert {one.columns: one.objective for one in found} == pytest.approx(expected)
        assert "copies" in " ".join(tree.assumptions)
    with pytest.warns(UserWarning, match="independent"):
        best = solve(problem, 5, "exhaustive")
    search = BestFirstSearch(problem, UnitTree(problem, 5))
    search.run(Monitor(), 1)
    assert search.sets[0].columns == tuple(best.support)
    # With a ridge other copies may do better.
    assert search.is_closed == (ridge == 0)
    assert search.lower == pytest.approx(0.0 if ridge else search.upper)
    barred = problem.with_constraints(exclude=[0, 5])
    assert _closed(barred, UnitTree(barred, 4)).sets[0].columns == (1, 2, 3, 4)


def test_copies_under_rules_are_kept_apart_if_that_can_be() -> None:
    X, y = make_classes(d=5)
    X = np.column_stack([X, 2.0 - X[:, 0]])
    costs = [3.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    problem = Problem.from_arrays(X, y, ridge=0.5)
    problem = problem.with_constraints(costs=costs, budget=7)
    for k in (3, 5):
        tree = UnitTree(problem, k)
        sets = [S for S in combinations(range(6), k) if sum(costs[j] for j in S) <= 7]
        apart = [S for S in sets if not {0, 5} <= set(S)]
        found = _closed(problem, tree, n_best=100).sets
        assert {one.columns for one in found} == set(apart or sets)
        assert len(tree.assumptions) == 1
    tight = problem.with_constraints(costs=costs, budget=8)
    assert UnitTree(tight, 6).assumptions == ()


def test_a_column_that_must_be_in_may_be_constant_in_a_fold() -> None:
    X, y = make_classes(d=6)
    X[:, 2] = 1.0
    rules = Rules(include=(2, 4))
    problem = Problem.from_arrays(X, y, ridge=0.1).with_rules(rules)
    found = _closed(problem, UnitTree(problem, 4), n_best=100).sets
    expected = {
        tuple(sorted((2, 4, *S))): problem.objective([4, *S]) for S in combinations((0, 1, 3, 5), 2)
    }
    assert {one.columns: one.objective for one in found} == pytest.approx(expected)
    everything = problem.with_rules(Rules(include=(0, 1, 3, 4)))
    found = _closed(everything, UnitTree(everything, 4), n_best=100).sets
    assert [one.columns for one in found] == [(0, 1, 3, 4)]


def test_fewer_rows_than_columns() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((8, 11)), rng.standard_normal(8)
    problem = Problem.from_arrays(X, y)
    for k in (2, 4):
        best = min(problem.objective(S) for S in combinations(range(11), k))
        assert _closed(problem, UnitTree(problem, k)).upper == pytest.approx(best)
    # Any seven fit eight rows: one such set is enough, and the others are not looked at.
    search = _closed(problem, UnitTree(problem, 8))
    assert search.upper <= 1e-12 * problem.total
    assert search.nodes < 100


def test_an_exploration_does_the_same_every_time() -> None:
    X, y = make_classes(n=60, d=18, seed=4)
    problem = Problem.from_arrays(X, y).with_constraints(max_correlation=0.95)
    counts = set()
    for _ in range(3):
        tree = UnitTree(problem, 7)
        explored = tree.explore(tree.root()[0], inf, 1, _stop(), quick=True)
        counts.add((explored.nodes, len(explored.left), explored.found[-1].columns))
    assert len(counts) == 1
