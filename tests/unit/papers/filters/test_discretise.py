"""Levels of columns, their tables with the classes, and what they tell of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from exactk import Problem
from exactk.papers.filters.base import labels
from exactk.papers.filters.discretise import (
    BINS,
    LevelTable,
    class_tables,
    discretise,
    entropy,
    level_blocks,
)
from tests.oracles.brute import make_classes
from tests.support import says

Array = np.ndarray[Any, Any]
every_bins = pytest.mark.parametrize("bins", ["sd", 2, 3, 4, 7, "values"])


def levels(X: Array, bins: str | int = "sd", width: float = 0.5, weights: Any = None) -> Array:
    """Levels of every column, n × m, by the function itself on centred columns."""
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    centred = X - np.average(X, axis=0, weights=w)
    sd = np.sqrt(np.average(centred**2, axis=0, weights=w))
    return discretise(centred, sd, w, bins, width)[0].T


def of_problem(problem: Problem, bins: str | int, width: float = 0.5) -> Array:
    """Levels of the candidates of a problem, n × m."""
    held = labels(problem)
    out = np.full((len(held.codes), len(problem.candidates)), -1)
    for block in level_blocks(problem, held, bins, width):
        out[:, block.part] = block.codes.T
    assert (out >= 0).all()
    return out


def mixed(seed: int = 0, n: int = 45) -> Array:
    """Columns of numbers, with heavy tails, of two values, of few values, symmetric, with zeros."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [
            rng.standard_normal((n, 3)),
            rng.standard_cauchy((n, 2)),
            rng.integers(0, 2, n),
            rng.integers(0, 5, n),
            np.arange(n) - n // 2,
            rng.poisson(0.4, n),
            np.arange(n) == 7,
        ]
    ).astype(float)


@pytest.mark.parametrize("width", [0.5, 1.0, 1.7])
def test_sd_levels_by_definition(width: float) -> None:
    X = mixed()[:, [0, 1, 2, 3, 6, 7]]
    low, high = (X.mean(axis=0) + sign * width * X.std(axis=0) for sign in (-1, 1))
    three = np.where(X < low, 0, np.where(X > high, 2, 1))
    found = levels(X, "sd", width)
    for j in range(X.shape[1]):
        # Levels that do not occur are left out.
        np.testing.assert_array_equal(found[:, j], np.unique(three[:, j], return_inverse=True)[1])


def test_below_one_sd_every_column_has_two_levels() -> None:
    X = np.column_stack([mixed(seed) for seed in range(5)])
    for width in (0.1, 0.5, 0.99):
        assert (levels(X, "sd", width).max(axis=0) >= 1).all()
    # The reason for the default: at one sd two balanced values are one level.
    balanced = np.repeat([0.0, 1.0], 20)[:, None]
    assert levels(balanced, "sd", 0.5).max() == 1
    assert levels(balanced, "sd", 1.0).max() == 0


@pytest.mark.parametrize("b", [2, 3, 4, 5])
def test_bins_of_equal_frequency(b: int) -> None:
    X = np.random.default_rng(b).standard_normal((60, 4))
    ranks = X.argsort(axis=0).argsort(axis=0)
    np.testing.assert_array_equal(levels(X, b), ranks // (60 // b))


def test_equal_values_share_a_bin() -> None:
    x = np.array([0, 0, 0, 0, 0, 0, 1, 2, 3, 4.0])[:, None]
    # Mid-ranks 0.3, 0.65, 0.75, 0.85, 0.95 in halves and in fifths.
    assert levels(x, 2)[:, 0].tolist() == [0] * 6 + [1] * 4
    assert levels(x, 5)[:, 0].tolist() == [0] * 6 + [1, 1, 2, 2]


def test_a_value_in_the_middle_goes_to_its_side_of_the_mean() -> None:
    for far, level in ((10.0, 0), (-10.0, 1)):
        x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
        x[-1 if far > 0 else 0] = far
        assert levels(x[:, None], 2)[2, 0] == level
    symmetric = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])[:, None]
    assert levels(symmetric, 2)[:, 0].tolist() == [0, 0, 1, 2, 2], "a level of its own"


@every_bins
@pytest.mark.parametrize("n", [44, 45])
def test_the_sign_reverses_the_levels(bins: str | int, n: int) -> None:
    X = mixed(1, n)
    plain = levels(X, bins)
    np.testing.assert_array_equal(levels(-X, bins), plain.max(axis=0) - plain)


@every_bins
def test_whole_weights_are_repeated_rows(bins: str | int) -> None:
    X = mixed(2)
    w = np.random.default_rng(2).integers(1, 5, len(X))
    repeated = levels(np.repeat(X, w, axis=0), bins)
    np.testing.assert_array_equal(np.repeat(levels(X, bins, weights=w), w, axis=0), repeated)
    # The size of all weights together does not matter.
    np.testing.assert_array_equal(levels(X, bins, weights=w / 7), levels(X, bins, weights=w))


@every_bins
@pytest.mark.parametrize("scale", [True, False])
def test_units_do_not_matter(bins: str | int, scale: bool) -> None:
    X = mixed(3)
    y = np.arange(len(X)) % 3
    plain = of_problem(Problem.from_arrays(X, y), bins)
    np.testing.assert_array_equal(plain, levels(X, bins))
    factors = 10.0 ** np.random.default_rng(0).integers(-4, 5, X.shape[1])
    moved = of_problem(Problem.from_arrays(X * factors, y, scale=scale), bins)
    np.testing.assert_array_equal(moved, plain)
    shifted = of_problem(Problem.from_arrays(X / X.std(axis=0) + 1e5, y, scale=scale), bins)
    np.testing.assert_array_equal(shifted, plain)


