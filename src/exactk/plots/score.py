"""Pictures of `exactk.evaluate`: the scores of each fold, and the permutation test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from exactk.errors import InputError, Setting
from exactk.plots.base import COLOURS, INK, SOFT, Display, check_result, plain

if TYPE_CHECKING:
    from exactk.evaluation.evaluate import Evaluation

__all__ = ["NullDisplay", "ScoreDisplay"]

# Name in the table, words in the legend, colour, and shape of the points.
FIGURES = (
    ("test_score", "features selected on the training rows", COLOURS[0], "o"),
    ("naive_score", "features selected on all rows", COLOURS[1], "s"),
    ("baseline_score", "no features", SOFT, "_"),
)
# With more folds, not each of them has its number on the axis.
FEW_FOLDS = 15
MOST_BINS = 30
REQUIRED = ("an evaluation", "exactk.evaluate", "folds", "scoring", "null", "observed")


class _OfEvaluation(Display):
    """What the pictures of an evaluation have in common."""

    def __init__(self, evaluation: Evaluation) -> None:
        check_result(evaluation, *REQUIRED, parameter="evaluation")
        self.evaluation = evaluation

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, ax: Any = None) -> Self:
        """Draw the result of `exactk.evaluate` on these axes or new ones."""
        return cls(evaluation).draw_on(ax)


class ScoreDisplay(_OfEvaluation):
    """Scores of the reference in each fold, with their means as lines.

    Parameters
    ----------
    evaluation : Evaluation

    Attributes
    ----------
    ax_, figure_
        As in `Display`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import exactk
    >>> evaluation = exactk.evaluate(*load_iris(return_X_y=True), k=2)
    >>> display = ScoreDisplay.from_evaluation(evaluation)
    >>> display.ax_.get_ylabel()
    'accuracy'
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def draw(self, ax: Any) -> None:  # noqa: D102
        reference = self.evaluation.table["method"][0]
        folds = [row for row in self.evaluation.folds if row["method"] == reference]
        at = np.array([row["fold"] for row in folds], dtype=float)
        for j, (name, words, colour, shape) in enumerate(FIGURES):
            values = np.array([row[name] for row in folds])
            # Side by side, so that equal scores do not hide each other.
            ax.plot(
                at + 0.16 * (j - 1), values, shape, color=colour, markersize=7,
                label=f"{words} ({values.mean():.3g})",
            )  # fmt: skip
            ax.axhline(values.mean(), color=colour, linewidth=1.0, linestyle=(0, (4, 3)))
        if len(at) <= FEW_FOLDS:
            ax.set_xticks(at, [f"{fold:g}" for fold in at])
        ax.set(xlabel="fold", ylabel=plain(self.evaluation.scoring.replace("_", " ")))
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)


class NullDisplay(_OfEvaluation):
    """Histogram of the shares explained of shuffled targets, and of the target itself.

    Parameters
    ----------
    evaluation : Evaluation
        With permutations.

    Attributes
    ----------
    ax_, figure_
        As in `Display`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import exactk
    >>> evaluation = exactk.evaluate(*load_iris(return_X_y=True), k=2, n_permutations=19)
    >>> display = NullDisplay.from_evaluation(evaluation)
    >>> display.ax_.get_ylabel()
    'shuffled targets'
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__(evaluation)
        if len(evaluation.null) == 0:
            raise InputError(
                "the evaluation has no permutations to draw", parameter="n_permutations",
                value=0, hint=("use ", Setting("n_permutations", 100)),
            )  # fmt: skip

    def draw(self, ax: Any) -> None:  # noqa: D102
        found = self.evaluation
        bins = int(np.clip(np.sqrt(len(found.null)) * 1.5, 5, MOST_BINS))
        ax.hist(found.null, bins=bins, color=COLOURS[5], edgecolor="white", linewidth=0.6,
                label=f"shuffled targets ({len(found.null)})")  # fmt: skip
        ax.axvline(
            found.observed, color=COLOURS[1], linewidth=2.0,
            label=f"the target itself ({found.n_as_good} of {len(found.null)} did as well)",
        )  # fmt: skip
        ax.set(xlabel=f"share explained by {found.k} features", ylabel="shuffled targets")
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), labelcolor=INK)
