"""A Problem's objective and fits against least squares on centred, repeated, augmented rows."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from exactk import Moments, Problem
from tests.support import every_pair, says

Array = np.ndarray[Any, Any]
MODES = ["full", "columns", "auto"]


def fit(
    X: Array, Y: Array, S: list[int], ridge: float = 0.0, scale: bool = True
) -> tuple[float, Array, Array]:
    """Objective, coefficients and intercept: the ridge enters as rows below the table."""
    X, Y = X.astype(float), Y.reshape(len(X), -1).astype(float)
    Z, U = X - X.mean(axis=0), Y - Y.mean(axis=0)
    sd = Z.std(axis=0, ddof=1) if scale else np.ones(X.shape[1])
    usable = np.ptp(X, axis=0) > 0
    Z[:, usable] /= sd[usable]
    penalty = ridge * (Z[:, usable] ** 2).sum(axis=0).mean()
    left = np.vstack([Z[:, S], np.sqrt(penalty) * np.eye(len(S))])
    right = np.vstack([U, np.zeros((len(S), U.shape[1]))])
    W = np.linalg.lstsq(left, right, rcond=1e-7)[0]
    coef = W.T / sd[S]
    objective = ((right - left @ W) ** 2).sum()
    return float(objective), coef, Y.mean(axis=0) - coef @ X[:, S].mean(axis=0)


def data(n: int = 40, d: int = 7, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * rng.uniform(0.1, 10, d) + 5
    return X, X[:, :2] @ rng.normal(size=(2, 2)) + rng.normal(size=(n, 2)) + 3


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 40),
    k=st.integers(1, 6),
    ridge=st.sampled_from([0.0, 1e-3, 0.1, 3.0]),
    scale=st.booleans(),
    weighted=st.booleans(),
    mode=st.sampled_from(MODES),
)
def test_objective_and_refit(
    seed: int, n: int, k: int, ridge: float, scale: bool, weighted: bool, mode: Any
) -> None:
    X, Y = data(n, seed=seed)
    rng = np.random.default_rng(seed)
    counts = np.ones(n, dtype=int)
    if weighted:
        counts[10:] = rng.integers(0, 4, n - 10)
    S = rng.permutation(X.shape[1])[:k].tolist()
    objective, coef, intercept = fit(
        np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0), S, ridge, scale
    )
    problem = Problem.from_arrays(
        X, Y, sample_weight=counts if weighted else None, ridge=ridge, scale=scale, gram=mode
    )
    found = problem.refit(S)
    assert problem.objective(S) == found.objective == pytest.approx(objective, rel=1e-7)
    np.testing.assert_allclose(found.coef, coef, rtol=1e-5, atol=1e-6 * np.abs(coef).max())
    np.testing.assert_allclose(found.intercept, intercept, rtol=1e-5, atol=1e-5)
    assert found.rank == k


def test_the_fit_predicts_in_the_units_of_the_table() -> None:
    X, Y = data()
    problem = Problem.from_arrays(X, Y)
    found = problem.refit([4, 0])
    left = Y - X[:, [4, 0]] @ found.coef.T - found.intercept
    assert (left**2).sum() == pytest.approx(found.objective, rel=1e-9)


def test_classes_are_one_hot_outputs() -> None:
    X, _ = data()
    y = np.array(["b", "a", "c", "a"])[np.arange(40) % 4]
    problem = Problem.from_arrays(X, y)
    one_hot = (y[:, None] == np.array(["a", "b", "c"])).astype(float)
    assert problem.objective([1, 2]) == pytest.approx(fit(X, one_hot, [1, 2])[0], rel=1e-9)
    assert problem.total == pytest.approx(40 - (20**2 + 10**2 + 10**2) / 40)
    assert (problem.n_outputs, problem.task) == (3, "classification")
    assert problem.classes is not None
    assert problem.classes.tolist() == ["a", "b", "c"]


def test_weights_in_other_units_scale_the_objective() -> None:
    X, Y = data()
    w = np.random.default_rng(1).uniform(0.5, 2, 40)
    for scale in (False, True):
        one = Problem.from_arrays(X, Y, sample_weight=w, ridge=0.1, scale=scale)
        for unit in (1e-6, 1e6):
            other = Problem.from_arrays(X, Y, sample_weight=w * unit, ridge=0.1, scale=scale)
            assert other.objective([0, 3]) == pytest.approx(unit * one.objective([0, 3]), rel=1e-9)
            np.testing.assert_allclose(other.refit([0, 3]).coef, one.refit([0, 3]).coef, rtol=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [0, 8 * 7, 8 * 7 * 3, 2**30])
def test_memory_limit_changes_no_answer(mode: Any, limit: int) -> None:
    X, Y = data()
    if mode == "full" and limit < 8 * 7 * 7:
        return
    problem = Problem.from_arrays(X, Y, ridge=0.2, gram=mode, memory_limit=limit)
    for S in ([0], [5, 1, 3], [0, 1, 2, 3, 4, 5, 6], [6, 2]):
        assert problem.objective(S) == pytest.approx(fit(X, Y, S, 0.2)[0], rel=1e-9)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_array, np.float32])
@pytest.mark.parametrize("mode", MODES)
def test_means_a_million_spreads_away(make: Any, mode: Any) -> None:
    X, Y = data(200)
    X = np.round(X / X.std(axis=0) * 4) / 4 + 2.0**20
    problem = Problem.from_arrays(make(X), Y - 1e6, gram=mode)
    assert problem.objective([0, 2, 5]) == pytest.approx(fit(X, Y, [0, 2, 5])[0], rel=1e-8)


def test_facts_of_a_problem() -> None:
    X, Y = data()
    problem = Problem.from_arrays(X, Y, ridge=0.5, scale=False, feature_names=list("abcdefg"))
    assert (problem.n_rows, problem.n_features, problem.n_outputs) == (40, 7, 2)
    assert problem.feature_names == tuple("abcdefg")
    assert (problem.task, problem.classes, problem.ridge) == ("regression", None, 0.5)
    assert problem.total == pytest.approx(((Y - Y.mean(axis=0)) ** 2).sum())
    squares = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(problem.diagonal, squares + 0.5 * squares.mean(), rtol=1e-12)
    np.testing.assert_allclose(problem.gram_rows([3])[0][3], problem.diagonal[3], rtol=1e-12)
    assert repr(problem) == (
        "Problem(40 rows, 7 features (7 usable), 2 outputs, regression, ridge 0.5)"
    )
    assert Problem.from_arrays(X, Y).feature_names == tuple(f"x{j}" for j in range(7))


def test_no_columns_leave_the_mean() -> None:
    X, Y = data()
    problem = Problem.from_arrays(X, Y)
    found = problem.refit([])
    assert problem.objective([]) == problem.total == found.objective
    assert found.coef.shape == (2, 0)
    np.testing.assert_allclose(found.intercept, Y.mean(axis=0), rtol=1e-12)


@every_pair(value=[0.0, 0.1, -1e9, 1e300], mode=MODES, weighted=[False, True])
def test_constant_columns_are_no_candidates(value: float, mode: Any, weighted: bool) -> None:
    X, Y = data(3000)
    X[:, 2] = value
    w = np.random.default_rng(2).uniform(0.5, 2, 3000) if weighted else None
    problem = Problem.from_arrays(X, Y, gram=mode, sample_weight=w, ridge=0.1)
    assert problem.usable.tolist() == [0, 1, 3, 4, 5, 6]
    assert problem.n_usable == 6
    assert problem.objective([2]) == problem.total
    if not weighted:
        # The ridge is relative to the mean over usable columns.
        assert problem.objective([4, 1]) == pytest.approx(fit(X, Y, [4, 1], 0.1)[0], rel=1e-9)
    assert problem.objective([2, 4]) == pytest.approx(problem.objective([4]), rel=1e-12)
    found = problem.refit([2, 4])
    assert (found.coef[:, 0] == 0).all()
    assert found.rank == 1


def test_a_column_constant_but_for_rows_of_weight_zero() -> None:
    X, Y = data()
    X[:, 2] = 7.0
    X[3, 2] = 1e9
    w = np.ones(40)
    w[3] = 0
    assert Problem.from_arrays(X, Y, sample_weight=w).usable.tolist() == [0, 1, 3, 4, 5, 6]


def test_dependent_columns_take_the_least_norm_fit() -> None:
    X, Y = data()
    X = np.column_stack([X, X[:, 0], X[:, 1] - 2 * X[:, 3]])
    problem = Problem.from_arrays(X, Y)
    for S, rank in (([0, 7], 1), ([7, 1, 3, 8, 0], 3), (list(range(9)), 7)):
        objective, coef, _ = fit(X, Y, S)
        found = problem.refit(S)
        assert found.rank == rank
        assert found.objective == pytest.approx(objective, rel=1e-6)
        np.testing.assert_allclose(found.coef, coef, rtol=1e-4, atol=1e-6)


def test_more_columns_than_rows() -> None:
    X, Y = data(5)
    found = Problem.from_arrays(X, Y).refit(range(7))
    assert found.rank == 4
    assert found.objective == pytest.approx(0, abs=1e-6)
    assert Problem.from_arrays(X, Y, ridge=0.5).objective(range(7)) == pytest.approx(
        fit(X, Y, list(range(7)), 0.5)[0], rel=1e-9
    )


def exact(problem: Problem, X: Array, y: Array, w: Array | None = None) -> tuple[Fraction, int]:
    """Objective and rank of all columns, in rational numbers: not one rounding."""
    weights = [Fraction(float(v)) for v in (np.ones(len(X)) if w is None else w)]

    def centred(values: Array, scale: float = 1.0) -> list[Fraction]:
        z = [Fraction(float(v)) for v in values]
        mean = sum(a * b for a, b in zip(weights, z, strict=True)) / sum(weights)
        return [Fraction(float(scale)) * (v - mean) for v in z]

    columns = [centred(x, scale) for x, scale in zip(X.T, problem.x_scale, strict=True)]
    columns.append(centred(y))
    k, penalty = X.shape[1], Fraction(float(problem.penalty))
    A = [[sum(a * b * c for a, b, c in zip(weights, p, q, strict=True)) for q in columns]
         for p in columns]  # fmt: skip
    for i in range(k):
        A[i][i] += penalty
    left, rank = list(range(k)), 0
    while left and A[pivot := max(left, key=lambda i: A[i][i])][pivot]:
        left.remove(pivot)
        rank += 1
        for i in (*left, k):
            share = A[i][pivot] / A[pivot][pivot]
            A[i] = [a - share * b for a, b in zip(A[i], A[pivot], strict=True)]
    return Fraction(A[k][k]), rank


def chain(n: int, k: int, distance: float, seed: int = 0) -> Array:
    """Columns each of which is the one before and a little noise."""
    noise = np.random.default_rng(seed).standard_normal((n, k))
    noise[:, 1:] *= distance
    return np.cumsum(noise, axis=1)


@every_pair(
    distance=[10.0**-e for e in range(1, 10)],
    offset=[0.0, 10.0, 1e4],
    noise=[1.0, 1e-2],
    kind=["plain", "weighted", "scaled", "columns", "ridge"],
)
def test_chains_of_near_copies(distance: float, offset: float, noise: float, kind: str) -> None:
    X, rng = chain(12, 4, distance) + offset, np.random.default_rng(1)
    # A target that only the smallest differences explain, and some noise.
    y = (X[:, 3] - 2 * X[:, 2] + X[:, 1]) / distance + noise * rng.standard_normal(12)
    w = rng.uniform(0.1, 3.0, 12) if kind == "weighted" else None
    X = X * [1e-6, 1e6, 1.0, 1e3] if kind == "scaled" else X
    problem = Problem.from_arrays(
        X, y, sample_weight=w, ridge=1e-12 if kind == "ridge" else 0.0,
        gram="columns" if kind == "columns" else "full",
    )  # fmt: skip
    found, (objective, rank) = problem.refit(range(4)), exact(problem, X, y, w)
    # Directions of size `distance` are known to eps / distance, as is what they take off y.
    error = float(Fraction(found.objective) - objective)
    slack = 2e-15 / distance * np.sqrt(float(objective) * problem.total)
    assert abs(error) <= slack + 1e-8 * float(objective)
    assert found.rank == rank == 4


@pytest.mark.parametrize(("k", "angle"), [(8, 0.6), (14, 0.8), (20, 1.0)])
def test_each_column_far_from_those_before_it_and_all_nearly_dependent(
    k: int, angle: float
) -> None:
    # Kahan's matrix: pivots above 1e-4, eigenvalues of the Gram matrix down to 1e-10.
    R = np.sin(angle) ** np.arange(k)[:, None] * (np.eye(k) - np.cos(angle) * np.tri(k, k, -1).T)
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((k + 6, k))
    X = np.linalg.qr(Z - Z.mean(axis=0))[0] @ R
    y = np.linalg.svd(X, full_matrices=False)[0][:, -1] + 1e-3 * rng.standard_normal(k + 6)
    problem = Problem.from_arrays(X, y)
    found, (objective, rank) = problem.refit(range(k)), exact(problem, X, y)
    assert found.objective == pytest.approx(float(objective), rel=1e-7)
    assert found.rank == rank == k


@every_pair(distance=[1e-4, 1e-6, 1e-7, 1e-8], ridge=[0.0, 1e-14, 1e-3], weighted=[False, True])
def test_near_copies_that_outnumber_the_rows(distance: float, ridge: float, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 9)) + distance * rng.normal(size=(6, 9))
    X[5] = X[4]
    y, w = rng.normal(size=6), np.array([1, 2, 0.5, 1, 0.25, 3]) if weighted else None
    problem = Problem.from_arrays(X, y, sample_weight=w, ridge=ridge)
    found, (objective, rank) = problem.refit(range(9)), exact(problem, X, y, w)
    assert found.objective == pytest.approx(float(objective), rel=1e-7)
    assert found.rank == rank == (9 if ridge else 4)


@pytest.mark.parametrize("offset", [0, 7, 10**6])
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_that_are_sums_of_others_in_whole_numbers(offset: int, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(-9, 9, (15, 3)).astype(float) + offset
    X = np.column_stack([X, 3 * X[:, 0] - X[:, 1], X[:, 2]])
    y, w = rng.normal(size=15), rng.uniform(0.1, 1, 15) if weighted else None
    problem = Problem.from_arrays(X, y, sample_weight=w)
    found, (objective, rank) = problem.refit(range(5)), exact(problem, X, y, w)
    assert found.objective == pytest.approx(float(objective), rel=1e-12)
    assert found.rank == rank == 3


def test_next_to_nothing_left() -> None:
    X, _ = data()
    rng = np.random.default_rng(4)
    for noise in (1e-3, 1e-5, 1e-7):
        y = X @ rng.normal(size=7) + noise * rng.normal(size=40)
        problem = Problem.from_arrays(X, y)
        wanted = float(exact(problem, X, y)[0])
        assert problem.objective(range(7)) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 5.0])
@pytest.mark.parametrize("distance", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
def test_moments_alone_give_no_objective_that_is_too_low(distance: float, offset: float) -> None:
    X = chain(30, 3, distance) + offset
    y = (X[:, 1] - X[:, 0]) / distance + np.random.default_rng(1).standard_normal(30)
    problem = Problem.from_moments(Moments.from_arrays(X, y[:, None]))
    found, wanted = problem.refit(range(3)), float(exact(problem, X, y)[0])
    assert found.objective >= wanted - 0.01 * problem.total
    if distance >= 1e-4:
        assert found.rank == 3
        digits = 1e-14 * (1 + offset**2) / distance**2
        assert found.objective == pytest.approx(wanted, abs=digits * problem.total)
    elif distance <= 1e-6:
        assert found.rank == 1


def test_with_ridge_is_another_problem() -> None:
    X, Y = data()
    problem = Problem.from_arrays(X, Y, gram="columns")
    other = problem.with_ridge(2)
    assert (problem.ridge, other.ridge) == (0.0, 2.0)
    assert other.objective([1]) == pytest.approx(fit(X, Y, [1], 2.0)[0], rel=1e-9)
    assert problem.objective([1]) == pytest.approx(fit(X, Y, [1])[0], rel=1e-9)


def test_a_problem_does_not_change() -> None:
    X, Y = data()
    problem = Problem.from_arrays(X, Y)
    for part in fields(problem):
        with pytest.raises(FrozenInstanceError):
            setattr(problem, part.name, None)
    for name in ("usable", "cross", "scatter", "x_mean", "x_scale", "y_mean"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(problem, name)[0] = 0


@pytest.mark.parametrize("power", [-140, -12, 100])
@pytest.mark.parametrize("mode", MODES)
def test_scale_of_columns_and_target(power: int, mode: Any) -> None:
    X, Y = data()
    expected = Problem.from_arrays(X, Y).objective([0, 1, 4])
    factors = np.array([10.0**power, 1, 1, 1, 10.0 ** (-power), 1, 1])
    assert Problem.from_arrays(X * factors, Y, gram=mode).objective([0, 1, 4]) == pytest.approx(
        expected, rel=1e-9
    )
    if abs(power) < 140:
        scaled = Problem.from_arrays(X, Y * 10.0**power, gram=mode, task="regression")
        share = scaled.objective([0, 1, 4]) / scaled.total
        assert share == pytest.approx(expected / Problem.from_arrays(X, Y).total, rel=1e-9)


@every_pair(size=[1e-200, 1e-160, 1e-156], mode=MODES, scale=[False, True])
def test_columns_too_small_to_square_are_named(mode: Any, scale: bool, size: float) -> None:
    X, Y = data()
    X[:, 3] *= size
    with says("d", "small", "rescale"):
        Problem.from_arrays(X, Y, gram=mode, scale=scale, feature_names=list("abcdefg"))


@pytest.mark.parametrize("size", [1e-200, 1e-165, 1e160, 1e200])
def test_targets_that_cannot_be_squared(size: float) -> None:
    X, Y = data()
    for table in (X, sparse.csr_array(X)):
        for mode in ("full", "columns"):
            with says("y", "rescale"):
                Problem.from_arrays(table, Y * size, task="regression", gram=mode)


def test_lengths_must_agree() -> None:
    X, Y = data()
    with says("X has 40 rows", "y has 39"):
        Problem.from_arrays(X, Y[:39])
    with says("X has 40 rows", "y has 39"):
        Problem.from_arrays(X, Y[:39], sample_weight=np.ones(40))
    with says("sample_weight", "(39,)", "(40,)"):
        Problem.from_arrays(X, Y, sample_weight=np.ones(39))
    with says("feature_names has 2 names", "7 columns"):
        Problem.from_arrays(X, Y, feature_names=["a", "b"])


@pytest.mark.parametrize(
    ("support", "words"),
    [
        ([7], ["7", "0..6"]),
        ([2, -1], ["-1", "0..6"]),
        ([1, 1], ["once", "[1, 1]"]),
        ([[0, 1]], ["list of column indices"]),
        ([0.0], ["list of column indices"]),
        ([True, False], ["list of column indices"]),
        ("ab", ["list of column indices", "'ab'"]),
        (3, ["list of column indices"]),
        (None, ["list of column indices"]),
    ],
)
def test_what_is_no_support(support: Any, words: list[str]) -> None:
    problem = Problem.from_arrays(*data())
    for use in (problem.objective, problem.refit, problem.check_support):
        with says(*words):
            use(support)


def test_supports_of_any_container() -> None:
    problem = Problem.from_arrays(*data())
    value = problem.objective([1, 4])
    for support in ((1, 4), range(1, 5, 3), np.array([1, 4], dtype=np.uint8), [4, 1]):
        assert problem.objective(support) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("k", "words"),
    [
        (0, ["k must be at least 1", "0"]),
        (-2, ["k must be at least 1", "-2"]),
        (2.0, ["whole number", "2.0"]),
        ("3", ["whole number", "'3'"]),
        (True, ["whole number", "True"]),
        (None, ["whole number"]),
        (6, ["k=6", "5 usable", "2 of 7 are constant", "'c'", "'f'", "k <= 5"]),
    ],
)
def test_what_is_no_k(k: Any, words: list[str]) -> None:
    X, Y = data()
    X[:, [2, 5]] = 1.0
    problem = Problem.from_arrays(X, Y, feature_names=list("abcdefg"))
    with says(*words):
        problem.check_k(k)
    assert problem.check_k(np.int32(5)) == 5


@pytest.mark.parametrize("ridge", [-0.1, np.nan, np.inf, "auto", None, [1], True])
def test_what_is_no_ridge(ridge: Any) -> None:
    X, Y = data()
    with says("ridge", "zero or more", repr(ridge)):
        Problem.from_arrays(X, Y, ridge=ridge)
    if ridge != "auto":
        with says("ridge", "zero or more", repr(ridge)):
            Problem.from_arrays(X, Y).with_ridge(ridge)


def test_from_moments() -> None:
    X, Y = data()
    moments = Moments.from_arrays(X, Y)
    before = moments.xx.copy()
    problem = Problem.from_moments(moments, ridge=0.1, feature_names=list("abcdefg"))
    assert (moments.xx == before).all()
    assert problem.feature_names == tuple("abcdefg")
    assert problem.objective([3, 1]) == pytest.approx(fit(X, Y, [3, 1], 0.1)[0], rel=1e-9)
    np.testing.assert_allclose(problem.refit([3, 1]).coef, fit(X, Y, [3, 1], 0.1)[1], rtol=1e-6)
    one_hot = Moments.from_arrays(X, np.eye(2)[np.arange(len(X)) % 2])
    classes = Problem.from_moments(one_hot, classes=["u", "v"])
    assert classes.task == "classification"
    weighted = Moments.from_arrays(X, np.eye(2)[np.arange(len(X)) % 2], np.linspace(0, 3, len(X)))
    assert Problem.from_moments(weighted, classes=["u", "v"]).classes.tolist() == ["u", "v"]
    with says("not one-hot classes", "leave classes out"):
        Problem.from_moments(moments, classes=["u", "v"])
    with says("not one-hot classes"):
        Problem.from_moments(Moments.from_arrays(X, np.ones((len(X), 2))), classes=["u", "v"])
    with says("names a label twice", "u"):
        Problem.from_moments(one_hot, classes=["u", "u"])
    with says("feature_names has 1 names", "7 columns"):
        Problem.from_moments(moments, feature_names=["a"])
    with says("duplicate", "'a'"):
        Problem.from_moments(moments, feature_names=list("aabcdef"))
    with says("classes", "3", "2 outputs"):
        Problem.from_moments(moments, classes=["u", "v", "w"])
