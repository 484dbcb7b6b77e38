"""Held-out accuracy of exactk and of the usual alternatives at the same number of features.

Every method chooses within the training rows of the same five folds (`exactk.evaluate`), and the
same logistic regression is trained on what it chose.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import exactk
from benchmarks.data import sets
from benchmarks.figures import grid
from benchmarks.harness import Options, Record, Row, markdown
from exactk.report import svg
from exactk.report.scales import linear, whole_numbers

THREADS = 1
CAN_ADD = True
DATA = ("digits", "isolet", "semeion", "srbct", "colon", "carcinom", "warppie10p", "orl")
SHOWN = ("digits", "isolet", "srbct", "warppie10p")
SIZES = (5, 10, 20, 40)
# The methods of a cell: what they are called, and the loss by which exactk's choose.
LABELS = {
    "exchange": "exactk", "logistic": "exactk, logistic loss", "selectkbest": "SelectKBest",
    "rfe": "RFE", "l1": "L1 (lasso)",
}  # fmt: skip
METHODS = tuple(LABELS)
OURS = ("exchange", "logistic")
COLUMNS = ("method", "mean", "standard_error", "excess", "seconds", "status")
# Scores that differ by rounding are level.
SAME = 1e-9
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "img" / "alternatives.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--k", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each selection")


def cells(options: Options) -> Iterator[Row]:
    """Compare on one data set and size after the other."""
    for data in sets(options, options.data):
        for k in options.k:
            if options.has(data=data.name, k=k):
                continue
            method, *others = (m for m in METHODS if m != "logistic")
            squared = exactk.evaluate(
                data.X, data.y, k=k, method=method, compare_with=others, time_limit=options.limit
            )
            # The same folds: they depend on the seed and the classes.
            logistic = exactk.evaluate(
                data.X, data.y, k=k, loss="logistic", time_limit=options.limit
            )
            rows = [_row(row) for row in squared.table]
            # Its objective is a deviance, and cannot be compared.
            own = _row(logistic.table[0])
            del own["excess"]
            rows.insert(1, {**own, "method": "logistic"})
            yield {
                "data": data.name, "rows": data.X.shape[0], "columns": data.X.shape[1], "k": k,
                "baseline": squared.baseline_score, "methods": rows,
            }  # fmt: skip


def _row(row: Record) -> Record:
    """Return the recorded values of a row; records call the score `mean`."""
    return {part: row["test_score" if part == "mean" else part] for part in COLUMNS}


PARTS = {"cells": cells}


def scores(cell: Record) -> dict[str, Record]:
    """The rows of a cell that have a score, by method."""
    return {row["method"]: row for row in cell["methods"] if row["mean"] is not None}


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


def pairs(record: Record, ours: str, other: str) -> list[tuple[float, float]]:
    """Return the mean accuracies of two methods, for each cell that has both."""
    return [
        (found[ours]["mean"], found[other]["mean"])
        for found in map(scores, record["cells"])
        if other in found
    ]


def mean_gap(record: Record, ours: str, other: str) -> float:
    """Return by how many points of accuracy one of ours is better in the mean."""
    found = pairs(record, ours, other)
    return 100 * sum(mine - theirs for mine, theirs in found) / len(found)


def ahead(record: Record, ours: str, other: str) -> str:
    """By how many points one of ours is better in the mean, and in how many comparisons."""
    found = pairs(record, ours, other)
    better = sum(mine > theirs + SAME for mine, theirs in found)
    equal = sum(abs(mine - theirs) <= SAME for mine, theirs in found)
    gap = mean_gap(record, ours, other)
    return f"{gap:+.1f} (better in {better}, equal in {equal} of {len(found)})"


def verdict(record: Record) -> str:
    """A table: ours against each of the others."""
    others = [method for method in METHODS if method not in OURS]
    rows = [[LABELS[ours], *(ahead(record, ours, other) for other in others)] for ours in OURS]
    return markdown(["difference in accuracy, points", *(LABELS[other] for other in others)], rows)


def headline(record: Record) -> str:
    """Return the sentence of the README; a test compares it with the record."""
    sets = len({cell["data"] for cell in record["cells"]})
    gaps = {other: mean_gap(record, "exchange", other) for other in ("selectkbest", "l1", "rfe")}
    return (
        f"On {sets} data sets with k = {', '.join(map(str, SIZES[:-1]))} and {SIZES[-1]}, the mean "
        f"held-out accuracy of a logistic regression is {gaps['selectkbest']:.1f} points higher "
        f"with exactk's features than with those of SelectKBest, {gaps['l1']:.1f} higher than with "
        f"those of L1 and {gaps['rfe']:.1f} higher than with those of RFE."
    )


def page_section(record: Record) -> str:
    """The part of docs/measured.md; a test compares it with the record."""
    sets = len({cell["data"] for cell in record["cells"]})
    sizes = ", ".join(map(str, SIZES))
    return "\n\n".join(
        [
            f"Held-out accuracy of a logistic regression on the k selected features. Every method "
            f"selects within the training rows of the same five folds. {sets} data sets, "
            f"k = {sizes}; {record['date']}, `python -m benchmarks alternatives`. Time limit of a "
            f"selection: {record['limit']:g} s.",
            verdict(record),
            "Accuracy in per cent, mean ± standard error over the folds:",
            report(record),
        ]
    )


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
    plot = svg.Plot(x, y, f"{name}: held-out accuracy, %")
    plot.axes("number of features", "held-out accuracy, %")
    # Ours is drawn last, over the others.
    for slot in reversed(range(len(METHODS))):
        plot.series(lines[slot], slot, spread="bars", heavy=METHODS[slot] in OURS)
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
        "Held-out accuracy by number of features", panels,
        [LABELS[method] for method in METHODS],
    )  # fmt: skip
