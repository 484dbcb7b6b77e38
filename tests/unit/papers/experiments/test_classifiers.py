"""Accuracies against scikit-learn's own classifiers, in plain pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from exactk.papers.experiments.classifiers import CLASSIFIERS, COSTS, accuracy, best_cost
from exactk.papers.experiments.splits import fold_splits, share_split
from tests.support import says

Split = tuple[Any, Any, Any, Any]


class Scaler(TransformerMixin, BaseEstimator):
    """Standardises with n − 1; scikit-learn's divides by n."""

    def fit(self, X: Any, y: Any = None) -> Scaler:
        self.mean_ = X.mean(axis=0)
        spread = X.std(axis=0, ddof=1)
        self.scale_ = np.where(spread > 1e-12, spread, 1.0)
        return self

    def transform(self, X: Any) -> Any:
        return (X - self.mean_) / self.scale_


def split(name: str, columns: list[int] | slice, seed: int = 0) -> Split:
    load = {"digits": load_digits, "wine": load_wine, "breast_cancer": load_breast_cancer}[name]
    X, y = load(return_X_y=True)
    train, test = share_split(y, 0.4, seed)
    X = X[:, columns]
    return X[train], y[train], X[test], y[test]


CASES = [
    ("wine", [0, 6, 9]),
    ("wine", slice(None)),
    ("breast_cancer", [2, 7, 20, 21, 23]),
    ("digits", [20, 21, 28, 33, 36, 42, 43, 54]),
]


def plain(model: Any, part: Split) -> float:
    return float(make_pipeline(Scaler(), model).fit(part[0], part[1]).score(part[2], part[3]))


@pytest.mark.parametrize(("name", "columns"), CASES)
def test_the_svm_is_that_of_scikit_learn(name: str, columns: Any) -> None:
    part = split(name, columns)
    assert accuracy("svm", *part) == plain(SVC(kernel="linear", C=1.0), part)


@pytest.mark.parametrize(("name", "columns"), CASES)
def test_the_tuned_svm_is_that_of_a_grid_search(name: str, columns: Any) -> None:
    part = split(name, columns)
    search = GridSearchCV(
        make_pipeline(Scaler(), SVC(kernel="linear")),
        {"svc__C": list(COSTS)},
        cv=fold_splits(part[1], 5, 11),
    ).fit(part[0], part[1])
    assert best_cost(part[0], part[1], 11) == search.best_params_["svc__C"]
    assert accuracy("svm-tuned", *part, random_state=11) == search.score(part[2], part[3])


@pytest.mark.parametrize(
    ("name", "columns"), [("wine", slice(None)), ("breast_cancer", slice(None))]
)
def test_the_nearest_row_is_that_of_scikit_learn(name: str, columns: Any) -> None:
    part = split(name, columns)
    assert accuracy("1nn", *part) == plain(KNeighborsClassifier(1), part)


def test_of_equally_near_rows_the_first_counts() -> None:
    rng = np.random.default_rng(0)
    X, T = rng.integers(-1, 2, (40, 3)) * 2.0, rng.integers(-1, 2, (60, 3)) * 2.0
    X[0] = -2.0, 0.0, 2.0
    y, wanted = rng.integers(0, 3, 40), rng.integers(0, 3, 60)
    y[:3] = 0, 1, 2
    spread = X.std(axis=0, ddof=1)
    exact = np.array([[round(float((((a - b) / spread) ** 2).sum()), 9) for b in X] for a in T])
    assert (np.sort(exact, axis=1)[:, 0] == np.sort(exact, axis=1)[:, 1]).any()
    expected = (y[exact.argmin(axis=1)] == wanted).mean()
    assert accuracy("1nn", X, y, T, wanted) == expected


@pytest.mark.parametrize(("name", "columns"), CASES)
def test_the_linear_classifier_is_least_squares_on_one_hot_classes(name: str, columns: Any) -> None:
    part = split(name, columns)
    Y = np.eye(part[1].max() + 1)[part[1]]
    found = LinearRegression().fit(part[0], Y).predict(part[2]).argmax(axis=1)
    assert accuracy("linear", *part) == (found == part[3]).mean()


