"""exactk beside abess, fastcan, skglm and scikit-learn: time and objective, cell by cell.

A cell is a data set and a k. All contestants run in one process with the same number of
threads, one after the other within a cell, and one function grades all of them.

cells  every contestant
long   one minute of search for each data set at k = 20
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks import data, harness, peers
from benchmarks.harness import Options, Row
from benchmarks.verdict import best_known, report

__all__ = ["PARTS", "add_options", "report"]

SIZES = (1, 5, 10, 20, 50)
RUNS = 11
# No larger k after a run of so many seconds.
SLOW = 25.0
LONG_SIZE = 20
LONG_SECONDS = 60.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--data", nargs="+", default=list(data.CELLS), choices=data.CELLS)
    parser.add_argument("--k", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--contestants", nargs="+", metavar="NAME", help="only these")


def measure(dataset: data.Dataset, k: int, contestant: peers.Contestant, runs: int = RUNS) -> Row:
    """Time one contestant in one cell and grade what it returned; a failure is recorded."""
    cell: Row = {"data": dataset.name, "k": k, "contestant": contestant.name}
    try:
        timing = harness.timed(contestant.prepare(dataset, k), runs)
    except Exception as error:  # whatever a peer raises is its result in this cell
        return {**cell, "failed": f"{type(error).__name__}: {error}"}
    support = sorted({int(index) for index in timing.value})
    return {
        **cell,
        "seconds": timing.best,
        "median_seconds": timing.median,
        "runs": len(timing.seconds),
        "size": len(support),
        "objective": dataset.objective(support),
        "support": support,
    }


def cells(options: Options) -> Iterator[Row]:
    """Every contestant in every cell; the settings have what is known of each data set."""
    entered = (*peers.OURS, *peers.PEERS)
    contestants = peers.installed(entered, options.contestants)
    peers.warm_up(contestants)
    options.settings["contestants"] = {c.name: {"settings": c.settings} for c in contestants}
    options.settings["sets"] = {}
    for dataset in data.sets(options, options.data):
        n, d = dataset.X.shape
        options.settings["sets"][dataset.name] = {
            "rows": n,
            "features": d,
            "outputs": dataset.outputs.shape[1],
            "total": dataset.total,
            # A part of each run of exactk.
            "problem_seconds": harness.timed(lambda dataset=dataset: data.build(dataset)).best,
        }
        too_slow: set[str] = set()
        for k in options.k:
            for contestant in contestants:
                if contestant.name in too_slow:
                    slow = {"data": dataset.name, "k": k, "contestant": contestant.name}
                    yield {**slow, "skipped": f"over {SLOW:g} s at a smaller k"}
                    continue
                cell = measure(dataset, k, contestant)
                if cell.get("seconds", 0.0) > SLOW:
                    too_slow.add(contestant.name)
                yield cell


def long(options: Options) -> Iterator[Row]:
    """One run with a time limit for each data set that has a best known value."""
    contestant = peers.Contestant(
        "exactk long", "exactk", f"effort=inf, time_limit={LONG_SECONDS:g}",
        peers.exactk(time_limit=LONG_SECONDS, effort=float("inf")),
    )  # fmt: skip
    names = {name for name, known in best_known().items() if str(LONG_SIZE) in known}
    for dataset in data.sets(options, [name for name in options.data if name in names]):
        yield measure(dataset, LONG_SIZE, contestant, 1)


PARTS = {"cells": cells, "long": long}
