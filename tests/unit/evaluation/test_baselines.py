"""Methods of scikit-learn: exactly k columns for every target, weights, and the time limit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from exactk import evaluate
from exactk.evaluation import baselines
from exactk.evaluation.baselines import BASELINES, OutOfTimeError, TrainingData
from exactk.utils.monitor import Monitor
from tests.unit.evaluation.informative import make_classes, make_numbers


def _training(X, y, weights=None, task="regression"):
    return TrainingData(X, y, weights, task, 0, Monitor())


@pytest.mark.parametrize("k", [1, 3, 7, 11, 12])
def test_the_lasso_on_orthogonal_columns_takes_the_largest_correlations(k):
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(np.c_[np.ones(60), rng.normal(size=(60, 12))])[0][:, 1:]
    y = Q @ rng.normal(size=12) + 0.05 * rng.normal(size=60)
    correlation = np.abs(np.corrcoef(np.c_[Q, y].T)[-1, :-1])
    expected = np.sort(np.argsort(-correlation)[:k])
    np.testing.assert_array_equal(BASELINES["l1"](_training(Q, y[:, None]), k), expected)


def _targets(X, y):
    """Every kind of target, and its task."""
    return {
        "two": ((y > 0).astype(np.intp), "classification"),
        "three": (np.digitize(y, [-1, 1]), "classification"),
        "numbers": (y[:, None], "regression"),
        "outputs": (np.c_[y, X[:, 0] + y], "regression"),
        "labels": ((np.c_[y, X[:, 0]] > 0).astype(float), "classification"),
    }


@pytest.mark.parametrize("name", BASELINES)
def test_exactly_k_different_columns_for_every_target(name):
    X, y = make_numbers(60, 12)
    # Copies, of which the lasso takes one only.
    X[:, 5] = X[:, 3]
    X[:, 6] = -X[:, 11]
    for target, task in _targets(X, y).values():
        for k in (1, 2, 5, 11, 12):
            for weights in (None, np.arange(60) % 3 + 0.5):
                columns = BASELINES[name](_training(X, target, weights, task), k)
                assert len(np.unique(columns)) == k == len(columns)
                assert set(columns) <= set(range(12))


@pytest.mark.parametrize("name", BASELINES)
def test_the_units_of_several_outputs_do_not_matter(name):
    X, y = make_numbers(60, 12)
    Y = np.c_[y, X[:, :4] @ [1, -1, 1, -1] + np.random.default_rng(0).normal(size=60)]
    found = [
        evaluate(X, Y * [unit, 1.0], k=4, compare_with=[name], cv=2).folds["features"]
        for unit in (1.0, 1e4)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", BASELINES)
def test_weights_of_baselines_are_repeated_rows(task, name):
    is_number = task == "regression"
    X, y = (make_numbers if is_number else make_classes)(60, 15, seed=4)
    y = y[:, None] if is_number else np.unique(y, return_inverse=True)[1]
    weights = np.random.default_rng(1).integers(1, 30, size=60)
    rows = np.repeat(np.arange(60), weights)
    weighted = BASELINES[name](_training(X, y, weights.astype(float), task), 5)
    repeated = BASELINES[name](_training(X[rows], y[rows], None, task), 5)
    np.testing.assert_array_equal(weighted, repeated)
    assert not np.array_equal(weighted, BASELINES[name](_training(X, y, None, task), 5))


def test_an_elimination_of_many_columns_finds_the_planted_ones_in_few_fits(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 1500))
    y = (X[:, 700] + X[:, 40] > 0).astype(np.intp)
    fits: list[int] = []

    class Counting(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            fits.append(X.shape[1])
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(baselines, "LogisticRegression", Counting)
    columns = BASELINES["rfe"](_training(X, y, None, "classification"), 2)
    np.testing.assert_array_equal(columns, [40, 700])
    assert len(fits) < 130
    # One by one at the end.
    assert fits[-4:] == [6, 5, 4, 3]


@pytest.mark.parametrize("name", ["rfe", "l1"])
def test_no_answer_after_the_time_limit(name):
    X, y = make_numbers()
    training = TrainingData(X, y[:, None], None, "regression", 0, Monitor(1e-9))
    with pytest.raises(OutOfTimeError) as error:
        BASELINES[name](training, 3)
    assert error.value.parameter == "time_limit"


@pytest.mark.parametrize("name", BASELINES)
def test_units_signs_and_the_order_of_classes_do_not_matter(name):
    X, y = make_numbers()
    scale = 10.0 ** (np.arange(16) % 9 - 4) * (-1.0) ** np.arange(16)
    select, codes = BASELINES[name], np.digitize(y, [-1, 1])
    expected = select(_training(X, y[:, None]), 4)
    np.testing.assert_array_equal(select(_training(X * scale + 3, y[:, None]), 4), expected)
    np.testing.assert_array_equal(select(_training(X, 1e6 * y[:, None] - 5), 4), expected)
    one, other = (
        select(_training(X, labels, None, "classification"), 4) for labels in (codes, 2 - codes)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("k", [2, 5])
def test_the_penalty_for_two_classes_is_the_strongest_that_leaves_k(k):
    X, y = make_classes()
    X, y = X[y != "maybe"], (y[y != "maybe"] == "yes").astype(np.intp)
    found = BASELINES["l1"](_training(X, y, None, "classification"), k)
    x = (X - X.mean(axis=0)) / X.std(axis=0)
    kind = {"penalty": "l1"} if LogisticRegression().penalty == "l2" else {"l1_ratio": 1.0}
    # Small steps from the strongest penalty on, with another solver.
    for C in np.geomspace(0.01, 10, 400):
        model = LogisticRegression(C=C, solver="saga", max_iter=10_000, random_state=0, **kind)
        kept = np.flatnonzero(model.fit(x, y).coef_[0])
        if len(kept) >= k:
            break
    assert len(kept) == k
    np.testing.assert_array_equal(found, kept)
