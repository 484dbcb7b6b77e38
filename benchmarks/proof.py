"""Proofs: how long until a set is known to be the best, and how far from it until then.

breast    breast_cancer, every k together
digits    small sizes and k = 40, with bound and gap over time
middle    digits, k = 15, 20, 25 and 30: five minutes each
diabetes  diabetes with squares and products, every k up to 12 together
planted   ten true columns of 1,000, 5,000 and 20,000
shared    usps and srbct, from the folder of the data sets
leaps     beside plain leaps and bounds (leaps.py)
enumeration  beside `exhaustive`
speedup   digits, k = 8, on one thread and on two
best      the twenty best sets
rules     under constraints
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import comb
from typing import Any

import numpy as np

import exactk
from benchmarks import data, harness
from benchmarks.data import build
from benchmarks.harness import Options, Record, Row, mark, markdown
from benchmarks.leaps import best_subset
from exactk.proof.best_first import relative_gap
from exactk.proof.run import Proof
from exactk.utils.monitor import Monitor, Progress

# Seconds that a proof may take, by the size.
DIGITS = {5: None, 6: None, 7: None, 8: 3.0, 9: None, 10: 60.0, 12: 600.0}
MIDDLE = (15, 20, 25, 30)
BREAST_TARGET, DIABETES_TARGET, PLANTED_TARGET = 1.0, 15.0, 120.0
PLANTED_ROWS, PLANTED_COLUMNS, PLANTED_TRUE, PLANTED_RIDGE = 500, (1_000, 5_000, 20_000), 10, 0.05
SEEDS = (0, 1, 2)
SHARED = (("usps", (4, 5)), ("srbct", (2, 3)))
# Seconds after which leaps and bounds is stopped; the record then says how far it came.
LEAPS_LIMIT = 60.0
LEAPS_SIZES = (5, 10)
LEAPS_COLUMNS = (15, 20, 25, 30, 40)
LEAPS_LARGE = 45
# Proofs beside others may take milliseconds: the shortest of so many runs, or a second of them.
RUNS = 5
TIME_LIMIT, QUICK_LIMIT = 300.0, 5.0
# Seconds at which the bound is noted.
MOMENTS = (1.0, 5.0, 20.0, 60.0, 300.0)
# Objectives of the same columns that differ by no more, as a share, differ by rounding.
SAME = 1e-8


def quadratic_diabetes() -> data.Dataset:
    """Diabetes with all squares and products; of columns that are alike the first, y in units."""
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import PolynomialFeatures

    X, y = load_diabetes(return_X_y=True)
    X = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    alike = np.triu(np.abs(np.corrcoef(X, rowvar=False)) > 0.99999, 1).any(axis=0)
    y = (y - y.mean()) / y.std(ddof=1)
    return data.Dataset("diabetes, quadratic", np.ascontiguousarray(X[:, ~alike]), y[:, None])


def planted(d: int, seed: int) -> tuple[data.Dataset, set[int]]:
    """Independent columns, ten of which make y with coefficients of 1 and −1, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((PLANTED_ROWS, d))
    true = rng.choice(d, PLANTED_TRUE, replace=False)
    y = X[:, true] @ rng.choice([-1.0, 1.0], PLANTED_TRUE) + rng.standard_normal(PLANTED_ROWS)
    return data.Dataset(f"planted, seed {seed}", X, y[:, None]), set(true.tolist())


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument(
        "--time-limit", type=float, default=TIME_LIMIT, help="seconds for a cell (300)"
    )


def limit_of(options: Options, target: float | None = None) -> float:
    """Seconds for one cell: a cell with a higher target has so much longer."""
    limit = QUICK_LIMIT if options.quick else options.time_limit
    return limit * max(1.0, (target or 0.0) / TIME_LIMIT)


def row(dataset: data.Dataset, certificate: exactk.Certificate, **more: Any) -> Row:
    """What every row has; the objective is held against a fit from the rows."""
    if certificate.ridge == 0:
        graded = dataset.objective(certificate.result.support.tolist())
        assert abs(graded - certificate.upper) <= SAME * (graded + dataset.total), dataset.name
    return {
        "data": dataset.name,
        "d": len(dataset.usable),
        "k": certificate.k,
        "objective": certificate.upper,
        "lower": certificate.lower,
        "gap": certificate.gap,
        "proven": certificate.proven,
        "status": str(certificate.status),
        "nodes": certificate.nodes,
        **more,
    }


