"""Explanations against enumeration and plain fits, and the limits of the list of near sets."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from exactk import InputError, Problem, Result, Status, explain, solve
from exactk.model_selection import explain as module
from exactk.proof.column_tree import ColumnTree
from exactk.proof.unit_tree import UnitTree
from exactk.search.unit_pricing import UnitPricing

NAMES = [f"v{j}" for j in range(9)]


def _problem(seed: int = 0, ridge: float = 0.05, n: int = 60) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, 9)) + rng.standard_normal((n, 9))
    X[:, 7] = X[:, 2] + 0.2 * rng.standard_normal(n)
    Y = X @ rng.standard_normal((9, 2)) + 3.0 * rng.standard_normal((n, 2))
    return Problem.from_arrays(X, Y, ridge=ridge, feature_names=NAMES)


def _sets(problem: Problem, k: int) -> dict[tuple[int, ...], float]:
    return {S: problem.objective(S) for S in combinations(range(problem.n_features), k)}


@pytest.mark.parametrize("k", [1, 3, 5])
def test_losses_substitutes_and_prices_are_those_of_the_sets(k: int) -> None:
    problem = _problem()
    result = solve(problem, k)
    why = explain(problem, features=result)
    best = result.objective
    assert why.selected == result.selected
    for row in why.selected_features:
        rest = [p for p in result.support if [p] != row["columns"]]
        assert row["loss"] == pytest.approx(problem.objective(rest) - best)
        prices = {
            NAMES[p]: problem.objective([*rest, p]) - best
            for p in range(9)
            if p not in result.support
        }
        assert row["substitute"] == min(prices, key=lambda name: prices[name])
        assert row["substitution_cost"] == pytest.approx(min(prices.values()))
        assert row["loss_fraction"] == pytest.approx(row["loss"] / problem.total)
    for row in why.runners_up:
        p = NAMES.index(row["feature"])
        by_swap = {
            NAMES[i]: problem.objective([q for q in result.support if q != i] + [p]) - best
            for i in result.support
        }
        assert row["substitution_cost"] == pytest.approx(min(by_swap.values()))
        assert row["instead_of"] == min(by_swap, key=lambda name: by_swap[name])


@pytest.mark.parametrize("seed", range(4))
def test_why_not_gives_the_best_set_with_it_and_its_regret(seed: int) -> None:
    problem = _problem(seed)
    result = solve(problem, 4)
    outside = [j for j in range(9) if j not in result.support]
    why = explain(problem, features=result, why_not=[NAMES[j] for j in outside])
    sets = _sets(problem, 4)
    for j, row in zip(outside, why.why_not, strict=True):
        containing = {S: f for S, f in sets.items() if j in S}
        best = min(containing, key=lambda S: containing[S])
        assert row["regret"] == pytest.approx(containing[best] - result.objective, abs=1e-9)
        assert set(row["features"]) == {NAMES[p] for p in best}
        assert set(row["added"]) == {NAMES[p] for p in best if p not in result.support}
        assert set(row["removed"]) == {NAMES[p] for p in result.support if p not in best}


@pytest.mark.parametrize("tolerance", [0.0, 0.03, 0.2])
def test_near_sets_are_all_that_enumeration_finds(tolerance: float) -> None:
    problem = _problem(5)
    why = explain(problem, k=4, tolerance=tolerance, max_sets=1000)
    # The oracle rounds differently.
    bound = why.objective * (1 + tolerance) * (1 + 1e-12)
    expected = {S: f for S, f in _sets(problem, 4).items() if f <= bound}
    assert why.is_complete
    found = {tuple(row["support"]): row["objective"] for row in why.alternatives}
    assert found.keys() == expected.keys()
    for S, f in expected.items():
        assert found[S] == pytest.approx(f)
    assert why.alternatives["objective"] == sorted(why.alternatives["objective"])


def test_a_list_that_is_cut_short_does_not_claim_to_be_complete() -> None:
    problem = _problem(5)
    why = explain(problem, k=4, tolerance=0.3, max_sets=5)
    assert len(why.alternatives) == 5
    assert not why.is_complete
    everything = sorted(_sets(problem, 4).values())
    assert why.alternatives["objective"][0] == pytest.approx(everything[0])


def test_a_wide_table_gets_sets_by_swaps_and_says_that_there_may_be_others() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 120))
    X[:, 60] = X[:, 3] + 0.01 * rng.standard_normal(50)
    problem = Problem.from_arrays(X, X[:, 3] + X[:, 4] + 0.3 * rng.standard_normal(50), ridge=0.1)
    why = explain(problem, k=2, tolerance=0.05)
    assert not why.is_complete
    assert [3, 4] in why.alternatives["support"]
    assert [4, 60] in why.alternatives["support"]
    for row in why.alternatives:
        assert row["objective"] == pytest.approx(problem.objective(row["support"]))


def test_members_that_stand_in_for_each_other_are_a_pair() -> None:
    problem = _problem()
    f, best = problem.objective, problem.objective([2, 4, 5, 7])
    pairs = explain(problem, features=[2, 7, 4, 5]).pairs
    rows = {(row["first"], row["second"]): row for row in pairs}
    both = f([4, 5]) - best
    single = (f([2, 4, 5]) - best) + (f([4, 5, 7]) - best)
    assert rows["v2", "v7"]["loss_both"] == pytest.approx(both)
    assert rows["v2", "v7"]["overlap"] == pytest.approx(1 - single / both)
    assert ("v4", "v5") not in rows


def test_constraints_are_kept_by_substitutes_sets_and_regrets() -> None:
    problem = _problem().with_constraints(
        include=["v0"], exclude=["v8"], feature_groups={"G": ["v1", "v3"]}, max_correlation=0.95
    )
    why = explain(problem, k=4, why_not=["G", "v8", "v1"], tolerance=0.5, max_sets=1000)
    row = {row["feature"]: row for row in why.selected_features}["v0"]
    assert row["included"]
    assert row["substitute"] is None
    for other in why.alternatives:
        support = set(other["support"])
        assert 0 in support
        assert 8 not in support
        assert len(support & {1, 3}) != 1
        assert not {2, 7} <= support  # correlated above the limit
    assert why.is_complete
    asked = {row["feature"]: row for row in why.why_not}
    assert "excluded" in asked["v8"]["note"]
    assert "v8" in asked["v8"]["features"]
    assert "v1" not in asked  # it is a part of G, which is what is answered for
    units = [(p,) for p in (0, 2, 4, 5, 6, 7)] + [(1, 3)]
    with_G = [
        problem.objective(sorted({p for unit in chosen for p in unit}))
        for chosen in combinations(units, 4)
        if (0,) in chosen and (1, 3) in chosen and not {(2,), (7,)} <= set(chosen)
    ]
    assert asked["G"]["regret"] == pytest.approx(min(with_G) - why.objective, abs=1e-9)


def test_a_constant_a_copy_and_a_member_are_named_as_such() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[:, 1] = 3.0
    X[:, 4] = 1.0 - 2.0 * X[:, 0]
    problem = Problem.from_arrays(X, X[:, 0] + X[:, 2], ridge=0.1)
    why = explain(problem, k=2, why_not=["x0", "x1", "x4"])
    member, constant, copy = why.why_not
    assert member["regret"] == 0.0
    assert "constant" in constant["note"]
    assert "duplicate of 'x0'" in copy["note"]
    assert copy["regret"] == pytest.approx(0.0, abs=1e-9)


def test_a_better_set_is_reported() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    problem = Problem.from_arrays(X, y)
    why = explain(problem, features=[0, 1, 2], tolerance=0.0, max_sets=5000)
    assert why.is_complete
    best = solve(problem, 3).objective
    assert why.alternatives["objective"][0] == pytest.approx(best)
    assert "better set" in why.message


def test_moments_are_enough() -> None:
    X, y = load_diabetes(return_X_y=True)
    problem = Problem.from_arrays(X, y, ridge=0.1, task="regression")
    rows, target = problem.rows, problem.target
    assert rows is not None
    assert target is not None
    alone = Problem.from_moments(rows.moments(target, None), ridge=0.1)
    first, second = explain(problem, k=4, why_not=[0]), explain(alone, k=4, why_not=[0])
    assert first.selected_features["substitute"] == second.selected_features["substitute"]
    np.testing.assert_allclose(first.selected_features["loss"], second.selected_features["loss"])
    np.testing.assert_allclose(first.why_not["regret"], second.why_not["regret"], atol=1e-8)


def test_it_can_be_written_down() -> None:
    why = explain(_problem(), k=3, why_not=["v0"])
    content = json.loads(why.to_json())
    assert content["selected"] == list(why.selected)
    assert len(content["selected_features"]) == 3
    assert content["status"] == "converged"
    assert why.to_frame().shape == (3, 8)
    assert why.table == why.selected_features


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"k": 3, "why_not": ["v77"]}, "why_not"),
        ({"k": 3, "why_not": [99]}, "why_not"),
        ({"k": 3, "why_not": [True]}, "why_not"),
        ({"k": 3, "tolerance": -0.1}, "tolerance"),
        ({"k": 3, "max_sets": 0}, "max_sets"),
        ({"k": 10}, "k"),
        ({}, "k"),
        ({"k": 3, "loss": "huber"}, "loss"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(options: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InputError) as error:
        explain(_problem(), **options)
    assert error.value.parameter == parameter


def test_a_selection_of_another_ridge_is_refused() -> None:
    with pytest.raises(InputError) as error:
        explain(_problem(), ridge=1.0, features=solve(_problem(), 2))
    assert error.value.parameter == "ridge"


def test_a_table_is_read_like_a_problem() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    problem = Problem.from_arrays(X, y).with_ridge("auto").with_constraints(exclude=[0])
    one = explain(X, y, k=3, why_not=5, constraints={"exclude": [0]})
    other = explain(problem, k=3, why_not="x5")
    assert one.to_dict() == other.to_dict()
    result = solve(Problem.from_arrays(X, y, ridge=0.3), 3)
    assert explain(X, y, features=result).objective == pytest.approx(result.objective)
    assert len(explain(problem, k=2).why_not) == 0


def test_a_constant_column_in_a_group_is_no_column_of_the_sets() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 6))
    X[:, 1] = 3.0
    y = X[:, 0] + X[:, 3] + 0.5 * X[:, 4] + rng.standard_normal(60)
    problem = Problem.from_arrays(X, y, ridge=0.1)
    problem = problem.with_constraints(feature_groups={"g": [0, 1], "h": [3, 4]})
    why = explain(problem, k=2, tolerance=5.0)
    units = [(0, 1), (3, 4), (2,), (5,)]
    expected = {
        tuple(sorted(one + other)): problem.objective([*one, *other])
        for one, other in combinations(units, 2)
    }
    assert why.is_complete
    found = {tuple(row["support"]): row["objective"] for row in why.alternatives}
    assert found == pytest.approx(expected)


def test_a_perfect_fit_has_itself_among_its_equals() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 6))
    why = explain(Problem.from_arrays(X, X[:, 0] + X[:, 1]), k=3)
    assert why.objective == pytest.approx(0.0, abs=1e-12)
    assert why.objective >= 0.0
    assert {tuple(s) for s in why.alternatives["support"]} == {(0, 1, p) for p in range(2, 6)}


def test_numbers_mean_the_columns_of_the_table() -> None:
    import polars as pl

    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"colour": ["red", "blue", "white"] * 10, "a": rng.normal(size=30),
         "b": rng.normal(size=30), "z": rng.normal(size=30)}
    )  # fmt: skip
    y = frame["a"].to_numpy() + frame["b"].to_numpy()
    problem = Problem.from_arrays(frame, y, ridge=0.1)
    result = solve(problem, 2)
    why = explain(problem, features=result)
    assert {row["feature"]: row["columns"] for row in why.selected_features} == {"a": [1], "b": [2]}
    assert why.support.tolist() == [1, 2]
    assert [1, 2] in why.alternatives["support"]


def test_it_reads_as_text() -> None:
    why = explain(_problem().with_constraints(exclude=["v3"]), k=3, why_not=["v0", "v3"])
    lines = repr(why).splitlines()
    for row in why.selected_features:
        line = next(line for line in lines if line.startswith(row["feature"]))
        assert f"{row['loss_fraction']:.2%}" in line
    # However long a note is, all of it is there.
    assert f"v3: {why.why_not[1]['note']}" in lines
    short = explain(_problem(5), k=4, tolerance=0.3, max_sets=5)
    assert "max_sets" in short.message
    assert f"{short.message}." in repr(short).lower()


@pytest.mark.parametrize(("after", "rows"), [(1, None), (2, 0), (3, 1), (4, 2)])
def test_an_interrupt_keeps_what_was_found(
    after: int, rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The searches are those of k, and of each of two features that were not selected."""
    problem, calls = _problem(5), 0
    outside = [j for j in range(9) if j not in solve(problem, 4).support][:2]
    whole = explain(problem, k=4, why_not=outside, tolerance=0.3, max_sets=1000)
    assert (whole.status, whole.is_complete) == (Status.CONVERGED, True)

    def stopped(*given: Any, **options: Any) -> Result:
        nonlocal calls
        calls += 1
        return replace(solve(*given, **options), status=Status.INTERRUPTED if calls == after else
                       Status.CONVERGED)  # fmt: skip

    def explored(self: Any, *given: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "solve", stopped)
    monkeypatch.setattr("exactk.question.solve", stopped)
    monkeypatch.setattr(ColumnTree, "explore", explored)
    monkeypatch.setattr(UnitTree, "explore", explored)
    asked = {"why_not": outside, "tolerance": 0.3, "max_sets": 1000}
    if rows is None:
        with pytest.raises(KeyboardInterrupt):
            explain(problem, k=4, **asked)
        return
    why = explain(problem, k=4, **asked)
    assert (why.status, why.is_complete) == (Status.INTERRUPTED, False)
    assert "stopped" in why.message
    assert why.why_not == whole.why_not[:rows]
    assert why.selected_features == whole.selected_features
    assert set(why.selected) in [set(row["features"]) for row in why.alternatives]


