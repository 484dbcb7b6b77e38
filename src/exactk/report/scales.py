"""From values to places in a picture, and the ticks between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10

from exactk.report.numbers import MINUS, SUPERSCRIPTS

__all__ = ["Scale", "linear", "logarithmic", "whole_numbers", "with_ends"]

# Slack for floating point when ticks are counted.
SLACK = 1e-9
# Between two ticks there must be room for their numbers.
TICK_ROOM = 22.0


@dataclass(frozen=True)
class Scale:
    """An axis: which values it spans, where they lie, and where its ticks are.

    Attributes
    ----------
    low, high : float
        Values at its two ends.
    start, end : float
        Places of the two ends.
    ticks : tuple of (float, str)
    log : bool
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value; what lies outside is put on the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def linear(
    values: Iterable[float],
    start: float,
    end: float,
    *,
    count: int = 5,
    whole: bool = False,
    zero: bool = False,
    tight: bool = False,
) -> Scale:
    """Return a linear scale for these values with about so many ticks.

    Parameters
    ----------
    values : iterable of float
    start, end : float
        Where the ends lie.
    count : int
        About how many ticks.
    whole : bool
        Ticks at whole numbers only.
    zero : bool
        Whether zero must be on it.
    tight : bool
        End at the values and not at a tick.

    Examples
    --------
    >>> [text for _, text in linear([0.12, 0.87], 0, 100).ticks]
    ['0.0', '0.2', '0.4', '0.6', '0.8', '1.0']
    >>> linear([0.0, 1.0], 0, 100)(0.25)
    25.0
    """
    given = [*values, *([0.0] if zero else [])] or [0.0, 1.0]
    low, high = min(given), max(given)
    if high - low <= SLACK * max(abs(low), abs(high), SLACK):
        room = 1.0 if whole else abs(low) * 0.1 or 1.0
        low, high = (0.0 if zero and low >= 0 else low - room), high + room
    step = _step((high - low) / count)
    if whole:
        step = max(1.0, float(round(step)))
    first, last = floor(low / step + SLACK), ceil(high / step - SLACK)
    if tight:
        first, last = ceil(low / step - SLACK), floor(high / step + SLACK)
    else:
        low, high = first * step, last * step
    decimals = max(0, -floor(log10(step)) + (1 if _needs_half(step) else 0))
    ticks = tuple((i * step, _text(i * step, decimals)) for i in range(first, last + 1))
    return Scale(low, high, start, end, ticks)


def logarithmic(values: Iterable[float], start: float, end: float) -> Scale:
    """Return a logarithmic scale for these values; what is not positive lies on its lower edge.

    Examples
    --------
    >>> [text for _, text in logarithmic([0.02, 30.0], 0, 100).ticks]
    ['0.01', '0.1', '1', '10', '100']
    >>> [text for _, text in logarithmic([2.0, 9.0], 0, 100).ticks]
    ['2', '5', '10']
    """
    given = [value for value in values if value > 0] or [1.0, 10.0]
    least, most = min(given), max(given)
    first, last = floor(log10(least) + SLACK), ceil(log10(most) - SLACK)
    # Over a few decades the axis ends at 1, 2 or 5 times a power of ten: whole ones waste room.
    fine = last - first <= 3
    steps = (1, 2, 5) if fine else (1,)
    every = max(1, ceil((last - first) / 6))
    marks = [
        float(f"{step}e{power}")
        for power in range(first - every, last + every + 1)
        for step in steps
        if (power - first) % every == 0
    ]
    low = max(mark for mark in marks if mark <= least * (1 + SLACK))
    high = min(mark for mark in marks if mark >= most * (1 - SLACK) and mark > low)
    shown = [mark for mark in marks if low <= mark <= high]
    if len(shown) > 7:
        shown = [mark for mark in shown if f"{mark:e}".startswith("1")]
    return Scale(low, high, start, end, tuple((mark, _log_text(mark)) for mark in shown), log=True)


def whole_numbers(values: Iterable[float], start: float, end: float) -> Scale:
    """Return a scale for sizes or counts, which ends at them; a few of them are all ticks.

    Examples
    --------
    >>> [text for _, text in whole_numbers([5, 10, 20, 50], 0, 300).ticks]
    ['5', '10', '20', '50']
    """
    given = sorted(set(values))
    scale = linear(given, start, end, whole=True, tight=True, count=6)
    near = any(scale(b) - scale(a) < TICK_ROOM for a, b in pairwise(given))
    if len(given) < 2 or near:
        return scale
    return replace(scale, ticks=tuple((value, f"{value:g}") for value in given))


def with_ends(scale: Scale) -> Scale:
    """Return the scale with a tick at both ends; ticks too near to them give way.

    Examples
    --------
    >>> [text for _, text in with_ends(linear([0.001, 3.0], 0, 300, tight=True)).ticks]
    ['0.001', '1', '2', '3']
    """
    ends = [scale.low, scale.high]
    inner = [
        (value, f"{float(text):g}" if _is_plain(text) else text)
        for value, text in scale.ticks
        if all(abs(scale(value) - scale(end)) > TICK_ROOM for end in ends)
    ]
    low, high = ((end, f"{end:.4g}".replace("-", MINUS)) for end in ends)
    return replace(scale, ticks=(low, *inner, high))


def _is_plain(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _step(least: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is not below."""
    power = 10.0 ** floor(log10(least))
    return next(
        nice * power for nice in (1.0, 2.0, 2.5, 5.0, 10.0) if nice * power >= least * 0.999
    )


def _needs_half(step: float) -> bool:
    leading = step / 10.0 ** floor(log10(step))
    return abs(leading - 2.5) < SLACK


def _text(value: float, decimals: int) -> str:
    if decimals > 4 or abs(value) >= 1e6:
        mantissa, exponent = f"{value:.2e}".split("e")
        if float(mantissa) == 0:
            return "0"
        power = str(int(exponent)).translate(SUPERSCRIPTS)
        return f"{float(mantissa):g}·10{power}".replace("-", MINUS)
    return f"{value + 0.0:.{decimals}f}".replace("-", MINUS)


def _log_text(value: float) -> str:
    if 1e-3 <= value < 1e5:
        return f"{value:.10f}".rstrip("0").rstrip(".")
    mantissa, exponent = f"{value:.0e}".split("e")
    power = str(int(exponent)).translate(SUPERSCRIPTS)
    return f"10{power}" if mantissa == "1" else f"{mantissa}·10{power}"
