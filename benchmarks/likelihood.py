"""exactk's logistic loss beside abess and skscope: time and objective, cell by cell.

A cell is a data set and a k. All contestants run with the same number of threads, in one process
but for a solver that can take its process down and has one of its own. scikit-learn grades all of
them: its fit on the chosen columns, standardised, gives deviance + penalty · ‖W‖² with penalty =
0.001 · (n - 1), softmax over all classes, intercepts free.
"""

from __future__ import annotations

import argparse
import functools
import os
import signal
import statistics
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
from benchmarks.harness import Options, Record, Row

Table = dict[tuple[str, int], dict[str, Row]]

THREADS = 1
CAN_ADD = True
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
# A contestant that took so long is not run at larger k.
SLOW = 30.0
RUNS = 5
GRADERS = ("lbfgs", "newton-cholesky")
# Objectives that differ by less than this share are the same up to the accuracy of the fits.
ROUNDING = 1e-6
RIVALS = ("abess", "skscope")
# What one calls who has read no more than the first example.
PLAIN = {"abess": "abess", "skscope": "skscope SCOPE"}


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


def measure(dataset: data.Dataset, k: int, contestant: peers.Contestant, stop: float) -> Row:
    """Time one contestant in one cell and grade what it returned; a failure is recorded."""
    cell: Row = {"data": dataset.name, "k": k, "contestant": contestant.name}
    try:
        run = contestant.prepare(dataset, k)
        with stopped_after(stop), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            timing = harness.timed(run, RUNS)
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

    def __init__(self, stop: float) -> None:
        self._stop = stop
        self._pool: ProcessPoolExecutor | None = None

    def measure(self, name: str, k: int, contestant: str) -> Row:
        """Measure one cell; where its process dies or must be ended, that is the outcome."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        cell: Row = {"data": name, "k": k, "contestant": contestant}
        asked = self._pool.submit(_measure_named, name, k, contestant)
        try:
            return asked.result(timeout=self._stop + START_UP)
        except BrokenProcessPool:
            self.close()
            return {**cell, "failed": "its process died"}
        except TimeoutError:
            self.close()
            return {**cell, "skipped": f"too slow: ended after {self._stop:g} s"}

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


def _measure_named(name: str, k: int, contestant: str) -> Row:
    """What the process of its own does; the other one watches the clock."""
    return measure(_loaded(name), k, _warm(contestant), 0.0)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--k", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--contestants", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--stop", type=float, default=90.0, help="seconds at which a run ends")


def cells(options: Options) -> Iterator[Row]:
    """Every contestant in every cell; the settings have what is known of each data set."""
    os.environ["NPROC"] = str(options.threads)  # what jax asks for its threads
    contestants = peers.installed((*entered.OURS, *entered.PEERS), options.contestants)
    peers.warm_up(contestants)
    options.settings |= {
        "ridge": entered.RIDGE,
        "slow": SLOW,
        "contestants": {c.name: {"settings": c.settings} for c in contestants},
        "sets": options.settings.get("sets", {}),
    }
    names, missing = data.available(QUICK if options.quick else options.data)
    options.missing.update(missing)
    for name in names:
        yield from of_set(load(name), contestants, options)


def of_set(
    dataset: data.Dataset, contestants: Sequence[peers.Contestant], options: Options
) -> Iterator[Row]:
    """All cells of a data set."""
    name, apart = dataset.name, Apart(options.stop)
    options.settings["sets"][name] = {
        "rows": dataset.X.shape[0],
        "features": dataset.X.shape[1],
        "classes": entered.class_codes(dataset)[0],
        "penalty": entered.penalty(dataset),
    }
    too_slow: dict[str, str] = {}
    for k in (k for k in options.k if k <= dataset.usable.size // 2):
        for contestant in contestants:
            about = {"data": name, "k": k, "contestant": contestant.name}
            if options.has(**about):
                continue
            if contestant.name in too_slow:
                yield {**about, "skipped": too_slow[contestant.name]}
                continue
            if contestant.name.startswith(entered.MAY_CRASH):
                cell = apart.measure(name, k, contestant.name)
            else:
                cell = measure(dataset, k, contestant, options.stop)
            if "skipped" in cell:
                too_slow[contestant.name] = f"{cell['skipped']}, at a smaller k"
            elif cell.get("seconds", 0.0) > SLOW:
                too_slow[contestant.name] = f"too slow: over {SLOW:g} s at a smaller k"
            yield cell
    apart.close()


PARTS = {"cells": cells}


def by_cell(record: Record) -> Table:
    """The cells of a record by data set and k, then by contestant."""
    table: Table = {}
    for cell in record["cells"]:
        table.setdefault((cell["data"], cell["k"]), {})[cell["contestant"]] = cell
    return table


def answers(row: dict[str, Row], package: str = "") -> list[Row]:
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

    def order(cell: Row) -> tuple[float, float]:
        worse = cell["objective"] > least * (1.0 + ROUNDING)
        return (cell["objective"] if worse else least, cell["seconds"])

    return sorted(found, key=order)


def entry(cell: Row | None, best: float) -> str:
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
            f"`python -m benchmarks likelihood`: milliseconds, and how far the deviance with its "
            f"ridge term ({record['ridge']:g}·(n − 1)·‖W‖², by scikit-learn's fit on the chosen "
            f"columns) is above the best. Of each peer the setting with the lowest objective in "
            f"the cell, by its name.",
            harness.markdown(header, rows),
            "\n".join([*objective_lines(record), *time_lines(record)]),
        ]
    )
