"""What is usually used, beside exactk: accuracy on rows held out at the same number of features.

Every method chooses within the training rows of the same five folds (`exactk.compare`), and the
same logistic regression is trained on what it chose.

    python -m benchmarks.alternatives [--data digits isolet] [--k 5 10 20] [--limit 300] [--add]
    python -m benchmarks.alternatives --draw      # the table and the figure of the record alone
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import grid
from benchmarks.harness import RESULTS, circumstances, markdown, pin_threads, write_record
from exactk.report import svg
from exactk.report.scales import linear, whole_numbers

NAME = "alternatives"
DATA = ("digits", "isolet", "semeion", "srbct", "colon", "carcinom", "warppie10p", "orl")
SHOWN = ("digits", "isolet", "srbct", "warppie10p")
SIZES = (5, 10, 20, 40)
METHODS = ("exchange", "selectkbest", "rfe", "l1")
LABELS = {
    "exchange": "exactk", "selectkbest": "SelectKBest", "rfe": "RFE", "l1": "L1 (lasso)",
}  # fmt: skip
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "img" / "alternatives.svg"

Record = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--k", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each selection")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--add", action="store_true", help="keep the other cells of the record")
    parser.add_argument("--draw", action="store_true", help="draw the record and measure nothing")
    given = parser.parse_args()
    pin_threads(given.threads)
    if not given.draw:
        run(given.data, given.k, given.limit, given.threads, given.add)
    record = kept()
    FIGURE.write_text(figure(record) + "\n", encoding="utf-8")
    print(report(record))


def kept() -> Record:
    """The record of earlier runs."""
    file = RESULTS / f"{NAME}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"cells": []}


def run(names: Sequence[str], sizes: Sequence[int], limit: float, threads: int, add: bool) -> None:
    """Compare on one data set and size after the other; each cell is kept as soon as it is done."""
    import exactk
    from benchmarks.data import available, load

    cells = kept()["cells"] if add else []
    for name in available(names)[0]:
        data = load(name)
        for k in sizes:
            found = exactk.compare(data.X, data.y, k, METHODS, time_limit=limit)
            cells = [cell for cell in cells if (cell["data"], cell["k"]) != (name, k)]
            columns = ("method", "mean", "standard_error", "excess", "seconds", "status")
            cells.append({
                "data": name, "rows": data.X.shape[0], "columns": data.X.shape[1], "k": k,
                "baseline": found.baseline,
                "methods": [{part: row[part] for part in columns} for row in found.table],
            })  # fmt: skip
            order = sorted(cells, key=lambda cell: (DATA.index(cell["data"]), cell["k"]))
            write_record(NAME, {**circumstances(threads), "limit": limit, "cells": order})
            print(found, flush=True)


def scores(cell: Record) -> dict[str, Record]:
    """The rows of a cell that have a score, by method."""
    return {row["method"]: row for row in cell["methods"] if row["mean"] == row["mean"]}


def report(record: Record) -> str:
    """The record as Markdown: accuracy of each method in per cent, the best of a row in bold."""
    rows = []
    for cell in record["cells"]:
        found = scores(cell)
        best = max(round(100 * row["mean"], 1) for row in found.values())
        shown = []
        for method in METHODS:
            if method not in found:
                shown.append("no answer in time")
                continue
            value = round(100 * found[method]["mean"], 1)
            text = f"{value:.1f} ± {100 * found[method]['standard_error']:.1f}"
            shown.append(f"**{text}**" if value == best else text)
        rows.append(
            [cell["data"], f"{cell['rows']:,} × {cell['columns']:,}", str(cell["k"]), *shown]
        )
    head = ["data", "rows × columns", "k", *(LABELS[method] for method in METHODS)]
    return markdown(head, rows)


def verdict(record: Record) -> str:
    """How often and by how much exactk is ahead of each, in a sentence."""
    parts = []
    for other in METHODS[1:]:
        pairs = [
            (found["exchange"]["mean"], found[other]["mean"])
            for found in map(scores, record["cells"])
            if other in found
        ]
        ahead = sum(ours > theirs for ours, theirs in pairs)
        level = sum(ours == theirs for ours, theirs in pairs)
        gap = 100 * sum(ours - theirs for ours, theirs in pairs) / len(pairs)
        parts.append(
            f"{LABELS[other]}: ahead in {ahead}, level in {level} of {len(pairs)} cells, "
            f"{gap:+.1f} points in the mean"
        )
    return "; ".join(parts)


def panel(name: str, cells: Sequence[Record]) -> svg.Plot:
    """One data set: accuracy against k, a line a method."""
    lines = []
    for method in METHODS:
        points = []
        for cell in cells:
            row = scores(cell).get(method)
            mean = None if row is None else 100 * row["mean"]
            spread = None if row is None else 100 * row["standard_error"]
            points.append(svg.Point(cell["k"], mean, spread, f"{LABELS[method]}, k = {cell['k']}"))
        lines.append(points)
    x = whole_numbers([cell["k"] for cell in cells], svg.LEFT, svg.RIGHT)
    y = linear(svg.y_range([point for line in lines for point in line]), svg.BOTTOM, svg.TOP)
    plot = svg.Plot(x, y, f"{name}: accuracy on rows held out, %")
    plot.axes("number of features", "accuracy on rows held out, %")
    # Ours is drawn last, over the others.
    for slot in reversed(range(len(METHODS))):
        plot.series(lines[slot], slot, None, spread="bars", heavy=slot == 0)
    return plot


def figure(record: Record) -> str:
    """Four of the data sets, with one legend."""
    panels = []
    for name in SHOWN:
        cells = [cell for cell in record["cells"] if cell["data"] == name]
        if cells:
            size = f"{cells[0]['rows']:,} rows, {cells[0]['columns']:,} columns"
            panels.append((f"{name}: {size}", panel(name, cells)))
    return grid(
        "Accuracy on rows held out against the number of features", panels,
        [LABELS[method] for method in METHODS],
    )  # fmt: skip


if __name__ == "__main__":
    main()
