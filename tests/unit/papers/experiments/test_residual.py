"""The grade of a support against exactk's own, proven optima and a plain fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LinearRegression

import exactk
from exactk.papers.experiments.measures import residual
from tests.support import says

STORED = json.loads(
    (Path(__file__).parents[3] / "oracles" / "proven_optima.json").read_text(encoding="utf-8")
)["sets"]


@pytest.mark.parametrize(
    ("name", "k"),
    [(name, k) for name in ("breast_cancer", "digits") for k in STORED[name]["optimum"]],
)
def test_proven_optima_have_their_grade(name: str, k: str) -> None:
    load = {"breast_cancer": load_breast_cancer, "digits": load_digits}[name]
    X, y = load(return_X_y=True)
    result = exactk.solve(exactk.Problem.from_arrays(X, y), int(k))
    grade = residual(X, y, result.support, "classification")
    assert grade == pytest.approx(STORED[name]["optimum"][k], abs=6e-5)
    assert grade == pytest.approx(result.residual, rel=1e-9)


def test_numbers_and_several_outputs() -> None:
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, y**2])
    for target in (y, Y):
        problem = exactk.Problem.from_arrays(X, target, ridge=0.3, task="regression")
        result = exactk.solve(problem, 4)
        plain = target - LinearRegression().fit(X[:, result.support], target).predict(
            X[:, result.support]
        )
        grade = residual(X, target, result.support, "regression")
        assert grade == pytest.approx((plain**2).sum(), rel=1e-10)
        # With a ridge the fit of the method is worse than the least-squares fit that counts here.
        assert grade < result.residual


def test_the_empty_set_has_all_of_it() -> None:
    y = np.array([0, 0, 1, 1, 1])
    assert residual(np.ones((5, 2)), y, [], "classification") == pytest.approx(2 * 5 * 0.4 * 0.6)
    assert residual(np.ones((5, 2)), y, [0, 1], "classification") == pytest.approx(2.4)


def test_dependent_columns_count_for_what_they_span() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    base = residual(X, y, [1, 7, 20], "classification")
    more = np.column_stack([X, X[:, 1] + X[:, 7], 5 * X[:, 20], np.full(len(X), 0.3)])
    same = residual(more, y, [1, 7, 20, 30, 31, 32], "classification")
    assert same == pytest.approx(base, rel=1e-10)


def test_more_columns_than_rows_leave_nothing() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 40)), np.arange(20) % 4
    assert residual(X, y, range(30), "classification") == pytest.approx(0.0, abs=1e-20)


def test_units_and_order_do_not_matter() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    grade = residual(X, y, [1, 7, 20], "classification")
    assert residual(X * 1e5 - 3, 1 - y, [20, 1, 7], "classification") == pytest.approx(grade)


def test_what_cannot_be_graded_is_refused() -> None:
    X, y = np.arange(8.0).reshape(4, 2), [0, 0, 1, 1]
    with says("task", "'auto'"):
        residual(X, y, [0], "auto")
    with says("support", "0..1", "'-1'"):
        residual(X, y, [-1], "classification")
    with says("X has 4 rows, y has 3"):
        residual(X, y[:3], [0], "classification")
    with says("table of rows and columns"):
        residual(X[0], y, [0], "classification")
