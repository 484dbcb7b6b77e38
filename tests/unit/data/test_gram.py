"""The Gram matrix gives the same columns whole, one by one, forgotten and read again."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from exactk import Problem
from exactk.data.gram import ColumnGram, WholeGram, column_gram, scale_in_place
from exactk.data.open_table import open_rows
from exactk.data.targets import encode_target
from exactk.errors import InputError
from tests.support import every_pair

Array = np.ndarray[Any, Any]
N, D = 40, 12


def data(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, D)) @ rng.normal(size=(D, D)) + 3, rng.integers(0, 3, N)


def expected(X: Array, w: Array | None = None, scale: bool = True) -> Array:
    """Centred products of (standardised) columns, of rows repeated as often as they weigh."""
    if w is not None:
        X = np.repeat(X, w.astype(int), axis=0)
    Z = X - X.mean(axis=0)
    if scale:
        Z = Z / Z.std(axis=0, ddof=1)
    return Z.T @ Z


@every_pair(
    kind=["C", "F", "f4", "csr", "csc"],
    mode=["auto", "full", "columns"],
    weighted=[False, True],
    scale=[False, True],
)
def test_every_mode_gives_the_same_columns(
    mode: Any, weighted: bool, scale: bool, kind: str
) -> None:
    X, y = data()
    w = np.random.default_rng(1).integers(0, 4, N).astype(float) if weighted else None
    if kind == "f4":
        X = X.astype("f4").astype("f8")
    table = {
        "C": lambda: X,
        "F": lambda: np.asfortranarray(X),
        "f4": lambda: X.astype("f4"),
        "csr": lambda: sparse.csr_array(X),
        "csc": lambda: sparse.csc_array(X),
    }[kind]()
    problem = Problem.from_arrays(table, y, sample_weight=w, scale=scale, gram=mode)
    A = expected(X, w, scale)
    found = np.array([problem.gram_rows([p])[0] for p in range(D)])
    np.testing.assert_allclose(found, A, rtol=1e-9, atol=1e-9 * np.abs(A).max())
    np.testing.assert_allclose(problem.gram.whole(), A, rtol=1e-9, atol=1e-9 * np.abs(A).max())


@settings(max_examples=25, deadline=None)
@given(
    limit=st.integers(0, 8 * D * 5),
    asked=st.lists(st.lists(st.integers(0, D - 1), min_size=1, max_size=6), max_size=8),
)
def test_forgotten_columns_are_read_again(limit: int, asked: list[list[int]]) -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y, ridge=0.3, gram="columns", memory_limit=limit)
    A = expected(X)
    A[np.diag_indices(D)] *= 1.3
    for indices in asked:
        np.testing.assert_allclose(problem.gram_rows(indices), A[indices], rtol=1e-10, atol=1e-9)
        single = problem.with_ridge(0).gram_rows([indices[0]])[0]
        np.testing.assert_allclose(single, expected(X)[indices[0]], rtol=1e-10, atol=1e-9)
    distinct = {p for indices in asked for p in indices}
    assert problem.gram_columns_read >= len(distinct)
    if limit >= 8 * D * len(distinct):
        assert problem.gram_columns_read == len(distinct)


def test_columns_read_are_counted_once_while_kept() -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y, gram="columns")
    assert problem.gram_columns_read == 0
    problem.gram_rows([3, 5, 3])
    assert problem.gram_columns_read == 2
    problem.gram_rows([5])
    problem.objective([3, 5])
    assert problem.gram_columns_read == 2
    problem.gram_rows([7])
    assert problem.gram_columns_read == 3
    problem.with_ridge(1.0).gram_rows([3, 5, 7, 8])
    assert problem.gram_columns_read == 4


def test_columns_requested_together_come_from_one_pass() -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y, gram="columns")
    assert problem.passes == 1, "the first reading"
    problem.gram_rows([3, 5, 3, 7])
    assert (problem.passes, problem.gram_columns_read) == (2, 3)
    problem.gram_rows([7, 3])
    assert (problem.passes, problem.gram_columns_read) == (2, 3)
    problem.gram.prefetch(np.array([3, 8, 9, 9, 10]))
    assert (problem.passes, problem.gram_columns_read) == (3, 6)
    assert [problem.gram.holds(p) for p in (8, 9, 10, 11)] == [True, True, True, False]
    np.testing.assert_allclose(problem.gram_rows([9])[0], expected(X)[9], rtol=1e-9)
    assert problem.passes == 3
    # A block is made of its own columns: no pass over the others.
    asked = np.array([3, 11, 0])
    block = problem.gram.block(asked)
    np.testing.assert_allclose(block, expected(X)[np.ix_(asked, asked)], rtol=1e-9)
    assert problem.passes == 3


def test_passes_of_a_whole_matrix() -> None:
    X, y = data()
    whole = Problem.from_arrays(X, y, gram="full")
    whole.gram.prefetch(np.array([1, 2]))
    whole.gram_rows([1, 2])
    assert whole.passes == 1
    assert whole.gram.holds(4)
    assert pickle.loads(pickle.dumps(whole)).passes == 1
    bought = Problem.from_arrays(X, y, gram="columns")
    bought.gram.whole()
    assert bought.passes == 2


@settings(max_examples=25, deadline=None)
@given(
    limit=st.integers(0, 8 * D * 9),
    asked=st.lists(st.lists(st.integers(0, D - 1), min_size=1, max_size=9), max_size=6),
)
def test_batches_keep_to_the_memory_limit(limit: int, asked: list[list[int]]) -> None:
    X, y = data()
    problem, A = Problem.from_arrays(X, y, gram="columns", memory_limit=limit), expected(X)
    most = max(1, limit // (8 * D))
    for indices in asked:
        problem.gram.prefetch(np.array(indices))
        assert sum(problem.gram.holds(p) for p in range(D)) <= most
        out = np.full((len(indices), D), np.nan)
        assert problem.gram.take(np.array(indices), out) is out
        np.testing.assert_allclose(out, A[indices], rtol=1e-10, atol=1e-9)
        assert sum(problem.gram.holds(p) for p in range(D)) <= most


def test_what_is_taken_into_an_array_of_the_caller_is_the_same() -> None:
    X, y = data()
    picked, out = np.array([4, 1, 4]), np.empty((3, D))
    gram = Problem.from_arrays(X, y, gram="full").gram
    assert gram.take(picked, out) is out
    assert (out == gram.take(picked)).all()


@pytest.mark.parametrize("kind", ["C", "f4", "csr"])
def test_a_restricted_matrix_is_that_of_its_columns(kind: str) -> None:
    X, y = data()
    X[:, 4] += 1e6
    X = X.astype("f4").astype("f8")
    table: Any = {"C": X, "f4": X.astype("f4"), "csr": sparse.csr_array(X)}[kind]
    w = np.random.default_rng(1).integers(0, 4, N).astype(float)
    problem = Problem.from_arrays(table, y, sample_weight=w, gram="columns")
    assert isinstance(problem.gram, ColumnGram)
    picked = np.array([1, 4, 5, 10])
    small, A = problem.gram.subproblem(picked), expected(X, w)[np.ix_(picked, picked)]
    assert problem.passes == 2
    np.testing.assert_allclose(small.take(np.arange(4)), A, rtol=1e-7, atol=1e-7 * np.abs(A).max())
    np.testing.assert_allclose(small.whole(), A, rtol=1e-7, atol=1e-7 * np.abs(A).max())
    assert problem.passes == 2, "those of the small table are not counted"


def test_the_least_recently_used_column_goes_first() -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y, gram="columns", memory_limit=2 * 8 * D)
    for p, read in ((0, 1), (1, 2), (0, 2), (2, 3), (0, 3), (1, 4)):
        problem.gram_rows([p])
        assert problem.gram_columns_read == read, p


def test_mode_columns_never_buys_and_mode_full_never_reads() -> None:
    X, y = data()
    single = Problem.from_arrays(X, y, gram="columns", memory_limit=8 * D)
    for _ in range(5):
        single.gram_rows(range(D))
    assert single.gram_columns_read >= 5 * (D - 1)
    whole = Problem.from_arrays(X, y, gram="full")
    whole.gram_rows(range(D))
    assert whole.gram_columns_read == 0


@pytest.mark.parametrize("price", [1, 3, 7])
def test_the_whole_matrix_is_bought_when_the_rent_has_reached_its_price(price: int) -> None:
    X, y = data()
    rows, target = open_rows(X), encode_target(y)
    rows.pass_cost, rows.gram_cost = 1.0, float(price)
    margins = rows.margins(target, None)
    gram = column_gram(rows, target, None, margins, np.ones(D), "auto", 2**20)
    cost = 0.0
    for p in range(D):
        before = gram.columns_read
        np.testing.assert_allclose(gram.column(p), expected(X, scale=False)[p], rtol=1e-9)
        read = gram.columns_read - before
        cost += price if read == D else read
    assert cost <= 2 * price
    assert gram.columns_read == price - 1 + D, "bought once, when that was no dearer"


def test_what_does_not_fit_is_not_bought() -> None:
    X, y = data()
    rows, target = open_rows(X), encode_target(y)
    rows.pass_cost, rows.gram_cost = 1.0, 1.0
    margins = rows.margins(target, None)
    gram = column_gram(rows, target, None, margins, np.ones(D), "auto", 8 * D * D - 1)
    for p in (0, 1, 2, 0, 1, 2):
        gram.column(p)
    assert gram.columns_read == 3


def test_auto_keeps_to_the_memory_limit() -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y, memory_limit=8 * D * D - 1)
    problem.gram_rows([0])
    assert problem.gram_columns_read == 1


def test_full_that_does_not_fit_is_refused() -> None:
    X, y = np.ones((3, 400)) * np.arange(3)[:, None], [0, 1, 1]
    with pytest.raises(InputError, match="gram='full'") as error:
        Problem.from_arrays(X, y, gram="full", memory_limit=2**20)
    message = str(error.value)
    assert all(word in message for word in ("400 columns", "memory_limit", "gram='columns'"))
    with pytest.raises(InputError, match="'auto', 'full' or 'columns', not 'whole'"):
        Problem.from_arrays(X, y, gram="whole")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["full", "columns"])
def test_what_is_given_out_can_be_changed_without_harm(mode: Any) -> None:
    X, y = data()
    problem = Problem.from_arrays(X, y, gram=mode)
    first = problem.gram_rows([2])[0]
    kept = first.copy()
    first[:] = np.nan
    problem.gram_rows([2, 3])[:] = np.nan
    problem.gram.take(np.array([2]))[:] = np.nan
    assert (problem.gram_rows([2])[0] == kept).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_whole_gram_hands_out_rows_columns_and_blocks(order: str) -> None:
    A = expected(data()[0])
    gram = WholeGram(np.asarray(A, order=order))
    picked = np.array([4, 1, 9])
    assert (gram.take(picked) == A[picked]).all()
    assert (gram.column(4) == A[4]).all()
    assert (gram.block(picked) == A[picked][:, picked]).all()
    assert gram.take(picked).flags.c_contiguous


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("step", [1, 5, 256])
def test_scale_in_place(order: str, step: int) -> None:
    rng = np.random.default_rng(2)
    A, scale = rng.normal(size=(D, D)), rng.random(D)
    held = np.array(A, order=order)
    assert scale_in_place(held, scale, step) is held
    np.testing.assert_allclose(held, np.diag(scale) @ A @ np.diag(scale), rtol=1e-13)
