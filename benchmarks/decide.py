"""Choosing k, constraints, stability: how often the answer is right, and what it costs.

    python -m benchmarks.decide [--only path halves planted constraints] [--seeds 50] [--threads 2]

The parts: `path`, all sizes to 50 with 5-fold cross-validation beside one fit at k = 50; `halves`,
100 half-samples beside one fit; `planted`, which k every criterion chooses where 10 columns matter,
beside abess and the lasso; `constraints`, constrained searches beside enumeration and beside the
same search without constraints.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from benchmarks.harness import RESULTS, circumstances, pin_threads, timed, write_record

PARTS = ("path", "halves", "planted", "constraints")
CRITERIA = ("cv", "ebic", "bic", "aicc", "cp")
ROWS, COLUMNS, PLANTED, MOST = 500, 200, 10, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="print the record that is kept")
    arguments = parser.parse_args()
    kept = RESULTS / "decide.json"
    if arguments.report:
        print(report(json.loads(kept.read_text(encoding="utf-8"))))
        return
    pin_threads(arguments.threads)
    record: dict[str, Any] = circumstances(arguments.threads)
    if set(arguments.only) != set(PARTS) and kept.exists():
        # A part that was run by itself takes its place among the others.
        record = {**json.loads(kept.read_text(encoding="utf-8")), **record}
    runs: dict[str, Callable[[], Any]] = {
        "path": measure_path,
        "halves": measure_halves,
        "planted": lambda: measure_planted(arguments.seeds),
        "constraints": measure_constraints,
    }
    for part in arguments.only:
        record[part] = runs[part]()
    write_record("decide", record)
    print(report(record))


def _load(name: str) -> Any:
    from benchmarks.data import load_all

    (dataset,) = load_all([name])
    return dataset


def measure_path() -> dict[str, Any]:
    """The whole path with cross-validation on isolet, beside one fit at its end."""
    import exactk

    data = _load("isolet")

    def one() -> Any:
        return exactk.TopKSelector(k=50).fit(data.X, data.y)

    def path() -> Any:
        return exactk.TopKSelector(k="auto", k_max=50).fit(data.X, data.y)

    single, whole = timed(one, runs=5, budget=30.0), timed(path, runs=3, budget=60.0)
    selector = whole.value
    at_50 = selector.choice_.path.at(50).objective
    return {
        "rows": len(data.X), "columns": data.X.shape[1], "k_max": 50, "folds": 5,
        "fit_seconds": single.best, "path_seconds": whole.best,
        "ratio": whole.best / single.best, "chosen": selector.k_,
        "fit_objective": single.value.objective_, "path_objective": at_50,
    }  # fmt: skip


def measure_halves() -> dict[str, Any]:
    """100 half-samples of srbct, beside one fit."""
    import exactk

    data = _load("srbct")

    def one() -> Any:
        return exactk.TopKSelector(k=10).fit(data.X, data.y)

    def halves() -> Any:
        problem = exactk.Problem.from_arrays(data.X, data.y)
        problem = problem.with_ridge("auto")
        return exactk.stability(problem, 10, n_subsamples=100)

    single, many = timed(one, runs=9, budget=10.0), timed(halves, runs=3, budget=30.0)
    found = many.value
    return {
        "rows": len(data.X), "columns": data.X.shape[1], "k": 10, "samples": 100,
        "fit_seconds": single.best, "halves_seconds": many.best,
        "fits": many.best / single.best, "index": found.index, "interval": list(found.interval),
    }  # fmt: skip


def planted_table(seed: int, correlation: float, snr: float) -> tuple[Any, Any]:
    """Ten columns of two hundred that matter, with coefficients of either sign from 0.5 to 1.5."""
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, COLUMNS))
    for j in range(1, COLUMNS):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    beta = np.zeros(COLUMNS)
    which = rng.choice(COLUMNS, PLANTED, replace=False)
    beta[which] = rng.uniform(0.5, 1.5, PLANTED) * rng.choice([-1.0, 1.0], PLANTED)
    signal = X @ beta
    return X, signal + rng.standard_normal(ROWS) * np.sqrt(signal.var() / snr)


def measure_planted(n_seeds: int) -> list[dict[str, Any]]:
    """Which k each criterion chooses, over seeds, in three kinds of tables."""
    import time

    import numpy as np

    contestants = {f"exactk {name}": _chosen_by(name) for name in CRITERIA}
    contestants["exactk cv, paired"] = _chosen_by("cv", rule="paired")
    contestants["exactk cv, best"] = _chosen_by("cv", rule="best")
    contestants.update(_peers())
    records = []
    for correlation, snr in ((0.0, 2.0), (0.5, 2.0), (0.0, 1.0)):
        found: dict[str, list[int]] = {name: [] for name in contestants}
        seconds: dict[str, float] = dict.fromkeys(contestants, 0.0)
        for seed in range(n_seeds):
            X, y = planted_table(seed, correlation, snr)
            for name, choose in contestants.items():
                start = time.perf_counter()
                found[name].append(choose(X, y))
                seconds[name] += time.perf_counter() - start
        for name, sizes in found.items():
            k = np.array(sizes)
            records.append({
                "correlation": correlation, "snr": snr, "by": name, "seeds": n_seeds,
                "within_two": float((np.abs(k - PLANTED) <= 2).mean()),
                "mean": float(k.mean()), "least": int(k.min()), "most": int(k.max()),
                "seconds": seconds[name] / n_seeds,
            })  # fmt: skip
            print(records[-1], flush=True)
    return records


def _chosen_by(criterion: str, rule: str = "one_se") -> Callable[[Any, Any], int]:
    import exactk

    def choose(X: Any, y: Any) -> int:
        selector = exactk.TopKSelector(k="auto", k_max=MOST, criterion=criterion, rule=rule)
        return int(selector.fit(X, y).k_)

    return choose


def _peers() -> dict[str, Callable[[Any, Any], int]]:
    """What others make of the same tables: abess by its criteria, the lasso by cross-validation."""
    import numpy as np
    from abess.linear import LinearRegression
    from sklearn.linear_model import LassoCV

    def splicing(**options: Any) -> Callable[[Any, Any], int]:
        def choose(X: Any, y: Any) -> int:
            model = LinearRegression(support_size=range(MOST + 1), **options)
            return int(np.count_nonzero(model.fit(X, y).coef_))

        return choose

    def lasso(X: Any, y: Any) -> int:
        return int(np.count_nonzero(LassoCV(cv=5).fit(X, y).coef_))

    return {
        "abess ebic": splicing(ic_type="ebic"),
        "abess gic": splicing(ic_type="gic"),
        "abess cv": splicing(cv=5),
        "LassoCV": lasso,
    }


def _constrained() -> dict[str, dict[str, Any]]:
    """Constraints of each kind for breast_cancer's thirty columns."""
    names = [f"x{j}" for j in range(30)]
    parts = {"mean": names[:10], "error": names[10:20], "worst": names[20:]}
    return {
        "include": {"include": [1, 5]},
        "groups": {"feature_groups": {f"pair {j}": [j, 10 + j] for j in range(10)}},
        "families": {
            "quotas": {
                name: {"columns": columns, "at_least": 1, "at_most": 2}
                for name, columns in parts.items()
            }
        },
        "budget": {"costs": [1 + j % 5 for j in range(30)], "budget": 8},
        "max_correlation": {"max_correlation": 0.5},
    }


