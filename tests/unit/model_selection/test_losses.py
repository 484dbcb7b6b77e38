"""Sizes, ridges and half-samples by the loss of the problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, log_softmax
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneOut

from exactk import (
    Problem,
    TopKSelector,
    choose_k,
    explain,
    score_selection,
    solve,
    solve_path,
    stability,
)
from exactk.model_selection.criteria import criterion_values
from exactk.model_selection.cross_validation import folds_of
from tests.support import says


def wine(loss: str, **options: Any) -> Problem:
    return Problem.from_arrays(*load_wine(return_X_y=True), loss=loss, **options)


def in_parts(n: int) -> list[tuple[Any, Any]]:
    part = np.arange(n) % 3
    return [(np.flatnonzero(part != i), np.flatnonzero(part == i)) for i in range(3)]


def test_held_out_deviance_is_that_of_the_model() -> None:
    X, y = load_wine(return_X_y=True)
    problem = wine("logistic", ridge=0.05)
    for fold, (_, held) in zip(folds_of(problem, in_parts(len(y))), in_parts(len(y)), strict=True):
        result = solve(fold.train, 2, effort=0)
        eta = X[held][:, result.support] @ result.coef.T + result.intercept
        p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
        wanted = 2 * log_loss(y[held], p, normalize=False)
        assert fold.errors([result])[0] == pytest.approx(wanted, rel=1e-9)
        assert fold.train.loss.name == "logistic"


@pytest.mark.parametrize("loss", ["l21", "l2r", "huber"])
def test_held_out_robust_loss_is_that_of_the_residuals(loss: str) -> None:
    X, y = load_wine(return_X_y=True)
    Y, problem = np.eye(3)[y], wine(loss, ridge=0.05)
    fold, (_, held) = folds_of(problem, in_parts(len(y)))[0], in_parts(len(y))[0]
    result = solve(fold.train, 3, effort=0)
    e = np.linalg.norm(
        Y[held] - X[held][:, result.support] @ result.coef.T - result.intercept, axis=1
    )
    if loss == "huber":
        grid = np.linspace(0.2, 2.0, 20_000)[:, None] * e.mean()
        z = e / grid
        wanted = (grid * (1 + np.where(z < 1.35, z**2, 2.7 * z - 1.35**2))).sum(axis=1).min()
        assert fold.errors([result])[0] == pytest.approx(wanted, rel=1e-6)
    else:
        wanted = (e ** (1.0 if loss == "l21" else 0.5)).sum()
        assert fold.errors([result])[0] == pytest.approx(wanted, rel=1e-9)


def test_held_out_scores_are_those_of_the_training_rows() -> None:
    X, y = load_wine(return_X_y=True)
    problem = wine("optimal_scoring", ridge=0.05)
    for fold, (train, held) in zip(
        folds_of(problem, in_parts(len(y))), in_parts(len(y)), strict=True
    ):
        result = solve(fold.train, 3, effort=0)
        score = 1 / np.sqrt(np.bincount(y[train]))
        left = np.eye(3)[y[held]] * score - X[held][:, result.support] @ result.coef.T
        wanted = ((left - result.intercept) ** 2).sum()
        assert fold.errors([result])[0] == pytest.approx(wanted, rel=1e-9)


def test_bic_of_a_likelihood_is_deviance_and_parameters() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    problem = Problem.from_arrays(X, y, loss="logistic")
    results = [solve(problem, k, effort=0) for k in (1, 2)]
    n = len(y)
    for k, result, bic, ebic, aicc in zip(
        (1, 2), results, *(criterion_values(problem, results, c) for c in ("bic", "ebic", "aicc")),
        strict=True,
    ):  # fmt: skip
        fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=100_000)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        p = fit.fit(Z[:, result.support], y).predict_proba(Z[:, result.support])
        deviance = 2 * log_loss(y, p, normalize=False)
        sets = gammaln(31) - gammaln(k + 1) - gammaln(31 - k)
        assert bic == pytest.approx(deviance + (k + 1) * np.log(n), rel=1e-6)
        assert ebic == pytest.approx(bic + 2 * sets, rel=1e-6)
        assert aicc == pytest.approx(deviance + 2 * (k + 1) * n / (n - k - 2), rel=1e-6)


def test_criteria_that_a_loss_does_not_have_are_refused() -> None:
    with says("criterion='bic'", "'l21'", "criterion='cv'"):
        choose_k(wine("l21"), 3, criterion="bic")
    with says("criterion='cp'", "'logistic'", "criterion='cv'"):
        choose_k(wine("logistic"), 3, criterion="cp")
    assert choose_k(wine("optimal_scoring"), 4, criterion="cp").k >= 1


def test_ridges_go_by_the_loss() -> None:
    likelihood, plain = wine("logistic"), wine("squared")
    by_rule = plain.with_ridge("auto").ridge
    assert likelihood.with_ridge("auto").ridge == pytest.approx(0.1 * by_rule)
    assert wine("l21").with_ridge("auto").ridge == by_rule
    chosen = likelihood.with_ridge("cv", 3).ridge
    assert chosen < 1.0
    X, y = load_wine(return_X_y=True)
    assert TopKSelector(k=3, loss="logistic", ridge="cv", effort=0).fit(X, y).ridge_ == chosen


@pytest.mark.parametrize("loss", ["logistic", "huber", "optimal_scoring"])
def test_half_samples_are_searched_by_the_loss(loss: str) -> None:
    problem = wine(loss, ridge=0.05)
    found = stability(problem, 2, n_subsamples=6)
    assert found.full.loss == loss
    assert found.result.objective == pytest.approx(problem.objective(found.support), rel=1e-9)
    assert found.frequencies.sum() == pytest.approx(2.0)


def test_what_rests_on_closed_forms_is_refused_by_name() -> None:
    with says("explain", "'logistic'", "with_loss('squared')"):
        explain(wine("logistic"), 2)
    assert explain(wine("optimal_scoring"), 2).support.shape == (2,)


def test_a_class_that_a_fold_has_not_got_is_no_obstacle() -> None:
    X, y = load_wine(return_X_y=True)
    y = np.where(np.arange(len(y)) == 5, 3, y)
    problem = Problem.from_arrays(X, y, loss="logistic", ridge=0.05)
    splits = [(np.delete(np.arange(len(y)), [4, 5, 6]), np.array([4, 5, 6]))] * 2
    choice = choose_k(problem, 2, cv=splits, effort=0)
    means = np.array(choice.table["mean"])
    assert np.isfinite(means).all()
    # The row of the class that nobody has seen is a great surprise at every size.
    assert (means > 5).all()


def test_weights_of_classes_choose_and_do_not_score() -> None:
    X, y = load_wine(return_X_y=True)
    balanced = Problem.from_arrays(X, y, class_weight="balanced", loss="logistic", ridge=0.05)
    plain = Problem.from_arrays(X, y, loss="logistic", ridge=0.05)
    assert balanced.row_weights is None
    assert balanced.weights is not None
    scored = score_selection(balanced, k=13, ridge=0.05, n_permutations=0)
    # With all columns there is nothing to choose: the scores are those without weights.
    assert (
        scored.test_score == score_selection(plain, k=13, ridge=0.05, n_permutations=0).test_score
    )
    given = plain.with_class_weight({0: 5.0})
    np.testing.assert_array_equal(given.weights, np.where(y == 0, 5.0, 1.0))
    assert given.row_weights is None


def test_a_fold_with_one_class_differs_from_a_table_with_one() -> None:
    X, y = load_wine(return_X_y=True)
    y = np.where(np.arange(len(y)) == 5, 1, 0)
    alone = [(np.delete(np.arange(len(y)), [5, 6]), np.array([5, 6]))] * 2
    for loss in ("squared", "logistic"):
        problem = Problem.from_arrays(X, y, loss=loss, ridge=0.05)
        with says("every row that one of the folds trains on", "other folds", "criterion='ebic'"):
            choose_k(problem, 2, cv=alone)


@pytest.mark.parametrize("classes", [33, 120])
def test_many_classes_of_which_folds_lack_some(classes: int) -> None:
    """By factors and by products alone; rows of classes that a fold lacks are in no one's way."""
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(2 * classes) % classes, classes]
    X = rng.standard_normal((classes + 1, 6))[y] + 0.3 * rng.standard_normal((len(y), 6))
    problem = Problem.from_arrays(X, y, loss="logistic", ridge=0.05)
    choice = choose_k(problem, 2, cv=2, effort=0)
    assert np.isfinite(np.array(choice.table["mean"])).all()
    fold = folds_of(problem, in_parts(len(y)))[0]
    result = solve(fold.train, 2, effort=0)
    assert result.message == ""
    lacking = np.setdiff1d(y, np.asarray(fold.train.target.codes))
    assert classes in lacking
    np.testing.assert_array_equal(result.coef[lacking], 0.0)


