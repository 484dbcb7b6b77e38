"""What a record of proofs says: a table for each part, and the targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness import markdown
from benchmarks.limits import word

Record = dict[str, Any]

# Parts whose rows are certificates and nothing else.
PLAIN = ("breast", "digits", "diabetes", "planted", "shared")


def seconds(value: float) -> str:
    """Seconds with about two digits below ten, and none after the point above."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def times(value: float, finished: bool) -> str:
    """A ratio; what was stopped would have needed more."""
    shown = f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
    return shown if finished else f"> {shown}"


def share(gap: float | None) -> str:
    """A gap in per cent."""
    if gap is None:
        return "–"
    return "0" if gap <= 1e-6 else f"{100 * gap:.2g} %"


def took(cell: Record) -> float:
    """Seconds of search and proof."""
    return float(cell["search_seconds"] + cell["proof_seconds"])


def target_of(cell: Record, proven: bool) -> str:
    """The target with its mark, if there is one."""
    if cell["target"] is None:
        return "–"
    return f"{cell['target']:g} {word(proven and took(cell) <= cell['target'])}"


def name_of(cell: Record) -> str:
    """Name of the data, with what else belongs to it."""
    true = f" ({cell['true_found']} true columns found)" if "true_found" in cell else ""
    return f"{cell['data']}{true}"


def together(cells: Sequence[Record]) -> list[str]:
    """Sizes that were proven together, as one line."""
    first, last = cells[0], cells[-1]
    proven = sum(cell["proven"] for cell in cells)
    return [
        name_of(first), f"{first['d']:,}", f"{first['k']}–{last['k']}",
        f"{first['objective']:.4f}–{last['objective']:.4f}", "–",
        share(max(cell["gap"] for cell in cells)), f"{proven} of {len(cells)}",
        f"{sum(cell['nodes'] for cell in cells):,}", seconds(first["search_seconds"]),
        seconds(first["proof_seconds"]), target_of(first, proven == len(cells)),
    ]  # fmt: skip


def alone(cell: Record) -> list[str]:
    """One certificate as a line."""
    return [
        name_of(cell), f"{cell['d']:,}", f"{cell['k']}", f"{cell['objective']:.4f}",
        f"{cell['lower']:.4f}", share(cell["gap"]), "yes" if cell["proven"] else "no",
        f"{cell['nodes']:,}", seconds(cell["search_seconds"]), seconds(cell["proof_seconds"]),
        target_of(cell, cell["proven"]),
    ]  # fmt: skip


def certificates(record: Record) -> str:
    """All plain certificates in one table."""
    header = ["data", "d", "k", "objective", "lower bound", "gap", "proven", "nodes", "search, s",
              "proof, s", "target, s"]  # fmt: skip
    rows: list[list[str]] = []
    for part in PLAIN:
        cells = record.get(part, [])
        if cells and "together" in cells[0]:
            rows.append(together(cells))
        else:
            rows += [alone(cell) for cell in cells]
    return markdown(header, rows) if rows else ""


def middle(cells: Sequence[Record]) -> str:
    """Gap over time of the sizes that take longest."""
    marks = sorted({at["seconds"] for cell in cells for at in cell["trace"][:-1]})
    header = ["digits", "objective", *(f"{mark:g} s" for mark in marks), "at the end", "nodes"]
    rows = []
    for cell in cells:
        *course, last = cell["trace"]
        known = {at["seconds"]: share(at["gap"]) for at in course}
        end = "proven" if cell["proven"] else share(last["gap"])
        rows.append([
            f"k = {cell['k']}", f"{cell['objective']:.4f}",
            *(known.get(mark, "proven" if cell["proven"] else "–") for mark in marks),
            f"{end} ({seconds(last['seconds'])} s)", f"{cell['nodes']:,}",
        ])  # fmt: skip
    return "Gap over time, from the start of the proof:\n\n" + markdown(header, rows)