def test_values_are_levels() -> None:
    X = np.random.default_rng(4).integers(0, 64, (500, 3)) * 0.1
    expected = np.column_stack([np.unique(x, return_inverse=True)[1] for x in X.T])
    np.testing.assert_array_equal(levels(X, "values"), expected)


def test_too_many_values_are_refused() -> None:
    X = np.column_stack([np.arange(300) % 4, np.arange(300) % 65, np.arange(300)])
    problem = Problem.from_arrays(X, np.arange(300) % 2, feature_names=["few", "more", "most"])
    with says("bins='values'", "at most 64", "'more' has 65", "bins=5"):
        of_problem(problem, "values")
    with says("'most' has 300"):
        of_problem(
            Problem.from_arrays(X[:, [0, 2]], X[:, 0] % 2, feature_names=["few", "most"]), "values"
        )


@pytest.mark.parametrize(
    ("bad", "words"),
    [(1, "not 1"), (256, "not 256"), (True, "not True"), (2.0, "not 2.0"), (None, "not None"),
     ("std", "did you mean 'sd'"), ("counts", "'sd', 'values' or a whole number from 2 to 255")],
)  # fmt: skip
def test_bins_are_checked(bad: Any, words: str) -> None:
    with says("bins must be", words):
        BINS("bins", bad)


@every_bins
@pytest.mark.parametrize("weights", ["none", "whole", "shares"])
def test_tables_by_counting(bins: str | int, weights: str) -> None:
    X, rng = mixed(5), np.random.default_rng(5)
    y = rng.integers(0, 4, len(X))
    w = {"none": np.ones(len(X)), "whole": rng.integers(1, 4, len(X)), "shares": rng.random(len(X))}
    problem = Problem.from_arrays(X, y, sample_weight=None if weights == "none" else w[weights])
    codes = of_problem(problem, bins)
    seen = []
    for part, counts in class_tables(problem, bins, 0.5):
        seen += part.tolist()
        for i, p in enumerate(part):
            table = np.zeros(counts.shape[:2])
            np.add.at(table, (y, codes[:, p]), w[weights])
            np.testing.assert_allclose(counts[:, :, i], table, rtol=1e-12, atol=1e-12)
            if weights != "shares":
                np.testing.assert_array_equal(counts[:, :, i], table)
    assert sorted(seen) == list(range(len(problem.candidates)))


def test_entropy() -> None:
    assert entropy(np.array([3.0, 0.0])) == 0
    assert entropy(np.full(8, 0.25)) == pytest.approx(np.log(8))
    assert entropy(np.array([0.25, 0.75])) == pytest.approx(-(np.log(0.25) + 3 * np.log(0.75)) / 4)


@every_bins
@pytest.mark.parametrize("memory_limit", [2**30, 2**9])
def test_information_of_all_pairs(bins: str | int, memory_limit: int) -> None:
    X = mixed(6)
    y = np.random.default_rng(6).integers(0, 3, len(X))
    # With little memory indicators are made anew for every column.
    problem = Problem.from_arrays(X, y, memory_limit=memory_limit)
    table, codes = LevelTable(problem, bins, 0.5), of_problem(problem, bins)
    assert (table._kept is None) == (memory_limit < 2**20)
    for p in range(codes.shape[1]):
        expected = [mutual_info_score(codes[:, p], codes[:, q]) for q in range(codes.shape[1])]
        np.testing.assert_allclose(table.information(p), expected, atol=1e-12)
        assert table.relevance[p] == pytest.approx(mutual_info_score(codes[:, p], y), abs=1e-12)
        # A column tells all of itself.
        assert table.information(p)[p] == pytest.approx(table.H[p])
        assert table.uncertainty(p)[p] == pytest.approx(1.0)


def test_information_with_weights() -> None:
    X, y = make_classes(60, 5, 3, seed=1)
    w = np.random.default_rng(1).random(60)
    problem = Problem.from_arrays(X, y, sample_weight=w)
    table, codes = LevelTable(problem, "sd", 0.5), of_problem(problem, "sd")
    joint = np.zeros((3, 3))
    np.add.at(joint, (codes[:, 1], codes[:, 4]), w / w.sum())
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    expected = (joint[joint > 0] * np.log((joint / independent)[joint > 0])).sum()
    assert table.information(1)[4] == pytest.approx(expected, rel=1e-10)


def test_one_level_has_no_information() -> None:
    # At three sd no value of these columns lies outside, but for the heavy tails.
    X, y = mixed(7), np.arange(45) % 2
    table = LevelTable(Problem.from_arrays(X, y), "sd", 3.0)
    flat = np.flatnonzero(table.H < 1e-12)
    assert 0 < flat.size < X.shape[1]
    assert not table.information(int(flat[0])).any()
    assert not table.uncertainty(int(flat[0])).any()
    assert np.isfinite(table.class_uncertainty()).all()


def test_levels_beyond_the_memory_limit_are_refused() -> None:
    X, y = make_classes(50, 20, 2)
    with says("levels of the whole table", "memory_limit=999", "infogain"):
        LevelTable(Problem.from_arrays(X, y, gram="columns", memory_limit=999), "sd", 0.5)