def test_dependent_columns_do_not_disturb_the_linear_classifier() -> None:
    part = split("wine", [0, 6, 9])
    more = [np.column_stack([X, X[:, 0] + X[:, 1], X, np.full(len(X), 0.1)]) for X in part[::2]]
    assert accuracy("linear", more[0], part[1], more[1], part[3]) == accuracy("linear", *part)
    ridge = RidgeClassifier(1e-8 * len(part[1]), solver="svd")
    assert accuracy("linear", *part) == plain(ridge, part)


@pytest.mark.parametrize("classifier", ["svm", "linear", "svm-tuned"])
def test_wide_tables_in_other_coordinates_give_the_same(classifier: str) -> None:
    rng = np.random.default_rng(2)
    X, y = load_digits(return_X_y=True)
    X = X[:90] @ rng.standard_normal((64, 200)) + rng.standard_normal((90, 200))
    part = X[:45], y[:45], X[45:], y[45:90]
    model = {
        "svm": SVC(kernel="linear"),
        "linear": RidgeClassifier(1e-8 * 45, solver="svd"),
        "svm-tuned": GridSearchCV(
            SVC(kernel="linear"), {"C": list(COSTS)}, cv=fold_splits(part[1], 5, 0)
        ),
    }[classifier]
    assert accuracy(classifier, *part, random_state=0) == plain(model, part)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_only_the_training_part_sets_the_scale(classifier: str) -> None:
    X_train, y_train, X_test, y_test = split("wine", [0, 6, 9])
    before = accuracy(classifier, X_train, y_train, X_test, y_test)
    # Other units and a constant column change nothing; nor do the other test rows.
    scaled = [np.column_stack([1e3 * X + 7, np.full(len(X), 0.1)]) for X in (X_train, X_test)]
    scaled[1][:, 3] = np.arange(len(X_test))
    assert accuracy(classifier, scaled[0], y_train, scaled[1], y_test) == before
    halves = [slice(0, 50), slice(50, None)]
    parts = [accuracy(classifier, X_train, y_train, X_test[h], y_test[h]) for h in halves]
    sizes = [50, len(y_test) - 50]
    assert np.average(parts, weights=sizes) == pytest.approx(before)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_labels_may_be_words_and_unknown_ones_are_wrong(classifier: str) -> None:
    X_train, y_train, X_test, y_test = split("wine", [0, 6, 9])
    words = np.array(["zinfandel", "barbera", "merlot"])
    found = accuracy(classifier, X_train, words[y_train], X_test, words[y_test])
    if classifier != "svm-tuned":  # its folds may then be other ones
        assert found == pytest.approx(
            accuracy(classifier, X_train, y_train, X_test, y_test), abs=0.03
        )
    assert accuracy(classifier, X_train, y_train, X_test[:5], np.full(5, 9)) == 0.0


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_tiny_training_parts_serve(classifier: str) -> None:
    X, y = np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1])
    # Where every C is as good as another the smallest is taken, and the larger class wins.
    assert accuracy(classifier, X, y, X, y) == (2 / 3 if classifier == "svm-tuned" else 1.0)
    assert accuracy(classifier, X[1:], y[1:], X, y) == 1.0
    # Nothing to go by: still an answer, the same each time.
    same = np.ones((4, 2))
    scores = {accuracy(classifier, same, [0, 1, 0, 1], same, [0, 1, 0, 1]) for _ in range(2)}
    assert scores == {0.5}


def test_what_cannot_be_scored_is_refused() -> None:
    X, y = np.arange(8.0).reshape(4, 2), [0, 0, 1, 1]
    with says("'linea'", "did you mean 'linear'", "1nn, svm, svm-tuned, linear"):
        accuracy("linea", X, y, X, y)
    with says("X_train", "no columns", "support"):
        accuracy("1nn", X[:, []], y, X[:, []], y)
    with says("y_train", "one class, '3'"):
        accuracy("svm", X, [3] * 4, X, y)
    broken = X.copy()
    broken[2, 1] = np.nan
    with says("X_test", "row 2", "column 1"):
        accuracy("linear", X, y, broken, y)
    with says("X_train has 2 columns, X_test 1"):
        accuracy("1nn", X, y, X[:, :1], y)
    with says("y_test", "4 labels"):
        accuracy("1nn", X, y, X, y[:3])
    with says("not the same labels"):
        accuracy("1nn", X, y, X, ["0", "0", "1", "1"])
    with says("X_test has no rows"):
        accuracy("1nn", X, y, X[:0], [])
    with says("X_train cannot be read as numbers"):
        accuracy("1nn", [["a"], ["b"]], [0, 1], X, y)
