"""What all displays refuse, and that names are shown letter by letter."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from exactk import Problem, TopKSelector, choose_k, evaluate, explain, stability
from exactk.plots import (
    Display,
    ExplainDisplay,
    NullDisplay,
    PathDisplay,
    ScoreDisplay,
    StabilityDisplay,
)
from tests.support import says

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DOORS: dict[str, tuple[Any, str]] = {
    "explanation": (ExplainDisplay.from_explanation, "exactk.explain"),
    "score": (ScoreDisplay.from_evaluation, "exactk.evaluate"),
    "null": (NullDisplay.from_evaluation, "exactk.evaluate"),
    "choice": (PathDisplay.from_choice, "exactk.choose_k"),
    "selector": (PathDisplay.from_selector, "TopKSelector"),
    "stability": (StabilityDisplay.from_stability, "exactk.stability"),
}
NAMES = [r"$\frac{$", "$x_", "a$b$", r"c\$", "plain"]


@pytest.fixture(autouse=True)
def closed() -> Any:
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, len(NAMES)))
    return Problem.from_arrays(X, X @ [5.0, 4.0, 3.0, 2.0, 0.1], feature_names=NAMES, ridge=0.1)


@pytest.mark.parametrize("value", [None, 3, {}, "stability"], ids=["None", "3", "dict", "text"])
@pytest.mark.parametrize("door", DOORS)
def test_something_else_is_refused(door: str, value: Any) -> None:
    make, source = DOORS[door]
    with says(source, f"not {type(value).__name__}") as error:
        make(value)
    assert error.value.parameter is not None
    assert plt.get_fignums() == []


def test_answers_of_another_kind_are_refused(problem: Problem) -> None:
    X, y = np.eye(20)[:, :4], np.arange(20) % 2
    answers = {
        "explanation": explain(problem, k=2),
        "score": evaluate(X, y, k=2),
        "choice": choose_k(problem, k_max=2, criterion="bic"),
        "stability": stability(problem, k=2, n_subsamples=4),
        "selector": TopKSelector(k=1).fit(X, y),
    }
    for door, (make, source) in DOORS.items():
        for kind, answer in answers.items():
            if kind != {"null": "score"}.get(door, door):
                with says(source, type(answer).__name__):
                    make(answer)
    assert plt.get_fignums() == []


def test_a_drawing_that_fails_leaves_no_figure() -> None:
    class Broken(Display):
        def draw(self, ax: Any) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Broken().plot()
    assert plt.get_fignums() == []
    _, ax = plt.subplots()
    with pytest.raises(ZeroDivisionError):
        Broken().plot(ax)
    assert len(plt.get_fignums()) == 1, "a figure of the caller's is the caller's to close"


@pytest.mark.parametrize("kind", ["stability", "explanation"])
def test_dollars_in_names_are_no_formulas(problem: Problem, kind: str) -> None:
    answer: Any = (
        stability(problem, k=2, n_subsamples=4)
        if kind == "stability"
        else explain(problem, k=len(NAMES))
    )
    display = DOORS[kind][0](answer)
    display.figure_.savefig(io.BytesIO(), format="png")
    texts = [label.get_text() for label in display.ax_.get_yticklabels()]
    shown = [matplotlib.text.Text(0, 0, text)._preprocess_math(text) for text in texts]
    assert {text for text, is_math in shown if not is_math} == set(NAMES)


def test_dollars_in_the_name_of_a_score() -> None:
    def scorer(estimator: Any, X: Any, y: Any) -> float:
        return -float(((estimator.predict(X) - y) ** 2).mean())

    scorer.__name__ = r"$\frac{$"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    choice = choose_k(Problem.from_arrays(X, X[:, 0]), k_max=2, scoring=scorer)
    PathDisplay.from_choice(choice).figure_.savefig(io.BytesIO(), format="png")
    score = evaluate(X, X[:, 0], k=1, scoring=scorer)
    ScoreDisplay.from_evaluation(score).figure_.savefig(io.BytesIO(), format="png")
