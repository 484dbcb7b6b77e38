"""What a record of the logistic loss says: every cell, verdicts, and the part of the page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks import likelihood_peers as entered

Cell = dict[str, Any]
Record = dict[str, Any]
Table = dict[tuple[str, int], dict[str, Cell]]

# Objectives that differ by less than this share are the same up to the accuracy of the fits.
ROUNDING = 1e-6
RIVALS = ("abess", "skscope")
# What one calls who has read no more than the first example.
PLAIN = {"abess": "abess", "skscope": "skscope SCOPE"}


def by_cell(record: Record) -> Table:
    """The cells of a record by data set and k, then by contestant."""
    table: Table = {}
    for cell in record["cells"]:
        table.setdefault((cell["data"], cell["k"]), {})[cell["contestant"]] = cell
    return table


def answers(row: dict[str, Cell], package: str = "") -> list[Cell]:
    """What the contestants of a package found, lowest objective first, then the fastest.

    More than k columns would be no answer. Equal objectives are told apart by time alone.
    """
    found = [
        cell
        for name, cell in row.items()
        if name.startswith(package) and "seconds" in cell and 0 < cell["size"] <= cell["k"]
    ]
    if not found:
        return []
    least = min(cell["objective"] for cell in found)

    def order(cell: Cell) -> tuple[float, float]:
        worse = cell["objective"] > least * (1.0 + ROUNDING)
        return (cell["objective"] if worse else least, cell["seconds"])

    return sorted(found, key=order)


def entry(cell: Cell | None, best: float) -> str:
    """Milliseconds and distance of one contestant in one cell."""
    if cell is None:
        return ""
    if "failed" in cell:
        return "failed"
    if "skipped" in cell:
        return str(cell["skipped"]).split(":")[0]
    time = harness.milliseconds(cell["seconds"])
    if not 0 < cell["size"] <= cell["k"]:
        return f"{time} ({cell['size']} columns)"
    distance = cell["objective"] / best - 1.0
    sign = "=" if distance <= ROUNDING else f"+{distance:.2%}"
    short = f", {cell['size']} only" if cell["size"] < cell["k"] else ""
    return f"{time} ({sign}{short})"


def cell_table(record: Record) -> str:
    """Every cell: milliseconds and distance to the best objective."""
    names = list(record["contestants"])
    rows = []
    for (name, k), row in by_cell(record).items():
        found = answers(row)
        best = found[0]["objective"] if found else np.inf
        entries = [entry(row.get(contestant), best) for contestant in names]
        rows.append([name, str(k), f"{best:.6g}", *entries])
    return harness.markdown(["data", "k", "best", *names], rows)


def objective_lines(record: Record) -> Iterator[str]:
    """In how many cells no setting of any peer is better than exactk, and where one is."""
    for ours in (entered.EXACTK_FAST, entered.EXACTK):
        misses, cells = [], 0
        for (name, k), row in by_cell(record).items():
            rivals = sorted(
                (c for package in RIVALS for c in answers(row, package)[:1]),
                key=lambda cell: cell["objective"],
            )
            if not rivals or ours not in row:
                continue
            cells += 1
            objective = row[ours].get("objective", np.inf)
            if objective > rivals[0]["objective"] * (1.0 + ROUNDING):
                against = f"{rivals[0]['objective']:.6g} of {rivals[0]['contestant']}"
                misses.append(f"  - {name} k={k}: {objective:.6g} against {against}")
        if not cells:
            continue
        yield f"- {ours}: objective not above any peer's in {cells - len(misses)} of {cells} cells."
        yield from misses
    both = (entered.EXACTK_FAST, entered.EXACTK)
    pairs = [
        [row[ours]["objective"] for ours in both]
        for row in by_cell(record).values()
        if all("objective" in row.get(ours, {}) for ours in both)
    ]
    if pairs:
        more = harness.geometric_mean(fast / full for fast, full in pairs) - 1.0
        yield f"- {both[0]}: objective {more:+.1%} from {both[1]} in the geometric mean."


def time_lines(record: Record) -> Iterator[str]:
    """Times of each peer in those of exactk, and how far its objective is above."""
    table = by_cell(record)
    for ours in (entered.EXACTK_FAST, entered.EXACTK):
        for package in RIVALS:
            pairs = [
                (row[ours], answers(row, package))
                for row in table.values()
                if "seconds" in row.get(ours, {}) and answers(row, package)
            ]
            if not pairs:
                continue
            best = [found[0]["seconds"] / own["seconds"] for own, found in pairs]
            fastest = [min(c["seconds"] for c in found) / own["seconds"] for own, found in pairs]
            every = [sum(c["seconds"] for c in found) / own["seconds"] for own, found in pairs]
            above = [found[0]["objective"] / own["objective"] - 1.0 for own, found in pairs]
            plain = [
                (own, cell)
                for own, found in pairs
                for cell in found
                if cell["contestant"] == PLAIN[package]
            ]
            usual = [cell["seconds"] / own["seconds"] for own, cell in plain]
            off = [cell["objective"] / own["objective"] - 1.0 for own, cell in plain]
            yield (
                f"- {package} ÷ {ours}, geometric mean of {len(pairs)} cells: "
                f"{harness.geometric_mean(best):.2f} times the time at its best setting of each "
                f"cell, whose objective is {statistics.median(above):+.2%} from ours in the "
                f"median; {harness.geometric_mean(every):.2f} times all of them together; "
                f"{harness.geometric_mean(usual):.2f} times at its plain setting, "
                f"{statistics.median(off):+.2%} from ours in the median ({len(plain)} cells); "
                f"{harness.geometric_mean(fastest):.2f} times at its fastest."
            )


def left_out_lines(record: Record) -> Iterator[str]:
    """What was not run or cannot be ranked, and why."""
    for cell in record["cells"]:
        where = f"- {cell['data']} k={cell['k']} {cell['contestant']}: "
        if "failed" in cell or "skipped" in cell:
            yield where + str(cell.get("failed") or cell["skipped"])
        elif not 0 < cell["size"] <= cell["k"]:
            yield where + f"{cell['size']} columns, not ranked"


def report(record: Record) -> str:
    """The report in Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    left_out = list(left_out_lines(record))
    parts = [
        f"{record['date']}, {record['processor']}, {record['threads']} threads; {versions}.",
        "Milliseconds, shortest of several runs, from the raw table for exactk and from "
        "standardised columns for the others; in parentheses how far the objective is above the "
        "best of all contestants.",
        cell_table(record),
        "\n".join([*objective_lines(record), *time_lines(record)]),
        *(["Left out:", "\n".join(left_out)] if left_out else []),
    ]
    return "\n\n".join(part for part in parts if part)


