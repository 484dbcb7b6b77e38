"""The fits in C, held to those of NumPy."""

from __future__ import annotations

import pickle
from math import inf

import numpy as np
import pytest

from exactk.data.targets import Target
from exactk.losses import reweighted
from exactk.losses.base import Fits, design
from exactk.losses.reweighted import ResidualCriterion
from exactk.losses.robust import L2R

pytestmark = pytest.mark.skipif(
    reweighted.compiled() is None, reason="the library is not built or switched off"
)

SHAPES = [(62, 5, 1), (301, 8, 3), (1000, 20, 4), (7, 2, 2), (3, 1, 1), (130, 10, 13)]


def _case(n: int, k: int, r: int, power: float) -> tuple[ResidualCriterion, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + k)
    X, noise = rng.normal(size=(4, k, n)), rng.standard_t(2, size=(n, r))
    T = X[0].T @ rng.normal(size=(k, r)) + noise
    target = Target("regression", None, None, T)
    criterion = L2R(power).bind(target, rng.uniform(0.5, 2.0, size=n))
    assert isinstance(criterion, ResidualCriterion)
    return criterion, design(X), 0.1 * rng.normal(size=(4, k + 1, r))


@pytest.mark.parametrize("power", [1.0, 0.5, 1.5, 2.0])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ceiling", [inf, 0.9])
def test_fits_are_those_of_numpy(
    shape: tuple[int, int, int], power: float, ceiling: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    criterion, Z, theta = _case(*shape, power)
    top = ceiling * criterion.null()[1]

    def fits() -> Fits:
        return criterion.fits(Z, 0.5, theta, steps=9, tol=1e-3, ceiling=top)

    ours, cold = fits(), criterion.cold_start(Z, 0.5)
    monkeypatch.setattr(reweighted, "compiled", lambda: None)
    theirs = fits()
    np.testing.assert_allclose(cold, criterion.cold_start(Z, 0.5), rtol=1e-7, atol=1e-9)
    # Rows that are fitted exactly weigh so much that few digits of the others are left.
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-5)
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(ours.converged, theirs.converged)


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_reported_fits_are_those_of_numpy(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    criterion, Z, theta = _case(62, 5, 2, power)
    ours = criterion.fits(Z, 0.5, theta, steps=900, tol=1e-13)
    monkeypatch.setattr(reweighted, "compiled", lambda: None)
    theirs = criterion.fits(Z, 0.5, theta, steps=900, tol=1e-13)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-11)
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=1e-6, atol=1e-8)


def test_short_calls_come_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    criterion, Z, theta = _case(301, 8, 3, 1.0)
    cold, whole = criterion.cold_start(Z, 0.5), criterion.fits(Z, 0.5, theta, steps=60, tol=1e-6)
    reported = criterion.fits(Z, 0.5, theta, steps=60, tol=1e-13)
    monkeypatch.setattr(reweighted, "PRODUCTS_A_CALL", 1)
    again = criterion.fits(Z, 0.5, theta, steps=60, tol=1e-6)
    np.testing.assert_array_equal(again.theta, whole.theta)
    np.testing.assert_array_equal(again.values, whole.values)
    np.testing.assert_array_equal(again.converged, whole.converged)
    np.testing.assert_array_equal(criterion.cold_start(Z, 0.5), cold)
    once_more = criterion.fits(Z, 0.5, theta, steps=60, tol=1e-13)
    np.testing.assert_allclose(once_more.theta, reported.theta, rtol=1e-9, atol=1e-11)


def test_dependent_columns_do_not_end_a_fit() -> None:
    criterion, Z, theta = _case(301, 8, 3, 1.0)
    apart = criterion.fits(Z[:, 1:], 0.0, theta[:, 1:], steps=300, tol=1e-9)
    Z[:, 0] = Z[:, 1]
    theta[:, 0] = 0.0
    twice = criterion.fits(Z, 0.0, theta, steps=300, tol=1e-9)
    np.testing.assert_allclose(twice.values, apart.values, rtol=1e-6)
    assert np.isfinite(twice.theta).all()


def test_a_criterion_that_was_fitted_can_be_pickled() -> None:
    criterion, Z, theta = _case(62, 5, 1, 1.0)
    first = criterion.fits(Z, 0.5, theta, steps=9, tol=1e-3)
    again = pickle.loads(pickle.dumps(criterion)).fits(Z, 0.5, theta, steps=9, tol=1e-3)
    np.testing.assert_array_equal(again.theta, first.theta)


def test_without_memory_a_fit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Poor:
        @staticmethod
        def exactk_irls_descend(*arguments: object) -> int:
            return 0

    criterion, Z, theta = _case(62, 5, 1, 1.0)
    monkeypatch.setattr(reweighted, "compiled", Poor)
    with pytest.raises(MemoryError, match="no memory"):
        criterion.fits(Z, 0.5, theta, steps=9, tol=1e-3)
