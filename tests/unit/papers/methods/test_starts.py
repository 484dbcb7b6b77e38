"""Random starts: the same for the same table in another order, and fair."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from exactk import Problem
from exactk.papers.methods.standard_table import random_matrix, random_support
from tests.oracles.brute import make_classes, make_numbers, one_hot

SEEDS = range(5)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    return make_classes(40, 9, 3, seed=3)


@pytest.fixture(scope="module")
def problem(data: tuple[Any, Any]) -> Problem:
    return Problem.from_arrays(*data)


@pytest.mark.parametrize("seed", SEEDS)
def test_moved_columns_get_the_same_starts(data: Any, problem: Problem, seed: int) -> None:
    X, y = data
    moved = rng(99).permutation(9)
    other = Problem.from_arrays(X[:, moved], y)
    support = random_support(problem, 4, rng(seed))
    assert moved[random_support(other, 4, rng(seed))].tolist() == support.tolist()
    W, V = random_matrix(problem, rng(seed), 1.0), random_matrix(other, rng(seed), 1.0)
    np.testing.assert_allclose(V, W[moved], atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_moved_rows_get_the_same_starts(data: Any, problem: Problem, seed: int) -> None:
    X, y = data
    moved = rng(99).permutation(40)
    other = Problem.from_arrays(X[moved], y[moved])
    assert (random_support(other, 4, rng(seed)) == random_support(problem, 4, rng(seed))).all()
    W, V = random_matrix(problem, rng(seed), 1.0), random_matrix(other, rng(seed), 1.0)
    np.testing.assert_allclose(V, W, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_renamed_classes_get_the_same_starts(data: Any, problem: Problem, seed: int) -> None:
    X, y = data
    # Class 0 becomes the last, 1 the first, 2 the second.
    other = Problem.from_arrays(X, np.array(["z", "a", "m"])[y])
    assert (random_support(other, 4, rng(seed)) == random_support(problem, 4, rng(seed))).all()
    W, V = random_matrix(problem, rng(seed), 1.0), random_matrix(other, rng(seed), 1.0)
    np.testing.assert_allclose(V, W[:, [1, 2, 0]], atol=1e-12)


def test_scaled_columns_get_the_same_starts(data: Any, problem: Problem) -> None:
    X, y = data
    other = Problem.from_arrays(X * 10.0 ** np.arange(-4, 5), y)
    assert (random_support(other, 4, rng(1)) == random_support(problem, 4, rng(1))).all()
    W, V = random_matrix(problem, rng(1), 1.0), random_matrix(other, rng(1), 1.0)
    np.testing.assert_allclose(V, W, rtol=1e-9)


def test_supports_are_of_distinct_candidates() -> None:
    X, y = make_classes(40, 5, 3, seed=3)
    X = np.column_stack([np.ones(40), X, X[:, 1]])
    problem = Problem.from_arrays(X, y)
    for seed in range(30):
        support = random_support(problem, 4, rng(seed)).tolist()
        assert len(set(support)) == 4
        assert set(support) <= {1, 2, 3, 4, 5}
    assert sorted(random_support(problem, 5, rng(0)).tolist()) == [1, 2, 3, 4, 5]


def test_every_support_is_as_likely_as_any_other() -> None:
    problem = Problem.from_arrays(*make_classes(40, 6, 3, seed=3))
    draws, generator = 6000, rng(0)
    counts = Counter(
        tuple(sorted(random_support(problem, 3, generator).tolist())) for _ in range(draws)
    )
    assert set(counts) == set(combinations(range(6), 3))
    # Twenty supports, 300 draws each expected: five standard deviations are 85.
    assert max(abs(count - draws / 20) for count in counts.values()) < 85


def test_every_slot_is_as_likely_to_hold_any_column() -> None:
    problem = Problem.from_arrays(*make_classes(40, 5, 3, seed=3))
    draws, generator = 3000, rng(0)
    first = Counter(int(random_support(problem, 2, generator)[0]) for _ in range(draws))
    assert sorted(first) == list(range(5))
    # 600 expected for each column, five standard deviations are 110.
    assert max(abs(count - draws / 5) for count in first.values()) < 110


def test_a_generator_goes_on_and_a_seed_begins_again(problem: Problem) -> None:
    one, two = rng(7), rng(7)
    draws = [[random_support(problem, 4, g).tolist() for _ in range(6)] for g in (one, two)]
    assert draws[0] == draws[1]
    assert len({tuple(sorted(draw)) for draw in draws[0]}) > 1
    W = random_matrix(problem, rng(7), 1.0)
    assert not np.allclose(W, random_matrix(problem, one, 1.0))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_rows_lie_along_the_products_of_their_column_with_the_target(kind: str) -> None:
    X, y = make_classes(40, 6, 3, seed=3) if kind == "classes" else make_numbers(40, 6, 2, seed=3)
    Y = one_hot(y) if kind == "classes" else y
    B = ((X - X.mean(axis=0)) / X.std(axis=0)).T @ (Y - Y.mean(axis=0))
    W = random_matrix(Problem.from_arrays(X, y), rng(0), 2.5)
    assert W.shape == B.shape
    cosines = (W * B).sum(axis=1) / np.linalg.norm(W, axis=1) / np.linalg.norm(B, axis=1)
    np.testing.assert_allclose(np.abs(cosines), 1.0, rtol=1e-12)
    assert {-1, 1} == set(np.sign(cosines).astype(int))


def test_the_size_of_a_row_is_normal_times_what_is_requested() -> None:
    problem = Problem.from_arrays(*make_classes(40, 9, 3, seed=3))
    W = random_matrix(problem, rng(0), 1.0)
    np.testing.assert_allclose(random_matrix(problem, rng(0), 1e-3), 1e-3 * W, rtol=1e-12)
    generator = rng(1)
    norms = np.concatenate(
        [np.linalg.norm(random_matrix(problem, generator, 4.0), axis=1) for _ in range(400)]
    )
    # 3600 draws: mean square 16 and mean absolute value 4·√(2/π), to four standard errors.
    assert (norms**2).mean() == pytest.approx(16.0, abs=4 * 16 * np.sqrt(2 / 3600))
    assert norms.mean() == pytest.approx(4 * np.sqrt(2 / np.pi), abs=4 * 4 * 0.603 / 60)


def test_a_column_without_any_relation_to_the_target_gets_a_zero_row() -> None:
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    W = random_matrix(Problem.from_arrays(X, X[:, 0] * 2.0 + 0.5), rng(0), 1.0)
    assert W[0] != 0.0
    assert W[1] == 0.0


def test_only_candidates_have_rows() -> None:
    X, y = make_classes(40, 4, 3, seed=3)
    plain = random_matrix(Problem.from_arrays(X, y), rng(2), 1.0)
    more = Problem.from_arrays(np.column_stack([np.ones(40), X, X[:, 0]]), y)
    np.testing.assert_allclose(random_matrix(more, rng(2), 1.0), plain, rtol=1e-12)
