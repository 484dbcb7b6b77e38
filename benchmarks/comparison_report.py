"""What a record of the comparison methods says: a table for each part, and the targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import geometric_mean, markdown, milliseconds

Record = dict[str, Any]

FASTER = 20.0
# What a status other than converged looks like in a table.
MARKS = {"max_iter": " †", "time_limit": " ‡", "failed": " §"}


def report(record: Record) -> str:
    """Markdown for the parts that a record has."""
    parts = {"speed": speed, "memory": memory, "quality": quality}
    return "\n\n".join(write(record[name]) for name, write in parts.items() if record.get(name))


def speed(rows: list[Record]) -> str:
    """Milliseconds of both, and how many times faster."""
    lines = []
    for row in rows:
        times = row["peer_seconds"] / row["seconds"]
        agreement = row["agreement"]
        lines.append(
            [
                row["data"],
                row["method"],
                row["peer"],
                milliseconds(row["seconds"]),
                ("> " if row["stopped"] else "") + milliseconds(row["peer_seconds"]),
                ("> " if row["stopped"] else "") + f"{times:,.0f}",
                "–" if agreement is None else f"{agreement:.4f}",
            ]
        )
    table = markdown(
        ["data", "method", "peer", "ms", "peer ms", "times faster", "agreement"], lines
    )
    least = min(row["peer_seconds"] / row["seconds"] for row in rows)
    verdict = "Reached" if least >= FASTER else "Missed"
    return (
        f"{table}\n\n{verdict}: at least {FASTER:g} times faster than each peer; the least is "
        f"{least:.1f} times."
    )


def memory(rows: list[Record]) -> str:
    """Milliseconds, and multiples of what two passes by NumPy take."""
    lines = []
    for row in rows:
        floor = row["passes_seconds"]
        lines.append(
            [f"{row['rows']:,} × {row['columns']:,}", milliseconds(floor)]
            + [
                f"{milliseconds(row[f'{name}_seconds'])} ({row[f'{name}_seconds'] / floor:.1f})"
                for name in ("fisher", "ttest", "f_classif")
            ]
        )
    return markdown(
        ["table", "sum and sum of squares, ms", "fisher (times)", "ttest (times)",
         "scikit-learn f_classif (times)"], lines,
    )  # fmt: skip


def standings(rows: list[Record]) -> list[Record]:
    """Methods by mean rank of their accuracy over data sets, sizes and classifiers."""
    cells = sorted({(row["data"], row["k"]) for row in rows})
    methods = list(dict.fromkeys(row["method"] for row in rows))
    at = {(row["method"], row["data"], row["k"]): row for row in rows}
    best = {
        cell: min(row["objective"] for row in rows if (row["data"], row["k"]) == cell)
        for cell in cells
    }
    ranks: dict[str, list[float]] = {method: [] for method in methods}
    for cell in cells:
        for judge in ("nearest", "svm"):
            values = np.array([at[method, *cell][judge] for method in methods])
            for method, value in zip(methods, values, strict=True):
                ranks[method].append(1 + (values > value).sum() + ((values == value).sum() - 1) / 2)
    found = []
    for method in sorted(methods, key=lambda name: float(np.mean(ranks[name]))):
        mine = [at[method, *cell] for cell in cells]
        nearest, svm = (np.mean([row[judge] for row in mine]) for judge in ("nearest", "svm"))
        above = [row["objective"] / best[row["data"], row["k"]] - 1.0 for row in mine]
        found.append(
            {
                "method": method,
                "marks": "".join(sorted({MARKS.get(row["status"], "") for row in mine})),
                "rank": float(np.mean(ranks[method])),
                "accuracy": 100 * np.mean([(row["nearest"] + row["svm"]) / 2 for row in mine]),
                "nearest": 100 * nearest,
                "svm": 100 * svm,
                "above": float(np.median(above)),
                "seconds": geometric_mean(row["seconds"] for row in mine),
            }
        )
    return found


def quality(rows: list[Record]) -> str:
    """The standings as a table."""
    cells = sorted({(row["data"], row["k"]) for row in rows})
    lines = [
        [
            f"{row['method']}{row['marks']}",
            f"{row['rank']:.1f}",
            f"{row['accuracy']:.1f}",
            f"{row['nearest']:.1f}",
            f"{row['svm']:.1f}",
            f"+{100 * row['above']:,.0f} %",
            milliseconds(row["seconds"]),
        ]
        for row in standings(rows)
    ]
    header = [
        "method",
        "mean rank",
        "accuracy",
        "1-NN",
        "SVM",
        "objective (median)",
        "ms (geo. mean)",
    ]
    named = ", ".join(f"{name} k={k}" for name, k in cells)
    return f"{markdown(header, lines)}\n\nCells: {named}. † iterations ran out, ‡ time, § diverged."
