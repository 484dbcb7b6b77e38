"""The methods that the papers compare with: beside their public implementations, and how good.

    python -m benchmarks.comparison             every part, kept in results/comparison.json
    python -m benchmarks.comparison --quick     every part on small data, only printed
    python -m benchmarks.comparison --only speed
    python -m benchmarks.comparison --report    the tables of the kept record again

speed    ReliefF and mRMR against skrebate, skfeature-chappers and mrmr-selection
memory   Fisher score and t-test against one pass over the table
quality  every method on four data sets: accuracy of its columns, objective, time
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import exactk
from benchmarks import data, harness
from benchmarks.comparison_report import report
from benchmarks.ridge_leaderboard import Split
from benchmarks.scope import Record, Records, Scope, run_parts, solve
from exactk.methods import registry

SETS = ("srbct", "coil20", "isolet", "allaml")
NEIGHBOURS = 10
COLUMNS = 50
# Seconds after which a peer is stopped; the record then says how long it had.
PATIENCE = 60.0
QUALITY_SETS = ("srbct", "lymphoma", "coil20", "isolet")
QUALITY_SIZES = (10, 50)
TIME_LIMIT = 60.0
MEMORY_SHAPES = ((20_000, 1_000), (500, 20_000))

Scores = np.ndarray[Any, np.dtype[Any]]


def unit_ranges(dataset: data.Dataset) -> Scores:
    """The usable columns from 0 to 1: what ReliefF's differences are measured in."""
    X = dataset.X[:, dataset.usable]
    return np.asarray((X - X.min(axis=0)) / np.ptp(X, axis=0))


def levels(dataset: data.Dataset) -> Scores:
    """Below, within and above mean ± half a standard deviation."""
    Z = dataset.standardised
    return (Z > 0.5).astype(int) - (Z < -0.5).astype(int)


def ours(dataset: data.Dataset, k: int, method: str, **options: Any) -> Callable[[], Scores]:
    """From the raw table to the scores, or the order, of the usable columns."""

    def run() -> Scores:
        problem = exactk.Problem.from_arrays(
            dataset.X, dataset.y, task="classification", gram="columns"
        )
        result = solve(problem, k, method, **options)
        assert result.scores is not None
        if method == "mrmr":
            return np.searchsorted(dataset.usable, result.order)
        return result.scores[dataset.usable]

    return run


def skrebate_relieff(dataset: data.Dataset) -> Callable[[], Scores]:
    from skrebate import ReliefF

    X, y = unit_ranges(dataset), dataset.y.astype(int)
    model = ReliefF(n_neighbors=NEIGHBOURS, categorical_threshold=0, label_type="multiclass")
    return lambda: np.asarray(model.fit(X.copy(), y).feature_importances_)


def skfeature_relieff(dataset: data.Dataset) -> Callable[[], Scores]:
    from skfeature.function.similarity_based.reliefF import reliefF

    X, y = unit_ranges(dataset), dataset.y.astype(int)
    return lambda: np.asarray(reliefF(X, y, mode="raw", k=NEIGHBOURS))


def skfeature_mrmr(dataset: data.Dataset) -> Callable[[], Scores]:
    """What its `mrmr` calls: redundancy times a constant 0.8 in place of 1/|S|.

    `mrmr` itself turns the columns into ranks of ranks.
    """
    from skfeature.function.information_theoretical_based.LCSI import lcsi

    X, y = levels(dataset), dataset.y.astype(int)
    return lambda: np.asarray(lcsi(X, y, mode="index", gamma=0, n_selected_features=COLUMNS))


def mrmr_selection(dataset: data.Dataset) -> Callable[[], Scores]:
    import pandas as pd
    from mrmr import mrmr_classif

    X, y = pd.DataFrame(dataset.standardised), pd.Series(dataset.y)

    def run() -> Scores:
        return np.asarray(mrmr_classif(X, y, K=COLUMNS, show_progress=False, n_jobs=1))

    return run


def _answer(connection: Any, prepare: Callable[[data.Dataset], Callable[[], Scores]],
            dataset: data.Dataset) -> None:  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = prepare(dataset)
        connection.send("ready")
        timing = harness.timed(run, runs=3, budget=2.0)
    connection.send((timing.best, timing.value))


