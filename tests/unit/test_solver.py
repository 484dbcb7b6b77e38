"""The gate: what it refuses, what it recomputes, what it says."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.preprocessing import StandardScaler

from exactk import InputError, Problem, Status, UnknownOptionError, solve, solve_path
from exactk.methods.base import Method
from exactk.methods.exchange import Exchange
from exactk.methods.iteration import Step
from exactk.result import Answer
from exactk.utils.monitor import Monitor
from tests.oracles.brute import Reference, make_classes, make_numbers, one_hot


class Fixed(Method):
    """Gives the answer that it is told to give."""

    def __init__(
        self,
        support: Any = (),
        status: Status = Status.CONVERGED,
        trace: Any = (),
        ordered: bool = False,
    ) -> None:
        self.support = support
        self.status = status
        self.trace = trace
        self.ordered = ordered

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:
        return Answer(self.support, self.status, 3, self.trace, self.ordered)


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    return make_classes(50, 8, 3, seed=2)


@pytest.fixture(scope="module")
def problem(data: tuple[Any, Any]) -> Problem:
    return Problem.from_arrays(*data)


@pytest.mark.parametrize(
    ("k", "words"),
    [
        (0, "k must be at least 1, not 0"),
        (-2, "k must be at least 1, not -2"),
        (9, "k=9 is more than the 8 usable columns.*k <= 8"),
        (2.0, "k must be a whole number, not 2.0"),
        (True, "k must be a whole number, not True"),
        ("2", "k must be a whole number, not '2'"),
        (None, "k must be a whole number, not None"),
    ],
)
@pytest.mark.parametrize("gate", [solve, solve_path])
def test_k_is_checked(gate, problem: Problem, k: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        gate(problem, k)


def test_constant_columns_do_not_count_and_are_named(data: tuple[Any, Any]) -> None:
    X, y = data
    X = np.column_stack([X[:, :3], np.full(50, 2.5)])
    problem = Problem.from_arrays(X, y, feature_names=["a", "b", "c", "flat"])
    with pytest.raises(InputError, match=r"k=4 .*3 usable.*1 of 4 .*constant.*'flat'"):
        solve(problem, 4)


@pytest.mark.parametrize("gate", [solve, solve_path])
def test_a_table_is_not_a_problem(gate, data: tuple[Any, Any]) -> None:
    with pytest.raises(InputError, match=r"exactk.Problem, not tuple.*from_arrays"):
        gate(data, 2)


@pytest.mark.parametrize("method", [None, 3, Exchange, object()])
def test_a_method_is_a_name_or_an_object(problem: Problem, method: object) -> None:
    with pytest.raises(InputError, match="method must be a name or a method object"):
        solve(problem, 2, method)


@pytest.mark.parametrize("time_limit", [0, -1, "1", True, np.nan, [1]])
@pytest.mark.parametrize("gate", [solve, solve_path])
def test_time_limit_is_checked(gate, problem: Problem, time_limit: object) -> None:
    with pytest.raises(InputError, match=r"time_limit must be a number of seconds above 0"):
        gate(problem, 2, time_limit=time_limit)


def test_options_go_to_names_and_to_objects_but_not_into_the_object(problem: Problem) -> None:
    method = Exchange(effort=3)
    by_object = solve(problem, 3, method, effort=0, random_state=2)
    by_name = solve(problem, 3, "exchange", effort=0, random_state=2)
    assert by_object.trace == by_name.trace
    assert by_object.method == by_name.method == "exchange"
    assert method.get_params() == {"effort": 3, "init": None, "random_state": None}
    with pytest.raises(UnknownOptionError, match=r"'exchange' has no option 'eforts'"):
        solve(problem, 3, method, eforts=1)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_that_of_linear_regression(data: tuple[Any, Any], weighted: bool) -> None:
    X, y = data
    weights = np.random.default_rng(0).uniform(0.5, 3, len(y)) if weighted else None
    result = solve(Problem.from_arrays(X, y, sample_weight=weights), 4)
    S = result.support
    fit = LinearRegression().fit(X[:, S], one_hot(y), weights)
    np.testing.assert_allclose(result.coef, fit.coef_, atol=1e-9)
    np.testing.assert_allclose(result.intercept, fit.intercept_, atol=1e-9)
    residuals = (one_hot(y) - fit.predict(X[:, S])) ** 2
    expected = (residuals.sum(axis=1) @ (np.ones(50) if weights is None else weights)).sum()
    assert result.objective == pytest.approx(expected, rel=1e-9)


def test_the_fit_with_ridge_is_that_of_ridge_regression() -> None:
    X, Y = make_numbers(60, 7, 2, seed=1)
    X = X * [1, 10, 100, 1, 1e-2, 1, 1]
    result = solve(Problem.from_arrays(X, Y, ridge=0.3), 3)
    S = result.support
    Z = StandardScaler().fit_transform(X[:, S]) * np.sqrt(59 / 60)
    # Every standardised column has length √(n − 1), so the relative ridge is 0.3·(n − 1).
    fit = Ridge(alpha=0.3 * 59).fit(Z, Y)
    np.testing.assert_allclose(result.coef @ X[:, S].T + result.intercept[:, None],
                               fit.predict(Z).T, atol=1e-8)  # fmt: skip
    expected = ((Y - fit.predict(Z)) ** 2).sum() + 0.3 * 59 * (fit.coef_**2).sum()
    assert result.objective == pytest.approx(expected, rel=1e-9)
    assert result.ridge == 0.3


def test_a_method_does_not_grade_itself(problem: Problem, data: tuple[Any, Any]) -> None:
    result = solve(problem, 3, Fixed(support=(6, 1, 4), trace=(1e-9,)))
    assert result.objective == pytest.approx(Reference(*data).objective([1, 4, 6]), rel=1e-9)
    assert result.trace == (1e-9,)
    assert result.support.tolist() == [1, 4, 6]
    # The order given means nothing, so the gate finds one: the best first.
    single = [Reference(*data).objective([p]) for p in (1, 4, 6)]
    assert result.order[0] == (1, 4, 6)[int(np.argmin(single))]
    ordered = solve(problem, 3, Fixed(support=(6, 1, 4), ordered=True))
    assert ordered.order.tolist() == [6, 1, 4]
    assert result.n_iter == 3
    assert result.method == "fixed"
    assert result.seconds >= 0


class Careless(Fixed):
    """Gives no `Answer`."""

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:
        return self.support


WRONG = [None, 3, [1.0, 2.0, 3.0], ["a", "b", "c"], [1, 1, 2], [0, 1, 2, 3], [0, 1, 8], [-1, 0, 1],
         [], [1], [1, 2]]  # fmt: skip


@pytest.mark.parametrize("method", [*map(Fixed, WRONG), Careless(), Careless([1, 2, 3])], ids=repr)
def test_a_wrong_answer_of_a_method_is_refused_by_its_name(problem: Problem, method: Fixed) -> None:
    with pytest.raises(InputError, match=type(method).__name__) as error:
        solve(problem, 3, method)
    assert error.value.parameter == "method"


def test_a_method_of_the_user_may_return_all_independent_columns() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    problem = Problem.from_arrays(np.column_stack([X, X]), X[:, 0])
    with pytest.warns(UserWarning, match="independent"):
        assert solve(problem, 3, Fixed(support=[0, 1])).status == Status.RANK_DEFICIENT


@pytest.mark.parametrize(
    ("gate", "options", "parameter"),
    [
        (solve, {"callback": "abc"}, "callback"),
        *[(gate, {"verbose": "yes"}, "verbose") for gate in (solve, solve_path)],
        *[(gate, {"verbose": -1}, "verbose") for gate in (solve, solve_path)],
        *[(solve, {"effort": effort}, "effort") for effort in (np.inf, 1e308, 2**63, 2_000_000)],
        (solve_path, {"effort": 1e308}, "effort"),
        (solve, {"method": "stability", "effort": 1e308}, "effort"),
    ],
)
def test_other_values_are_checked(
    gate: Any, options: dict[str, Any], parameter: str, problem: Problem
) -> None:
    with pytest.raises(InputError) as error:
        gate(problem, 2, **options)
    assert error.value.parameter == parameter
    if parameter == "effort" and "method" not in options:
        assert gate(problem, 2, **options, time_limit=0.05)


def test_no_convergence_is_warned_of_once(problem: Problem) -> None:
    method = Fixed(support=(0, 1, 2), status=Status.MAX_ITER)
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        result = solve(problem, 3, method)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert result.status == Status.MAX_ITER
    assert "max_iter" in result.message


@pytest.mark.parametrize("status", [Status.TIME_LIMIT, Status.INTERRUPTED])
def test_what_was_requested_is_not_warned_of(problem: Problem, status: Status) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = solve(problem, 3, Fixed(support=(0, 1, 2), status=status))
    assert result.status == status
    assert "best found" in result.message


@pytest.mark.parametrize("gate", [solve, solve_path])
def test_more_columns_than_the_rank(gate) -> None:
    X, y = make_numbers(30, 3, 1, seed=6)
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(30), X[:, 2] - X[:, 0]])
    problem = Problem.from_arrays(X, y)
    with pytest.warns(UserWarning, match=r"only 3 .*5.* independent") as caught:
        out = gate(problem, 5)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    result = out if gate is solve else out[-1]
    assert result.support.tolist() == [0, 1, 2, 3, 5]
    assert result.status == Status.RANK_DEFICIENT
    assert result.objective == pytest.approx(Reference(X, y).objective([0, 1, 2]), rel=1e-9)
    predicted = X[:, result.support] @ result.coef.T + result.intercept
    assert ((y[:, None] - predicted) ** 2).sum() == pytest.approx(result.objective, rel=1e-8)


def test_verbose_says_how_far_it_is_and_changes_nothing(
    problem: Problem, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    loud, quiet = solve(problem, 3, verbose=1), solve(problem, 3)
    assert loud.support.tolist() == quiet.support.tolist()
    assert len(solve_path(problem, 3, verbose=1)) == 3
    assert capsys.readouterr().out == ""


def test_names_and_classes_come_along(data: tuple[Any, Any]) -> None:
    X, y = data
    labels = np.array(["low", "mid", "high"])[y]
    problem = Problem.from_arrays(X, labels, feature_names=list("abcdefgh"))
    result = solve(problem, 2)
    assert result.feature_names == tuple("abcdefgh"[j] for j in result.support)
    assert result.classes == ("high", "low", "mid")
    assert all(type(label) is str for label in result.classes)


@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("nmapg", {"row_norms"}),
        ("ipfs", {"row_norms", "weights"}),
        ("rpfs", {"row_norms", "row_norms_w"}),
    ],
)
def test_an_onlooker_sees_every_iteration(method: str, names: set[str]) -> None:
    problem = Problem.from_arrays(*load_iris(return_X_y=True))
    seen: list[Step] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(problem, 2, method, callback=seen.append)
    assert [step.value for step in seen] == list(result.trace)
    assert seen[-1].details is not None
    inside = seen[-1].details()
    assert set(inside) == names
    assert all(array.shape == (4,) for array in inside.values())
    # The columns that were chosen are those of the largest entries of the last iterate.
    by = inside["weights" if "weights" in inside else "row_norms"]
    assert sorted(by.argsort()[-2:].tolist()) == result.support.tolist()
