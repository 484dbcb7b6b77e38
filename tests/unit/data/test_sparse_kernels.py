"""Sums over the entries of a sparse table: compiled and plain, in parts and whole."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from exactk.data import sparse as sparse_rows
from exactk.data import sparse_entries, sparse_kernels
from exactk.data.sparse import SparseRows
from exactk.data.sparse_entries import CSCKernels, CSRKernels, open_entries
from exactk.data.targets import encode_target
from exactk.errors import InputError
from tests.support import every_pair

Array = np.ndarray[Any, Any]
BOTH = ["csr", "csc"]
ENGINES, PIECES = ["compiled", "plain"], ["whole", "parts"]
DTYPES = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
INDICES = [np.int32, np.int64]
# The two fixtures below.
FORMS = {"engine": ENGINES, "pieces": PIECES}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "plain":
        monkeypatch.setattr(sparse_kernels, "library", lambda: None)
    elif sparse_kernels.library() is None:
        pytest.skip("the compiled kernels were not built")
    return str(request.param)


@pytest.fixture(params=PIECES)
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Parts, strips and blocks as they are, or so small that every table has many."""
    if request.param == "parts":
        monkeypatch.setattr(sparse_entries, "PART_ENTRIES", 40)
        monkeypatch.setattr(sparse_entries, "PARTIAL_BYTES", 1)
        monkeypatch.setattr(sparse_entries, "LISTED_ENTRIES", 120)
        monkeypatch.setattr(sparse_kernels, "BLOCK_ENTRIES", 60)
        monkeypatch.setattr(sparse_rows, "STRIP_ENTRIES", 100)
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
    return str(request.param)


