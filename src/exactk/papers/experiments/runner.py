"""Runs an experiment: every cell that the store does not have yet, each recorded as it ends."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from exactk.errors import InputError
from exactk.papers.experiments.cells import Cell, cells
from exactk.papers.experiments.environment import machine, versions
from exactk.papers.experiments.eta import TimeEstimate
from exactk.papers.experiments.merge import merge_records, setup_of
from exactk.papers.experiments.pool import Outcome, Pool, Task
from exactk.papers.experiments.recipe import Recipe
from exactk.papers.experiments.store import SCHEMA, Store, to_jsonable
from exactk.params import Integer, Number

__all__ = ["Plan", "RunProgress", "RunSummary", "describe_cell", "hard_limit", "plan", "run"]

logger = logging.getLogger(__name__)

Record = dict[str, Any]

# What a worker calls for a cell.
MEASURE = "exactk.papers.experiments.protocols:run_cell"
# Solves may look at the clock only between iterations; loading and grading take time as well.
LENIENCE = 2.0
AROUND_SECONDS = 60.0


@dataclass(frozen=True)
class DatasetInfo:
    """What a record says of its data, known also if the cell crashes."""

    rows: int
    features: int
    classes: int | None
    checksum: str


@dataclass(frozen=True)
class Plan:
    """What a run would do.

    Attributes
    ----------
    todo : dict
        Key → cell, for the cells that have no record yet.
    reused : tuple of str
        Keys of those that have one.
    facts : dict
        Data set → what its records say of it.
    left_out : dict
        Data set or method that is not here → how to get it.
    """

    todo: dict[str, Cell]
    reused: tuple[str, ...]
    facts: dict[str, DatasetInfo]
    left_out: dict[str, str]


@dataclass(frozen=True)
class RunProgress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Cells of this run; those of earlier runs are not counted.
    remaining : float or None
        Seconds to go, from the times of like cells; None before anything is known.
    running : tuple of str
        The cells under way.
    record : dict or None
        What was just stored.
    """

    done: int
    total: int
    remaining: float | None
    running: tuple[str, ...]
    record: Record | None = None


@dataclass
class RunSummary:
    """What a run did.

    Attributes
    ----------
    recipe : str
    reused : int
        Cells that an earlier run had recorded.
    done, failed, time_limit : int
        Cells of this run, by their status.
    reasons : dict
        (method, reason) → data sets, for cells that failed or were late, in this run or before.
    left_out : dict
        Data set or method that is not here → how to get it.
    """

    recipe: str
    reused: int = 0
    done: int = 0
    failed: int = 0
    time_limit: int = 0
    reasons: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def count(self, record: Record) -> None:
        """Count what was just recorded."""
        setattr(self, record["status"], getattr(self, record["status"]) + 1)
        self.explain(record)

    def explain(self, record: Record) -> None:
        """Note why a cell is not done."""
        if record["status"] != "done":
            where = self.reasons.setdefault((record["method"], record["reason"]), [])
            if record["dataset"] not in where:
                where.append(record["dataset"])


def run(
    recipe: Recipe,
    store: Store | str | os.PathLike[str],
    *,
    jobs: int = 1,
    time_limit: float | None = None,
    retry_failed: bool = False,
    seed: int = 0,
    on_progress: Callable[[RunProgress], None] | None = None,
) -> RunSummary:
    """Measure every cell of an experiment that has no record yet.

    A record is on the disk before the next cell of its worker begins, so a run that was killed is
    resumed by the same call. What fails, crashes or is late is recorded with the reason.

    Parameters
    ----------
    recipe : Recipe
    store : Store or path
    jobs : int
        Cells at a time, each in a process with one thread. One where times are the point.
    time_limit : float or None
        Seconds for one solve; that of the recipe by default. A cell that does not come back long
        after is ended, see `hard_limit`.
    retry_failed : bool
        Run cells again that failed or were late.
    seed : int
        Decides all splits and random starts, together with data set and repeat.
    on_progress : callable, optional
        Called with a `RunProgress` when a cell starts and when it ends.

    Returns
    -------
    RunSummary
    """
    Integer(1)("jobs", jobs)
    Integer(0)("seed", seed)
    Number("(0, inf)", none="that of the recipe")("time_limit", time_limit)
    store = store if isinstance(store, Store) else Store(store)
    limit = recipe.time_limit if time_limit is None else time_limit
    if recipe.exclusive and jobs > 1:
        logger.info("%s measures time: its cells run one at a time", recipe.name)
        jobs = 1
    with store.writing():
        todo = plan(recipe, store, seed=seed, retry_failed=retry_failed)
        summary = RunSummary(recipe.name, reused=len(todo.reused), left_out=todo.left_out)
        reused = set(todo.reused)
        before = [record for record in store.records() if record.get("key") in reused]
        for record in before:
            summary.explain(record)
        if todo.todo or todo.reused:
            _write_definition(recipe, store, todo, seed)
        guess = TimeEstimate(before, todo.todo.values(), jobs)
        running: dict[str, str] = {}

        def tell(record: Record | None = None) -> None:
            if on_progress is not None:
                counted = summary.done + summary.failed + summary.time_limit
                on_progress(
                    RunProgress(
                        counted, len(todo.todo), guess.seconds(), tuple(running.values()), record
                    )
                )

        def start(task: Task) -> None:
            running[task.key] = describe_cell(todo.todo[task.key])
            tell()

        tasks = [
            Task(key, (cell, limit), hard_limit(cell, limit)) for key, cell in todo.todo.items()
        ]
        with Pool(MEASURE, min(jobs, max(1, len(tasks)))) as pool:
            for outcome in pool.run(tasks, start):
                cell = todo.todo[outcome.key]
                record = _record(recipe, cell, todo.facts[cell.dataset], outcome, seed)
                store.append(record)
                running.pop(outcome.key, None)
                summary.count(record)
                guess.add_cell(record)
                tell(record)
    return summary


