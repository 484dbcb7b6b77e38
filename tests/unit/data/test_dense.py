"""Dense arrays read in tiles: the same numbers as by definition, and what cannot be summed."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import exactk.data.accumulate
import exactk.data.dense
from exactk import Problem, solve
from exactk.data.dense import DenseRows
from exactk.data.open_table import open_rows
from exactk.data.targets import Target, encode_target
from exactk.errors import InputError
from tests.support import every_pair

Array = np.ndarray[Any, Any]


def plain(X: Array, Y: Array, w: Array | None) -> tuple[Array, Array, Array, Array]:
    """Means, centred Gram, cross-products and YᵀHY of rows multiplied out, extended precision."""
    X, Y = np.asarray(X, dtype=np.longdouble), np.asarray(Y, dtype=np.longdouble)
    w = np.ones(len(X)) if w is None else w
    mean = w @ X / w.sum()
    Z, U = X - mean, Y - w @ Y / w.sum()
    wZ, wU = w[:, None] * Z, w[:, None] * U
    return mean, wZ.T @ Z, wZ.T @ U, wU.T @ U


def data(n: int = 90, d: int = 7, offset: float = 0.0, seed: int = 0) -> tuple[Array, Target]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + offset * rng.normal(size=d)
    return X, encode_target(rng.choice(["u", "v", "w"], n))


def assert_margins(rows: DenseRows, X: Array, target: Target, w: Array | None, rtol: float) -> None:
    Y = target.block(0, len(X))
    mean, xx, xy, yy = plain(X, Y, w)
    unit, y_unit = np.sqrt(np.diagonal(xx)), np.sqrt(np.diagonal(yy))
    for read in (rows.margins(target, w), rows.moments(target, w)):
        assert read.n_rows == (len(X) if w is None else np.count_nonzero(w))
        assert read.weight == pytest.approx(len(X) if w is None else w.sum(), rel=1e-13)
        assert (np.abs(read.x_mean - mean) <= rtol * (unit + np.abs(mean))).all()
        assert (np.abs(read.scatter - np.diagonal(xx)) <= rtol * unit**2).all()
        assert (np.abs(read.xy - xy) <= rtol * np.outer(unit, y_unit)).all()
        np.testing.assert_allclose(read.yy, yy.astype(float), rtol=1e-10, atol=1e-12)


@every_pair(
    cache_bytes=[1, 8 * 7, 8 * 50, 2**21],
    dtype=["f8", "f4", "i2", "?"],
    order=["C", "F", "strided"],
    weighted=[False, True],
)
def test_tiles_of_any_size(
    cache_bytes: int, order: str, dtype: str, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exactk.data.dense, "CACHE_BYTES", cache_bytes)
    monkeypatch.setattr(exactk.data.accumulate, "BLOCK_BYTES", cache_bytes)
    X, target = data(offset=5)
    X = (X > 0 if dtype == "?" else X * 50).astype(dtype)
    w = np.random.default_rng(1).integers(0, 4, len(X)).astype(float) if weighted else None
    held = np.repeat(X, 2, axis=1)[:, ::2] if order == "strided" else np.asarray(X, order=order)
    assert_margins(DenseRows(held), X, target, w, 1e-10)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 40),
    d=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
    order=st.sampled_from("CF"),
    cache_bytes=st.integers(1, 3000),
)
def test_columns_and_products(n: int, d: int, seed: int, order: str, cache_bytes: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.asarray(rng.integers(-99, 99, (n, d)), order=order)
    right = rng.normal(size=(n, 3))
    picked = rng.permutation(d)[: max(1, d // 2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exactk.data.dense, "CACHE_BYTES", cache_bytes)
        for held in (X, X.astype("f4"), X.astype("f8")):
            rows = DenseRows(held)
            assert (rows.columns(picked) == X[:, picked]).all()
            assert rows.columns(picked).dtype == np.float64
            expected = [[float(right[:, i] @ X[:, j]) for j in range(d)] for i in range(3)]
            np.testing.assert_allclose(rows.products(right), expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "?", ">f4"])
def test_some_columns_as_a_table_of_their_own(order: str, dtype: str) -> None:
    X = (data()[0] * 50).astype(dtype)
    held = np.repeat(X, 2, axis=1)[:, ::2] if order == "strided" else np.asarray(X, order=order)
    rows = DenseRows(held, tuple("abcdefg")).select(np.array([4, 0, 6]))
    assert (rows.n_rows, rows.n_features, rows.feature_names) == (90, 3, ("e", "a", "g"))
    assert (rows.columns(np.arange(3)) == X[:, [4, 0, 6]]).all()
    assert rows.column_bytes == 90 * np.dtype(dtype).itemsize


@pytest.mark.parametrize("dtype", ["f8", "f4", ">f4", "i1"])
@pytest.mark.parametrize("width", [3, 1024])
def test_wide_tables_in_tiles_of_any_shape(
    dtype: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exactk.data.dense, "TILE_WIDTH", width)
    monkeypatch.setattr(exactk.data.dense, "CACHE_BYTES", 8 * 60)
    monkeypatch.setattr(exactk.data.dense, "CENTRE_COLUMNS", 16)
    rng = np.random.default_rng(3)
    X, target = rng.integers(-99, 99, (37, 101)).astype(dtype), encode_target(np.arange(37) % 3)
    right = rng.normal(size=(37, 4))
    for held in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        rows = DenseRows(held)
        assert_margins(rows, X, target, None, 1e-10)
        for part in (right, right[:, :1]):
            np.testing.assert_allclose(
                rows.products(part), part.T @ X.astype("f8"), rtol=1e-12, atol=1e-10
            )


def test_a_mapped_file_is_read_where_it_lies(tmp_path: Path) -> None:
    n, d = 50, 40_000
    X = np.random.default_rng(5).normal(3, 1, (n, d)).astype("f4")
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    y = X[:, [7, 70, 700]].sum(axis=1)
    tracemalloc.start()
    try:
        problem = Problem.from_arrays(mapped, y, memory_limit=2**22)
        result = solve(problem, 3, effort=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(problem.rows, DenseRows)
    assert np.shares_memory(problem.rows._X, mapped)
    assert result.objective <= solve(problem, 3, "greedy").objective
    # The table has 8 MB, and a Gram matrix would have 12.8 GB; kept columns have 4 MB.
    assert peak < 24 * 2**20


def test_take_gives_those_rows_and_names() -> None:
    X, _ = data()
    taken = DenseRows(X, tuple("abcdefg")).take(np.array([5, 0, 88]))
    assert (taken.n_rows, taken.n_features, taken.feature_names) == (3, 7, tuple("abcdefg"))
    assert (taken.columns(np.arange(7)) == X[[5, 0, 88]]).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_means_a_million_spreads_away(order: str) -> None:
    X, target = data(n=300)
    X = np.asarray(X + 1e6, order=order)
    assert_margins(DenseRows(X), X, target, None, 1e-8)


@pytest.mark.parametrize("absent", [0.0, 1e12])
def test_rows_of_weight_zero_do_not_choose_the_centre(
    absent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exactk.data.dense, "CACHE_BYTES", 1024)
    monkeypatch.setattr(exactk.data.accumulate, "BLOCK_BYTES", 1024)
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 4)) + 1e6, rng.normal(size=60) - 1e6
    padded = np.vstack([np.full((5000, 4), absent), X])
    target = encode_target(np.concatenate([np.full(5000, absent), y]), "regression")
    w = np.repeat([0.0, 1.0], [5000, 60])
    _, xx, xy, yy = plain(X, y[:, None], None)
    unit = np.sqrt(np.diagonal(xx))
    for read in (DenseRows(padded).margins(target, w), DenseRows(padded).moments(target, w)):
        assert (np.abs(read.scatter - unit**2) <= 1e-8 * unit**2).all()
        assert (np.abs(read.xy - xy) <= 1e-8 * unit[:, None] * np.sqrt(yy)).all()
        assert float(read.yy[0, 0]) == pytest.approx(float(yy[0, 0]), rel=1e-8)


def test_one_hot_targets_are_made_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    # 2^22 one-hot entries and more: the target is never whole, and its slices meet exactly.
    n, c = 70_000, 60
    X = np.random.default_rng(4).normal(size=(n, 2))
    y = np.arange(n) % c
    blocks: list[int] = []
    make = Target.block

    def spy(self: Target, start: int, stop: int) -> Array:
        blocks.append(stop - start)
        return make(self, start, stop)

    monkeypatch.setattr(Target, "block", spy)
    moments = DenseRows(X).moments(encode_target(y), None)
    assert max(blocks) < n
    centred = X - X.mean(axis=0)
    expected = [centred[y == label].sum(axis=0) for label in range(c)]
    np.testing.assert_allclose(moments.xy.T, expected, rtol=1e-9, atol=1e-9)


@every_pair(
    bad=[[np.nan], [np.inf], [-np.inf, np.inf, np.nan]],
    gram=["full", "columns"],
    dtype=["f8", "f4"],
    order=["C", "F"],
)
def test_nan_and_infinity_are_named_and_counted(
    gram: Any, dtype: str, order: str, bad: list[float]
) -> None:
    X, _ = data()
    X[10 : 10 + len(bad), 4] = bad
    X[80, 6] = bad[0]
    X = np.asarray(X, dtype=dtype, order=order)
    y = np.arange(len(X)) % 2
    with pytest.raises(InputError, match="NaN or infinity") as error:
        Problem.from_arrays(X, y, gram=gram, feature_names=[f"gene{j}" for j in range(7)])
    message = str(error.value)
    assert f"'gene4' ({len(bad)} of 90 rows)" in message
    assert "'gene6' (1 of 90 rows)" in message
    assert "gene0" not in message
    assert "drop those columns" in message


def test_many_bad_columns_are_cut_short() -> None:
    X = np.full((4, 9), np.nan)
    with pytest.raises(InputError, match="and 4 more columns"):
        Problem.from_arrays(X, [0, 1, 0, 1])


@pytest.mark.parametrize("gram", ["full", "columns"])
@pytest.mark.parametrize("size", [1e153, 1e155, 1e200, 1e300])
def test_values_too_large_to_square(gram: Any, size: float) -> None:
    X, _ = data()
    X[:, 2] *= size
    y = np.arange(len(X)) % 2
    if size == 1e153:
        # Squares still fit: the answer is that of the column as it was.
        expected = Problem.from_arrays(X / np.array([1, 1, size, 1, 1, 1, 1]), y).objective([1, 2])
        assert Problem.from_arrays(X, y, gram=gram).objective([1, 2]) == pytest.approx(expected)
        return
    with pytest.raises(InputError, match="too large") as error:
        Problem.from_arrays(X, y, gram=gram)
    assert "rescale" in str(error.value)


@pytest.mark.parametrize("order", ["C", "F"])
def test_margins_and_columns_make_no_second_copy(order: str) -> None:
    n, d = 5_000, 800
    X = np.asarray(np.random.default_rng(5).normal(9, 0.1, (n, d)), dtype="f4", order=order)
    rows, target = DenseRows(X), encode_target(np.arange(n) % 3)
    tracemalloc.start()
    try:
        rows.margins(target, None)
        rows.products(rows.columns(np.array([0, 1])))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A float64 copy would be 30 MiB; tiles are 2 MiB, with a temporary or two.
    assert peak < 10 * 2**20


def test_the_table_is_kept_by_reference_and_not_changed() -> None:
    X, target = data(offset=100)
    copy = X.copy()
    X.setflags(write=False)
    rows = DenseRows(X)
    rows.margins(target, np.ones(len(X)))
    rows.moments(target, np.ones(len(X)))
    assert (X == copy).all()


@pytest.mark.parametrize(
    "form", [np.asarray, np.asfortranarray, lambda X: X.astype(np.float32), sparse.csr_array]
)
def test_class_scatter(form) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 90)).astype(np.float32).astype(np.float64)
    X[:, 3] += 1e6
    X[:, 4] = np.round(X[:, 4]) * 1e-30
    codes = rng.integers(0, 3, 50)
    members = (codes == np.arange(3)[:, None]) * rng.uniform(0, 2, 50)
    centres = rng.standard_normal((3, 90)) + X.mean(axis=0)
    found = open_rows(form(X), None).class_scatter(members, codes, centres)
    values = np.asarray(form(X).toarray() if sparse.issparse(form(X)) else form(X), dtype=float)
    wanted = members @ (values - centres[codes]) ** 2
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