def search(problem: exactk.Problem, k: int, limit: float) -> tuple[exactk.Result, float]:
    """Search as `certify` does with a number: what it found, and in how many seconds."""
    start = time.perf_counter()
    known = exactk.solve(problem, k, effort=1.0, time_limit=limit / 2)
    return known, time.perf_counter() - start


def prove(
    dataset: data.Dataset, problem: exactk.Problem, k: int, options: Options,
    target: float | None = None, true: set[int] | None = None, runs: int = 1,
    n_jobs: int | None = None, **more: Any,
) -> Row:  # fmt: skip
    """Search, then prove: a row with the seconds of both, and how many true columns were found.

    A proof of milliseconds may be made several times; the shortest counts.
    """
    limit = limit_of(options, target)
    known, searched = search(problem, k, limit)
    left = max(limit - searched, 0.0)
    timing = harness.timed(
        lambda: exactk.certify(
            problem, features=known, time_limit=left, n_jobs=n_jobs or options.threads
        ),
        runs,
    )
    certificate = timing.value
    if true is not None:
        more["true_found"] = len(true & set(certificate.result.support.tolist()))
    return row(
        dataset, certificate, search_seconds=searched, proof_seconds=timing.best,
        improved=certificate.improved, target=target, limit=limit, **more,
    )  # fmt: skip


def prove_sizes(dataset: data.Dataset, most: int, options: Options, target: float) -> list[Row]:
    """Prove every size up to one: a row for each, all with the seconds of all together."""
    problem = build(dataset)
    limit = limit_of(options, target)
    start = time.perf_counter()
    path = exactk.solve_path(problem, most, time_limit=limit / 4)
    searched = time.perf_counter() - start
    certified = exactk.certify_path(
        problem, path=path, time_limit=max(limit - searched, 0.0), n_jobs=options.threads
    )
    return [
        row(
            dataset, certificate, search_seconds=searched, proof_seconds=certified.seconds,
            improved=certificate.improved, target=target, limit=limit, together=len(certified),
        )
        for certificate in certified
    ]  # fmt: skip


class Course:
    """Bound and gap at some seconds of a proof, read whenever it reports."""

    def __init__(self, proof: Proof) -> None:
        self.proof, self.trace = proof, list[Row]()
        self._start = time.perf_counter()
        self._last: Row = {"lower": None, "gap": None, "nodes": 0}

    def __call__(self, progress: Progress) -> None:
        """Take note of a report."""
        self._pass(time.perf_counter() - self._start)
        lower, upper = self.proof.lower, self.proof.upper
        gap = relative_gap(lower, upper)
        self._last = {"lower": lower, "gap": gap, "nodes": progress.done}

    def end(self, certificate: exactk.Certificate) -> list[Row]:
        """The trace, with what was known at the end."""
        self._pass(certificate.seconds)
        last = {"lower": certificate.lower, "gap": certificate.gap, "nodes": certificate.nodes}
        return [*self.trace, {"seconds": certificate.seconds, **last}]

    def _pass(self, seconds: float) -> None:
        """Note what was known at the moments that have passed."""
        for moment in MOMENTS[len(self.trace) :]:
            if moment <= seconds:
                self.trace.append({"seconds": moment, **self._last})


def follow(dataset: data.Dataset, k: int, options: Options, target: float | None = None) -> Row:
    """As `prove`, with bound and gap over time; the search has its time apart."""
    problem, limit = build(dataset), limit_of(options, target)
    known, searched = search(problem, k, limit)
    start = time.perf_counter()
    proof = Proof(problem, known, 1e-6)
    course = Course(proof)
    proof.run(Monitor(limit, course), options.threads)
    certificate = proof.certificate(time.perf_counter() - start)
    return row(
        dataset, certificate, search_seconds=searched, proof_seconds=certificate.seconds,
        improved=certificate.improved, target=target, limit=limit, trace=course.end(certificate),
    )  # fmt: skip


