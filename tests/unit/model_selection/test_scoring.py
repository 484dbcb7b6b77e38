"""Estimators and scores by name, what suits what, and what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_wine
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from exactk import Problem, choose_k, evaluate
from exactk.errors import InputError
from exactk.model_selection.scoring import (
    ESTIMATORS,
    HoldoutScorer,
    read_estimator,
    read_scoring,
    target_labels,
)

WINE = load_wine(return_X_y=True)


@pytest.mark.parametrize("name", [None, *ESTIMATORS])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_an_estimator_by_name_is_one_of_its_task(name: str | None, task: str) -> None:
    if name is not None and task not in ESTIMATORS[name]:
        with pytest.raises(InputError) as error:
            read_estimator(name, task)
        assert error.value.parameter == "estimator"
        return
    X, y = WINE if task == "classification" else load_diabetes(return_X_y=True)
    scorer = HoldoutScorer.of(read_estimator(name, task), None)
    assert scorer.score(X[::2], y[::2], X[1::2], y[1::2]) > 0.1


def test_weights_reach_every_step_that_takes_them() -> None:
    X, y = WINE
    w = np.random.default_rng(0).integers(0, 3, 178).astype(float)
    rows = np.repeat(np.arange(0, 178, 2), w[::2].astype(int))
    model = make_pipeline(
        StandardScaler(), VarianceThreshold(), "passthrough", DecisionTreeClassifier(random_state=0)
    )
    scorer = HoldoutScorer.of(model, "accuracy", weighted=True)
    found = scorer.score(X[::2], y[::2], X[1::2], y[1::2], (w[::2], w[1::2]))
    predicted = model.fit(X[rows], y[rows]).predict(X[1::2])
    assert found == pytest.approx(accuracy_score(y[1::2], predicted, sample_weight=w[1::2]))


def test_names_of_scores() -> None:
    model = LogisticRegression()
    assert read_scoring("roc_auc", model)[1] == "roc_auc"
    assert read_scoring(make_scorer(accuracy_score), model)[1] == "accuracy_score"
    assert read_scoring(lambda *args: 0.0, model)[1] == "<lambda>"


def test_the_target_is_that_of_the_user() -> None:
    labels = np.array(["a", "b", "c"])[WINE[1]]
    np.testing.assert_array_equal(target_labels(Problem.from_arrays(WINE[0], labels)), labels)
    several = np.column_stack([WINE[1] > 0, WINE[1] > 1]).astype(int)
    np.testing.assert_array_equal(target_labels(Problem.from_arrays(WINE[0], several)), several)


@pytest.mark.parametrize(
    ("scoring", "estimator", "text", "instead"),
    [
        ("roc_auc", None, False, "roc_auc_ovr"),
        ("f1", None, False, "f1_macro"),
        ("recall", None, True, "recall_weighted"),
        ("neg_log_loss", "svm", False, "balanced_accuracy"),
    ],
)
def test_a_score_that_does_not_suit_the_classes(
    scoring: str, estimator: Any, text: bool, instead: str
) -> None:
    X, y = WINE
    if text:
        X, y = X[y < 2], np.array(["a", "b"])[y[y < 2]]
    problem = Problem.from_arrays(X, y)
    with pytest.raises(InputError) as error:
        choose_k(problem, k_max=2, scoring=scoring, estimator=estimator)
    assert error.value.parameter == "scoring"
    # The message suggests this.
    assert f"'{instead}'" in str(error.value)
    assert choose_k(problem, k_max=2, scoring=instead, estimator=estimator).scoring == instead


class NoFit:
    """Not an estimator."""


@pytest.mark.parametrize(
    ("parameter", "options"),
    [
        ("estimator", {"estimator": LogisticRegression}),
        ("estimator", {"estimator": NoFit()}),
        ("estimator", {"estimator": KMeans(2)}),
        ("estimator", {"estimator": make_pipeline(VarianceThreshold(), StandardScaler())}),
        ("scoring", {"scoring": KMeans}),
        ("estimator", {"estimator": "logstic"}),
        ("scoring", {"scoring": "acuracy"}),
        ("scoring", {"scoring": 3}),
        ("scoring", {"scoring": lambda model, X, y: np.nan}),
        ("scoring", {"scoring": lambda model, X, y: [0.5]}),
        ("scoring", {"scoring": "r2", "estimator": "svm", "y": np.array(["a", "b"] * 89)}),
        ("estimator", {"estimator": KNeighborsClassifier(), "sample_weight": np.arange(178) + 1.0}),
        (
            "scoring",
            {"scoring": make_scorer(lambda true, found: 0.0), "sample_weight": np.ones(178)},
        ),
        ("estimator", {"scoring": "accuracy", "y": (WINE[0][:, :2] > 2).astype(int)}),
    ],
)  # fmt: skip
def test_what_does_not_go_together(parameter: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as error:
        choose_k(WINE[0], k_max=2, **{"y": WINE[1], **options})
    assert error.value.parameter == parameter


def test_close_names_are_suggested() -> None:
    with pytest.raises(InputError, match="did you mean 'logistic'"):
        read_estimator("logstic", "classification")
    with pytest.raises(InputError, match="did you mean 'accuracy'"):
        read_scoring("acuracy", Ridge())


class Failing(GaussianNB):
    """Fails in a method."""

    def __init__(self, where: str = "fit", kind: type[Exception] = ValueError) -> None:
        super().__init__()
        self.where, self.kind = where, kind

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if self.where == "fit":
            raise self.kind
        return super().fit(X, y, sample_weight)

    def predict(self, X: Any) -> Any:
        raise self.kind


@pytest.mark.parametrize("kind", [ValueError, ZeroDivisionError])
def test_errors_of_the_user_name_the_parameter_and_their_cause(kind: type[Exception]) -> None:
    def broken(model: Any, X: Any, y: Any) -> float:
        raise kind

    cases: list[tuple[str, dict[str, Any]]] = [
        ("scoring", {"scoring": broken, "estimator": SVC()}),
        ("estimator", {"estimator": Failing("fit", kind)}),
        ("estimator", {"estimator": Failing("predict", kind)}),
    ]
    for parameter, options in cases:
        for call in (partial(choose_k, k_max=2), partial(evaluate, k=2)):
            with pytest.raises(InputError) as error:
                call(*WINE, **options)
            assert error.value.parameter == parameter
            assert isinstance(error.value.__cause__, kind)
