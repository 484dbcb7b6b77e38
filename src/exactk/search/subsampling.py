"""Half-samples of a Problem, in complementary pairs (Shah and Samworth 2013).

Few rows are drawn one by one, classes spread evenly. Many rows are dealt out to blocks once, and a
half-sample is half of the blocks; then it is made of whichever costs less by the estimates of the
table: the moments of the blocks, added up, or the rows themselves. The rows of a stream that is too
large to be held go to blocks by a hash of their values in one pass, and where the moments of the
blocks do not fit in memory, every pair of half-samples takes a pass of its own. Of rows that belong
together whole groups are drawn, by their labels alone.

Rows are drawn by their share in ‖XᵀHY‖² and not by their position. So stability does not depend on
the order of rows, units or names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.design_matrix import DesignMatrix
from exactk.data.gram import FIRST_COLUMNS
from exactk.data.moments import Moments
from exactk.data.targets import Target
from exactk.data.usable_columns import TINY_SQUARE
from exactk.errors import InputError
from exactk.problem.problem import Problem
from exactk.streaming.split import SplitReducer
from exactk.streaming.to_memory import TooLargeError
from exactk.types import Bools, Floats, Indices

__all__ = [
    "LEAST_PLACES",
    "BlockMoments",
    "SortedRows",
    "check_rows",
    "count_places",
    "half_samples",
    "number_groups",
]


# A key is made of so many values of the table at most, but of so many columns at least, those
# that go best with the target first; rows that agree in all of them are told apart by number.
KEY_VALUES = 2**25
KEY_COLUMNS = 64
# Values that are standardised at a time, and columns at least: a sparse table is passed over for
# every chunk.
CHUNK_VALUES = 2**21
CHUNK_COLUMNS = 16
# More places than these are not shuffled: rows then go to one half or the other as a whole.
MOST_PLACES = 2**25
# On halves of two rows every column fits perfectly.
LEAST_PLACES = 6


def count_places(problem: Problem) -> int:
    """Return how many rows there are to draw from; one of whole weight w counts w times."""
    weights = problem.weights
    if weights is None or not _are_whole(weights):
        return problem.n_rows
    return int(weights.sum())


def _are_whole(weights: Floats) -> bool:
    """Whether weights are numbers of equal rows, few enough to be shuffled one by one."""
    return bool(weights.sum() <= MOST_PLACES and (weights == np.round(weights)).all())


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The rows of a problem in the order of their keys, class after class.

    Attributes
    ----------
    rows : DesignMatrix
    target : Target
    weights : ndarray or None
        As the problem has them; None also if they are counted by `strata`.
    strata : list of ndarray of intp
        Row numbers, one array for each class; a row of whole weight w is there w times.
    repeated : bool
        Whether any row is there more than once.
    """

    rows: DesignMatrix
    target: Target
    weights: Floats | None
    strata: list[Indices]
    repeated: bool

    @classmethod
    def of(cls, problem: Problem) -> SortedRows:
        """Put the rows of a problem in memory into order."""
        rows, target, weights = problem.rows, problem.target, problem.weights
        assert rows is not None
        assert target is not None
        whole = weights is None or _are_whole(weights)
        alive = np.arange(rows.n_rows) if weights is None else np.flatnonzero(weights)
        order = alive[np.argsort(_row_keys(problem, rows, target)[alive], kind="stable")]
        counts = None if weights is None or not whole else weights[order].astype(np.intp)
        places = order if counts is None else np.repeat(order, counts)
        repeated = counts is not None and bool((counts > 1).any())
        return cls(rows, target, None if whole else weights, _by_class(places, target), repeated)

    def stratified_split(self, n_parts: int, rng: np.random.Generator) -> list[Indices]:
        """Shuffle the rows of each class and deal them out; a row that is there twice may be split.

        Returns
        -------
        list of ndarray of intp
            Row numbers, as often as the rows count.
        """
        shuffled = [stratum[rng.permutation(len(stratum))] for stratum in self.strata]
        order = np.concatenate(shuffled)
        return [np.sort(order[part::n_parts]) for part in range(n_parts)]

    def taken(self, drawn: Indices) -> tuple[DesignMatrix, Target, Floats | None]:
        """Return the table, the target and the weights of rows that were drawn."""
        part, weights = drawn, None
        if self.repeated:
            part, counts = np.unique(drawn, return_counts=True)
            weights = counts.astype(np.float64)
        elif self.weights is not None:
            weights = self.weights[part]
        return self.rows.take(part), self.target.subset(part), weights


def _by_class(places: Indices, target: Target) -> list[Indices]:
    """Split rows by class, the class of the first row first: whatever the classes are called."""
    if target.codes is None:
        return [places]
    codes = target.codes[places]
    _, first = np.unique(codes, return_index=True)
    return [places[codes == codes[at]] for at in np.sort(first)]


