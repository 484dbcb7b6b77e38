"""exactk's logistic loss beside abess and skscope: time and objective, cell by cell.

A cell is a data set and a k. All contestants run with the same number of threads, in one process
but for a solver that can take its process down and has one of its own. scikit-learn grades all of
them: its fit on the chosen columns, standardised, gives deviance + penalty · ‖W‖² with penalty =
0.001 · (n - 1), softmax over all classes, intercepts free.

    python -m benchmarks.likelihood                       all cells, kept in likelihood.json
    python -m benchmarks.likelihood --quick               two small sets
    python -m benchmarks.likelihood --data digits --k 5   some cells, only printed
    python -m benchmarks.likelihood --resume              go on where a run was cut short
    python -m benchmarks.likelihood --report              the tables of the kept record again
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks import data, harness, peers
from benchmarks import likelihood_peers as entered
from benchmarks.likelihood_report import report

Cell = dict[str, Any]
Record = dict[str, Any]

SETS = (
    "wine", "breast_cancer", "srbct", "lymphoma", "madelon", "jaffe", "semeion", "warppie10p",
    "digits", "usps", "coil20", "isolet",
)  # fmt: skip
QUICK = ("wine", "breast_cancer")
SIZES = (5, 10, 20)
MOST_ROWS = 3_000
ROWS_KEPT = 2_000
# Seconds that a process of its own may take to start and to grade.
START_UP = 60.0
GRADERS = ("lbfgs", "newton-cholesky")


def load(name: str) -> data.Dataset:
    """A data set; of a tall one, some rows."""
    dataset = data.load(name)
    n = len(dataset.y)
    if n <= MOST_ROWS:
        return dataset
    rows = np.sort(np.random.default_rng(0).choice(n, ROWS_KEPT, replace=False))
    return data.Dataset(name, dataset.X[rows], dataset.y[rows])


def grade(dataset: data.Dataset, support: Sequence[int]) -> tuple[float, float]:
    """Objective and deviance of scikit-learn's fit on `support`: the lower of two solvers'."""
    from sklearn.linear_model import LogisticRegression

    classes, codes = entered.class_codes(dataset)
    chosen = np.asarray(support, dtype=np.intp)
    Z = dataset.X[:, chosen] - dataset.X[:, chosen].mean(axis=0)
    Z /= Z.std(axis=0, ddof=1)
    # With two classes scikit-learn fits the difference b of both columns: ‖W‖² = ‖b‖² / 2.
    factor = entered.penalty(dataset) / (2.0 if classes == 2 else 1.0)
    fits = []
    for solver in GRADERS:
        model = LogisticRegression(C=1.0 / factor, solver=solver, tol=1e-8, max_iter=20_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(Z, codes)
        logs = model.predict_log_proba(Z)
        deviance = -2.0 * float(logs[np.arange(len(codes)), codes].sum())
        fits.append((deviance + factor * float(np.sum(model.coef_**2)), deviance))
    return min(fits)


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after some seconds, as soon as Python code runs again; 0 for never."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"stopped after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def measure(
    dataset: data.Dataset, k: int, contestant: peers.Contestant, options: argparse.Namespace
) -> Cell:
    """Time one contestant in one cell and grade what it returned; a failure is recorded."""
    cell: Cell = {"data": dataset.name, "k": k, "contestant": contestant.name}
    try:
        run = contestant.prepare(dataset, k)
        with stopped_after(options.stop), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            timing = harness.timed(run, options.runs, options.budget)
    except entered.TooLargeError as error:
        return {**cell, "skipped": f"too large: {error}"}
    except TimeoutError as error:
        return {**cell, "skipped": f"too slow: {error}"}
    except Exception as error:  # whatever a peer raises is its result in this cell
        return {**cell, "failed": f"{type(error).__name__}: {error}"}
    support = sorted({int(index) for index in timing.value})
    objective, deviance = grade(dataset, support) if support else (np.inf, np.inf)
    return {
        **cell,
        "seconds": timing.best,
        "median_seconds": timing.median,
        "runs": len(timing.seconds),
        "size": len(support),
        "objective": objective,
        "deviance": deviance,
        "support": support,
    }


class Apart:
    """A process of its own for contestants that may crash, or cannot be stopped from within."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._pool: ProcessPoolExecutor | None = None

    def measure(self, name: str, k: int, contestant: str) -> Cell:
        """Measure one cell; where its process dies or must be ended, that is the outcome."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        cell: Cell = {"data": name, "k": k, "contestant": contestant}
        asked = self._pool.submit(_measure_named, name, k, contestant, self._options)
        try:
            return asked.result(timeout=self._options.stop + START_UP)
        except BrokenProcessPool:
            self.close()
            return {**cell, "failed": "its process died"}
        except TimeoutError:
            self.close()
            return {**cell, "skipped": f"too slow: ended after {self._options.stop:g} s"}

    def close(self) -> None:
        """End the process, whatever it does."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)


@functools.lru_cache(maxsize=1)
def _loaded(name: str) -> data.Dataset:
    return load(name)


