"""The methods that the papers compare with: beside their public implementations, and how good.

speed    ReliefF and mRMR against skrebate, skfeature-chappers and mrmr-selection
memory   Fisher score and t-test against one pass over the table
quality  every method on four data sets: accuracy of its columns, objective, time
"""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import exactk
from benchmarks import data, harness
from benchmarks.data import solve
from benchmarks.harness import Options, Record, Row, geometric_mean, markdown, milliseconds
from benchmarks.ridge import Split
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
FASTER = 20.0
# What a status other than converged looks like in a table.
MARKS = {"max_iter": " †", "time_limit": " ‡", "failed": " §"}

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


def speed(options: Options) -> Iterator[Row]:
    """Our time from the raw table, theirs from one that is prepared."""
    for dataset in data.sets(options, SETS):
        for method, peer, settings, prepare, agreement in RACES:
            # Scores do not depend on k; the fewer columns are fitted afterwards the better.
            k = COLUMNS if method == "mrmr" else 10
            mine = harness.timed(ours(dataset, k, method, **settings), runs=25, budget=3.0)
            seconds, theirs = patiently(prepare, dataset, 10.0 if options.quick else PATIENCE)
            yield {
                "data": dataset.name,
                "method": method,
                "peer": peer,
                "options": settings,
                "seconds": mine.best,
                "peer_seconds": seconds,
                "stopped": theirs is None,
                "agreement": None if theirs is None else agreement(mine.value, theirs),
            }


