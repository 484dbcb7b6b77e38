"""What a comparison of methods comes to: one row a method, and the folds behind it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, nan, sqrt
from typing import Any

import numpy as np

from exactk.choose.folds import Split
from exactk.tidy import Tidy

__all__ = ["Comparison", "Outcome", "tabulate"]

COLUMNS = (
    "method", "mean", "standard_error", "difference", "difference_error", "objective", "excess",
    "stability", "seconds", "shared", "features", "status", "note",
)  # fmt: skip
FOLD_COLUMNS = ("method", "fold", "score", "features")
# An objective below this share of the one without columns is rounding, and no more than another.
ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    table : Tidy
        One row a method, in the order in which they were asked for: method; mean and
        standard_error of its honest scores; difference of the mean to that of the first method,
        and difference_error, its standard error over the folds, fold by fold (folds share
        training rows, so that both errors are a guide and no test); objective of the
        features chosen on all rows, by the problem, ridge term included; excess, by how much that
        is above the least of those that keep the constraints, as a share of it (below it, where
        it does not keep them; infinite, where the least is nothing but rounding); stability,
        Nogueira's index of the choices of the folds; seconds that choosing on all rows took, with
        all that is made of the table for it; shared, how many of its features are among those of
        the first method; features, chosen on all rows; status; note. A method that gave no answer
        has status "refused", "time_limit" or "error", nan for its figures, and the reason as its
        note.
    folds : Tidy
        One row a method and fold: method, fold, score, features.
    k : int
    ridge : float
        Of the objective, and of the methods of exactk on all rows.
    baseline : float
        Mean score of the commonest class, or of the mean, of the training rows.
    all_features : float
        Mean score of the same estimator with every column that may be chosen; nan where the table
        has more than 1,000 columns or 2,000,000 values, or the estimator cannot be trained on all.
    scoring, estimator : str
    task : {"classification", "regression"}
    n_rows, n_features, n_folds : int
    message : str
        What was not done as asked, else empty.
    splits : list of (train, test)
        Numbers of the rows.
    """

    table: Tidy
    folds: Tidy
    k: int
    ridge: float
    baseline: float
    all_features: float
    scoring: str
    estimator: str
    task: str
    n_rows: int
    n_features: int
    n_folds: int
    message: str
    splits: list[Split] = field(repr=False)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `table` as a frame of pandas, or of ``library="polars"``."""
        return self.table.to_frame(library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; nan becomes None."""
        figures = {"baseline": self.baseline, "all_features": self.all_features}
        return {
            "k": self.k, "scoring": self.scoring, "estimator": self.estimator, "task": self.task,
            "n_rows": self.n_rows, "n_features": self.n_features, "n_folds": self.n_folds,
            "ridge": self.ridge,
            **{name: value if isfinite(value) else None for name, value in figures.items()},
            "message": self.message, "methods": json.loads(self.table.to_json()),
            "folds": json.loads(self.folds.to_json()),
        }  # fmt: skip

    def to_json(self, **options: Any) -> str:
        """Return `to_dict` as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **options)

    def lines(self, *, seconds: bool = True) -> list[str]:
        """Return the table as aligned lines for the eye, numbers rounded."""
        first, *_ = rows = self.table.to_dicts()
        head = ["method", self.scoring, "difference", "excess", "stability", "seconds", "shared"]
        table = Tidy(head, [_shown(row, row is first) for row in rows])
        return table[[name for name in head if seconds or name != "seconds"]].to_text().splitlines()

    def __repr__(self) -> str:
        """Return the figures in a few lines."""
        whole = f", {self.all_features:.3f} all" if isfinite(self.all_features) else ""
        notes = [f"{row['method']}: {row['note']}" for row in self.table if row["note"]]
        return "\n".join(
            [
                f"{self.scoring} of {self.estimator} on {self.k} of {self.n_features} features "
                f"chosen within each of {self.n_folds} folds",
                *self.lines(seconds=False),
                f"{self.baseline:.3f} with no features{whole}",
                *notes,
            ]
        )


def _shown(row: dict[str, Any], is_first: bool) -> list[str]:
    """The cells of a method, in words."""
    if not isfinite(row["mean"]):
        return [row["method"], row["status"], "", "", "", "", ""]
    excess = "∞" if row["excess"] == inf else f"{row['excess']:z.2%}"
    difference = _with_error(row["difference"], row["difference_error"], "+z.3f")
    shared = "" if row["shared"] is None else f"{row['shared']} of {len(row['features'])}"
    return [
        row["method"],
        _with_error(row["mean"], row["standard_error"]),
        "reference" if is_first else difference,
        excess,
        # Without a sign where nothing is left but a zero.
        f"{row['stability']:z.3f}" if isfinite(row["stability"]) else "",
        f"{row['seconds']:.2g}" if row["seconds"] < 10 else f"{row['seconds']:.0f}",
        shared,
    ]


def _with_error(value: float, error: float, style: str = "z.3f") -> str:
    if not isfinite(value):
        return ""
    return f"{value:{style}} ± {error:.3f}" if isfinite(error) else f"{value:{style}}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one method; without scores it gave no answer.

    Attributes
    ----------
    method : str
    status, note : str
    scores : tuple of float
        One for each fold.
    chosen : tuple of tuple of str
        Features of each fold.
    features : tuple of str
        Chosen on all rows, as the three below.
    objective, stability, seconds : float
    keeps_rules : bool
        Whether the features keep the rules of the problem.
    """

    method: str
    status: str
    note: str
    scores: tuple[float, ...] = ()
    chosen: tuple[tuple[str, ...], ...] = ()
    features: tuple[str, ...] = ()
    objective: float = nan
    stability: float = nan
    seconds: float = nan
    keeps_rules: bool = True


