"""The papers' methods: what their forms here gain over the printed ones, and how good they are.

    python -m benchmarks.papers             every part, kept in results/papers.json
    python -m benchmarks.papers --quick     every part on small sizes, only printed
    python -m benchmarks.papers --only cdlsr table2
    python -m benchmarks.papers --only nmapg --add    measured anew, in place of the part kept
    python -m benchmarks.papers --report    the tables of the kept record again

cdlsr    a loop over candidates, as printed, against ours, from the same supports
ipfs     eq. 10 and 11 with inverses, as printed, against ours: time and the course of v
scaling  time against the number of columns, and what an iteration costs in passes over X
nmapg    iterations with the spectral step against iterations with the paper's
gsrfs    how the system shrinks; mtfs beside scikit-learn's MultiTaskLasso
table2   Table 2 of CD-LSR again
quality  each of them on eight data sets
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from sklearn.linear_model import MultiTaskLasso

import exactk
from benchmarks import data, harness
from benchmarks.literal import cdlsr, ipfs
from benchmarks.papers_report import PUBLISHED, report
from benchmarks.ridge_leaderboard import Split
from benchmarks.scope import K, Record, Records, Scope, build, course, run_parts, solve
from exactk.papers.methods.standard_table import standard_table

SCALING_ROWS, SCALING_CLASSES = 200, 3
SCALING_COLUMNS = (1_000, 2_000, 4_000, 8_000)
# With tol=0 every run makes all of its iterations.
SCALING: dict[str, Record] = {
    "cdlsr": {"n_starts": 5},
    "ipfs": {"max_iter": 20, "tol": 0.0},
    "rpfs": {"max_iter": 100, "tol": 0.0},
    "nmapg": {"max_iter": 100, "tol": 0.0},
    "gsrfs": {"max_iter": 20, "tol": 0.0},
}
STEPPED = ("rpfs", "nmapg", "gsrfs")
NMAPG_SETS = ("warppie10p", "lymphoma", "isolet", "coil20", "leukemia", "yale")
NMAPG = {"algorithm": 1, "gamma": 1.0, "rho": 0.01, "mu": 0.01}
GSRFS_SETS = ("srbct", "allaml")
GSRFS_ORDERS = ((2.0, 0.5), (1.0, 1.0))
GSRFS_SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)
# The defaults of both libraries, and values at which both should be at the optimum.
LASSO_TOLERANCES = {"default": (1e-4, 1e-4), "tight": (1e-9, 1e-10)}
QUALITY_SETS = (
    "srbct", "allaml", "lymphoma", "warppie10p", "jaffe", "coil20", "isolet", "digits",
)  # fmt: skip
QUALITY_METHODS = (
    "exchange", "greedy", "cdlsr", "ipfs", "rpfs", "nmapg", "pgd", "gsrfs", "mtfs", "rfs", "erfs",
    "rk1u",
)  # fmt: skip
TIME_LIMIT = 60.0


def generated(d: int) -> data.Dataset:
    """Classes of equal size whose means differ in twenty columns."""
    rng = np.random.default_rng(d)
    y = np.arange(SCALING_ROWS) % SCALING_CLASSES
    X = rng.standard_normal((SCALING_ROWS, d))
    X[:, rng.choice(d, 20, replace=False)] += rng.standard_normal((SCALING_CLASSES, 20))[y]
    return data.Dataset(f"generated {d}", X, y)


def scaling(scope: Scope) -> Records:
    """Seconds from the raw table against the number of columns, and an iteration in passes.

    A pass is Xᵀ @ R with R of n × c, the least that an iteration on all columns can do.
    """
    times: list[Record] = []
    passes: list[Record] = []
    for d in SCALING_COLUMNS[:2] if scope.quick else SCALING_COLUMNS:
        dataset = generated(d)
        for method, options in SCALING.items():

            def run(m: str = method, o: Record = options, s: data.Dataset = dataset) -> None:
                solve(build(s), K, m, **o)

            best = harness.timed(run, runs=2 if scope.quick else 5, budget=10.0).best
            times.append({"method": method, "columns": d, "seconds": best})
        problem = build(dataset)
        table = standard_table(problem)
        one = harness.timed(lambda t=table: t.X.T @ t.Y, runs=50).best
        for method in STEPPED:
            most = SCALING[method]["max_iter"]
            taken = course(problem, K, method, most, tol=0.0)
            passes.append(
                {
                    "method": method,
                    "columns": d,
                    "pass_seconds": one,
                    "setup_seconds": taken.setup,
                    "iteration_seconds": statistics.median(taken.seconds),
                }
            )
    return {"scaling": times, "passes": passes}


def nmapg(scope: Scope) -> Records:
    """Iterations with step="spectral" to the F_μ that step="paper" ends with (section 6.2)."""
    records: list[Record] = []
    for dataset in scope.sets(NMAPG_SETS, quick=2):
        problem = build(dataset)
        most = 100 if scope.quick else 1_000
        paper = solve(problem, K, "nmapg", step="paper", max_iter=most, **NMAPG)
        ours = solve(problem, K, "nmapg", step="spectral", max_iter=most, tol=0.0, **NMAPG)
        goal = paper.trace[-1]
        needed = next((t for t, f in enumerate(ours.trace, start=1) if f <= goal), None)
        records.append(
            {
                "data": dataset.name,
                "iterations": paper.n_iter,
                "status": str(paper.status),
                "value": goal,
                "needed": needed,
                "spectral_value": ours.trace[-1],
            }
        )
    return {"nmapg": records}


def gsrfs(scope: Scope) -> Records:
    """Rows of W that are alive by iteration, and mtfs beside scikit-learn."""
    rows: list[Record] = []
    lasso: list[Record] = []
    for dataset in scope.sets(GSRFS_SETS):
        problem = build(dataset)
        for r, p in GSRFS_ORDERS:
            most = 100 if scope.quick else 2_000
            taken = course(problem, K, "gsrfs", most, "alive", r=r, p=p, tol=1e-10)
            sizes = [len(alive) for alive in taken.seen]
            shown = [t for t in GSRFS_SHOWN if t < len(sizes)] + [len(sizes)]
            rows.append(
                {
                    "data": dataset.name,
                    "rows": problem.n_rows,
                    "r": r,
                    "p": p,
                    "iterations": len(sizes),
                    "alive": {str(t): sizes[t - 1] for t in shown},
                    "first_seconds": statistics.median(taken.seconds[:3]),
                    "last_seconds": statistics.median(taken.seconds[-10:]),
                }
            )
        lasso.extend(beside_lasso(dataset, problem))
    return {"gsrfs": rows, "mtfs": lasso}


def beside_lasso(dataset: data.Dataset, problem: exactk.Problem) -> Iterator[Record]:
    """Solve ‖XW − Y‖² + λ‖W‖₂,₁ for centred classes by mtfs and by MultiTaskLasso."""
    lam = 1.0
    table = standard_table(problem)
    X = np.asfortranarray(table.X)
    for name, (our_tol, their_tol) in LASSO_TOLERANCES.items():
        ours = harness.timed(
            lambda t=our_tol: solve(
                problem, K, "mtfs", lam=lam, labels="centred", tol=t, max_iter=20_000
            ),
            runs=3,
        )
        model = MultiTaskLasso(
            alpha=lam / (2 * len(X)), fit_intercept=False, copy_X=False, tol=their_tol,
            max_iter=20_000,
        )  # fmt: skip

        def fit(model: MultiTaskLasso = model) -> data.Floats:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return np.asarray(model.fit(X, table.Y).coef_.T)

        theirs = harness.timed(fit, runs=3)
        W = theirs.value
        value = ((X @ W - table.Y) ** 2).sum() + lam * np.sqrt((W**2).sum(axis=1)).sum()
        yield {
            "data": dataset.name,
            "tolerances": name,
            "seconds": ours.best,
            "iterations": ours.value.n_iter,
            "objective": ours.value.trace[-1],
            "sklearn_seconds": theirs.best,
            "sklearn_iterations": int(np.max(model.n_iter_)),
            "sklearn_objective": float(value),
        }


def table2(scope: Scope) -> Records:
    """Mean and standard deviation of the objective that single random starts converge to."""
    records: list[Record] = []
    names = tuple(dict.fromkeys(name for name, _ in PUBLISHED))
    for dataset in scope.sets(names, quick=2):
        problem = build(dataset)
        for k in (k for name, k in PUBLISHED if name == dataset.name):
            values = [
                solve(problem, k, "cdlsr", n_starts=1, random_state=seed).trace[-1]
                for seed in range(40 if scope.quick else 1_000)
            ]
            found = {
                str(runs): {"mean": statistics.fmean(values[:runs]),
                            "std": statistics.stdev(values[:runs])}
                for runs in (40, len(values))
            }  # fmt: skip
            records.append(
                {
                    "data": dataset.name,
                    "k": k,
                    "runs": found,
                    "lowest": min(values),
                    "exchange": solve(problem, k, "exchange").objective,
                }
            )
    return {"table2": records}


def quality(scope: Scope) -> Records:
    """Each method on the whole table, and on 60 % of each class to classify the rest."""
    records: list[Record] = []
    for dataset in scope.sets(QUALITY_SETS):
        part = Split(dataset, np.random.default_rng(0))
        train = data.Dataset(dataset.name, part.X, part.y)
        for k in scope.sizes:
            for method in QUALITY_METHODS:
                # exchange would search until its time is up.
                limit = None if method == "exchange" else 5.0 if scope.quick else TIME_LIMIT
                found = solve(build(dataset), k, method, time_limit=limit)
                chosen = solve(build(train), k, method, time_limit=limit)
                accuracy = part.scores(tuple(int(j) for j in chosen.support))
                records.append(
                    {
                        "data": dataset.name,
                        "k": k,
                        "method": method,
                        "objective": dataset.objective(found.support),
                        "total": dataset.total,
                        "status": str(found.status),
                        "iterations": found.n_iter,
                        "seconds": found.seconds,
                        "nearest": accuracy[0],
                        "svm": accuracy[1],
                    }
                )
    return {"quality": records}


PARTS: dict[str, Callable[[Scope], Records]] = {
    "cdlsr": cdlsr,
    "ipfs": ipfs,
    "scaling": scaling,
    "nmapg": nmapg,
    "gsrfs": gsrfs,
    "table2": table2,
    "quality": quality,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes, not kept")
    parser.add_argument("--all", action="store_true", help="quality at k = 5, too")
    parser.add_argument("--add", action="store_true", help="put the parts into the kept record")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    options = parser.parse_args(arguments)
    if options.report:
        stored = harness.RESULTS / "papers.json"
        print(report(json.loads(stored.read_text(encoding="utf-8"))))
        return
    harness.pin_threads(options.threads)
    scope = Scope(quick=options.quick, sizes=(5, K) if options.all else (K,))
    record = harness.circumstances(options.threads)
    parts, took = run_parts(PARTS, options.only, scope)
    if options.add and not options.quick:
        kept = json.loads((harness.RESULTS / "papers.json").read_text(encoding="utf-8"))
        apart = sorted({*kept.get("measured_apart", []), *took})
        record = {**kept, "measured_apart": apart, **parts}
        record["part_seconds"] |= took
        harness.write_record("papers", record)
    else:
        record |= {"missing": sorted(scope.missing), "part_seconds": took, **parts}
        if len(took) == len(PARTS) and not options.quick and not scope.missing:
            harness.write_record("papers", record)
    print(report(record))


if __name__ == "__main__":
    main()
