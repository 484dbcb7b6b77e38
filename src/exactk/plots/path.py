"""The criterion of `exactk.choose_k` by number of features, with its spread over folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from exactk.errors import InputError, Setting
from exactk.plots.base import COLOURS, SOFT, Display, check_result, plain

if TYPE_CHECKING:
    from exactk.estimators.selector import TopKSelector
    from exactk.model_selection.choose_k import AutoKResult

__all__ = ["PathDisplay"]

LABELS = {
    "cv": "held-out squared error", "bic": "BIC", "ebic": "EBIC", "aicc": "AICc", "cp": "Cp",
}  # fmt: skip


@dataclass(eq=False)
class PathDisplay(Display):
    """The criterion of each size, with error bars where there are folds, and the chosen size.

    Make one with `from_choice` or `from_selector`.

    Attributes
    ----------
    choice : AutoKResult
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> display = PathDisplay.from_choice(exactk.choose_k(problem))
    >>> display.ax_.get_ylabel()
    'held-out squared error'
    >>> from matplotlib import pyplot as plt
    >>> plt.close(display.figure_)
    """

    choice: AutoKResult

    def __post_init__(self) -> None:
        """Refuse what is not a result of `exactk.choose_k`."""
        check_result(
            self.choice, "a result", "exactk.choose_k", "table", "criterion", "scoring", "k",
            parameter="choice",
        )  # fmt: skip

    @classmethod
    def from_choice(cls, choice: AutoKResult, *, ax: Any = None) -> PathDisplay:
        """Draw a choice of size.

        Parameters
        ----------
        choice : AutoKResult
            From `exactk.choose_k`.
        ax : matplotlib Axes or None
            None makes a new figure.

        Returns
        -------
        PathDisplay
        """
        return cls(choice).draw_on(ax)

    @classmethod
    def from_selector(cls, selector: TopKSelector, *, ax: Any = None) -> PathDisplay:
        """Draw the choice of a selector fitted with ``k="auto"``.

        Parameters
        ----------
        selector : TopKSelector
        ax : matplotlib Axes or None
            None makes a new figure.

        Returns
        -------
        PathDisplay
        """
        check_result(
            selector, "a fitted selector", "TopKSelector.fit", "get_support", "k",
            parameter="selector",
        )  # fmt: skip
        choice = getattr(selector, "choice_", None)
        if choice is None:
            raise InputError(
                "this selector has not chosen the number of features",
                parameter="selector", hint=("fit it with ", Setting("k", "auto")),
            )  # fmt: skip
        return cls.from_choice(choice, ax=ax)

    def draw(self, ax: Any) -> None:
        """Draw on axes; `plot` makes and dresses them."""
        table, choice = self.choice.table, self.choice
        sizes, values = np.array(table["k"]), np.array(table["criterion"])
        spread = np.array(table["standard_error"])
        if np.isfinite(spread).all():
            ax.errorbar(
                sizes, values, yerr=spread, color=COLOURS[0], ecolor=SOFT, marker="o",
                markersize=3, capsize=2, linewidth=1.2, elinewidth=0.8, label="mean ± 1 s. e.",
            )  # fmt: skip
        else:
            ax.plot(sizes, values, color=COLOURS[0], marker="o", markersize=3, linewidth=1.2)
        place = table["k"].index(choice.k)
        if choice.rule == "one_se" and np.isfinite(spread).all():
            best = values.argmax() if choice.scoring is not None else values.argmin()
            edge = values[best] + spread[best] * (-1 if choice.scoring is not None else 1)
            ax.axhline(edge, color=SOFT, linestyle=":", linewidth=1.0, label="best + 1 s. e.")
        ax.axvline(choice.k, color=COLOURS[1], linestyle="--", linewidth=1.0)
        ax.plot(
            [choice.k], [values[place]], color=COLOURS[1], marker="o", linestyle="none",
            label=f"chosen: k = {choice.k}",
        )  # fmt: skip
        ax.set(xlabel="number of features k", ylabel=self._label())
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend()

    def _label(self) -> str:
        if self.choice.criterion == "cv" and self.choice.scoring is not None:
            return f"held-out {plain(str(self.choice.scoring))}"
        return LABELS[self.choice.criterion]
