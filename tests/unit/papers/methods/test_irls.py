"""Reweighted least squares: the forms solved here against the printed one, and rows that die."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from exactk import Problem
from exactk.methods.iteration import Step
from exactk.papers.methods.irls import _solve, _solve_squared, reweighted_steps, robust_fit
from exactk.papers.methods.standard_table import StandardTable, standard_table
from tests.oracles.brute import make_classes, make_numbers

TALL, WIDE, SQUARE = (30, 8), (9, 20), (12, 12)


def printed(X: Any, Y: Any, S1: Any, S2: Any, lam: float) -> Any:
    """Eq. 4 as it stands."""
    return np.linalg.solve(X.T @ (S1[:, None] * X) + lam * np.diag(S2), X.T @ (S1[:, None] * Y))


def table_of(X: Any, Y: Any, weights: Any = None) -> StandardTable:
    X, Y = np.array(X, dtype=float), np.array(Y, dtype=float).reshape(len(X), -1)
    root = np.ones(len(X)) if weights is None else np.sqrt(np.asarray(weights, dtype=float))
    return StandardTable(X * root[:, None], Y * root[:, None], root, np.arange(X.shape[1]))


def steps_of(table: StandardTable, n: int, k: int = 1, **options: Any) -> list[Step]:
    named = {"r": 1.0, "p": 1.0, "lam": 0.5, "epsilon": 0.0, "tol": 0.0} | options
    return list(islice(reweighted_steps(table, k, **named), n))


def values_of(table: StandardTable, n: int, **options: Any) -> list[float]:
    return [step.value for step in steps_of(table, n, **options)]


@pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE])
@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_both_forms_solve_the_printed_system(shape: tuple[int, int], lam: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 3))
    S1, S2 = rng.uniform(0.2, 5.0, shape[0]), rng.uniform(0.2, 5.0, shape[1])
    W = _solve(X, Y, 1.0 / S1, 1.0 / S2, lam)
    np.testing.assert_allclose(W, printed(X, Y, S1, S2, lam), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_both_forms_agree_where_some_rows_weigh_far_more(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    S1, S2 = np.ones(shape[0]), rng.uniform(0.2, 5.0, shape[1])
    S1[[1, 4, 5]] = 1e8
    W = _solve(X, Y, 1.0 / S1, 1.0 / S2, 1.0)
    np.testing.assert_allclose(W, printed(X, Y, S1, S2, 1.0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_rows_of_infinite_weight_are_fitted_exactly(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    S1_inverse = np.ones(shape[0])
    S1_inverse[[1, 4, 5]] = 0.0
    W = _solve(X, Y, S1_inverse, np.ones(shape[1]), 1.0)
    np.testing.assert_allclose(X[[1, 4, 5]] @ W, Y[[1, 4, 5]], atol=1e-9)
    # What is left is the least of the others, among all W that fit these three: the gradient
    # has no part outside the span of their rows.
    others = np.setdiff1d(np.arange(shape[0]), [1, 4, 5])
    gradient = X[others].T @ (X[others] @ W - Y[others]) + W
    basis = np.linalg.qr(X[[1, 4, 5]].T)[0]
    np.testing.assert_allclose(gradient - basis @ (basis.T @ gradient), 0.0, atol=1e-8)


@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_rows_of_w_that_are_zero_stay_zero(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    S2_inverse = np.ones(shape[1])
    S2_inverse[[0, 3]] = 0.0
    W = _solve(X, Y, np.ones(shape[0]), S2_inverse, 1.0)
    assert (W[[0, 3]] == 0.0).all()
    rest = np.setdiff1d(np.arange(shape[1]), [0, 3])
    expected = printed(X[:, rest], Y, np.ones(shape[0]), np.ones(len(rest)), 1.0)
    np.testing.assert_allclose(W[rest], expected, atol=1e-10)


def test_products_made_once_give_the_same_as_the_rows() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal(TALL), rng.standard_normal((30, 3))
    S2_inverse = rng.uniform(0.0, 5.0, 8)
    S2_inverse[2] = 0.0
    W = _solve_squared(X.T @ X, X.T @ Y, S2_inverse, 0.7)
    np.testing.assert_allclose(W, _solve(X, Y, np.ones(30), S2_inverse, 0.7), atol=1e-12)


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_the_shortcut_of_squared_loss_takes_the_way_of_the_general_one(p: float) -> None:
    table = standard_table(Problem.from_arrays(*make_classes(40, 10, 3, seed=1)), "plus-minus")
    # The next number below 2 has no shortcut and, to all digits, the same steps.
    short = steps_of(table, 40, 4, r=2.0, p=p, lam=5.0)
    general = steps_of(table, 40, 4, r=float(np.nextafter(2.0, 0.0)), p=p, lam=5.0)
    np.testing.assert_allclose([s.value for s in short], [s.value for s in general], rtol=1e-10)
    assert [list(s.support) for s in short] == [list(s.support) for s in general]


def literal_values(
    X: Any, Y: Any, n: int, r: float, p: float, lam: float, epsilon: float
) -> list[float]:
    """Algorithm 1 with ε under the roots, by dense matrices."""
    S1, S2, values = np.ones(len(X)), np.ones(X.shape[1]), []
    for _ in range(n):
        W = printed(X, Y, S1, S2, lam)
        e = ((X @ W - Y) ** 2).sum(axis=1) + epsilon
        w = (W**2).sum(axis=1) + epsilon
        values.append(float((e ** (r / 2)).sum() + lam * (w ** (p / 2)).sum()))
        S1, S2 = (r / 2) * e ** (r / 2 - 1), (p / 2) * w ** (p / 2 - 1)
    return values


@pytest.mark.parametrize("shape", [TALL, WIDE])
@pytest.mark.parametrize(("r", "p"), [(2.0, 0.5), (1.0, 1.0), (0.5, 0.5)])
def test_epsilon_is_in_the_weights_and_in_the_objective(
    shape: tuple[int, int], r: float, p: float
) -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    found = values_of(table_of(X, Y), 8, r=r, p=p, lam=0.5, epsilon=1e-3)
    np.testing.assert_allclose(found, literal_values(X, Y, 8, r, p, 0.5, 1e-3), rtol=1e-8)


@pytest.mark.parametrize(("r", "p"), [(2.0, 1.0), (2.0, 0.5), (1.0, 1.0), (1.0, 0.25)])
@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_the_objective_never_rises(shape: tuple[int, int], r: float, p: float) -> None:
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    values = np.array(values_of(table_of(X, Y), 60, r=r, p=p, lam=1.0))
    assert (np.diff(values) <= 1e-9 * values[0]).all()
    assert values[-1] < values[0]


def test_whole_weights_are_repeated_rows() -> None:
    rng = np.random.default_rng(5)
    X, Y, w = rng.standard_normal(TALL), rng.standard_normal((30, 2)), rng.integers(1, 4, 30)
    repeated = table_of(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    for r in (0.5, 1.0, 2.0):
        np.testing.assert_allclose(
            values_of(table_of(X, Y, w), 15, r=r), values_of(repeated, 15, r=r), rtol=1e-7
        )


@pytest.mark.parametrize("r", [1.0, 0.5])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_rows_fitted_exactly_and_several_times_do_not_break_it(times: int, r: float) -> None:
    # The target is a combination of two columns: with a small penalty all residuals vanish, and
    # the same row twice makes a system of exact rows singular.
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 6))
    Y = X[:, [1, 4]] @ np.array([[2.0, -1.0], [1.0, 3.0]])
    table = table_of(np.vstack([X] * times), np.vstack([Y] * times))
    steps = steps_of(table, 80, 2, r=r, p=0.5, lam=1e-3)
    assert np.isfinite([step.value for step in steps]).all()
    assert sorted(steps[-1].support) == [1, 4]
    # What is left is the penalty of the two columns that made the target, of norms √5 and √10.
    # Roots of residuals magnify their rounding.
    least = 1e-3 * (5**0.25 + 10**0.25)
    assert steps[-1].value == pytest.approx(least, rel=0.02 if r == 1.0 else 0.5)


# With X = I and r = 2, p = 1 every row goes its own way: w ← b·w/(w + λ/2). Rows with b above λ/2
# live; the others shrink by the factor 2b/λ each time, the smaller the faster.
SEPARATE = np.array([0.2, 3.0, 0.0500, 0.47, 0.43, 0.0501])


def separate() -> StandardTable:
    X = np.vstack([np.eye(6), np.zeros((3, 6))])
    return table_of(X, np.concatenate([SEPARATE, np.ones(3)]))


@pytest.mark.parametrize("r", [2.0, float(np.nextafter(2.0, 0.0))])
def test_dead_rows_rank_after_the_living_by_the_time_of_their_death(r: float) -> None:
    ranked = [
        {k: list(step.support) for k, step in enumerate(at, start=1)}
        for at in zip(
            *(steps_of(separate(), 600, k, r=r, lam=1.0) for k in range(1, 7)), strict=True
        )
    ]
    by_size = np.argsort(-SEPARATE)
    # After 12 steps two have died, in the same step: the larger of them comes first. At the end
    # only one is alive.
    for t in (0, 12, 50, 300, 599):
        for k in range(1, 7):
            assert ranked[t][k] == by_size[:k].tolist()


def test_the_system_shrinks_as_rows_die(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    solve = np.linalg.solve

    def note(A: Any, B: Any) -> Any:
        sizes.append(len(A))
        return solve(A, B)

    monkeypatch.setattr(np.linalg, "solve", note)
    steps_of(separate(), 600, r=2.0, lam=1.0)
    assert sizes[0] == 6
    assert sizes[-1] == 1
    assert sizes == sorted(sizes, reverse=True)
    # From more columns than rows to fewer: the form follows.
    sizes.clear()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((15, 40))
    Y = X[:, [3, 7]] @ rng.standard_normal((2, 2))
    steps = steps_of(table_of(X, Y), 100, 2, r=1.0, p=0.5, lam=0.5)
    assert sorted(steps[-1].support) == [3, 7]
    assert sizes[0] == 15
    # Rows that are fitted exactly come and go with rounding: not every later step is small.
    assert 2 in sizes


def test_living_rows_end_at_the_optimum_of_each() -> None:
    # b − λ/2 for the one that lives, zero for the others: soft thresholding.
    value = values_of(separate(), 600, r=2.0, lam=1.0)[-1]
    expected = 0.5**2 + 1.0 * 2.5 + (np.delete(SEPARATE, 1) ** 2).sum() + 3.0
    assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("r", [2.0, 1.0, 0.5])
@pytest.mark.parametrize("shape", [TALL, WIDE])
@pytest.mark.parametrize("lam", [1e30, 1e300, 1e308])
def test_a_penalty_that_kills_all_rows_ends_finite(
    shape: tuple[int, int], r: float, lam: float
) -> None:
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    for p in (1.0, 0.3):
        steps = steps_of(table_of(X, Y), 30, 4, r=r, p=p, lam=lam)
        assert len({*steps[-1].support}) == 4
        # W = 0 is all that is left.
        expected = (np.linalg.norm(Y, axis=1) ** r).sum()
        assert steps[-1].value == pytest.approx(expected, rel=1e-6)


def test_every_step_has_k_columns() -> None:
    table = standard_table(Problem.from_arrays(*make_classes(40, 10, 3, seed=1)))
    for k in (1, 4, 10):
        for step in steps_of(table, 60, k, r=2.0, p=0.5, lam=30.0):
            assert len(set(step.support.tolist())) == k


def test_columns_are_named_as_in_the_problem() -> None:
    X, y = make_numbers(40, 4, 1, seed=1)
    X = np.column_stack([np.ones(40), X[:, 0], X[:, 0], X[:, 1:]])
    table = standard_table(Problem.from_arrays(X, y))
    assert set(steps_of(table, 5, 4)[-1].support.tolist()) == {1, 3, 4, 5}


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_a_change_of_at_most_tol_is_convergence(tol: float) -> None:
    table = standard_table(Problem.from_arrays(*make_classes(40, 10, 3, seed=1)))
    steps = steps_of(table, 400, tol=tol)
    changes = np.abs(np.diff([step.value for step in steps]))
    assert not steps[0].converged
    assert [step.converged for step in steps[1:]] == (changes <= tol).tolist()
    assert steps[-1].converged


def least_absolute(X: Any, y: Any) -> float:
    """The least Σ|y − Xw − b| as a linear programme."""
    n, m = X.shape
    design = np.column_stack([X, np.ones(n)])
    A = np.block([[design, -np.eye(n)], [-design, -np.eye(n)]])
    cost = np.concatenate([np.zeros(m + 1), np.ones(n)])
    free = [(None, None)] * (m + 1) + [(0, None)] * n
    return float(linprog(cost, A_ub=A, b_ub=np.concatenate([y, -y]), bounds=free).fun)


@pytest.mark.parametrize("seed", range(3))
def test_the_robust_fit_of_one_number_is_least_absolute_deviations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((25, 6)), rng.standard_t(2, 25)
    chosen = np.array([0, 2, 5])
    expected = least_absolute(X[:, chosen], y)
    assert robust_fit(table_of(X, y), chosen) == pytest.approx(expected, rel=1e-5)


def test_the_robust_fit_of_several_numbers_is_the_least_of_its_norms() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((25, 4)), rng.standard_normal((25, 2))
    design = np.column_stack([X[:, [1, 3]], np.ones(25)])

    def loss(w: Any) -> float:
        return float(np.linalg.norm(Y - design @ w.reshape(3, 2), axis=1).sum())

    found = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    assert robust_fit(table_of(X, Y), np.array([1, 3])) == pytest.approx(found.fun, rel=1e-6)


def test_the_robust_fit_knows_weights_and_no_columns() -> None:
    rng = np.random.default_rng(0)
    X, Y, w = rng.standard_normal((25, 3)), rng.standard_normal((25, 2)), rng.integers(1, 4, 25)
    chosen = np.array([0, 2])
    repeated = table_of(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    weighted = robust_fit(table_of(X, Y, w), chosen)
    assert weighted == pytest.approx(robust_fit(repeated, chosen), rel=1e-6)
    # Without columns the bias alone is left: the median, for one number.
    y = rng.standard_normal(25)
    expected = np.abs(y - np.median(y)).sum()
    none = robust_fit(table_of(X, y), np.zeros(0, dtype=int))
    assert none == pytest.approx(expected, rel=1e-5)


def test_a_few_wild_rows_do_not_move_the_robust_fit() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] - 2.0 * X[:, 1] + 5.0
    y[[3, 8, 21]] += [100.0, -50.0, 300.0]
    assert robust_fit(table_of(X, y), np.array([0, 1])) == pytest.approx(450.0, rel=1e-6)
