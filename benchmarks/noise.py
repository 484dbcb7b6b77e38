"""Wrong labels: which columns are chosen by losses of different order, and what they are worth.

Labels (or signs, in the generator of GSR-FS) are wrong where columns are chosen and a classifier
learns, never where it is tested. A share of labels is at least one row; of more noise the rows
of less are a part. Every loss sees the same draws.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import exactk
from benchmarks import data
from benchmarks.data import solve
from benchmarks.figures import grid
from benchmarks.harness import Options, Record, Row, markdown
from benchmarks.losses import about
from exactk.model_selection.ridge import auto_ridge
from exactk.papers.datasets import make_genes, make_outliers
from exactk.papers.experiments.classifiers import accuracy
from exactk.papers.experiments.splits import share_split
from exactk.report import svg
from exactk.report.scales import Scale, linear

THREADS = 1
CAN_ADD = True
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
ORDERS = ("r = 0.5", "r = 0.75", "r = 1", "r = 1.5", "r = 2")
BASE = "r = 2"
CLASSIFIERS = ("1nn", "svm")
# Cases in the figure, and how far apart points at the same r are drawn.
SHOWN = ("GSR-FS 5.1, 200 rows", "genes", "srbct", "isolet")
APART = 0.018
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "img" / "losses_noise.svg"

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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--data", nargs="+", metavar="NAME", help="only these cases")


def cases(options: Options) -> list[Case]:
    """What is asked for and can be had."""
    if options.quick:
        wanted = [
            replace(case, draws=2, levels=(0.0, 0.1), ridges=("auto",))
            for case in CASES
            if case.name in QUICK
        ]
    else:
        wanted = [case for case in CASES if not options.data or case.name in options.data]
    missing = data.available([case.name for case in wanted if case.name in REAL])[1]
    options.missing.update(missing)
    return [case for case in wanted if case.name not in missing]


def cells(options: Options) -> Iterator[Row]:
    """Every case: the scores of all its draws, a row for each size, ridge, loss and level."""
    for case in cases(options):
        if options.has(data=case.name):
            continue
        rows: dict[tuple[Any, ...], Row] = {}
        for seed in range(case.draws):
            for key, scores in measured(case, seed):
                row = rows.setdefault(
                    key, {**dict(zip(KEY, key, strict=True)), "scores": {}, "draws": case.draws}
                )
                for name, value in scores.items():
                    row["scores"].setdefault(name, []).append(value)
        yield from rows.values()


def measured(case: Case, seed: int) -> Iterator[tuple[tuple[Any, ...], dict[str, float]]]:
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
                    result = solve(posed, k, "exchange", effort=effort)
                    scores = draw.score(result.support.tolist())
                    flat = float(result.explained < NOTHING)
                    yield key, {**scores, "seconds": result.seconds, "flat": flat}


PARTS = {"cells": cells}


def values(cell: Row, names: Iterable[str]) -> list[float]:
    """The mean of some scores in each draw."""
    lists = [cell["scores"][name] for name in names]
    return [statistics.fmean(draw) for draw in zip(*lists, strict=True)]


def mean_se(found: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; that of a single value is not known."""
    if len(found) < 2:
        return statistics.fmean(found), float("nan")
    return statistics.fmean(found), statistics.stdev(found) / sqrt(len(found))


def shown(found: Sequence[float], sign: str = "") -> str:
    """A mean with its standard error."""
    mean, se = mean_se(found)
    return f"{mean:{sign}.1f}" + (f" ± {se:.1f}" if se == se else "")


def unique(cells: Iterable[Row], name: str) -> list[Any]:
    """The values of a field, in the order of the record."""
    return list(dict.fromkeys(cell[name] for cell in cells))


def percent(level: float) -> str:
    """A share of wrong rows."""
    return f"{100 * level:g} %"


def score_table(cells: Sequence[Row], names: Sequence[str]) -> str:
    """Means of one case: a row for each size, ridge and loss, a column for each level."""
    levels = unique(cells, "level")
    titles = {"recovered": "found", "1nn": "1-NN", "svm": "SVM"}
    header = ["loss", "ridge", "k"]
    header += [f"{titles[name]}, {percent(level)}" for name in names for level in levels]
    rows = []
    by_key = {(c["k"], c["ridge"], c["loss"], c["level"]): c for c in cells}
    for k, ridge, loss in dict.fromkeys((c["k"], c["ridge"], c["loss"]) for c in cells):
        row = [by_key[k, ridge, loss, level] for level in levels]
        scores = [shown(values(cell, [name])) for name in names for cell in row]
        rows.append([loss, ridge, f"{k}", *scores])
    order = {loss: i for i, loss in enumerate(unique(cells, "loss"))}
    rows.sort(key=lambda row: (row[1] != "auto", int(row[2]), order[row[0]]))
    return markdown(header, rows)


def paired(cells: Sequence[Row], names: Sequence[str]) -> dict[tuple[str, str, float], Any]:
    """Differences to squared loss, draw by draw: the mean over sizes and scores."""
    by_key: dict[tuple[str, str, float], list[Any]] = {}
    base = {(c["k"], c["ridge"], c["level"]): c for c in cells if c["loss"] == BASE}
    for cell in cells:
        other = base[cell["k"], cell["ridge"], cell["level"]]
        gain = np.subtract(values(cell, names), values(other, names))
        by_key.setdefault((cell["ridge"], cell["loss"], cell["level"]), []).append(gain)
    return {key: np.mean(gains, axis=0) for key, gains in by_key.items() if key[1] != BASE}