def leaps(cells: Sequence[Record]) -> str:
    """Nodes and seconds of leaps and bounds beside ours."""
    header = ["data", "d", "k", "objective", "nodes", "leaps and bounds", "times", "proof, s",
              "leaps and bounds, s", "times"]  # fmt: skip
    rows = [
        [
            cell["data"], f"{cell['d']}", f"{cell['k']}", f"{cell['objective']:.4f}",
            f"{cell['nodes']:,}", f"{cell['leaps_nodes']:,}",
            times(cell["node_ratio"], cell["leaps_finished"]), seconds(cell["proof_seconds"]),
            seconds(cell["leaps_seconds"]), times(cell["time_ratio"], cell["leaps_finished"]),
        ]
        for cell in cells
    ]  # fmt: skip
    return (
        "Beside plain leaps and bounds in NumPy, which is told the objective of the best set, both "
        "on one thread:\n\n" + markdown(header, rows)
    )


def enumeration(cells: Sequence[Record]) -> str:
    """Seconds of `exhaustive` beside ours."""
    header = ["data", "k", "objective", "nodes", "subsets", "proof, s", "enumeration, s", "times"]
    rows = [
        [
            cell["data"], f"{cell['k']}", f"{cell['objective']:.4f}", f"{cell['nodes']:,}",
            f"{cell['subsets']:,}", seconds(cell["proof_seconds"]),
            seconds(cell["enumeration_seconds"]),
            times(cell["time_ratio"], cell["enumeration_finished"]),
        ]
        for cell in cells
    ]  # fmt: skip
    return 'Beside `method="exhaustive"`:\n\n' + markdown(header, rows)


def speedup(cells: Sequence[Record]) -> str:
    """One thread beside two."""
    one, two = cells
    end = "" if one["proven"] and two["proven"] else " (not proven)"
    return (
        f"{one['data']}, k = {one['k']}: {seconds(one['proof_seconds'])} s and {one['nodes']:,} "
        f"nodes on one thread, {seconds(two['proof_seconds'])} s and {two['nodes']:,} nodes on "
        f"two, {one['ratio']:.2f} times faster{end}."
    )


def best(cells: Sequence[Record]) -> str:
    """The best sets of one size."""
    header = ["data", "k", "sets", "best", "last", "complete", "nodes", "search, s", "proof, s"]
    rows = [
        [
            cell["data"], f"{cell['k']}", f"{cell['n_found']}", f"{cell['objective']:.4f}",
            f"{cell['last']:.4f}", "yes" if cell["proven"] else "no", f"{cell['nodes']:,}",
            seconds(cell["search_seconds"]), seconds(cell["proof_seconds"]),
        ]
        for cell in cells
    ]  # fmt: skip
    return "The best sets of one size:\n\n" + markdown(header, rows)


def rules(cells: Sequence[Record]) -> str:
    """Proofs under constraints."""
    header = ["data", "constraint", "k", "objective", "gap", "proven", "nodes", "search, s",
              "proof, s", "enumeration, s"]  # fmt: skip
    rows = [
        [
            cell["data"], cell["constraint"], f"{cell['k']}", f"{cell['objective']:.4f}",
            share(cell["gap"]), "yes" if cell["proven"] else "no", f"{cell['nodes']:,}",
            seconds(cell["search_seconds"]), seconds(cell["proof_seconds"]),
            ("" if cell["enumeration_finished"] else "> ") + seconds(cell["enumeration_seconds"]),
        ]
        for cell in cells
    ]  # fmt: skip
    return "Under constraints:\n\n" + markdown(header, rows)


TABLES: dict[str, Callable[[Sequence[Record]], str]] = {
    "middle": middle,
    "leaps": leaps,
    "enumeration": enumeration,
    "speedup": speedup,
    "best": best,
    "rules": rules,
}


def report(record: Record) -> str:
    """The record as Markdown: the parts that it has."""
    parts = [
        f"{record['date']}, {record['processor']}, {record['threads']} threads "
        f"(`python -m benchmarks.proof`).",
        certificates(record),
    ]
    parts += [table(record[part]) for part, table in TABLES.items() if record.get(part)]
    return "\n\n".join(part for part in parts if part)
