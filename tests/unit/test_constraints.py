"""Constraints as users give them: names, numbers, and a sentence for every mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import InfeasibleError, Problem, TopKSelector, explain, solve
from exactk.rules import Family, Group, Rules
from tests.support import says

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
    by_name = _rules(groups={"lab": ["bmi", "dose"], "x": ["x1", 4]})
    by_label = _rules(groups=[None, "lab", "lab", "x", "x", None])
    assert by_name == by_label == Rules(groups=wanted)
    by_list = _rules(groups=[["bmi", "dose"], [3, 4]])
    assert by_list is not None
    assert [group.columns for group in by_list.groups] == [(1, 2), (3, 4)]


def test_families_take_one_bound_or_one_each() -> None:
    families = {"F": ["age", "bmi"], "G": ["bmi", "x1"]}
    assert _rules(families=families, at_most=1) == Rules(
        families=(Family("F", (0, 1), 0, 1), Family("G", (1, 3), 0, 1))
    )
    assert _rules(families=families, at_least={"G": 1}) == Rules(
        families=(Family("F", (0, 1)), Family("G", (1, 3), 1))
    )


def test_a_group_costs_what_its_name_costs() -> None:
    costs = {"age": 1, "lab": 4, "x1": 2, "x2": 0, "flat": 0}
    rules = _rules(groups={"lab": ["bmi", "dose"]}, costs=costs, budget=5)
    assert rules is not None
    assert rules.costs == (1, 2, 2, 2, 0, 0)


def test_a_member_of_a_group_brings_the_group() -> None:
    rules = _rules(groups={"lab": ["bmi", "dose"]}, include=["dose"])
    assert rules is not None
    assert rules.include == (1, 2)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ({"include": ["bim"]}, ["include", "'bim'", "did you mean 'bmi'"]),
        ({"exclude": [9]}, ["exclude", "9", "0..5"]),
        ({"include": [-1]}, ["include", "-1", "0..5"]),
        ({"include": [True]}, ["include", "True"]),
        ({"include": 1.5}, ["include", "1.5"]),
        ({"include": {"a": 1}}, ["include must be a list"]),
        ({"include": ["flat"]}, ["include", "'flat'", "constant", "leave it out"]),
        ({"include": ["age"], "exclude": ["age"]}, ["include and exclude", "'age'"]),
        ({"groups": {"g": []}}, ["groups['g']", "empty"]),
        ({"groups": {"g": [0, 1], "h": [1, 2]}}, ["'bmi'", "two groups", "'g'", "'h'"]),
        ({"groups": ["a", "b"]}, ["2 labels", "6 columns"]),
        ({"groups": "ab"}, ["groups must map"]),
        ({"groups": {"g": [0, 1]}, "exclude": [0]}, ["exclude", "'age'", "'g'", "whole group"]),
        ({"groups": {"g": [0, 1]}, "families": {"F": [0]}, "at_most": 1},
         ["families['F']", "'g'", "all of it or nothing"]),
        ({"count": "all"}, ["count", "'groups' or 'columns'", "'all'"]),
        ({"at_most": 2}, ["at_most", "families"]),
        ({"families": {"F": [0]}}, ["families without"]),
        ({"families": [[0]], "at_most": 1}, ["families must map"]),
        ({"families": {"F": [0]}, "at_most": {"E": 1}}, ["at_most", "'E'", "there are 'F'"]),
        ({"families": {"F": [0]}, "at_most": -1}, ["at_most", "-1"]),
        ({"families": {"F": [0]}, "at_most": 1.5}, ["at_most", "1.5"]),
        ({"families": {"F": [0, 1]}, "at_least": 2, "at_most": 1},
         ["at_least=2", "at_most=1", "'F'"]),
        ({"costs": [1] * 6}, ["costs needs budget"]),
        ({"budget": 3}, ["budget needs costs"]),
        ({"costs": [1] * 5, "budget": 3}, ["5 numbers", "6 columns"]),
        ({"costs": {"age": 1}, "budget": 3}, ["no number for 'bmi'", "give 0"]),
        ({"costs": [1, 1, 1, 1, 1, -1], "budget": 3}, ["costs[5]", "-1"]),
        ({"costs": [1, 1, 1, 1, 1, np.nan], "budget": 3}, ["costs[5]", "nan"]),
        ({"costs": [1] * 6, "budget": np.inf}, ["budget", "inf"]),
        ({"max_correlation": 1.5}, ["max_correlation", "from 0 to 1", "1.5"]),
        ({"max_correlation": "high"}, ["max_correlation", "'high'"]),
    ],
)  # fmt: skip
def test_every_mistake_is_named(constraints: dict[str, Any], words: list[str]) -> None:
    with says(*words):
        _problem().with_constraints(**constraints)


def test_what_cannot_be_met_names_the_constraints_in_conflict() -> None:
    problem = _problem().with_constraints(exclude=["age", "bmi"], costs=[5] * 6, budget=9)
    with pytest.raises(InfeasibleError, match=r"k=2 keeps all of: budget=9; sizes .*: 1$"):
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
    selector = TopKSelector(k=2, include=[1], exclude=[0], groups={"g": [2, 3]}).fit(X, y)
    assert selector.result_.selected == ("g", "x1")
    assert selector.get_support(indices=True).tolist() == [1, 2, 3]
    assert selector.k_ == 2
    auto = TopKSelector(k="auto", k_max=4, include=[1], max_correlation=0.9).fit(X, y)
    assert auto.support_[1]
    with says("include", "9"):
        TopKSelector(k=2, include=[9]).fit(X, y)
    why = explain(problem.with_constraints(include=["bmi"]), 3)
    assert "bmi" in why.selected
