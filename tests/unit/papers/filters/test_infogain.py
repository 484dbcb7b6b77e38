"""Information gain against scikit-learn's mutual information."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import mutual_info_score

from exactk import Problem, solve, solve_path
from tests.oracles.brute import make_classes


@pytest.mark.parametrize("width", [0.5, 1.0])
def test_the_gain_is_the_mutual_information_of_levels(width: float) -> None:
    X, y = load_wine(return_X_y=True)
    low, high = (X.mean(axis=0) + sign * width * X.std(axis=0) for sign in (-1, 1))
    expected = [
        mutual_info_score(y, np.digitize(x, [a, b])) for x, a, b in zip(X.T, low, high, strict=True)
    ]
    result = solve(Problem.from_arrays(X, y), 4, "infogain", width=width)
    np.testing.assert_allclose(result.scores, expected, rtol=1e-9)
    assert result.order.tolist() == np.argsort(expected)[::-1][:4].tolist()


def test_discrete_columns_as_they_are() -> None:
    X, y = load_digits(return_X_y=True)
    result = solve(Problem.from_arrays(X, y), 10, "infogain", bins="values")
    gains = np.array([mutual_info_score(y, x) for x in X.T])
    varies = X.std(axis=0) > 0
    np.testing.assert_allclose(result.scores[varies], gains[varies], atol=1e-12)
    assert np.isnan(result.scores[~varies]).all()
    assert set(result.support) == set(np.argsort(gains)[::-1][:10])


def test_bins_of_equal_frequency() -> None:
    X, y = make_classes(80, 6, 3, seed=2)
    quarters = X.argsort(axis=0).argsort(axis=0) // 20
    expected = [mutual_info_score(y, q) for q in quarters.T]
    result = solve(Problem.from_arrays(X, y), 2, "infogain", bins=4)
    np.testing.assert_allclose(result.scores, expected, atol=1e-12)


def test_what_decides_the_class_gains_its_entropy() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.standard_normal((200, 50))
    X[:, 17] = y
    result = solve(Problem.from_arrays(X, y), 1, "infogain")
    share = y.mean()
    assert result.support.tolist() == [17]
    assert result.scores[17] == pytest.approx(
        -share * np.log(share) - (1 - share) * np.log(1 - share)
    )


def test_planted_columns_are_found() -> None:
    # Five of 200 columns hang on the class, 1.5 sd apart; by chance 5 draws find 1 in 8 tries.
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 150)
    X = rng.standard_normal((150, 200))
    planted = rng.choice(200, 5, replace=False)
    X[:, planted] += 1.5 * y[:, None]
    assert set(solve(Problem.from_arrays(X, y), 5, "infogain").support) == set(planted)


def test_equal_gains_go_by_index() -> None:
    X, y = make_classes(8, 20, 2, seed=4)
    for seed in range(5):
        move = np.random.default_rng(seed).permutation(20)
        result = solve(Problem.from_arrays(X[:, move], y), 6, "infogain")
        gains = np.round(result.scores, 12)
        assert len(set(gains.tolist())) < 20, "there are ties"
        assert result.order.tolist() == np.lexsort((np.arange(20), -gains))[:6].tolist()


def test_blocks_of_columns_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classes(30, 40, 3, seed=5)
    whole = solve(Problem.from_arrays(X, y), 5, "infogain").scores
    monkeypatch.setattr("exactk.papers.filters.base.BLOCK_VALUES", 100)
    monkeypatch.setattr("exactk.papers.filters.discretise.BLOCK_VALUES", 100)
    blocks = solve(Problem.from_arrays(X, y), 5, "infogain").scores
    np.testing.assert_allclose(blocks, whole, rtol=1e-12, atol=1e-14)


def test_a_path_is_nested() -> None:
    path = solve_path(Problem.from_arrays(*make_classes(40, 9, 3)), 5, "infogain")
    for smaller, larger in pairwise(path):
        assert larger.order[:-1].tolist() == smaller.order.tolist()