def same_optimum(ours: Row, every: exactk.Result) -> bool:
    """Whether enumeration came to its end; if so, what is proven is what it found."""
    finished = str(every.status) == "optimal"
    if finished and ours["proven"]:
        assert abs(every.objective - ours["objective"]) <= SAME * every.objective, ours
    return finished


def breast(options: Options) -> Iterator[Row]:
    """Every size of breast_cancer."""
    yield from prove_sizes(data.load("breast_cancer"), 29, options, BREAST_TARGET)


def diabetes(options: Options) -> Iterator[Row]:
    """Every size up to 12 of the quadratic diabetes table."""
    yield from prove_sizes(quadratic_diabetes(), 12, options, DIABETES_TARGET)


def digits(options: Options) -> Iterator[Row]:
    """Small sizes one by one, and k = 40 from the number alone."""
    dataset = data.load("digits")
    for k, target in DIGITS.items():
        yield follow(dataset, k, options, target)
    limit = limit_of(options)
    whole = exactk.certify(build(dataset), k=40, time_limit=limit, n_jobs=options.threads)
    # The result of a proof that found a better set has the seconds of both.
    searched = whole.result.seconds - (whole.seconds if whole.improved else 0.0)
    yield row(
        dataset, whole, search_seconds=searched, proof_seconds=whole.seconds - searched,
        improved=whole.improved, target=None, limit=limit,
    )  # fmt: skip


def middle(options: Options) -> Iterator[Row]:
    """The sizes of digits that take longest."""
    for k in MIDDLE:
        yield follow(data.load("digits"), k, options)


def planted_columns(options: Options) -> Iterator[Row]:
    """Ten true columns among many, with a ridge."""
    for d in PLANTED_COLUMNS[:1] if options.quick else PLANTED_COLUMNS:
        for seed in SEEDS:
            dataset, true = planted(d, seed)
            problem = exactk.Problem.from_arrays(
                dataset.X, dataset.y, ridge=PLANTED_RIDGE, task="regression"
            )
            target = PLANTED_TARGET if d == PLANTED_COLUMNS[0] else None
            yield prove(dataset, problem, PLANTED_TRUE, options, target, true, ridge=PLANTED_RIDGE)


def shared(options: Options) -> Iterator[Row]:
    """Small sizes of tables that are not a part of the package."""
    for name, sizes in SHARED:
        for dataset in data.sets(options, [name]):
            for k in sizes:
                yield prove(dataset, build(dataset), k, options)


def _races() -> Iterator[tuple[data.Dataset, int]]:
    dataset = data.load("breast_cancer")
    for k in (3, *LEAPS_SIZES):
        yield dataset, k
    dataset = data.load("digits")
    for d in LEAPS_COLUMNS:
        first = data.Dataset(f"digits, first {d}", dataset.X[:, dataset.usable[:d]], dataset.y)
        for k in LEAPS_SIZES:
            yield first, k
    # Where only few are left out its bound is at its best.
    yield dataset, LEAPS_LARGE


def leaps(options: Options) -> Iterator[Row]:
    """Nodes and seconds of plain leaps and bounds beside ours, both on one thread."""
    for dataset, k in _races():
        ours = prove(dataset, build(dataset), k, options, runs=RUNS, n_jobs=1)
        X, Y, limit = dataset.standardised, dataset.outputs, min(LEAPS_LIMIT, limit_of(options))
        # It is told what a little more than the best is, and is left to find the set.
        ceiling = ours["objective"] * (1.0 + SAME)
        timing = harness.timed(partial(best_subset, X, Y, k, ceiling, limit), RUNS)
        theirs = timing.value
        if theirs.finished and ours["proven"]:
            graded = dataset.objective(dataset.usable[list(theirs.support)].tolist())
            assert abs(graded - ours["objective"]) <= SAME * graded, (dataset.name, k)
        yield {
            **ours, "leaps_nodes": theirs.nodes, "leaps_priced": theirs.priced,
            "leaps_seconds": timing.best, "leaps_finished": theirs.finished,
            "node_ratio": theirs.nodes / max(ours["nodes"], 1),
            "time_ratio": timing.best / ours["proof_seconds"],
        }  # fmt: skip


