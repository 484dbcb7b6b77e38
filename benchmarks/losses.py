"""The l2,1 loss on every data set: exactk beside rpfs (ten starts) and nmapg.

Time, and the loss of the chosen columns after a refit by code that is not exactk's.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np

import exactk
from benchmarks import data, harness
from benchmarks.data import Dataset, Floats, solve
from benchmarks.harness import Options, Record, Row, geometric_mean, markdown
from exactk.papers import datasets

THREADS = 1
CAN_ADD = True
SIZES = (5, 10, 20)
# In a cell: ours on the problem of nmAPG.
FREE = "exactk without intercept"
STARTS = 10
# The default of nmapg, which its own objective is graded with.
GAMMA = 0.1
# Runs that take milliseconds: the shortest of so many, or a second of them.
RUNS = 3
QUICK_SETS, QUICK_SIZES, QUICK_LIMIT = ("srbct", "colon", "digits"), (5, 10), 10.0
# Residuals below this share of the mean one get no larger weight.
ZERO = 1e-9
# Steps at most, and the share of the value that may be missing at the end.
STEPS, CLOSE = 3_000, 1e-7
# Losses nearer to each other than this are the same: what the refit is right to.
SAME = 1e-5
PEERS = ("rpfs", "nmapg")
MEASURES = {
    "loss": "‖Y − XW − 1bᵀ‖₂,₁",
    "own": "nmAPG's ‖XW − Y‖₂,₁ + 0.1‖W‖₂,₁",
    "own_free": "the same with an intercept",
}
# The size of which the page shows every data set.
SHOWN_SIZE = 10


class Graded(NamedTuple):
    """A sum of row norms and a number that the least one is not below."""

    value: float
    bound: float


def l21_loss(dataset: Dataset, support: Iterable[int]) -> Graded:
    """The least ‖Y − XW − 1bᵀ‖₂,₁ on these columns, standardised; Y is one-hot."""
    Z, Y = _columns(dataset, support), dataset.outputs
    return least_row_norms(np.hstack([Z, np.ones((len(Z), 1))]), Y)


def nmapg_loss(
    dataset: Dataset, support: Iterable[int], gamma: float, *, intercept: bool = False
) -> Graded:
    """The least ‖XW − Y‖₂,₁ + γ‖W‖₂,₁ on these columns: eq. 2.3 of nmAPG, X and Y centred.

    A row γe_j of X with the target 0 adds γ‖w_j‖, so that both terms are one. An intercept is in
    no penalty.
    """
    Z, Y = _columns(dataset, support), dataset.outputs
    k = Z.shape[1]
    X = np.vstack([Z, gamma * np.eye(k)])
    if intercept:
        X = np.hstack([X, np.repeat([1.0, 0.0], [len(Z), k])[:, None]])
    return least_row_norms(X, np.vstack([Y, np.zeros((k, Y.shape[1]))]))


def _columns(dataset: Dataset, support: Iterable[int]) -> Floats:
    X = dataset.X[:, sorted(support)]
    Z: Floats = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return Z


def least_row_norms(X: Floats, Y: Floats) -> Graded:
    """Minimise ‖Y − XW‖₂,₁ by reweighted least squares.

    With the weights ω of a step and its residuals E, U = ωE has XᵀU = 0. For any such U with rows
    no longer than 1 the sum of ⟨y_i, u_i⟩, which is that of ⟨e_i, u_i⟩, is not above the loss of
    any W: the bound.
    """
    weights, value, bound = np.ones(len(X)), np.inf, 0.0
    for step in range(STEPS):
        half = np.sqrt(weights)[:, None]
        W = np.linalg.lstsq(half * X, half * Y, rcond=None)[0]
        E = Y - X @ W
        e = np.sqrt((E**2).sum(axis=1))
        value = min(value, float(e.sum()))
        if step > 0:
            U = weights[:, None] * E
            longest = float(np.sqrt((U**2).sum(axis=1)).max())
            bound = max(bound, float(np.einsum("ij,ij->", E, U)) / max(longest, 1.0))
        if value - bound <= CLOSE * value:
            break
        weights = 1.0 / np.maximum(e, ZERO * e.mean())
    return Graded(value, bound)


class StartCount:
    """Counts the starts that a method brings to their end, step by step."""

    def __init__(self, max_iter: int) -> None:
        self.max_iter, self.steps, self.starts = max_iter, 0, 0

    def __call__(self, step: Any) -> None:
        """Look at one step."""
        self.steps += 1
        if step.converged or self.steps == self.max_iter:
            self.steps, self.starts = 0, self.starts + 1


def ours(dataset: Dataset, k: int) -> Row:
    """Ours, from the raw table to the fit on the chosen columns."""

    def run() -> exactk.Result:
        problem = exactk.Problem.from_arrays(
            dataset.X, dataset.y, task="classification", loss="l21"
        )
        return solve(problem, k, "exchange")

    timing = harness.timed(run, RUNS)
    result = timing.value
    return {"seconds": timing.best, "stated": result.objective, **graded(dataset, result)}


def without_intercept(dataset: Dataset, k: int) -> Row:
    """Ours on the problem of nmAPG, which has no intercept: X and Y centred, and a row of zeros.

    The row weighs more than all others together, so that an intercept other than zero costs more
    than it can gain. The term γ‖W‖₂,₁ is in the grade alone.
    """

    def run() -> exactk.Result:
        n, c = dataset.outputs.shape
        # The search standardises columns: the mean of each is its zero.
        X = np.vstack([dataset.X, dataset.X.mean(axis=0)])
        Y = np.vstack([dataset.outputs, np.zeros(c)])
        weights = np.append(np.ones(n), n + 1.0)
        problem = exactk.Problem.from_arrays(
            X, Y, sample_weight=weights, task="regression", loss="l21"
        )
        return solve(problem, k, "exchange")

    timing = harness.timed(run, RUNS)
    result = timing.value
    own = nmapg_loss(dataset, result.support.tolist(), GAMMA)
    return {
        "seconds": timing.best, "status": str(result.status), "support": result.support.tolist(),
        "own": own.value, "gap": 1.0 - own.bound / own.value,
    }  # fmt: skip


def theirs(dataset: Dataset, k: int, method: str, limit: float | None) -> Row:
    """A method of the papers: its search alone, without building the problem or the refit."""
    problem = exactk.Problem.from_arrays(dataset.X, dataset.y, task="classification", loss="l21")
    options: Row = {"n_starts": STARTS} if method == "rpfs" else {}
    count = StartCount(exactk.methods.registry.create(method).max_iter)
    results: list[exactk.Result] = []

    def run() -> None:
        count.steps = count.starts = 0
        results.append(solve(problem, k, method, time_limit=limit, callback=count, **options))

    harness.timed(run, RUNS)
    found: Row = {"seconds": min(result.seconds for result in results)}
    if method == "rpfs":
        found |= {"starts": count.starts}
    return found | graded(dataset, results[-1])


def graded(dataset: Dataset, result: exactk.Result) -> Row:
    """The status, and the loss of the chosen columns by code that is not exactk's.

    ``loss`` is of l2,1 alone, ``own`` of nmAPG's objective with X and Y centred, as it has it, and
    ``own_free`` of the same with an intercept.
    """
    S = result.support.tolist()
    values = {
        "loss": l21_loss(dataset, S),
        "own": nmapg_loss(dataset, S, GAMMA),
        "own_free": nmapg_loss(dataset, S, GAMMA, intercept=True),
    }
    return {
        "status": str(result.status),
        "support": S,
        **{name: found.value for name, found in values.items()},
        "gap": max(1.0 - found.bound / found.value for found in values.values()),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--data", nargs="+", metavar="NAME", help="only these sets")
    parser.add_argument("--rpfs-limit", type=float, default=60.0, help="seconds for a run of rpfs")


def set_names(options: Options) -> list[str]:
    """Names of all sets that have a file, and digits."""
    if options.quick:
        return list(QUICK_SETS)
    folder = data.folder()
    here = [name for name in datasets.names() if datasets.find(name, folder=folder) is not None]
    return [name for name in [*here, "digits"] if not options.data or name in options.data]


def cells(options: Options) -> Iterator[Row]:
    """Every data set at three sizes: exactk with loss="l21", rpfs and nmapg."""
    sizes = QUICK_SIZES if options.quick else SIZES
    limit = QUICK_LIMIT if options.quick else options.rpfs_limit
    for dataset in data.sets(options, set_names(options), quick=3):
        for k in sizes:
            if options.has(data=dataset.name, k=k):
                continue
            yield {
                "data": dataset.name, "rows": len(dataset.X), "columns": int(dataset.usable.size),
                "classes": dataset.outputs.shape[1], "k": k, "date": date.today().isoformat(),
                "rpfs_limit": limit, "exactk": ours(dataset, k),
                "rpfs": theirs(dataset, k, "rpfs", limit),
                "nmapg": theirs(dataset, k, "nmapg", None),
                FREE: without_intercept(dataset, k),
            }  # fmt: skip


PARTS = {"cells": cells}


def seconds(value: float) -> str:
    """Seconds with about three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def excess(cell: Row, peer: str, measure: str) -> float:
    """By what share the loss of a peer is above ours."""
    return float(cell[peer][measure] / cell[search_for(measure)][measure] - 1.0)


