"""Progress of experiments and downloads: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from exactk.cli.framework.output import note

if TYPE_CHECKING:
    from exactk.papers.datasets.fetching import Transfer
    from exactk.papers.experiments.runner import RunProgress

__all__ = ["duration", "show_cells", "show_transfers"]

LINE_EVERY = 15.0
# Draws a description, what is done, the total, and words behind the bar.
Draw = Callable[[str, int, int | None, str], None]


def duration(seconds: float) -> str:
    """Return a time for a person to read.

    Examples
    --------
    >>> duration(42.4), duration(125), duration(7380), duration(200000)
    ('42 s', '2 min 05 s', '2 h 03 min', '2 d 8 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {round(whole % 86400 / 3600)} h"


@contextmanager
def show_cells(name: str, verbose: int) -> Iterator[Callable[[RunProgress], None] | None]:
    """Show how far a run is until the block ends: a bar, or a line every 15 seconds."""
    with _bar(verbose) as draw:
        last = time.monotonic()

        def show(state: RunProgress) -> None:
            nonlocal last
            left = "" if state.remaining is None else f", {duration(state.remaining)} left"
            if draw is not None:
                words = f"{state.done}/{state.total}{left} {' '.join(state.running[:1])}"
                draw(name, state.done, state.total, words)
            elif time.monotonic() - last >= LINE_EVERY:
                last = time.monotonic()
                note(f"{name}: {state.done} of {state.total} cells{left}")

        yield show if verbose else None


@contextmanager
def show_transfers(verbose: int) -> Iterator[Callable[[Transfer], None] | None]:
    """Show the bytes of downloads on a terminal until the block ends."""
    with _bar(verbose) as draw:

        def show(transfer: Transfer) -> None:
            if draw is not None:
                of = f" ({transfer.file} of {transfer.files})" if transfer.files > 1 else ""
                size = "" if transfer.total is None else f" of {transfer.total / 1e6:.1f}"
                words = f"{transfer.done / 1e6:.1f}{size} MB"
                draw(f"{transfer.name}{of}", transfer.done, transfer.total, words)

        yield None if draw is None else show


@contextmanager
def _bar(verbose: int) -> Iterator[Draw | None]:
    if not verbose or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("", total=None, words="")
        yield lambda name, done, total, words: display.update(
            task, description=name, completed=done, total=total, words=words
        )
