"""Choosing k, constraints, stability: how often the answer is right, and what it costs.

The parts: `path`, all sizes to 50 with 5-fold cross-validation beside one fit at k = 50; `halves`,
100 half-samples beside one fit; `planted`, which k every criterion chooses where 10 columns matter,
beside abess and the lasso; `constraints`, constrained searches beside enumeration and beside the
same search without constraints.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import exactk
from benchmarks.data import sets
from benchmarks.harness import Options, Record, Row, markdown, timed

CRITERIA = ("cv", "ebic", "bic", "aicc", "cp")
ROWS, COLUMNS, PLANTED, MOST = 500, 200, 10, 30


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--seeds", type=int, default=50)


def path(options: Options) -> Iterator[Row]:
    """The whole path with cross-validation on isolet, beside one fit at its end."""
    for data in sets(options, ["isolet"]):
        single = timed(lambda X=data.X, y=data.y: exactk.TopKSelector(k=50).fit(X, y), 5, 30.0)
        whole = timed(
            lambda X=data.X, y=data.y: exactk.TopKSelector(k=exactk.AutoK(k_max=50)).fit(X, y),
            3,
            60.0,
        )
        selector = whole.value
        yield {
            "rows": len(data.X), "columns": data.X.shape[1], "k_max": 50, "folds": 5,
            "fit_seconds": single.best, "path_seconds": whole.best,
            "ratio": whole.best / single.best, "chosen": selector.k_,
            "fit_objective": single.value.objective_,
            "path_objective": selector.choice_.path.at(50).objective,
        }  # fmt: skip


def halves(options: Options) -> Iterator[Row]:
    """100 half-samples of srbct, beside one fit."""
    for data in sets(options, ["srbct"]):

        def half_samples(X: Any = data.X, y: Any = data.y) -> Any:
            return exactk.stability(X, y, k=10, n_subsamples=100)

        single = timed(lambda X=data.X, y=data.y: exactk.TopKSelector(k=10).fit(X, y), 9, 10.0)
        many = timed(half_samples, 3, 30.0)
        found = many.value
        yield {
            "rows": len(data.X), "columns": data.X.shape[1], "k": 10, "samples": 100,
            "fit_seconds": single.best, "halves_seconds": many.best,
            "fits": many.best / single.best, "index": found.index,
            "interval": list(found.interval),
        }  # fmt: skip


def planted_table(seed: int, correlation: float, snr: float) -> tuple[Any, Any]:
    """Ten columns of two hundred that matter, with coefficients of either sign from 0.5 to 1.5."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, COLUMNS))
    for j in range(1, COLUMNS):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    beta = np.zeros(COLUMNS)
    which = rng.choice(COLUMNS, PLANTED, replace=False)
    beta[which] = rng.uniform(0.5, 1.5, PLANTED) * rng.choice([-1.0, 1.0], PLANTED)
    signal = X @ beta
    return X, signal + rng.standard_normal(ROWS) * np.sqrt(signal.var() / snr)


def planted(options: Options) -> Iterator[Row]:
    """Which k each criterion chooses, over seeds, in three kinds of tables."""
    contestants = {f"exactk {name}": _chosen_by(name) for name in CRITERIA}
    contestants["exactk cv, paired"] = _chosen_by("cv", rule="paired")
    contestants["exactk cv, best"] = _chosen_by("cv", rule="best")
    contestants.update(_peers())
    n_seeds = 2 if options.quick else options.seeds
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
            yield {
                "correlation": correlation, "snr": snr, "by": name, "seeds": n_seeds,
                "within_two": float((np.abs(k - PLANTED) <= 2).mean()),
                "mean": float(k.mean()), "least": int(k.min()), "most": int(k.max()),
                "seconds": seconds[name] / n_seeds,
            }  # fmt: skip


def _chosen_by(criterion: str, rule: str = "one_se") -> Callable[[Any, Any], int]:
    def choose(X: Any, y: Any) -> int:
        k = exactk.AutoK(k_max=MOST, criterion=criterion, rule=rule)
        return int(exactk.TopKSelector(k=k).fit(X, y).k_)

    return choose


def _peers() -> dict[str, Callable[[Any, Any], int]]:
    """What others make of the same tables: abess by its criteria, the lasso by cross-validation."""
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


