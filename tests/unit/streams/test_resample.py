"""Samples by weights: drawn as they should be, and the problem of repeated rows."""

from __future__ import annotations

from math import exp, factorial
from typing import Any

import numpy as np
import pytest

from exactk import Moments, Problem, solve
from exactk.streams.resample import Resample
from tests.arrays import ArrayStream
from tests.support import says

Array = np.ndarray[Any, Any]


def table(n: int = 300, d: int = 5, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d))) + 2.0
    numbers = X[:, 0] - X[:, 3] + 3.0 * rng.normal(size=n)
    return X, numbers, np.array(["u", "v", "w"])[np.digitize(numbers, [-2.0, 2.0])]


def test_a_bootstrap_counts_as_poisson_does() -> None:
    counts = np.concatenate([Resample(1).counts(part, 0, 50_000) for part in range(4)])
    n = len(counts)
    for times in range(5):
        share = exp(-1) / factorial(times)
        error = np.sqrt(share * (1 - share) / n)
        assert abs((counts == times).mean() - share) < 4 * error
    # Rows, parts and seeds have nothing to do with each other.
    others = [Resample(1).counts(9, 0, 50_000), Resample(2).counts(0, 0, 50_000), counts[1:50_001]]
    for other in others:
        assert abs(np.corrcoef(counts[:50_000], other)[0, 1]) < 4 / np.sqrt(50_000)


def test_halves_are_complementary() -> None:
    one, other = (Resample(5, kind).counts(3, 100, 10_000) for kind in ("half", "other half"))
    np.testing.assert_array_equal(one + other, np.ones(10_000))
    assert abs(one.mean() - 0.5) < 0.02


def test_counts_go_with_the_row_and_not_the_block() -> None:
    whole = Resample(7).counts(2, 0, 100)
    parts = [Resample(7).counts(2, first, 25) for first in (0, 25, 50, 75)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("kind", ["bootstrap", "half", "other half"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [False, True])
def test_a_sample_is_the_problem_of_repeated_rows(kind: Any, weighted: bool, classes: bool) -> None:
    X, numbers, labels = table()
    y = labels if classes else numbers
    w = np.random.default_rng(1).integers(0, 3, len(X)) if weighted else np.ones(len(X), dtype=int)
    named: dict[str, Any] = {"ridge": 0.3, "scale": not weighted}
    times = Resample(4, kind).counts(0, 0, len(X)).astype(int) * w
    again = np.repeat(np.arange(len(X)), times)
    wanted = Problem.from_arrays(X[again], y[again], **named)
    given = w.astype(float) if weighted else None
    held = Problem.from_arrays(X, y, sample_weight=given, **named)
    # One part, so that rows have the same numbers as in the array.
    made = Problem.from_stream(ArrayStream(X, y, given, n_parts=1, n_blocks=4), **named)
    for problem in (held.resampled(4, kind), made.resampled(4, kind)):
        assert problem.n_rows == np.count_nonzero(times)
        assert problem.weight == len(again)
        assert (problem.ridge, problem.scaled) == (0.3, not weighted)
        if classes:
            assert problem.classes is not None
            assert problem.classes.tolist() == ["u", "v", "w"]
        for S in ([0], [3, 1], [0, 1, 2, 3, 4]):
            assert problem.objective(S) == pytest.approx(wanted.objective(S), rel=1e-9)
        assert solve(problem, 2, "rfs").support.tolist() == solve(wanted, 2, "rfs").support.tolist()


def test_a_sampled_stream_can_be_read_into_memory_and_sampled_again() -> None:
    X, _, labels = table()
    problem = Problem.from_stream(ArrayStream(X, labels)).resampled(0, "half")
    held = problem.in_memory()
    assert held.rows is not None
    assert held.rows.n_rows == problem.n_rows
    assert solve(problem, 2, "relieff").k == 2
    assert problem.resampled(1).n_rows < problem.n_rows


def test_other_seeds_are_other_samples_and_the_same_seed_the_same() -> None:
    problem = Problem.from_arrays(*table()[:2])
    assert problem.resampled(3).total == problem.resampled(3).total
    assert problem.resampled(3).total != problem.resampled(4).total


def test_what_is_no_sample_is_refused() -> None:
    problem = Problem.from_arrays(*table()[:2])
    with says("seed", "-1"):
        problem.resampled(-1)
    with says("kind", "'quarter'", "bootstrap", "other half"):
        problem.resampled(0, "quarter")  # type: ignore[arg-type]
    with says("made of moments", "no rows to sample"):
        Problem.from_moments(Moments.from_arrays(*table()[:2])).resampled(0)
