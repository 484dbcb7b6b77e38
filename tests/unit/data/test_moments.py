"""Moments against plain centred products in extended precision, however the rows come."""

from __future__ import annotations

import re
import tracemalloc
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactk.data.accumulate
from exactk.data.accumulate import MomentsAccumulator
from exactk.data.moments import Moments, leave_one_out
from exactk.errors import InputError
from tests.support import every_pair

Array = np.ndarray[Any, Any]
SEEDS = st.integers(0, 2**32 - 1)


def plain(X: Array, Y: Array, w: Array | None = None) -> dict[str, Array]:
    """Moments by definition: subtract the mean, multiply; in extended precision."""
    X, Y = np.asarray(X, dtype=np.longdouble), np.asarray(Y, dtype=np.longdouble)
    w = np.ones(len(X)) if w is None else np.asarray(w, dtype=np.longdouble)
    x_mean, y_mean = w @ X / w.sum(), w @ Y / w.sum()
    Z, U = X - x_mean, Y - y_mean
    return {
        "x_mean": x_mean,
        "y_mean": y_mean,
        "xx": (w[:, None] * Z).T @ Z,
        "xy": (w[:, None] * Z).T @ U,
        "yy": (w[:, None] * U).T @ U,
    }


def assert_moments(moments: Moments, expected: dict[str, Array], rtol: float = 1e-12) -> None:
    """Every product to `rtol` of the product of the columns' lengths, every mean of its spread."""
    x = np.sqrt(np.diagonal(expected["xx"]))
    y = np.sqrt(np.diagonal(expected["yy"]))
    for name, unit in (("xx", np.outer(x, x)), ("xy", np.outer(x, y)), ("yy", np.outer(y, y))):
        off = np.abs(getattr(moments, name) - expected[name])
        assert (off <= rtol * unit).all(), (name, float(np.max(off / unit)))
    for name, unit in (("x_mean", x), ("y_mean", y)):
        size = unit + np.abs(expected[name])
        assert (np.abs(getattr(moments, name) - expected[name]) <= rtol * size).all(), name


def table(rng: np.random.Generator, n: int = 50, d: int = 4, c: int = 2) -> tuple[Array, Array]:
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    return X, rng.normal(size=(n, c)) + X[:, :c]


def layouts(X: Array) -> dict[str, Array]:
    spread = np.zeros((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)
    spread[::2, ::3] = X
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": spread[::2, ::3],
        "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
        "big-endian": X.astype(X.dtype.newbyteorder(">")),
    }


@every_pair(
    dtype=["f8", "f4", "f2", "i8", "u2", "?"],
    layout=["C", "F", "strided", "reversed", "big-endian"],
    weighted=[False, True],
)
def test_any_dtype_and_layout(layout: str, dtype: str, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    X, Y = table(rng)
    X = (X > 0 if dtype == "?" else np.abs(X * 20)).astype(dtype)
    w = rng.uniform(0.1, 3, len(X)) if weighted else None
    moments = Moments.from_arrays(layouts(X)[layout], Y, w)
    assert_moments(moments, plain(X, Y, w))
    assert (moments.xx == moments.xx.T).all()
    assert (moments.scatter == np.diagonal(moments.xx)).all()
    assert moments.n_rows == len(X)
    assert moments.weight == pytest.approx(len(X) if w is None else w.sum(), rel=1e-14)
    assert all(getattr(moments, name).dtype == np.float64 for name in ("xx", "xy", "yy"))


def test_small_table_in_fractions() -> None:
    X, y, w = [[1, 4], [2, -3], [7, 11], [0, 5]], [3, 1, -4, 9], [2, 1, 3, 5]
    total = sum(w)
    means = [Fraction(sum(w[i] * X[i][j] for i in range(4)), total) for j in range(2)]
    y_mean = Fraction(sum(a * b for a, b in zip(w, y, strict=True)), total)

    def product(left: list[Fraction], right: list[Fraction]) -> float:
        return float(sum(w[i] * left[i] * right[i] for i in range(4)))

    columns = [[X[i][j] - means[j] for i in range(4)] for j in range(2)]
    target = [Fraction(value) - y_mean for value in y]
    moments = Moments.from_arrays(X, y, w)
    for i in range(2):
        assert moments.x_mean[i] == pytest.approx(float(means[i]), rel=1e-14)
        assert moments.xy[i, 0] == pytest.approx(product(columns[i], target), rel=1e-13)
        for j in range(2):
            assert moments.xx[i, j] == pytest.approx(product(columns[i], columns[j]), rel=1e-13)
    assert moments.yy[0, 0] == pytest.approx(product(target, target), rel=1e-14)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, counts=st.lists(st.integers(0, 4), min_size=3, max_size=30))