def constraints(options: Options) -> Iterator[Row]:
    """Whether constrained searches find the best there is, and what they cost."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    names = [f"x{j}" for j in range(30)]
    free = exactk.Problem.from_arrays(X, y, ridge=0.1, feature_names=names)
    for kind, asked in _constrained().items():
        problem = free.with_constraints(**asked)
        for k in (3, 4):

            def search(problem: Any = problem, k: int = k) -> Any:
                return exactk.solve(problem, k)

            def alone(k: int = k) -> Any:
                return exactk.solve(free, k)

            def every(problem: Any = problem, k: int = k) -> Any:
                return exactk.solve(problem, k, "exhaustive")

            found, plain = timed(search, runs=5), timed(alone, runs=5)
            proof = timed(every, runs=1)
            yield {
                "constraint": kind, "k": k, "objective": found.value.objective,
                "best": proof.value.objective, "seconds": found.best,
                "without": plain.best, "enumeration": proof.best,
                "gap": found.value.objective / proof.value.objective - 1.0,
            }  # fmt: skip


PARTS = {"path": path, "halves": halves, "planted": planted, "constraints": constraints}


def report(record: Record) -> str:
    """The record as Markdown: the parts that it has."""
    parts = [f"Measured with {record['threads']} threads (`python -m benchmarks decide`)."]
    items = [
        f"* All sizes to k = {row['k_max']} with {row['folds']}-fold cross-validation on isolet "
        f"({row['rows']:,} × {row['columns']}): {row['ratio']:.1f} times one fit at k = 50 "
        f"({row['path_seconds']:.2f} s and {row['fit_seconds']:.2f} s); at k = 50 the path's "
        f"objective is {row['path_objective']:.2f}, the fit's {row['fit_objective']:.2f}."
        for row in record.get("path", ())
    ]
    items += [
        f"* {row['samples']} half-samples with k = {row['k']} on srbct ({row['rows']} × "
        f"{row['columns']:,}): as long as {row['fits']:.0f} fits "
        f"({row['halves_seconds']:.2f} s; one fit {1e3 * row['fit_seconds']:.0f} ms)."
        for row in record.get("halves", ())
    ]
    parts += ["\n".join(items)] if items else []
    if "planted" in record:
        parts += [
            f"Tables of {ROWS} rows and {COLUMNS} columns of which {PLANTED} matter, sizes up to "
            f"{MOST}, {record['planted'][0]['seeds']} seeds: how often the size chosen is "
            f"{PLANTED} ± 2, the mean size, and milliseconds. SNR is the variance of the signal "
            f"over that of the noise; in the second kind of table neighbouring columns have a "
            f"correlation of 0.5.",
            planted_table_shown(record["planted"]),
        ]
    if "constraints" in record:
        header = ["constraint", "k", "above the best there is", "ms", "unconstrained, ms",
                  "enumeration, ms"]  # fmt: skip
        rows = [
            [
                cell["constraint"], f"{cell['k']}", f"{max(cell['gap'], 0.0):.2%}",
                f"{1e3 * cell['seconds']:.1f}", f"{1e3 * cell['without']:.1f}",
                f"{1e3 * cell['enumeration']:.0f}",
            ]
            for cell in record["constraints"]
        ]  # fmt: skip
        parts += [
            "Constrained searches on breast_cancer (569 × 30) beside enumeration, and beside the "
            "same search without constraints:",
            markdown(header, rows),
        ]
    return "\n\n".join(parts)


def planted_table_shown(cells: list[Row]) -> str:
    """A row for each way to choose the size, a column for each kind of table."""
    kinds = dict.fromkeys((cell["correlation"], cell["snr"]) for cell in cells)
    heads = [
        f"{f'correlated {correlation:g}' if correlation else 'independent'}, SNR {snr:g}"
        for correlation, snr in kinds
    ]
    lines: dict[str, list[str]] = {}
    for cell in cells:
        text = f"{cell['within_two']:.0%}, {cell['mean']:.1f}, {1e3 * cell['seconds']:.0f} ms"
        lines.setdefault(cell["by"], []).append(text)
    return markdown(["chosen by", *heads], [[name, *line] for name, line in lines.items()])