def _row_keys(problem: Problem, rows: DesignMatrix, target: Target) -> Floats:
    """Return for each row its share in ‖B‖², of the columns that have most of it."""
    columns = np.setdiff1d(problem.usable, problem.duplicates)
    if columns.size == 0:
        raise InputError(
            "every column is constant: there is nothing to draw half-samples for", parameter="X"
        )
    alone = (problem.cross[:, columns] ** 2).sum(axis=0) / problem.scatter[columns]
    most = max(KEY_COLUMNS, KEY_VALUES // rows.n_rows)
    columns = columns[np.argsort(-alone, kind="stable")][:most]
    towards = np.zeros((rows.n_rows, problem.n_outputs))
    step = max(CHUNK_COLUMNS, CHUNK_VALUES // rows.n_rows)
    for start in range(0, len(columns), step):
        part = columns[start : start + step]
        x = (rows.columns(part) - problem.x_mean[part]) * problem.x_scale[part]
        towards += x @ problem.cross[:, part].T
    if target.codes is None:
        own = np.einsum("ij,ij->i", towards, target.block(0, rows.n_rows))
    else:
        own = towards[np.arange(rows.n_rows), target.codes]
    keys: Floats = own - towards @ problem.y_mean
    return keys


# Half of so many blocks can be chosen in 10^18 ways; fewer where memory asks for it, but with fewer
# than the least the halves would be too much alike.
BLOCKS, LEAST_BLOCKS = 64, 16
# From so many rows on they are drawn in blocks.
BLOCK_ROWS = 2048
# Matrices besides those of the blocks: two halves, and what a search holds.
SPARE_MATRICES = 4
# Bytes of block moments that are added up in a second, roughly.
BYTES = 1e10
# Streams up to this size are read into memory, where draws are better balanced.
HELD_BYTES = 2**28
STRIP = 256


def check_rows(problem: Problem) -> None:
    """Raise for problems whose rows cannot be halved."""
    if problem.rows is None and problem.stream is None:
        raise InputError(
            "half-samples are drawn from the rows of the table, and this problem was made of "
            "moments", parameter="X",
            hint="make it with Problem.from_arrays, from_files, from_dask or from_spark",
        )  # fmt: skip
    places = count_places(problem)
    if places < LEAST_PLACES:
        raise InputError(
            f"half-samples need at least {LEAST_PLACES} rows of weight above zero, and there are "
            f"{places}", parameter="X",
        )  # fmt: skip


def half_samples(
    problem: Problem,
    rng: np.random.Generator,
    *,
    n_subsamples: int,
    with_rows: bool = False,
    groups: Indices | None = None,
) -> Iterator[Problem | None]:
    """Draw half-samples, each followed by the other half of the same draw.

    Parameters
    ----------
    problem : Problem
        Made of a table or a stream.
    rng : Generator
        All that a draw depends on, besides the rows themselves: not their order, and of a table
        in memory not the way in which the halves are made.
    n_subsamples : int
        How many; of an odd number the last has no other half.
    with_rows : bool
        Whether the halves must have rows, for methods that read them.
    groups : ndarray of intp of shape (n,) or None
        Numbers of groups of rows in memory, as `number_groups` gives them: a half is then a half
        of the groups, and the draw goes by these numbers.

    Yields
    ------
    Problem or None
        Under the rules of the problem; None for a half in which the target is constant.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> problem = Problem.from_arrays(*load_iris(return_X_y=True))
    >>> [half.n_rows for half in half_samples(problem, np.random.default_rng(0), n_subsamples=4)]
    [75, 75, 75, 75]
    """
    check_rows(problem)
    if groups is not None:
        halves = _group_halves(problem, rng, n_subsamples, with_rows, groups)
    elif (held := _held(problem, with_rows)) is None:
        halves = _stream_halves(problem, rng)
    else:
        halves = _table_halves(held, rng, n_subsamples, with_rows)
    for half in islice(halves, n_subsamples):
        yield None if half is None else half.with_settings_of(problem)


def _held(problem: Problem, with_rows: bool) -> Problem | None:
    """The problem with its rows in memory, or None where they are too many to be there."""
    if problem.rows is not None:
        return problem
    if not with_rows and 8 * problem.n_rows * problem.n_features > HELD_BYTES:
        return None
    try:
        return problem.in_memory()
    except TooLargeError:
        if with_rows:
            raise
        return None


def _table_halves(
    problem: Problem, rng: np.random.Generator, n_subsamples: int, with_rows: bool
) -> Iterator[Problem | None]:
    places, n_blocks = SortedRows.of(problem), _block_count(problem)
    if count_places(problem) < BLOCK_ROWS or n_blocks is None:
        while True:
            for drawn in places.stratified_split(2, rng):
                yield _of_rows(problem, *places.taken(drawn))
    blocks = places.stratified_split(n_blocks, rng)
    if not with_rows and _merging_pays(places.rows, n_blocks, n_subsamples):
        moments = BlockMoments.of([_moments(*places.taken(block)) for block in blocks])
        yield from _block_halves(problem, moments, rng)
    while True:
        first = _first_half(n_blocks, rng)
        for which in (first, ~first):
            drawn = np.sort(np.concatenate([blocks[b] for b in np.flatnonzero(which)]))
            yield _of_rows(problem, *places.taken(drawn))


def number_groups(problem: Problem, labels: npt.NDArray[Any]) -> Indices:
    """Number the groups of rows by their sorted labels; those of weight zero alone are −1.

    Examples
    --------
    >>> problem = Problem.from_arrays(np.eye(4), [1.0, 2.0, 4.0, 8.0], sample_weight=[1, 1, 1, 0])
    >>> number_groups(problem, np.array(["b", "a", "b", "c"])).tolist()
    [1, 0, 1, -1]
    """
    alive = np.ones(len(labels), dtype=bool) if problem.weights is None else problem.weights > 0
    numbers = np.full(len(labels), -1, dtype=np.intp)
    numbers[alive] = np.unique(labels[alive], return_inverse=True)[1]
    return numbers


def _group_halves(
    problem: Problem,
    rng: np.random.Generator,
    n_subsamples: int,
    with_rows: bool,
    groups: Indices,
) -> Iterator[Problem | None]:
    rows, target = problem.rows, problem.target
    assert rows is not None
    assert target is not None
    n_groups, room = int(groups.max()) + 1, _block_count(problem) or 0
    pays = rows.n_rows >= BLOCK_ROWS and _merging_pays(rows, n_groups, n_subsamples)
    if pays and n_groups <= room and not with_rows:
        parts = [_taken(problem, np.flatnonzero(groups == g)) for g in range(n_groups)]
        moments = BlockMoments.of([_moments(*part) for part in parts])
        yield from _block_halves(problem, moments, rng)
    while True:
        first = _first_half(n_groups, rng)
        for which in (first, ~first):
            drawn = np.flatnonzero((groups >= 0) & which[groups])
            yield _of_rows(problem, *_taken(problem, drawn))


def _taken(problem: Problem, drawn: Indices) -> tuple[DesignMatrix, Target, Floats | None]:
    assert problem.rows is not None
    assert problem.target is not None
    weights = None if problem.weights is None else problem.weights[drawn]
    return problem.rows.take(drawn), problem.target.subset(drawn), weights


def _block_count(problem: Problem) -> int | None:
    """How many blocks memory allows; None if too few."""
    room = problem.memory_limit // (8 * problem.n_features**2) - SPARE_MATRICES
    n_blocks = min(BLOCKS, room) // 2 * 2
    return n_blocks if n_blocks >= LEAST_BLOCKS else None


def _merging_pays(rows: DesignMatrix, n_blocks: int, n_subsamples: int) -> bool:
    """Whether to add up moments of blocks, rather than to read half of the rows each time."""
    adding = n_blocks / 2 * 8 * rows.n_features**2 / BYTES
    reading = rows.pass_cost + min(rows.gram_cost, FIRST_COLUMNS * rows.pass_cost) / 2
    return bool(rows.gram_cost + n_subsamples * adding < n_subsamples * reading)


def _first_half(n_blocks: int, rng: np.random.Generator) -> Bools:
    """Half of the blocks, at random."""
    chosen = np.zeros(n_blocks, dtype=bool)
    chosen[rng.permutation(n_blocks)[: n_blocks // 2]] = True
    return chosen


def _of_rows(
    problem: Problem, rows: DesignMatrix, target: Target, weights: Floats | None
) -> Problem | None:
    coded = target.values if target.codes is None else target.codes
    assert coded is not None
    if not (coded != coded[:1]).any():
        return None
    return Problem.from_rows(
        rows, target, weights, ridge=problem.ridge, scale=problem.scaled,
        memory_limit=problem.memory_limit,
    )  # fmt: skip


def _moments(rows: DesignMatrix, target: Target, weights: Floats | None) -> Moments:
    return rows.moments(replace(target, scores=None), weights)


def _stream_halves(problem: Problem, rng: np.random.Generator) -> Iterator[Problem | None]:
    room = problem.memory_limit // (8 * problem.n_features**2 * 3)
    n_blocks = min(BLOCKS, room) // 2 * 2
    if n_blocks < LEAST_BLOCKS:
        while True:
            for half in _stream_moments(problem, 2, 2, rng):
                yield _of_moments(problem, half)
    found = _stream_moments(problem, n_blocks, LEAST_PLACES, rng)
    yield from _block_halves(problem, BlockMoments.of(found), rng)


def _stream_moments(
    problem: Problem, n_blocks: int, least: int, rng: np.random.Generator
) -> list[Moments]:
    """Return the moments of blocks of rows of a stream; raise if fewer than `least` have rows."""
    stream = problem.stream
    assert stream is not None
    fold = SplitReducer(
        stream.feature_names, problem.target_encoding, n_blocks, int(rng.integers(2**62))
    )
    found = [part for part in stream.reduce(fold) if part is not None]
    if len(found) < least:
        raise InputError(
            "the rows have too few different values to be split by them into half-samples",
            parameter="X", hint="load the table and use Problem.from_arrays",
        )  # fmt: skip
    return found


def _block_halves(
    problem: Problem, blocks: BlockMoments, rng: np.random.Generator
) -> Iterator[Problem | None]:
    while True:
        first = _first_half(len(blocks.weight), rng)
        for moments in blocks.merged(first, ~first):
            yield _of_moments(problem, moments)


def _of_moments(problem: Problem, moments: Moments) -> Problem | None:
    if np.trace(moments.yy) < TINY_SQUARE:
        return None
    return Problem.from_moments(
        moments, classes=problem.classes, ridge=problem.ridge, scale=problem.scaled,
        feature_names=problem.given_names, overwrite=True,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class BlockMoments:
    """The moments of many blocks, side by side, so that many are added up in one product.

    Attributes
    ----------
    n_rows, weight : ndarray of shape (m,)
    x_mean, y_mean, xx, xy, yy : ndarray
        Those of each block, flat.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [6.0], [8.0]])
    >>> parts = [Moments.from_arrays(X[i : i + 1], X[i : i + 1]) for i in range(4)]
    >>> (half,) = BlockMoments.of(parts).merged(np.array([True, True, True, False]))
    >>> half.xx, half.n_rows
    (array([[14.]]), 3)
    """

    n_rows: npt.NDArray[np.int64]
    weight: Floats
    x_mean: Floats
    y_mean: Floats
    xx: Floats
    xy: Floats
    yy: Floats

    @classmethod
    def of(cls, parts: list[Moments]) -> BlockMoments:
        """Put moments side by side; the list is emptied, so that no matrix is held twice."""
        m, d, c = len(parts), len(parts[0].x_mean), len(parts[0].y_mean)
        n_rows, weight = np.zeros(m, dtype=np.int64), np.zeros(m)
        x_mean, y_mean = np.zeros((m, d)), np.zeros((m, c))
        xx, xy, yy = np.empty((m, d * d)), np.empty((m, d * c)), np.empty((m, c * c))
        for b in reversed(range(m)):
            part = parts.pop()
            n_rows[b], weight[b], x_mean[b], y_mean[b] = (
                part.n_rows, part.weight, part.x_mean, part.y_mean,
            )  # fmt: skip
            xx[b].reshape(d, d)[:] = part.xx
            xy[b], yy[b] = part.xy.ravel(), part.yy.ravel()
        return cls(n_rows, weight, x_mean, y_mean, xx, xy, yy)

    def merged(self, *choices: Bools) -> list[Moments]:
        """Return the moments of the blocks in each choice, all read once for all choices."""
        chosen = np.array(choices, dtype=np.float64)
        xx, xy, yy = chosen @ self.xx, chosen @ self.xy, chosen @ self.yy
        return [self._about_mean(which, xx[i], xy[i], yy[i]) for i, which in enumerate(choices)]

    def _about_mean(self, which: Bools, xx: Floats, xy: Floats, yy: Floats) -> Moments:
        """Add what the means of the blocks scatter about the mean of all (Chan et al. 1979)."""
        share = self.weight[which]
        x_mean = share @ self.x_mean[which] / share.sum()
        y_mean = share @ self.y_mean[which] / share.sum()
        dx, dy = self.x_mean[which] - x_mean, self.y_mean[which] - y_mean
        d, c = len(x_mean), len(y_mean)
        weighted = (dx * share[:, None]).T
        xx, xy, yy = xx.reshape(d, d), xy.reshape(d, c), yy.reshape(c, c)
        for start in range(0, d, STRIP):
            xx[start : start + STRIP] += weighted[start : start + STRIP] @ dx
        xy += weighted @ dy
        yy += (dy * share[:, None]).T @ dy
        return Moments(
            n_rows=int(self.n_rows[which].sum()), weight=float(share.sum()), x_mean=x_mean,
            y_mean=y_mean, xx=xx, xy=xy, yy=yy,
        )  # fmt: skip
