"""Measures against their formulas, written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.metrics import jaccard_score, root_mean_squared_error

from exactk.papers.experiments.measures import jaccard, linear_rmse, nogueira, redundancy
from tests.support import says

WINE = load_wine(return_X_y=True)[0]


def test_redundancy_is_the_mean_correlation_of_pairs() -> None:
    support = [0, 5, 6, 9]
    pairs = [abs(pearsonr(WINE[:, i], WINE[:, j])[0]) for i, j in combinations(support, 2)]
    assert redundancy(WINE, support) == pytest.approx(np.mean(pairs))


def test_redundancy_of_copies_constants_and_single_columns() -> None:
    x = WINE[:, 0]
    assert redundancy(np.column_stack([x, -3 * x + 1]), [0, 1]) == pytest.approx(1.0)
    assert redundancy(np.column_stack([x, np.full(len(x), 0.1)]), [0, 1]) == 0.0
    assert redundancy(WINE, [3]) == 0.0
    assert redundancy(WINE, []) == 0.0
    assert redundancy(np.column_stack([x, x * 1e200]), [0, 1]) == pytest.approx(1.0)


def literal_nogueira(sets: list[list[int]], d: int) -> float:
    """Definition 4 of the paper, feature by feature."""
    M = len(sets)
    Z = [[1 if f in s else 0 for f in range(d)] for s in sets]
    variance = 0.0
    for f in range(d):
        p = sum(row[f] for row in Z) / M
        variance += M / (M - 1) * p * (1 - p)
    k = sum(map(len, sets)) / M
    return 1 - (variance / d) / (k / d * (1 - k / d))


@pytest.mark.parametrize("seed", range(5))
def test_nogueira_follows_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sets = [rng.choice(12, rng.integers(1, 8), replace=False).tolist() for _ in range(6)]
    assert nogueira(sets, 12) == pytest.approx(literal_nogueira(sets, 12))


def test_nogueira_knows_chance_and_certainty() -> None:
    rng = np.random.default_rng(0)
    for k in (3, 25):
        drawn = [rng.choice(50, k, replace=False) for _ in range(400)]
        assert nogueira(drawn, 50) == pytest.approx(0.0, abs=0.02)
    assert nogueira([[1, 2], [2, 1]], 9) == 1.0
    assert nogueira([range(4), range(4)], 4) == 1.0
    # The lower bound −1/(M − 1): two sets without a common column, half of all each.
    assert nogueira([[0, 1], [2, 3]], 4) == pytest.approx(-1.0)


def test_jaccard_is_the_mean_over_pairs() -> None:
    sets = [[0, 1, 2], [1, 2, 3], [4], [0, 1, 2]]
    members = [[int(f in s) for f in range(5)] for s in sets]
    scores = [jaccard_score(a, b) for a, b in combinations(members, 2)]
    assert jaccard(sets) == pytest.approx(np.mean(scores))
    assert jaccard([[3], [3]]) == 1.0
    assert jaccard([[], []]) == 1.0


@pytest.mark.parametrize("outputs", [1, 3])
def test_rmse_is_that_of_scikit_learn(outputs: int) -> None:
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, y**2 / 100, X[:, 0] + y])[:, :outputs]
    X = X[:, 1:6]
    model = LinearRegression().fit(X[:300], Y[:300])
    squared = (
        root_mean_squared_error(Y[300:], model.predict(X[300:]), multioutput="raw_values") ** 2
    )
    given = Y[:, 0] if outputs == 1 else Y
    found = linear_rmse(X[:300], given[:300], X[300:], given[300:])
    assert found == pytest.approx(np.sqrt(squared.mean()))
    # Copies and constants span nothing more.
    more = np.column_stack([X, X[:, 0] - X[:, 1], np.ones(len(X))])
    assert linear_rmse(more[:300], given[:300], more[300:], given[300:]) == pytest.approx(found)


def test_without_columns_the_mean_predicts() -> None:
    found = linear_rmse(np.empty((3, 0)), [1.0, 2.0, 3.0], np.empty((2, 0)), [2.0, 4.0])
    assert found == pytest.approx(np.sqrt(2.0))


def test_what_cannot_be_measured_is_refused() -> None:
    with says("support", "0..12", "'13'"):
        redundancy(WINE, [0, 13])
    with says("twice", "'4'"):
        redundancy(WINE, [4, 4])
    with says("two sets or more", "not 1"):
        nogueira([[1, 2]], 5)
    with says("support", "0..4"):
        nogueira([[1], [5]], 5)
    with says("two sets"):
        jaccard([])
    with says("Y_train has 1 outputs, Y_test 2"):
        linear_rmse([[0.0], [1.0]], [0.0, 1.0], [[0.0]], [[0.0, 1.0]])
    with says("Y_train has 1 rows"):
        linear_rmse([[0.0], [1.0]], [0.0], [[0.0]], [0.0])
    with says("X_train has 1 columns, X_test 2"):
        linear_rmse([[0.0], [1.0]], [0.0, 1.0], [[0.0, 1.0]], [0.0])
