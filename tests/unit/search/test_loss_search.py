"""Searches by a loss where columns nearly depend on each other, at k = d, and under Ctrl-C."""

from __future__ import annotations

import sys
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

import exactk
from exactk import losses
from exactk.losses import softmax_native
from exactk.losses.base import Criterion
from exactk.losses.newton import LikelihoodCriterion
from exactk.problem.problem import Problem
from exactk.result import Status
from exactk.search.descent import greedy_order
from exactk.search.loss_local_search import LossLocalSearch
from exactk.search.loss_pricing import entry_order_by_loss
from exactk.utils.monitor import Monitor

Floats = np.ndarray[Any, np.dtype[np.float64]]


def _near_copies(eps: float, loss: str, seed: int = 1) -> Problem:
    """Columns 0 and 1 differ by what y is about."""
    rng = np.random.default_rng(seed)
    X, e = rng.standard_normal((60, 5)), rng.standard_normal(60)
    X[:, 1] = X[:, 0] + eps * e
    pull = np.c_[e + X[:, 2], -e - X[:, 2], X[:, 0]] + rng.gumbel(size=(60, 3))
    return Problem.from_arrays(X, np.argmax(pull, axis=1), loss=loss)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("eps", "loss"), [(1e-6, "logistic"), (1e-5, "logistic"), (1e-4, "l21")])
def test_where_all_swaps_are_few_those_of_near_copies_are_tried(
    eps: float, loss: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(softmax_native, "library", lambda: None)
        monkeypatch.setattr(losses.reweighted, "compiled", lambda: None)
    for seed in range(1, 4):
        problem = _near_copies(eps, loss, seed)
        least = min(problem.objective(S) for S in combinations(range(5), 3))
        assert exactk.solve(problem, 3).objective <= least * (1.0 + 1e-4)


def test_an_order_of_entry_names_each_column_once_whatever_the_numbers() -> None:
    M = np.full((5, 4), np.nan)
    np.testing.assert_array_equal(np.sort(greedy_order(M, 4, 0.0)), np.arange(4))


@pytest.mark.parametrize(("seed", "loss"), [(872, "huber"), (993, "poisson")])
def test_the_order_of_near_copies_names_each_column_once(seed: int, loss: str) -> None:
    """What these three explain came out below zero."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    X, e = rng.standard_normal((n, 3)), rng.standard_normal(n)
    for eps in 10.0 ** -np.arange(5.0, 10.0, 0.25):
        X[:, 1] = X[:, 0] + eps * e
        numbers = e + 0.3 * X[:, 2] + 0.1 * rng.standard_normal(n)
        y = rng.poisson(np.exp(0.8 * e)) if loss == "poisson" else numbers
        problem = Problem.from_arrays(X, y, loss=loss, task="regression")
        # With one column to come in for two, all three are put in order.
        order = entry_order_by_loss(problem, np.arange(3))
        np.testing.assert_array_equal(np.sort(order), np.arange(3))


@pytest.mark.parametrize("loss", ["squared", "optimal_scoring", "l21", "huber", "logistic"])
@pytest.mark.parametrize("eps", [1e-3, 1e-4, 1e-6, 1e-7])
def test_enumeration_is_right_about_near_copies(eps: float, loss: str) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 6))
        y = (X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(60) > 0).astype(int)
        problem = Problem.from_arrays(X[:, :1] + eps * X, y, loss=loss)
        found = exactk.solve(problem, 3, "exhaustive")
        least = min(problem.objective(S) for S in combinations(range(6), 3))
        assert found.status == Status.OPTIMAL
        assert found.objective <= least * (1.0 + 1e-6)


def test_more_near_copies_than_are_fitted_are_not_called_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("exactk.methods.exhaustive.MOST_FITTED", 3)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    problem = Problem.from_arrays(X[:, :1] + 1e-4 * X, X[:, 1] + X[:, 2])
    assert exactk.solve(problem, 3, "exhaustive").status == Status.CONVERGED


def _near_copies_of_which_the_difference_tells() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 8))
    X[:, 1] = X[:, 0] + 1e-7 * X[:, 2]
    return X, X[:, 2] + X[:, 3] + 0.1 * rng.standard_normal(400)


def test_near_copies_without_rows_at_hand_are_not_called_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = _near_copies_of_which_the_difference_tells()
    X[:, 2] = np.roll(X[:, 2], 1)
    problem = Problem.from_arrays(X, y)
    best = exactk.solve(problem, 3, "exhaustive")
    assert best.status == Status.OPTIMAL
    assert best.support.tolist() == [0, 1, 3]
    moments = exactk.Moments.from_arrays(X, y)
    assert exactk.solve(Problem.from_moments(moments), 3, "exhaustive").status == Status.CONVERGED
    # As are rows that are too many to go back to.
    monkeypatch.setattr(sys.modules["exactk.problem.problem"], "FEW_VALUES", 100)
    assert exactk.solve(problem, 3, "exhaustive").status == Status.CONVERGED


@pytest.mark.parametrize("loss", ["squared", "l21", "logistic"])
def test_time_ends_the_fits_of_near_copies(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _near_copies_of_which_the_difference_tells()
    problem = Problem.from_arrays(X, (y > 0).astype(int), loss=loss)
    looks = iter([False] * 3)
    monkeypatch.setattr(Monitor, "expired", property(lambda _: next(looks, True)))
    result = exactk.solve(problem, 3, "exhaustive")
    assert result.status == Status.TIME_LIMIT
    assert len(result.support) == 3


def test_a_model_that_cannot_be_searched_is_passed_over() -> None:
    """Weights over ten orders, and a fit that is exact in the heaviest rows."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((6, 4)), 10.0 ** np.array([-7.0, -6.0, -5.0, 3.0, 3.0, 3.0])
    y = np.r_[rng.standard_normal(3), np.ones(3)]
    problem = Problem.from_arrays(
        X, y, sample_weight=w, ridge=1.0, task="regression", loss=losses.create("l2r", r=0.5)
    )
    assert len(exactk.solve(problem, 1).support) == 1


@pytest.mark.parametrize("seed", range(6))
def test_below_r_1_more_columns_are_never_worse_and_none_is_no_worse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6))
    y = (X[:, 0] + rng.standard_normal(40) > 0.8).astype(int)
    loss = losses.create("l2r", r=0.5)
    path = exactk.solve_path(Problem.from_arrays(X, y, loss=loss), 6)
    objectives = [result.objective for result in path]
    assert all(b <= a * (1.0 + 1e-6) for a, b in pairwise(objectives))
    assert all(result.objective <= result.total * (1.0 + 1e-9) for result in path)
    # The fit has several minima: which is the least is not known, even of all columns.
    assert path[-1].status == Status.CONVERGED


