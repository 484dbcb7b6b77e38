"""Sparse tables: the same numbers as dense ones, never made dense."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import exactk.data.sparse
from exactk import Problem
from exactk.data.open_table import open_rows
from exactk.data.sparse import SparseRows
from exactk.data.targets import encode_target
from exactk.errors import InputError
from tests.support import every_pair

Array = np.ndarray[Any, Any]
KINDS = [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array]


def data(n: int = 80, d: int = 6, density: float = 0.4, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 100, (n, d)) * (rng.random((n, d)) < density)
    return X, rng.choice(["u", "v", "w"], n)


def centred(X: Array, Y: Array, w: Array) -> tuple[Array, Array, Array]:
    """Mean, XᵀHX and XᵀHY by definition, extended precision."""
    X, Y = np.asarray(X, dtype=np.longdouble), np.asarray(Y, dtype=np.longdouble)
    mean = w @ X / w.sum()
    Z, U = X - mean, Y - w @ Y / w.sum()
    return mean, (w[:, None] * Z).T @ Z, (w[:, None] * Z).T @ U


def assert_reads(table: Any, X: Array, y: Array, w: Array | None, rtol: float = 1e-12) -> None:
    rows, target = open_rows(table), encode_target(y)
    assert isinstance(rows, SparseRows)
    mean, xx, xy = centred(X, target.block(0, len(X)), np.ones(len(X)) if w is None else w)
    unit = np.sqrt(np.diagonal(xx))
    moments = rows.moments(target, w)
    assert (np.abs(moments.xx - xx) <= rtol * np.outer(unit, unit)).all()
    for read in (moments, rows.margins(target, w)):
        assert read.n_rows == (len(X) if w is None else np.count_nonzero(w))
        assert (np.abs(read.x_mean - mean) <= rtol * (unit + np.abs(mean))).all()
        assert (np.abs(read.scatter - np.diagonal(xx)) <= rtol * unit**2).all()
        assert (np.abs(read.xy - xy) <= rtol * unit[:, None] * np.sqrt(len(X))).all()
    gram = Problem.from_arrays(table, y, sample_weight=w, scale=False, gram="columns")
    for p in np.flatnonzero(unit > 0):
        assert (np.abs(gram.gram_rows([p])[0] - xx[p]) <= rtol * unit * unit[p]).all()


@every_pair(
    dtype=["f8", "f4", "i8", "i2", "u1", "?"],
    kind=[sparse.csr_array, sparse.csc_matrix],
    weighted=[False, True],
)
def test_any_kind_and_dtype(kind: Any, dtype: str, weighted: bool) -> None:
    X, y = data()
    X = (X % 3 == 1 if dtype == "?" else X).astype(dtype)
    w = np.random.default_rng(1).integers(0, 4, len(X)).astype(float) if weighted else None
    assert_reads(kind(X), X, y, w)


@pytest.mark.parametrize("format_", ["coo", "lil", "dok", "bsr", "dia"])
def test_other_formats_are_converted(format_: str) -> None:
    X, y = data()
    assert_reads(sparse.csr_matrix(X.astype(float)).asformat(format_), X, y, None)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix])
def test_explicit_zeros_are_zeros(kind: Any) -> None:
    X, y = data()
    table = kind(np.where(X == 0, 1, X).astype(float))
    table.data[(table.tocoo().data == 1) if kind is sparse.csr_matrix else table.data == 1] = 0.0
    X = np.where(X == 1, 0, X)
    assert (table.toarray() == X).all()
    assert table.nnz == X.size
    assert_reads(table, X, y, np.linspace(0, 2, len(X)))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix])
def test_entries_stored_in_two_parts_add(kind: Any) -> None:
    X, y = data()
    once = kind(X.astype(float))
    twice = kind(
        (np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), once.indptr * 2),
        shape=once.shape,
    )
    assert_reads(twice, X, y, None)
    assert twice.nnz == 2 * once.nnz, "the caller's table was changed"


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix])
def test_offset_columns_keep_eight_digits(kind: Any) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 5)) + np.array([1e6, 0, -1e6, 1e3, 0])
    X[:, 4] *= rng.random(200) < 0.1
    assert_reads(kind(X), X, rng.choice(["a", "b"], 200), None, 1e-8)
    assert_reads(kind(X), X, rng.choice(["a", "b"], 200), rng.uniform(0, 2, 200), 1e-8)


@pytest.mark.parametrize("entries", [1, 7, 200])
def test_strips_of_any_width(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exactk.data.sparse, "STRIP_ENTRIES", entries)
    X, y = data()
    X[:, [1, 3]] += 10**7
    assert_reads(sparse.csr_array(X.astype(float)), X, y, None, 1e-8)


@pytest.mark.parametrize("gram", ["full", "columns", "auto"])
@pytest.mark.parametrize("weighted", [False, True])
def test_never_made_dense(gram: Any, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(n=60, d=8)
    # So full a table is multiplied in blocks of dense rows; here they hold ten.
    monkeypatch.setattr(exactk.data.sparse, "STRIP_ENTRIES", 110)
    w = np.ones(60) if weighted else None
    expected = Problem.from_arrays(X, y, sample_weight=w).objective([1, 4, 6])
    for kind in KINDS:
        whole = kind.toarray

        def refuse(self: Any, *args: Any, whole: Any = whole, **named: Any) -> Array:
            assert self.shape != (60, 8), "the whole table was made dense"
            made: Array = whole(self, *args, **named)
            return made

        for name in ("toarray", "todense", "__array__"):
            monkeypatch.setattr(kind, name, refuse, raising=False)
    for kind in KINDS:
        problem = Problem.from_arrays(kind(X.astype(float)), y, sample_weight=w, gram=gram)
        assert problem.objective([1, 4, 6]) == pytest.approx(expected, rel=1e-10)


def test_memory_is_that_of_the_entries() -> None:
    n, d = 60_000, 300
    rng = np.random.default_rng(3)
    where = rng.integers(0, n, 36_000), rng.integers(0, d, 36_000)
    X = sparse.coo_matrix((rng.normal(size=36_000), where), shape=(n, d)).tocsr()
    y = np.arange(n) % 2
    tracemalloc.start()
    try:
        Problem.from_arrays(X, y, gram="full").objective([0, 1])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Dense it would be 137 MiB; the entries are 0.4, a strip of products 16 at the most.
    assert peak < 20 * 2**20


def test_empty_and_constant_columns_are_no_candidates() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1000, 4))
    X[:, 1], X[:, 2] = 0.0, 0.1
    y = (X[:, 0] > 0).astype(int)
    for kind in KINDS:
        for gram in ("full", "columns"):
            assert Problem.from_arrays(kind(X), y, gram=gram).usable.tolist() == [0, 3]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nan_and_infinity_are_named_and_counted(kind: Any) -> None:
    X, y = data()
    X = X.astype(float)
    X[[3, 5], 2], X[7, 4] = np.nan, np.inf
    with pytest.raises(InputError, match="NaN or infinity") as error:
        Problem.from_arrays(kind(X), y, feature_names=list("abcdef"))
    assert "'c' (2 of 80 rows), 'e' (1 of 80 rows);" in str(error.value)


@pytest.mark.parametrize("gram", ["full", "columns"])
def test_values_too_large_to_square(gram: Any) -> None:
    X, y = data()
    X = X * np.array([1, 1, 1e200, 1, 1, 1])
    with pytest.raises(InputError, match="too large"):
        Problem.from_arrays(sparse.csr_array(X), y, gram=gram)


def test_take_gives_those_rows_and_names() -> None:
    X, _ = data()
    for kind in KINDS:
        taken = SparseRows(kind(X), tuple("abcdef")).take(np.array([5, 0, 79]))
        assert (taken.n_rows, taken.feature_names) == (3, tuple("abcdef"))
        assert (taken.columns(np.arange(6)) == X[[5, 0, 79]]).all()


def test_complex_and_empty_tables_are_refused() -> None:
    with pytest.raises(InputError, match="Complex data not supported"):
        open_rows(sparse.csr_array(np.eye(3) * 1j))
    with pytest.raises(InputError, match="no samples"):
        open_rows(sparse.csr_array((0, 3)))


def test_the_table_is_not_changed() -> None:
    X, y = data()
    table = sparse.csr_matrix(X.astype(float))
    before = table.copy()
    Problem.from_arrays(table, y, sample_weight=np.arange(80)).objective([0, 1])
    assert (table.data == before.data).all()
    assert (table.indices == before.indices).all()
    assert (table.indptr == before.indptr).all()
