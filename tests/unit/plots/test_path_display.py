"""The picture of a choice of size: the criterion, its error bars, and the size chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

from exactk import AutoK, Problem, TopKSelector, choose_k
from exactk.plots import PathDisplay
from tests.support import says

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

X, Y = load_wine(return_X_y=True)


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    plt.close("all")


def test_means_error_bars_and_the_choice() -> None:
    choice = choose_k(Problem.from_arrays(X, Y), k_max=8)
    display = PathDisplay.from_choice(choice)
    ax = display.ax_
    assert display.figure_ is ax.get_figure()
    [bars] = ax.containers
    line, _, (spans,) = bars
    np.testing.assert_array_equal(line.get_xdata(), range(1, 9))
    np.testing.assert_array_equal(line.get_ydata(), choice.table["mean"])
    half = [(s[1, 1] - s[0, 1]) / 2 for s in spans.get_segments()]
    np.testing.assert_allclose(half, choice.table["standard_error"], rtol=1e-9)
    marked = [drawn for drawn in ax.lines if list(drawn.get_xdata()) == [choice.k]]
    assert marked[0].get_ydata()[0] == choice.table["mean"][choice.k - 1]
    assert f"chosen: k = {choice.k}" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert ax.get_ylabel() == "held-out squared error"


def test_a_criterion_has_no_error_bars() -> None:
    choice = choose_k(Problem.from_arrays(X, Y), k_max=8, criterion="ebic")
    _, ax = plt.subplots()
    display = PathDisplay.from_choice(choice, ax=ax)
    assert display.ax_ is ax
    assert not ax.containers
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), choice.table["criterion"])
    assert ax.get_ylabel() == "EBIC"
    other = display.plot()
    assert other is not ax
    assert display.ax_ is other


def test_of_a_selector() -> None:
    selector = TopKSelector(k=AutoK(k_max=4, scoring="accuracy", cv=3)).fit(X, Y)
    display = PathDisplay.from_selector(selector)
    assert display.choice is selector.choice_
    assert display.ax_.get_ylabel() == "held-out accuracy"
    with says("k='auto'") as error:
        PathDisplay.from_selector(TopKSelector(k=3).fit(X, Y))
    assert error.value.parameter == "selector"
