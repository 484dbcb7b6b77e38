"""exactk beside abess, fastcan, skglm and scikit-learn: time and objective, cell by cell.

A cell is a data set and a k. All contestants run in one process with the same number of
threads, one after the other within a cell, and one function grades all of them.

    python -m benchmarks.compare                       all cells, kept in results/compare.json
    python -m benchmarks.compare --data digits --k 5   some cells, only printed
    python -m benchmarks.compare --long                adds a minute of search for each k = 20
    python -m benchmarks.compare --add-long            only that minute, into the kept record
    python -m benchmarks.compare --report              the tables of the kept record again,
                                                       or with --k and --only a part of them
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks import data, harness, peers, verdict

SIZES = (1, 5, 10, 20, 50)
LONG_SIZE = 20
LONG_SECONDS = 60.0


def measure(
    dataset: data.Dataset, k: int, contestant: peers.Contestant, runs: int, budget: float
) -> dict[str, Any]:
    """Time one contestant in one cell and grade what it returned; a failure is recorded."""
    cell: dict[str, Any] = {"data": dataset.name, "k": k, "contestant": contestant.name}
    try:
        timing = harness.timed(contestant.prepare(dataset, k), runs, budget)
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


def run_cells(
    names: Sequence[str],
    sizes: Sequence[int],
    contestants: Sequence[peers.Contestant],
    options: argparse.Namespace,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All cells, and what is known of each data set."""
    cells: list[dict[str, Any]] = []
    sets: dict[str, Any] = {}
    for dataset in data.load_all(names):
        n, d = dataset.X.shape
        sets[dataset.name] = {
            "rows": n,
            "features": d,
            "outputs": dataset.outputs.shape[1],
            "total": dataset.total,
        }
        if any(contestant.package == "exactk" for contestant in contestants):
            sets[dataset.name]["problem_seconds"] = problem_seconds(dataset)
        too_slow: set[str] = set()
        for k in sizes:
            for contestant in contestants:
                if contestant.name in too_slow:
                    slow = {"data": dataset.name, "k": k, "contestant": contestant.name}
                    cells.append({**slow, "skipped": f"over {options.slow:g} s at a smaller k"})
                    continue
                cell = measure(dataset, k, contestant, options.runs, options.budget)
                cells.append(cell)
                if cell.get("seconds", 0.0) > options.slow:
                    too_slow.add(contestant.name)
                progress(cell)
    return cells, sets


def problem_seconds(dataset: data.Dataset) -> float:
    """Seconds that building the Problem takes out of each run of exactk."""
    import exactk

    return harness.timed(
        lambda: exactk.Problem.from_arrays(dataset.X, dataset.y, task=dataset.task)
    ).best


def long_search(names: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    """One run with a time limit for each data set that has a best known value."""
    known = verdict.best_known()
    contestant = peers.Contestant(
        "exactk long", "exactk", f"time_limit={seconds:g}", peers.exactk(time_limit=seconds)
    )
    cells = []
    for name in names:
        if str(LONG_SIZE) in known.get(name, {}):
            cells.append(measure(data.load(name), LONG_SIZE, contestant, 1, 0.0))
            progress(cells[-1])
    return cells


def progress(cell: dict[str, Any]) -> None:
    """One line a cell on stderr, so that a long run can be watched."""
    if "failed" in cell:
        outcome = f"failed: {cell['failed']}"
    else:
        outcome = f"{harness.milliseconds(cell['seconds'])} ms, objective {cell['objective']:.6g}"
    print(f"{cell['data']} k={cell['k']} {cell['contestant']}: {outcome}", file=sys.stderr)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", nargs="+", default=list(data.CELLS), choices=data.CELLS)
    parser.add_argument("--k", nargs="+", type=int, metavar="K", help="sizes")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contestants, by name")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=11, help="most runs of a cell")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of runs of a cell")
    parser.add_argument("--slow", type=float, default=25.0, help="no larger k after such a run")
    parser.add_argument("--long", action="store_true", help="also k = 20 with time_limit=60")
    parser.add_argument("--add-long", action="store_true", help="only that, into the kept record")
    parser.add_argument("--no-ours", dest="ours", action="store_false", help="peers only")
    parser.add_argument("--save", metavar="NAME", help="name of the record; default for all cells")
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    return parser.parse_args(arguments)


def choose(options: argparse.Namespace) -> list[peers.Contestant]:
    """The contestants asked for that are installed; the others are named."""
    entered = (*(peers.OURS if options.ours else ()), *peers.PEERS)
    if options.only:
        entered = tuple(c for c in entered if c.name in options.only)
    for contestant in entered:
        if not contestant.installed:
            print(f"left out, not installed: {contestant.name}", file=sys.stderr)
    return [c for c in entered if c.installed]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    kept = options.save or "compare"
    if options.report or options.add_long:
        record = json.loads((harness.RESULTS / f"{kept}.json").read_text(encoding="utf-8"))
        if options.add_long:
            harness.pin_threads(options.threads)
            # A run of its own, so its circumstances are kept beside those of the cells.
            record["long"] = long_search(list(record["sets"]), LONG_SECONDS)
            record["long_run"] = harness.circumstances(options.threads)
            harness.write_record(kept, record)
        print(verdict.report(record, options.k, options.only))
        return
    options.k = options.k or list(SIZES)
    harness.pin_threads(options.threads)
    names, missing = data.available(options.data)
    if missing:
        print(f"left out, no file: {', '.join(missing)} (set {data.FOLDER_VARIABLE})")
    contestants = choose(options)
    peers.warm_up(contestants)
    cells, sets = run_cells(names, options.k, contestants, options)
    record = {
        **harness.circumstances(options.threads),
        "missing": missing,
        "contestants": {c.name: {"settings": c.settings} for c in contestants},
        "sets": sets,
        "cells": cells,
        "long": long_search(names, LONG_SECONDS) if options.long else [],
    }
    everything = set(options.data) == set(data.CELLS) and set(options.k) >= set(SIZES)
    name = options.save or ("compare" if everything and options.ours and not options.only else None)
    if name:
        harness.write_record(name, record)
    print(verdict.report(record))


if __name__ == "__main__":
    main()
