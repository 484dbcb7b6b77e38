"""The one clock and progress line of a solve: methods ask it, they never time or print."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Monitor", "Progress"]


@dataclass(frozen=True)
class Progress:
    """How far a method is: steps done, steps planned (None: until time is up), best objective.

    `note` is what else there is to say, such as a bound.
    """

    done: int
    total: int | None
    objective: float
    note: str = ""


class Monitor:
    """Deadline and progress of one solve.

    Parameters
    ----------
    time_limit : float or None
        Seconds from now after which `expired` is true; None for no limit.
    on_progress : callable or None
        Called with a `Progress` whenever the method reports one.
    callback : callable or None
        Called with each iteration (`exactk.methods.iteration.Step`) of a method that iterates.

    Examples
    --------
    >>> seen = []
    >>> monitor = Monitor(on_progress=seen.append)
    >>> monitor.report(3, 10, 1.5)
    >>> seen
    [Progress(done=3, total=10, objective=1.5, note='')]
    >>> monitor.expired
    False
    """

    def __init__(
        self,
        time_limit: float | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        callback: Callable[[Any], None] | None = None,
    ) -> None:
        self._start = time.perf_counter()
        self.time_limit = time_limit
        self._on_progress = on_progress
        self._callback = callback

    @property
    def seconds(self) -> float:
        """Seconds since the monitor was made."""
        return time.perf_counter() - self._start

    @property
    def expired(self) -> bool:
        """Whether the time limit has passed."""
        return self.time_limit is not None and self.seconds >= self.time_limit

    def report(self, done: int, total: int | None, objective: float, note: str = "") -> None:
        """Pass on how far the method is."""
        if self._on_progress is not None:
            self._on_progress(Progress(done, total, objective, note))

    def show_step(self, step: Any) -> None:
        """Pass on an iteration to whoever wants to look at it."""
        if self._callback is not None:
            self._callback(step)