def test_all_columns_are_the_best_where_a_fit_has_one_minimum() -> None:
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 2
    assert exactk.solve(Problem.from_arrays(X, y, loss="logistic"), 3).status == Status.OPTIMAL


def _separated(shift: float) -> Problem:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((80, 7)), np.arange(80) % 2
    X[:, 0] += shift * y
    return Problem.from_arrays(X, y, loss="logistic")


def test_every_size_of_a_path_says_that_classes_are_separated() -> None:
    for result in exactk.solve_path(_separated(20.0), 7):
        assert "separated" in result.message


def test_classes_that_are_nearly_separated_are_not_said_to_be() -> None:
    """Steep, but with an end: a linear program finds no direction that separates them."""
    from scipy.optimize import linprog

    checked = 0
    for shift in (3.0, 4.0, 5.0, 6.0):
        problem = _separated(shift)
        for result in exactk.solve_path(problem, 5):
            assert problem.rows is not None
            assert problem.target is not None
            Z = np.c_[problem.standardised(result.support)[0], np.ones(80)]
            sign = np.where(np.asarray(problem.target.codes) == 1, 1.0, -1.0)
            margin = linprog(
                np.r_[np.zeros(Z.shape[1]), -1.0],
                A_ub=np.c_[-sign[:, None] * Z, np.ones(80)], b_ub=np.zeros(80),
                bounds=[(-1, 1)] * Z.shape[1] + [(None, 1)],
            )  # fmt: skip
            separated = -margin.fun > 1e-7
            assert ("separated" in result.message) == separated
            checked += not separated
    assert checked > 5


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_in_the_last_fit_keeps_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _near_copies(1.0, "logistic").with_ridge(0.01)
    whole = exactk.solve(problem, 2)
    fits = LikelihoodCriterion.fits

    def until_the_last(self: Criterion, *args: object, **options: object) -> object:
        if options["tol"] == 1e-14:
            raise KeyboardInterrupt
        return fits(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(LikelihoodCriterion, "fits", until_the_last)
    result = exactk.solve(problem, 2)
    assert result.status == Status.INTERRUPTED
    np.testing.assert_array_equal(result.support, whole.support)
    assert result.objective == pytest.approx(whole.objective, rel=1e-4)
    np.testing.assert_allclose(result.coef, whole.coef, rtol=0.05)


def test_ctrl_c_before_the_first_fit_gives_what_squared_loss_chooses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = _near_copies(1.0, "logistic")
    monkeypatch.setattr(LossLocalSearch, "run", _interrupt)
    result = exactk.solve(problem, 2)
    assert result.status == Status.INTERRUPTED
    squared = exactk.solve(problem.with_squared_loss, 2, effort=0)
    np.testing.assert_array_equal(result.support, squared.support)


def test_ctrl_c_while_columns_are_put_in_order_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _near_copies(1.0, "l21")
    whole = exactk.solve(problem, 2)
    monkeypatch.setattr(sys.modules["exactk.solver"], "entry_order_by_loss", _interrupt)
    result = exactk.solve(problem, 2)
    assert result.status == Status.INTERRUPTED
    np.testing.assert_array_equal(result.support, whole.support)
