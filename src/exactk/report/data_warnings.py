"""What a reader should know of the table before believing what was chosen of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from exactk.errors import join_items
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.types import Floats

__all__ = ["DataWarning", "class_rows", "find_warnings", "rows_are_compared"]


# Names that a remark lists; the count tells of the rest.
SHOWN = 6
# Variance inflation from which on a coefficient says little by itself.
INFLATED = 10.0
# The largest class has so many times the rows of the smallest.
IMBALANCE = 5.0
# Rows of a class from which on a fold has some of them and their mean is worth something.
FEW_ROWS = 10
# Levels of a chosen column of text from which on one should ask whether it fits by chance.
MANY_LEVELS = 10
# Rows for each coefficient, a rule of thumb of regression.
ROWS_PER_FEATURE = 10
# What a single column may leave of the target before one asks where it comes from.
LEAKAGE = 1e-3
# Values of a table that are compared row by row.
READ = 2**23


@dataclass(frozen=True)
class DataWarning:
    """One thing to know.

    Attributes
    ----------
    kind : str
        ``constant``, ``duplicated``, ``collinear``, ``imbalanced``, ``empty``, ``tiny``,
        ``few rows``, ``wide``, ``many levels``, ``repeated rows``, ``row number``,
        ``given away`` or ``coded``.
    text : str
        What is so, and what to do about it.
    serious : bool
        Whether it may make the choice, or a score, worth nothing.
    """

    kind: str
    text: str
    serious: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def find_warnings(problem: Problem, result: Result) -> list[DataWarning]:
    """Return remarks on the columns, the classes and the rows of a problem and what was chosen.

    Parameters
    ----------
    problem : Problem
    result : Result
        Of this problem.

    Examples
    --------
    >>> import exactk
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> X[:, 1] = 7
    >>> problem = exactk.Problem.from_arrays(X, [0] * 55 + [1] * 5, feature_names=["a", "b", "c"])
    >>> for remark in find_warnings(problem, exactk.solve(problem, 1)):
    ...     print(remark.kind, "-", remark.text.split(":")[0])
    constant - 1 column has one value only and cannot be chosen
    imbalanced - The largest class has 11 times the rows of the smallest
    tiny - 1 class has fewer than 10 rows
    """
    remarks = [
        *_columns(problem),
        *_many_levels(problem, result),
        *_collinear(problem, result),
        *_classes(problem),
        *_rows(problem, result),
    ]
    return sorted(remarks, key=lambda remark: not remark.serious)


def rows_are_compared(problem: Problem) -> bool:
    """Return whether rows are held against each other: they are at hand, and not too many."""
    rows = problem.rows
    return rows is not None and rows.n_rows * problem.n_features <= READ


def class_rows(problem: Problem) -> Floats | None:
    """Return how many rows each class has, those of weight zero left out; None without classes.

    Of moments alone it is their number times the share of each class by weight.
    """
    if problem.classes is None:
        return None
    target = problem.target
    if target is None or target.codes is None:
        return problem.with_squared_loss.y_mean * problem.n_rows
    weights = problem.row_weights
    counted = target.codes >= 0 if weights is None else (target.codes >= 0) & (weights > 0)
    found = np.bincount(target.codes[counted], minlength=len(problem.classes))
    return found.astype(np.float64)


def _columns(problem: Problem) -> Iterable[DataWarning]:
    names = problem.feature_names
    constant = np.setdiff1d(np.arange(problem.n_features), problem.usable)
    if constant.size:
        has = "has" if constant.size == 1 else "have"
        yield DataWarning(
            "constant",
            f"{_count(constant.size, 'column')} {has} one value only and cannot be chosen: "
            f"{join_items([names[j] for j in constant], SHOWN)}.",
        )
    if problem.duplicates.size:
        pairs = [
            f"{names[copy]!r} of {names[original]!r}"
            for copy, original in zip(problem.duplicates, problem.originals, strict=True)
        ]
        yield DataWarning(
            "duplicated",
            f"{_count(len(pairs), 'column')} {'is a copy' if len(pairs) == 1 else 'are copies'} of "
            f"another, up to shift, scale and sign: {_joined(pairs)}. Only the first of such "
            f"columns is chosen; the others would do as well.",
        )
    if problem.categories:
        yield DataWarning(
            "coded",
            f"{_count(len(problem.categories), 'column')} of text or categories "
            f"{'is' if len(problem.categories) == 1 else 'are'} coded as columns of 0 and 1, which "
            f"enter together and count as one: "
            f"{join_items([category.name for category in problem.categories], SHOWN)}.",
        )


def _many_levels(problem: Problem, result: Result) -> Iterable[DataWarning]:
    chosen = set(result.support.tolist())
    many = [
        f"{category.name!r} ({len(category.levels)})"
        for category in problem.categories
        if len(category.levels) >= MANY_LEVELS and not chosen.isdisjoint(category.columns)
    ]
    if many:
        yield DataWarning(
            "many levels",
            f"Columns of text with many levels are among the chosen: {_joined(many)}. All levels "
            f"of a column count as one feature, so that it has more to fit with, and may be chosen "
            f"by chance. Trust the score on rows held out, and see what leaving it out costs.",
        )


def _collinear(problem: Problem, result: Result) -> Iterable[DataWarning]:
    support = result.support
    live = support[np.isin(support, problem.usable)]
    if len(live) < 2:
        return
    block = problem.gram.block(live)
    size = np.sqrt(np.maximum(np.diagonal(block), np.finfo(float).tiny))
    # The inverse of correlations has the inflation of each variance on its diagonal.
    inflation = np.diagonal(np.linalg.pinv(block / np.outer(size, size), hermitian=True))
    inflated = np.argsort(-inflation, kind="stable")
    inflated = inflated[inflation[inflated] > INFLATED]
    if inflated.size:
        worst = [f"{problem.name(live[i])!r} ({inflation[i]:.0f})" for i in inflated]
        yield DataWarning(
            "collinear",
            f"Of the chosen {_count(inflated.size, 'column')} can nearly be computed from the "
            f"others (variance inflation above {INFLATED:.0f}): {_joined(worst)}. Each is of use "
            f"beside the others, but their coefficients say little one by one. A limit of "
            f"correlation between them picks columns that are less alike.",
        )


def _classes(problem: Problem) -> Iterable[DataWarning]:
    counts, classes = class_rows(problem), problem.classes
    if counts is None or classes is None:
        return
    there = counts[counts > 0]
    empty = [str(label) for label, count in zip(classes, counts, strict=True) if count == 0]
    if empty:
        yield DataWarning(
            "empty",
            f"{_count(len(empty), 'class', 'classes')} {'has' if len(empty) == 1 else 'have'} no "
            f"rows: {join_items(empty, SHOWN)}. Nothing here is about "
            f"{'it' if len(empty) == 1 else 'them'}.",
        )
    ratio = float(there.max() / there.min())
    if ratio >= IMBALANCE:
        way = (
            "The classes are weighted; balanced accuracy would score them alike, too."
            if problem.base_weights
            else "Balanced class weights make all classes count the same, and balanced accuracy "
            "scores them so."
        )
        yield DataWarning(
            "imbalanced",
            f"The largest class has {ratio:.3g} times the rows of the smallest: a fit gains most "
            f"on large classes, and accuracy hides what becomes of small ones. {way}",
        )
    tiny = np.flatnonzero((counts > 0) & (counts < FEW_ROWS))
    if tiny.size:
        shown = [f"{str(classes[i])!r} ({counts[i]:g})" for i in tiny]
        yield DataWarning(
            "tiny",
            f"{_count(tiny.size, 'class', 'classes')} {'has' if tiny.size == 1 else 'have'} fewer "
            f"than {FEW_ROWS} rows: {_joined(shown)}. What is said of them rests on these few.",
            serious=bool(there.min() < 3),
        )


def _rows(problem: Problem, result: Result) -> Iterable[DataWarning]:
    k, n = len(result.support), problem.n_rows
    if n < ROWS_PER_FEATURE * k:
        yield DataWarning(
            "few rows",
            f"{n} rows for {_count(k, 'column')} are fewer than {ROWS_PER_FEATURE} for each: other "
            f"rows may well ask for other columns. See how stable the choice is.",
        )
    if problem.n_features > n:
        yield DataWarning(
            "wide",
            f"There are more columns ({problem.n_features:,}) than rows ({n:,}), so that some fit "
            f"by chance. Trust the score on rows held out, not the fit.",
        )
    first, alone = _best_alone(problem)
    if alone < LEAKAGE:
        yield DataWarning(
            "given away",
            f"{problem.name(first)!r} explains {1 - alone:.2%} of the target by itself. Is it "
            f"computed from the target, or known only after it? Then leave it out.",
            serious=True,
        )
    yield from _read_rows(problem, result)


def _best_alone(problem: Problem) -> tuple[int, float]:
    """The column that explains most by itself, and the share that it leaves."""
    squared, usable = problem.with_squared_loss, problem.usable
    if usable.size == 0:
        return 0, 1.0
    gains = (squared.cross[:, usable] ** 2).sum(axis=0) / squared.scatter[usable]
    best = int(np.argmax(gains))
    return int(usable[best]), 1.0 - float(gains[best]) / squared.total


def _read_rows(problem: Problem, result: Result) -> Iterable[DataWarning]:
    rows = problem.rows
    if rows is None:
        return
    numbers = [
        j for j in result.support.tolist() if _is_row_number(rows.columns(np.array([j]))[:, 0])
    ]
    if numbers:
        named = join_items([problem.name(j) for j in numbers], SHOWN)
        yield DataWarning(
            "row number",
            f"{named} counts the rows one by one. A table that is sorted by the "
            f"target is then explained by the order of its rows; leave such a column out.",
            serious=True,
        )
    if rows_are_compared(problem):
        values = rows.columns(np.arange(problem.n_features))[problem.weighted_rows]
        repeated = len(values) - len(np.unique(values, axis=0))
        if repeated:
            yield DataWarning(
                "repeated rows",
                f"{_count(repeated, 'row')} {'is' if repeated == 1 else 'are'} equal to another in "
                f"every feature. Where equal rows are the same sample, put them into one group of "
                f"rows, or a score on rows held out has seen some of them.",
            )


def _is_row_number(values: Floats) -> bool:
    """Whether a column goes up or down by the same step from row to row."""
    steps = np.diff(values)
    return len(steps) > 2 and steps[0] != 0 and bool(np.allclose(steps, steps[0], atol=0))


def _count(n: int, noun: str, several: str = "") -> str:
    return f"{n:,} {noun if n == 1 else several or noun + 's'}"


def _joined(words: Sequence[str]) -> str:
    more = f" and {len(words) - SHOWN:,} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more
