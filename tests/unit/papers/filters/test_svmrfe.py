"""SVM-RFE: scikit-learn's machine and its elimination; limits and Ctrl-C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.feature_selection import RFE
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from exactk import Problem, Status, solve
from exactk.papers.filters.svmrfe import SVMRFE, fit_squared_hinge, make_system
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import make_classes


def standardised(X: Any) -> Any:
    return StandardScaler().fit_transform(X) * np.sqrt(1 - 1 / len(X))


@pytest.mark.parametrize("shape", [(60, 10, 2), (80, 12, 4), (20, 50, 3), (15, 15, 2)])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_svms_are_those_of_liblinear(shape: tuple[int, int, int], C: float) -> None:
    X, y = make_classes(*shape, seed=1)
    w = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = LinearSVC(C=C, dual=False, tol=1e-10, max_iter=100_000).fit(X, y, w)
    signs = [np.where(y == c, 1.0, -1.0) for c in (range(shape[2]) if shape[2] > 2 else [1])]
    system = make_system(X, C * w)
    found = np.array([fit_squared_hinge(system, s)[0] for s in signs])
    np.testing.assert_allclose(found, model.coef_, atol=1e-5 * np.abs(found).max())
    # Wherever it begins it ends at the same machine.
    for begin in (np.arange(3), np.arange(len(y) // 2)):
        again = np.array([fit_squared_hinge(system, s, begin)[0] for s in signs])
        np.testing.assert_allclose(again, found, atol=1e-9 * np.abs(found).max())


@pytest.mark.parametrize("shape", [(60, 12), (20, 40)])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_gradient_vanishes(shape: tuple[int, int], C: float) -> None:
    X, y = make_classes(*shape, 2, seed=2)
    # A constant column takes the place of the intercept, which has none of its own then.
    X = np.column_stack([X - X.mean(axis=0), np.ones(len(X))])
    s = np.where(y == 1, 1.0, -1.0)
    w, lost = fit_squared_hinge(make_system(X, np.full(len(s), C)), s)
    assert lost.tolist() == np.flatnonzero(s * (X @ w + w[-1]) < 1.0).tolist()
    # The machine's own b equals w of the column of ones, by symmetry.
    loss = np.maximum(0.0, 1.0 - s * (X @ w + w[-1]))
    gradient = w - 2 * C * X.T @ (s * loss)
    assert np.abs(gradient).max() < 1e-8 * np.abs(2 * C * X.T @ s).max()


@pytest.mark.parametrize("step", [1, 3, 0.1, 0.3])
@pytest.mark.parametrize("shape", [(80, 14, 2), (90, 14, 3), (25, 40, 3)])
def test_the_columns_of_rfe_for_every_k(shape: tuple[int, int, int], step: float) -> None:
    X, y = make_classes(*shape, seed=3)
    problem, Z = Problem.from_arrays(X, y), standardised(X)
    for k in (1, 2, 5, 9, 13):
        model = LinearSVC(dual=False, tol=1e-8, max_iter=100_000)
        wanted = RFE(model, n_features_to_select=k, step=step).fit(Z, y).support_
        found = solve(problem, k, "svmrfe", step=step)
        assert found.support.tolist() == np.flatnonzero(wanted).tolist()
        assert found.status == Status.CONVERGED


def test_scores_are_the_order_of_elimination() -> None:
    X, y = make_classes(80, 9, 3, seed=4)
    result = solve(Problem.from_arrays(X, y), 4, "svmrfe")
    assert result.scores[result.order].tolist() == [-1, -2, -3, -4]
    assert sorted(result.scores.tolist()) == list(range(-9, 0))
    ranking = RFE(LinearSVC(dual=False, tol=1e-8), n_features_to_select=1, step=1)
    assert (-result.scores).tolist() == ranking.fit(standardised(X), y).ranking_.tolist()


def test_elimination_is_not_the_order_of_one_svm() -> None:
    X, y = make_classes(60, 20, 3, seed=5)
    problem = Problem.from_arrays(X, y)
    once, often = (solve(problem, 20, "svmrfe", step=step).order.tolist() for step in (20, 1))
    assert once != often


def test_planted_columns_are_found() -> None:
    # By chance 5 of 300 columns would hold 0.1 planted ones.
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.standard_normal((120, 300))
    X[:, :5] += 2.0 * rng.standard_normal((3, 5))[y]
    support = solve(Problem.from_arrays(X, y), 5, "svmrfe").support
    assert (support < 5).sum() >= 4


def test_time_up_keeps_what_the_last_weights_say() -> None:
    X, y = make_classes(60, 30, 3, seed=6)
    problem = Problem.from_arrays(X, y)
    result = solve(problem, 5, "svmrfe", time_limit=1e-9)
    assert result.status == Status.TIME_LIMIT
    assert result.order.tolist() == solve(problem, 5, "svmrfe", step=30).order.tolist()


def test_an_interrupt_keeps_what_was_dropped() -> None:
    X, y = make_classes(60, 30, 3, seed=6)
    problem = Problem.from_arrays(X, y)

    def stop(progress: Progress) -> None:
        if progress.done >= 12:
            raise KeyboardInterrupt

    answer = SVMRFE(step=3).run(problem, 5, Monitor(on_progress=stop))
    assert answer.status == Status.INTERRUPTED
    assert len(set(answer.support)) == 5
    scores = solve(problem, 5, "svmrfe", step=3).scores
    assert answer.scores is not None
    np.testing.assert_array_equal(np.sort(answer.scores)[:12], np.sort(scores)[:12])
    dropped = scores < -18
    np.testing.assert_array_equal(answer.scores[dropped], scores[dropped])
