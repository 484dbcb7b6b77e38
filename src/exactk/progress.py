"""A progress line for a person who waits: a bar on a terminal, a log line elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from exactk.monitor import Progress

__all__ = ["bar"]

logger = logging.getLogger(__name__)

# Often enough to show life, rare enough not to fill a log.
LOG_EVERY = 5.0


@contextmanager
def bar(description: str) -> Iterator[Callable[[Progress], None]]:
    """Show how far a method is until the block ends.

    Parameters
    ----------
    description : str
        Words in front of the bar.

    Yields
    ------
    callable
        Takes a `Progress`; give it to `Monitor` as `on_progress`.

    Examples
    --------
    >>> with bar("exchange, k=5") as show:
    ...     show(Progress(done=1, total=10, objective=2.5))
    """
    if sys.stderr.isatty() and find_spec("rich") is not None:
        with _rich_bar(description) as show:
            yield show
    else:
        yield _log_line(description)


@contextmanager
def _rich_bar(description: str) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[objective]}", markup=False),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(description, total=None, objective="")

        def show(progress: Progress) -> None:
            display.update(
                task,
                completed=progress.done,
                total=progress.total,
                objective=f"objective {progress.objective:.6g}",
            )

        yield show


def _log_line(description: str) -> Callable[[Progress], None]:
    last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LOG_EVERY:
            last = now
            of = "" if progress.total is None else f" of {progress.total}"
            logger.info(
                "%s: step %d%s, objective %.6g", description, progress.done, of, progress.objective
            )

    return show
