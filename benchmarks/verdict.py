"""What a record of the comparison says: the tables, and whether the targets are reached."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import geometric_mean, markdown, milliseconds
from benchmarks.peers import EXACTK, EXACTK_FAST

Cell = dict[str, Any]
Record = dict[str, Any]

OURS = (EXACTK_FAST, EXACTK)
RIVALS_OF_FAST = ("abess", "fastcan greedy")
RIVALS_OF_DEFAULT = ("abess path", "fastcan beam 10")
FASTER_BY = 5.0
# Objectives that differ by less than this share of ‖HY‖² are the same up to rounding.
ROUNDING = 1e-9
WITHIN_AT_20 = 0.01


@dataclass(frozen=True)
class Check:
    """One target: what was asked, in how many cells, what was reached, which cells miss it."""

    target: str
    cells: int
    reached: str
    misses: tuple[str, ...]

    def line(self) -> str:
        """The check as an item of a Markdown list."""
        word = "missed" if self.misses else "reached" if self.cells else "not measured"
        misses = "".join(f"\n  - {miss}" for miss in self.misses)
        return f"- **{word}**: {self.target}. {self.reached}{misses}"


def best_known() -> dict[str, dict[str, float]]:
    """Lowest objectives known, by data set and k."""
    path = Path(__file__).resolve().parent / "best_known.json"
    values: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return values


def by_cell(record: Record) -> dict[tuple[str, int], dict[str, Cell]]:
    """The cells of a record by data set and k, then by contestant."""
    table: dict[tuple[str, int], dict[str, Cell]] = {}
    for cell in record["cells"]:
        table.setdefault((cell["data"], cell["k"]), {})[cell["contestant"]] = cell
    return table


def full_answers(row: dict[str, Cell], k: int) -> Iterator[tuple[str, float]]:
    """Contestants that ran, with their objectives; more than k columns would be no answer."""
    for name, cell in row.items():
        if "objective" in cell and cell["size"] <= k:
            yield name, cell["objective"]


def check_objectives(record: Record) -> Check:
    misses, cells = [], 0
    for (data, k), row in by_cell(record).items():
        rivals = {name: f for name, f in full_answers(row, k) if name not in OURS}
        if not rivals or EXACTK not in row:
            continue
        cells += 1
        if "failed" in row[EXACTK]:
            misses.append(f"{data} k={k}: {row[EXACTK]['failed']}")
            continue
        best = min(rivals, key=rivals.__getitem__)
        ours = row[EXACTK]["objective"]
        if ours > rivals[best] + ROUNDING * record["sets"][data]["total"]:
            misses.append(f"{data} k={k}: {ours:.6g} against {rivals[best]:.6g} of {best}")
    reached = f"Reached in {cells - len(misses)} of {cells} cells."
    return Check(
        "the objective is never above that of the best peer", cells, reached, tuple(misses)
    )


def above(objective: float, known: float) -> bool:
    """True when `objective` is worse than a value known to four decimals."""
    return objective > known * (1.0 + 1e-6) + 5e-5


def check_best_known(record: Record) -> Check:
    misses, better, cells = [], [], 0
    for data, values in best_known().items():
        for k, known in values.items():
            cell = by_cell(record).get((data, int(k)), {}).get(EXACTK, {})
            if "objective" not in cell:
                continue
            cells += 1
            ours, total = cell["objective"], record["sets"][data]["total"]
            if above(known, ours):
                better.append(f"{data} k={k} {ours:.4f}")
            allowed = known + WITHIN_AT_20 * total if int(k) > 10 else known
            if above(ours, allowed):
                misses.append(
                    f"{data} k={k}: {ours:.4f}, best known {known:.4f}, "
                    f"{(ours - known) / total:.2%} of ‖HY‖² above"
                )
    reached = f"Reached in {cells - len(misses)} of {cells} cells." + (
        f" Better than known: {', '.join(better)}." if better else ""
    )
    target = (
        "default effort finds the best known value for k ≤ 10, and for k = 20 a value above it by "
        "at most 1 % of ‖HY‖²"
    )
    return Check(target, cells, reached, tuple(misses))


def check_long(record: Record) -> Check:
    misses = []
    for cell in record["long"]:
        known = best_known()[cell["data"]][str(cell["k"])]
        if "objective" not in cell or above(cell["objective"], known):
            got = cell.get("objective", cell.get("failed"))
            misses.append(f"{cell['data']} k={cell['k']}: {got}, best known {known}")
    cells = len(record["long"])
    reached = f"Reached in {cells - len(misses)} of {cells} data sets."
    reached += f" (A run of its own, threads: {record['headers']['long']['threads']}.)"
    return Check(
        "the best known value is found for k = 20 with time_limit=60", cells, reached, tuple(misses)
    )


def ratios(record: Record, ours: str, rival: str) -> dict[str, list[float]]:
    """How many times longer the rival took, for each k that both ran, by data set."""
    found: dict[str, list[float]] = {}
    for (data, _), row in by_cell(record).items():
        a, b = row.get(ours, {}), row.get(rival, {})
        if "seconds" in a and "seconds" in b:
            found.setdefault(data, []).append(b["seconds"] / a["seconds"])
    return found


def check_fast(record: Record, rival: str) -> Check:
    means = {data: geometric_mean(r) for data, r in ratios(record, EXACTK_FAST, rival).items()}
    misses = tuple(f"{data}: {mean:.2f} times" for data, mean in means.items() if mean < FASTER_BY)
    reached = f"Times faster: {', '.join(f'{data} {mean:.1f}' for data, mean in means.items())}."
    target = f"effort=0 is at least {FASTER_BY:g} times faster than {rival} (geometric mean over k)"
    return Check(target, len(means), reached, misses)


def check_default(record: Record, rival: str) -> Check:
    misses, cells = [], 0
    for (data, k), row in by_cell(record).items():
        ours, other = row.get(EXACTK, {}), row.get(rival, {})
        if "seconds" not in ours or not ("seconds" in other or "skipped" in other):
            continue
        cells += 1
        if "seconds" in other and ours["seconds"] >= other["seconds"]:
            times = f"{milliseconds(ours['seconds'])} ms against {milliseconds(other['seconds'])}"
            misses.append(f"{data} k={k}: {times} ms")
    reached = f"Reached in {cells - len(misses)} of {cells} cells."
    target = f"default effort is faster than {rival} in every cell"
    return Check(target, cells, reached, tuple(misses))


def checks(record: Record) -> list[Check]:
    """All targets that the record can speak about."""
    found = []
    if record.get("cells"):
        found += [
            check_objectives(record),
            check_best_known(record),
            *(check_fast(record, rival) for rival in RIVALS_OF_FAST),
            *(check_default(record, rival) for rival in RIVALS_OF_DEFAULT),
        ]
    if record.get("long"):
        found.append(check_long(record))
    return found


def entry(cell: Cell | None, best: float, total: float) -> str:
    """Milliseconds and distance of one contestant in one cell."""
    if cell is None:
        return ""
    if "failed" in cell:
        return "failed"
    if "skipped" in cell:
        return "too slow"
    distance = (cell["objective"] - best) / max(best, 1e-6 * total)
    short = f", {cell['size']} only" if cell["size"] < cell["k"] else ""
    sign = "=" if distance <= 1e-6 else f"+{distance:.2%}" if distance < 10 else "> 10 times"
    return f"{milliseconds(cell['seconds'])} ({sign}{short})"


def cell_table(
    record: Record, sizes: Collection[int] | None = None, only: Collection[str] | None = None
) -> str:
    """Cells (all, or those of some sizes and contestants): milliseconds and distance."""
    names = [name for name in record["contestants"] if not only or name in only]
    known = best_known()
    rows = []
    for (data, k), row in by_cell(record).items():
        if sizes and k not in sizes:
            continue
        total = record["sets"][data]["total"]
        candidates = [f for _, f in full_answers(row, k)]
        candidates.extend([known[data][str(k)]] if str(k) in known.get(data, {}) else [])
        best = min(candidates, default=total)
        entries = [entry(row.get(name), best, total) for name in names]
        rows.append([data, str(k), f"{best:.6g}", *entries])
    return markdown(["data", "k", "best", *names], rows)


def summary_table(record: Record) -> str:
    """One line a data set: times and their ratios, geometric means over k."""
    rivals = [name for name in record["contestants"] if name not in OURS]
    rows = []
    for data, about in record["sets"].items():
        shape = f"{about['rows']:,} × {about['features']:,}, {about['outputs']}"
        own = [
            geometric_mean(
                row[name]["seconds"]
                for (where, _), row in by_cell(record).items()
                if where == data and "seconds" in row.get(name, {})
            )
            for name in OURS
        ]
        fast = [ratios(record, EXACTK_FAST, rival).get(data, []) for rival in rivals]
        rows.append(
            [data, shape, *(milliseconds(t) for t in own)]
            + [f"{geometric_mean(r):.1f}" if r else "" for r in fast]
        )
    header = ["data", "shape, outputs", *(f"{name}, ms" for name in OURS)]
    return markdown([*header, *(f"{rival} ÷ effort=0" for rival in rivals)], rows)


def report(record: Record) -> str:
    """The report in Markdown: the parts that the record has."""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    parts = [f"{record['date']}, {record['processor']}, {record['threads']} threads; {versions}."]
    if record.get("cells"):
        parts += [
            "Milliseconds, shortest of several runs, from the raw table for exactk and from "
            "standardised columns for the others; in parentheses the distance of the objective to "
            "the best of all contestants and of the best known value.",
            cell_table(record),
            "Geometric means over k:",
            summary_table(record),
        ]
    parts += ["## Targets", "\n".join(check.line() for check in checks(record))]
    return "\n\n".join(parts)


SHOWN = (
    EXACTK_FAST, EXACTK, "abess", "abess path", "fastcan greedy", "fastcan beam 10", "f score",
)  # fmt: skip


def page_section(record: Record) -> str:
    """The part of docs/measured.md on this comparison; a test compares it with the record."""
    versions = record["versions"]
    peers = ", ".join(f"{name} {versions[name]}" for name in ("abess", "fastcan"))
    lines = []
    for check in checks(record):
        missed = len(check.misses)
        word = f"Missed ({missed} {'miss' if missed == 1 else 'misses'})" if missed else "Met"
        lines.append(f"* {word}: {check.target}. {check.reached}")
    return "\n\n".join(
        [
            f"Time in milliseconds and, in parentheses, how far the objective is above the best "
            f"value found by any method; k = 10, {record['threads']} threads, {peers}, one run "
            f"(`make bench`). exactk starts from the raw table, the others from standardised "
            f"columns. “f score” is what `SelectKBest` computes.",
            cell_table(record, {10}, SHOWN),
            "Our targets, over k = 1, 5, 10, 20, 50:",
            "\n".join(lines),
        ]
    )
