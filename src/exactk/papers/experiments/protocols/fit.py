"""Protocol ``fit``: how low a method gets the objective, on which way, in what time."""

from __future__ import annotations

from typing import Any

from exactk.papers.datasets import Dataset
from exactk.papers.experiments.cells import Cell
from exactk.papers.experiments.protocols.cell import TrainingData, draw, select

__all__ = ["run"]


def run(
    cell: Cell, dataset: Dataset, sizes: list[int], time_limit: float | None
) -> tuple[list[dict[str, Any]], float]:
    """Fit the whole table, or one training share of it, from the start that the repeat gives.

    Returns
    -------
    results : list of dict
        One a size.
    seconds : float
        Of the solver.

    Notes
    -----
    A share is drawn once for all repeats: these differ in their starts alone.
    """
    part = TrainingData(dataset.X, dataset.y, dataset.task)
    if cell.split.train is not None:
        rows, _ = draw(cell, dataset)
        part = TrainingData(dataset.X[rows], dataset.y[rows], dataset.task)
    chosen, seconds = select(part, cell, sizes, cell.variant.options, time_limit)
    return [one.record(part, cell.measure) for one in chosen], seconds