def test_whole_weight_is_the_row_that_many_times(seed: int, counts: list[int]) -> None:
    counts = [*counts, 2, 1]
    X, Y = table(np.random.default_rng(seed), n=len(counts))
    weighted = Moments.from_arrays(X, Y, counts)
    repeated = plain(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    assert weighted.weight == pytest.approx(sum(counts), rel=1e-14)
    assert weighted.n_rows == np.count_nonzero(counts)
    assert_moments(weighted, repeated, 1e-11)


@pytest.mark.parametrize("absent", [0.0, 1e12, -1e100])
def test_rows_of_weight_zero_leave_no_trace(absent: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whatever the rows without weight hold, also where they fill the first block.
    monkeypatch.setattr(exactk.data.accumulate, "BLOCK_BYTES", 2048)
    X, Y = table(np.random.default_rng(2))
    X, Y = X + 1e6, Y - 1e6
    padded = [np.vstack([np.full((90, Z.shape[1]), absent), Z]) for Z in (X, Y)]
    w = np.repeat([0.0, 1.0], [90, len(X)])
    moments = Moments.from_arrays(*padded, w)
    assert moments.n_rows == len(X)
    assert_moments(moments, plain(X, Y), 1e-8)


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    labels=st.lists(st.integers(0, 5), min_size=2, max_size=40),
    weighted=st.booleans(),
    data=st.data(),
)
def test_parts_merge_to_the_whole(
    seed: int, labels: list[int], weighted: bool, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    X, Y = table(rng, n=len(labels))
    w = rng.uniform(0.1, 5, len(X)) if weighted else None
    parts = []
    for label in data.draw(st.permutations(sorted(set(labels)))):
        rows = np.array(labels) == label
        parts.append(Moments.from_arrays(X[rows], Y[rows], None if w is None else w[rows]))
    while len(parts) > 1:
        left = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        right = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        parts.append(left.merge(right))
    assert parts[0].n_rows == len(X)
    expected = plain(X, Y, w)
    assert_moments(parts[0], expected, 1e-11 * max(1.0, _offset(expected, w, len(X))))


def _offset(expected: dict[str, Array], w: Array | None, n: int) -> float:
    """Largest mean in units of the spread: how much a float64 has to lose before any sum."""
    total = n if w is None else w.sum()
    ratios = [
        np.sqrt(total / np.diagonal(expected[square])) * np.abs(expected[mean])
        for square, mean in (("xx", "x_mean"), ("yy", "y_mean"))
    ]
    return float(np.max(np.concatenate(ratios)))


def test_merge_changes_neither_part() -> None:
    X, Y = table(np.random.default_rng(3))
    a, b = Moments.from_arrays(X[:20], Y[:20]), Moments.from_arrays(X[20:], Y[20:])
    before = [part.xx.copy() for part in (a, b)]
    merged = a.merge(b)
    assert all((part.xx == old).all() for part, old in zip((a, b), before, strict=True))
    assert not np.shares_memory(merged.xx, a.xx)


def test_merge_of_other_widths_is_refused() -> None:
    X, Y = table(np.random.default_rng(3))
    with pytest.raises(InputError, match=r"4 columns .* those of 3"):
        Moments.from_arrays(X, Y).merge(Moments.from_arrays(X[:, :3], Y))
    with pytest.raises(InputError, match=r"2 outputs .* those of 1"):
        Moments.from_arrays(X, Y).merge(Moments.from_arrays(X, Y[:, :1]))


@pytest.mark.parametrize("n_parts", [2, 3, 4, 7])
def test_leave_one_out(n_parts: int) -> None:
    rng = np.random.default_rng(4)
    X, Y = table(rng, n=8 * n_parts)
    w = rng.uniform(0, 2, len(X))
    fold = rng.permutation(np.arange(len(X)) % n_parts)
    parts = [Moments.from_arrays(X[fold == f], Y[fold == f], w[fold == f]) for f in range(n_parts)]
    for f, rest in enumerate(leave_one_out(parts)):
        keep = fold != f
        assert rest.n_rows == keep.sum()
        assert_moments(rest, plain(X[keep], Y[keep], w[keep]))


def test_leave_one_out_needs_two_parts() -> None:
    with pytest.raises(ValueError, match="two parts or more, not 1"):
        leave_one_out([Moments.from_arrays(*table(np.random.default_rng(0)))])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
def test_means_a_million_spreads_away_keep_eight_digits(order: str, weighted: bool) -> None:
    rng = np.random.default_rng(5)
    X, Y = table(rng, n=400)
    X = np.asarray(X + np.array([1e6, -1e6, 0, 1e3]), order=order)
    Y = Y + np.array([1e6, 0])
    w = rng.integers(0, 4, len(X)).astype(float) if weighted else None
    assert_moments(Moments.from_arrays(X, Y, w), plain(X, Y, w), 1e-8)
    halves = [Moments.from_arrays(X[:9], Y[:9]), Moments.from_arrays(X[9:], Y[9:])]
    assert_moments(reduce(Moments.merge, halves), plain(X, Y), 1e-8)


def test_a_first_block_unlike_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exactk.data.accumulate, "BLOCK_BYTES", 512)
    X, Y = table(np.random.default_rng(6), n=2000)
    X[:8] -= 1e5
    Y[:8] += 1e5
    assert_moments(Moments.from_arrays(X, Y), plain(X, Y), 1e-8)


@pytest.mark.parametrize("power", [-140, -100, -9, 9, 100, 140])
def test_scale_of_a_column_scales_its_products(power: int) -> None:
    X, Y = table(np.random.default_rng(7))
    factors = np.array([10.0**power, 1.0, 10.0 ** (-power / 2), 1.0])
    assert_moments(Moments.from_arrays(X * factors, Y), plain(X * factors, Y))


@every_pair(block_bytes=[1, 100, 64 * 7, 4096], order=["C", "F"], dtype=["f4", "f8"])
def test_block_boundaries(
    block_bytes: int, order: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exactk.data.accumulate, "BLOCK_BYTES", block_bytes)
    rng = np.random.default_rng(8)
    X, Y = table(rng, n=113)
    X = np.asarray(X + 50, dtype=dtype, order=order)
    w = rng.integers(0, 3, len(X)).astype(float)
    assert_moments(Moments.from_arrays(X, Y), plain(X, Y), 1e-10)
    assert_moments(Moments.from_arrays(X, Y, w), plain(X, Y, w), 1e-10)


def test_gram_wider_than_a_mirror_tile() -> None:
    X = np.random.default_rng(9).normal(size=(12, 1030))
    expected = plain(X, X[:, :1])
    a, b = Moments.from_arrays(X[:5], X[:5, :1]), Moments.from_arrays(X[5:], X[5:, :1])
    assert_moments(Moments.from_arrays(X, X[:, :1]), expected)
    assert_moments(a.merge(b), expected)


def test_blocks_one_after_the_other() -> None:
    rng = np.random.default_rng(10)
    X, Y = table(rng)
    w = rng.uniform(0, 1, len(X))
    blocks = [
        (X[a:b].astype("f4" if a else "f8"), Y[a:b], w[a:b]) for a, b in pairwise([0, 1, 1, 30, 50])
    ]
    accumulator = MomentsAccumulator(X.shape[1], Y.shape[1])
    for block in blocks:
        accumulator.add(*block)
    seen = np.vstack([block[0].astype(float) for block in blocks])
    assert_moments(accumulator.finish(), plain(seen, Y, w))


def test_one_dimensional_target_is_one_output() -> None:
    X, Y = table(np.random.default_rng(11))
    assert_moments(Moments.from_arrays(X, Y[:, 0]), plain(X, Y[:, :1]))


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_input_is_not_changed(offset: float) -> None:
    rng = np.random.default_rng(12)
    X, Y = table(rng)
    X = X + offset
    w = rng.uniform(0, 2, len(X))
    copies = [part.copy() for part in (X, Y, w)]
    for part in (X, Y, w):
        part.setflags(write=False)
    Moments.from_arrays(X, Y, w)
    Moments.from_arrays(X, Y)
    assert all((a == b).all() for a, b in zip((X, Y, w), copies, strict=True))


@pytest.mark.parametrize(
    ("dtype", "offset", "weighted"), [("f8", 0, 0), ("f4", 9, 0), ("f8", 9, 1)]
)
def test_no_second_copy(dtype: str, offset: float, weighted: bool) -> None:
    n, d = 25_000, 200
    X = np.random.default_rng(13).normal(offset, 0.1, size=(n, d)).astype(dtype)
    y = X[:, :1].astype(float)
    w = np.ones(n) if weighted else None
    tracemalloc.start()
    try:
        Moments.from_arrays(X, y, w)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A float64 copy would be 38 MiB; a block is 16, vectors and d × d matrices are small.
    assert peak < 24 * 2**20


def test_nothing_has_no_moments() -> None:
    X, Y = table(np.random.default_rng(0))
    with pytest.raises(ValueError, match="no rows of positive weight"):
        Moments.from_arrays(X, Y, np.zeros(len(X)))
    with pytest.raises(ValueError, match="no rows of positive weight"):
        MomentsAccumulator(2, 1).finish()
    with pytest.raises(ValueError, match=re.escape("X has shape (50, 4), Y has 7 rows")):
        Moments.from_arrays(X, Y[:7])


def test_shown_in_one_line() -> None:
    X, Y = table(np.random.default_rng(0))
    assert repr(Moments.from_arrays(X, Y)) == "Moments(50 rows, 4 columns, 2 outputs)"