def table(n: int = 70, d: int = 23, fill: float = 0.15, dtype: str = "f8", seed: int = 0) -> Array:
    """Whole numbers, exact in every type; a row and a column without entries, one that is full."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 100, (n, d)) * (rng.random((n, d)) < fill)
    X[n // 2], X[:, d // 2], X[:, d // 3] = 0, 0, rng.integers(1, 100, n)
    return X.astype(dtype)


def stored(X: Array, format_: str, index: Any = np.int32) -> Any:
    made = sparse.csr_array(X) if format_ == "csr" else sparse.csc_array(X)
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


@every_pair(dtype=DTYPES, format_=BOTH, **FORMS, indirect=list(FORMS))
def test_products(format_: str, dtype: str, engine: str, pieces: str) -> None:
    X = table(dtype=dtype)
    exact = X.astype(np.float64)
    rng = np.random.default_rng(1)
    for index, m in itertools.product(INDICES, (0, 1, 7, 8, 9, 17)):
        opened = open_entries(stored(X, format_, index))
        assert isinstance(opened, CSRKernels if format_ == "csr" else CSCKernels)
        right = rng.standard_normal((len(X), m))
        # Half of the right-hand sides are themselves mostly zero.
        right[:, ::2] *= rng.random(right[:, ::2].shape) < 0.1
        wanted = right.T @ exact
        for given in (right, np.asfortranarray(right), np.repeat(right, 2, axis=1)[:, ::2]):
            np.testing.assert_allclose(opened.products(given), wanted, rtol=1e-12, atol=1e-10)


@every_pair(dtype=DTYPES, format_=BOTH, **FORMS, indirect=list(FORMS))
def test_columns(format_: str, dtype: str, engine: str, pieces: str) -> None:
    X = table(d=40, fill=0.5, dtype=dtype)
    lists: list[list[int]] = [[], [7], [0, 20, 39], [5, 2, 2, 30], list(range(40))]
    for index, wanted in itertools.product(INDICES, lists):
        opened = open_entries(stored(X, format_, index))
        found = opened.columns(np.array(wanted, dtype=np.intp))
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, X[:, wanted])


def test_one_column_of_long_rows_is_looked_up(engine: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (6, 5_000)).astype(np.float32)
    X[3, :4_990] = 0
    for wanted in ([0], [4_999], [2_500], [1, 4_000, 4_998]):
        found = CSRKernels(sparse.csr_array(X)).columns(np.array(wanted))
        np.testing.assert_array_equal(found, X[:, wanted])


@every_pair(dtype=DTYPES, format_=BOTH, weighted=[False, True], **FORMS, indirect=list(FORMS))
def test_spread(format_: str, dtype: str, weighted: bool, engine: str, pieces: str) -> None:
    X = table(dtype=dtype)
    exact, there = X.astype(np.float64), X != 0
    rng = np.random.default_rng(3)
    w = rng.uniform(0, 3, len(X)) * (rng.random(len(X)) < 0.8) if weighted else np.ones(len(X))
    centre = rng.normal(size=X.shape[1])
    absent, shift, square = open_entries(stored(X, format_)).centred_sums(w, centre)
    residual = np.where(there, exact - centre, 0.0)
    np.testing.assert_allclose(absent, w @ ~there, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shift, w @ residual, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(square, w @ residual**2, rtol=1e-12)
    full = there[w > 0].all(axis=0)
    assert full.any()
    assert not absent[full].any(), "rounding must not look like a row without an entry"


@every_pair(dtype=DTYPES, weighted=[False, True], **FORMS, indirect=list(FORMS))
def test_pairs(dtype: str, weighted: bool, engine: str, pieces: str) -> None:
    X = table(dtype=dtype)
    exact = X.astype(np.float64)
    w = np.random.default_rng(4).uniform(0, 2, len(X)) if weighted else None
    wanted = exact.T @ (exact if w is None else w[:, None] * exact)
    for index in INDICES:
        found = CSRKernels(stored(X, "csr", index)).gram_upper(w)
        np.testing.assert_allclose(np.triu(found), np.triu(wanted), rtol=1e-12)


@every_pair(
    format_=BOTH,
    route=["sparse", "dense"],
    weighted=[False, True],
    outputs=["classes", "numbers"],
    **FORMS,
    indirect=list(FORMS),
)
def test_moments(
    format_: str, route: str, weighted: bool, outputs: str, engine: str, pieces: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Both ways to the Gram matrix against the definition, with a column that is far from zero."""
    monkeypatch.setattr(sparse_rows, "MULTIPLY", 1.0 if route == "sparse" else 0.0)
    rng = np.random.default_rng(5)
    X = table()
    X[:, 3] += 10**7
    X[:, 8] += 300
    y = rng.choice(["u", "v", "w"], len(X)) if outputs == "classes" else rng.normal(5e5, 1, len(X))
    w = rng.uniform(0, 2, len(X)) * (rng.random(len(X)) < 0.9) if weighted else None
    target = encode_target(y)
    read = SparseRows(stored(X, format_)).moments(target, w)
    one = np.ones(len(X)) if w is None else w
    Y = target.block(0, len(X))
    Z, U = (v.astype(np.longdouble) for v in (X, Y))
    Z, U = Z - one @ Z / one.sum(), U - one @ U / one.sum()
    unit = np.sqrt((one @ Z**2).astype(np.float64))
    for found, wanted, size in (
        (read.xx, (one[:, None] * Z).T @ Z, np.outer(unit, unit)),
        (read.xy, (one[:, None] * Z).T @ U, unit[:, None] * np.sqrt(one.sum())),
        (read.yy, (one[:, None] * U).T @ U, one.sum()),
    ):
        assert (np.abs(found - wanted) <= 1e-9 * size).all()
    assert read.weight == pytest.approx(one.sum())


@every_pair(format_=BOTH, weighted=[False, True], **FORMS, indirect=list(FORMS))
def test_gram_columns(format_: str, weighted: bool, engine: str, pieces: str) -> None:
    rng = np.random.default_rng(6)
    X = table()
    X[:, 3] += 10**7
    w = rng.uniform(0, 2, len(X)) if weighted else None
    one = np.ones(len(X)) if w is None else w
    mean = one @ X / one.sum()
    Z = X.astype(np.longdouble) - one @ X.astype(np.longdouble) / one.sum()
    unit = np.sqrt((one @ Z**2).astype(np.float64))
    indices = np.array([20, 3, 0, 7, 11, 1, 2])
    found = SparseRows(stored(X, format_)).gram_columns(indices, w, mean, np.array([3]))
    wanted = (one[:, None] * Z[:, indices]).T @ Z
    assert (np.abs(found - wanted) <= 1e-9 * np.outer(unit[indices], unit)).all()


def test_batches_do_not_change_a_single_bit(engine: str, pieces: str) -> None:
    X = table(n=200, d=30).astype(np.float64) / 7
    rows = SparseRows(sparse.csr_array(X))
    nowhere = np.zeros(0, dtype=np.intp)
    together = rows.gram_columns(np.arange(30), None, X.mean(axis=0), nowhere)
    for p in range(30):
        alone = rows.gram_columns(np.array([p]), None, X.mean(axis=0), nowhere)
        np.testing.assert_array_equal(alone[0], together[p])