def page(record: Record) -> str:
    """What the page about losses shows of a record: the best of each peer in each cell."""
    rows = []
    for (name, k), row in by_cell(record).items():
        best = answers(row)[0]["objective"]
        own = [entry(row.get(ours), best) for ours in (entered.EXACTK_FAST, entered.EXACTK)]
        rivals = [answers(row, package)[:1] for package in RIVALS]
        named = [
            f"{entry(found[0], best)}, {found[0]['contestant'].removeprefix(package).strip(' ,')}"
            if found else "none"
            for package, found in zip(RIVALS, rivals, strict=True)
        ]  # fmt: skip
        rows.append([name, str(k), f"{best:.6g}", *own, *named])
    header = ["data", "k", "best", entered.EXACTK_FAST, entered.EXACTK, *RIVALS]
    versions = ", ".join(f"{name} {record['versions'][name]}" for name in RIVALS)
    return "\n\n".join(
        [
            "### Multinomial logistic beside abess and skscope",
            f"{record['date']}, {versions}, {record['threads']} thread for all, "
            f"`python -m benchmarks.likelihood`: milliseconds, and how far the deviance with its "
            f"ridge term ({record['ridge']:g}·(n − 1)·‖W‖², by scikit-learn's fit on the chosen "
            f"columns) is above the best. Of each peer the setting with the lowest objective in "
            f"the cell, by its name.",
            harness.markdown(header, rows),
            "\n".join([*objective_lines(record), *time_lines(record)]),
        ]
    )
