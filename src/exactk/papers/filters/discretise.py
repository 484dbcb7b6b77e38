"""Columns as a few levels, and what levels tell of the classes and of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, did_you_mean
from exactk.papers.filters.base import BLOCK_VALUES, Labels, column_blocks, labels
from exactk.papers.methods.standard_table import column_unit
from exactk.params import Check, Number
from exactk.problem.problem import Problem
from exactk.types import Floats, Indices

__all__ = [
    "BINS",
    "WIDTH",
    "Bins",
    "LevelBlock",
    "LevelTable",
    "best_of",
    "class_tables",
    "discretise",
    "entropy",
    "level_blocks",
    "x_log_x",
]

Codes = npt.NDArray[np.uint8]

# Values closer than this, in standard deviations, are one value: units and shifts leave rounding
# of about 1e-11 where the mean is a hundred thousand times the spread.
SAME = 1e-9
# The same for mid-ranks, which are shares of the rows.
SAME_RANK = 1e-9
# Levels are kept in one byte; an even number of bins may take one more for the middle.
MOST_BINS = 255
# Beyond this many distinct values a column is a number rather than a name.
MOST_VALUES = 64
# Whole numbers up to this are exact in float32, and so are their sums.
EXACT_FLOAT32 = 2**24
# Criteria that differ by less than this, beside the largest, differ by rounding.
ROUNDING = 1e-12
# Up to this many right-hand sides a product goes vector by vector: the table is read from the
# cache, and nothing is packed for a product of matrices.
FEW_VECTORS = 4


@dataclass(frozen=True)
class Bins(Check):
    """How columns become levels: a word, or a number of bins.

    Examples
    --------
    >>> Bins()("bins", 1)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: bins must be 'sd', 'values' or a whole number from 2 to 255, not 1
    """

    options: tuple[str, ...] = ("sd", "values")

    def __str__(self) -> str:
        """Return what to say in an error."""
        shown = ", ".join(repr(word) for word in self.options)
        return self._with_none(f"{shown} or a whole number from 2 to {MOST_BINS}")

    def allows(self, value: Any) -> bool:  # noqa: D102
        if isinstance(value, str):
            return value in self.options
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        return whole and 2 <= value <= MOST_BINS

    def hint(self, value: Any) -> str:  # noqa: D102
        return did_you_mean(value, list(self.options)) if isinstance(value, str) else ""


BINS = Bins()
WIDTH = Number("(0, inf)")


def discretise(
    X: Floats, sd: Floats, weights: Floats, bins: str | int, width: float
) -> tuple[Codes, Indices]:
    """Return the levels of centred columns, and how many each column has.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Columns of weighted mean zero.
    sd : ndarray of shape (m,)
        Their standard deviations √(Σ w x² / Σ w).
    weights : ndarray of shape (n,)
        Above zero.
    bins : {"sd", "values"} or int
        * "sd": below −width·sd, within, above. As Σ w x² = sd²·Σ w, some value lies at least one sd
          from the mean, so that for a width below 1 every column has two levels or three.
        * b, a whole number: equal shares of the rows. The mid-rank r of a value is the share of
          the weight below it and half of that at it; its level is the b-th of [0, 1] in which r
          lies. On a border it goes to the outer side, so that −x has the levels of x in reverse; at
          the middle, r = 1/2 for even b, to the side of the mean on which the value lies, and
          if it is the mean it is a level of its own.
        * "values": every distinct value.
    width : float
        For "sd".

    Returns
    -------
    codes : ndarray of uint8 of shape (m, n)
        Levels in rising order of the values, 0 to the number of levels − 1; none is empty.
    n_levels : ndarray of intp of shape (m,)
        For "values" perhaps more than codes can tell: the caller refuses such columns.

    Examples
    --------
    >>> x = np.array([[-2.0], [-1.0], [0.0], [0.0], [3.0]])
    >>> sd, w = np.sqrt((x**2).mean(axis=0)), np.ones(5)
    >>> discretise(x, sd, w, "sd", 0.5)[0], discretise(x, sd, w, 2, 0.5)[0]
    (array([[0, 0, 1, 1, 2]], dtype=uint8), array([[0, 0, 1, 1, 1]], dtype=uint8))
    """
    if bins == "sd":
        # A value at a border up to rounding lies within.
        border = (width + SAME) * sd
        codes = ((X >= -border).view(np.uint8) + (X > border).view(np.uint8)).T
        return _without_gaps(np.ascontiguousarray(codes))
    Z = np.ascontiguousarray(X.T)
    order = np.argsort(Z, axis=1, kind="stable")
    Z = np.take_along_axis(Z, order, axis=1)
    fresh = np.ones(Z.shape, dtype=bool)
    fresh[:, 1:] = np.diff(Z, axis=1) > SAME * sd[:, None]
    if bins != "values":
        levels = _shares(Z / sd[:, None], weights[order], fresh, int(bins))
        fresh[:, 1:] = np.diff(levels, axis=1) > 0
    rank = np.cumsum(fresh, axis=1, dtype=np.intp) - 1
    codes = np.empty(Z.shape, dtype=np.uint8)
    np.put_along_axis(codes, order, rank.astype(np.uint8), axis=1)
    return codes, rank[:, -1] + 1


def _without_gaps(codes: Codes) -> tuple[Codes, Indices]:
    """The same of three levels, where a column may lack some."""
    present = np.array([(codes == level).any(axis=1) for level in range(3)])
    n_levels: Indices = present.sum(axis=0)
    gaps = np.flatnonzero(n_levels < 3)
    if gaps.size:
        number = (np.cumsum(present[:, gaps], axis=0) - 1).astype(np.uint8)
        codes[gaps] = number[codes[gaps], np.arange(len(gaps))[:, None]]
    return codes, n_levels


def _shares(Z: Floats, weights: Floats, fresh: npt.NDArray[np.bool_], b: int) -> Floats:
    """Level of each sorted value: its mid-rank in b equal shares, on a border the outer one."""
    n = Z.shape[1]
    places = np.arange(n)
    above = np.cumsum(weights, axis=1)
    first = np.maximum.accumulate(np.where(fresh, places, 0), axis=1)
    ends = np.ones_like(fresh)
    ends[:, :-1] = fresh[:, 1:]
    last = np.minimum.accumulate(np.where(ends, places, n)[:, ::-1], axis=1)[:, ::-1]
    below = np.take_along_axis(above - weights, first, axis=1)
    through = np.take_along_axis(above, last, axis=1)
    share = b * (below + through) / (2.0 * above[:, -1:])
    border = np.abs(share - np.round(share)) < SAME_RANK * b
    middle = np.abs(share - 0.5 * b) < SAME_RANK * b
    levels = np.where(border, np.round(share) - (share < 0.5 * b), np.floor(share))
    if b % 2 == 0:
        side = np.sign(np.where(np.abs(Z) > SAME, Z, 0.0))
        levels = np.where(middle, 0.5 * b - 0.5 + 0.5 * side, levels)
    return np.clip(levels, 0, b - 1)


@dataclass(frozen=True, eq=False)
class LevelBlock:
    """Columns with the same number of levels.

    Attributes
    ----------
    part : ndarray of intp of shape (m,)
        Positions among the candidates.
    codes : ndarray of uint8 of shape (m, n)
    n_levels : int
    """

    part: Indices
    codes: Codes
    n_levels: int

    def indicators(self, dtype: npt.DTypeLike, columns: slice) -> npt.NDArray[Any]:
        """Zeros and ones for all levels but the last, (levels − 1)·columns × n."""
        codes = self.codes[columns]
        out = np.empty((self.n_levels - 1, *codes.shape), dtype=dtype)
        for level in range(self.n_levels - 1):
            np.equal(codes, level, out=out[level], casting="unsafe")
        return out.reshape(-1, codes.shape[1])


def level_blocks(
    problem: Problem, held: Labels, bins: str | int, width: float
) -> Iterator[LevelBlock]:
    """Return the candidates as levels, some at a time, those with as many levels together."""
    S = problem.candidates
    sd = np.sqrt(problem.scatter[S] / problem.weight) / column_unit(problem)
    for part, X in column_blocks(problem, held.rows):
        codes, n_levels = discretise(X, sd[part], held.weights, bins, width)
        if bins == "values" and n_levels.max() > MOST_VALUES:
            first = int(np.argmax(n_levels > MOST_VALUES))
            raise InputError(
                f"bins='values' takes columns of at most {MOST_VALUES} distinct values, and "
                f"column {problem.name(S[part][first])!r} has {n_levels[first]}", parameter="bins",
                hint="give bins='sd', or a number of bins such as bins=5",
            )  # fmt: skip
        positions = np.arange(part.start, part.stop)
        for count in np.unique(n_levels):
            same = np.flatnonzero(n_levels == count)
            yield LevelBlock(positions[same], codes[same], int(count))


def count_type(weights: Floats) -> type[np.float32] | type[np.float64]:
    """float32 where it counts exactly: whole weights with a sum below 2²⁴."""
    whole = weights.sum() < EXACT_FLOAT32 and bool((weights == np.round(weights)).all())
    return np.float32 if whole else np.float64


def x_log_x(counts: Floats) -> Floats:
    """Return x·log x, which is 0 at 0.

    Examples
    --------
    >>> x_log_x(np.array([0.0, np.e])).round(3)
    array([-0.   ,  2.718])
    """
    # The smallest number has a logarithm; times zero that is zero.
    logs: Floats = counts * np.log(np.maximum(counts, np.finfo(np.float64).tiny))
    return logs


def entropy(counts: Floats, axis: int | tuple[int, ...] = 0) -> Floats:
    """Return the entropy, in nats, of the distributions that counts along an axis stand for.

    Examples
    --------
    >>> round(float(entropy(np.array([2.0, 2.0, 0.0]))), 6)
    0.693147
    """
    total = counts.sum(axis=axis)
    found: Floats = np.log(total) - x_log_x(counts).sum(axis=axis) / total
    return found


def class_tables(
    problem: Problem, bins: str | int, width: float
) -> Iterator[tuple[Indices, Floats]]:
    """Return the contingency tables of classes and levels, some columns at a time.

    Yields
    ------
    part : ndarray of intp of shape (m,)
        Positions among the candidates.
    counts : ndarray of shape (classes, levels, m)
        Weight of the rows of each class at each level.
    """
    held = labels(problem)
    right = _class_rows(held)
    for block in level_blocks(problem, held, bins, width):
        step = max(1, BLOCK_VALUES // max(1, held.n_classes * block.n_levels))
        for start in range(0, len(block.part), step):
            some = slice(start, start + step)
            pieces = [block.indicators(right.dtype, some)]
            counts = _products(right, pieces, block.n_levels, len(block.part[some]))
            yield block.part[some], _with_last(counts, held.sizes)


def _class_rows(held: Labels) -> npt.NDArray[Any]:
    """Weight of each row in the row of its class, classes × n."""
    out = np.zeros((held.n_classes, len(held.codes)), dtype=count_type(held.weights))
    out[held.codes, np.arange(len(held.codes))] = held.weights
    return out


def _products(
    right: npt.NDArray[Any], pieces: Iterable[npt.NDArray[Any]], n_levels: int, m: int
) -> Floats:
    """Weights that fall on each level but the last: (q, levels − 1, m)."""
    q = len(right)
    if q == 0 or n_levels < 2:
        return np.zeros((q, n_levels - 1, m))
    found = []
    for Z in pieces:
        product = np.array([Z @ row for row in right]) if q <= FEW_VECTORS else right @ Z.T
        found.append(product.astype(np.float64).reshape(q, n_levels - 1, -1))
    return found[0] if len(found) == 1 else np.concatenate(found, axis=2)


def _with_last(counts: Floats, sizes: Floats) -> Floats:
    """The counts of all levels: what is missing from the sizes of the rows lies on the last."""
    last = sizes[:, None] - counts.sum(axis=1)
    return np.concatenate([counts, np.maximum(last, 0.0)[:, None, :]], axis=1)


class LevelTable:
    """All candidates as levels, for filters that compare columns with each other.

    I(x_p; x_q) for one p and all q comes from a product of the indicators of the levels of x_p
    with those of all columns: 2n·(L_p − 1)·Σ(L_q − 1) operations. Indicators are made once where
    they fit the memory limit of the problem, and otherwise anew for each product.

    Parameters
    ----------
    problem : Problem
    bins, width
        As in `discretise`.

    Attributes
    ----------
    H : ndarray of shape (m,)
        Entropy of each candidate, in nats.
    H_y : float
        Entropy of the classes.
    relevance : ndarray of shape (m,)
        Mutual information of each candidate and the classes.
    """

    def __init__(self, problem: Problem, bins: str | int, width: float) -> None:
        held = labels(problem)
        m, n = len(problem.candidates), len(held.codes)
        if m * n > problem.memory_limit:
            raise InputError(
                f"this method keeps the levels of the whole table, {m * n / 2**30:.1f} GiB, more "
                f"than memory_limit={problem.memory_limit:,}", parameter="memory_limit",
                hint="raise memory_limit in Problem.from_arrays, or use method='infogain'",
            )  # fmt: skip
        self._weights, self._type = held.weights, count_type(held.weights)
        self._blocks = _joined(level_blocks(problem, held, bins, width))
        values = sum(block.codes.size * (block.n_levels - 1) for block in self._blocks)
        self._kept: list[list[npt.NDArray[Any]]] | None = None
        if values * np.dtype(self._type).itemsize <= problem.memory_limit:
            self._kept = [list(self._pieces(block)) for block in self._blocks]
        self._where = np.empty((m, 2), dtype=np.intp)
        self._sizes: list[Floats] = []
        self.H, self.relevance = np.empty(m), np.empty(m)
        self.H_y = float(entropy(held.sizes))
        right = _class_rows(held)
        for number, block in enumerate(self._blocks):
            counts = _with_last(self._counts(right, number), held.sizes)
            self._sizes.append(counts.sum(axis=0))
            self.H[block.part] = H = entropy(self._sizes[-1])
            self.relevance[block.part] = H + self.H_y - entropy(counts, axis=(0, 1))
            self._where[block.part, 0] = number
            self._where[block.part, 1] = np.arange(len(block.part))
        self.relevance[self.relevance < ROUNDING] = 0.0

    def information(self, p: int) -> Floats:
        """Mutual information of candidate p and every candidate, in nats."""
        number, place = self._where[p]
        block, sizes = self._blocks[number], self._sizes[number][:, place]
        levels = np.arange(block.n_levels - 1)[:, None]
        right = ((block.codes[place] == levels) * self._weights).astype(self._type)
        found = np.empty(len(self.H))
        for other, columns in enumerate(self._blocks):
            counts = _with_last(self._counts(right, other), sizes[:-1])
            last = np.maximum(self._sizes[other] - counts.sum(axis=0), 0.0)
            joint = np.concatenate([counts, last[None]], axis=0)
            H = self.H[columns.part]
            found[columns.part] = H + self.H[p] - entropy(joint, axis=(0, 1))
        found[found < ROUNDING] = 0.0
        return found

    def uncertainty(self, p: int) -> Floats:
        """Symmetrical uncertainty 2·I(x_p; x_q)/(H(x_p) + H(x_q)) with every candidate q."""
        return _share(self.information(p), self.H[p] + self.H)

    def class_uncertainty(self) -> Floats:
        """Symmetrical uncertainty of every candidate and the classes."""
        return _share(self.relevance, self.H + self.H_y)

    def _counts(self, right: npt.NDArray[Any], number: int) -> Floats:
        block = self._blocks[number]
        pieces = self._pieces(block) if self._kept is None else self._kept[number]
        return _products(right, pieces, block.n_levels, len(block.part))

    def _pieces(self, block: LevelBlock) -> Iterator[npt.NDArray[Any]]:
        step = max(1, BLOCK_VALUES // max(1, block.codes.shape[1] * (block.n_levels - 1)))
        for start in range(0, len(block.part), step):
            yield block.indicators(self._type, slice(start, start + step))


def _share(information: Floats, entropies: Floats) -> Floats:
    """Twice the first over the second, and nothing of nothing is nothing."""
    return np.divide(
        2.0 * information, entropies, out=np.zeros_like(information), where=entropies > 0
    )


def _joined(blocks: Iterator[LevelBlock]) -> list[LevelBlock]:
    """One block for each number of levels."""
    by_count: dict[int, list[LevelBlock]] = {}
    for block in blocks:
        by_count.setdefault(block.n_levels, []).append(block)
    return [
        LevelBlock(
            np.concatenate([block.part for block in same]),
            np.concatenate([block.codes for block in same]),
            count,
        )
        for count, same in sorted(by_count.items())
    ]


def best_of(scores: Floats, second: Floats) -> int:
    """Return the first of the highest scores; what is equal up to rounding by a second score.

    Rounding is that of the larger of the two: scores may be differences with the second.

    Examples
    --------
    >>> best_of(np.array([1.0, 3.0, 3.0 + 1e-15]), np.array([9.0, 1.0, 1.0]))
    1
    >>> best_of(np.array([1e-17, 0.0]), np.array([0.2, 0.5]))
    1
    """
    sizes = float(np.abs(scores).max()), float(np.abs(second).max())
    equal = np.flatnonzero(scores >= scores.max() - ROUNDING * max(sizes))
    return int(equal[np.argmax(second[equal] >= second[equal].max() - ROUNDING * sizes[1])])
