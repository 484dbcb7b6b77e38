"""A Result does not change, and survives JSON, pickle and comparison."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pytest

from exactk import InputError, Path, Problem, Result, Status, solve, solve_path
from tests.oracles.brute import make_classes, make_numbers

LABELS: dict[str, list[Any]] = {
    "strings": ["b", "a", "ü c"],
    "integers": [10, -3, 7],
    "floats": [1.0, 2.0, 5.0],
    "booleans": [True, False, True],
}


def classified(labels: list[Any], **options: Any) -> Result:
    X, y = make_classes(40, 6, 3, seed=1)
    names = [f"gene {j}" for j in range(6)]
    problem = Problem.from_arrays(X, np.array(labels)[y], feature_names=names, **options)
    return solve(problem, 3)


@pytest.fixture
def result() -> Result:
    return classified(LABELS["strings"])


@pytest.mark.parametrize("kind", list(LABELS))
def test_json_gives_the_same_result_back(kind: str) -> None:
    result = classified(LABELS[kind], ridge=0.1)
    text = result.to_json()
    again = Result.from_json(text)
    assert again == result
    assert again.classes == tuple(sorted(set(LABELS[kind])))
    assert [type(label) for label in again.classes] == [type(label) for label in result.classes]
    assert isinstance(again.status, Status)
    for name in ("support", "order", "coef", "intercept"):
        one, other = getattr(again, name), getattr(result, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert not one.flags.writeable
    assert json.loads(text)["feature_names"] == list(result.feature_names)


def test_regression_has_no_classes_in_json_either() -> None:
    X, Y = make_numbers(40, 6, 2, seed=1)
    result = solve(Problem.from_arrays(X, Y), 2)
    assert result.classes is None
    again = Result.from_json(result.to_json(indent=2))
    assert again == result
    assert again.classes is None
    assert again.coef.shape == (2, 2)


def test_to_dict_is_plain_python(result: Result) -> None:
    values = result.to_dict()
    assert set(values) >= {
        "support", "order", "coef", "intercept", "objective", "trace", "status", "message",
        "n_iter", "seconds", "method", "ridge", "feature_names", "classes",
    }  # fmt: skip
    assert type(values["status"]) is str

    def kinds(value: Any) -> set[type]:
        return set().union(*map(kinds, value)) if isinstance(value, list) else {type(value)}

    # None: no scores.
    assert set().union(*map(kinds, values.values())) <= {str, int, float, type(None)}
    assert Result.from_dict(values) == result
    # A later version may write more.
    assert Result.from_dict({**values, "gap": 0.5}) == result


def test_what_is_not_a_result_is_refused(result: Result) -> None:
    values = result.to_dict()
    del values["coef"], values["status"]
    with pytest.raises(InputError, match=r"not a Result.*coef, status"):
        Result.from_dict(values)
    with pytest.raises(ValueError, match="no such status"):
        Result.from_dict({**result.to_dict(), "status": "no such status"})


def test_nothing_can_be_changed(result: Result) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.objective = 0.0  # type: ignore[misc]
    for name in ("support", "order", "coef", "intercept"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(result, name)[...] = 0


@pytest.mark.parametrize("again", [lambda r: pickle.loads(pickle.dumps(r)), copy.deepcopy])
def test_copies_are_equal_and_cannot_be_changed_either(result: Result, again) -> None:
    other = again(result)
    assert other == result
    for name in ("support", "order", "coef", "intercept"):
        assert not getattr(other, name).flags.writeable


def test_equality_is_by_value(result: Result) -> None:
    same = dataclasses.replace(result, support=result.support.copy())
    assert same == result
    assert dataclasses.replace(result, objective=result.objective + 1) != result
    assert dataclasses.replace(result, coef=result.coef + 1) != result
    assert result != "result"
    with pytest.raises(TypeError, match="unhashable"):
        hash(result)


def test_figures_fit_together(result: Result) -> None:
    assert result.k == 3
    assert result.support.tolist() == sorted(result.order.tolist())
    assert result.feature_names == tuple(f"gene {j}" for j in result.support)
    assert result.table["rank"] == [1, 2, 3]
    assert result.table["index"] == result.order.tolist()
    assert result.selected[0] in repr(result)


def test_explained_leaves_the_ridge_term_out() -> None:
    # R² of the fit, by its predictions.
    X, y = make_numbers(60, 6, 1, seed=1)
    result = solve(Problem.from_arrays(X, y, ridge=2.0), 3)
    fitted = X[:, result.support] @ result.coef.T + result.intercept
    left = ((y.reshape(60, 1) - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert result.explained == pytest.approx(1.0 - left)
    assert result.explained > 1.0 - result.objective / result.total
    assert dataclasses.replace(result, total=0.0, objective=0.0).explained == 0.0
    path = solve_path(Problem.from_arrays(X, y, ridge=2.0), 3)
    assert path.table["explained"] == [one.explained for one in path]


@pytest.mark.parametrize("method", ["exchange", "stability"])
def test_included_columns_have_no_rank(method: str) -> None:
    X, y = make_numbers(60, 6, 1, seed=1)
    free = Problem.from_arrays(X, y, ridge=0.1)
    worst = [f"x{j}" for j in range(6) if j not in solve(free, 4).support]
    result = solve(free.with_constraints(include=worst), 4, method)
    assert sorted(result.included) == worst
    table = result.table
    assert table["rank"] == [1, 2, None, None]
    assert table["included"] == [False, False, True, True]
    assert sorted(table["feature"][2:]) == worst
    ranked = [name for name in result.selected if name not in worst]
    assert table["feature"][:2] == ranked
    assert f"{', '.join(ranked)}; included: {', '.join(result.included)};" in repr(result)
    assert Result.from_json(result.to_json()).table == table


def test_all_columns_of_an_included_group_have_no_rank() -> None:
    X, y = make_numbers(60, 6, 1, seed=1)
    problem = Problem.from_arrays(X, y).with_constraints(
        include=["pair"], feature_groups={"pair": ["x0", "x3"]}
    )
    result = solve(problem, 2)
    assert result.included == ("x0", "x3")
    assert sum(rank is None for rank in result.table["rank"]) == 2


def test_results_of_earlier_versions_can_be_read(result: Result) -> None:
    values = result.to_dict()
    for name in ("scores", "selected", "k", "loss", "input_columns", "included"):
        del values[name]
    assert Result.from_dict(values) == result


def test_statuses_are_words() -> None:
    assert {str(status) for status in Status} == {
        "optimal", "converged", "max_iter", "time_limit", "interrupted", "rank_deficient",
        "failed",
    }  # fmt: skip
    assert Status("optimal") is Status.OPTIMAL
    assert Status.OPTIMAL == "optimal"


def test_a_path_is_a_sequence_by_position_and_by_size() -> None:
    X, y = make_classes(40, 6, 3, seed=1)
    path = solve_path(Problem.from_arrays(X, y), 4)
    assert len(path) == 4
    assert [result.k for result in path] == [1, 2, 3, 4]
    assert path.at(2) == path[1] == list(path)[1]
    assert path[-1].k == 4
    assert [result.k for result in path[1:3]] == [2, 3]
    assert path.objectives.tolist() == [result.objective for result in path]
    assert "k=1..4" in repr(path)
    assert path[2] in path
    for k in (0, 5, -1):
        with pytest.raises(InputError, match=r"k = 1\.\.4") as error:
            path.at(k)
        assert (error.value.parameter, error.value.value) == ("k", k)
    assert [Result.from_dict(one) for one in json.loads(path.to_json())["results"]] == list(path)


def test_an_empty_path() -> None:
    path = Path([])
    assert len(path) == 0
    assert "empty" in repr(path)
    assert path.objectives.shape == (0,)
