"""Warnings about a table and a selection: a list of checks, each of which finds one kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from exactk.errors import join_items
from exactk.problem.problem import Problem
from exactk.result import Result
from exactk.types import Floats

__all__ = ["DataWarning", "class_rows", "find_warnings", "rows_are_compared"]

# Names that a text lists; the rest is counted.
SHOWN = 6
# Above this variance inflation a single coefficient says little.
INFLATION = 10.0
# Rows of the largest class divided by rows of the smallest.
IMBALANCE = 5.0
# A class of fewer rows has hardly any in a fold.
FEW_ROWS = 10
# A text column with this many levels can fit by chance.
MANY_LEVELS = 10
# Rows for each coefficient, a rule of thumb for regression.
ROWS_PER_FEATURE = 10
# Share of the target that one column may leave unexplained without looking like a leak.
LEAKAGE = 1e-3
# Larger tables (in values) are not searched for equal rows.
MAX_VALUES = 2**23


class DataWarning(NamedTuple):
    """One thing that a reader should know: what was found, and what to do about it.

    It is about the columns or classes of these names. If it is serious, the selection or its score
    may be worthless.
    """

    kind: str
    text: str
    names: tuple[str, ...] = ()
    serious: bool = False


def find_warnings(problem: Problem, result: Result) -> list[DataWarning]:
    """Return warnings about the columns, classes and rows of a problem, the serious ones first.

    Examples
    --------
    >>> import exactk
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> X[:, 1] = 7
    >>> problem = exactk.Problem.from_arrays(X, [0] * 55 + [1] * 5, feature_names=["a", "b", "c"])
    >>> [(one.kind, one.names) for one in find_warnings(problem, exactk.solve(problem, 1))]
    [('constant', ('b',)), ('imbalanced', ('0', '1')), ('tiny', ('1',))]
    """
    found = [warning for check in CHECKS for warning in check(problem, result)]
    return sorted(found, key=lambda warning: not warning.serious)


def rows_are_compared(problem: Problem) -> bool:
    """Return whether equal rows are searched for: rows are in memory and not too many."""
    rows = problem.rows
    return rows is not None and rows.n_rows * problem.n_features <= MAX_VALUES


def class_rows(problem: Problem) -> Floats | None:
    """Return the number of rows of each class with weight above zero; None without classes.

    A problem made of moments has no rows: the share of each class by weight times all rows.
    """
    if problem.classes is None:
        return None
    target = problem.target
    if target is None or target.codes is None:
        return problem.with_squared_loss.y_mean * problem.n_rows
    codes = target.codes[problem.weighted_rows]
    return np.bincount(codes, minlength=len(problem.classes)).astype(np.float64)


def _constant(problem: Problem, _: Result) -> Iterator[DataWarning]:
    constant = np.setdiff1d(np.arange(problem.n_features), problem.usable)
    if names := tuple(problem.feature_names[j] for j in constant):
        has = _count(len(names), "column has", "columns have")
        text = f"{has} the same value in every row and cannot be selected: {_list(names)}."
        yield DataWarning("constant", text, names)


def _duplicated(problem: Problem, _: Result) -> Iterator[DataWarning]:
    name = problem.feature_names
    if names := tuple(name[copy] for copy in problem.duplicates):
        pairs = zip(names, (name[first] for first in problem.originals), strict=True)
        are = _count(len(names), "column is a duplicate", "columns are duplicates")
        text = (
            f"{are} of another, up to shift, scale and sign: "
            f"{_list((f'{copy!r} of {first!r}' for copy, first in pairs), quoted=False)}. Only the "
            f"first column is selected; a duplicate fits equally well."
        )
        yield DataWarning("duplicated", text, names)


def _coded(problem: Problem, _: Result) -> Iterator[DataWarning]:
    if names := tuple(category.name for category in problem.categories):
        text = (
            f"{_count(len(names), 'text column is', 'text columns are')} encoded as columns of 0 "
            f"and 1, which are selected together and count as one feature: {_list(names)}."
        )
        yield DataWarning("coded", text, names)


def _many_levels(problem: Problem, result: Result) -> Iterator[DataWarning]:
    many = {
        category.name: f"{category.name!r} ({len(category.levels)})"
        for category in problem.categories
        if len(category.levels) >= MANY_LEVELS and np.isin(category.columns, result.support).any()
    }
    if many:
        text = (
            f"Selected text columns have many levels: {_list(many.values(), quoted=False)}. All "
            f"levels of a column count as one feature, so it may fit by chance. Trust the score on "
            f"held-out rows, and compare with a selection without the column."
        )
        yield DataWarning("many levels", text, tuple(many))


def _collinear(problem: Problem, result: Result) -> Iterator[DataWarning]:
    columns = result.support[np.isin(result.support, problem.usable)]
    if len(columns) < 2:
        return
    block = problem.gram.block(columns)
    size = np.sqrt(np.maximum(np.diagonal(block), np.finfo(float).tiny))
    # The diagonal of the inverse correlation matrix is the variance inflation of each column.
    inflation = np.diagonal(np.linalg.pinv(block / np.outer(size, size), hermitian=True))
    worst = [i for i in np.argsort(-inflation, kind="stable") if inflation[i] > INFLATION]
    shown = {problem.name(int(columns[i])): inflation[i] for i in worst}
    if shown:
        factors = _list((f"{name!r} ({value:.0f})" for name, value in shown.items()), quoted=False)
        text = (
            f"{_count(len(worst), 'selected column is', 'selected columns are')} nearly a linear "
            f"combination of the others (variance inflation above {INFLATION:.0f}): {factors}. "
            f"Single coefficients are unreliable. A limit on the correlation selects columns that "
            f"are less alike."
        )
        yield DataWarning("collinear", text, tuple(shown))


def _classes(problem: Problem, _: Result) -> Iterator[DataWarning]:
    counts, classes = class_rows(problem), problem.classes
    if counts is None or classes is None:
        return
    rows = dict(zip(map(str, classes), counts.tolist(), strict=True))
    if empty := tuple(name for name in rows if rows[name] == 0):
        text = f"{_count(len(empty), 'class has', 'classes have')} no rows: {_list(empty)}."
        yield DataWarning("empty", text, empty)
    rows = {name: n for name, n in rows.items() if n > 0}
    largest, smallest = max(rows, key=rows.__getitem__), min(rows, key=rows.__getitem__)
    ratio = rows[largest] / rows[smallest]
    if ratio >= IMBALANCE:
        advice = "Balanced class weights and balanced accuracy count all classes equally."
        if problem.base_weights:
            advice = "The class weights correct the fit; balanced accuracy corrects the score."
        text = (
            f"The largest class, {largest!r}, has {ratio:.3g} times the rows of the smallest, "
            f"{smallest!r}: large classes dominate the fit and the accuracy. {advice}"
        )
        yield DataWarning("imbalanced", text, (largest, smallest))
    if tiny := tuple(name for name in rows if rows[name] < FEW_ROWS):
        shown = _list((f"{name!r} ({rows[name]:g})" for name in tiny), quoted=False)
        text = (
            f"{_count(len(tiny), 'class has', 'classes have')} fewer than {FEW_ROWS} rows: "
            f"{shown}. Results for such classes rest on few rows."
        )
        yield DataWarning("tiny", text, tiny, serious=rows[smallest] < 3)


def _shape(problem: Problem, result: Result) -> Iterator[DataWarning]:
    k, n = len(result.support), problem.n_rows
    if n < ROWS_PER_FEATURE * k:
        text = (
            f"{n} rows for {_count(k, 'column', 'columns')} are fewer than "
            f"{ROWS_PER_FEATURE} for each. Other rows may give other columns; see the stability."
        )
        yield DataWarning("few rows", text)
    if problem.n_features > n:
        text = (
            f"The table has more columns ({problem.n_features:,}) than rows ({n:,}), so some "
            f"columns fit by chance. Trust the score on held-out rows, not the fit."
        )
        yield DataWarning("wide", text)


def _given_away(problem: Problem, _: Result) -> Iterator[DataWarning]:
    squared, usable = problem.with_squared_loss, problem.usable
    gains = (squared.cross[:, usable] ** 2).sum(axis=0) / squared.scatter[usable]
    explained = float(gains.max(initial=0.0)) / squared.total
    if 1.0 - explained < LEAKAGE:
        name = problem.name(int(usable[np.argmax(gains)]))
        text = (
            f"{name!r} alone explains {explained:.2%} of the target. If it is computed from the "
            f"target, or known only after it, leave it out."
        )
        yield DataWarning("given away", text, (name,), serious=True)


def _row_number(problem: Problem, result: Result) -> Iterator[DataWarning]:
    rows = problem.rows
    columns = () if rows is None else result.support
    if names := tuple(problem.name(j) for j in columns if _counts_rows(problem, j)):
        text = (
            f"{_list(names)} counts the rows. In a table that is sorted by the target, the order "
            f"of the rows then explains the target; leave such a column out."
        )
        yield DataWarning("row number", text, names, serious=True)


def _counts_rows(problem: Problem, column: int) -> bool:
    """Whether a column rises or falls by the same step from row to row."""
    assert problem.rows is not None
    steps = np.diff(problem.rows.columns(np.array([column]))[:, 0])
    return len(steps) > 2 and steps[0] != 0 and bool(np.allclose(steps, steps[0], atol=0))


def _repeated_rows(problem: Problem, _: Result) -> Iterator[DataWarning]:
    if problem.rows is None or not rows_are_compared(problem):
        return
    values = problem.rows.columns(np.arange(problem.n_features))[problem.weighted_rows]
    if repeated := len(values) - len(np.unique(values, axis=0)):
        text = (
            f"{_count(repeated, 'row is', 'rows are')} equal to another row in every feature. If "
            f"equal rows are the same sample, put them into one group of rows: otherwise a fold "
            f"may be scored on rows that it was trained on."
        )
        yield DataWarning("repeated rows", text)


CHECKS = (
    _constant, _duplicated, _coded, _many_levels, _collinear, _classes, _shape, _given_away,
    _row_number, _repeated_rows,
)  # fmt: skip


def _count(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"


def _list(names: Iterable[str], *, quoted: bool = True) -> str:
    return join_items(names, SHOWN, quoted=quoted)
