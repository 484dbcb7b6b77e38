"""The method that takes what exchange chooses most often on halves of the rows."""

from __future__ import annotations

import numpy as np
import pytest

import exactk
from exactk import Problem, Status, solve, solve_path
from exactk.methods import stability as module
from exactk.search.subsampling import half_samples
from tests.oracles.brute import make_classes
from tests.support import says


def test_scores_are_the_frequencies_over_the_half_samples() -> None:
    X, y = make_classes(70, 9, 3, seed=1)
    problem = Problem.from_arrays(X, y, ridge=0.1)
    result = solve(problem, 3, "stability", n_subsamples=12, random_state=7)
    halves = half_samples(problem, np.random.default_rng(7), n_subsamples=12)
    chosen = [solve(half, 3, effort=0).support for half in halves]
    frequencies = np.bincount(np.concatenate(chosen), minlength=9) / 12
    np.testing.assert_allclose(result.scores, frequencies)
    assert result.n_iter == 12
    # By frequency, and among equals by what each explains alone.
    alone = np.array([problem.objective([j]) for j in range(9)])
    assert result.order.tolist() == np.lexsort((alone, -frequencies))[:3].tolist()


def test_a_path_uses_the_same_half_samples_at_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(70, 9, 3, seed=1)
    problem = Problem.from_arrays(X, y)
    wanted = [solve(problem, k, "stability", n_subsamples=8) for k in range(1, 6)]
    drawn = []

    def counted(*args, **named):
        for half in half_samples(*args, **named):
            drawn.append(half)
            yield half

    monkeypatch.setattr(module, "half_samples", counted)
    path = solve_path(problem, 5, "stability", n_subsamples=8)
    assert len(drawn) == 8
    for found, one in zip(path, wanted, strict=True):
        assert found.order.tolist() == one.order.tolist()


def test_constraints_are_kept() -> None:
    X, y = make_classes(70, 9, 3, seed=1)
    problem = Problem.from_arrays(X, y).with_constraints(
        include=[8], exclude=[0], feature_groups={"pair": [1, 2]}
    )
    for result in solve_path(problem, 5, "stability", n_subsamples=8):
        support = set(result.support.tolist())
        assert 8 in support
        assert 0 not in support
        assert len({1, 2} & support) in (0, 2)
        assert result.support.tolist() == (
            solve(problem, result.k, "stability", n_subsamples=8).support.tolist()
        )


def test_a_size_that_no_set_has_is_left_out() -> None:
    X, y = make_classes(70, 6, 3, seed=1)
    groups = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    problem = Problem.from_arrays(X, y).with_constraints(feature_groups=groups, count="columns")
    assert solve_path(problem, 5, "stability", n_subsamples=4).sizes == [2, 4]


def test_a_time_limit_and_an_interrupt_keep_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(70, 9, 3, seed=1)
    problem = Problem.from_arrays(X, y)
    result = solve(problem, 3, "stability", time_limit=1e-9)
    assert (result.status, result.n_iter) == (Status.TIME_LIMIT, 2)
    search, calls = module.best_support, []

    def interrupted(half, *rest):
        calls.append(half)
        if len(calls) == done + 1:
            raise KeyboardInterrupt
        return search(half, *rest)

    monkeypatch.setattr(module, "best_support", interrupted)
    for done in (4, 0):
        calls.clear()
        result = solve(problem, 3, "stability")
        assert (result.status, result.n_iter) == (Status.INTERRUPTED, done)
        assert result.k == 3


def test_too_few_rows_and_targets_that_vary_in_no_half() -> None:
    X = np.random.default_rng(0).normal(size=(20, 4))
    with says("stability", "at least 6 rows", "there are 5", "exchange"):
        solve(Problem.from_arrays(X[:5], [0, 1, 0, 1, 1]), 2, "stability")
    # One of the two halves has no row of the second class, so half of the samples count.
    y = (np.arange(20) == 3).astype(int)
    assert solve(Problem.from_arrays(X, y), 2, "stability", n_subsamples=6).n_iter == 3


def test_planted_columns_are_found_through_the_selector() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 30))
    y = X[:, 4] + X[:, 9] - X[:, 22] + 0.5 * rng.normal(size=150)
    selector = exactk.TopKSelector(k=3, method="stability").fit(X, y)
    assert selector.get_support(indices=True).tolist() == [4, 9, 22]
    assert selector.scores_[[4, 9, 22]].tolist() == [1.0, 1.0, 1.0]