def plan(recipe: Recipe, store: Store, *, seed: int = 0, retry_failed: bool = False) -> Plan:
    """Look what is to be done, what is there, and which data are absent.

    Raises
    ------
    InputError
        If a data set has a name that nobody knows, cannot be read, or has no classes where
        they are needed.
    """
    facts, left_out = _data(recipe.datasets)
    for name, known in facts.items():
        if recipe.protocol == "classify" and known.classes is None:
            raise InputError(
                f"data set {name!r} has numbers as target, and recipe {recipe.name!r} needs "
                "classes (protocol 'classify')", parameter="datasets",
                hint="leave it out, or use protocol 'regress'",
            )  # fmt: skip
    lacking = {variant.label: variant.lacks() for variant in recipe.methods}
    left_out |= {label: how for label, how in lacking.items() if how}
    done = store.done_keys(retry_failed=retry_failed)
    keyed = {
        cell.key(facts[cell.dataset].checksum): cell
        for cell in cells(recipe, seed)
        if cell.dataset in facts and not lacking[cell.variant.label]
    }
    return Plan(
        {key: cell for key, cell in keyed.items() if key not in done},
        tuple(key for key in keyed if key in done),
        facts,
        left_out,
    )


def hard_limit(cell: Cell, time_limit: float) -> float:
    """Return the seconds after which a worker is ended that does not look at the clock itself.

    Every solve of the cell may take twice its limit, those that tune parameters included; a
    minute is for loading and grading.
    """
    settings = len(cell.variant.settings())
    folds = cell.measure.tune_folds if settings > 1 else 0
    solves = len(cell.sizes) * (1 + settings * folds)
    return LENIENCE * time_limit * solves + AROUND_SECONDS


def _data(names: Sequence[str]) -> tuple[dict[str, DatasetInfo], dict[str, str]]:
    """Return the facts of the data sets that are here, and how to get the others."""
    from exactk.papers import datasets

    here, missing = datasets.available(names)
    left_out = {}
    for name in missing:
        if name not in datasets.names():
            # A mistake, not data that are elsewhere: this says what is known.
            datasets.load(name)
        entry = datasets.describe(name)
        left_out[name] = f"exactk papers datasets fetch {name}" if entry.build else entry.how
    facts = {}
    for name in here:
        path = datasets.find(name)
        stat = path.stat() if path else None
        facts[name] = _facts(name, path, stat and (stat.st_mtime_ns, stat.st_size))
    return facts, left_out


@cache
def _facts(name: str, path: Path | None, state: tuple[int, int] | None) -> DatasetInfo:
    """Load a data set for what is to be known of it, once as long as its file is the same."""
    from exactk.papers import datasets

    data = datasets.load(name)
    rows, features = data.X.shape
    return DatasetInfo(rows, features, data.n_classes, data.checksum)


def _write_definition(recipe: Recipe, store: Store, todo: Plan, seed: int) -> None:
    now = {
        "type": "recipe",
        "schema": SCHEMA,
        "name": recipe.name,
        "definition": recipe.to_dict(),
        "setups": {cell.variant.label: setup_of(cell) for cell in cells(recipe, seed)},
        "checksums": {name: facts.checksum for name, facts in todo.facts.items()},
    }
    earlier = (r for r in store.records() if r["type"] == "recipe" and r["name"] == recipe.name)
    before = next(earlier, None)
    record = to_jsonable(merge_records(before, to_jsonable(now)))
    if record != before:
        store.append(record)


def _record(
    recipe: Recipe, cell: Cell, facts: DatasetInfo, outcome: Outcome, run_seed: int
) -> Record:
    """Put together what the worker measured and what is known without it."""
    body: Mapping[str, Any] = outcome.value if outcome.status == "done" else {}
    status, reason = body.get("status", outcome.status), body.get("reason", outcome.reason)
    results = body.get("results", [])
    if body.get("checksum", facts.checksum) != facts.checksum:
        status, results = "failed", []
        reason = f"the data of {cell.dataset!r} changed during the run"
    return {
        "type": "cell",
        "schema": SCHEMA,
        "key": outcome.key,
        "recipe": recipe.name,
        "protocol": recipe.protocol,
        "dataset": cell.dataset,
        "rows": facts.rows,
        "features": facts.features,
        "classes": facts.classes,
        "checksum": facts.checksum,
        "method": cell.variant.label,
        "name": cell.variant.method,
        "options": dict(cell.variant.options),
        "ridge": cell.variant.ridge,
        "setup": setup_of(cell),
        "sizes": list(cell.sizes),
        "repeat": cell.repeat,
        "seed": cell.seed,
        "run_seed": run_seed,
        "status": status,
        "reason": reason,
        "seconds": body.get("seconds"),
        "wall": round(outcome.wall, 4),
        "results": results,
        "machine": machine(),
        "versions": versions(),
        "finished": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def describe_cell(cell: Cell) -> str:
    """Return a cell in a few words."""
    sizes = f"k={cell.sizes[0]}" + (f"…{cell.sizes[-1]}" if len(cell.sizes) > 1 else "")
    return f"{cell.dataset} · {cell.variant.label} · {sizes} · repeat {cell.repeat}"
