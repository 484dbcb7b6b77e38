"""What a record of losses says: verdicts, tables, and the figure about wrong labels."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import grid
from benchmarks.harness import geometric_mean, markdown
from exactk.report import svg
from exactk.report.scales import Scale, linear

Record = dict[str, Any]

# Losses nearer to each other than this are the same: what the refit is right to.
SAME = 1e-5
PEERS = ("rpfs", "nmapg")
MEASURES = {
    "loss": "‖Y − XW − 1bᵀ‖₂,₁",
    "own": "nmAPG's ‖XW − Y‖₂,₁ + 0.1‖W‖₂,₁",
    "own_free": "the same with an intercept",
}
ORDERS = ("r = 0.5", "r = 0.75", "r = 1", "r = 1.5", "r = 2")
BASE = "r = 2"
CLASSIFIERS = ("1nn", "svm")
# The size of which the page shows every data set.
SHOWN_SIZE = 10
# Cases in the figure, and how far apart points at the same r are drawn.
SHOWN = ("GSR-FS 5.1, 200 rows", "genes", "srbct", "isolet")
APART = 0.018
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "img" / "losses_noise.svg"


def seconds(value: float) -> str:
    """Seconds with about three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def excess(cell: Record, peer: str, measure: str) -> float:
    """By what share the loss of a peer is above ours."""
    return float(cell[peer][measure] / cell[ours(measure)][measure] - 1.0)


def ours(measure: str) -> str:
    """Which search is made for a measure: that of nmAPG has no intercept."""
    return "exactk without intercept" if measure == "own" else "exactk"


def stopped(cell: Record) -> bool:
    """Whether the time limit ended rpfs."""
    return bool(cell["rpfs"]["status"] == "time_limit")


def verdicts(cells: Sequence[Record]) -> str:
    """How often ours is not above theirs, and how much sooner it is there."""
    n = len(cells)
    lines = []
    for measure, words in MEASURES.items():
        for peer in PEERS:
            over = [excess(cell, peer, measure) for cell in cells]
            good = sum(value >= -SAME for value in over)
            less = sum(value > SAME for value in over)
            lines.append(
                f"* {words}: not above `{peer}` in {good} of {n} cells, below it in {less}; "
                f"`{peer}` is {100 * (statistics.median(over)):+.1f} % in the median, "
                f"{100 * min(over):+.2f} % at its best."
            )
    for measure, words in (("loss", "time"), ("own", "time on nmAPG's problem")):
        for peer in PEERS:
            ratios = [cell[peer]["seconds"] / cell[ours(measure)]["seconds"] for cell in cells]
            sooner = sum(ratio > 1 for ratio in ratios)
            lines.append(
                f"* {words}: less than `{peer}` in {sooner} of {n} cells; `{peer}` takes "
                f"{geometric_mean(ratios):.1f} times as long in the geometric mean, "
                f"{min(ratios):.2g} to {max(ratios):,.0f} times."
            )
    cut = [cell for cell in cells if stopped(cell)]
    if cut:
        done = [cell["rpfs"]["starts"] for cell in cut]
        limit = "/".join(f"{at:g}" for at in sorted({cell["rpfs_limit"] for cell in cut}))
        lines.append(
            f"* `rpfs` was stopped after {limit} s in {len(cut)} cells, with {min(done)} to "
            f"{max(done)} of its 10 starts made: its ratios there are lower bounds."
        )
    ends = sum(cell["nmapg"]["status"] == "max_iter" for cell in cells)
    apart = max(abs(cell["exactk"]["stated"] / cell["exactk"]["loss"] - 1) for cell in cells)
    gap = max(cell[method]["gap"] for cell in cells for method in ("exactk", ours("own"), *PEERS))
    lines.append(
        f"* `nmapg` ended by its iterations in {ends} cells. The loss that exactk states and that "
        f"of the refit differ by {apart:.1g} at most; the refits are shown to be within {gap:.1g} "
        f"of the least."
    )
    return "\n".join(lines)


def papers(cells: Sequence[Record]) -> str:
    """Every cell: seconds, our loss, and what theirs are above it."""
    header = ["data", "rows × columns, classes", "k", "exactk, s", "rpfs, s", "nmapg, s",
              "l2,1 loss", "rpfs", "nmapg", "nmAPG's", "rpfs", "nmapg"]  # fmt: skip

    def over(cell: Record, measure: str) -> list[str]:
        return [f"{100 * excess(cell, peer, measure):+.1f} %" for peer in PEERS]

    rows = []
    for cell in cells:
        mark = f" ({cell['rpfs']['starts']} starts)" if stopped(cell) else ""
        rows.append([
            cell["data"], f"{cell['rows']:,} × {cell['columns']:,}, {cell['classes']}",
            f"{cell['k']}", seconds(cell["exactk"]["seconds"]),
            f"{seconds(cell['rpfs']['seconds'])}{mark}", seconds(cell["nmapg"]["seconds"]),
            f"{cell['exactk']['loss']:.5g}", *over(cell, "loss"),
            f"{cell[ours('own')]['own']:.5g}",
            *over(cell, "own"),
        ])  # fmt: skip
    return verdicts(cells) + "\n\n" + markdown(header, rows)