def test_a_time_limit_ends_a_path_with_many_classes() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 40
    problem = Problem.from_arrays(rng.standard_normal((120, 8)), y, loss="logistic", ridge=0.05)
    path = solve_path(problem, 6, time_limit=1e-6)
    assert [len(result.support) for result in path] == [1, 2, 3, 4, 5, 6]
    assert all(result.status == "time_limit" for result in path)
    objectives = [result.objective for result in path]
    assert objectives == sorted(objectives, reverse=True)


@pytest.mark.parametrize("kept", [[2], [0, 1], [0, 1, 2]])
def test_held_out_rows_that_lack_a_class_are_none_the_likelier(kept: list[int]) -> None:
    X, y = load_wine(return_X_y=True)
    problem = wine("logistic", ridge=0.05)
    held = np.flatnonzero(np.isin(y, kept))[::3]
    fold = folds_of(problem, [(np.setdiff1d(np.arange(len(y)), held), held)])[0]
    result = solve(fold.train, 2, effort=0)
    logs = log_softmax(X[held][:, result.support] @ result.coef.T + result.intercept, axis=1)
    wanted = -2.0 * logs[np.arange(len(held)), y[held]].sum()
    assert fold.errors([result])[0] == pytest.approx(wanted, rel=1e-10)


def test_one_row_held_out_at_a_time_is_scored_as_in_folds() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = np.argmax(np.c_[2 * X[:, 0], 2 * X[:, 1], -2 * X[:, 0]] + rng.gumbel(size=(60, 3)), axis=1)
    problem = Problem.from_arrays(X, y, loss="logistic", ridge=0.01)
    one = choose_k(problem, 3, cv=LeaveOneOut(), effort=0)
    ten = choose_k(problem, 3, cv=10, effort=0, random_state=0)
    np.testing.assert_allclose(one.table["mean"], ten.table["mean"], rtol=0.2)
