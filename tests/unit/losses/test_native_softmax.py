"""Multinomial logistic regression in C, held to NumPy's, to differences and to scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression

import exactk
from exactk import losses
from exactk.losses.softmax_native import CompiledSoftmax
from exactk.search.loss_pricing import LossTable, Support
from exactk.search.newton_pricing import SecondOrderModel

pytestmark = pytest.mark.skipif(
    losses.native.library() is None, reason="the library is not built or switched off"
)

# Rows around the edges of a tile and of its lanes, two classes and more, one column and several.
SHAPES = [(5, 1, 2), (8, 2, 3), (9, 3, 2), (83, 5, 4), (256, 4, 3), (264, 7, 2), (777, 6, 11)]


def _table(n: int, k: int, classes: int, ridge: float = 0.05) -> LossTable:
    rng = np.random.default_rng(n + k + classes)
    X = rng.normal(size=(n, 2 * k + 2)) * rng.uniform(0.1, 10.0, size=2 * k + 2)
    pull = X[:, :k] / X[:, :k].std(axis=0) @ rng.normal(size=(k, classes))
    y = np.argmax(pull + 2.0 * rng.gumbel(size=(n, classes)), axis=1)
    y[:classes] = np.arange(classes)
    weights = rng.uniform(0.3, 2.0, size=n)
    problem = exactk.Problem.from_arrays(X, y, sample_weight=weights, loss="logistic", ridge=ridge)
    return LossTable(problem)


def _compiled(table: LossTable, k: int) -> CompiledSoftmax:
    found = table.compiled(k)
    assert found is not None
    return found


def _in_numpy(table: LossTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_compiled", None)


@pytest.mark.parametrize("shape", SHAPES)
def test_values_without_a_step_are_those_of_numpy(shape: tuple[int, int, int]) -> None:
    _, k, classes = shape
    table = _table(*shape)
    members = list(range(0, 2 * k, 2))
    theta = np.random.default_rng(0).normal(size=(1, k + 1, classes - 1))
    fits = _compiled(table, k).fits([members], theta, steps=0, tol=0.0)
    assert fits.values[0] == pytest.approx(table.value(members, theta[0]), rel=1e-12)
    np.testing.assert_array_equal(fits.theta, theta)
    assert not fits.converged[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_fits_end_where_those_of_numpy_do(
    shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    k = shape[1]
    table = _table(*shape)
    supports = [list(range(k)), list(range(1, 2 * k, 2))]
    ours = table.fits(supports, steps=300, tol=1e-12)
    _in_numpy(table, monkeypatch)
    theirs = table.fits(supports, steps=300, tol=1e-12)
    assert ours.converged.all()
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-10)
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_fits_are_those_of_scikit_learn(load: object) -> None:
    X, y = load(return_X_y=True)  # type: ignore[operator]
    problem = exactk.Problem.from_arrays(X, y, loss="logistic", ridge=0.01)
    table = LossTable(problem)
    members = [0, 1, 3]
    fits = table.fits([members], steps=300, tol=1e-12)
    Z, classes = table.X[members].T, len(np.unique(y))
    # With two classes scikit-learn fits the difference b of both columns: ‖W‖² = ‖b‖² / 2.
    factor = problem.penalty / (2.0 if classes == 2 else 1.0)
    model = LogisticRegression(C=1.0 / factor, tol=1e-12, solver="newton-cholesky", max_iter=1000)
    model.fit(Z, y)
    logs = model.predict_log_proba(Z)
    value = -2.0 * logs[np.arange(len(y)), y].sum() + factor * (model.coef_**2).sum()
    assert fits.values[0] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_second_order_is_that_of_numpy(
    shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    k = shape[1]
    table = _table(*shape)
    members = tuple(range(k))
    fits = table.fits([members], steps=300, tol=1e-10)
    support = Support(members, fits.theta[0], float(fits.values[0]))
    columns = np.arange(k, 2 * k + 2)
    ours = SecondOrderModel(table, support, columns)
    prices = ours.swaps()
    slots, at = np.divmod(np.arange(prices.size), len(columns))
    looks = ours.fits(slots, at, steps=0, tol=0.0)
    ends = ours.fits(slots, at, steps=300, tol=1e-10)
    _in_numpy(table, monkeypatch)
    theirs = SecondOrderModel(table, support, columns)
    for name in ("K", "T", "E", "C"):
        own, other = getattr(ours.known, name), getattr(theirs.known, name)
        np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-7 * np.abs(other).max())
    np.testing.assert_allclose(prices, theirs.swaps(), rtol=1e-6, atol=1e-8 * support.value)
    starts = theirs.fits(slots, at, steps=0, tol=0.0)
    np.testing.assert_allclose(looks.theta, starts.theta, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(looks.values, starts.values, rtol=1e-6)
    # Whatever the Hessian that they start with, fits come to the same end, or are given up as the
    # ceiling falls.
    full = theirs.fits(slots, at, steps=300, tol=1e-10)
    assert ends.values.min() == pytest.approx(full.values.min(), rel=1e-9)
    done = ends.converged
    np.testing.assert_allclose(ends.values[done], full.values[done], rtol=1e-8)
    assert (ends.values[~done] > ends.values.min()).all()


def test_the_start_of_a_swap_is_right_to_second_order() -> None:
    """At the fit itself a column that takes a member's place by a hair's breadth changes little."""
    table = _table(300, 4, 3)
    rng = np.random.default_rng(1)
    near = table.X[0] + 1e-3 * rng.normal(size=300)
    problem = table.problem
    X = np.column_stack([problem.standardised(table.columns)[0], near])
    codes = problem.criterion.codes  # type: ignore[attr-defined]
    other = exactk.Problem.from_arrays(X, codes, loss="logistic", ridge=0.05)
    table = LossTable(other)
    fits = table.fits([[0, 1, 2, 3]], steps=300, tol=1e-12)
    support = Support((0, 1, 2, 3), fits.theta[0], float(fits.values[0]))
    model = SecondOrderModel(table, support, np.array([X.shape[1] - 1]))
    look = model.fits(np.array([0]), np.array([0]), steps=0, tol=0.0)
    end = table.fits([[1, 2, 3, X.shape[1] - 1]], steps=300, tol=1e-12)
    # What is left is of third order in the step.
    assert look.values[0] - end.values[0] <= 1e-6 * end.values[0]
    assert look.values[0] >= end.values[0] * (1.0 - 1e-12)


def test_a_ceiling_ends_fits_that_cannot_come_below_it() -> None:
    table = _table(777, 6, 11)
    free = table.fits([list(range(6))], steps=300, tol=1e-10)
    low = table.fits([list(range(6))], steps=300, tol=1e-10, ceiling=0.5 * float(free.values[0]))
    assert free.converged[0]
    assert not low.converged[0]
    assert low.values[0] > free.values[0]


def test_separated_classes_without_a_ridge_come_to_an_end() -> None:
    X = np.r_[np.linspace(-2, -1, 20), np.linspace(1, 2, 20)][:, None]
    y = np.repeat([0, 1], 20)
    problem = exactk.Problem.from_arrays(np.c_[X, X[::-1] ** 2], y, loss="logistic")
    fits = LossTable(problem).fits([[0]], steps=300, tol=1e-9)
    assert np.isfinite(fits.theta).all()
    assert 0.0 <= fits.values[0] < 1e-5


def test_columns_that_depend_on_each_other_do_not_end_a_fit() -> None:
    table = _table(300, 3, 3, ridge=0.0)
    table.X[1] = table.X[0]
    both = table.fits([[0, 1, 2]], steps=300, tol=1e-10)
    one = table.fits([[0, 2]], steps=300, tol=1e-10)
    assert both.values[0] == pytest.approx(one.values[0], rel=1e-7)


def test_a_fit_from_huge_coefficients_begins_anew() -> None:
    table = _table(83, 5, 4)
    supports = [list(range(5))]
    cold = table.fits(supports, steps=50, tol=1e-9)
    for size in (1e3, 1e300):
        fits = table.fits(supports, np.full((1, 6, 3), size), steps=50, tol=1e-9)
        assert fits.converged[0]
        assert fits.values[0] == pytest.approx(cold.values[0], rel=1e-8)


def test_huge_coefficients_that_are_only_looked_at_are_no_number() -> None:
    table = _table(83, 5, 4)
    fits = table.fits([list(range(5))], np.full((1, 6, 3), 1e300), steps=0, tol=0.0)
    assert not fits.converged[0]
    assert fits.values[0] == np.inf


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_the_search_chooses_as_it_does_without_a_compiler(
    load: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = load(return_X_y=True)  # type: ignore[operator]
    problem = exactk.Problem.from_arrays(X, y, loss="logistic", ridge=0.01)
    ours = exactk.solve(problem, 4)
    monkeypatch.setattr(losses.softmax_native, "library", lambda: None)
    theirs = exactk.solve(replace(problem), 4)
    np.testing.assert_array_equal(ours.support, theirs.support)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-10)
    np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-6)


def test_large_fits_are_left_to_numpy() -> None:
    table = _table(83, 5, 4)
    found = _compiled(table, 5)
    # 199·200/2 products of columns and 4·3/2 of classes are no more than 20,000.
    assert found.can_fit(198)
    assert not found.can_fit(199)
    assert table.compiled(199) is None


def test_columns_that_are_none_are_refused() -> None:
    table = _table(83, 5, 4)
    for wrong in (-1, len(table)):
        with pytest.raises(IndexError, match="no column of the table"):
            table.fits([[0, wrong]], steps=5, tol=1e-6)
    fits = table.fits([[0, 1]], steps=50, tol=1e-6)
    model = SecondOrderModel(table, Support((0, 1), fits.theta[0], 1.0), np.array([2, 3]))
    with pytest.raises(IndexError, match="none of those that are known"):
        model.fits(np.array([0]), np.array([2]), steps=0, tol=0.0)
    with pytest.raises(IndexError, match="no column of the table"):
        model.fits(np.array([2]), np.array([0]), steps=0, tol=0.0)


def test_a_model_without_columns_has_a_second_order() -> None:
    table = _table(83, 5, 4)
    fits = table.fits([[]], steps=50, tol=1e-10)
    assert fits.values[0] == pytest.approx(table.problem.null_model[1], rel=1e-9)
    support = Support((), fits.theta[0], float(fits.values[0]))
    model = SecondOrderModel(table, support, np.arange(len(table)))
    assert model.swaps().shape == (0, len(table))
    assert np.isfinite(model.known.E).all()


def test_calls_in_parts_find_what_one_call_does(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table(264, 7, 2)
    members = tuple(range(7))
    fits = table.fits([members], steps=300, tol=1e-10)
    support = Support(members, fits.theta[0], float(fits.values[0]))
    columns = np.arange(7, 16)
    slots, at = np.divmod(np.arange(63), 9)
    whole = SecondOrderModel(table, support, columns)
    ours = whole.fits(slots, at, steps=90, tol=1e-8, ceiling=support.value)
    monkeypatch.setattr(losses.softmax_native, "MOST_CALLED", 1)
    parts = SecondOrderModel(table, support, columns)
    np.testing.assert_array_equal(whole.known.T, parts.known.T)
    theirs = parts.fits(slots, at, steps=90, tol=1e-8, ceiling=support.value)
    np.testing.assert_array_equal(ours.values, theirs.values)
    np.testing.assert_array_equal(ours.theta, theirs.theta)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("far", [30.0, 300.0])
def test_a_start_where_all_rows_are_certain_is_no_end(
    compiled: bool, far: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(300, 4, 3, ridge=0.1)
    members = [0, 1, 2, 3]
    least = table.fits([members], steps=300, tol=1e-12).values[0]
    rng = np.random.default_rng(3)
    starts = far * rng.normal(size=(20, 5, 2))
    if not compiled:
        _in_numpy(table, monkeypatch)
    for start in starts:
        fits = table.fits([members], start[None], steps=300, tol=1e-10)
        # It comes to the end, or does not say that it did.
        assert not fits.converged[0] or fits.values[0] == pytest.approx(least, rel=1e-8)
        assert fits.values[0] <= table.value(members, start)


@pytest.mark.parametrize("seed", range(8))
def test_without_a_ceiling_every_swap_is_fitted_to_its_end(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((37, 8)), rng.integers(0, 3, size=37).astype(float)
    y = np.argmax(X[:, [0]] * rng.standard_normal(4) + 0.5 * rng.gumbel(size=(37, 4)), axis=1)
    y[:4], w[:4] = np.arange(4), 1.0
    problem = exactk.Problem.from_arrays(X, y, sample_weight=w, loss="logistic")
    table, members = LossTable(problem), (1, 2, 3, 4)
    fit = table.fits([members], steps=90, tol=1e-6)
    support = Support(members, fit.theta[0], float(fit.values[0]))
    model = SecondOrderModel(table, support, np.array([0, 5, 6, 7]))
    slots, at = np.divmod(np.arange(16), 4)
    together = model.fits(slots, at, steps=90, tol=1e-6)
    alone = [
        float(model.fits(slots[[i]], at[[i]], steps=90, tol=1e-6).values[0]) for i in range(16)
    ]
    np.testing.assert_allclose(together.values, alone, rtol=1e-12)
    cold = table.fits([model.members(*p) for p in zip(slots, at, strict=True)], steps=90, tol=1e-6)
    ends = together.converged & cold.converged
    assert ends.sum() > 8
    # With separated classes a fit falls for long, a little each time.
    np.testing.assert_allclose(together.values[ends], cold.values[ends], rtol=1e-2, atol=1e-3)