@functools.cache
def _warm(name: str) -> peers.Contestant:
    (contestant,) = (c for c in entered.PEERS if c.name == name)
    peers.warm_up([contestant])
    return contestant


def _measure_named(name: str, k: int, contestant: str, options: argparse.Namespace) -> Cell:
    """What the process of its own does."""
    return measure(
        _loaded(name), k, _warm(contestant), argparse.Namespace(**{**vars(options), "stop": 0.0})
    )


def run_cells(
    name: str, contestants: Sequence[peers.Contestant], options: argparse.Namespace
) -> tuple[list[Cell], dict[str, Any]]:
    """All cells of a data set, and what is known of it."""
    cells: list[Cell] = []
    dataset, apart = load(name), Apart(options)
    n, d = dataset.X.shape
    described = {
        "rows": n,
        "features": d,
        "classes": entered.class_codes(dataset)[0],
        "penalty": entered.penalty(dataset),
    }
    too_slow: dict[str, str] = {}
    for k in (k for k in options.k if k <= dataset.usable.size // 2):
        for contestant in contestants:
            if contestant.name in too_slow:
                slow = {"data": name, "k": k, "contestant": contestant.name}
                cells.append({**slow, "skipped": too_slow[contestant.name]})
                continue
            if contestant.name.startswith(entered.MAY_CRASH):
                cell = apart.measure(name, k, contestant.name)
            else:
                cell = measure(dataset, k, contestant, options)
            cells.append(cell)
            if "skipped" in cell:
                too_slow[contestant.name] = f"{cell['skipped']}, at a smaller k"
            elif cell.get("seconds", 0.0) > options.slow:
                too_slow[contestant.name] = f"too slow: over {options.slow:g} s at a smaller k"
            progress(cell)
    apart.close()
    return cells, described


def progress(cell: Cell) -> None:
    """One line a cell on stderr, so that a long run can be watched."""
    outcome = cell.get("failed") or cell.get("skipped")
    if outcome is None:
        outcome = f"{harness.milliseconds(cell['seconds'])} ms, objective {cell['objective']:.6g}"
    print(f"{cell['data']} k={cell['k']} {cell['contestant']}: {outcome}", file=sys.stderr)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likelihood", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--k", nargs="+", type=int, default=list(SIZES), metavar="K", help="sizes")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contestants, by name")
    parser.add_argument("--quick", action="store_true", help="two small sets")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5, help="most runs of a cell")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of runs of a cell")
    parser.add_argument("--slow", type=float, default=60.0, help="no larger k after such a run")
    parser.add_argument("--stop", type=float, default=180.0, help="seconds at which a run ends")
    parser.add_argument("--save", metavar="NAME", help="name of the record; default for all cells")
    parser.add_argument("--resume", action="store_true", help="keep the sets of a run cut short")
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    return parser.parse_args(arguments)


def choose(only: Sequence[str] | None) -> list[peers.Contestant]:
    """The contestants asked for that are installed; the others are named."""
    asked = [c for c in (*entered.OURS, *entered.PEERS) if not only or c.name in only]
    for contestant in asked:
        if not contestant.installed:
            print(f"left out, not installed: {contestant.name}", file=sys.stderr)
    return [c for c in asked if c.installed]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.report:
        kept = harness.RESULTS / f"{options.save or 'likelihood'}.json"
        print(report(json.loads(kept.read_text(encoding="utf-8"))))
        return
    os.environ["NPROC"] = str(options.threads)  # what jax asks for its threads
    harness.pin_threads(options.threads)
    names, missing = data.available(QUICK if options.quick else options.data)
    if missing:
        print(f"left out, no file: {', '.join(missing)} (set {data.FOLDER_VARIABLE})")
    contestants = choose(options.only)
    peers.warm_up(contestants)
    everything = set(names) >= set(SETS) and set(options.k) >= set(SIZES)
    complete = everything and len(contestants) == len(entered.OURS) + len(entered.PEERS)
    kept = options.save or ("likelihood" if complete else None)
    record: Record = {
        **harness.circumstances(options.threads),
        "ridge": entered.RIDGE,
        "stop": options.stop,
        "slow": options.slow,
        "missing": missing,
        "contestants": {c.name: {"settings": c.settings} for c in contestants},
        "sets": {},
        "cells": [],
    }
    part = harness.RESULTS / f"{kept}.part.json"
    if options.resume and part.exists():
        before = json.loads(part.read_text(encoding="utf-8"))
        record["cells"], record["sets"] = before["cells"], before["sets"]
    for name in names:
        if name in record["sets"]:
            continue
        cells, described = run_cells(name, contestants, options)
        record["cells"] += cells
        record["sets"][name] = described
        # Of a run that is cut short what was measured stays, beside the record before it.
        if kept:
            harness.write_record(kept if name == names[-1] else f"{kept}.part", record)
    if kept:
        part.unlink(missing_ok=True)
    print(report(record))


if __name__ == "__main__":
    main()
