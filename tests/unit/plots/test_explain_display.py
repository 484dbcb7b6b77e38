"""The picture of an explanation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

from exactk import Problem, explain
from exactk.plots import ExplainDisplay
from exactk.plots.base import shorten
from tests.support import says

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    plt.close("all")


def test_bars_are_losses_without_a_feature_and_with_its_substitute() -> None:
    data = load_wine(as_frame=True)
    why = explain(Problem.from_arrays(data.data, data.target, ridge=0.1), k=4)
    _, ax = plt.subplots()
    display = ExplainDisplay.from_explanation(why, ax=ax)
    assert display.ax_ is ax
    dropped, replaced = ax.containers
    np.testing.assert_allclose(
        [bar.get_width() for bar in dropped], 100 * np.array(why.selected_features["loss_fraction"])
    )
    np.testing.assert_allclose(
        [bar.get_width() for bar in replaced],
        100 * np.array(why.selected_features["substitution_fraction"]),
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == why.selected_features["feature"]
    assert {text.get_text() for text in ax.texts} == {
        shorten(name) for name in why.selected_features["substitute"]
    }


def test_something_else_is_refused() -> None:
    with says("exactk.explain", "int") as error:
        ExplainDisplay.from_explanation(3)  # type: ignore[arg-type]
    assert error.value.parameter == "explanation"


def test_an_explanation_draws_itself() -> None:
    why = explain(*load_wine(return_X_y=True), k=2)
    _, ax = plt.subplots()
    assert why.plot(ax) is ax
    assert len(ax.patches) == 4
