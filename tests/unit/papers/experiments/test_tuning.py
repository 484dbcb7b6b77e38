"""Tuning chooses what a loop written out would choose."""

from __future__ import annotations

import warnings
from math import isnan
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

from exactk import Problem, solve
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.papers.experiments import tuning
from exactk.papers.experiments.classifiers import accuracy
from exactk.papers.experiments.splits import fold_splits
from exactk.papers.experiments.tuning import tune
from exactk.result import Answer, Status
from exactk.utils.monitor import Monitor
from tests.support import says

X, Y = load_wine(return_X_y=True)
LAMBDAS = [{"lam": lam} for lam in (0.01, 1.0, 100.0, 1000.0)]


def by_hand(
    k: int, settings: list[dict[str, Any]], method: str, ridge: Any, classifier: str
) -> Any:
    scores = np.zeros((len(settings), 4))
    for f, (train, test) in enumerate(fold_splits(Y, 4, 3)):
        for s, options in enumerate(settings):
            problem = Problem.from_arrays(X[train], Y[train], task="classification")
            problem = problem.with_ridge(ridge, k, random_state=3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                S = solve(problem, k, method, **options).support
            scores[s, f] = accuracy(
                classifier, X[train][:, S], Y[train], X[test][:, S], Y[test], random_state=3
            )
    return scores.mean(axis=1)


@pytest.mark.parametrize(
    ("method", "settings", "ridge", "classifier"),
    [
        ("gsrfs", LAMBDAS, 0, "svm"),
        ("relieff", [{"n_neighbors": n} for n in (1, 5, 20)], 0, "1nn"),
        ("exchange", [{"effort": 0}, {"effort": 1}], "auto", "linear"),
        ("greedy", [{}, {}], "cv", "svm"),
        ("pgd", [{"max_iter": 1}, {"max_iter": 100}], 0, "1nn"),
    ],
)
def test_it_chooses_as_a_loop_would(
    method: str, settings: Any, ridge: Any, classifier: str
) -> None:
    known = registry.method_class(method).option_names()
    settings = [{key: value for key, value in s.items() if key in known} for s in settings]
    found = tune(X, Y, (2, 4), settings, method=method, ridge=ridge, classifier=classifier,
                 folds=4, random_state=3)  # fmt: skip
    assert len(found) == 2
    for k, result in zip((2, 4), found, strict=True):
        expected = by_hand(k, settings, method, ridge, classifier)
        assert result.scores == pytest.approx(expected.tolist())
        best = int(np.argmax(expected.round(12)))
        assert result.options == settings[best]
        assert result.score == pytest.approx(expected[best])
        single = tune(X, Y, k, settings, method=method, ridge=ridge, classifier=classifier,
                      folds=4, random_state=3)  # fmt: skip
        assert (single.options, single.scores) == (result.options, result.scores)
        assert single.seconds > 0


def test_equals_go_to_the_first() -> None:
    found = tune(X, Y, 3, [{"lam": 2.0}, {"lam": 2.0 + 1e-12}], method="gsrfs")
    assert found.options == {"lam": 2.0}
    assert found.scores[0] == found.scores[1]


def test_one_setting_is_taken_without_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "select_sizes", None)
    found = tune(X, Y, (2, 3), [{"lam": 2.0}], method="gsrfs")
    assert [result.options for result in found] == [{"lam": 2.0}] * 2
    assert all(isnan(result.score) for result in found)


class Fragile(Method):
    """Takes the first columns, or fails, as it is told."""

    def __init__(self, how: str = "well", first: int = 0) -> None:
        self.how = how
        self.first = first

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:
        if self.how == "raises":
            raise ZeroDivisionError("nothing to divide by")
        status = Status.FAILED if self.how == "diverges" else Status.CONVERGED
        return Answer(list(range(self.first, self.first + k)), status, 1)


def test_what_fails_loses() -> None:
    settings = [{"how": "raises"}, {"how": "diverges"}, {"how": "well", "first": 4}]
    found = tune(X, Y, 2, settings, method=Fragile())
    assert found.options == settings[2]
    assert [isnan(score) for score in found.scores] == [True, True, False]
    assert set(found.failures) == {0, 1}
    assert "nothing to divide by" in found.failures[0]
    assert "diverged" in found.failures[1]


def test_if_all_fail_the_reasons_are_reported() -> None:
    with says("every setting", "'raises'", "nothing to divide by", "diverged"):
        tune(X, Y, 2, [{"how": "raises"}, {"how": "diverges"}], method=Fragile())


def test_a_fold_with_fewer_columns_takes_what_it_has() -> None:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((12, 3))
    table[:, 2] = 0.0
    # Constant in the training part of the fold that tests this row.
    table[4, 2] = 1.0
    found = tune(table, np.arange(12) % 2, 3, [{}, {"effort": 0}], method="exchange", folds=4)
    assert not found.failures


def test_inputs_stay_as_they_are_and_answers_repeat() -> None:
    before = X.copy()
    runs = [tune(X, Y, 3, LAMBDAS, method="gsrfs", random_state=8).scores for _ in range(2)]
    assert runs[0] == runs[1]
    assert np.array_equal(X, before)
    drawn = [
        tune(X, Y, k, LAMBDAS, method="gsrfs", random_state=np.random.default_rng(8))
        for k in ((2, 3), (3,))
    ]
    assert drawn[0][1].scores == drawn[1][0].scores != runs[0]


def test_what_cannot_be_tuned_is_refused_before_any_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "select_sizes", None)
    two = LAMBDAS[:2]
    with says("settings is empty"):
        tune(X, Y, 2, [], method="gsrfs")
    with says("lam", "-1"):
        tune(X, Y, 2, [*two, {"lam": -1}], method="gsrfs")
    with pytest.raises(TypeError, match="no option 'gamma'"):
        tune(X, Y, 2, [*two, {"gamma": 1}], method="gsrfs")
    with says("unknown classifier", "did you mean 'svm'"):
        tune(X, Y, 2, two, method="gsrfs", classifier="SVM")
    with says("ridge", "'much'"):
        tune(X, Y, 2, two, method="gsrfs", ridge="much")
    with says("folds", "1"):
        tune(X, Y, 2, two, method="gsrfs", folds=1)
    with says("X has 178 rows, y has 177"):
        tune(X, Y[1:], 2, two, method="gsrfs")
    with says("k", "14"):
        tune(X, Y, 14, two, method="gsrfs")
    with says("k"):
        tune(X, Y, (), two, method="gsrfs")
