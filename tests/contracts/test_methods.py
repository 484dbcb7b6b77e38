"""What every registered method must keep, read from the registry: a new line here is tested."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from exactk import (
    InputError,
    Moments,
    Problem,
    Result,
    Status,
    TopKSelector,
    UnknownOptionError,
    registry,
    solve,
    solve_path,
)
from tests.oracles.brute import Reference, make_classes, make_numbers
from tests.support import over, refused

# An end at the iteration limit is an end that the contract allows; each method's own tests
# look at its status.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

every_method = pytest.mark.parametrize("name", over(registry.names()))
# Statuses that claim no more than what the contract checks.
ENDS = {Status.OPTIMAL, Status.CONVERGED, Status.MAX_ITER}


# Columns as a few levels have equal scores where there are seven rows, and ties go to the lowest
# index, whichever column stands there (see test_filters.py).
OF_LEVELS = {"infogain", "chi2", "mrmr", "cfs"}


def tables() -> dict[str, tuple[Any, Any]]:
    """Small tables without ties, one for each kind of target and shape."""
    return {
        "classes": make_classes(45, 8, 3, seed=0),
        "two classes": make_classes(40, 7, 2, seed=1),
        "one number": make_numbers(40, 8, 1, seed=2),
        "several numbers": make_numbers(40, 7, 3, seed=3),
        "fewer rows than columns": make_classes(7, 9, 2, seed=4),
    }


TABLES = tables()
every_table = pytest.mark.parametrize("table", list(TABLES))


@every_method
@every_table
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_exactly_k_and_never_below_the_optimum(name: str, table: str, ridge: float) -> None:
    X, y = TABLES[table]
    problem, reference = Problem.from_arrays(X, y, ridge=ridge), Reference(X, y, ridge=ridge)
    if refused(name, problem):
        return
    for k in (1, 2, 4, 5):
        result = solve(problem, k, name)
        assert result.k == k
        assert len(set(result.support.tolist())) == k
        assert (np.diff(result.support) > 0).all()
        assert sorted(result.order.tolist()) == result.support.tolist()
        assert result.coef.shape == (problem.n_outputs, k)
        assert result.status in ENDS
        optimum = reference.best(k)[1]
        slack = 1e-8 * reference.total
        assert result.objective >= optimum - slack
        assert result.objective == pytest.approx(reference.objective(result.support), abs=slack)
        if result.status == Status.OPTIMAL:
            assert result.objective == pytest.approx(optimum, abs=slack)


@every_method
@every_table
def test_permuted_columns_permute_the_answer(name: str, table: str) -> None:
    X, y = TABLES[table]
    shuffle = np.random.default_rng(0).permutation(X.shape[1])
    if refused(name, Problem.from_arrays(X, y)):
        return
    if table == "fewer rows than columns" and name in OF_LEVELS:
        return
    for k in (1, 3):
        plain = solve(Problem.from_arrays(X, y), k, name)
        moved = solve(Problem.from_arrays(X[:, shuffle], y), k, name)
        assert sorted(shuffle[moved.support].tolist()) == plain.support.tolist()
        assert shuffle[moved.order].tolist() == plain.order.tolist()
        assert moved.objective == pytest.approx(plain.objective, rel=1e-9)


@every_method
def test_permuted_rows_and_relabelled_classes_change_nothing(name: str) -> None:
    X, y = TABLES["classes"]
    plain = solve(Problem.from_arrays(X, y), 3, name)
    rows = np.random.default_rng(1).permutation(len(y))
    moved = solve(Problem.from_arrays(X[rows], np.array(["z", "a", "m"])[y[rows]]), 3, name)
    assert moved.support.tolist() == plain.support.tolist()
    assert moved.objective == pytest.approx(plain.objective, rel=1e-9)


@every_method
def test_the_same_seed_the_same_answer(name: str) -> None:
    X, y = make_classes(60, 14, 4, seed=8)
    problem = Problem.from_arrays(X, y)
    options = {"random_state": 5} if "random_state" in registry.create(name).get_params() else {}
    one, two = (solve(problem, 4, name, **options) for _ in range(2))
    assert one.support.tolist() == two.support.tolist()
    assert one.trace == two.trace
    np.testing.assert_array_equal(one.coef, two.coef)


@every_method
def test_inputs_are_left_untouched(name: str) -> None:
    X, y = (array.copy() for array in TABLES["classes"])
    weights = np.random.default_rng(2).uniform(0.5, 2, len(y))
    copies = [X.copy(), y.copy(), weights.copy()]
    for array in (X, y, weights):
        array.setflags(write=False)
    problem = Problem.from_arrays(X, y, sample_weight=weights, ridge=0.1)
    cross, diagonal = problem.cross.copy(), problem.diagonal.copy()
    first = problem.gram_column(2)
    method = registry.create(name)
    before = method.get_params()
    solve(problem, 3, method)
    solve_path(problem, 3, method)
    for array, copy in zip((X, y, weights), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(problem.cross, cross)
    np.testing.assert_array_equal(problem.diagonal, diagonal)
    np.testing.assert_array_equal(problem.gram_column(2), first)
    assert method.get_params() == before
    assert set(vars(method)) == set(before), "a method keeps nothing but its parameters"


@every_method
def test_one_column_and_all_columns(name: str) -> None:
    X, y = TABLES["classes"]
    problem, reference = Problem.from_arrays(X, y), Reference(X, y)
    everything = solve(problem, 8, name)
    assert everything.support.tolist() == list(range(8))
    assert everything.objective == pytest.approx(reference.objective(range(8)), rel=1e-9)
    assert solve(problem, 1, name).k == 1
    lone = Problem.from_arrays(X[:, [3]], y)
    assert solve(lone, 1, name).support.tolist() == [0]


@every_method
def test_constant_columns_are_never_chosen(name: str) -> None:
    X, y = TABLES["classes"]
    X = np.column_stack([np.zeros(45), X[:, :4], np.full(45, 1e6)])
    problem = Problem.from_arrays(X, y)
    assert solve(problem, 4, name).support.tolist() == [1, 2, 3, 4]
    assert set(solve(problem, 2, name).support.tolist()) <= {1, 2, 3, 4}
    with pytest.raises(InputError, match=r"k=5.*4 usable"):
        solve(problem, 5, name)


@every_method
def test_never_two_copies_while_another_helps(name: str) -> None:
    X, y = make_classes(45, 5, 3, seed=0)
    X = np.column_stack([X, X, 2.0 - 3.0 * X[:, [0]]])
    problem = Problem.from_arrays(X, y)
    for k in (2, 4, 5):
        support = solve(problem, k, name).support
        assert len({0 if p == 10 else p % 5 for p in support.tolist()}) == k


@every_method
def test_the_size_of_a_column_does_not_matter(name: str) -> None:
    X, y = TABLES["classes"]
    factors = 10.0 ** np.array([-12, 9, 0, -6, 12, 3, -9, 6])
    for k in (1, 4):
        plain = solve(Problem.from_arrays(X, y), k, name)
        scaled = solve(Problem.from_arrays(X * factors, y), k, name)
        assert scaled.support.tolist() == plain.support.tolist()
        assert scaled.objective == pytest.approx(plain.objective, rel=1e-7)
        np.testing.assert_allclose(scaled.coef * factors[plain.support], plain.coef, rtol=1e-5)


@every_method
def test_more_columns_than_the_rank_is_said(name: str) -> None:
    X, y = make_classes(30, 3, 3, seed=3)
    X = np.column_stack([X, X @ np.random.default_rng(0).standard_normal((3, 3))])
    problem = Problem.from_arrays(X, y)
    with pytest.warns(UserWarning, match=r"only 3 .* independent"):
        result = solve(problem, 5, name)
    assert result.status == Status.RANK_DEFICIENT
    assert "independent" in result.message
    assert len(set(result.support.tolist())) == 5
    # Three independent columns span all: that is the best there is.
    assert result.objective == pytest.approx(Reference(X, y).objective([0, 1, 2]), rel=1e-8)


@every_method
def test_methods_and_results_survive_pickle_and_json(name: str) -> None:
    X, y = TABLES["classes"]
    method = registry.create(name)
    again = pickle.loads(pickle.dumps(method))
    assert type(again) is type(method)
    assert again.get_params() == method.get_params() == clone(method).get_params()
    problem = Problem.from_arrays(X, y)
    result = solve(problem, 3, again)
    assert result.support.tolist() == solve(problem, 3, name).support.tolist()
    assert pickle.loads(pickle.dumps(result)) == result
    assert Result.from_json(result.to_json()) == result


@every_method
def test_options_are_seen_set_and_checked(name: str) -> None:
    X, y = TABLES["classes"]
    method = registry.create(name)
    assert method.option_names() == sorted(method.get_params())
    for option, value in method.get_params().items():
        assert registry.create(name, **{option: value}).get_params()[option] == value
    with pytest.raises(UnknownOptionError, match=rf"{name}.*no_such_option"):
        registry.create(name, no_such_option=1)
    with pytest.raises(UnknownOptionError, match=rf"{name}.*no_such_option"):
        solve(Problem.from_arrays(X, y), 2, method, no_such_option=1)


@every_method
def test_name_object_and_selector_agree(name: str) -> None:
    X, y = TABLES["classes"]
    problem = Problem.from_arrays(X, y)
    result = solve(problem, 3, name)
    for method in (name, registry.create(name)):
        selector = TopKSelector(k=3, method=method, ridge=0).fit(X, y)
        assert selector.get_support(indices=True).tolist() == result.support.tolist()
        assert selector.selected_.tolist() == result.order.tolist()
        assert selector.objective_ == pytest.approx(result.objective, rel=1e-12)
        assert selector.result_.method == name
    parameters = TopKSelector(method=registry.create(name)).get_params()
    assert {f"method__{option}" for option in registry.create(name).get_params()} <= set(parameters)


@every_method
def test_the_command_line_offers_it(
    name: str, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("click")
    pytest.importorskip("pyarrow")
    from exactk.cli import main

    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as stop:
            main(list(words))
        assert not stop.value.code
        return capsys.readouterr().out

    assert name in {line["name"] for line in json.loads(run("methods", "--format", "json"))}
    X, y = TABLES["classes"]
    names = [f"c{j}" for j in range(X.shape[1])]
    table = tmp_path / "table.csv"
    np.savetxt(table, np.column_stack([X, y]), delimiter=",", fmt="%.17g",
               header=",".join([*names, "y"]), comments="")  # fmt: skip
    words = ("--target", "y", "-k", "3", "--method", name, "--ridge", "0", "--format", "json")
    out = run("select", str(table), *words, "--task", "classification")
    expected = solve(Problem.from_arrays(X, y), 3, name)
    assert json.loads(out)["support"] == expected.support.tolist()


@every_method
def test_a_path_has_every_size(name: str) -> None:
    X, y = TABLES["classes"]
    problem, reference = Problem.from_arrays(X, y), Reference(X, y)
    path = solve_path(problem, 6, name)
    assert [len(set(result.support.tolist())) for result in path] == list(range(1, 7))
    for result in path:
        assert result.method == name
        assert result.objective >= reference.best(result.k)[1] - 1e-8 * reference.total


def _options(name: str) -> dict[str, Any]:
    return registry.create(name).get_params()


with_limit = over(name for name in registry.names() if "max_iter" in _options(name))


@pytest.mark.parametrize("name", with_limit)
def test_one_iteration_is_reported_as_not_converged(name: str) -> None:
    X, y = TABLES["classes"]
    problem = Problem.from_arrays(X, y)
    options = {"n_starts": 1} if "n_starts" in _options(name) else {}
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        result = solve(problem, 3, name, max_iter=1, **options)
    assert result.status == Status.MAX_ITER
    assert result.n_iter == len(result.trace) == 1
    assert result.k == 3


@pytest.mark.parametrize("name", with_limit)
def test_the_trace_has_the_own_objective_of_every_iteration(name: str) -> None:
    X, y = TABLES["classes"]
    result = solve(Problem.from_arrays(X, y), 3, name)
    assert len(result.trace) == result.n_iter > 1
    assert np.isfinite(result.trace).all()


@every_method
def test_a_parameter_out_of_range_is_named_with_its_range(name: str) -> None:
    X, y = TABLES["classes"]
    problem = Problem.from_arrays(X, y)
    numbers = {
        option: value
        for option, value in _options(name).items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    for option in numbers.keys() - {"random_state"}:
        for bad in (-1, np.nan, np.inf, "much", True, None):
            with pytest.raises(InputError, match=rf"^{option}\b.*{bad!r}"):
                solve(problem, 3, name, **{option: bad})


@every_method
def test_moments_serve_or_the_rows_are_asked_for(name: str) -> None:
    X, y = TABLES["classes"]
    problem = Problem.from_moments(Moments.from_arrays(X, np.eye(3)[y]), classes=[0, 1, 2])
    if registry.method_class(name).needs_rows:
        with pytest.raises(InputError, match=rf"{name}.*reads the rows.*moments.*from_arrays"):
            solve(problem, 3, name)
    else:
        expected = solve(Problem.from_arrays(X, y), 3, name)
        assert solve(problem, 3, name).support.tolist() == expected.support.tolist()


@pytest.mark.parametrize("name", with_limit)
def test_a_time_limit_ends_the_iterations(name: str) -> None:
    X, y = make_classes(60, 30, 3, seed=1)
    problem = Problem.from_arrays(X, y)
    result = solve(problem, 5, name, time_limit=1e-9)
    assert result.status == Status.TIME_LIMIT
    assert result.k == 5
    assert result.n_iter == 1
