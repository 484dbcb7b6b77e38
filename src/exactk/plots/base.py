"""What all displays share: axes, colours, and that matplotlib is asked for when one is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from exactk.errors import InputError, MissingExtraError

__all__ = [
    "COLOURS",
    "GRID",
    "INK",
    "SOFT",
    "Display",
    "apply_style",
    "check_result",
    "label",
    "plain",
    "require_pyplot",
    "shorten",
]

# The light palette of report.css: told apart by colour-blind readers, and on grey paper.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#b8569a", "#b87d00", "#2a8fce", "#3c4048", "#8a6a3f",
)  # fmt: skip
INK, SOFT, GRID = "#1b1f24", "#5a6472", "#e6e9ed"
# Inches of a figure that a display makes itself.
SIZE = (6.0, 4.0)
MISSING = 'displays are drawn with matplotlib, which is not installed: pip install "exactk[plots]"'


def require_pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or say how to get it.

    Examples
    --------
    >>> require_pyplot().__name__
    'matplotlib.pyplot'
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError(MISSING) from error
    return plt


def check_result(
    value: Any, what: str, source: str, *parts: str, parameter: str = "result"
) -> None:
    """Raise unless a value has the attributes of the result that a display draws.

    Parameters
    ----------
    value : object
    what : str
        The expected result, with its article.
    source : str
        The function that returns such a result.
    *parts : str
        Attributes that it has, and that other results do not all have.
    parameter : str
        Name of the parameter that has the value.

    Examples
    --------
    >>> check_result(3, "an explanation", "exactk.explain", "selected_features")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: result must be an explanation of exactk.explain, not int
    """
    if not all(hasattr(value, part) for part in parts):
        raise InputError(
            f"{parameter} must be {what} of {source}, not {type(value).__name__}",
            parameter=parameter, value=value,
        )  # fmt: skip


class Display(ABC):
    """A picture of an answer, drawn on axes of the caller's or on axes of its own.

    A subclass keeps what it draws, writes `draw`, and has a constructor ``from_...`` that ends
    with `draw_on`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> class LineDisplay(Display):
    ...     def draw(self, ax):
    ...         ax.plot([1, 2, 3], color=COLOURS[0])
    ...         ax.set(xlabel="k", ylabel="error")
    >>> display = LineDisplay().draw_on(ax=None)
    >>> display.ax_.get_xlabel()
    'k'
    >>> require_pyplot().close(display.figure_)
    """

    size: tuple[float, float] = SIZE
    ax_: Any
    figure_: Any

    @abstractmethod
    def draw(self, ax: Any) -> None:
        """Draw on axes; `plot` makes and dresses them."""

    def plot(self, ax: Any = None) -> Any:
        """Draw, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes or None
            None makes a new figure.

        Returns
        -------
        matplotlib Axes
        """
        plt = require_pyplot()
        if ax is not None and not hasattr(ax, "get_figure"):
            raise InputError(
                f"ax must be matplotlib Axes or None, not {type(ax).__name__}", parameter="ax",
                hint="of the array that plt.subplots returns give one entry",
            )  # fmt: skip
        own = None
        if ax is None:
            own, ax = plt.subplots(figsize=self.size, layout="constrained")
        try:
            self.draw(ax)
            apply_style(ax)
        except BaseException:
            # Nobody else knows of this figure, and pyplot would keep it for good.
            if own is not None:
                plt.close(own)
            raise
        self.ax_, self.figure_ = ax, ax.get_figure()
        return ax

    def draw_on(self, ax: Any) -> Self:
        """Draw, and return the display itself: how constructors end."""
        self.plot(ax)
        return self


def apply_style(ax: Any) -> None:
    """Give axes the house style, without a change of matplotlib's settings."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(SOFT)
    ax.tick_params(colors=SOFT, labelcolor=INK)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    ax.grid(axis="y", color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    legend = ax.get_legend()
    if legend is not None:
        legend.set_frame_on(False)


def shorten(name: str, most: int = 24) -> str:
    """Cut a long name of a feature in its middle, for a label.

    Examples
    --------
    >>> shorten("mean concave points of the nucleus", 15)
    'mean con…ucleus'
    """
    if len(name) <= most:
        return name
    tail = (most - 1) * 3 // 7
    return f"{name[: most - 1 - tail]}…{name[-tail:]}"


def plain(text: str) -> str:
    r"""Keep matplotlib from taking dollar signs in a text of the user's for a formula.

    Examples
    --------
    >>> print(plain("price in $"))
    price in \$
    """
    return text.replace("$", r"\$")


def label(name: str) -> str:
    """Return a name of a feature as matplotlib shows it letter by letter, and not too long."""
    return plain(shorten(name))
