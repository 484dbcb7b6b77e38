"""Protocol ``classify``: how well the chosen columns tell the classes of rows not seen before.

Everything is fitted on the training part alone: standardisation, ridge, the parameters with a
grid (by cross-validation within that part), the columns and the classifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactk.errors import InputError
from exactk.papers.datasets import Dataset
from exactk.papers.experiments.cells import Cell
from exactk.papers.experiments.classifiers import accuracy
from exactk.papers.experiments.protocols.cell import (
    Selection,
    TrainingData,
    draw,
    ready_options,
    select,
    soft_limit,
)
from exactk.papers.experiments.recipe import ALL_FEATURES, method_class
from exactk.papers.experiments.tuning import tune

__all__ = ["run"]


def run(
    cell: Cell, dataset: Dataset, sizes: list[int], time_limit: float | None
) -> tuple[list[dict[str, Any]], float]:
    """Choose columns on the training part, classify the test part by them."""
    if dataset.task != "classification":
        raise InputError(
            f"data set {dataset.name!r} has numbers as target, and protocol 'classify' needs "
            "classes", parameter="dataset", hint="use a recipe with protocol 'regress'",
        )  # fmt: skip
    measure = cell.measure
    train, test = draw(cell, dataset)
    part = TrainingData(dataset.X[train], dataset.y[train], dataset.task)

    def accuracies(columns: Sequence[int]) -> dict[str, float]:
        X_test = dataset.X[test][:, columns]
        return {
            name: accuracy(
                name,
                part.X[:, columns],
                part.y,
                X_test,
                dataset.y[test],
                random_state=cell.rows_seed,
            )
            for name in measure.classifiers
        }

    if cell.variant.method == ALL_FEATURES:
        same = accuracies(list(range(dataset.X.shape[1])))
        return [{"k": k, "status": "all features", "measures": same} for k in sizes], 0.0
    chosen, seconds = _select_tuned(part, cell, sizes, time_limit)
    results = []
    for one in chosen:
        found = one.record(part, measure)
        found["measures"] |= accuracies(found["support"])
        if cell.variant.grid:
            found["chosen"] = {name: one.options[name] for name in cell.variant.grid}
        results.append(found)
    return results, seconds


def _select_tuned(
    part: TrainingData, cell: Cell, sizes: Sequence[int], time_limit: float | None
) -> tuple[list[Selection], float]:
    """Choose the columns, with the best setting of the grid at each size."""
    settings = cell.variant.settings()
    if len(settings) == 1:
        return select(part, cell, sizes, settings[0], time_limit)
    usable = int((np.ptp(part.X, axis=0) > 0).sum())
    sizes = [k for k in sizes if k <= usable]
    if not sizes:
        return [], 0.0
    best = tune(
        part.X,
        part.y,
        tuple(sizes),
        [ready_options(cell, setting) for setting in settings],
        method=method_class(cell.variant.method)(),
        ridge=cell.variant.ridge,
        classifier=cell.measure.tune_classifier,
        folds=cell.measure.tune_folds,
        random_state=cell.rows_seed,
        time_limit=soft_limit(cell, time_limit),
    )
    by_setting: dict[int, list[int]] = {}
    for k, tuned in zip(sizes, best, strict=True):
        chosen = {name: tuned.options[name] for name in settings[0]}
        by_setting.setdefault(settings.index(chosen), []).append(k)
    found: dict[int, Selection] = {}
    seconds = 0.0
    for number, some in by_setting.items():
        selections, took = select(part, cell, some, settings[number], time_limit)
        seconds += took
        found.update({one.k: one for one in selections})
    return [found[k] for k in sizes if k in found], seconds
