"""How often features are selected on halves of the rows, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from exactk.params import Integer
from exactk.plots.base import COLOURS, SOFT, Display, check_result, label

if TYPE_CHECKING:
    from exactk.model_selection.stability import Stability

__all__ = ["StabilityDisplay"]

MOST_BARS = 25
GROUPS = {"core": COLOURS[0], "unstable": COLOURS[4], "rare": SOFT}


class StabilityDisplay(Display):
    """Bars of the selection frequencies, with their intervals and the thresholds.

    Parameters
    ----------
    stability : Stability
    n_features : int
        Largest number of bars; the most frequent features come first.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import exactk
    >>> found = exactk.stability(*load_wine(return_X_y=True), k=3, n_subsamples=10)
    >>> display = StabilityDisplay.from_stability(found)
    >>> display.ax_.get_xlabel()
    'share of 10 half-samples'
    >>> from exactk.plots.base import require_pyplot
    >>> require_pyplot().close(display.figure_)
    """

    def __init__(self, stability: Stability, n_features: int = MOST_BARS) -> None:
        check_result(
            stability, "a result", "exactk.stability", "table", "n_subsamples", "interval",
            parameter="stability",
        )  # fmt: skip
        Integer(1)("n_features", n_features)
        self.stability = stability
        self.n_features = n_features
        # As high as its bars need.
        self.size = (6.0, 1.4 + 0.24 * min(n_features, len(stability.table)))

    @classmethod
    def from_stability(
        cls, stability: Stability, *, n_features: int = MOST_BARS, ax: Any = None
    ) -> StabilityDisplay:
        """Draw the frequencies of a `Stability`.

        Parameters
        ----------
        stability : Stability
        n_features : int
            Largest number of bars.
        ax : matplotlib Axes or None
            None makes a new figure.

        Returns
        -------
        StabilityDisplay
        """
        return cls(stability, n_features).draw_on(ax)

    def draw(self, ax: Any) -> None:  # noqa: D102
        found = self.stability
        rows = found.table[: self.n_features].to_dicts()
        places = np.arange(len(rows))
        for group, colour in GROUPS.items():
            those = [i for i, row in enumerate(rows) if row["frequency_group"] == group]
            if those:
                lengths = [rows[i]["frequency"] for i in those]
                ax.barh(places[those], lengths, color=colour, label=group, height=0.7)
        middle = [row["frequency"] for row in rows]
        reach = [
            [row["frequency"] - row["low"] for row in rows],
            [row["high"] - row["frequency"] for row in rows],
        ]
        ax.errorbar(middle, places, xerr=reach, fmt="none", ecolor=SOFT, elinewidth=1)
        for limit in (found.threshold, found.negligible):
            ax.axvline(limit, color=SOFT, linestyle="--", linewidth=1)
        low, high = found.interval
        ax.set_yticks(places, [label(row["feature"]) for row in rows])
        ax.invert_yaxis()
        ax.set(
            xlim=(0.0, 1.02),
            xlabel=f"share of {found.n_subsamples} half-samples",
            title=f"k = {found.k}, stability {found.index:.2f} ({low:.2f} to {high:.2f})",
        )
        ax.legend(loc="lower right")
