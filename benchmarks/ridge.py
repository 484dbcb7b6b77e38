"""Which ridge chooses the columns that classify best: fixed values, rules and cross-validation.

Each data set is split 60 : 40 within the classes; columns are chosen and standardised on the
training part only; 1-NN and a linear SVM (C = 1) are scored on the rest.

Rows are drawn by `exactk.papers.experiments.splits.share_split`; the record that is kept was drawn
by an earlier rule, which rounded the share of each class by itself, so that a new run splits
otherwise.

squared   columns chosen by squared loss
logistic  columns chosen by logistic loss; its model on them is scored, too: accuracy, and deviance
          on the held-out rows
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax
from scipy.stats import rankdata
from sklearn.feature_selection import f_classif

import exactk
from benchmarks import data, harness
from benchmarks.harness import Options, Record, Row
from exactk.papers.experiments.classifiers import accuracy
from exactk.papers.experiments.splits import share_split

Rule = Callable[[int, int], float | str]

# One version of each source: allaml stands for leu and leukemia, orl for orl_full and so on.
SETS = (
    "srbct", "allaml", "lymphoma", "prostate_ge", "colon", "lung56", "carcinom", "arcene",
    "warppie10p", "warpar10p", "yale", "orl", "jaffe", "umist",
    "coil20", "isolet", "semeion", "usps",
)  # fmt: skip
QUICK_SETS = ("srbct", "colon", "warpar10p", "jaffe", "semeion")
SIZES = {"squared": (5, 10, 20, 50), "logistic": (5, 10, 20)}
MOST_ROWS = 1_500
F_SCORE = "F score"


def square_root_rule(n: int, d: int) -> float:
    """A tenth of the square root of columns per row, between 0.1 and 3."""
    return min(max(0.1 * math.sqrt(d / n), 0.1), 3.0)


def constant(value: float) -> Rule:
    """The same ridge for every table."""
    return lambda n, d: value


def share_of_rule(share: float) -> Rule:
    """A share of the rule for squared loss."""
    return lambda n, d: share * square_root_rule(n, d)


THE_RULE = "0.1·√(d/n) in [0.1, 3]"
RULES: dict[str, dict[str, Rule]] = {
    "squared": {
        **{f"{value:g}": constant(value) for value in (1e-6, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)},
        THE_RULE: square_root_rule,
        "0.03·d/n": lambda n, d: 0.03 * d / n,
        "cv": lambda n, d: "cv",
    },
    "logistic": {
        **{f"{value:g}": constant(value) for value in (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3)},
        **{f"{s:g} × ({THE_RULE})": share_of_rule(s) for s in (0.01, 0.03, 0.1, 0.3, 1.0)},
    },
}


def thin_out(dataset: data.Dataset, most: int, rng: np.random.Generator) -> data.Dataset:
    """At most about `most` rows, the classes in proportion."""
    share = most / dataset.y.size
    if share >= 1:
        return dataset
    rows, _ = share_split(dataset.y, share, rng, task="classification")
    return data.Dataset(dataset.name, dataset.X[rows], dataset.y[rows])


class Split:
    """One training and one test part; scores of a support are computed once."""

    def __init__(self, dataset: data.Dataset, rng: np.random.Generator) -> None:
        train, test = share_split(dataset.y, 0.6, rng, task="classification")
        self.X, self.y = dataset.X[train], dataset.y[train]
        self.X_test, self.y_test = dataset.X[test], dataset.y[test]
        self.usable = np.flatnonzero(np.ptp(self.X, axis=0) > 0)
        self._seen: dict[tuple[int, ...], list[float]] = {}

    def scores(self, support: tuple[int, ...]) -> list[float]:
        """Test accuracy of 1-NN and of the linear SVM on the columns of `support`."""
        if support not in self._seen:
            columns = list(support)
            parts = (self.X[:, columns], self.y, self.X_test[:, columns], self.y_test)
            self._seen[support] = [accuracy(classifier, *parts) for classifier in ("1nn", "svm")]
        return self._seen[support]

    def of_model(self, result: Any) -> list[float]:
        """Test accuracy of a logistic model, and its mean deviance on the test part."""
        outputs = self.X_test[:, result.support] @ result.coef.T + result.intercept
        logs = log_softmax(outputs, axis=1)
        codes = np.searchsorted(np.unique(self.y), self.y_test)
        right = np.argmax(logs, axis=1) == codes
        return [float(right.mean()), -2.0 * float(logs[np.arange(len(codes)), codes].mean())]

    def by_f_score(self, k: int) -> tuple[int, ...]:
        """The k columns of largest F statistic."""
        order = np.argsort(-f_classif(self.X[:, self.usable], self.y)[0], kind="stable")
        return tuple(sorted(self.usable[order[:k]].tolist()))


def run_split(part: Split, loss: str) -> dict[str, Any]:
    """Scores of every rule at every k on one split: `{k: {rule: [1-NN, SVM]}}`.

    With a logistic model its own follow: accuracy and mean deviance.
    """
    problem = exactk.Problem.from_arrays(part.X, part.y, task="classification", loss=loss)
    by_model = loss == "logistic"
    found: dict[str, Any] = {}
    for k in SIZES[loss]:
        found[str(k)] = {} if by_model else {F_SCORE: part.scores(part.by_f_score(k))}
        for name, rule in RULES[loss].items():
            posed = problem.with_ridge(rule(part.X.shape[0], part.usable.size), k)
            result = exactk.solve(posed, k, effort=0)
            own = part.of_model(result) if by_model else []
            found[str(k)][name] = [*part.scores(tuple(result.support.tolist())), *own]
    return found


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--data", nargs="+", default=list(SETS))
    parser.add_argument("--splits", type=int, default=2)


def scores(loss: str, options: Options) -> Iterator[Row]:
    """Mean scores over the splits of each data set."""
    for dataset in data.sets(options, QUICK_SETS if options.quick else options.data, quick=5):
        n, d = dataset.X.shape
        rng = np.random.default_rng(0)
        thin = thin_out(dataset, MOST_ROWS, rng)
        splits = 1 if options.quick else options.splits
        found = [run_split(Split(thin, rng), loss) for _ in range(splits)]
        means = {
            k: {name: np.mean([split[k][name] for split in found], axis=0).tolist() for name in row}
            for k, row in found[0].items()
        }
        yield {"data": dataset.name, "rows": n, "features": d, "scores": means}


def standings(rows: Sequence[Row]) -> list[list[str]]:
    """One row a rule, best mean rank first."""
    cells = [scores for row in rows for scores in row["scores"].values()]
    rules = list(cells[0])
    values = np.array([[scores[rule] for rule in rules] for scores in cells])
    accuracy = values[:, :, :3].mean(axis=2)
    ranks = rankdata(-accuracy.round(6), axis=1).mean(axis=0)
    wide = np.array([row["features"] > row["rows"] for row in rows for _ in row["scores"]])

    by_model = values.shape[2] > 2
    least = values[:, :, 3].min(axis=1) if by_model else None

    def percent(part: Any) -> str:
        return f"{100 * part.mean():.2f}" if part.size else ""

    def relative(deviance: Any) -> str:
        return f"{harness.geometric_mean(deviance / least):.3f}"

    return [
        [
            rules[i],
            f"{ranks[i]:.2f}",
            percent(accuracy[:, i]),
            percent(values[:, i, 0]),
            percent(values[:, i, 1]),
            *([percent(values[:, i, 2]), relative(values[:, i, 3])] if by_model else []),
            percent(accuracy[wide, i]),
            percent(accuracy[~wide, i]),
        ]
        for i in np.argsort(ranks)
    ]


def report(record: Record) -> str:
    """A leaderboard for each loss, as Markdown."""
    parts = []
    for loss in (loss for loss in PARTS if loss in record):
        rows, own = record[loss], []
        about = (
            f"{record['headers'][loss]['date']}, {loss} loss: {len(rows)} data sets, "
            f"{record['splits']} splits, k = {', '.join(rows[0]['scores'])}, effort 0; mean test "
            "accuracy in %, mean rank over data sets and k."
        )
        if loss == "logistic":
            about += " Of the model accuracy and, over the least of the cell, deviance."
            own = ["model", "deviance"]
        header = ["ridge", "mean rank", "accuracy", "1-NN", "SVM", *own, "n < d", "n ≥ d"]
        parts += [about, harness.markdown(header, standings(rows))]
    return "\n\n".join(parts)


PARTS = {loss: partial(scores, loss) for loss in RULES}