def enumeration(options: Options) -> Iterator[Row]:
    """Seconds of `exhaustive` beside ours."""
    dataset = data.load("digits")
    for k in (2, 3, 4, 5):
        ours = prove(dataset, build(dataset), k, options, runs=RUNS)
        run = partial(exactk.solve, build(dataset), k, "exhaustive", time_limit=limit_of(options))
        timing = harness.timed(run, RUNS)
        yield {
            **ours, "subsets": comb(len(dataset.usable), k), "enumeration_seconds": timing.best,
            "enumeration_finished": same_optimum(ours, timing.value),
            "time_ratio": timing.best / ours["proof_seconds"],
        }  # fmt: skip


def speedup(options: Options) -> Iterator[Row]:
    """The same proof on one thread and on two, in turn: the shortest of three runs."""
    dataset = data.load("digits")
    problem = build(dataset)
    known = exactk.solve(problem, 8, effort=1.0)
    shortest: dict[int, exactk.Certificate] = {}
    for _ in range(3):
        for n in (1, 2):
            found = exactk.certify(problem, features=known, time_limit=limit_of(options), n_jobs=n)
            if n not in shortest or found.seconds < shortest[n].seconds:
                shortest[n] = found
    ratio = shortest[1].seconds / shortest[2].seconds
    for n, found in shortest.items():
        yield row(
            dataset, found, search_seconds=known.seconds, proof_seconds=found.seconds,
            n_jobs=n, ratio=ratio, target=None, limit=limit_of(options),
        )  # fmt: skip


def best(options: Options) -> Iterator[Row]:
    """The twenty best sets; how long the search alone takes is measured apart."""
    for name, k in (("digits", 8), ("breast_cancer", 10)):
        dataset = data.load(name)
        search = exactk.solve(build(dataset), k, effort=1.0)
        found = exactk.best_sets(
            build(dataset), k=k, n_best=20, time_limit=limit_of(options), n_jobs=options.threads
        )
        for support, objective in zip(found.sets, found.objectives, strict=True):
            assert abs(dataset.objective(support) - objective) <= SAME * objective, (name, k)
        least = found.objectives[0]
        yield {
            "data": name, "d": len(dataset.usable), "k": k, "n_best": 20,
            "n_found": len(found.sets), "objective": least, "last": found.objectives[-1],
            "lower": found.lower, "gap": relative_gap(found.lower, least),
            "proven": found.is_complete, "status": str(found.status), "nodes": found.nodes,
            "search_seconds": search.seconds, "proof_seconds": found.seconds - search.seconds,
            "target": None, "limit": limit_of(options),
        }  # fmt: skip