def values(cell: Record, names: Iterable[str]) -> list[float]:
    """The mean of some scores in each draw."""
    lists = [cell["scores"][name] for name in names]
    return [statistics.fmean(draw) for draw in zip(*lists, strict=True)]


def mean_se(found: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; that of a single value is not known."""
    if len(found) < 2:
        return statistics.fmean(found), float("nan")
    return statistics.fmean(found), statistics.stdev(found) / sqrt(len(found))


def shown(found: Sequence[float], sign: str = "") -> str:
    """A mean with its standard error."""
    mean, se = mean_se(found)
    return f"{mean:{sign}.1f}" + (f" ± {se:.1f}" if se == se else "")


def unique(cells: Iterable[Record], name: str) -> list[Any]:
    """The values of a field, in the order of the record."""
    return list(dict.fromkeys(cell[name] for cell in cells))


def percent(level: float) -> str:
    """A share of wrong rows."""
    return f"{100 * level:g} %"


def score_table(cells: Sequence[Record], names: Sequence[str]) -> str:
    """Means of one case: a row for each size, ridge and loss, a column for each level."""
    levels = unique(cells, "level")
    titles = {"recovered": "found", "1nn": "1-NN", "svm": "SVM"}
    header = ["loss", "ridge", "k"]
    header += [f"{titles[name]}, {percent(level)}" for name in names for level in levels]
    rows = []
    by_key = {(c["k"], c["ridge"], c["loss"], c["level"]): c for c in cells}
    for k, ridge, loss in dict.fromkeys((c["k"], c["ridge"], c["loss"]) for c in cells):
        row = [by_key[k, ridge, loss, level] for level in levels]
        scores = [shown(values(cell, [name])) for name in names for cell in row]
        rows.append([loss, ridge, f"{k}", *scores])
    order = {loss: i for i, loss in enumerate(unique(cells, "loss"))}
    rows.sort(key=lambda row: (row[1] != "auto", int(row[2]), order[row[0]]))
    return markdown(header, rows)


def paired(cells: Sequence[Record], names: Sequence[str]) -> dict[tuple[str, str, float], Any]:
    """Differences to squared loss, draw by draw: the mean over sizes and scores."""
    by_key: dict[tuple[str, str, float], list[Any]] = {}
    base = {(c["k"], c["ridge"], c["level"]): c for c in cells if c["loss"] == BASE}
    for cell in cells:
        other = base[cell["k"], cell["ridge"], cell["level"]]
        gain = np.subtract(values(cell, names), values(other, names))
        by_key.setdefault((cell["ridge"], cell["loss"], cell["level"]), []).append(gain)
    return {key: np.mean(gains, axis=0) for key, gains in by_key.items() if key[1] != BASE}


def paired_table(cells: Sequence[Record]) -> str:
    """The same as a table, with classifiers that learn from the labels as given, and right."""
    levels = unique(cells, "level")
    learnt = {"as given": CLASSIFIERS, "right": tuple(f"{name} clean" for name in CLASSIFIERS)}
    header = ["loss", "ridge", *(f"{words}, {percent(x)}" for words in learnt for x in levels)]
    found = [paired(cells, names) for names in learnt.values()]
    rows = []
    for ridge, loss in dict.fromkeys(key[:2] for key in found[0]):
        gains = [all_gains[ridge, loss, level] for all_gains in found for level in levels]
        rows.append([loss, ridge, *(shown(gain.tolist(), "+") for gain in gains)])
    return markdown(header, rows)


def noise(cells: Sequence[Record]) -> str:
    """A table for each case, and differences to squared loss where columns are classified with."""
    parts = []
    for name in unique(cells, "data"):
        own = [cell for cell in cells if cell["data"] == name]
        draws = own[0]["draws"]
        flat = int(sum(sum(cell["scores"]["flat"]) for cell in own))
        note = f" In {flat} solves the model found is that without columns." if flat else ""
        many = f"{draws} draw{'s' if draws > 1 else ''}"
        if "recovered" in own[0]["scores"]:
            about = f"true columns found among k, {many}, mean ± standard error."
            parts.append(f"**{name}**: {about}{note}\n\n{score_table(own, ['recovered'])}")
            continue
        about = f"accuracy on clean rows in per cent, {many}, mean ± standard error."
        parts += [
            f"**{name}**: {about}{note}\n\n{score_table(own, CLASSIFIERS)}",
            f"{name}, points above squared loss in the same draws, both classifiers and sizes "
            f"together; classifiers learn from the labels as given, or from the right ones:\n\n"
            f"{paired_table(own)}",
        ]
    return "\n\n".join(parts)


def panel(name: str, cells: Sequence[Record]) -> svg.Plot:
    """One case: what is reached against r, a line for each share of wrong rows."""
    k = max(unique(cells, "k"))
    rows = [c for c in cells if c["k"] == k and c["ridge"] == "auto" and c["loss"] in ORDERS]
    names = ["recovered"] if "recovered" in rows[0]["scores"] else CLASSIFIERS
    levels = unique(rows, "level")
    lines: list[list[svg.Point]] = []
    for slot, level in enumerate(levels):
        at = {c["loss"]: mean_se(values(c, names)) for c in rows if c["level"] == level}
        aside = APART * (slot - (len(levels) - 1) / 2)
        lines.append([
            svg.Point(order(loss) + aside, *at[loss],
                      f"{percent(level)}, {loss}: {at[loss][0]:.1f} ± {at[loss][1]:.1f}")
            for loss in ORDERS
        ])  # fmt: skip
    ticks = tuple((order(loss), f"{order(loss):g}") for loss in ORDERS)
    x = Scale(0.45, 2.05, svg.LEFT, svg.RIGHT, ticks)
    y = linear(svg.y_range([point for line in lines for point in line]), svg.BOTTOM, svg.TOP)
    what = f"accuracy in %, k = {k}, mean of 1-NN and SVM"
    if "recovered" in names:
        what = f"true columns among k = {k}"
    plot = svg.Plot(x, y, f"{name}: {what}")
    plot.axes("r", what)
    for slot, points in enumerate(lines):
        plot.series(points, slot, spread="bars")
    return plot


def order(loss: str) -> float:
    """The r of a loss."""
    return float(loss.split()[-1])


def figure(cells: Sequence[Record], names: Sequence[str] = SHOWN) -> str:
    """Panels two by two, with one legend."""
    names = [name for name in names if name in unique(cells, "data")]
    panels = [(name, panel(name, [c for c in cells if c["data"] == name])) for name in names]
    levels = [percent(level) for level in unique(cells, "level")]
    return grid("Order r of the loss against wrong labels", panels, levels, "wrong rows:")


def write_figure(cells: Sequence[Record], path: Path = FIGURE) -> Path:
    """Draw a record of wrong labels into the folder of the pages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(figure(cells) + "\n", encoding="utf-8")
    return path


TABLES: dict[str, Callable[[Sequence[Record]], str]] = {"papers": papers, "noise": noise}


def report(record: Record) -> str:
    """The record as Markdown: the parts that it has."""
    parts = []
    for part, table in TABLES.items():
        if not record.get(part):
            continue
        at = record.get("measured", {}).get(part)
        if at:
            parts.append(
                f"{at['date']}, {at['processor']}, {at['threads']} thread"
                f"{'s' if at['threads'] > 1 else ''} (`python -m benchmarks.losses --only {part}`)."
            )
        parts.append(table(record[part]))
    return "\n\n".join(parts)


def page(record: Record) -> str:
    """What the page about losses shows of a record: verdicts, the middle size, and differences."""
    at = record["measured"]
    cells = [cell for cell in record["papers"] if cell["k"] == SHOWN_SIZE]
    parts = [
        "### Beside the papers' methods",
        f'`loss="l21"` (default effort, from the raw table) beside `rpfs` with ten starts and '
        f"`nmapg`, one thread, k = 5, 10, 20; {at['papers']['date']}, "
        f"`python -m benchmarks.losses --only papers`. nmAPG's problem has no intercept: for it a "
        f"row of zeros that weighs more than all others is added to the centred table.",
        verdicts(record["papers"]),
        f"At k = {SHOWN_SIZE}, in seconds, and by how much their loss is above ours:",
        papers(cells).split("\n\n", 1)[1],
        "### Wrong labels",
        f"{at['noise']['date']}, `python -m benchmarks.losses --only noise`; shares of the "
        f'training labels, or rows of numbers, that are wrong; ridge "auto".',
        "![What is reached against the order r of the loss, one line for each share of wrong "
        "labels](img/losses_noise.svg)",
    ]
    plain = [cell for cell in record["noise"] if cell["ridge"] == "auto"]
    for name in unique(plain, "data"):
        own = [cell for cell in plain if cell["data"] == name]
        draws = f"{own[0]['draws']} draw{'s' if own[0]['draws'] > 1 else ''}"
        if "recovered" in own[0]["scores"]:
            parts += [f"**{name}**, true columns among k, {draws}:",
                      score_table(own, ["recovered"])]  # fmt: skip
        else:
            parts += [f"**{name}**, points of accuracy above squared loss, 1-NN and SVM at k = 10 "
                      f"and 20 together, {draws}; classifiers learn from the labels as given, or "
                      f"from the right ones:", paired_table(own)]  # fmt: skip
    return "\n\n".join(parts)
