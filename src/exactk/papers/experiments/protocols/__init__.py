"""How a cell is measured: one file a protocol, and `run_cell`, which chooses between them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from exactk.papers.experiments.cells import Cell

__all__ = ["run_cell"]


def run_cell(cell: Cell, time_limit: float | None = None) -> dict[str, Any]:
    """Measure one cell.

    Parameters
    ----------
    cell : Cell
    time_limit : float or None
        Seconds for one solve.

    Returns
    -------
    dict
        The part of its record that the cell decides: data, status, seconds and results.
    """
    from exactk.papers.experiments.protocols.cell import dataset_of

    dataset = dataset_of(cell.dataset)
    rows, features = dataset.X.shape
    protocol = import_module(f"exactk.papers.experiments.protocols.{cell.protocol}")
    results, seconds = protocol.run(cell, dataset, list(cell.sizes), time_limit)
    found = [result["k"] for result in results]
    too_large = ", ".join(str(k) for k in cell.sizes if k not in found)
    ended = any(result["status"] == "time_limit" for result in results)
    reason = f"k={too_large}: there are not as many columns" if too_large else ""
    return {
        "rows": rows,
        "features": features,
        "classes": dataset.n_classes,
        "checksum": dataset.checksum,
        "status": "time_limit" if ended else "done",
        "reason": "the time limit ended the search" if ended else reason,
        "seconds": seconds,
        "results": results,
    }
