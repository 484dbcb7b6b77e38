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


def test_bars_are_losses_and_prices() -> None:
    data = load_wine(as_frame=True)
    why = explain(Problem.from_arrays(data.data, data.target, ridge=0.1), 4)
    _, ax = plt.subplots()
    display = ExplainDisplay.from_explanation(why, ax=ax)
    assert display.ax_ is ax
    dropped, price = ax.containers
    np.testing.assert_allclose(
        [bar.get_width() for bar in dropped], 100 * np.array(why.selected_features["loss_fraction"])
    )
    np.testing.assert_allclose(
        [bar.get_width() for bar in price],
        100 * np.array(why.selected_features["substitution_fraction"]),
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == why.selected_features["feature"]
    assert {text.get_text() for text in ax.texts} == {
        shorten(name) for name in why.selected_features["substitute"]
    }


def test_something_else_is_refused() -> None:
    with says("explanation", "exactk.explain", "int"):
        ExplainDisplay.from_explanation(3)  # type: ignore[arg-type]