@pytest.mark.parametrize("format_", BOTH)
def test_threads_do_not_change_a_single_bit(format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_entries, "PART_ENTRIES", 100)
    rng = np.random.default_rng(7)
    rows = SparseRows(stored(table(n=400, d=50) / 7, format_))
    target = encode_target(rng.choice(["u", "v"], 400))
    answers = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        read = rows.margins(target, None)
        answers.append((read.x_mean, read.scatter, read.xy, rows.moments(target, None).xx))
    for other in answers[1:]:
        for a, b in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("format_", BOTH)
def test_select_is_a_table_of_these_columns(format_: str, engine: str, pieces: str) -> None:
    X = table()
    names = tuple(f"g{j}" for j in range(X.shape[1]))
    for chosen in ([4], [2, 9, 20], [15, 3, 8, 0], [7, 1, 7], list(range(X.shape[1]))):
        part = SparseRows(stored(X, format_), names).select(np.array(chosen))
        assert isinstance(part, SparseRows)
        assert part.feature_names == tuple(names[j] for j in chosen)
        assert (part.n_rows, part.n_features) == (len(X), len(chosen))
        np.testing.assert_array_equal(part.columns(np.arange(len(chosen))), X[:, chosen])
        target = encode_target(np.arange(len(X)) % 2)
        Z = X[:, chosen] - X[:, chosen].mean(axis=0)
        np.testing.assert_allclose(part.moments(target, None).xx, Z.T @ Z, rtol=1e-9, atol=1e-6)


@every_pair(dtype=DTYPES, **FORMS, indirect=list(FORMS))
def test_select_keeps_types(dtype: str, engine: str, pieces: str) -> None:
    X = table(dtype=dtype)
    for index in INDICES:
        part = CSRKernels(stored(X, "csr", index)).select(np.array([20, 3, 7, 4]))
        assert (part.data.dtype, part.indices.dtype, part.indptr.dtype) == (X.dtype, index, index)
        np.testing.assert_array_equal(part.toarray(), X[:, [20, 3, 7, 4]])


@pytest.mark.parametrize(("engine_", "format_"), [("1", "csr"), ("0", "csc")])
def test_memory_is_bounded_whatever_the_table(format_: str, engine_: str) -> None:
    """Beyond the table itself a fresh process needs what strips and partial sums take, no more."""
    code = f"""
import resource, numpy as np
from scipy import sparse
from exactk import Problem
n, d, per_row = 12_000, 3_000, 600
rng = np.random.default_rng(0)
indices = np.arange(n * per_row, dtype=np.int32).reshape(n, per_row) % per_row * 5
indices += rng.integers(0, 5, indices.shape, dtype=np.int32)
data = rng.integers(1, 9, n * per_row).astype(np.float32)
X = sparse.csr_matrix((data, indices.ravel(), np.arange(n + 1) * per_row), shape=(n, d))
X = X.asformat({format_!r})
y = np.arange(n) % 7
del indices, data
tiny = sparse.random(50, 20, 0.5, random_state=0, format={format_!r})
Problem.from_arrays(tiny, np.arange(50) % 3, gram="columns").gram_rows([0])

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

open("/proc/self/clear_refs", "w").write("5")
before = peak()
Problem.from_arrays(X, y, gram="columns").gram_rows(np.arange(0, d, 100))
print(peak() - before, X.data.nbytes + X.indices.nbytes)
"""
    if not os.path.exists("/proc/self/clear_refs"):
        pytest.skip("the system does not tell the peak of memory")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "EXACTK_NATIVE": engine_},
        capture_output=True,
        text=True,
        check=True,
    )
    extra, size = map(int, done.stdout.split())
    assert size == 8 * 7_200_000
    assert extra < 48 * 2**20


