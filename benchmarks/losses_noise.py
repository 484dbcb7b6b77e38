"""Wrong labels: which columns are chosen by losses of different order, and what they are worth.

Labels (or signs, in the generator of GSR-FS) are wrong where columns are chosen and a classifier
learns, never where it is tested. A share of labels is at least one row; of more noise the rows
of less are a part. Every loss sees the same draws.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import exactk
from benchmarks import data
from benchmarks.losses_kept import Terms
from benchmarks.scope import Record, Records, solve
from exactk.model_selection.ridge import auto_ridge
from exactk.papers.datasets import make_genes, make_outliers
from exactk.papers.experiments.classifiers import accuracy
from exactk.papers.experiments.splits import share_split

LEVELS = (0.0, 0.01, 0.05, 0.1)
LOSSES: dict[str, tuple[str, dict[str, float]]] = {
    "r = 2": ("squared", {}),
    "r = 1.5": ("l2r", {"r": 1.5}),
    "r = 1": ("l21", {}),
    "r = 0.75": ("l2r", {"r": 0.75}),
    "r = 0.5": ("l2r", {"r": 0.5}),
    "huber": ("huber", {}),
    "logistic": ("logistic", {}),
}
BY_RESIDUAL = tuple(name for name in LOSSES if name != "logistic")
TRAIN = 0.6
# A model that explains less than this is that without columns.
NOTHING = 1e-6
KEY = ("data", "k", "ridge", "loss", "level")

Score = Callable[[list[int]], dict[str, float]]


class Draw(NamedTuple):
    """Rows to choose columns by, and what a choice is worth."""

    X: data.Floats
    y: NDArray[Any]
    task: Any
    score: Score


@dataclass(frozen=True)
class Case:
    """A source of draws and how much of it is measured.

    Attributes
    ----------
    name : str
    make : callable
        From the number of a draw and the share of wrong rows to a draw.
    sizes : tuple of int
    draws : int
    losses : tuple of str
    ridges : tuple of str
    levels : tuple of float
    effort : float
    slow : tuple of str
        Losses that get no effort, and no ridge but the first.
    """

    name: str
    make: Callable[[int, float], Draw]
    sizes: tuple[int, ...]
    draws: int = 10
    losses: tuple[str, ...] = BY_RESIDUAL
    ridges: tuple[str, ...] = ("auto", "0")
    levels: tuple[float, ...] = LEVELS
    effort: float = 1.0
    slow: tuple[str, ...] = ()


def flipped(y: NDArray[Any], level: float, rng: np.random.Generator) -> NDArray[np.intp]:
    """Labels as numbers, a share of them another one than they were."""
    classes, codes = np.unique(y, return_inverse=True)
    order, step = rng.permutation(codes.size), rng.integers(1, classes.size, codes.size)
    wrong = order[: max(1, round(level * codes.size))] if level > 0 else order[:0]
    codes = codes.astype(np.intp)
    codes[wrong] = (codes[wrong] + step[wrong]) % classes.size
    return codes


def found(informative: Any, support: list[int]) -> dict[str, float]:
    """How many of the columns that matter are among those chosen."""
    return {"recovered": len(set(informative.tolist()) & set(support))}


def outliers(rows: int, seed: int, level: float) -> Draw:
    """Section 5.1 of GSR-FS with all sizes in proportion; 2,000 rows are those of the paper."""
    part = rows // 20
    made = make_outliers(rows, part, 7 * part, 5, level, random_state=seed)
    return Draw(made.X, made.y, "regression", partial(found, made.informative))


def genes(seed: int, level: float) -> Draw:
    """Four classes, 20 of 1,000 columns with different means, blocks of columns that correlate."""
    made = make_genes(200, 1_000, 4, 20, shift=1.0, random_state=seed)
    y = flipped(made.y, level, np.random.default_rng(seed))
    return Draw(made.X, y, "classification", partial(found, made.informative))


_load = cache(data.load)


def real(name: str, seed: int, level: float) -> Draw:
    """60 % of each class to choose by, some of its labels wrong, and the rest to test on."""
    dataset = _load(name)
    truth = flipped(dataset.y, 0.0, np.random.default_rng())
    train, test = share_split(truth, TRAIN, seed, task="classification")
    y = flipped(truth[train], level, np.random.default_rng(seed))
    parts = (dataset.X[train], y, truth[train], dataset.X[test], truth[test])
    return Draw(dataset.X[train], y, "classification", partial(worth, *parts))


def worth(X: Any, y: Any, truth: Any, X_test: Any, y_test: Any, S: list[int]) -> dict[str, float]:
    """Accuracy in per cent: learnt from labels as they are, and from the right ones."""
    scores: dict[str, float] = {}
    for name in ("1nn", "svm"):
        for suffix, labels in (("", y), (" clean", truth)):
            if suffix and np.array_equal(y, truth):
                scores[name + suffix] = scores[name]
                continue
            scores[name + suffix] = 100 * accuracy(name, X[:, S], labels, X_test[:, S], y_test)
    return scores


CASES = (
    Case("GSR-FS 5.1, 200 rows", partial(outliers, 200), (20,)),
    Case("GSR-FS 5.1, 500 rows", partial(outliers, 500), (50,), draws=5, ridges=("auto",)),
    Case("GSR-FS 5.1, 2,000 rows", partial(outliers, 2_000), (200,), draws=1, ridges=("auto",),
         levels=(0.0, 0.1), losses=("r = 2", "r = 1", "r = 0.5", "huber"), effort=0.0),
    Case("genes", genes, (20,), losses=tuple(LOSSES), ridges=("auto",)),
    Case("srbct", partial(real, "srbct"), (10, 20), losses=tuple(LOSSES)),
    Case("isolet", partial(real, "isolet"), (10, 20), draws=5, losses=tuple(LOSSES),
         ridges=("auto",), slow=("logistic",)),
)  # fmt: skip
REAL = ("srbct", "isolet")
QUICK = ("GSR-FS 5.1, 200 rows", "srbct")


def cases(terms: Terms) -> list[Case]:
    """What is asked for and can be had."""
    if terms.quick:
        wanted = [
            replace(case, draws=2, levels=(0.0, 0.1), ridges=("auto",))
            for case in CASES
            if case.name in QUICK
        ]
    else:
        wanted = [case for case in CASES if terms.wants(case.name)]
    missing = data.available([case.name for case in wanted if case.name in REAL])[1]
    terms.missing.update(missing)
    return [case for case in wanted if case.name not in missing]


def noise(terms: Terms) -> Records:
    """Every case, draw by draw."""
    for case in cases(terms):
        cells: dict[tuple[Any, ...], Record] = {}
        for seed in range(case.draws):
            start = time.perf_counter()
            for key, scores in measured(case, seed, partial(_lacks, terms, case, seed)):
                names = dict(zip(KEY, key, strict=True))
                kept = terms.kept.find("noise", **names) if terms.add else None
                cell = cells.setdefault(key, kept or {**names, "scores": {}})
                for name, value in scores.items():
                    cell["scores"].setdefault(name, []).append(value)
            # Cells are put in place once a draw is whole.
            for cell in cells.values():
                cell["draws"] = seed + 1
                terms.kept.put("noise", cell, *KEY)
            terms.kept.save("noise", terms.threads)
            took = time.perf_counter() - start
            print(f"{case.name}, draw {seed + 1}: {took:.1f} s", file=sys.stderr, flush=True)
    return {"noise": terms.kept.cells("noise")}


def _lacks(terms: Terms, case: Case, seed: int, key: tuple[Any, ...]) -> bool:
    kept = terms.kept.find("noise", **dict(zip(KEY, key, strict=True))) if terms.add else None
    return kept is None or int(kept["draws"]) <= seed


def measured(
    case: Case, seed: int, lacks: Callable[[tuple[Any, ...]], bool]
) -> Iterator[tuple[tuple[Any, ...], dict[str, float]]]:
    """Choose by every loss in one draw, and score what was chosen."""
    for level in case.levels:
        draw = case.make(seed, level)
        problem = exactk.Problem.from_arrays(draw.X, draw.y, task=draw.task)
        amounts = {"auto": auto_ridge(problem), "0": 0.0}
        for ridge in case.ridges:
            for loss in case.losses:
                if loss in case.slow and ridge != case.ridges[0]:
                    continue
                name, options = LOSSES[loss]
                effort = 0.0 if loss in case.slow else case.effort
                posed = problem.with_ridge(amounts[ridge]).with_loss(name, **options)
                for k in case.sizes:
                    key = (case.name, k, ridge, loss, level)
                    if not lacks(key):
                        continue
                    result = solve(posed, k, "exchange", effort=effort)
                    scores = draw.score(result.support.tolist())
                    flat = float(result.explained < NOTHING)
                    yield key, {**scores, "seconds": result.seconds, "flat": flat}