def paired_table(cells: Sequence[Row]) -> str:
    """The same as a table, with classifiers that learn from the labels as given, and right."""
    levels = unique(cells, "level")
    learnt = {"as given": CLASSIFIERS, "right": tuple(f"{name} clean" for name in CLASSIFIERS)}
    header = ["loss", "ridge", *(f"{words}, {percent(x)}" for words in learnt for x in levels)]
    found = [paired(cells, names) for names in learnt.values()]
    rows = []
    for ridge, loss in dict.fromkeys(key[:2] for key in found[0]):
        gains = [all_gains[ridge, loss, level] for all_gains in found for level in levels]
        rows.append([loss, ridge, *(shown(gain.tolist(), "+") for gain in gains)])
    return markdown(header, rows)


def tables(cells: Sequence[Row]) -> str:
    """A table for each case, and differences to squared loss where columns are classified with."""
    parts = []
    for name in unique(cells, "data"):
        own = [cell for cell in cells if cell["data"] == name]
        draws = own[0]["draws"]
        flat = int(sum(sum(cell["scores"]["flat"]) for cell in own))
        note = f" In {flat} solves the model found is that without columns." if flat else ""
        many = f"{draws} draw{'s' if draws > 1 else ''}"
        if "recovered" in own[0]["scores"]:
            about = f"true columns found among k, {many}, mean ± standard error."
            parts.append(f"**{name}**: {about}{note}\n\n{score_table(own, ['recovered'])}")
            continue
        about = f"accuracy on clean rows in per cent, {many}, mean ± standard error."
        parts += [
            f"**{name}**: {about}{note}\n\n{score_table(own, CLASSIFIERS)}",
            f"{name}, points above squared loss in the same draws, both classifiers and sizes "
            f"together; classifiers learn from the labels as given, or from the right ones:\n\n"
            f"{paired_table(own)}",
        ]
    return "\n\n".join(parts)


def panel(name: str, cells: Sequence[Row]) -> svg.Plot:
    """One case: what is reached against r, a line for each share of wrong rows."""
    k = max(unique(cells, "k"))
    rows = [c for c in cells if c["k"] == k and c["ridge"] == "auto" and c["loss"] in ORDERS]
    names = ["recovered"] if "recovered" in rows[0]["scores"] else CLASSIFIERS
    levels = unique(rows, "level")
    lines: list[list[svg.Point]] = []
    for slot, level in enumerate(levels):
        at = {c["loss"]: mean_se(values(c, names)) for c in rows if c["level"] == level}
        aside = APART * (slot - (len(levels) - 1) / 2)
        lines.append([
            svg.Point(order(loss) + aside, *at[loss],
                      f"{percent(level)}, {loss}: {at[loss][0]:.1f} ± {at[loss][1]:.1f}")
            for loss in ORDERS
        ])  # fmt: skip
    ticks = tuple((order(loss), f"{order(loss):g}") for loss in ORDERS)
    x = Scale(0.45, 2.05, svg.LEFT, svg.RIGHT, ticks)
    y = linear(svg.y_range([point for line in lines for point in line]), svg.BOTTOM, svg.TOP)
    what = f"accuracy in %, k = {k}, mean of 1-NN and SVM"
    if "recovered" in names:
        what = f"true columns among k = {k}"
    plot = svg.Plot(x, y, f"{name}: {what}")
    plot.axes("r", what)
    for slot, points in enumerate(lines):
        plot.series(points, slot, spread="bars")
    return plot


def order(loss: str) -> float:
    """The r of a loss."""
    return float(loss.split()[-1])


def figure(record: Record) -> str:
    """Panels two by two, with one legend."""
    cells = record["cells"]
    names = [name for name in SHOWN if name in unique(cells, "data")]
    panels = [(name, panel(name, [c for c in cells if c["data"] == name])) for name in names]
    levels = [percent(level) for level in unique(cells, "level")]
    return grid("Order r of the loss against wrong labels", panels, levels, "wrong rows:")


def report(record: Record) -> str:
    """Every case, as Markdown."""
    return f"{about(record)}\n\n{tables(record['cells'])}"


def page(record: Record) -> str:
    """What the page about losses shows of a record: the figure, and differences."""
    parts = [
        "### Wrong labels",
        f"{record['date']}, `python -m benchmarks noise`; shares of the training labels, or rows "
        f'of numbers, that are wrong; ridge "auto".',
        "![What is reached against the order r of the loss, one line for each share of wrong "
        "labels](img/losses_noise.svg)",
    ]
    plain = [cell for cell in record["cells"] if cell["ridge"] == "auto"]
    for name in unique(plain, "data"):
        own = [cell for cell in plain if cell["data"] == name]
        draws = f"{own[0]['draws']} draw{'s' if own[0]['draws'] > 1 else ''}"
        if "recovered" in own[0]["scores"]:
            parts += [f"**{name}**, true columns among k, {draws}:",
                      score_table(own, ["recovered"])]  # fmt: skip
        else:
            parts += [f"**{name}**, points of accuracy above squared loss, 1-NN and SVM at k = 10 "
                      f"and 20 together, {draws}; classifiers learn from the labels as given, or "
                      f"from the right ones:", paired_table(own)]  # fmt: skip
    return "\n\n".join(parts)
