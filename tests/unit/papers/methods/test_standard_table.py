"""The rows as the papers' methods read them, against the formulas written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from exactk import Problem
from exactk.papers.methods.standard_table import (
    column_unit,
    standard_table,
    target_unit,
    validate_init,
)
from tests.oracles.brute import make_classes, make_numbers, one_hot
from tests.support import says


def standardised(X: Any, w: Any = None) -> Any:
    """Mean 0 and standard deviation 1 with W − 1, W the sum of the weights."""
    w = np.ones(len(X)) if w is None else np.asarray(w, dtype=float)
    mean = (w[:, None] * X).sum(axis=0) / w.sum()
    variance = (w[:, None] * (X - mean) ** 2).sum(axis=0) / (w.sum() - 1.0)
    return (X - mean) / np.sqrt(variance)


@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_array, sparse.csc_array, np.asfortranarray]
)
def test_columns_are_standardised(kind: Any) -> None:
    X, y = make_classes(30, 5, 3, seed=1)
    X = 10.0 * X + 7.0
    table = standard_table(Problem.from_arrays(kind(X), y))
    np.testing.assert_allclose(table.X, standardised(X), atol=1e-12)
    assert table.X.flags.c_contiguous
    assert table.columns.tolist() == list(range(5))
    np.testing.assert_array_equal(table.root, np.ones(30))
    assert table.weight == 30.0


@pytest.mark.parametrize("weighted", [False, True])
def test_unscaled_columns_are_centred_and_of_one_common_size(weighted: bool) -> None:
    X, y = make_classes(30, 5, 3, seed=1)
    X = np.column_stack([1e6 * X * [1.0, 2.0, 3.0, 4.0, 5.0], np.ones(30)])
    w = np.random.default_rng(0).uniform(0.2, 3.0, 30) if weighted else np.ones(30)
    problem = Problem.from_arrays(X, y, scale=False, sample_weight=w if weighted else None)
    centred = X[:, :5] - np.average(X[:, :5], axis=0, weights=w)
    size = np.sqrt((w[:, None] * centred**2).sum() / (5 * w.sum()))
    assert column_unit(problem) == pytest.approx(size, rel=1e-12)
    expected = np.sqrt(w)[:, None] * centred / size
    np.testing.assert_allclose(standard_table(problem).X, expected, atol=1e-12)


def test_standardised_columns_are_of_unit_size() -> None:
    X, y = make_classes(30, 5, 3, seed=1)
    assert column_unit(Problem.from_arrays(1e6 * X, y)) == 1.0


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_weights_enter_by_their_root_and_zero_is_no_row(kind: Any) -> None:
    X, y = make_classes(30, 5, 3, seed=1)
    w = np.random.default_rng(0).uniform(0.2, 3.0, 30)
    w[[4, 17, 29]] = 0.0
    X[4] = 1e9
    table = standard_table(Problem.from_arrays(kind(X), y, sample_weight=w))
    kept = w > 0
    root = np.sqrt(w[kept])
    np.testing.assert_allclose(table.root, root, rtol=1e-15)
    np.testing.assert_allclose(table.X, root[:, None] * standardised(X[kept], w[kept]), atol=1e-12)
    Y = one_hot(y)[kept]
    centred = Y - np.average(Y, axis=0, weights=w[kept])
    np.testing.assert_allclose(table.Y, root[:, None] * centred, atol=1e-12)
    assert table.weight == pytest.approx(w.sum(), rel=1e-13)


def test_row_norms_are_those_without_weights() -> None:
    X, y = make_numbers(20, 4, 3, seed=1)
    w = np.random.default_rng(0).uniform(0.2, 3.0, 20)
    table = standard_table(Problem.from_arrays(X, y, sample_weight=w))
    E = np.random.default_rng(1).standard_normal((20, 3))
    found = table.row_norms(np.sqrt(w)[:, None] * E)
    np.testing.assert_allclose(found, np.linalg.norm(E, axis=1), rtol=1e-13)


@pytest.mark.parametrize(
    ("labels", "coded"),
    [
        ("centred", lambda Y: Y - Y.mean(axis=0)),
        ("one-hot", lambda Y: Y),
        ("plus-minus", lambda Y: np.where(Y == 1, 1.0, -1.0)),
    ],
)
def test_classes_are_coded_as_requested(labels: Any, coded: Any) -> None:
    X, y = make_classes(30, 5, 3, seed=1)
    names = np.array(["b", "a", "c"])[y]
    table = standard_table(Problem.from_arrays(X, names), labels)
    np.testing.assert_allclose(table.Y, coded(one_hot(names)), atol=1e-14)


@pytest.mark.parametrize(
    ("labels", "coded"),
    [
        ("centred", lambda Y: Y - Y.mean(axis=0)),
        ("one-hot", lambda Y: Y),
        ("plus-minus", lambda Y: 2 * Y - 1),
    ],
)
def test_several_labels_a_row_are_classes_too(labels: Any, coded: Any) -> None:
    X, _ = make_classes(30, 5, 3, seed=1)
    Y = np.random.default_rng(0).integers(0, 2, (30, 4))
    problem = Problem.from_arrays(X, Y)
    assert problem.task == "classification"
    table = standard_table(problem, labels)
    np.testing.assert_allclose(table.Y, coded(Y.astype(float)), atol=1e-14)
    assert target_unit(problem) == 1.0


@pytest.mark.parametrize("labels", ["centred", "one-hot", "plus-minus"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_numbers_are_centred_and_of_unit_size_whatever_the_labels(
    labels: Any, outputs: int, unit: float
) -> None:
    X, y = make_numbers(30, 5, outputs, seed=1)
    problem = Problem.from_arrays(X, unit * (y + 50.0))
    Y = y.reshape(30, outputs)
    centred = Y - Y.mean(axis=0)
    size = np.sqrt((centred**2).mean())
    table = standard_table(problem, labels)
    np.testing.assert_allclose(table.Y, centred / size, rtol=1e-9, atol=1e-9)
    assert (table.Y**2).mean() == pytest.approx(1.0, rel=1e-9)
    assert target_unit(problem) == pytest.approx(unit * size, rel=1e-9)


def test_the_unit_of_weighted_numbers_is_their_weighted_mean_square() -> None:
    X, y = make_numbers(30, 5, 2, seed=1)
    w = np.random.default_rng(0).uniform(0.2, 3.0, 30)
    problem = Problem.from_arrays(X, y, sample_weight=w)
    centred = y - np.average(y, axis=0, weights=w)
    expected = np.sqrt((w[:, None] * centred**2).sum() / (2 * w.sum()))
    assert target_unit(problem) == pytest.approx(expected, rel=1e-12)
    table = standard_table(problem)
    np.testing.assert_allclose(table.Y, np.sqrt(w)[:, None] * centred / expected, atol=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("n", [30, 31])
def test_robust_numbers_are_centred_and_sized_by_medians(outputs: int, n: int) -> None:
    X, y = make_numbers(n, 5, outputs, seed=1)
    Y = y.reshape(n, outputs) + 50.0
    Y[:4] *= 1e6
    table = standard_table(Problem.from_arrays(X, Y), robust=True)
    centred = Y - np.median(Y, axis=0)
    size = np.median(np.linalg.norm(centred, axis=1)) / np.sqrt(outputs)
    np.testing.assert_allclose(table.Y, centred / size, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_medians_of_weighted_rows_are_those_of_repeated_ones(seed: int) -> None:
    X, y = make_numbers(20, 4, 2, seed=seed)
    w = np.random.default_rng(seed).integers(0, 5, 20)
    kept = w > 0
    table = standard_table(Problem.from_arrays(X, y, sample_weight=w), robust=True)
    repeated = np.repeat(y, w, axis=0)
    middle = np.median(repeated, axis=0)
    size = np.median(np.linalg.norm(repeated - middle, axis=1)) / np.sqrt(2)
    expected = np.sqrt(w[kept])[:, None] * (y[kept] - middle) / size
    np.testing.assert_allclose(table.Y, expected, rtol=1e-9, atol=1e-9)


def test_where_most_numbers_are_equal_their_mean_square_is_the_size() -> None:
    X, _ = make_numbers(20, 4, 1, seed=1)
    y = np.zeros(20)
    y[[3, 8, 11]] = [1.5, -2.0, 4.0]
    table = standard_table(Problem.from_arrays(X, y, task="regression"), robust=True)
    np.testing.assert_allclose(table.Y[:, 0], y / y.std(), atol=1e-12)


@pytest.mark.parametrize("labels", ["centred", "one-hot", "plus-minus"])
def test_classes_are_coded_the_same_robust_or_not(labels: Any) -> None:
    problem = Problem.from_arrays(*make_classes(30, 5, 3, seed=1))
    one, other = (standard_table(problem, labels, robust=robust).Y for robust in (False, True))
    np.testing.assert_array_equal(one, other)


def test_classes_have_no_unit() -> None:
    X, y = make_classes(30, 5, 3, seed=1)
    assert target_unit(Problem.from_arrays(X, y)) == 1.0


def test_only_candidates_are_read() -> None:
    X, y = make_classes(30, 4, 3, seed=1)
    X = np.column_stack([np.ones(30), X[:, 0], 5.0 - 2.0 * X[:, 0], X[:, 1:], np.zeros(30)])
    table = standard_table(Problem.from_arrays(X, y))
    assert table.columns.tolist() == [1, 3, 4, 5]
    np.testing.assert_allclose(table.X, standardised(X[:, [1, 3, 4, 5]]), atol=1e-12)


def test_the_table_is_a_copy() -> None:
    X, y = make_numbers(30, 4, 2, seed=1)
    before = X.copy(), y.copy()
    table = standard_table(Problem.from_arrays(X, y))
    table.X[:] = 0.0
    table.Y[:] = 0.0
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_a_table_beyond_the_memory_limit_is_refused_with_its_size_and_a_hint() -> None:
    X, y = make_classes(40, 4, 3, seed=1)
    X = np.column_stack([X, np.ones(40)])
    # Forty rows of four candidates, eight bytes each; the constant column does not count.
    needed = 40 * 4 * 8
    fits = Problem.from_arrays(X, y, gram="columns", memory_limit=needed)
    assert standard_table(fits).X.nbytes == needed
    refused = Problem.from_arrays(X, y, gram="columns", memory_limit=needed - 1)
    with says("whole table", "GiB", "memory_limit=1,279", "raise memory_limit", "'exchange'"):
        standard_table(refused)


def test_the_error_gives_the_size_in_gib() -> None:
    class Wide:
        n_rows = 2**20

    class Huge:
        rows, target = Wide(), object()
        candidates = np.arange(320)
        memory_limit = 2**30

    problem: Any = Huge()
    with says("2.5 GiB", "memory_limit=1,073,741,824"):
        standard_table(problem)


@pytest.fixture(scope="module")
def problem() -> Problem:
    X, y = make_classes(30, 4, 3, seed=1)
    return Problem.from_arrays(np.column_stack([np.ones(30), X, -X[:, 2]]), y)


def test_a_given_start_is_cut_to_the_candidates(problem: Problem) -> None:
    W = np.random.default_rng(0).standard_normal((6, 3))
    found = validate_init(W, problem)
    np.testing.assert_array_equal(found, W[1:5])
    assert found.flags.c_contiguous
    found[:] = 0.0
    assert (W != 0.0).all()


def test_constant_columns_of_a_given_start_do_not_count(problem: Problem) -> None:
    W = np.zeros((6, 3))
    W[0], W[5] = 1e6, -1e6
    np.testing.assert_array_equal(validate_init(W, problem), np.zeros((4, 3)))


def test_lists_and_integers_are_matrices(problem: Problem) -> None:
    found = validate_init([[1, 2, 3]] * 6, problem)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1.0, 2.0, 3.0]] * 4)


@pytest.mark.parametrize("shape", [(4, 3), (6, 2), (3, 6), (6,), (6, 3, 1), ()])
def test_a_start_of_another_shape_is_refused(problem: Problem, shape: tuple[int, ...]) -> None:
    with says("init must be a matrix of shape (6, 3)", "a row for each column of X",
              "a column for each output", f"not of shape {shape}"):  # fmt: skip
        validate_init(np.zeros(shape), problem)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_start_that_is_not_finite_is_refused(problem: Problem, bad: float) -> None:
    W = np.zeros((6, 3))
    W[5, 1] = bad
    with says("init has NaN or infinite entries"):
        validate_init(W, problem)


NO_MATRICES = {
    "text": "text",
    "words": [["a", "b", "c"]] * 6,
    "ragged": [[1, 2, 3], [4]],
    "mapping": {"a": 1},
    "complex": np.ones((6, 3), dtype=complex),
    "truths": np.ones((6, 3), dtype=bool),
    "masked": np.ma.masked_greater(np.ones((6, 3)), 0.5),
    "dates": np.zeros((6, 3), dtype="datetime64[s]"),
}


@pytest.mark.parametrize("kind", list(NO_MATRICES))
def test_what_is_no_matrix_of_numbers_is_refused(problem: Problem, kind: str) -> None:
    with says("init must be a matrix of numbers of shape (6, 3)"):
        validate_init(NO_MATRICES[kind], problem)