def memory(options: Options) -> Iterator[Row]:
    """Fisher score and t-test from the raw table beside sums and squares of it by NumPy."""
    from sklearn.feature_selection import f_classif

    for n, d in MEMORY_SHAPES:
        n, d = (n // 10, d) if options.quick else (n, d)
        rng = np.random.default_rng(n)
        y = np.arange(n) % 5
        X = rng.standard_normal((n, d)) + 0.1 * rng.standard_normal((5, d))[y]
        # Means and scatter, which no score can do without: two passes.
        floor = harness.timed(lambda X=X: (X.sum(axis=0), np.einsum("ij,ij->j", X, X)), runs=9)
        row: Row = {"rows": n, "columns": d, "passes_seconds": floor.best}
        for method in ("fisher", "ttest"):

            def run(method: str = method, X: Any = X, y: Any = y) -> Any:
                problem = exactk.Problem.from_arrays(X, y, gram="columns")
                return solve(problem, 10, method).scores

            row[f"{method}_seconds"] = harness.timed(run, runs=9, budget=5.0).best
        row["f_classif_seconds"] = harness.timed(lambda X=X, y=y: f_classif(X, y), runs=5).best
        yield row


def quality(options: Options) -> Iterator[Row]:
    """Columns of 60 % of each class, to classify the rest."""
    methods = [name for name in registry.names() if name != "exhaustive"]
    if find_spec("torch") is None:
        absent = [name for name in methods if registry.method_class(name).extra == "deep"]
        print(f"left out, no torch: {', '.join(absent)}", file=sys.stderr)
        methods = [name for name in methods if name not in absent]
    for dataset in data.sets(options, QUALITY_SETS):
        part = Split(dataset, np.random.default_rng(0))
        train = data.Dataset(dataset.name, part.X, part.y)
        for k in QUALITY_SIZES[:1] if options.quick else QUALITY_SIZES:
            for method in methods:
                # exchange would search until its time is up.
                limit = None if method == "exchange" else 5.0 if options.quick else TIME_LIMIT
                problem = exactk.Problem.from_arrays(train.X, train.y, task="classification")
                found = solve(problem, k, method, time_limit=limit)
                accuracy = part.scores(tuple(int(j) for j in found.support))
                yield {
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


PARTS = {"speed": speed, "memory": memory, "quality": quality}


def speed_table(rows: list[Row]) -> str:
    """Milliseconds of both, and how many times faster."""
    lines = []
    for row in rows:
        times = row["peer_seconds"] / row["seconds"]
        agreement = row["agreement"]
        lines.append(
            [
                row["data"],
                row["method"],
                row["peer"],
                milliseconds(row["seconds"]),
                ("> " if row["stopped"] else "") + milliseconds(row["peer_seconds"]),
                ("> " if row["stopped"] else "") + f"{times:,.0f}",
                "–" if agreement is None else f"{agreement:.4f}",
            ]
        )
    table = markdown(
        ["data", "method", "peer", "ms", "peer ms", "times faster", "agreement"], lines
    )
    least = min(row["peer_seconds"] / row["seconds"] for row in rows)
    verdict = "Reached" if least >= FASTER else "Missed"
    return (
        f"{table}\n\n{verdict}: at least {FASTER:g} times faster than each peer; the least is "
        f"{least:.1f} times."
    )


def memory_table(rows: list[Row]) -> str:
    """Milliseconds, and multiples of what two passes by NumPy take."""
    lines = []
    for row in rows:
        floor = row["passes_seconds"]
        lines.append(
            [f"{row['rows']:,} × {row['columns']:,}", milliseconds(floor)]
            + [
                f"{milliseconds(row[f'{name}_seconds'])} ({row[f'{name}_seconds'] / floor:.1f})"
                for name in ("fisher", "ttest", "f_classif")
            ]
        )
    return markdown(
        ["table", "sum and sum of squares, ms", "fisher (times)", "ttest (times)",
         "scikit-learn f_classif (times)"], lines,
    )  # fmt: skip


def standings(rows: list[Row]) -> list[Row]:
    """Methods by mean rank of their accuracy over data sets, sizes and classifiers."""
    cells = sorted({(row["data"], row["k"]) for row in rows})
    methods = list(dict.fromkeys(row["method"] for row in rows))
    at = {(row["method"], row["data"], row["k"]): row for row in rows}
    best = {
        cell: min(row["objective"] for row in rows if (row["data"], row["k"]) == cell)
        for cell in cells
    }
    ranks: dict[str, list[float]] = {method: [] for method in methods}
    for cell in cells:
        for judge in ("nearest", "svm"):
            values = np.array([at[method, *cell][judge] for method in methods])
            for method, value in zip(methods, values, strict=True):
                ranks[method].append(1 + (values > value).sum() + ((values == value).sum() - 1) / 2)
    found = []
    for method in sorted(methods, key=lambda name: float(np.mean(ranks[name]))):
        mine = [at[method, *cell] for cell in cells]
        nearest, svm = (np.mean([row[judge] for row in mine]) for judge in ("nearest", "svm"))
        above = [row["objective"] / best[row["data"], row["k"]] - 1.0 for row in mine]
        found.append(
            {
                "method": method,
                "marks": "".join(sorted({MARKS.get(row["status"], "") for row in mine})),
                "rank": float(np.mean(ranks[method])),
                "accuracy": 100 * np.mean([(row["nearest"] + row["svm"]) / 2 for row in mine]),
                "nearest": 100 * nearest,
                "svm": 100 * svm,
                "above": float(np.median(above)),
                "seconds": geometric_mean(row["seconds"] for row in mine),
            }
        )
    return found


def quality_table(rows: list[Row]) -> str:
    """The standings as a table."""
    cells = sorted({(row["data"], row["k"]) for row in rows})
    lines = [
        [
            f"{row['method']}{row['marks']}",
            f"{row['rank']:.1f}",
            f"{row['accuracy']:.1f}",
            f"{row['nearest']:.1f}",
            f"{row['svm']:.1f}",
            f"+{100 * row['above']:,.0f} %",
            milliseconds(row["seconds"]),
        ]
        for row in standings(rows)
    ]
    header = [
        "method",
        "mean rank",
        "accuracy",
        "1-NN",
        "SVM",
        "objective (median)",
        "ms (geo. mean)",
    ]
    named = ", ".join(f"{name} k={k}" for name, k in cells)
    return f"{markdown(header, lines)}\n\nCells: {named}. † iterations ran out, ‡ time, § diverged."


TABLES = {"speed": speed_table, "memory": memory_table, "quality": quality_table}


def report(record: Record) -> str:
    """Markdown for the parts that a record has."""
    return "\n\n".join(table(record[part]) for part, table in TABLES.items() if part in record)