def search_for(measure: str) -> str:
    """Which search is made for a measure: that of nmAPG has no intercept."""
    return "exactk without intercept" if measure == "own" else "exactk"


def stopped(cell: Row) -> bool:
    """Whether the time limit ended rpfs."""
    return bool(cell["rpfs"]["status"] == "time_limit")


def verdicts(cells: Sequence[Row]) -> str:
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
            ratios = [
                cell[peer]["seconds"] / cell[search_for(measure)]["seconds"] for cell in cells
            ]
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
    gap = max(
        cell[method]["gap"] for cell in cells for method in ("exactk", search_for("own"), *PEERS)
    )
    lines.append(
        f"* `nmapg` ended by its iterations in {ends} cells. The loss that exactk states and that "
        f"of the refit differ by {apart:.1g} at most; the refits are shown to be within {gap:.1g} "
        f"of the least."
    )
    return "\n".join(lines)


def table(cells: Sequence[Row]) -> str:
    """Every cell: seconds, our loss, and what theirs are above it."""
    header = ["data", "rows × columns, classes", "k", "exactk, s", "rpfs, s", "nmapg, s",
              "l2,1 loss", "rpfs", "nmapg", "nmAPG's", "rpfs", "nmapg"]  # fmt: skip

    def over(cell: Row, measure: str) -> list[str]:
        return [f"{100 * excess(cell, peer, measure):+.1f} %" for peer in PEERS]

    rows = []
    for cell in cells:
        mark = f" ({cell['rpfs']['starts']} starts)" if stopped(cell) else ""
        rows.append([
            cell["data"], f"{cell['rows']:,} × {cell['columns']:,}, {cell['classes']}",
            f"{cell['k']}", seconds(cell["exactk"]["seconds"]),
            f"{seconds(cell['rpfs']['seconds'])}{mark}", seconds(cell["nmapg"]["seconds"]),
            f"{cell['exactk']['loss']:.5g}", *over(cell, "loss"),
            f"{cell[search_for('own')]['own']:.5g}",
            *over(cell, "own"),
        ])  # fmt: skip
    return verdicts(cells) + "\n\n" + markdown(header, rows)


def about(record: Record) -> str:
    """When and how it was measured."""
    threads = record["threads"]
    return (
        f"{record['date']}, {record['processor']}, {threads} thread{'s' if threads > 1 else ''} "
        f"(`{record['command']}`)."
    )


def report(record: Record) -> str:
    """Verdicts and all cells, as Markdown."""
    return f"{about(record)}\n\n{table(record['cells'])}"


def page(record: Record) -> str:
    """What the page about losses shows of a record: verdicts and the middle size."""
    cells = [cell for cell in record["cells"] if cell["k"] == SHOWN_SIZE]
    return "\n\n".join([
        "### Beside the papers' methods",
        f'`loss="l21"` (default effort, from the raw table) beside `rpfs` with ten starts and '
        f"`nmapg`, one thread, k = 5, 10, 20; {record['date']}, `python -m benchmarks losses`. "
        f"nmAPG's problem has no intercept: for it a row of zeros that weighs more than all others "
        f"is added to the centred table.",
        verdicts(record["cells"]),
        f"At k = {SHOWN_SIZE}, in seconds, and by how much their loss is above ours:",
        table(cells).split("\n\n", 1)[1],
    ])  # fmt: skip
