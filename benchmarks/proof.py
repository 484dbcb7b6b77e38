"""Proofs: how long until a set is known to be the best, and how far from it until then.

    python -m benchmarks.proof --full           every part, kept in results/proof.json
    python -m benchmarks.proof --only digits    a part, only printed
    python -m benchmarks.proof --only digits --add    a part, put into the kept record
    python -m benchmarks.proof --report         the tables of the kept record again

breast    breast_cancer, every k together
digits    small sizes and k = 40, with bound and gap over time; --full has the middle sizes
diabetes  diabetes with squares and products, every k up to 12 together
planted   ten true columns of 1,000, 5,000 and 20,000
shared    usps and srbct, from the folder of the data sets
leaps     beside plain leaps and bounds (leaps.py) and beside enumeration
threads   digits, k = 8, on one thread and on two
best      the twenty best sets
rules     under constraints
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import comb
from typing import Any

import numpy as np

import exactk
from benchmarks import data, harness
from benchmarks.leaps import best_subset
from benchmarks.proof_cells import (
    SAME,
    TIME_LIMIT,
    Terms,
    follow,
    prove,
    prove_sizes,
    row,
    same_optimum,
    say,
)
from benchmarks.proof_report import report
from benchmarks.scope import Record, Records, build, run_parts
from exactk.proof.best_first import relative_gap

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


def breast(terms: Terms) -> Records:
    """Every size of breast_cancer."""
    return {"breast": prove_sizes(data.load("breast_cancer"), 29, terms, BREAST_TARGET)}


def diabetes(terms: Terms) -> Records:
    """Every size up to 12 of the quadratic diabetes table."""
    return {"diabetes": prove_sizes(quadratic_diabetes(), 12, terms, DIABETES_TARGET)}


def digits(terms: Terms) -> Records:
    """Small sizes one by one, k = 40 from the number alone, and the middle sizes if asked for."""
    dataset = data.load("digits")
    records = [follow(dataset, k, terms, target) for k, target in DIGITS.items()]
    limit = terms.limit()
    whole = exactk.certify(build(dataset), 40, time_limit=limit, n_jobs=terms.threads)
    # The result of a proof that found a better set has the seconds of both.
    searched = whole.result.seconds - (whole.seconds if whole.improved else 0.0)
    records.append(
        row(
            dataset, whole, search_seconds=searched, proof_seconds=whole.seconds - searched,
            improved=whole.improved, target=None, limit=limit,
        )
    )  # fmt: skip
    found = {"digits": records}
    if terms.full:
        found["middle"] = [follow(dataset, k, terms) for k in MIDDLE]
    return found


def planted_columns(terms: Terms) -> Records:
    """Ten true columns among many, with a ridge."""
    records = []
    for d in PLANTED_COLUMNS:
        for seed in SEEDS:
            dataset, true = planted(d, seed)
            problem = exactk.Problem.from_arrays(
                dataset.X, dataset.y, ridge=PLANTED_RIDGE, task="regression"
            )
            target = PLANTED_TARGET if d == PLANTED_COLUMNS[0] else None
            records.append(
                prove(dataset, problem, PLANTED_TRUE, terms, target, true, ridge=PLANTED_RIDGE)
            )
    return {"planted": records}


def shared(terms: Terms) -> Records:
    """Small sizes of tables that are not a part of the package."""
    records = []
    for name, sizes in SHARED:
        for dataset in terms.sets([name]):
            records += [prove(dataset, build(dataset), k, terms) for k in sizes]
    return {"shared": records}


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


def leaps(terms: Terms) -> Records:
    """Nodes and seconds of plain leaps and bounds beside ours, both on one thread."""
    records = []
    for dataset, k in _races():
        ours = prove(dataset, build(dataset), k, terms, runs=RUNS, n_jobs=1)
        X, Y, limit = dataset.standardised, dataset.outputs, min(LEAPS_LIMIT, terms.time_limit)
        # It is told what a little more than the best is, and is left to find the set.
        ceiling = ours["objective"] * (1.0 + SAME)
        timing = harness.timed(partial(best_subset, X, Y, k, ceiling, limit), RUNS)
        theirs = timing.value
        if theirs.finished and ours["proven"]:
            graded = dataset.objective(dataset.usable[list(theirs.support)].tolist())
            assert abs(graded - ours["objective"]) <= SAME * graded, (dataset.name, k)
        records.append({
            **ours, "leaps_nodes": theirs.nodes, "leaps_priced": theirs.priced,
            "leaps_seconds": timing.best, "leaps_finished": theirs.finished,
            "node_ratio": theirs.nodes / max(ours["nodes"], 1),
            "time_ratio": timing.best / ours["proof_seconds"],
        })  # fmt: skip
    return {"leaps": records, "enumeration": enumeration(terms)}


def enumeration(terms: Terms) -> list[Record]:
    """Seconds of `exhaustive` beside ours."""
    dataset = data.load("digits")
    records = []
    for k in (2, 3, 4, 5):
        ours = prove(dataset, build(dataset), k, terms, runs=RUNS)
        run = partial(exactk.solve, build(dataset), k, "exhaustive", time_limit=terms.limit())
        timing = harness.timed(run, RUNS)
        records.append({
            **ours, "subsets": comb(len(dataset.usable), k), "enumeration_seconds": timing.best,
            "enumeration_finished": same_optimum(ours, timing.value),
            "time_ratio": timing.best / ours["proof_seconds"],
        })  # fmt: skip
    return records


def threads(terms: Terms) -> Records:
    """The same proof on one thread and on two, in turn: the shortest of three runs."""
    dataset = data.load("digits")
    problem = build(dataset)
    known = exactk.solve(problem, 8, effort=1.0)
    shortest: dict[int, exactk.Certificate] = {}
    for _ in range(3):
        for n in (1, 2):
            found = exactk.certify(problem, known, time_limit=terms.limit(), n_jobs=n)
            if n not in shortest or found.seconds < shortest[n].seconds:
                shortest[n] = found
    ratio = shortest[1].seconds / shortest[2].seconds
    records = [
        row(
            dataset, found, search_seconds=known.seconds, proof_seconds=found.seconds,
            n_jobs=n, ratio=ratio, target=None, limit=terms.limit(),
        )
        for n, found in shortest.items()
    ]  # fmt: skip
    return {"speedup": records}


def best(terms: Terms) -> Records:
    """The twenty best sets; how long the search alone takes is measured apart."""
    records = []
    for name, k in (("digits", 8), ("breast_cancer", 10)):
        dataset = data.load(name)
        search = exactk.solve(build(dataset), k, effort=1.0)
        found = exactk.best_sets(
            build(dataset), k, 20, time_limit=terms.limit(), n_jobs=terms.threads
        )
        for support, objective in zip(found.sets, found.objectives, strict=True):
            assert abs(dataset.objective(support) - objective) <= SAME * objective, (name, k)
        least = found.objectives[0]
        records.append({
            "data": name, "d": len(dataset.usable), "k": k, "n_best": 20,
            "n_found": len(found.sets), "objective": least, "last": found.objectives[-1],
            "lower": found.lower, "gap": relative_gap(found.lower, least),
            "proven": found.is_complete, "status": str(found.status), "nodes": found.nodes,
            "search_seconds": search.seconds, "proof_seconds": found.seconds - search.seconds,
            "target": None, "limit": terms.limit(),
        })  # fmt: skip
        say(records[-1])
    return {"best": records}


def _constraints(d: int, width: int, bound: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Rules of three kinds for columns that come in rows of so many."""
    rows = {f"row {i}": list(range(i * width, (i + 1) * width)) for i in range(d // width)}
    return {
        "family": {"quotas": {name: {"columns": row, **bound} for name, row in rows.items()}},
        "budget": {"costs": [1 + j % 5 for j in range(d)], "budget": 8},
        "groups": {"feature_groups": {f"pair {j}": [2 * j, 2 * j + 1] for j in range(d // 2)}},
    }


def rules(terms: Terms) -> Records:
    """Proofs under constraints, beside enumeration."""
    records = []
    # Means, errors and worst values; two lines of the image each.
    tables = (("breast_cancer", 10, {"at_least": 1}), ("digits", 16, {"at_most": 1}))
    for name, width, bound in tables:
        dataset = data.load(name)
        for kind, constraints in _constraints(dataset.X.shape[1], width, bound).items():
            problem = build(dataset).with_constraints(**constraints)
            found = prove(dataset, problem, 4, terms, constraint=kind)
            every = exactk.solve(problem, 4, "exhaustive", time_limit=terms.limit())
            records.append({
                **found, "enumeration_seconds": every.seconds,
                "enumeration_finished": same_optimum(found, every),
            })  # fmt: skip
    return {"rules": records}


PARTS: dict[str, Callable[[Any], Records]] = {
    "breast": breast,
    "digits": digits,
    "diabetes": diabetes,
    "planted": planted_columns,
    "shared": shared,
    "leaps": leaps,
    "threads": threads,
    "best": best,
    "rules": rules,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proof", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--full", action="store_true", help="the middle sizes of digits, too")
    parser.add_argument("--add", action="store_true", help="put the parts into the kept record")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--time-limit", type=float, default=TIME_LIMIT, help="seconds for a cell (300)"
    )
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    options = parser.parse_args(arguments)
    stored = harness.RESULTS / "proof.json"
    if options.report:
        print(report(json.loads(stored.read_text(encoding="utf-8"))))
        return
    harness.pin_threads(options.threads)
    terms = Terms(full=options.full, threads=options.threads, time_limit=options.time_limit)
    record: Record = harness.circumstances(options.threads)
    parts, took = run_parts(PARTS, options.only, terms)
    record |= parts
    whole = len(took) == len(PARTS) and options.full and options.time_limit >= TIME_LIMIT
    if options.add and stored.is_file():
        record = {**json.loads(stored.read_text(encoding="utf-8")), **record}
    if (options.add or whole) and not terms.missing:
        harness.write_record("proof", record)
    print(report(record))


if __name__ == "__main__":
    main()
