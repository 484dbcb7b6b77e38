"""A picture of an explanation: what each selected feature is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from exactk.plots.base import COLOURS, INK, Display, check_result, label

if TYPE_CHECKING:
    from exactk.model_selection.explain import Explanation

__all__ = ["ExplainDisplay"]


class ExplainDisplay(Display):
    """Loss increase when each selected feature is dropped, or replaced by its best substitute.

    Parameters
    ----------
    explanation : Explanation

    Examples
    --------
    >>> import exactk
    >>> from exactk.plots import ExplainDisplay
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> display = ExplainDisplay.from_explanation(exactk.explain(problem, k=2))
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['x3', 'x1']
    >>> from exactk.plots.base import require_pyplot
    >>> require_pyplot().close(display.figure_)
    """

    def __init__(self, explanation: Explanation) -> None:
        check_result(
            explanation, "an explanation", "exactk.explain", "selected_features", "alternatives",
            parameter="explanation",
        )  # fmt: skip
        self.explanation = explanation

    @classmethod
    def from_explanation(cls, explanation: Explanation, *, ax: Any = None) -> ExplainDisplay:
        """Draw an explanation; its axes are `ax_`."""
        return cls(explanation).draw_on(ax)

    def draw(self, ax: Any) -> None:
        """Draw two bars for each feature, the most useful on top."""
        table = self.explanation.selected_features
        places = np.arange(len(table))
        dropped = 100.0 * np.array(table["loss_fraction"])
        replaced = 100.0 * np.array(table["substitution_fraction"])
        ax.barh(places - 0.2, dropped, height=0.38, color=COLOURS[0], label="dropped")
        ax.barh(places + 0.2, replaced, height=0.38, color=COLOURS[1], label="replaced")
        for place, value, name in zip(places, replaced, table["substitute"], strict=True):
            if name is not None:
                ax.annotate(
                    label(name), (max(value, 0.0), place + 0.2), xytext=(3, 0),
                    textcoords="offset points", va="center", fontsize="small", color=INK,
                )  # fmt: skip
        ax.set_yticks(places, [label(name) for name in table["feature"]])
        ax.invert_yaxis()
        ax.set_xlabel("loss increase, % of the loss without features")
        ax.legend()
