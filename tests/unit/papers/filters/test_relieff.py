"""ReliefF against its definition, against skrebate, and where it stops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from exactk import Problem, Status, solve
from exactk.papers.filters import distances, relieff
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import make_classes

Array = np.ndarray[Any, Any]


def definition(X: Array, y: Array, K: int) -> Array:
    """Row by row, class by class, as Kononenko wrote it; for tables without ties."""
    Z = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    n, prior = len(y), {c: np.mean(y == c) for c in set(y.tolist())}
    W = np.zeros(X.shape[1])
    for i in range(n):
        away = np.abs(Z - Z[i]).sum(axis=1)
        for c in prior:
            same = c == y[i]
            others = [j for j in np.flatnonzero(y == c) if j != i]
            near = sorted(others, key=lambda j: away[j])[:K]
            if not near:
                continue
            mean = np.mean([np.abs(Z[j] - Z[i]) for j in near], axis=0)
            W += -mean / n if same else prior[c] / (1 - prior[y[i]]) * mean / n
    return W


@pytest.mark.parametrize("K", [1, 3, 10, 100])
@pytest.mark.parametrize("classes", [2, 4])
def test_the_definition(K: int, classes: int) -> None:
    X, y = make_classes(47, 9, classes, seed=K)
    X[:, 3] = 1e5 + 1e-3 * X[:, 3]
    found = solve(Problem.from_arrays(X, y), 3, "relieff", n_neighbors=K)
    wanted = definition(X, y, K)
    np.testing.assert_allclose(found.scores, wanted, rtol=1e-9, atol=1e-12)
    assert found.order.tolist() == np.argsort(-wanted)[:3].tolist()


def test_a_class_of_one_row_has_no_hits_and_is_a_miss() -> None:
    X, y = make_classes(20, 5, 2, seed=1)
    y[:1] = 7
    found = solve(Problem.from_arrays(X, y), 2, "relieff", n_neighbors=3)
    np.testing.assert_allclose(found.scores, definition(X, y, 3), rtol=1e-9, atol=1e-12)


# With classes of unequal size skrebate weighs misses otherwise than by the prior.
@pytest.mark.peers
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_skrebate_gives_the_same_scores(load: Any) -> None:
    import skrebate

    X, y = load(return_X_y=True)
    # Rows at the same distance share a place here and take it by their order there.
    X = X + 1e-7 * X.std(axis=0) * np.random.default_rng(0).standard_normal(X.shape)
    peer = skrebate.ReliefF(n_neighbors=10, categorical_threshold=0).fit(X.copy(), y)
    found = solve(Problem.from_arrays(X, y), 3, "relieff")
    ratio = found.scores / peer.feature_importances_
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-8)


def test_two_columns_that_only_together_tell_the_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 20))
    y = (X[:, 4] * X[:, 11] > 0).astype(int)
    # No linear criterion sees them: by chance 1 in 190.
    assert solve(Problem.from_arrays(X, y), 2, "relieff").support.tolist() == [4, 11]
    assert solve(Problem.from_arrays(X, y), 2, "fisher").support.tolist() != [4, 11]


def test_rows_at_the_same_distance_share_the_last_place() -> None:
    # Around the row at 0 its hits lie at ±1; with K = 1 each counts half.
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 4.0], [9.0, 1.0], [9.5, 2.0]])
    y = np.array([0, 0, 0, 1, 1])
    weights = relieff._shares_even(
        np.array([[np.inf, 1.0, 1.0 + 1e-14, 2.0]]), np.ones((1, 4)), np.array([1.0])
    )
    assert weights.tolist() == [[0.0, 0.5, 0.5, 0.0]]
    problem = Problem.from_arrays(X, y)
    scores = solve(problem, 1, "relieff", n_neighbors=1).scores
    for move in ([2, 1, 0, 3, 4], [4, 2, 0, 1, 3]):
        moved = solve(Problem.from_arrays(X[move], y[move]), 1, "relieff", n_neighbors=1).scores
        np.testing.assert_allclose(moved, scores, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_even_and_weighted_neighbours_are_the_same_where_all_weights_are_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    near = np.round(rng.uniform(0, 2, (6, 9)), 1)
    room = np.full(6, 4.0)
    even = relieff._shares_even(near, np.ones((6, 9)), room)
    np.testing.assert_allclose(relieff._shares(near, np.ones(9), room), even, rtol=1e-12)
    np.testing.assert_allclose(even.sum(axis=1), 4.0)
    weighted = relieff._shares(near, rng.uniform(0.2, 2, 9), room)
    np.testing.assert_allclose(weighted.sum(axis=1), 4.0)


def test_blocks_of_rows_give_what_all_at_once_give(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(83, 6, 3, seed=2)
    w = np.random.default_rng(0).uniform(0.5, 3, 83)
    problems = [Problem.from_arrays(X, y, sample_weight=weights) for weights in (None, w)]
    whole = [solve(problem, 2, "relieff").scores for problem in problems]
    monkeypatch.setattr(relieff, "WHOLE", 100)
    monkeypatch.setattr(relieff, "BLOCK", 83 * 10)
    for problem, wanted in zip(problems, whole, strict=True):
        seen: list[Progress] = []
        ranking = relieff.ReliefF().rank(problem, 2, Monitor(on_progress=seen.append))
        np.testing.assert_allclose(ranking.scores, wanted, rtol=1e-9)
        assert [step.done for step in seen] == list(range(1, 10))


def test_time_ends_it_with_the_scores_of_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(400, 10, 3, seed=3)
    problem = Problem.from_arrays(X, y)
    whole = solve(problem, 3, "relieff")
    monkeypatch.setattr(relieff, "WHOLE", 100)
    monkeypatch.setattr(relieff, "BLOCK", 400 * 100)
    result = solve(problem, 3, "relieff", time_limit=1e-9)
    assert result.status == Status.TIME_LIMIT
    assert result.k == 3
    assert np.corrcoef(result.scores, whole.scores)[0, 1] > 0.95


def test_an_interrupt_keeps_the_scores_of_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(100, 5, 3, seed=3)
    problem, calls = Problem.from_arrays(X, y), []

    def stop(left: Array, right: Array) -> Array:
        calls.append(1)
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        return distances.city_block(left, right)

    monkeypatch.setattr(relieff, "WHOLE", 100)
    monkeypatch.setattr(relieff, "BLOCK", 100 * 10)
    monkeypatch.setattr(relieff, "city_block", stop)
    stop_at = 3
    assert solve(problem, 2, "relieff").status == Status.INTERRUPTED
    calls.clear()
    stop_at = 1
    with pytest.raises(KeyboardInterrupt):
        solve(problem, 2, "relieff")
