"""Least squares on few columns, and kernels on rows: against NumPy, sorting and minimisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from exactk.utils import linalg
from exactk.utils.linalg import (
    SYRK,
    add_gram,
    largest,
    largest_eigenvalue,
    least_squares,
    orthogonal,
    row_norms,
    shrink_rows,
    solve_dependent,
    solve_unit_diagonal,
    spectral_norm,
    wide_least_squares,
)
from tests.support import every_pair


@pytest.mark.parametrize("shape", [(5, 3), (1, 4), (4, 1), (3, 0)])
def test_row_norms_are_those_of_numpy(shape: tuple[int, int]) -> None:
    W = np.random.default_rng(0).standard_normal(shape)
    np.testing.assert_allclose(row_norms(W), np.linalg.norm(W, axis=1), rtol=1e-15)


def test_row_norms_do_not_depend_on_the_layout() -> None:
    W = np.random.default_rng(0).standard_normal((6, 8))[::2, ::3]
    np.testing.assert_allclose(row_norms(W), [np.hypot.reduce(row) for row in W], rtol=1e-15)


def sorted_choice(scores: list[float], k: int) -> list[int]:
    """By the letter: the largest first, of equal ones the lowest index first."""
    usable = [i for i, score in enumerate(scores) if score > 0]
    return sorted(sorted(usable, key=lambda i: (-scores[i], i))[:k])


@settings(max_examples=300, deadline=None)
@given(
    scores=st.lists(
        st.sampled_from([-1.0, 0.0, -0.0, 5e-324, 1.0, 2.0, 2.5, 3.0, np.inf, np.nan]),
        min_size=1,
        max_size=12,
    ),
    k=st.integers(1, 13),
)
def test_largest_is_sorting_with_ties_to_the_lowest_index(scores: list[float], k: int) -> None:
    assert largest(np.array(scores), k).tolist() == sorted_choice(scores, k)


def test_ties_go_to_the_lowest_index_at_the_border_only() -> None:
    scores = np.array([2.0, 1.0, 3.0, 2.0, 2.0, 1.0])
    assert largest(scores, 1).tolist() == [2]
    assert largest(scores, 2).tolist() == [0, 2]
    assert largest(scores, 3).tolist() == [0, 2, 3]
    assert largest(scores, 5).tolist() == [0, 1, 2, 3, 4]


def test_zeros_negatives_and_nan_are_never_among_the_largest() -> None:
    scores = np.array([0.0, np.nan, -5.0, 1.0, np.nan, 0.5, -0.0])
    assert largest(scores, 2).tolist() == [3, 5]
    assert largest(scores, 5).tolist() == [3, 5]
    for nothing in (np.zeros(4), np.full(4, np.nan), np.full(4, -np.inf), np.zeros(0)):
        assert largest(nothing, 3).tolist() == []


def test_unless_any_sign_will_do() -> None:
    scores = np.array([-3.0, 0.0, -1.0, 2.0, -1.0])
    assert largest(scores, 1, positive=False).tolist() == [3]
    assert largest(scores, 3, positive=False).tolist() == [1, 2, 3]
    assert largest(scores, 4, positive=False).tolist() == [1, 2, 3, 4]
    assert largest(scores, 9, positive=False).tolist() == [0, 1, 2, 3, 4]
    # Scores far too small to be added to anything are still told apart.
    assert largest(np.array([1e-300, 3e-300, 2e-300]), 2, positive=False).tolist() == [1, 2]


def test_largest_leaves_its_input_as_it_was_and_returns_indices() -> None:
    scores = np.array([1.0, 4.0, 2.0, 3.0])
    scores.setflags(write=False)
    chosen = largest(scores, 2)
    assert chosen.dtype == np.intp
    assert chosen.tolist() == [1, 3]


def distance(v: np.ndarray, u: np.ndarray, by: float) -> float:
    return float(0.5 * ((v - u) ** 2).sum() + by * np.linalg.norm(v))


@pytest.mark.parametrize(("by", "seed"), [(0.0, 0), (0.3, 1), (1.0, 2), (5.0, 0)])
def test_a_shrunk_row_minimises_half_the_distance_and_the_norm(seed: int, by: float) -> None:
    W = np.random.default_rng(seed).standard_normal((4, 3))
    shrunk = shrink_rows(W, by)
    for u, v in zip(W, shrunk, strict=True):
        # The minimum is smooth unless it is at zero, which is compared by itself.
        found = minimize(distance, 2.0 * u, args=(u, by), method="Nelder-Mead",
                         options={"xatol": 1e-10, "fatol": 1e-14, "maxfev": 4000})  # fmt: skip
        least = min(found.fun, distance(np.zeros(3), u, by))
        assert distance(v, u, by) <= least + 1e-12
        np.testing.assert_allclose(v, found.x if found.fun == least else 0.0, atol=1e-5)


def test_each_row_has_its_own_length() -> None:
    W = np.array([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4], [5.0, 12.0]])
    shrunk = shrink_rows(W, np.array([1.0, 5.0, 2.0, 0.0]))
    np.testing.assert_allclose(shrunk, [[2.4, 3.2], [3.0, 4.0], [0.0, 0.0], [5.0, 12.0]])


def test_a_row_as_long_as_what_it_is_shortened_by_is_exactly_zero() -> None:
    assert (shrink_rows(np.array([[3.0, 4.0], [-3.0, 4.0]]), 5.0) == 0.0).all()
    assert (shrink_rows(np.array([[3.0, 4.0]]), 1e300) == 0.0).all()


def test_zero_rows_stay_zero_without_a_warning() -> None:
    with np.errstate(all="raise"):
        for by in (0.0, 1.0, np.array([0.0, 2.0])):
            assert (shrink_rows(np.zeros((2, 3)), by) == 0.0).all()


def test_shortening_by_nothing_changes_nothing_and_copies() -> None:
    W = np.random.default_rng(1).standard_normal((4, 2))
    before = W.copy()
    shrunk = shrink_rows(W, 0.0)
    np.testing.assert_array_equal(shrunk, before)
    shrunk[0, 0] = 99.0
    np.testing.assert_array_equal(W, before)


@pytest.mark.parametrize("shape", [(3, 9), (9, 3), (6, 6), (1, 5), (5, 1), (150, 400), (400, 150)])
def test_spectral_norm_is_the_largest_singular_value(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).standard_normal(shape)
    assert spectral_norm(X) == pytest.approx(np.linalg.norm(X, 2), rel=1e-12)


@pytest.mark.parametrize("shape", [(40, 3), (3, 40)])
def test_spectral_norm_of_one_direction(shape: tuple[int, int]) -> None:
    X = np.ones(shape)
    assert spectral_norm(X) == pytest.approx(np.sqrt(120.0), rel=1e-12)


def test_spectral_norm_of_nothing_and_of_zero() -> None:
    assert spectral_norm(np.zeros((3, 4))) == 0.0
    assert spectral_norm(np.zeros((3, 0))) == 0.0
    assert spectral_norm(np.zeros((0, 4))) == 0.0


@pytest.mark.parametrize("size", [1, 2, 30, 100, 101, 250])
def test_the_largest_eigenvalue_is_that_of_the_whole_spectrum(size: int) -> None:
    X = np.random.default_rng(0).standard_normal((size + 5, size))
    X -= X.mean(axis=0)
    A = X.T @ X
    assert largest_eigenvalue(A) == pytest.approx(np.linalg.eigvalsh(A).max(), rel=1e-10)


def kahan(k: int, angle: float) -> np.ndarray:
    """Gram matrix with pivots sin²ⁱ that are far above its least eigenvalue."""
    R = np.eye(k) - np.cos(angle) * np.triu(np.ones((k, k)), 1)
    R = np.sin(angle) ** np.arange(k)[:, None] * R
    return np.asarray(R.T @ R)


def with_spectrum(values: Any, seed: int = 0) -> np.ndarray:
    """Return a matrix of unit diagonal with about these eigenvalues."""
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    A = (Q * values) @ Q.T
    root = 1.0 / np.sqrt(np.diagonal(A))
    return np.asarray(A * np.outer(root, root))


@pytest.mark.parametrize(("k", "angle"), [(8, 0.6), (14, 0.9), (30, 1.2)])
def test_harmless_pivots_do_not_hide_a_tiny_eigenvalue(k: int, angle: float) -> None:
    A = kahan(k, angle)
    assert (np.diagonal(np.linalg.cholesky(A)) ** 2).min() > 3e-6 > 3 * np.linalg.eigvalsh(A)[0]
    assert solve_unit_diagonal(A, np.ones((k, 1))) is None


@pytest.mark.parametrize(("k", "seed"), [(2, 0), (5, 1), (40, 2), (200, 0)])
def test_the_least_eigenvalue_decides(k: int, seed: int) -> None:
    for least in 10.0 ** np.linspace(-9, -3, 13):
        A = with_spectrum(np.geomspace(least, 1.0, k), seed)
        B, least = np.arange(2.0 * k).reshape(k, 2), np.linalg.eigvalsh(A)[0]
        V = solve_unit_diagonal(A, B)
        assert (V is None) == (least < 1e-6) or abs(least - 1e-6) < 1e-10
        if V is not None:
            np.testing.assert_allclose(A @ V, B, atol=1e-8 * np.abs(V).max())


def test_solve_dependent_leaves_out_what_is_zero_and_no_more() -> None:
    C = np.random.default_rng(0).standard_normal((6, 6))
    for least, rank in ((1e-3, 6), (1e-9, 6), (1e-11, 6), (1e-13, 5), (0.0, 5)):
        A = with_spectrum([least, 0.2, 0.5, 1.0, 1.3, 3.0])
        V, found = solve_dependent(A, A @ C)
        assert found == rank
        # A direction that is left out adds next to nothing here.
        whole, explained = np.trace(C.T @ A @ C), np.trace(V.T @ A @ C)
        assert whole * (1 - 1e-9) <= explained <= whole * (1 + 1e-9)


def test_solve_dependent_goes_by_the_noise() -> None:
    A = with_spectrum([1e-7, 0.2, 0.5, 1.0, 1.3, 3.0])
    least = np.linalg.eigvalsh(A)[0]
    for noise, rank in ((0.0, 6), (least / 110, 6), (least / 90, 5)):
        assert solve_dependent(A, np.ones((6, 1)), noise)[1] == rank


@every_pair(least=[1e-5, 1e-6, 1e-7, 1e-8, 1e-10], shape=[(6, 9), (9, 6)], weighted=[False, True])
def test_small_singular_values_count(least: float, shape: tuple[int, int], weighted: bool) -> None:
    fit = wide_least_squares if shape[0] < shape[1] else least_squares
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.standard_normal((m, 5)))[0] for m in shape)
    w = rng.uniform(0.5, 2, shape[0]) if weighted else None
    root = np.ones((shape[0], 1)) if w is None else np.sqrt(w)[:, None]
    # Five directions, all but the first as small; the target has some of each and of one more.
    x = (left * [1.0, least, least, least, least]) @ right.T / root
    beside = rng.standard_normal((shape[0], 1))
    beside -= left @ (left.T @ beside)
    y = (left.sum(axis=1, keepdims=True) + beside) / root
    V, objective, rank = fit(x, y, w, 0.0)
    assert rank == 5
    assert objective == pytest.approx(float((beside**2).sum()), rel=1e-14 / least)
    attained = (root**2 * (y - x @ V) ** 2).sum()
    assert attained == pytest.approx(objective, rel=1e-14 / least)


@pytest.mark.parametrize("penalty", [1e-20, 1e-14, 1e-9, 1e-4])
@pytest.mark.parametrize("least", [1e-4, 1e-7])
def test_a_tiny_ridge_on_more_columns_than_rows(penalty: float, least: float) -> None:
    rng = np.random.default_rng(2)
    left, right = (np.linalg.qr(rng.standard_normal((m, 6)))[0] for m in (6, 11))
    s = np.array([1.0, 1.0, 1.0, least, least, least])
    y = left.sum(axis=1, keepdims=True)
    V, objective, rank = wide_least_squares((left * s) @ right.T, y, None, penalty)
    assert rank == 11
    assert objective == pytest.approx((penalty / (s**2 + penalty)).sum(), rel=1e-7)
    wanted = right @ (s / (s**2 + penalty))
    np.testing.assert_allclose(V.ravel(), wanted, rtol=1e-7, atol=1e-7 * np.abs(wanted).max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_wide_least_squares(weighted: bool, penalty: float) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((7, 20)) * 10.0 ** rng.integers(-2, 3, 20), rng.normal(size=(7, 2))
    x[6] = x[5]
    w = rng.uniform(0.5, 2, 7) if weighted else None
    V, objective, rank = wide_least_squares(x, y, w, penalty)
    root = np.ones((7, 1)) if w is None else np.sqrt(w)[:, None]
    X, Y = root * x, root * y
    fitted = ((Y - X @ V) ** 2).sum() + penalty * (V**2).sum()
    assert objective == pytest.approx(fitted, rel=1e-9, abs=1e-12)
    if penalty:
        A = X.T @ X + penalty * np.eye(20)
        np.testing.assert_allclose(V, np.linalg.solve(A, X.T @ Y), rtol=1e-6, atol=1e-9)
        assert rank == 20
    else:
        assert rank == 6
        least = ((Y - X @ np.linalg.pinv(X) @ Y) ** 2).sum()
        assert objective == pytest.approx(least, rel=1e-9)
        # Of all fits that of least norm, for columns of unit length.
        size = np.linalg.norm(X, axis=0)
        wanted = np.linalg.pinv(X / size) @ Y / size[:, None]
        np.testing.assert_allclose(V, wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("way", ["direct", "wrapper"])
def test_add_gram_adds_to_the_upper_half_alone(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "wrapper":
        monkeypatch.setattr(linalg, "_syrk", lambda: None)
    rng = np.random.default_rng(0)
    X, before = np.asfortranarray(rng.normal(size=(9, 5))), rng.normal(size=(5, 5))
    total = np.asfortranarray(before)
    add_gram(total, X)
    np.testing.assert_allclose(np.triu(total), np.triu(before + X.T @ X), rtol=1e-13)
    assert (np.tril(total, -1) == np.tril(before, -1)).all()


@pytest.mark.parametrize(
    ("integer", "number", "fits"),
    [("int", "double", True), ("int", "__pyx_t_5scipy_6linalg_11cython_blas_d", True),
     ("int64_t", "double", False), ("__pyx_t_cython_blas_int", "double", False),
     ("int", "float", False)],
)  # fmt: skip
def test_blas_is_called_directly_only_as_it_is_declared(
    integer: str, number: str, fits: bool
) -> None:
    words = ["char", "char", *[integer] * 2, *[number] * 2, integer, *[number] * 2, integer]
    declared = f"void ({', '.join(word + ' *' for word in words)})"
    assert bool(SYRK.fullmatch(declared.encode())) is fits


def test_another_declaration_leads_to_the_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never:
        def fullmatch(self, text: bytes) -> Any:
            return None

    monkeypatch.setattr(linalg, "SYRK", Never())
    assert linalg._syrk.__wrapped__() is None


@pytest.mark.parametrize("near", [0.0, 1e-7])
def test_orthogonal_columns_span_the_same_in_any_units(near: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 4))
    x[:, 3] = x[:, 0] + near * rng.standard_normal(30)
    for units in (np.ones(4), 10.0 ** np.array([12.0, -9.0, 0.0, 6.0])):
        columns, back = orthogonal(x * units)
        rank = 4 if near else 3
        assert columns.shape == (30, rank)
        np.testing.assert_allclose(columns.T @ columns, 30.0 * np.eye(rank), atol=1e-10)
        v = rng.standard_normal(rank)
        np.testing.assert_allclose((x * units) @ (v @ back), columns @ v, atol=1e-7)
