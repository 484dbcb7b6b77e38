"""Losses other than squared: beside the papers' methods for l2,1 loss, and with wrong labels.

    python -m benchmarks.losses                    every part, kept in results/losses.json
    python -m benchmarks.losses --add              what the kept record lacks, and nothing else
    python -m benchmarks.losses --only noise       a part, measured anew
    python -m benchmarks.losses --only papers --data usps mnist
    python -m benchmarks.losses --quick            both parts on small sizes, only printed
    python -m benchmarks.losses --report           the tables of the kept record again
    python -m benchmarks.losses --figure           the figure of the kept record again

papers  loss="l21" beside rpfs and nmapg on every data set: time, and the loss after a refit
noise   wrong labels: true columns found, accuracy on clean rows, by the order of the loss

The record is written after every data set and every draw. Cells are replaced one by one, so that a
run that is cut short leaves the others as they were; --add goes on from there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import numpy as np

import exactk
from benchmarks import data, harness
from benchmarks.losses_grade import l21_loss, nmapg_loss
from benchmarks.losses_kept import Kept, Terms, stored
from benchmarks.losses_noise import noise
from benchmarks.losses_report import report, write_figure
from benchmarks.scope import Record, Records, run_parts, solve
from exactk.papers import datasets

SIZES = (5, 10, 20)
# In a cell: ours on the problem of nmAPG.
FREE = "exactk without intercept"
STARTS = 10
# The default of nmapg, which its own objective is graded with.
GAMMA = 0.1
# Runs that take milliseconds: the shortest of so many, or a second of them.
RUNS = 3
QUICK_SETS, QUICK_SIZES, QUICK_LIMIT = ("srbct", "colon", "digits"), (5, 10), 10.0


class StartCount:
    """Counts the starts that a method brings to their end, step by step."""

    def __init__(self, max_iter: int) -> None:
        self.max_iter, self.steps, self.starts = max_iter, 0, 0

    def __call__(self, step: Any) -> None:
        """Look at one step."""
        self.steps += 1
        if step.converged or self.steps == self.max_iter:
            self.steps, self.starts = 0, self.starts + 1


def ours(dataset: data.Dataset, k: int) -> Record:
    """Ours, from the raw table to the fit on the chosen columns."""

    def run() -> exactk.Result:
        problem = exactk.Problem.from_arrays(
            dataset.X, dataset.y, task="classification", loss="l21"
        )
        return solve(problem, k, "exchange")

    timing = harness.timed(run, RUNS)
    result = timing.value
    return {"seconds": timing.best, "stated": result.objective, **graded(dataset, result)}


def without_intercept(dataset: data.Dataset, k: int) -> Record:
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


def theirs(dataset: data.Dataset, k: int, method: str, limit: float | None) -> Record:
    """A method of the papers: its search alone, without building the problem or the refit."""
    problem = exactk.Problem.from_arrays(dataset.X, dataset.y, task="classification", loss="l21")
    options: Record = {"n_starts": STARTS} if method == "rpfs" else {}
    count = StartCount(exactk.methods.registry.create(method).max_iter)
    results: list[exactk.Result] = []

    def run() -> None:
        count.steps = count.starts = 0
        results.append(solve(problem, k, method, time_limit=limit, on_step=count, **options))

    harness.timed(run, RUNS)
    found: Record = {"seconds": min(result.seconds for result in results)}
    if method == "rpfs":
        found |= {"starts": count.starts}
    return found | graded(dataset, results[-1])


def graded(dataset: data.Dataset, result: exactk.Result) -> Record:
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


def paper_sets(terms: Terms) -> list[str]:
    """Names of all sets that have a file, and digits."""
    if terms.quick:
        here, missing = data.available(QUICK_SETS)
        terms.missing.update(missing)
        return here
    folder = data.folder()
    here = [name for name in datasets.names() if datasets.find(name, folder=folder) is not None]
    return [name for name in [*here, "digits"] if terms.wants(name)]


def papers(terms: Terms) -> Records:
    """Every data set at three sizes: exactk with loss="l21", rpfs and nmapg."""
    sizes = QUICK_SIZES if terms.quick else SIZES
    limit = QUICK_LIMIT if terms.quick else terms.rpfs_limit
    for name in paper_sets(terms):
        known = {k: terms.kept.find("papers", data=name, k=k) for k in sizes} if terms.add else {}
        wanted = [k for k in sizes if FREE not in (known.get(k) or {})]
        if not wanted:
            continue
        dataset = data.load(name)
        for k in wanted:
            cell: Record = known.get(k) or {
                "data": name, "rows": len(dataset.X), "columns": int(dataset.usable.size),
                "classes": dataset.outputs.shape[1], "k": k, "date": date.today().isoformat(),
                "rpfs_limit": limit, "exactk": ours(dataset, k),
                "rpfs": theirs(dataset, k, "rpfs", limit),
                "nmapg": theirs(dataset, k, "nmapg", None),
            }  # fmt: skip
            cell[FREE] = without_intercept(dataset, k)
            terms.kept.put("papers", cell, "data", "k")
            terms.kept.save("papers", terms.threads)
            took = ", ".join(
                f"{method} {cell[method]['seconds']:.3g} s {cell[method]['loss']:.6g}"
                for method in ("exactk", "rpfs", "nmapg")
            )
            print(f"{name}, k = {k}: {took}", file=sys.stderr, flush=True)
    return {"papers": terms.kept.cells("papers")}


PARTS: dict[str, Callable[[Any], Records]] = {"papers": papers, "noise": noise}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.losses", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--data", nargs="+", default=[], metavar="NAME", help="only these sets")
    parser.add_argument("--quick", action="store_true", help="small sizes, not kept")
    parser.add_argument("--add", action="store_true", help="only what the kept record lacks")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--rpfs-limit", type=float, default=60.0, help="seconds for a run of rpfs (60)"
    )
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    parser.add_argument("--figure", action="store_true", help="draw the kept record, run nothing")
    options = parser.parse_args(arguments)
    if options.report or options.figure:
        if options.figure:
            print(write_figure(stored()["noise"]).name)
        if options.report:
            print(report(stored()))
        return
    harness.pin_threads(options.threads)
    kept = Kept({} if options.quick else stored(), on_disk=not options.quick)
    terms = Terms(
        quick=options.quick, kept=kept, add=options.add, names=tuple(options.data),
        threads=options.threads, rpfs_limit=options.rpfs_limit,
    )  # fmt: skip
    run_parts(PARTS, options.only, terms)
    if kept.on_disk and "noise" in options.only and kept.cells("noise"):
        write_figure(kept.cells("noise"))
    print(report(kept.record))


if __name__ == "__main__":
    main()