def test_an_interrupt_of_swaps_keeps_the_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, after = _problem(5), 3
    monkeypatch.setattr(module, "MOST_COLUMNS", 0)
    whole = explain(problem, k=4, tolerance=0.3, max_sets=1000)
    load, calls = UnitPricing.load, 0

    def stopped(self: UnitPricing, members: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 2 + after:
            raise KeyboardInterrupt
        load(self, members)

    monkeypatch.setattr(UnitPricing, "load", stopped)
    why = explain(problem, features=list(whole.selected), tolerance=0.3, max_sets=1000)
    assert why.status == Status.INTERRUPTED
    assert 1 < len(why.alternatives) < len(whole.alternatives)


def test_a_time_limit_ends_the_list() -> None:
    rng = np.random.default_rng(1)
    problem = Problem.from_arrays(rng.standard_normal((50, 120)), rng.standard_normal(50))
    result = solve(problem.with_ridge(0.1), 6, "greedy")
    why = explain(problem, ridge=0.1, features=result, tolerance=0.5, time_limit=1e-6)
    assert (why.status, why.is_complete) == (Status.TIME_LIMIT, False)
    assert len(why.alternatives) >= 1


def _with_duplicate(share: float | None, ridge: float) -> Problem:
    """Eight columns, the last a copy of the first, or that but for a share of noise."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 8))
    X[:, 7] = 1.0 - 2.0 * X[:, 0] if share is None else X[:, 0] + share * rng.standard_normal(50)
    return Problem.from_arrays(X, X[:, 0] + X[:, 1] + rng.standard_normal(50), ridge=ridge)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_a_copy_takes_the_place_of_its_original(ridge: float) -> None:
    problem = _with_duplicate(None, ridge)
    why = explain(problem, k=3, tolerance=0.1)
    near = {S for S, f in _sets(problem, 3).items() if f <= 1.1 * why.objective}
    assert why.is_complete
    found = {tuple(support) for support in why.alternatives["support"]}
    assert found == {S for S in near if not {0, 7} <= set(S)}
    # Who has both asks for sets that may have both.
    both = explain(problem, features=[0, 1, 7], tolerance=0.5)
    assert both.is_complete
    near = {S for S, f in _sets(problem, 3).items() if f <= 1.5 * both.objective}
    assert {tuple(support) for support in both.alternatives["support"]} == near


def test_near_copies_do_not_keep_the_list_from_being_complete() -> None:
    problem = _with_duplicate(1e-4, 0.0)
    why = explain(problem, k=3, tolerance=0.1)
    near = {S for S, f in _sets(problem, 3).items() if f <= 1.1 * why.objective}
    assert why.is_complete
    assert {tuple(support) for support in why.alternatives["support"]} == near


def test_too_many_branches_leave_what_swaps_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _with_duplicate(0.1, 0.1)
    whole = explain(problem, k=3, tolerance=0.2)
    monkeypatch.setattr(module, "MOST_NODES", -1)
    why = explain(problem, k=3, tolerance=0.2)
    assert not why.is_complete
    supports = [tuple(support) for support in why.alternatives["support"]]
    assert set(supports) <= {tuple(support) for support in whole.alternatives["support"]}
    assert tuple(why.support) in supports
    assert len(supports) > 1


def test_optimal_scoring_is_explained_like_the_squared_error() -> None:
    why = explain(*load_wine(return_X_y=True), k=2, loss="optimal_scoring", ridge=0.05)
    assert why.support.shape == (2,)