def tabulate(outcomes: Sequence[Outcome], total: float = 0.0) -> tuple[Tidy, Tidy]:
    """Return the table of the methods and that of the folds; the first method is the reference.

    Parameters
    ----------
    outcomes : sequence of Outcome
    total : float
        The objective without any column.

    Examples
    --------
    >>> one = Outcome("a", "converged", "", (0.5, 0.75), (("x",), ("x",)), ("x",), 2.0, 1.0, 0.1)
    >>> other = Outcome("b", "converged", "", (0.25, 1.0), (("y",), ("x",)), ("x",), 3.0, -1.0, 0.1)
    >>> table, folds = tabulate([one, other])
    >>> table[["method", "mean", "difference", "difference_error", "excess", "shared"]]
    method  mean   difference  difference_error  excess  shared
    a       0.625  0           0                 0       1
    b       0.625  0           0.25              0.5     1
    """
    done = [one for one in outcomes if one.scores]
    keeping = [one for one in done if one.keeps_rules] or done
    least = min((one.objective for one in keeping), default=nan)
    rows = [_row(one, outcomes[0], least, ROUNDING * total) for one in outcomes]
    folds = [
        (one.method, number, score, names)
        for one in outcomes
        for number, (score, names) in enumerate(zip(one.scores, one.chosen, strict=True), start=1)
    ]
    return Tidy(COLUMNS, rows), Tidy(FOLD_COLUMNS, folds)


def _row(one: Outcome, first: Outcome, least: float, nothing: float) -> list[Any]:
    mean, error, difference, difference_error, excess, shared = nan, nan, nan, nan, nan, None
    if one.scores:
        mean, error = _mean(one.scores)
        excess = _excess(one.objective, least, nothing)
    if one.scores and first.scores:
        pairs = zip(one.scores, first.scores, strict=True)
        difference, difference_error = _mean([own - other for own, other in pairs])
        shared = len(set(one.features) & set(first.features))
    return [
        one.method, mean, error, difference, difference_error, one.objective, excess,
        one.stability, one.seconds, shared, one.features, one.status, one.note,
    ]  # fmt: skip


def _excess(objective: float, least: float, nothing: float) -> float:
    """The share by which an objective is above the least, which may be none but for rounding."""
    if least > nothing:
        return objective / least - 1.0
    return inf if objective > nothing else 0.0


def _mean(values: Sequence[float]) -> tuple[float, float]:
    error = float(np.std(values, ddof=1)) / sqrt(len(values)) if len(values) > 1 else nan
    return float(np.mean(values)), error
