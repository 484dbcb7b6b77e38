"""Half-samples, paths and explanations by the loss of the problem."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

from exactk import Problem, explain, solve_path, stability


@pytest.mark.parametrize("loss", ["logistic", "huber", "optimal_scoring"])
def test_half_samples_are_searched_by_the_loss(loss: str) -> None:
    problem = Problem.from_arrays(*load_wine(return_X_y=True), loss=loss, ridge=0.05)
    found = stability(problem, k=2, n_subsamples=6)
    assert found.full.loss == loss
    assert found.result.objective == pytest.approx(problem.objective(found.support), rel=1e-9)
    assert found.frequencies.sum() == pytest.approx(2.0)


def test_optimal_scoring_is_explained_like_the_squared_error() -> None:
    X, y = load_wine(return_X_y=True)
    assert explain(X, y, k=2, loss="optimal_scoring", ridge=0.05).support.shape == (2,)


def test_a_time_limit_ends_a_path_with_many_classes() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 40
    problem = Problem.from_arrays(rng.standard_normal((120, 8)), y, loss="logistic", ridge=0.05)
    path = solve_path(problem, 6, time_limit=1e-6)
    assert [len(result.support) for result in path] == [1, 2, 3, 4, 5, 6]
    assert all(result.status == "time_limit" for result in path)
    objectives = [result.objective for result in path]
    assert objectives == sorted(objectives, reverse=True)
