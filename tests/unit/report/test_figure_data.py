"""The numbers of the pictures, by NumPy and pandas: whatever weighs, scales or scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from exactk import Problem, solve
from exactk.data.moments import Moments
from exactk.report.figure_data import MOST_COLUMNS, coefficients, correlations, group_means

N, D = 90, 5
COLUMNS = np.arange(D)
CLASSES = np.array(["a", "b", "c"])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    codes = rng.choice(3, N, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(N, D)) * [1, 10, 0.1, 3, 1e3] + [0, 5, 2, -3, 1e4]
    X[:, 0] += codes
    X[:, 3] += X[:, 1]
    return X, codes


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(1).choice([0.0, 0.25, 1.0, 3.0], N)


def moments_of(X, w):
    """Mean and deviation by hand; n / (n − 1) of the rows that count, as for equal weights."""
    kept = w > 0
    mean = np.average(X[kept], axis=0, weights=w[kept])
    variance = np.average((X[kept] - mean) ** 2, axis=0, weights=w[kept])
    return mean, np.sqrt(variance * kept.sum() / (kept.sum() - 1))


def check_classes(problem, table, w, sds=True):
    X, codes = table
    found = group_means(problem, COLUMNS)
    assert (found["kind"], found["groups"]) == ("classes", CLASSES.tolist())
    expected = [moments_of(X[codes == c], w[codes == c]) for c in range(3)]
    whole = moments_of(X, w)
    for j, feature in enumerate(found["features"]):
        assert feature["name"] == problem.name(j)
        assert feature["means"] == pytest.approx([mean[j] for mean, _ in expected])
        if sds:
            assert feature["sds"] == pytest.approx([sd[j] for _, sd in expected])
        else:
            assert feature["sds"] is None
        assert feature["mean"] == pytest.approx(whole[0][j])
        assert feature["sd"] == pytest.approx(whole[1][j])


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("loss", ["squared", "optimal_scoring", "logistic"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 5.0}])
def test_means_of_classes(table, weights, scale, loss, class_weight):
    X, codes = table
    for w in (None, weights, 1e-6 * weights):
        problem = Problem.from_arrays(X, CLASSES[codes], sample_weight=w, loss=loss, scale=scale)
        if class_weight is not None:
            problem = problem.with_class_weight(class_weight)
        check_classes(problem, table, np.ones(N) if w is None else w)


def test_means_of_classes_by_pandas(table):
    X, codes = table
    by_class = pd.DataFrame(X).groupby(CLASSES[codes])
    found = group_means(Problem.from_arrays(X, CLASSES[codes]), COLUMNS)["features"]
    np.testing.assert_allclose([one["means"] for one in found], by_class.mean().T)
    np.testing.assert_allclose([one["sds"] for one in found], by_class.std().T)
    np.testing.assert_allclose([one["sd"] for one in found], pd.DataFrame(X).std())


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("loss", ["squared", "optimal_scoring"])
def test_means_of_classes_of_moments_alone(table, weights, scale, loss):
    X, codes = table
    for w in (None, weights):
        moments = replace(Moments.from_arrays(X, np.eye(3)[codes], w), classes=CLASSES)
        problem = Problem.from_moments(moments, scale=scale).with_loss(loss)
        check_classes(problem, table, np.ones(N) if w is None else w, sds=False)


def test_a_constant_column_has_its_mean(table):
    X, codes = table
    X = X.copy()
    X[:, 2] = 7.0
    for problem in (
        Problem.from_arrays(X, CLASSES[codes]),
        Problem.from_moments(
            replace(Moments.from_arrays(X, np.eye(3)[codes]), classes=CLASSES)
        ),
    ):  # fmt: skip
        one = group_means(problem, np.array([2]))["features"][0]
        assert one["means"] == pytest.approx([7, 7, 7])
        assert (one["mean"], one["sd"]) == pytest.approx((7, 0))
    held = Problem.from_arrays(X, CLASSES[codes])
    assert correlations(held, np.array([0, 2]))["values"][1] == [None, None]


def test_of_a_single_row_there_is_no_deviation(table):
    X, codes = table
    codes = np.where(np.arange(N) == 3, 2, np.minimum(codes, 1))
    one = group_means(Problem.from_arrays(X, CLASSES[codes]), np.array([0]))["features"][0]
    assert one["means"][2] == X[3, 0]
    assert one["sds"][2] is None


def test_quarters(table):
    X, _ = table
    y = np.exp(np.random.default_rng(2).normal(size=N))
    found = group_means(Problem.from_arrays(X, y, task="regression"), COLUMNS)
    assert found["kind"] == "quarters"
    parts = pd.qcut(y, 4, labels=False)
    frame = pd.DataFrame(X).groupby(parts)
    np.testing.assert_allclose([one["means"] for one in found["features"]], frame.mean().T)
    np.testing.assert_allclose([one["sds"] for one in found["features"]], frame.std().T)


def test_quarters_of_a_target_of_few_values(table):
    X, _ = table
    y = np.r_[np.zeros(80), np.arange(1.0, 11.0)]
    found = group_means(Problem.from_arrays(X, y, task="regression"), np.array([0]))
    lowest, second, third, highest = found["features"][0]["means"]
    assert lowest == pytest.approx(X[:80, 0].mean())
    assert highest == pytest.approx(X[80:, 0].mean())
    # Of a part without rows there is no mean.
    assert second is None
    assert third is None


def test_several_outputs(table, weights):
    X, _ = table
    Y = np.c_[X[:, 0] + X[:, 1], -X[:, 4], np.random.default_rng(3).normal(size=N)]
    for w in (None, weights):
        found = group_means(Problem.from_arrays(X, Y, sample_weight=w), COLUMNS)
        assert found["kind"] == "outputs"
        assert len(found["groups"]) == 3
        whole = np.cov(np.c_[X, Y].T, aweights=np.ones(N) if w is None else w)
        size = np.sqrt(np.diag(whole))
        expected = (whole / np.outer(size, size))[:D, D:]
        np.testing.assert_allclose([one["means"] for one in found["features"]], expected)


def test_without_rows_numbers_have_no_quarters(table):
    X, _ = table
    problem = Problem.from_moments(Moments.from_arrays(X, X[:, 0] + X[:, 1]))
    found = group_means(problem, COLUMNS)
    assert (found["kind"], found["groups"]) == ("none", [])
    assert found["features"][1]["means"] == []
    assert found["features"][1]["mean"] == pytest.approx(X[:, 1].mean())


@pytest.mark.parametrize("loss", ["squared", "optimal_scoring", "logistic"])
@pytest.mark.parametrize("scale", [True, False])
def test_correlations(table, weights, loss, scale):
    X, codes = table
    chosen = np.array([3, 0, 1])
    problem = Problem.from_arrays(X, CLASSES[codes], loss=loss, scale=scale)
    found = correlations(problem, chosen)
    assert found["names"] == ["x3", "x0", "x1"]
    assert found["left_out"] == 0
    np.testing.assert_allclose(found["values"], np.corrcoef(X[:, chosen].T), atol=1e-12)
    weighted = Problem.from_arrays(X, CLASSES[codes], sample_weight=weights, scale=scale)
    cov = np.cov(X[:, chosen].T, aweights=weights)
    size = np.sqrt(np.diag(cov))
    np.testing.assert_allclose(
        correlations(weighted, chosen)["values"], cov / np.outer(size, size), atol=1e-12
    )


def test_more_than_a_picture_holds():
    X = np.random.default_rng(0).normal(size=(100, MOST_COLUMNS + 3))
    problem = Problem.from_arrays(X, X[:, 0])
    order = np.arange(MOST_COLUMNS + 3)[::-1]
    found = correlations(problem, order)
    assert found["names"] == [f"x{j}" for j in order[:MOST_COLUMNS]]
    assert found["left_out"] == 3
    assert group_means(problem, order)["left_out"] == 3


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_standardised_coefficients(table, weights, scale, loss):
    X, codes = table
    for w in (None, weights, 1e-6 * weights):
        problem = Problem.from_arrays(
            X, CLASSES[codes], sample_weight=w, scale=scale, loss=loss
        ).with_ridge(0.01)
        for held in (problem, problem.with_class_weight("balanced")):
            result = solve(held, 3)
            found = coefficients(held, result.support, result.coef)
            _, sd = moments_of(X, np.ones(N) if w is None else w)
            assert [one["column"] for one in found] == [f"x{j}" for j in result.support]
            raw = np.array([one["raw"] for one in found]).T
            np.testing.assert_allclose(raw, result.coef)
            standardised = np.array([one["standardised"] for one in found]).T
            np.testing.assert_allclose(standardised, result.coef * sd[result.support], rtol=1e-6)


def test_coefficients_are_those_of_least_squares(table):
    X, codes = table
    problem = Problem.from_arrays(X, CLASSES[codes])
    result = solve(problem, 2)
    z = X[:, result.support]
    z = (z - z.mean(axis=0)) / z.std(axis=0, ddof=1)
    design = np.c_[np.ones(N), z]
    expected = np.linalg.lstsq(design, np.eye(3)[codes], rcond=None)[0][1:]
    found = [one["standardised"] for one in coefficients(problem, result.support, result.coef)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
