"""Constraints as users give them: names, numbers, and a sentence for every mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import AutoK, Constraints, InfeasibleError, Problem, TopKSelector, explain, solve
from exactk.problem.constraints import Group, Quota, Rules
from tests.support import says

pd = pytest.importorskip("pandas")

NAMES = ["age", "bmi", "dose", "x1", "x2", "flat"]


def _problem() -> Problem:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 6))
    X[:, 5] = 1.0
    return Problem.from_arrays(X, X[:, 0] + X[:, 2] + X[:, 4], feature_names=NAMES, ridge=0.1)


def _rules(**constraints: Any) -> Rules | None:
    return _problem().with_constraints(**constraints).rules


def test_names_and_numbers_are_the_same_constraint() -> None:
    assert _rules(include=["bmi", "x2"]) == _rules(include=[4, 1]) == Rules(include=(1, 4))
    assert _rules(include="bmi") == _rules(include=1) == _rules(include=np.array([1]))
    assert _rules() is None
    assert _rules(include=[]) is None


def test_three_spellings_of_groups() -> None:
    wanted = (Group("lab", (1, 2)), Group("x", (3, 4)))
    by_name = _rules(feature_groups={"lab": ["bmi", "dose"], "x": ["x1", 4]})
    by_label = _rules(feature_groups=[None, "lab", "lab", "x", "x", None])
    assert by_name == by_label == Rules(feature_groups=wanted)
    by_list = _rules(feature_groups=[["bmi", "dose"], [3, 4]])
    assert by_list is not None
    assert [group.columns for group in by_list.feature_groups] == [(1, 2), (3, 4)]


def test_quotas_have_one_bound_or_both() -> None:
    quotas = {
        "F": {"columns": ["age", "bmi"], "at_most": 1},
        "G": {"columns": ["bmi", "x1"], "at_least": 1, "at_most": 2},
    }
    assert _rules(quotas=quotas) == Rules(
        quotas=(Quota("F", (0, 1), 0, 1), Quota("G", (1, 3), 1, 2))
    )


def test_a_group_costs_what_its_name_costs() -> None:
    costs = {"age": 1, "lab": 4, "x1": 2, "x2": 0, "flat": 0}
    rules = _rules(feature_groups={"lab": ["bmi", "dose"]}, costs=costs, budget=5)
    assert rules is not None
    assert rules.costs == (1, 2, 2, 2, 0, 0)


def test_a_member_of_a_group_brings_the_group() -> None:
    rules = _rules(feature_groups={"lab": ["bmi", "dose"]}, include=["dose"])
    assert rules is not None
    assert rules.include == (1, 2)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ({"include": ["bim"]}, ["include", "'bim'"]),
        ({"exclude": [9]}, ["exclude", "9", "0..5"]),
        ({"include": [-1]}, ["include", "-1", "0..5"]),
        ({"include": [True]}, ["include", "True"]),
        ({"include": 1.5}, ["include", "1.5"]),
        ({"include": {"a": 1}}, ["include must be a list"]),
        ({"include": ["flat"]}, ["'flat'", "constant", "leave it out"]),
        ({"include": ["age"], "exclude": ["age"]}, ["include and exclude", "'age'"]),
        ({"feature_groups": {"g": []}}, ["feature_groups['g']", "empty"]),
        ({"feature_groups": {"g": [0, 1], "h": [1, 2]}}, ["'bmi'", "two groups", "'g'", "'h'"]),
        ({"feature_groups": ["a", "b"]}, ["2 labels", "6 columns"]),
        ({"feature_groups": "ab"}, ["feature_groups must map"]),
        ({"feature_groups": {"g": [0, 1]}, "exclude": [0]},
         ["exclude", "part of the group 'g'", "whole group"]),
        ({"feature_groups": {"g": [0, 1]}, "quotas": {"F": {"columns": [0], "at_most": 1}}},
         ["quotas['F']", "'g'", "all of it or nothing"]),
        ({"count": "all"}, ["count", "'groups' or 'columns'", "'all'"]),
        ({"quotas": {"F": [0]}}, ["quotas['F']", "must have columns"]),
        ({"quotas": {"F": {"columns": [0], "most": 1}}}, ["quotas['F']", "must have columns"]),
        ({"quotas": {"F": {"columns": [0]}}}, ["quotas['F']", "no bound"]),
        ({"quotas": [[0]]}, ["quotas must map"]),
        ({"quotas": {"F": {"columns": [0], "at_most": -1}}}, ["quotas['F']", "-1"]),
        ({"quotas": {"F": {"columns": [0], "at_most": 1.5}}}, ["quotas['F']", "1.5"]),
        ({"quotas": {"F": {"columns": [0, 1], "at_least": 2, "at_most": 1}}},
         ["at_least=2", "at_most=1", "'F'"]),
        ({"costs": [1] * 6}, ["costs needs budget"]),
        ({"budget": 3}, ["budget needs costs"]),
        ({"costs": [1] * 5, "budget": 3}, ["5 numbers", "6 columns"]),
        ({"costs": {"age": 1}, "budget": 3}, ["no number for 'bmi'", "give 0"]),
        ({"costs": [1, 1, 1, 1, 1, -1], "budget": 3}, ["costs[5]", "-1"]),
        ({"costs": [1, 1, 1, 1, 1, np.nan], "budget": 3}, ["costs[5]", "nan"]),
        ({"costs": [1] * 6, "budget": np.inf}, ["budget", "inf"]),
        ({"max_correlation": 1.5}, ["max_correlation", "[0, 1]", "1.5"]),
        ({"max_correlation": "high"}, ["max_correlation", "'high'"]),
    ],
)  # fmt: skip
def test_every_mistake_is_named(constraints: dict[str, Any], words: list[str]) -> None:
    with says(*words) as error:
        _problem().with_constraints(**constraints)
    named = {"costs": {"costs", "budget"}, "budget": {"costs", "budget"}}
    allowed = {name for given in constraints for name in named.get(given, {given})}
    assert error.value.parameter in allowed


def test_what_cannot_be_met_names_the_constraints_in_conflict() -> None:
    problem = _problem().with_constraints(exclude=["age", "bmi"], costs=[5] * 6, budget=9)
    with pytest.raises(InfeasibleError, match=r"k=2 keeps budget=9; relax it$"):
        solve(problem, 2)
    too_many = _problem().with_constraints(include=["age", "bmi", "dose"])
    with pytest.raises(InfeasibleError, match=r"k=2 is less than include asks for.*k=3"):
        solve(too_many, 2)


def test_methods_that_cannot_keep_them_say_so_and_which_can() -> None:
    problem = _problem().with_constraints(include=["bmi"])
    with says("'rfs'", "constraints other than exclude", "exchange", "greedy", "exhaustive"):
        solve(problem, 2, "rfs")


@pytest.mark.parametrize("method", ["exchange", "greedy", "rfs", "gsrfs", "cdlsr", "stability"])
def test_any_method_leaves_out_what_is_excluded(method: str) -> None:
    problem = _problem().with_constraints(exclude=["age", "x2"])
    assert not {0, 4} & set(solve(problem, 2, method).support)


def test_a_copy_takes_the_place_of_an_original_that_is_excluded_or_it_is_included() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    X[:, 3] = 5.0 - 2.0 * X[:, 1]
    problem = Problem.from_arrays(X, X[:, 1] + 0.2 * X[:, 0], ridge=0.1)
    assert solve(problem, 1).support.tolist() == [1]
    assert solve(problem.with_constraints(exclude=[1]), 1).support.tolist() == [3]
    assert solve(problem.with_constraints(include=[3]), 2).support.tolist() == [0, 3]
    assert solve(problem.with_constraints(include=[1, 3]), 3).support.tolist() == [0, 1, 3]


def test_included_columns_that_depend_on_each_other_are_in_all_the_same() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[:, 2] = X[:, 0] + X[:, 1]
    problem = Problem.from_arrays(X, X[:, 3] + X[:, 4])
    with pytest.warns(UserWarning, match="independent"):
        result = solve(problem.with_constraints(include=[0, 1, 2]), 4)
    assert set(result.support) >= {0, 1, 2}
    assert result.objective == pytest.approx(
        min(problem.objective([0, 1, 3]), problem.objective([0, 1, 4]))
    )


def test_constraints_replace_each_other() -> None:
    problem = _problem().with_constraints(include=["bmi"]).with_constraints(exclude=["bmi"])
    assert problem.rules == Rules(exclude=(1,))
    assert _problem().with_constraints(include=["bmi"]).with_constraints().rules is None


def test_the_selector_takes_the_same_words() -> None:
    problem = _problem()
    assert problem.rows is not None
    X = problem.rows.columns(np.arange(6))
    y = X[:, 0] + X[:, 2] + X[:, 4]
    selector = TopKSelector(
        k=2, constraints={"include": [1], "exclude": [0], "feature_groups": {"g": [2, 3]}}
    ).fit(X, y)
    assert selector.result_.selected == ("g", "x1")
    assert selector.get_support(indices=True).tolist() == [1, 2, 3]
    assert selector.k_ == 2
    auto = TopKSelector(
        k=AutoK(k_max=4), constraints=Constraints(include=[1], max_correlation=0.9)
    ).fit(X, y)
    assert auto.support_[1]
    with says("include", "9"):
        TopKSelector(k=2, constraints={"include": [9]}).fit(X, y)
    why = explain(problem.with_constraints(include=["bmi"]), k=3)
    assert "bmi" in why.selected


def _with_copy() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = 2 * X[:, 0] + X[:, 1] + rng.standard_normal(60)
    return Problem.from_arrays(np.hstack([X, X[:, :1]]), y, feature_names=[*"abcdef", "a2"])


@pytest.mark.parametrize("method", ["exchange", "exhaustive"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_copies_that_differ_in_what_the_rules_say_of_them(method: str, ridge: float) -> None:
    problem = _with_copy().with_ridge(ridge)
    best = problem.objective([0, 1])
    dear = {"costs": dict(zip([*"abcdef", "a2"], [10, 1, 1, 1, 1, 1, 1], strict=True)), "budget": 5}
    crowded = {"quotas": {"F": {"columns": ["a", "b"], "at_most": 1}}}
    bound = {"feature_groups": {"g": ["a", "c", "d"]}, "count": "columns"}
    wanted = {"quotas": {"F": {"columns": ["a2"], "at_least": 1}}}
    for constraints in (dear, crowded, bound, wanted):
        result = solve(problem.with_constraints(**constraints), 2, method)
        assert result.support.tolist() == [1, 6]
        assert result.objective == pytest.approx(best)


def test_copies_make_up_the_number_where_nothing_else_is_left() -> None:
    problem = _with_copy()
    with pytest.warns(UserWarning, match="independent"):
        assert solve(problem, 7).k == 7
    with pytest.warns(UserWarning, match="independent"):
        assert solve(problem.with_constraints(include=["b"]), 7).k == 7
    assert solve(problem.with_constraints(feature_groups={"g": ["b", "c"]}), 6).k == 6


def test_an_explanation_sees_copies() -> None:
    problem = _with_copy().with_ridge(0.1)
    why = explain(problem, k=2, tolerance=0.0)
    row = next(row for row in why.selected_features if row["feature"] == "a")
    assert row["substitute"] == "a2"
    assert row["substitution_cost"] == pytest.approx(0.0, abs=1e-9)
    assert [0, 1] in why.alternatives["support"]
    assert [1, 6] in why.alternatives["support"]
    assert len(why.alternatives) == 2
    assert why.is_complete


def test_names_are_not_taken_for_each_other() -> None:
    import polars as pl

    frame = pl.DataFrame(
        {"colour": ["red", "blue", "white", "red", "blue", "red"], "a": [1.0, 2, 4, 3, 9, 5],
         "b": [2.0, 1, 0, 5, 4, 3], "c": [0.0, 1, 4, 3, 1, 1]}
    )  # fmt: skip
    problem = Problem.from_arrays(frame, [1.0, 2, 0, 3, 1, 5], ridge=0.1)
    with says("feature_groups['colour']", "another name"):
        problem.with_constraints(feature_groups={"colour": ["a", "b"]})
    with says("feature_groups['c']", "another name"):
        problem.with_constraints(feature_groups={"c": ["a", "b"]})
    with says("feature_groups", "same name", "'1'"):
        problem.with_constraints(feature_groups={1: ["a"], "1": ["b"]})
    one = {"columns": ["a"], "at_most": 0}
    with says("quotas", "same name"):
        problem.with_constraints(quotas={1: one, "1": one})
    rules = problem.with_constraints(quotas={1: one}).rules
    assert rules is not None
    assert rules.quotas == (Quota("1", (2,), 0, 0),)
    with says("is constant", "'flat'"):
        flat = frame.with_columns(flat=pl.lit("x"))
        Problem.from_arrays(flat, [1.0, 2, 0, 3, 1, 5]).with_constraints(include=["flat"])


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (
            {"feature_groups": ["g", "g", np.nan, None, None, None]},
            ["feature_groups", "column 2", "nan", "None"],
        ),
        ({"feature_groups": [["age"], "x", None, None, None, None]}, ["feature_groups", "mixture"]),
        ({"costs": dict.fromkeys(NAMES), "budget": 3}, ["costs['age']", "None", "give 0"]),
        ({"include": b"\x01"}, ["include must be a list"]),
        ({"include": iter(["age"])}, ["include must be a list"]),
        ({"include": np.array([[0, 1]])}, ["include must be a list"]),
        ({"include": np.array("age")}, ["include must be a list"]),
        ({"costs": [1] * 6, "budget": 3 + 0j}, ["budget"]),
        ({"costs": [1e308] * 6, "budget": 3}, ["costs[0]"]),
    ],
)
def test_odd_values_are_refused(constraints: dict[str, Any], words: list[str]) -> None:
    with says(*words) as error:
        _problem().with_constraints(**constraints)
    named = {"costs": {"costs", "budget"}, "budget": {"costs", "budget"}}
    allowed = {name for given in constraints for name in named.get(given, {given})}
    assert error.value.parameter in allowed


@pytest.mark.parametrize(
    ("constraints", "parameter", "words"),
    [
        ({"count": np.array(["groups"])}, "count", []),
        ({"count": pd.NA}, "count", []),
        ({"include": ["zz"]}, "include", ["'zz'", "'age'", "'bmi'"]),
        ({"include": ["Dose"]}, "include", ["did you mean"]),
        ({"include": ["x" * 10_000]}, "include", []),
        ({"costs": {"zz": 1.0}}, "costs", ["'zz'"]),
        ({"costs": [-1] * 6}, "costs", []),
        ({"costs": [1] * 6}, "budget", []),
        ({"budget": 3}, "costs", []),
    ],
)
def test_the_parameter_that_is_wrong_is_named(
    constraints: dict[str, Any], parameter: str, words: list[str]
) -> None:
    for given in (constraints, Constraints(**constraints)):
        with says(*words) as error:
            _problem().with_constraints(given)
        assert error.value.parameter == parameter
        assert len(str(error.value)) < 300


def test_costs_of_a_series_go_by_label() -> None:

    series = pd.Series(dict(zip(reversed(NAMES), range(6), strict=True)))
    rules = _rules(costs=series, budget=3)
    assert rules is not None
    assert rules.costs == (5, 4, 3, 2, 1, 0)


def test_costs_are_given_by_the_names_of_the_table() -> None:
    import polars as pl

    frame = pl.DataFrame({"colour": ["red", "blue", "white", "red"], "a": [1.0, 2, 4, 3]})
    problem = Problem.from_arrays(frame, [1.0, 2, 0, 3])
    with says("no number for 'colour'"):
        problem.with_constraints(costs={"a": 1}, budget=3)


def test_bounds_of_any_length_are_numbers() -> None:
    wide = {"F": {"columns": ["age", "bmi"], "at_most": 10**30}}
    assert solve(_problem().with_constraints(quotas=wide), 2).k == 2
    long = {"F": {"columns": ["age", "bmi"], "at_least": 10**30}}
    with pytest.raises(InfeasibleError, match="at least 1000000000"):
        solve(_problem().with_constraints(quotas=long), 2)


def test_what_cannot_be_decided_in_time_is_given_up() -> None:
    rng = np.random.default_rng(0)
    problem = Problem.from_arrays(rng.standard_normal((60, 300)), rng.standard_normal(60), ridge=1)
    problem = problem.with_constraints(max_correlation=0.05)
    with pytest.raises(InfeasibleError, match=r"could not be told in 0\.5 seconds"):
        solve(problem, 25, time_limit=0.5)


def test_many_copies_under_rules() -> None:
    rng = np.random.default_rng(0)
    half = rng.standard_normal((30, 3000))
    problem = Problem.from_arrays(np.hstack([half, half]), half[:, 0])
    few = problem.with_constraints(exclude=[3, 5, 3005])
    np.testing.assert_array_equal(
        few.candidates, np.sort([*np.setdiff1d(np.arange(3000), [3, 5]), 3003])
    )


def test_half_samples_do_not_fill_up_with_arbitrary_columns_under_a_rule() -> None:
    from exactk import stability

    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 40))
    y = X[:, 30] + 0.1 * rng.standard_normal(20)
    problem = Problem.from_arrays(X, y).with_constraints(exclude=[39])
    found = stability(problem, k=12, n_subsamples=20)
    assert found.core.indices == (30,)
    assert "20 of 20 half-samples" in found.message
