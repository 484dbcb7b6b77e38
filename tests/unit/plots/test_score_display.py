"""Pictures of an evaluation: the numbers on the axes are those of the evaluation."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import numpy as np
import pytest

from exactk import InputError, evaluate
from exactk.errors import MissingExtraError
from exactk.plots import NullDisplay, ScoreDisplay, base

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def score():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20))
    y = X[:, 2] + rng.normal(size=60)
    return evaluate(X, y, k=3, cv=4, n_permutations=25, compare_with=["rfe"])


@pytest.fixture(autouse=True)
def closed():
    before = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == before


def test_points_are_the_scores_of_the_folds(score):
    display = ScoreDisplay.from_evaluation(score)
    points = [line for line in display.ax_.lines if len(line.get_xdata()) == 4]
    for line, name in zip(points, ("test_score", "naive_score", "baseline_score"), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), score.folds[name][:4])
    means = [line.get_ydata()[0] for line in display.ax_.lines if line not in points]
    assert means == pytest.approx([score.test_score, score.naive_score, score.baseline_score])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("fold", "r2")
    assert display.ax_.get_title() == ""
    assert display.figure_ is display.ax_.get_figure()


def test_the_null_and_the_true_target(score):
    display = NullDisplay.from_evaluation(score)
    assert sum(bar.get_height() for bar in display.ax_.patches) == 25
    (line,) = display.ax_.lines
    assert set(line.get_xdata()) == {score.observed}
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"the target itself ({score.n_as_good} of 25 did as well)" in labels


@pytest.mark.parametrize("kind", [ScoreDisplay, NullDisplay])
def test_axes_of_the_caller(score, kind):
    figure, axes = plt.subplots(1, 2)
    display = kind.from_evaluation(score, ax=axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert display.plot() is display.ax_ is not axes[1]
    with pytest.raises(InputError, match="ax must be matplotlib Axes or None, not ndarray"):
        kind.from_evaluation(score, ax=axes)


def test_nothing_to_draw(score):
    none = evaluate(np.eye(20)[:, :4], np.arange(20) % 2, k=2)
    with pytest.raises(InputError) as error:
        NullDisplay.from_evaluation(none)
    assert error.value.parameter == "n_permutations"


def test_without_matplotlib(score, monkeypatch):
    real = builtins.__import__

    def absent(name, *args, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtraError, match=re.escape('pip install "exactk[plots]"')):
        ScoreDisplay.from_evaluation(score)


def test_colours_are_those_of_the_report():
    css = Path(base.__file__).parents[1].joinpath("report/assets/report.css").read_text("utf-8")
    light = css[: css.index("prefers-color-scheme")]
    named = dict(re.findall(r"--([\w-]+): (#\w{6});", light))
    assert tuple(named[f"c{slot}"] for slot in range(8)) == base.COLOURS
    assert (named["ink"], named["soft"], named["grid"]) == (base.INK, base.SOFT, base.GRID)
