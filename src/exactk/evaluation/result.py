"""The result of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import Any

from exactk.errors import join_items
from exactk.model_selection.cross_validation import Split
from exactk.question import GIVEN
from exactk.result import Status
from exactk.types import Floats
from exactk.utils.records_table import RecordsTable, TableResult

__all__ = ["COLUMNS", "FOLD_COLUMNS", "Evaluation"]

COLUMNS = (
    "method", "test_score", "standard_error", "difference", "difference_error", "naive_score",
    "k", "objective", "excess", "stability", "seconds", "n_shared", "features", "status", "note",
)  # fmt: skip
FOLD_COLUMNS = (
    "method", "fold", "n_train", "n_test", "k", "features", "test_score", "naive_score",
    "baseline_score",
)  # fmt: skip
# Shares explained that differ by less are equal.
EQUAL = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(TableResult):
    """What `exactk.evaluate` found.

    Attributes
    ----------
    table : RecordsTable
        One row for each method, the reference first. Of the folds: ``test_score`` and its
        ``standard_error``; ``difference`` to the score of the reference, and ``difference_error``,
        the standard error of that, computed fold by fold (a guide, not a test, as folds share
        training rows); ``naive_score``; ``stability``, Nogueira's index. Of the selection on all
        rows: ``k``, ``features``, ``objective``; ``excess``, the share by which the objective is
        above the lowest one of the methods that keep the constraints; ``seconds``; ``n_shared``,
        how many of the features the reference has, too. ``status`` and ``note``: a method without
        an answer is "refused", "time_limit" or "error", and its numbers are nan.
    folds : RecordsTable
        One row for each method and fold: ``method``, ``fold``, ``n_train``, ``n_test``, ``k``,
        ``features``, ``test_score``, ``naive_score``, ``baseline_score``.
    predictions : list
        For each row, what the estimator predicted on the features of the reference when the row
        was held out (the last time if it was several times); None if it never was.
    splits : list of (train, test)
        Row numbers of each fold.
    k, features : int, tuple of str
        What the reference selected on all rows.
    baseline_score : float
        Mean score without features: of the most frequent class, or of the mean.
    all_features_score : float
        Mean score with all features that are not excluded; nan if the table has more than 1,000
        columns or 2,000,000 values, or if the estimator cannot be trained on them.
    observed, null : float, ndarray
        `Result.explained` of the same search on the target, and on each shuffled one; of an
        existing selection itself.
    ridge : float
        Ridge of the reference on all rows, and of all objectives.
    scoring, estimator, task : str
    n_rows, n_features : int
    message : str
        What was not done, or what limits the scores; empty otherwise.
    status : Status
        ``interrupted`` after Ctrl-C, else the status of the reference on all rows.
    """

    table: RecordsTable
    folds: RecordsTable
    predictions: list[Any] = field(repr=False)
    splits: list[Split] = field(repr=False)
    k: int
    features: tuple[str, ...]
    baseline_score: float
    all_features_score: float
    observed: float
    null: Floats = field(repr=False)
    ridge: float
    scoring: str
    estimator: str
    task: str
    n_rows: int
    n_features: int
    message: str
    status: Status

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.splits)

    @property
    def test_score(self) -> float:
        """Mean score of the folds; the features are selected on their training rows alone."""
        return float(self.table[0]["test_score"])

    @property
    def standard_error(self) -> float:
        """Standard error of `test_score`; nan for a single fold."""
        return float(self.table[0]["standard_error"])

    @property
    def naive_score(self) -> float:
        """Mean score on the same folds of features that were selected on all rows."""
        return float(self.table[0]["naive_score"])

    @property
    def optimism(self) -> float:
        """Difference of `naive_score` to `test_score`; nan for an existing selection."""
        if self.table[0]["method"] == GIVEN:
            return nan
        return self.naive_score - self.test_score

    @property
    def stability(self) -> float:
        """Nogueira's index of the selections of the folds: 1 if they agree, about 0 if random."""
        return float(self.table[0]["stability"])

    @property
    def in_all_folds(self) -> tuple[str, ...]:
        """Features that were selected in every fold."""
        sets = [row["features"] for row in self.folds[: self.n_folds]]
        return tuple(name for name in sets[0] if all(name in names for names in sets))

    @property
    def n_as_good(self) -> int:
        """Number of shuffled targets that the same search explains as well."""
        return int((self.null >= self.observed - EQUAL).sum())

    @property
    def p_value(self) -> float:
        """Of the permutation test: (1 + `n_as_good`) / (1 + number of shuffled targets)."""
        return (1 + self.n_as_good) / (1 + len(self.null)) if len(self.null) else nan

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON; NaN and infinity are None.

        Predictions and splits are left out, as they are as long as the table.
        """
        numbers = (
            "test_score", "standard_error", "naive_score", "optimism", "baseline_score",
            "all_features_score", "stability", "observed", "p_value",
        )  # fmt: skip
        values = {name: getattr(self, name) for name in numbers}
        plain = ("scoring", "estimator", "task", "n_rows", "n_features", "n_folds", "k", "ridge")
        return {
            **{name: getattr(self, name) for name in plain},
            **{name: value if isfinite(value) else None for name, value in values.items()},
            "n_permutations": len(self.null), "n_as_good": self.n_as_good,
            "null": self.null.tolist(), "features": list(self.features),
            "in_all_folds": list(self.in_all_folds), "status": str(self.status),
            "message": self.message, "methods": self.table.to_plain(),
            "folds": self.folds.to_plain(),
        }  # fmt: skip

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores of the folds with `exactk.plots.ScoreDisplay`; return the Axes."""
        from exactk.plots.score import ScoreDisplay

        return ScoreDisplay(self).plot(ax)

    def __repr__(self) -> str:
        """Return the scores in a few lines."""
        every = ["method", "score", "difference", "excess", "shared", "stability"]
        head = every if len(self.table) > 1 else ["method", "score", "stability"]
        cells = [_shown(row, number == 0) for number, row in enumerate(self.table)]
        table = RecordsTable(head, [[row[name] for name in head] for row in cells])
        sizes = [row["k"] for row in self.folds[: self.n_folds]]
        words = f" with {join_items(sizes, 20, quoted=False)} features"
        lines = [
            f"{self.scoring} of {self.estimator} on {self.k} of {self.n_features} features, "
            f"{self.n_folds} fold{'s' * (self.n_folds != 1)}{words * (set(sizes) != {self.k})}",
            table.to_text(),
            f"score without features {self.baseline_score:.3f}",
        ]
        if isfinite(self.all_features_score):
            lines[-1] += f", with all features {self.all_features_score:.3f}"
        if isfinite(self.optimism):
            lines.append(
                f"score if features are selected on all rows {self.naive_score:.3f}, "
                f"optimism {self.optimism:+z.3f}"
            )
        if len(self.null):
            lines.append(
                f"{self.n_as_good} of {len(self.null)} shuffled targets did as well "
                f"(p = {self.p_value:.3g})"
            )
        lines += [f"{row['method']}: {row['note']}" for row in self.table if row["note"]]
        return "\n".join([*lines, *([self.message] if self.message else [])])


def _shown(row: dict[str, Any], is_reference: bool) -> dict[str, str]:
    """Return the cells of a method as text."""
    if not isfinite(row["test_score"]):
        return dict.fromkeys([*COLUMNS, "shared"], "") | {
            "method": row["method"],
            "score": row["status"],
        }
    return {
        "method": row["method"],
        "score": _with_error(row["test_score"], row["standard_error"], "z.3f"),
        "difference": "reference" if is_reference
        else _with_error(row["difference"], row["difference_error"], "+z.3f"),
        "excess": "∞" if row["excess"] == inf else f"{row['excess']:z.2%}",
        "shared": f"{row['n_shared']} of {len(row['features'])}",
        "stability": f"{row['stability']:z.3f}" if isfinite(row["stability"]) else "",
    }  # fmt: skip


def _with_error(value: float, error: float, style: str) -> str:
    return f"{value:{style}} ± {error:.3f}" if isfinite(error) else f"{value:{style}}"
