"""Which ridge chooses the columns that classify best: fixed values, rules and cross-validation.

Each data set is split 60 : 40 within the classes; columns are chosen and standardised on the
training part only; 1-NN and a linear SVM (C = 1) are scored on the rest.

Rows are drawn by `exactk.papers.experiments.splits.share_split`; the record that is kept was drawn
by an earlier rule, which rounded the share of each class by itself, so that a new run splits
otherwise.

    python -m benchmarks.ridge_leaderboard             kept in results/ridge_leaderboard.json
    python -m benchmarks.ridge_leaderboard --quick     a few sets, one split, only printed
    python -m benchmarks.ridge_leaderboard --report    the table of the kept record again

With `--loss logistic` the model on the chosen columns is scored, too: its accuracy, and its
deviance on the rows held out. That record is results/ridge_leaderboard_logistic.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import log_softmax
from scipy.stats import rankdata
from sklearn.feature_selection import f_classif

from benchmarks import data, harness
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
SIZES = (5, 10, 20, 50)
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


def run_split(part: Split, sizes: Sequence[int], options: argparse.Namespace) -> dict[str, Any]:
    """Scores of every rule at every k on one split: `{k: {rule: [1-NN, SVM]}}`.

    With a logistic model its own follow: accuracy and mean deviance.
    """
    import exactk

    problem = exactk.Problem.from_arrays(part.X, part.y, task="classification", loss=options.loss)
    by_model = options.loss == "logistic"
    found: dict[str, Any] = {}
    for k in sizes:
        found[str(k)] = {} if by_model else {F_SCORE: part.scores(part.by_f_score(k))}
        for name, rule in RULES[options.loss].items():
            if name == "cv" and options.no_cv:
                continue
            ridge = rule(part.X.shape[0], part.usable.size)
            result = exactk.solve(problem.with_ridge(ridge, k), k, effort=options.effort)
            own = part.of_model(result) if by_model else []
            found[str(k)][name] = [*part.scores(tuple(result.support.tolist())), *own]
    return found


def run_set(dataset: data.Dataset, options: argparse.Namespace) -> dict[str, Any]:
    """Mean scores over the splits of one data set."""
    rng = np.random.default_rng(options.seed)
    dataset = thin_out(dataset, MOST_ROWS, rng)
    per_split = [run_split(Split(dataset, rng), options.k, options) for _ in range(options.splits)]
    return {
        str(k): {
            name: np.mean([found[str(k)][name] for found in per_split], axis=0).tolist()
            for name in per_split[0][str(k)]
        }
        for k in options.k
    }


def standings(record: dict[str, Any]) -> list[list[str]]:
    """One row a rule, best mean rank first."""
    cells = [(name, k) for name, sizes in record["scores"].items() for k in sizes]
    rules = list(record["scores"][cells[0][0]][cells[0][1]])
    values = np.array([[record["scores"][s][k][rule] for rule in rules] for s, k in cells])
    accuracy = values[:, :, :3].mean(axis=2)
    ranks = rankdata(-accuracy.round(6), axis=1).mean(axis=0)
    wide = np.array([record["sets"][s]["features"] > record["sets"][s]["rows"] for s, _ in cells])

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


def report(record: dict[str, Any]) -> str:
    """The leaderboard as Markdown."""
    about = (
        f"{record['date']}: {len(record['sets'])} data sets, {record['splits']} splits, "
        f"k = {', '.join(map(str, record['k']))}, effort {record['effort']}; mean test accuracy "
        "in %, mean rank over data sets and k."
    )
    own = []
    if record.get("loss", "squared") == "logistic":
        about += " Loss: logistic; of its model accuracy and, over the least of the cell, deviance."
        own = ["model", "deviance"]
    header = ["ridge", "mean rank", "accuracy", "1-NN", "SVM", *own, "n < d", "n ≥ d"]
    return about + "\n\n" + harness.markdown(header, standings(record))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ridge_leaderboard", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", nargs="+", metavar="NAME")
    parser.add_argument("--k", nargs="+", type=int, default=list(SIZES), metavar="K")
    parser.add_argument("--loss", choices=list(RULES), default="squared")
    parser.add_argument("--splits", type=int)
    parser.add_argument("--effort", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-cv", action="store_true", help="leave the rule cv out")
    parser.add_argument("--quick", action="store_true", help="a few sets, one split")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save", metavar="NAME", help="name of the record; default for all sets")
    parser.add_argument("--report", action="store_true", help="print the kept record, run nothing")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    default = "ridge_leaderboard" + ("_logistic" if options.loss == "logistic" else "")
    if options.report:
        stored = harness.RESULTS / f"{options.save or default}.json"
        print(report(json.loads(stored.read_text(encoding="utf-8"))))
        return
    harness.pin_threads(options.threads)
    names, missing = data.available(options.data or (QUICK_SETS if options.quick else SETS))
    options.splits = options.splits or (1 if options.quick else 3)
    if missing:
        print(f"left out, no file: {', '.join(missing)} (set {data.FOLDER_VARIABLE})")
    if not names:
        return
    scores: dict[str, Any] = {}
    sets: dict[str, Any] = {}
    for dataset in data.load_all(names):
        start = time.perf_counter()
        scores[dataset.name] = run_set(dataset, options)
        sets[dataset.name] = {"rows": dataset.X.shape[0], "features": dataset.X.shape[1]}
        print(f"{dataset.name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    record = {
        **harness.circumstances(options.threads),
        "splits": options.splits,
        "k": options.k,
        "effort": options.effort,
        "loss": options.loss,
        "missing": missing,
        "sets": sets,
        "scores": scores,
    }
    name = options.save or (default if set(names) == set(SETS) else None)
    if name:
        harness.write_record(name, record)
    print(report(record))


if __name__ == "__main__":
    main()
