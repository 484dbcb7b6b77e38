"""Bars of selection frequencies: what they show, on which axes."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_wine

from exactk import InputError, Problem
from exactk.model_selection.stability import Stability, stability
from exactk.plots import StabilityDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def found() -> Stability:
    data = load_wine()
    problem = Problem.from_arrays(data.data, data.target, feature_names=data.feature_names)
    return stability(problem, k=3, n_subsamples=10)


def test_bars_are_the_frequencies(found: Stability) -> None:
    display = StabilityDisplay.from_stability(found, n_features=6)
    ax = display.ax_
    widths = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}
    assert [widths[i] for i in range(6)] == found.table["frequency"][:6]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == found.table["feature"][0]
    assert len(labels) == 6
    lines = {line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1}
    assert {found.threshold, found.negligible} <= lines
    assert ax.get_legend() is not None
    assert display.figure_ is ax.get_figure()
    plt.close(display.figure_)


def test_axes_of_the_caller(found: Stability) -> None:
    figure, ax = plt.subplots()
    display = StabilityDisplay.from_stability(found, ax=ax)
    assert display.ax_ is ax
    other = display.plot()
    assert other is not ax
    assert found.plot(ax) is ax
    assert len(ax.get_yticklabels()) == len(found.table)
    plt.close(figure)
    plt.close(other.get_figure())


def test_no_bars_are_refused(found: Stability) -> None:
    with pytest.raises(InputError) as error:
        StabilityDisplay.from_stability(found, n_features=0)
    assert error.value.parameter == "n_features"
