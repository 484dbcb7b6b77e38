"""Protocol ``regress``: how well a linear fit on the chosen columns predicts unseen outputs."""

from __future__ import annotations

from typing import Any

from exactk.errors import InputError
from exactk.papers.datasets import Dataset
from exactk.papers.experiments.cells import Cell
from exactk.papers.experiments.measures import linear_rmse
from exactk.papers.experiments.protocols.cell import TrainingData, draw, select

__all__ = ["run"]


def run(
    cell: Cell, dataset: Dataset, sizes: list[int], time_limit: float | None
) -> tuple[list[dict[str, Any]], float]:
    """Choose columns on the training part, predict the outputs of the test part by them."""
    if dataset.task != "regression":
        raise InputError(
            f"data set {dataset.name!r} has classes as target, and protocol 'regress' needs "
            "numbers", parameter="dataset", hint="use a recipe with protocol 'classify'",
        )  # fmt: skip
    train, test = draw(cell, dataset)
    X, y = dataset.X, dataset.y
    part = TrainingData(X[train], y[train], dataset.task)
    chosen, seconds = select(part, cell, sizes, cell.variant.options, time_limit)
    results = []
    for one in chosen:
        found = one.record(part, cell.measure)
        columns = found["support"]
        found["measures"]["rmse"] = linear_rmse(
            part.X[:, columns], part.y, X[test][:, columns], y[test]
        )
        if dataset.informative is not None:
            hits = set(columns) & {int(p) for p in dataset.informative}
            found["measures"]["recovered"] = len(hits) / len(dataset.informative)
        results.append(found)
    return results, seconds
