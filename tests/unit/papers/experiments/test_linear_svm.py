"""The machine that the interior-point method finds is that of libsvm."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from exactk.papers.experiments import linear_svm
from exactk.papers.experiments.linear_svm import fit_svm, hinge_objective, interior_point


def overlapping(n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, k))
    y = np.where(Z[:, 0] + rng.standard_normal(n) > 0.3, 1.0, -1.0)
    return Z, y


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0, 1e4])
@pytest.mark.parametrize(("n", "k"), [(200, 3), (60, 20), (15, 30), (2, 1)])
def test_it_is_the_minimum(n: int, k: int, C: float) -> None:
    Z, y = overlapping(n, k, 1)
    y[:2] = 1.0, -1.0
    found = interior_point(Z, y, C)
    assert found is not None
    value = hinge_objective(Z, y, C, *found)
    # Of a convex function no point nearby is lower unless this is not the minimum.
    rng = np.random.default_rng(0)
    for size in 10.0 ** np.arange(-6, 1):
        for _ in range(20):
            move = size * rng.standard_normal(k + 1)
            other = hinge_objective(Z, y, C, found[0] + move[:k], found[1] + move[k])
            assert other >= value * (1 - 1e-8)
    if C <= 1.0:
        model = SVC(kernel="linear", C=C, tol=1e-7).fit(Z, y)
        assert found[0] == pytest.approx(model.coef_[0], rel=1e-3, abs=1e-4)


def test_equal_and_dependent_columns_are_no_obstacle() -> None:
    Z, y = overlapping(80, 4, 2)
    twice = np.column_stack([Z, Z, np.zeros(80)])
    one, other = interior_point(Z, y, 100.0), interior_point(twice, y, 200.0)
    assert one is not None
    assert other is not None
    # With every column twice the penalty halves: the same rule at twice the cost.
    assert twice @ other[0] + other[1] == pytest.approx(Z @ one[0] + one[1], abs=1e-3)


def machines(C: float, tol: float) -> tuple[linear_svm.LinearSVM, SVC, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    Z = X[:, 18:26] / 8.0 - 1.0
    model = SVC(kernel="linear", C=C, tol=tol).fit(Z[:500], y[:500])
    return fit_svm(Z[:500], y[:500], C), model, Z[500:]


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_up_to_the_usual_cost_it_is_libsvm(C: float) -> None:
    found, model, Z = machines(C, 1e-3)
    assert found.coef == pytest.approx(model.coef_)
    assert np.array_equal(found.predict(Z), model.predict(Z))


@pytest.mark.parametrize("C", [10.0, 100.0])
def test_beyond_it_libsvm_comes_to_the_same_in_the_end(
    C: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The usual tolerance of libsvm leaves rows near a border on either side of it.
    found, model, Z = machines(C, 1e-3)
    assert (found.predict(Z) != model.predict(Z)).mean() < 0.002
    monkeypatch.setattr(linear_svm, "MOST_STEPS", 50)
    found, model, Z = machines(C, 1e-5)
    assert np.array_equal(found.predict(Z), model.predict(Z))


def test_two_classes_and_the_side_they_are_on() -> None:
    Z, y = overlapping(100, 3, 4)
    codes = (y > 0).astype(np.intp)
    for C in (1.0, 50.0):
        model = SVC(kernel="linear", C=C).fit(Z, codes)
        assert np.array_equal(fit_svm(Z, codes, C).predict(Z), model.predict(Z))


def test_libsvm_finishes_what_the_other_method_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_svm, "MOST_STEPS", 10)
    monkeypatch.setattr(linear_svm, "interior_point", lambda Z, y, C: None)
    Z, y = overlapping(60, 3, 5)
    codes = (y > 0).astype(np.intp)
    model = SVC(kernel="linear", C=10.0).fit(Z, codes)
    assert fit_svm(Z, codes, 10.0).coef == pytest.approx(-model.coef_)
