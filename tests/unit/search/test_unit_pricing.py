"""Prices of moves by whole units, against fits of the sets themselves."""

from __future__ import annotations

import numpy as np
import pytest

from exactk import Problem
from exactk.search.unit_pricing import UnitPricing
from exactk.search.unit_search import unit_entry_order
from exactk.search.units import Units

GROUPS = {"G": ["x1", "x4"], "H": ["x0", "x6", "x8"], "J": ["x3", "x9"]}


def _problem(ridge: float, *, dependent: bool = False, outputs: int = 2) -> Problem:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 12)) @ (np.eye(12) + 0.4 * rng.standard_normal((12, 12)))
    if dependent:
        X[:, 9] = X[:, 1] + X[:, 4]
        X[:, 5] = 2.0 * X[:, 3] - X[:, 8]
    Y = X @ rng.standard_normal((12, outputs)) + 3.0 * rng.standard_normal((40, outputs))
    names = [f"x{j}" for j in range(12)]
    problem = Problem.from_arrays(X, Y, feature_names=names, ridge=ridge)
    return problem.with_constraints(feature_groups=GROUPS)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("dependent", [False, True])
def test_every_move_has_the_price_that_the_fits_say(ridge: float, dependent: bool) -> None:
    problem = _problem(ridge, dependent=dependent)
    units = Units(problem)
    blocks = UnitPricing(units)
    members = [units.names.index(name) for name in ("x2", "G", "x5", "J")]

    def f(chosen: list[int]) -> float:
        return problem.objective(units.columns_of(chosen))

    blocks.load(members)
    close = {"rel": 1e-7, "abs": 1e-7 * problem.total}
    assert blocks.objective == pytest.approx(f(members), **close)
    outside = [u for u in range(len(units)) if u not in members]
    gains = blocks.gains()
    for u in outside:
        assert gains[u] == pytest.approx(f(members) - f([*members, u]), **close)
    losses = blocks.losses()
    for i in range(len(members)):
        rest = members[:i] + members[i + 1 :]
        assert losses[i] == pytest.approx(f(rest) - f(members), **close)
        allowed = np.zeros(len(units), dtype=bool)
        allowed[outside] = True
        falls = blocks.swap_gains(i, allowed)
        for u in outside:
            assert falls[u] == pytest.approx(f(members) - f([*rest, u]), **close)
    both = blocks.loss_together([0, 3])
    assert both == pytest.approx(f(members[1:3]) - f(members), **close)


def test_the_steepest_swap_is_found_although_most_are_not_priced() -> None:
    problem = _problem(0.1)
    units = Units(problem)
    blocks = UnitPricing(units)
    members = [0, 1, len(units) - 1]
    blocks.load(members)
    allowed = np.ones(len(units), dtype=bool)
    allowed[members] = False
    move = blocks.best_swap([allowed, None, allowed])
    before = problem.objective(units.columns_of(members))
    prices = {
        (i, u): before - problem.objective(units.columns_of([m for m in members if m != i] + [u]))
        for i in (members[0], members[2])
        for u in np.flatnonzero(allowed)
    }
    assert move is not None
    assert (move.out, move.unit) == max(prices, key=lambda key: prices[key])
    assert move.gain == pytest.approx(max(prices.values()))


def test_an_order_of_entry_keeps_groups_together_and_is_greedy() -> None:
    problem = _problem(0.1)
    chosen = problem.find_columns(["G", "H", "x2"])
    order = unit_entry_order(problem, chosen)
    assert sorted(order) == list(chosen)
    units = {"G": (1, 4), "H": (0, 6, 8), "x2": (2,)}
    first = min(units, key=lambda name: problem.objective(units[name]))
    assert tuple(sorted(order[: len(units[first])])) == units[first]


def test_a_group_that_copies_another_is_no_choice() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    X[:, 3:5] = -2.0 * X[:, 1:3] + 1.0
    problem = Problem.from_arrays(X, X[:, 1] + X[:, 2] + 0.1 * X[:, 5], ridge=0.3)
    problem = problem.with_constraints(feature_groups={"G": [1, 2], "copy": [3, 4]})
    units = Units(problem)
    assert [units.names[u] for u in np.flatnonzero(units.selectable)] == ["x0", "x5", "G"]
    insisting = problem.with_constraints(
        feature_groups={"G": [1, 2], "copy": [3, 4]}, include=["copy"]
    )
    assert "copy" in [Units(insisting).names[u] for u in Units(insisting).included]