def measure_constraints() -> list[dict[str, Any]]:
    """Whether constrained searches find the best there is, and what they cost."""
    from sklearn.datasets import load_breast_cancer

    import exactk

    X, y = load_breast_cancer(return_X_y=True)
    names = [f"x{j}" for j in range(30)]
    free = exactk.Problem.from_arrays(X, y, ridge=0.1, feature_names=names)
    records = []
    for kind, constraints in _constrained().items():
        problem = free.with_constraints(**constraints)
        for k in (3, 4):

            def search(problem: Any = problem, k: int = k) -> Any:
                return exactk.solve(problem, k)

            def alone(k: int = k) -> Any:
                return exactk.solve(free, k)

            def every(problem: Any = problem, k: int = k) -> Any:
                return exactk.solve(problem, k, "exhaustive")

            found, plain = timed(search, runs=5), timed(alone, runs=5)
            proof = timed(every, runs=1)
            records.append({
                "constraint": kind, "k": k, "objective": found.value.objective,
                "best": proof.value.objective, "seconds": found.best,
                "without": plain.best, "enumeration": proof.best,
                "gap": found.value.objective / proof.value.objective - 1.0,
            })  # fmt: skip
    return records


def report(record: dict[str, Any]) -> str:
    """The record as Markdown."""
    path, halves = record["path"], record["halves"]
    lines = [
        f"Measured with {record['threads']} threads (`python -m benchmarks.decide`).",
        "",
        f"* All sizes to k = {path['k_max']} with {path['folds']}-fold cross-validation on isolet "
        f"({path['rows']:,} × {path['columns']}): {path['ratio']:.1f} times one fit at k = 50 "
        f"({path['path_seconds']:.2f} s and {path['fit_seconds']:.2f} s); at k = 50 the path's "
        f"objective is {path['path_objective']:.2f}, the fit's {path['fit_objective']:.2f}.",
        f"* {halves['samples']} half-samples with k = {halves['k']} on srbct ({halves['rows']} × "
        f"{halves['columns']:,}): as long as {halves['fits']:.0f} fits "
        f"({halves['halves_seconds']:.2f} s; one fit {1e3 * halves['fit_seconds']:.0f} ms).",
        "",
        f"Tables of {ROWS} rows and {COLUMNS} columns of which {PLANTED} matter, sizes up to "
        f"{MOST}, {record['planted'][0]['seeds']} seeds: how often the size chosen is "
        f"{PLANTED} ± 2, the mean size, and milliseconds. SNR is the variance of the signal over "
        f"that of the noise; in the second kind of table neighbouring columns have a correlation "
        f"of 0.5.",
        "",
        *_planted_lines(record["planted"]),
        "",
        "Constrained searches on breast_cancer (569 × 30) beside enumeration, and beside the same "
        "search without constraints:",
        "",
        "| constraint | k | above the best there is | ms | unconstrained, ms | enumeration, ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {cell['constraint']} | {cell['k']} | {max(cell['gap'], 0.0):.2%} | "
        f"{1e3 * cell['seconds']:.1f} | {1e3 * cell['without']:.1f} | "
        f"{1e3 * cell['enumeration']:.0f} |"
        for cell in record["constraints"]
    ]
    return "\n".join(lines) + "\n"


def _planted_lines(cells: list[dict[str, Any]]) -> list[str]:
    kinds = list(dict.fromkeys((cell["correlation"], cell["snr"]) for cell in cells))
    heads = [
        f"{f'correlated {correlation:g}' if correlation else 'independent'}, SNR {snr:g}"
        for correlation, snr in kinds
    ]
    lines = ["| chosen by | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(kinds)]
    for name in dict.fromkeys(cell["by"] for cell in cells):
        row = [cell for cell in cells if cell["by"] == name]
        shown = [
            f"{cell['within_two']:.0%}, {cell['mean']:.1f}, {1e3 * cell['seconds']:.0f} ms"
            for cell in row
        ]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return lines


if __name__ == "__main__":
    main()
