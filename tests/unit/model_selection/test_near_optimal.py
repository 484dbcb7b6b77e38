"""Near sets: the tree behind them, its limits, and what is left where it is given up."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from exactk import Problem, explain
from exactk.model_selection import near_optimal
from exactk.proof.unit_tree import UnitTree


def _problem(share: float | None, ridge: float) -> Problem:
    """Eight columns, the last a copy of the first, or that but for a share of noise."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 8))
    X[:, 7] = 1.0 - 2.0 * X[:, 0] if share is None else X[:, 0] + share * rng.standard_normal(50)
    return Problem.from_arrays(X, X[:, 0] + X[:, 1] + rng.standard_normal(50), ridge=ridge)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_a_copy_takes_the_place_of_its_original(ridge: float) -> None:
    problem = _problem(None, ridge)
    why = explain(problem, 3, tolerance=0.1)
    bound = why.objective * 1.1
    expected = {
        S
        for S in combinations(range(8), 3)
        if problem.objective(S) <= bound and not {0, 7} <= set(S)
    }
    assert why.is_complete
    assert {tuple(support) for support in why.alternatives["support"]} == expected
    # Who has both asks for sets that may have both.
    both = explain(problem, [0, 1, 7], tolerance=0.5)
    assert both.is_complete
    expected = {
        S for S in combinations(range(8), 3) if problem.objective(S) <= 1.5 * both.objective
    }
    assert {tuple(support) for support in both.alternatives["support"]} == expected


def test_near_copies_do_not_keep_the_list_from_being_complete() -> None:
    problem = _problem(1e-4, 0.0)
    why = explain(problem, 3, tolerance=0.1)
    expected = {S for S in combinations(range(8), 3) if problem.objective(S) <= 1.1 * why.objective}
    assert why.is_complete
    assert {tuple(support) for support in why.alternatives["support"]} == expected


def test_too_many_branches_leave_what_swaps_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(0.1, 0.1)
    whole = explain(problem, 3, tolerance=0.2)
    monkeypatch.setattr(near_optimal, "MOST_NODES", -1)
    why = explain(problem, 3, tolerance=0.2)
    assert not why.is_complete
    supports = [tuple(support) for support in why.alternatives["support"]]
    assert set(supports) <= {tuple(support) for support in whole.alternatives["support"]}
    assert tuple(why.support) in supports
    assert len(supports) > 1


def test_an_interrupt_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: UnitTree, *_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(UnitTree, "explore", stop)
    problem = _problem(0.1, 0.1).with_constraints(max_correlation=0.99)
    with pytest.raises(KeyboardInterrupt):
        explain(problem, [1, 2], tolerance=5.0)