@pytest.mark.parametrize("format_", BOTH)
@pytest.mark.parametrize("fault", ["index", "inner", "negative", "inner negative", "ends", "short"])
def test_a_broken_table_is_refused(format_: str, fault: str) -> None:
    made = stored(table(), format_)
    if fault == "index":
        made.indices[made.indptr[1] - 1] = 10**6
    elif fault.startswith("inner"):
        # Neither first nor last of its line, in a table that has noted that it is in order.
        assert made.has_canonical_format
        line = int(np.argmax(np.diff(made.indptr) > 2))
        made.indices[made.indptr[line] + 1] = -1 if fault == "inner negative" else 10**6
    elif fault == "negative":
        made.indices[0] = -1
    elif fault == "ends":
        made.indptr[2] = made.indptr[1] - 1
    else:
        made.data = made.data[:-5]
    with pytest.raises(InputError, match="broken sparse table: its indices do not fit its shape"):
        SparseRows(made)


@pytest.mark.parametrize("format_", BOTH)
@pytest.mark.parametrize("index", INDICES)
def test_what_the_table_has_noted_of_its_order_is_not_believed(
    format_: str, index: Any, engine: str
) -> None:
    # Lines so long that a column is looked for by halving, and full enough for pairs to matter.
    X = table(300, 300, fill=0.4)
    made = stored(X, format_, index)
    assert made.has_canonical_format
    order = np.random.default_rng(9).permutation(X.shape[1 if format_ == "csr" else 0])
    made.indices = order[made.indices].astype(index)
    assert made.has_canonical_format
    before = made.indices.copy()
    X = X[:, np.argsort(order)] if format_ == "csr" else X[np.argsort(order)]
    rows, target = SparseRows(made), encode_target(np.arange(len(X)) % 2)
    for j in range(0, X.shape[1], 50):
        np.testing.assert_array_equal(rows.columns(np.array([j]))[:, 0], X[:, j])
    rows._dense_cost = np.inf
    Z = X - X.mean(axis=0)
    np.testing.assert_allclose(rows.moments(target, None).xx, Z.T @ Z, rtol=1e-9, atol=1e-5)
    np.testing.assert_array_equal(made.indices, before)


@pytest.mark.parametrize("format_", BOTH)
def test_room_to_spare_behind_the_entries_is_not_read(format_: str) -> None:
    X, target = table(), encode_target(np.arange(70) % 2)
    made = stored(X, format_)
    made.data = np.append(made.data, [np.nan, np.inf])
    made.indices = np.append(made.indices, [10**6, -1]).astype(made.indices.dtype)
    rows = SparseRows(made)
    np.testing.assert_array_equal(rows.columns(np.arange(X.shape[1])), X)
    np.testing.assert_allclose(rows.margins(target, None).x_mean, X.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("format_", BOTH)
def test_tables_without_rows_or_columns(format_: str) -> None:
    X = table()
    rows = SparseRows(stored(X, format_), tuple(map(str, range(X.shape[1]))))
    part = rows.select(np.zeros(0, dtype=np.intp))
    assert (part.n_rows, part.n_features, part.feature_names) == (len(X), 0, ())
    assert part.columns(np.zeros(0, dtype=np.intp)).shape == (len(X), 0)
    assert part.products(np.ones((len(X), 2))).shape == (2, 0)
    assert part.moments(encode_target(np.arange(len(X)) % 2), None).xx.shape == (0, 0)
    nobody = SparseRows(stored(X[:0], format_))
    assert nobody.columns(np.array([3, 1])).shape == (0, 2)
    assert (nobody.products(np.ones((0, 2))) == np.zeros((2, X.shape[1]))).all()


@pytest.mark.parametrize("format_", BOTH)
def test_odd_arrays_are_read_without_compiled_code(format_: str) -> None:
    """Other byte orders, strides, or index types that differ: slower, and right."""
    X = table()
    right = np.random.default_rng(8).standard_normal((len(X), 3))
    swapped, strided, mixed = (stored(X, format_) for _ in range(3))
    swapped.data = swapped.data.astype(swapped.data.dtype.newbyteorder())
    strided.data = np.repeat(strided.data, 2)[::2]
    mixed.indptr = mixed.indptr.astype(np.int64)
    for odd in (swapped, strided, mixed):
        np.testing.assert_allclose(open_entries(odd).products(right), right.T @ X, rtol=1e-10)


def test_a_library_that_cannot_be_loaded_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    broken = tmp_path / "_native.so"
    broken.write_bytes(b"not a library")
    monkeypatch.delenv("EXACTK_NATIVE", raising=False)
    monkeypatch.setattr(sparse_kernels, "library_path", lambda: broken)
    assert sparse_kernels.library.__wrapped__() is None