def _constraints(d: int, width: int, bound: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Rules of three kinds for columns that come in rows of so many."""
    rows = {f"row {i}": list(range(i * width, (i + 1) * width)) for i in range(d // width)}
    return {
        "family": {"quotas": {name: {"columns": row, **bound} for name, row in rows.items()}},
        "budget": {"costs": [1 + j % 5 for j in range(d)], "budget": 8},
        "groups": {"feature_groups": {f"pair {j}": [2 * j, 2 * j + 1] for j in range(d // 2)}},
    }


def rules(options: Options) -> Iterator[Row]:
    """Proofs under constraints, beside enumeration."""
    # Means, errors and worst values; two lines of the image each.
    tables = (("breast_cancer", 10, {"at_least": 1}), ("digits", 16, {"at_most": 1}))
    for name, width, bound in tables:
        dataset = data.load(name)
        for kind, constraints in _constraints(dataset.X.shape[1], width, bound).items():
            problem = build(dataset).with_constraints(**constraints)
            found = prove(dataset, problem, 4, options, constraint=kind)
            every = exactk.solve(problem, 4, "exhaustive", time_limit=limit_of(options))
            yield {
                **found, "enumeration_seconds": every.seconds,
                "enumeration_finished": same_optimum(found, every),
            }  # fmt: skip


PARTS: dict[str, Callable[[Options], Iterator[Row]]] = {
    "breast": breast,
    "digits": digits,
    "middle": middle,
    "diabetes": diabetes,
    "planted": planted_columns,
    "shared": shared,
    "leaps": leaps,
    "enumeration": enumeration,
    "speedup": speedup,
    "best": best,
    "rules": rules,
}


# Parts whose rows are certificates and nothing else.
PLAIN = ("breast", "digits", "diabetes", "planted", "shared")


def seconds(value: float) -> str:
    """Seconds with about two digits below ten, and none after the point above."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def times(value: float, finished: bool) -> str:
    """A ratio; what was stopped would have needed more."""
    shown = f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
    return shown if finished else f"> {shown}"


def share(gap: float | None) -> str:
    """A gap in per cent."""
    if gap is None:
        return "–"
    return "0" if gap <= 1e-6 else f"{100 * gap:.2g} %"


def took(cell: Row) -> float:
    """Seconds of search and proof."""
    return float(cell["search_seconds"] + cell["proof_seconds"])


def target_of(cell: Row, proven: bool) -> str:
    """The target with its mark, if there is one."""
    if cell["target"] is None:
        return "–"
    return f"{cell['target']:g} {mark(proven and took(cell) <= cell['target'])}"


def name_of(cell: Row) -> str:
    """Name of the data, with what else belongs to it."""
    true = f" ({cell['true_found']} true columns found)" if "true_found" in cell else ""
    return f"{cell['data']}{true}"


def together(cells: Sequence[Row]) -> list[str]:
    """Sizes that were proven together, as one line."""
    first, last = cells[0], cells[-1]
    proven = sum(cell["proven"] for cell in cells)
    return [
        name_of(first), f"{first['d']:,}", f"{first['k']}–{last['k']}",
        f"{first['objective']:.4f}–{last['objective']:.4f}", "–",
        share(max(cell["gap"] for cell in cells)), f"{proven} of {len(cells)}",
        f"{sum(cell['nodes'] for cell in cells):,}", seconds(first["search_seconds"]),
        seconds(first["proof_seconds"]), target_of(first, proven == len(cells)),
    ]  # fmt: skip


def alone(cell: Row) -> list[str]:
    """One certificate as a line."""
    return [
        name_of(cell), f"{cell['d']:,}", f"{cell['k']}", f"{cell['objective']:.4f}",
        f"{cell['lower']:.4f}", share(cell["gap"]), "yes" if cell["proven"] else "no",
        f"{cell['nodes']:,}", seconds(cell["search_seconds"]), seconds(cell["proof_seconds"]),
        target_of(cell, cell["proven"]),
    ]  # fmt: skip


def certificates(record: Record) -> str:
    """All plain certificates in one table."""
    header = ["data", "d", "k", "objective", "lower bound", "gap", "proven", "nodes", "search, s",
              "proof, s", "target, s"]  # fmt: skip
    rows: list[list[str]] = []
    for part in PLAIN:
        cells = record.get(part, [])
        if cells and "together" in cells[0]:
            rows.append(together(cells))
        else:
            rows += [alone(cell) for cell in cells]
    return markdown(header, rows) if rows else ""


def middle_table(cells: Sequence[Row]) -> str:
    """Gap over time of the sizes that take longest."""
    times_read = sorted({at["seconds"] for cell in cells for at in cell["trace"][:-1]})
    header = ["digits", "objective", *(f"{at:g} s" for at in times_read), "at the end", "nodes"]
    rows = []
    for cell in cells:
        *course, last = cell["trace"]
        known = {at["seconds"]: share(at["gap"]) for at in course}
        end = "proven" if cell["proven"] else share(last["gap"])
        rows.append([
            f"k = {cell['k']}", f"{cell['objective']:.4f}",
            *(known.get(at, "proven" if cell["proven"] else "–") for at in times_read),
            f"{end} ({seconds(last['seconds'])} s)", f"{cell['nodes']:,}",
        ])  # fmt: skip
    return "Gap over time, from the start of the proof:\n\n" + markdown(header, rows)


def leaps_table(cells: Sequence[Row]) -> str:
    """Nodes and seconds of leaps and bounds beside ours."""
    header = ["data", "d", "k", "objective", "nodes", "leaps and bounds", "times", "proof, s",
              "leaps and bounds, s", "times"]  # fmt: skip
    rows = [
        [
            cell["data"], f"{cell['d']}", f"{cell['k']}", f"{cell['objective']:.4f}",
            f"{cell['nodes']:,}", f"{cell['leaps_nodes']:,}",
            times(cell["node_ratio"], cell["leaps_finished"]), seconds(cell["proof_seconds"]),
            seconds(cell["leaps_seconds"]), times(cell["time_ratio"], cell["leaps_finished"]),
        ]
        for cell in cells
    ]  # fmt: skip
    return (
        "Beside plain leaps and bounds in NumPy, which is told the objective of the best set, both "
        "on one thread:\n\n" + markdown(header, rows)
    )


def enumeration_table(cells: Sequence[Row]) -> str:
    """Seconds of `exhaustive` beside ours."""
    header = ["data", "k", "objective", "nodes", "subsets", "proof, s", "enumeration, s", "times"]
    rows = [
        [
            cell["data"], f"{cell['k']}", f"{cell['objective']:.4f}", f"{cell['nodes']:,}",
            f"{cell['subsets']:,}", seconds(cell["proof_seconds"]),
            seconds(cell["enumeration_seconds"]),
            times(cell["time_ratio"], cell["enumeration_finished"]),
        ]
        for cell in cells
    ]  # fmt: skip
    return 'Beside `method="exhaustive"`:\n\n' + markdown(header, rows)


def speedup_table(cells: Sequence[Row]) -> str:
    """One thread beside two."""
    one, two = cells
    end = "" if one["proven"] and two["proven"] else " (not proven)"
    return (
        f"{one['data']}, k = {one['k']}: {seconds(one['proof_seconds'])} s and {one['nodes']:,} "
        f"nodes on one thread, {seconds(two['proof_seconds'])} s and {two['nodes']:,} nodes on "
        f"two, {one['ratio']:.2f} times faster{end}."
    )


def best_table(cells: Sequence[Row]) -> str:
    """The best sets of one size."""
    header = ["data", "k", "sets", "best", "last", "complete", "nodes", "search, s", "proof, s"]
    rows = [
        [
            cell["data"], f"{cell['k']}", f"{cell['n_found']}", f"{cell['objective']:.4f}",
            f"{cell['last']:.4f}", "yes" if cell["proven"] else "no", f"{cell['nodes']:,}",
            seconds(cell["search_seconds"]), seconds(cell["proof_seconds"]),
        ]
        for cell in cells
    ]  # fmt: skip
    return "The best sets of one size:\n\n" + markdown(header, rows)


def rules_table(cells: Sequence[Row]) -> str:
    """Proofs under constraints."""
    header = ["data", "constraint", "k", "objective", "gap", "proven", "nodes", "search, s",
              "proof, s", "enumeration, s"]  # fmt: skip
    rows = [
        [
            cell["data"], cell["constraint"], f"{cell['k']}", f"{cell['objective']:.4f}",
            share(cell["gap"]), "yes" if cell["proven"] else "no", f"{cell['nodes']:,}",
            seconds(cell["search_seconds"]), seconds(cell["proof_seconds"]),
            ("" if cell["enumeration_finished"] else "> ") + seconds(cell["enumeration_seconds"]),
        ]
        for cell in cells
    ]  # fmt: skip
    return "Under constraints:\n\n" + markdown(header, rows)


TABLES: dict[str, Callable[[Sequence[Row]], str]] = {
    "middle": middle_table,
    "leaps": leaps_table,
    "enumeration": enumeration_table,
    "speedup": speedup_table,
    "best": best_table,
    "rules": rules_table,
}


def report(record: Record) -> str:
    """The record as Markdown: the parts that it has."""
    parts = [
        f"{record['date']}, {record['processor']}, {record['threads']} threads "
        f"(`python -m benchmarks proof`).",
        certificates(record),
    ]
    parts += [table(record[part]) for part, table in TABLES.items() if record.get(part)]
    return "\n\n".join(part for part in parts if part)
