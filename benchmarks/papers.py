"""The papers' methods: what their forms here gain over the printed ones, and how good they are.

cdlsr    a loop over candidates, as printed, against ours, from the same supports
ipfs     eq. 10 and 11 with inverses, as printed, against ours: time and the course of v
scaling  time against the number of columns
passes   what an iteration costs in passes over X
nmapg    iterations with the spectral step against iterations with the paper's
gsrfs    how the system shrinks
mtfs     beside scikit-learn's MultiTaskLasso
table2   Table 2 of CD-LSR again
quality  each of them on eight data sets
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.linear_model import MultiTaskLasso

import exactk
from benchmarks import data, harness
from benchmarks.data import build, solve
from benchmarks.harness import Options, Record, Row, mark, markdown, milliseconds
from benchmarks.literal import K, cdlsr, ipfs, take_steps
from benchmarks.ridge import Split
from benchmarks.verdict import Check
from exactk.papers.methods.standard_table import standard_table

SCALING_ROWS, SCALING_CLASSES = 200, 3
SCALING_COLUMNS = (1_000, 2_000, 4_000, 8_000)
# With tol=0 every run makes all of its iterations.
SCALING: dict[str, Row] = {
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
CDLSR_FASTER = 100.0
IPFS_FASTER = {"allaml": 50.0, "coil20": 1.0}
IPFS_DIFFERENCE = 1e-6
EXPONENT = 1.2
NMAPG_SHARE = 0.5
LASSO_DIFFERENCE = 1e-6
STANDARD_ERRORS = 3.0
# CD-LSR, Table 2: mean and standard deviation of 40 runs.
PUBLISHED_RUNS = 40
PUBLISHED = {
    ("srbct", 1): (45.71, 4.1),
    ("srbct", 5): (12.91, 2.1),
    ("srbct", 10): (6.994, 1.0),
    ("jaffe", 1): (175.4, 1.9),
    ("jaffe", 5): (118.0, 7.1),
    ("jaffe", 10): (68.36, 8.5),
}
# What a status other than converged looks like in a table.
MARKS = {"converged": "", "optimal": "", "max_iter": " †", "time_limit": " ‡"}


def generated(d: int) -> data.Dataset:
    """Classes of equal size whose means differ in twenty columns."""
    rng = np.random.default_rng(d)
    y = np.arange(SCALING_ROWS) % SCALING_CLASSES
    X = rng.standard_normal((SCALING_ROWS, d))
    X[:, rng.choice(d, 20, replace=False)] += rng.standard_normal((SCALING_CLASSES, 20))[y]
    return data.Dataset(f"generated {d}", X, y)


def scaling_tables(options: Options) -> Iterator[data.Dataset]:
    """Tables of more and more columns."""
    yield from map(generated, SCALING_COLUMNS[:2] if options.quick else SCALING_COLUMNS)


def scaling(options: Options) -> Iterator[Row]:
    """Seconds from the raw table against the number of columns."""
    for dataset in scaling_tables(options):
        for method, settings in SCALING.items():

            def run(m: str = method, o: Row = settings, s: data.Dataset = dataset) -> None:
                solve(build(s), K, m, **o)

            best = harness.timed(run, runs=2 if options.quick else 5, budget=10.0).best
            yield {"method": method, "columns": dataset.X.shape[1], "seconds": best}


def passes(options: Options) -> Iterator[Row]:
    """An iteration in passes: Xᵀ @ R with R of n × c, the least that all columns need."""
    for dataset in scaling_tables(options):
        problem = build(dataset)
        table = standard_table(problem)
        one = harness.timed(lambda t=table: t.X.T @ t.Y, runs=50).best
        for method in STEPPED:
            taken = take_steps(problem, K, method, SCALING[method]["max_iter"], tol=0.0)
            yield {
                "method": method,
                "columns": dataset.X.shape[1],
                "pass_seconds": one,
                "setup_seconds": taken.setup,
                "iteration_seconds": statistics.median(taken.seconds),
            }


def nmapg(options: Options) -> Iterator[Row]:
    """Iterations with step="spectral" to the F_μ that step="paper" ends with (section 6.2)."""
    for dataset in data.sets(options, NMAPG_SETS, quick=2):
        problem = build(dataset)
        most = 100 if options.quick else 1_000
        paper = solve(problem, K, "nmapg", step="paper", max_iter=most, **NMAPG)
        ours = solve(problem, K, "nmapg", step="spectral", max_iter=most, tol=0.0, **NMAPG)
        goal = paper.trace[-1]
        needed = next((t for t, f in enumerate(ours.trace, start=1) if f <= goal), None)
        yield {
            "data": dataset.name,
            "iterations": paper.n_iter,
            "status": str(paper.status),
            "value": goal,
            "needed": needed,
            "spectral_value": ours.trace[-1],
        }


def gsrfs(options: Options) -> Iterator[Row]:
    """Rows of W that are alive by iteration."""
    for dataset in data.sets(options, GSRFS_SETS):
        problem = build(dataset)
        for r, p in GSRFS_ORDERS:
            most = 100 if options.quick else 2_000
            taken = take_steps(
                problem, K, "gsrfs", most, lambda own: len(own["rows"].active), r=r, p=p, tol=1e-10
            )
            sizes = taken.seen
            shown = [t for t in GSRFS_SHOWN if t < len(sizes)] + [len(sizes)]
            yield {
                "data": dataset.name,
                "rows": problem.n_rows,
                "r": r,
                "p": p,
                "iterations": len(sizes),
                "alive": {str(t): sizes[t - 1] for t in shown},
                "first_seconds": statistics.median(taken.seconds[:3]),
                "last_seconds": statistics.median(taken.seconds[-10:]),
            }


def mtfs(options: Options) -> Iterator[Row]:
    """Our mtfs beside the solver of scikit-learn."""
    for dataset in data.sets(options, GSRFS_SETS):
        yield from beside_lasso(dataset, build(dataset))


def beside_lasso(dataset: data.Dataset, problem: exactk.Problem) -> Iterator[Row]:
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


def table2(options: Options) -> Iterator[Row]:
    """Mean and standard deviation of the objective that single random starts converge to."""
    names = tuple(dict.fromkeys(name for name, _ in PUBLISHED))
    for dataset in data.sets(options, names, quick=2):
        problem = build(dataset)
        for k in (k for name, k in PUBLISHED if name == dataset.name):
            values = [
                solve(problem, k, "cdlsr", n_starts=1, random_state=seed).trace[-1]
                for seed in range(40 if options.quick else 1_000)
            ]
            found = {
                str(runs): {"mean": statistics.fmean(values[:runs]),
                            "std": statistics.stdev(values[:runs])}
                for runs in (40, len(values))
            }  # fmt: skip
            yield {
                "data": dataset.name,
                "k": k,
                "runs": found,
                "lowest": min(values),
                "exchange": solve(problem, k, "exchange").objective,
            }


def quality(options: Options) -> Iterator[Row]:
    """Each method on the whole table, and on 60 % of each class to classify the rest."""
    for dataset in data.sets(options, QUALITY_SETS):
        part = Split(dataset, np.random.default_rng(0))
        train = data.Dataset(dataset.name, part.X, part.y)
        for method in QUALITY_METHODS:
            # exchange would search until its time is up.
            limit = None if method == "exchange" else 5.0 if options.quick else TIME_LIMIT
            found = solve(build(dataset), K, method, time_limit=limit)
            chosen = solve(build(train), K, method, time_limit=limit)
            accuracy = part.scores(tuple(int(j) for j in chosen.support))
            yield {
                "data": dataset.name,
                "k": K,
                "method": method,
                "objective": dataset.objective(found.support),
                "total": dataset.total,
                "status": str(found.status),
                "iterations": found.n_iter,
                "seconds": found.seconds,
                "nearest": accuracy[0],
                "svm": accuracy[1],
            }


class Targets:
    """Marks what is reached as tables are written, and remembers it for the summary."""

    def __init__(self) -> None:
        self.found: dict[str, list[tuple[str, str, bool]]] = {}

    def mark(self, target: str, cell: str, text: str, good: bool) -> str:
        """Return the text with its mark."""
        self.found.setdefault(target, []).append((cell, text, good))
        return f"{text} {mark(good)}"

    def lines(self) -> str:
        """One item for each target."""
        checks = []
        for target, cells in self.found.items():
            misses = tuple(f"{cell}: {text}" for cell, text, good in cells if not good)
            reached = f"In {len(cells) - len(misses)} of {len(cells)} cells."
            checks.append(Check(target, len(cells), reached, misses).line())
        return "\n".join(checks)


def cdlsr_table(record: Record, targets: Targets) -> str:
    faster = f"cdlsr at least {CDLSR_FASTER:g} times faster than the loop over candidates"
    header = ["data", "k", "printed, ms", "ours, ms", "times", "from rows: printed, ms", "ours, ms",
              "times", "of 40 starts, ms a start", "times", "same columns"]  # fmt: skip
    rows = []
    for r in record["cdlsr"]:
        cell = f"{r['data']} k={r['k']}"
        ratio = r["literal_seconds"] / r["seconds"]
        rows.append(
            [
                r["data"],
                str(r["k"]),
                milliseconds(r["literal_seconds"]),
                milliseconds(r["seconds"]),
                targets.mark(faster, cell, f"{ratio:.0f}", ratio >= CDLSR_FASTER),
                milliseconds(r["literal_from_rows"]),
                milliseconds(r["from_rows"]),
                f"{r['literal_from_rows'] / r['from_rows']:.0f}",
                milliseconds(r["of_forty_seconds"]),
                f"{r['literal_seconds'] / r['of_forty_seconds']:.0f}",
                targets.mark(
                    "cdlsr and the loop end with the same columns",
                    cell,
                    f"{r['same']} of {r['starts']}",
                    r["same"] == r["starts"],
                ),
            ]
        )
    about = (
        "CD-LSR: Algorithm 1 as printed, eq. 16 for one candidate after the other in a Python "
        "loop, against `cdlsr`; a run from one start, mean over starts. What counts is the solve "
        "on a problem whose Gram columns are at hand, as A is for the loop; from rows, A is "
        "formed with the centring matrix and the problem is built. One solve of 40 random starts "
        "shows what a start costs without the fixed part of a solve."
    )
    return about + "\n\n" + markdown(header, rows)


def ipfs_table(record: Record, targets: Targets) -> str:
    header = ["data", "columns", "printed, ms", "ours, ms", "times", "iterations",
              "reproducible", "difference", "printed, X changed", "ours within 1e-6"]  # fmt: skip
    rows = []
    for r in record["ipfs"]:
        ratio, least = r["literal_seconds"] / r["seconds"], IPFS_FASTER[r["data"]]
        difference = math.inf if r["difference"] is None else r["difference"]
        rows.append(
            [
                r["data"],
                str(r["columns"]),
                milliseconds(r["literal_seconds"]),
                milliseconds(r["seconds"]),
                targets.mark(
                    f"ipfs at least {least:g} times as fast an iteration on {r['data']}",
                    r["data"], f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}", ratio >= least,
                ),
                str(r["iterations"]),
                str(r["reproducible"]),
                targets.mark(
                    f"v of ipfs within {IPFS_DIFFERENCE:g} of the printed form's",
                    r["data"], f"{difference:.1e}", difference <= IPFS_DIFFERENCE,
                ),
                "" if r["literal_changed"] is None else f"{r['literal_changed']:.1e}",
                str(r["within"]),
            ]
        )  # fmt: skip
    about = (
        "IPFS: eq. 10 and 11 with inverses of D × D matrices, as printed, against `ipfs`; median "
        "milliseconds an iteration. v is compared over the iterations that the printed form "
        "itself reproduces within 1e-6 when X is changed by 1e-13 of its size: the largest "
        "difference of ours, that of the printed form with X changed, and after how many "
        "iterations ours is no longer within 1e-6."
    )
    return about + "\n\n" + markdown(header, rows)


def scaling_table(record: Record, targets: Targets) -> str:
    columns = sorted({r["columns"] for r in record["scaling"]})
    times = {(r["method"], r["columns"]): r["seconds"] for r in record["scaling"]}
    rows = []
    for method in dict.fromkeys(r["method"] for r in record["scaling"]):
        seconds = [times[method, d] for d in columns]
        exponent = float(np.polyfit(np.log(columns), np.log(seconds), 1)[0])
        target = f"time grows at most like d^{EXPONENT:g}"
        shown = targets.mark(target, method, f"{exponent:.2f}", exponent <= EXPONENT)
        rows.append([method, *map(milliseconds, seconds), shown])
    header = ["method", *(f"d = {d:,}, ms" for d in columns), "exponent"]
    about = (
        "Generated classes, n = 200, c = 3, k = 10: milliseconds from the raw table, and the "
        "exponent of d fitted to them. cdlsr makes 5 starts, ipfs and gsrfs 20 iterations, rpfs "
        "and nmapg 100."
    )
    return about + "\n\n" + markdown(header, rows)


def passes_table(record: Record, targets: Targets) -> str:
    del targets
    rows = [
        [
            r["method"],
            f"{r['columns']:,}",
            milliseconds(r["pass_seconds"]),
            milliseconds(r["iteration_seconds"]),
            f"{r['iteration_seconds'] / r['pass_seconds']:.1f}",
            milliseconds(r["setup_seconds"]),
            f"{r['setup_seconds'] / r['pass_seconds']:.0f}",
        ]
        for r in record["passes"]
    ]
    header = ["method", "d", "a pass, ms", "an iteration, ms", "in passes", "before, ms",
              "in passes"]  # fmt: skip
    about = (
        "An iteration (median) and what comes before the first (reading the table, and what is "
        "factored once), in passes Xᵀ @ (n × c)."
    )
    return about + "\n\n" + markdown(header, rows)


def nmapg_table(record: Record, targets: Targets) -> str:
    rows = []
    for r in record["nmapg"]:
        share = math.inf if r["needed"] is None else r["needed"] / r["iterations"]
        shown = f"{share:.2f}" if share < math.inf else f"not within {r['iterations']}"
        rows.append(
            [
                r["data"],
                f"{r['iterations']}{MARKS.get(r['status'], r['status'])}",
                f"{r['value']:.8g}",
                str(r["needed"] or ""),
                targets.mark(
                    f"the spectral step needs at most {NMAPG_SHARE:g} of the paper's iterations",
                    r["data"], shown, share <= NMAPG_SHARE,
                ),
                f"{r['spectral_value']:.8g}",
            ]
        )  # fmt: skip
    header = ["data", "paper's step, iterations", "F_μ then", "spectral, iterations to it",
              "share", "F_μ at its end"]  # fmt: skip
    about = (
        "nmAPG, Algorithm 1, γ = 1, ρ = μ = 0.01 (section 6.2), K = 10: iterations with the step "
        "of (‖X‖₂² + γ)/μ to the value that the paper's step ends with. † its iteration limit."
    )
    return about + "\n\n" + markdown(header, rows)


def gsrfs_table(record: Record, targets: Targets) -> str:
    del targets
    rows = [
        [
            f"{r['data']} ({r['rows']} rows)",
            f"({r['r']:g}, {r['p']:g})",
            ", ".join(f"{t}: {alive:,}" for t, alive in r["alive"].items()),
            milliseconds(r["first_seconds"]),
            milliseconds(r["last_seconds"]),
            f"{r['first_seconds'] / r['last_seconds']:.1f}",
        ]
        for r in record["gsrfs"]
    ]
    header = ["data", "(r, p)", "rows alive after iteration", "first, ms", "last, ms", "times"]
    about = (
        "gsrfs, tol = 1e-10: rows of W that are alive (the system has as many unknowns, or as many "
        "as the table has rows, whichever is less); an iteration at first and at last."
    )
    return about + "\n\n" + markdown(header, rows)


def mtfs_table(record: Record, targets: Targets) -> str:
    rows = []
    for r in record["mtfs"]:
        difference = r["objective"] / r["sklearn_objective"] - 1.0
        shown = f"{difference:+.1e}"
        if r["tolerances"] == "tight":
            target = f"mtfs at most {LASSO_DIFFERENCE:g} above scikit-learn's objective"
            shown = targets.mark(target, r["data"], shown, difference <= LASSO_DIFFERENCE)
        rows.append(
            [
                r["data"],
                r["tolerances"],
                milliseconds(r["seconds"]),
                str(r["iterations"]),
                milliseconds(r["sklearn_seconds"]),
                str(r["sklearn_iterations"]),
                f"{r['sklearn_objective']:.8g}",
                shown,
            ]
        )
    header = ["data", "tolerances", "mtfs, ms", "iterations", "MultiTaskLasso, ms",
                    "iterations", "its objective", "mtfs beside it"]  # fmt: skip
    about = "mtfs and scikit-learn's MultiTaskLasso on the same problem, λ = 1, centred classes."
    return about + "\n\n" + markdown(header, rows)


def table2_table(record: Record, targets: Targets) -> str:
    rows = []
    for r in record["table2"]:
        mean, std = PUBLISHED[r["data"], r["k"]]
        row = [r["data"], str(r["k"]), f"{mean:g} ± {std:g}"]
        for runs, ours in r["runs"].items():
            error = math.sqrt(std**2 / PUBLISHED_RUNS + ours["std"] ** 2 / int(runs))
            away = (ours["mean"] - mean) / error
            cell = f"{r['data']} k={r['k']}, {runs} runs"
            target = f"mean of CD-LSR's Table 2 within {STANDARD_ERRORS:g} standard errors"
            shown = targets.mark(target, cell, f"{away:+.1f}", abs(away) <= STANDARD_ERRORS)
            row += [f"{ours['mean']:.2f} ± {ours['std']:.2g}", shown]
        rows.append([*row, f"{r['lowest']:.2f}", f"{r['exchange']:.2f}"])
    header = ["data", "k", "published"]
    for runs in record["table2"][0]["runs"]:
        header += [f"{runs} runs", "standard errors"]
    about = (
        "CD-LSR's Table 2: mean and standard deviation of the objective over single random "
        "starts; the distance to the published mean in standard errors of both; the lowest of "
        "all, and what `exchange` finds."
    )
    return about + "\n\n" + markdown([*header, "lowest", "exchange"], rows)


def quality_table(record: Record, targets: Targets) -> str:
    del targets
    parts = [
        "Every method at its defaults, ridge 0. Distance of the objective after a refit to that "
        "of `exchange` (shown itself), † iteration limit, ‡ time limit of a minute; then seconds "
        "on a built problem; then test accuracy in % of 1-NN and of a linear SVM (C = 1), columns "
        "chosen and standardised on 60 % of each class."
    ]
    cells = {(r["k"], r["data"], r["method"]): r for r in record["quality"]}
    methods = list(dict.fromkeys(r["method"] for r in record["quality"]))
    sets = list(dict.fromkeys(r["data"] for r in record["quality"]))

    def distance(r: Record) -> str:
        if r["method"] == "exchange":
            return f"{r['objective']:.6g}"
        best = cells[r["k"], r["data"], "exchange"]["objective"]
        share = (r["objective"] - best) / max(best, 1e-6 * r["total"])
        return f"{share:+.1%}{MARKS.get(r['status'], ' ' + r['status'])}"

    shown: dict[str, Callable[[Record], str]] = {
        "objective": distance,
        "seconds": lambda r: f"{r['seconds']:.3g}",
        "1-NN, SVM": lambda r: f"{100 * r['nearest']:.1f}, {100 * r['svm']:.1f}",
    }
    for k in sorted({r["k"] for r in record["quality"]}):
        for what, text in shown.items():
            rows = [[m, *(text(cells[k, s, m]) for s in sets)] for m in methods]
            parts.append(markdown([f"k = {k}, {what}", *sets], rows))
    return "\n\n".join(parts)


PARTS: dict[str, Callable[[Options], Iterator[Row]]] = {
    "cdlsr": cdlsr,
    "ipfs": ipfs,
    "scaling": scaling,
    "passes": passes,
    "nmapg": nmapg,
    "gsrfs": gsrfs,
    "mtfs": mtfs,
    "table2": table2,
    "quality": quality,
}
TABLES: dict[str, Callable[[Record, Targets], str]] = {
    "cdlsr": cdlsr_table,
    "ipfs": ipfs_table,
    "scaling": scaling_table,
    "passes": passes_table,
    "nmapg": nmapg_table,
    "gsrfs": gsrfs_table,
    "mtfs": mtfs_table,
    "table2": table2_table,
    "quality": quality_table,
}


def report(record: Record) -> str:
    """The report in Markdown: the parts that were measured, then their targets."""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    parts = [f"{record['date']}, {record['processor']}, {record['threads']} threads; {versions}."]
    targets = Targets()
    for name, table in TABLES.items():
        if record.get(name):
            parts += [f"## {name}", table(record, targets)]
    if targets.found:
        parts += ["## Targets", targets.lines()]
    return "\n\n".join(parts)