def patiently(
    prepare: Callable[[data.Dataset], Callable[[], Scores]], dataset: data.Dataset, patience: float
) -> tuple[float, Scores | None]:
    """Seconds and answer of a peer in a process of its own; no answer if it was stopped."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_answer, args=(there, prepare, dataset)
    )
    process.start()
    try:
        there.close()
        here.recv()
        if not here.poll(patience):
            return patience, None
        seconds, value = here.recv()
        return float(seconds), value
    finally:
        process.kill()
        process.join()


def agreement_of_scores(found: Scores, wanted: Scores) -> float:
    """Correlation of two lists of scores."""
    return float(np.corrcoef(found, wanted)[0, 1])


def agreement_of_orders(found: Scores, wanted: Scores) -> float:
    """Share of the columns of one list that the other has, too."""
    return len(set(found.tolist()) & set(wanted.tolist())) / len(found)


RACES: tuple[tuple[str, str, dict[str, Any], Callable[..., Any], Callable[..., float]], ...] = (
    ("relieff", "skfeature", {"n_neighbors": NEIGHBOURS}, skfeature_relieff, agreement_of_scores),
    ("relieff", "skrebate", {"n_neighbors": NEIGHBOURS}, skrebate_relieff, agreement_of_scores),
    ("mrmr", "skfeature", {"scheme": "mid", "width": 0.5}, skfeature_mrmr, agreement_of_orders),
    ("mrmr", "mrmr-selection", {"measure": "f", "scheme": "miq"}, mrmr_selection,
     agreement_of_orders),
)  # fmt: skip


def speed(scope: Scope) -> Records:
    """Our time from the raw table, theirs from one that is prepared."""
    records: list[Record] = []
    for dataset in scope.sets(SETS):
        for method, peer, options, prepare, agreement in RACES:
            # Scores do not depend on k; the fewer columns are fitted afterwards the better.
            k = COLUMNS if method == "mrmr" else 10
            mine = harness.timed(ours(dataset, k, method, **options), runs=25, budget=3.0)
            seconds, theirs = patiently(prepare, dataset, 10.0 if scope.quick else PATIENCE)
            records.append(
                {
                    "data": dataset.name,
                    "method": method,
                    "peer": peer,
                    "options": options,
                    "seconds": mine.best,
                    "peer_seconds": seconds,
                    "stopped": theirs is None,
                    "agreement": None if theirs is None else agreement(mine.value, theirs),
                }
            )
            print(records[-1], file=sys.stderr, flush=True)
    return {"speed": records}


def memory(scope: Scope) -> Records:
    """Fisher score and t-test from the raw table beside sums and squares of it by NumPy."""
    from sklearn.feature_selection import f_classif

    records: list[Record] = []
    for n, d in MEMORY_SHAPES:
        n, d = (n // 10, d) if scope.quick else (n, d)
        rng = np.random.default_rng(n)
        y = np.arange(n) % 5
        X = rng.standard_normal((n, d)) + 0.1 * rng.standard_normal((5, d))[y]
        # Means and scatter, which no score can do without: two passes.
        floor = harness.timed(lambda X=X: (X.sum(axis=0), np.einsum("ij,ij->j", X, X)), runs=9)
        row: Record = {"rows": n, "columns": d, "passes_seconds": floor.best}
        for method in ("fisher", "ttest"):

            def run(method: str = method, X: Any = X, y: Any = y) -> Any:
                problem = exactk.Problem.from_arrays(X, y, gram="columns")
                return solve(problem, 10, method).scores

            row[f"{method}_seconds"] = harness.timed(run, runs=9, budget=5.0).best
        row["f_classif_seconds"] = harness.timed(lambda X=X, y=y: f_classif(X, y), runs=5).best
        records.append(row)
    return {"memory": records}


def quality(scope: Scope) -> Records:
    """Columns of 60 % of each class, to classify the rest."""
    records: list[Record] = []
    methods = [name for name in registry.names() if name != "exhaustive"]
    if find_spec("torch") is None:
        absent = [name for name in methods if registry.method_class(name).extra == "deep"]
        print(f"left out, no torch: {', '.join(absent)}", file=sys.stderr)
        methods = [name for name in methods if name not in absent]
    for dataset in scope.sets(QUALITY_SETS):
        part = Split(dataset, np.random.default_rng(0))
        train = data.Dataset(dataset.name, part.X, part.y)
        for k in QUALITY_SIZES[:1] if scope.quick else QUALITY_SIZES:
            for method in methods:
                # exchange would search until its time is up.
                limit = None if method == "exchange" else 5.0 if scope.quick else TIME_LIMIT
                problem = exactk.Problem.from_arrays(train.X, train.y, task="classification")
                found = solve(problem, k, method, time_limit=limit)
                accuracy = part.scores(tuple(int(j) for j in found.support))
                records.append(
                    {
                        "data": dataset.name,
                        "k": k,
                        "method": method,
                        "family": registry.describe(method).family,
                        "objective": found.objective,
                        "total": found.total,
                        "status": str(found.status),
                        "seconds": found.seconds,
                        "nearest": accuracy[0],
                        "svm": accuracy[1],
                    }
                )
                print(dataset.name, k, method, f"{found.seconds:.2f} s", file=sys.stderr)
    return {"quality": records}


PARTS: dict[str, Callable[[Scope], Records]] = {
    "speed": speed,
    "memory": memory,
    "quality": quality,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="small data, not kept")
    parser.add_argument("--add", action="store_true", help="put the parts into the kept record")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    options = parser.parse_args(arguments)
    stored = harness.RESULTS / "comparison.json"
    if options.report:
        print(report(json.loads(stored.read_text(encoding="utf-8"))))
        return
    harness.pin_threads(options.threads)
    scope = Scope(quick=options.quick)
    record: Record = harness.circumstances(options.threads)
    parts, took = run_parts(PARTS, options.only, scope)
    record |= parts
    if options.add and not options.quick and not scope.missing:
        kept = json.loads(stored.read_text(encoding="utf-8")) if stored.is_file() else {}
        harness.write_record("comparison", {**kept, **record})
        record = {**kept, **record}
    elif len(took) == len(PARTS) and not options.quick and not scope.missing:
        harness.write_record("comparison", record)
    print(report(record))


if __name__ == "__main__":
    main()
