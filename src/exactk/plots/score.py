"""Pictures of `exactk.score_selection`: the figures fold by fold, and the permutation null."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from exactk.errors import InputError
from exactk.plots.base import COLOURS, INK, SOFT, Display, check_result, plain

if TYPE_CHECKING:
    from exactk.evaluation.nested_cv import SelectionScore

__all__ = ["NullDisplay", "ScoreDisplay"]

# Name in the table, words in the legend, colour, and shape of the points.
FIGURES = (
    ("test_score", "honest: selected within the fold", COLOURS[0], "o"),
    ("naive_score", "naive: selected on all rows, leaks", COLOURS[1], "s"),
    ("baseline_score", "baseline: no features", SOFT, "_"),
)
# Beyond so many folds not every one of them has its number below.
FEW_FOLDS = 15
MOST_BINS = 30
REQUIRED = ("a score", "exactk.score_selection", "folds", "scoring", "null", "observed")


class _OfScore(Display):
    """What the pictures of a score share."""

    def __init__(self, score: SelectionScore) -> None:
        check_result(score, *REQUIRED)
        self.score = score

    @classmethod
    def from_score(cls, score: SelectionScore, *, ax: Any = None) -> Self:
        """Draw what `score_selection` found, on these axes or new ones."""
        return cls(score).draw_on(ax)


class ScoreDisplay(_OfScore):
    """Honest, naive and baseline score of each fold, with their means as lines.

    Parameters
    ----------
    score : SelectionScore

    Attributes
    ----------
    ax_, figure_
        As in `Display`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import exactk
    >>> score = exactk.score_selection(*load_iris(return_X_y=True), k=2, n_permutations=0)
    >>> display = ScoreDisplay.from_score(score)
    >>> display.ax_.get_ylabel()
    'accuracy'
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def draw(self, ax: Any) -> None:  # noqa: D102
        folds = self.score.folds
        at = np.array(folds["fold"], dtype=float)
        for j, (name, words, colour, shape) in enumerate(FIGURES):
            values = np.array(folds[name])
            # Side by side, so that equal scores do not hide each other.
            ax.plot(
                at + 0.16 * (j - 1), values, shape, color=colour, markersize=7,
                label=f"{words} ({values.mean():.3g})",
            )  # fmt: skip
            ax.axhline(values.mean(), color=colour, linewidth=1.0, linestyle=(0, (4, 3)))
        if len(at) <= FEW_FOLDS:
            ax.set_xticks(at, [f"{fold:g}" for fold in at])
        ax.set(xlabel="fold", ylabel=plain(self.score.scoring.replace("_", " ")))
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)


class NullDisplay(_OfScore):
    """Histogram of what the search explains of permuted targets, and of the true one.

    Parameters
    ----------
    score : SelectionScore
        With permutations.

    Attributes
    ----------
    ax_, figure_
        As in `Display`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import exactk
    >>> score = exactk.score_selection(*load_iris(return_X_y=True), k=2, n_permutations=19)
    >>> display = NullDisplay.from_score(score)
    >>> display.ax_.get_ylabel()
    'permutations'
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(self, score: SelectionScore) -> None:
        super().__init__(score)
        if len(score.null) == 0 or not isfinite(score.observed):
            raise InputError(
                "this score has no permutations to draw; make it with n_permutations=100"
            )

    def draw(self, ax: Any) -> None:  # noqa: D102
        score = self.score
        bins = int(np.clip(np.sqrt(len(score.null)) * 1.5, 5, MOST_BINS))
        ax.hist(score.null, bins=bins, color=COLOURS[5], edgecolor="white", linewidth=0.6,
                label=f"permuted targets ({len(score.null)})")  # fmt: skip
        ax.axvline(
            score.observed, color=COLOURS[1], linewidth=2.0,
            label=f"the target itself (p = {score.p_value:.3g})",
        )  # fmt: skip
        ax.set(
            xlabel=f"share of the target explained by the best {score.k} found",
            ylabel="permutations",
        )
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), labelcolor=INK)
