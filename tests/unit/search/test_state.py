"""Every figure that prices a move, against fits by `lstsq` on the columns themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactk import Problem
from exactk.search.native_state import NativeState, library
from exactk.search.state import State
from exactk.types import Floats
from tests.oracles.brute import Reference, make_classes, make_numbers

KINDS = [
    pytest.param(State, id="numpy"),
    pytest.param(
        NativeState,
        id="native",
        marks=pytest.mark.skipif(library() is None, reason="the compiled moves are not built"),
    ),
]
both = pytest.mark.parametrize("kind", KINDS)


class Prices:
    """C, D, gains, losses and swaps of a support by least squares on Z, where A = ZᵀZ."""

    def __init__(self, reference: Reference, support: list[int]) -> None:
        self.reference, self.S = reference, support
        d = reference.X.shape[1]
        Z = np.vstack([reference.X, np.sqrt(reference.penalty) * np.eye(d)])
        Z[:, [j for j in range(d) if j not in reference.usable]] = 0.0
        T = np.vstack([reference.Y, np.zeros((d, reference.Y.shape[1]))])
        if support:
            T = T - Z[:, support] @ np.linalg.lstsq(Z[:, support], T, rcond=1e-7)[0]
            rest = Z - Z[:, support] @ np.linalg.lstsq(Z[:, support], Z, rcond=1e-7)[0]
        else:
            rest = Z
        self.C = T.T @ Z
        self.D = (rest**2).sum(axis=0)
        self.objective = float((T**2).sum())
        size = (Z**2).sum(axis=0)
        self.independent = self.D > 1e-6 * np.where(size > 0, size, np.inf)
        self.independent[support] = False

    def gains(self) -> Floats:
        f = self.reference.objective
        return np.array(
            [
                self.objective - f([*self.S, p]) if free else -np.inf
                for p, free in enumerate(self.independent)
            ]
        )

    def losses(self) -> Floats:
        f = self.reference.objective
        rest = [self.S[:i] + self.S[i + 1 :] for i in range(len(self.S))]
        return np.array([f(S) - self.objective for S in rest])


def assert_prices(state: State, reference: Reference) -> None:
    """Everything that a state knows is what the definition says."""
    S, f, tol = state.support, reference.objective, 1e-8 * reference.total
    prices = Prices(reference, S)
    assert state.objective == pytest.approx(f(S), abs=tol)
    outside = np.setdiff1d(reference.usable, S)
    np.testing.assert_allclose(state.C[:, outside], prices.C[:, outside], atol=1e-7)
    np.testing.assert_allclose(state.D[outside], prices.D[outside], atol=1e-7)
    np.testing.assert_allclose(state.D[S], 0.0, atol=1e-9)
    np.testing.assert_allclose(state.gains(), prices.gains(), atol=tol)
    addition = state.best_addition()
    if not prices.independent.any():
        assert addition is None
    else:
        assert addition is not None
        assert addition.slot == -1
        assert prices.independent[addition.column]
        assert addition.gain == pytest.approx(prices.gains().max(), abs=tol)
        after = f([*S, addition.column])
        assert after == pytest.approx(prices.objective - addition.gain, abs=tol)
    if not S:
        return
    losses = prices.losses()
    np.testing.assert_allclose(state.losses(), losses, atol=tol)
    assert losses[state.best_drop()] == pytest.approx(losses.min(), abs=tol)
    best = prices.objective - reference.best_swap(S)
    swap = state.best_swap()
    if swap is None:
        assert best <= tol
    else:
        assert swap.gain == pytest.approx(best, abs=tol)
        exchanged = [p for i, p in enumerate(S) if i != swap.slot] + [swap.column]
        assert f(exchanged) == pytest.approx(prices.objective - swap.gain, abs=tol)


def walk(state: State, reference: Reference, numbers: list[int]) -> Iterator[int]:
    """Move as the numbers say, by additions, drops and swaps that are allowed."""
    for number in numbers:
        kind, number = number % 3, number // 3
        size, room = state.size, len(state._S)
        free = np.flatnonzero(Prices(reference, state.support).independent)
        if size and (kind == 1 or size == room):
            slot = number % size
            if kind == 2:
                swap = state.best_swap()
                if swap is not None:
                    state.swap(swap)
            else:
                state.drop(slot)
        elif len(free):
            state.add(int(free[number % len(free)]))
        yield number


def table(seed: int, ridge: float, classes: bool) -> tuple[Problem, Reference]:
    """Eight columns: six of their own, a sum of two of them, and a constant one."""
    X, y = make_classes(30, 6, 3, seed) if classes else make_numbers(30, 6, 2, seed)
    X = np.column_stack([X[:, :4], X[:, 0] + X[:, 2], np.full(30, 7.0), X[:, 4:]])
    return Problem.from_arrays(X, y, ridge=ridge), Reference(X, y, ridge=ridge)


@both
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    ridge=st.sampled_from([0.0, 0.1, 3.0]),
    classes=st.booleans(),
    numbers=st.lists(st.integers(0, 200), min_size=1, max_size=12),
)
def test_after_any_moves_the_prices_are_those_of_the_columns_held(
    kind: type[State], seed: int, ridge: float, classes: bool, numbers: list[int]
) -> None:
    problem, reference = table(seed, ridge, classes)
    state = kind(problem, 4)
    for _ in walk(state, reference, numbers):
        pass
    assert_prices(state, reference)
    loaded = kind(problem, 4)
    assert loaded.load(state.support)
    assert_prices(loaded, reference)


@pytest.mark.skipif(library() is None, reason="the compiled moves are not built")
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    ridge=st.sampled_from([0.0, 0.5]),
    numbers=st.lists(st.integers(0, 200), min_size=1, max_size=15),
)
def test_compiled_and_numpy_moves_agree(seed: int, ridge: float, numbers: list[int]) -> None:
    problem, reference = table(seed, ridge, classes=True)
    plain, native = State(problem, 4), NativeState(problem, 4)
    steps = zip(walk(plain, reference, numbers), walk(native, reference, numbers), strict=True)
    for _ in steps:
        assert native.support == plain.support
        assert native.objective == pytest.approx(plain.objective, rel=1e-10)
        np.testing.assert_allclose(native.C, plain.C, atol=1e-9)
        np.testing.assert_allclose(native.D, plain.D, atol=1e-9)
        for name in ("best_addition", "best_swap")[: 1 + (plain.size > 0)]:
            one, other = getattr(plain, name)(), getattr(native, name)()
            assert (one is None) == (other is None)
            if one is not None:
                assert other[1:] == one[1:]
                assert other.gain == pytest.approx(one.gain, abs=1e-9)


@both
def test_bounds_spare_no_swap_that_counts_among_many_columns(kind: type[State]) -> None:
    # Enough columns for the two bounds and the first look to leave most of them unpriced.
    X, y = make_classes(60, 400, 2, seed=3)
    problem, reference = Problem.from_arrays(X, y), Reference(X, y)
    state = kind(problem, 4)
    for support in ([5, 90, 211, 399], [1, 2, 3, 4]):
        assert state.load(support)
        swap = state.best_swap()
        assert swap is not None
        best = reference.objective(support) - reference.best_swap(support)
        assert swap.gain == pytest.approx(best, rel=1e-9)


@both
def test_large_supports_are_refreshed_alike(kind: type[State]) -> None:
    # 45² · 2,100 products: above the size where the compiled state leaves the work to BLAS.
    X, y = make_numbers(120, 2100, 2, seed=1)
    support = np.random.default_rng(1).choice(2100, 45, replace=False).tolist()
    state = kind(Problem.from_arrays(X, y), 45)
    assert state.load(support)
    reference = Reference(X, y)
    assert state.objective == pytest.approx(reference.objective(support), rel=1e-9)
    state.drop(7)
    support = state.support
    assert len(support) == 44
    assert state.objective == pytest.approx(reference.objective(support), rel=1e-9)
    state.add(next(p for p in range(2100) if p not in support))
    assert state.objective == pytest.approx(reference.objective(state.support), rel=1e-9)


@both
def test_ties_go_to_the_lowest_column(kind: type[State]) -> None:
    X, y = make_numbers(40, 4, 1, seed=2)
    strong = int(np.argmin([Reference(X, y).objective([j]) for j in range(4)]))
    weak = (strong + 1) % 4
    # Columns 0-2 are three of the weak column, 3-5 copies of the strong one.
    X = X[:, [weak, weak, weak, strong, strong, strong]]
    problem = Problem.from_arrays(X, y, ridge=0.2)
    state = kind(problem, 3)
    assert state.best_addition().column == 3
    state.load([2, 0])
    move = state.best_swap()
    assert (state.support[move.slot], move.column) == (0, 3)
    assert state.load([5, 4])
    assert state.support[state.best_drop()] == 4


@both
def test_a_dependent_column_may_replace_the_one_it_copies_but_never_join_it(
    kind: type[State],
) -> None:
    X, y = make_numbers(40, 4, 1, seed=5)
    X = np.column_stack([X, X[:, 1] * -3.0 + 2.0])
    state = kind(Problem.from_arrays(X, y), 3)
    assert state.load([1])
    assert state.gains()[4] == -np.inf
    assert not kind(Problem.from_arrays(X, y), 3).load([1, 4])
    # Held next to the sum of two others, a third column leaves the sum and one part to swap.
    X = np.column_stack([X[:, 0], X[:, 1], X[:, 0] + X[:, 1] * 1e-3])
    y = X[:, 1] + 1e-3 * y
    reference = Reference(X, y)
    state = kind(Problem.from_arrays(X, y), 2)
    assert state.load([0, 2])
    assert_prices(state, reference)


@both
def test_copies_do_not_share_anything(kind: type[State]) -> None:
    problem, reference = table(11, 0.0, classes=True)
    state = kind(problem, 3)
    state.load([0, 3])
    other = state.copy()
    other.add(1)
    other.drop(0)
    assert_prices(state, reference)
    assert_prices(other, reference)
    assert sorted(state.support) == [0, 3]
    assert sorted(other.support) == [1, 3]


@both
def test_an_empty_support_has_no_swap(kind: type[State]) -> None:
    problem, reference = table(0, 0.0, classes=False)
    state = kind(problem, 2)
    assert state.objective == pytest.approx(reference.total)
    assert state.best_swap() is None
    state.add(0)
    state.drop(0)
    assert state.support == []
    assert state.objective == pytest.approx(reference.total)
    assert state.best_swap() is None


@both
def test_room_for_every_column_leaves_nothing_to_add_or_swap(kind: type[State]) -> None:
    X, y = make_classes(40, 5, 3, seed=6)
    state = kind(Problem.from_arrays(X, y), 5)
    assert state.load(range(5))
    assert state.best_addition() is None
    assert state.best_swap() is None


@both
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("at_once", [1, 4096])
def test_swap_gains_are_those_of_the_best_member_to_let_go(
    kind: type[State], ridge: float, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exactk.search.state.PRICED_AT_ONCE", at_once)
    X, y = make_numbers(40, 12, 2, seed=4)
    X[:, 7] = 3.0
    X[:, 9] = X[:, 0] + X[:, 1]
    reference = Reference(X, y, ridge=ridge)
    state = kind(Problem.from_arrays(X, y, ridge=ridge), 3)
    assert (state.swap_gains() == -np.inf).all()
    for S in ([0, 1, 2], [3, 5, 9], [4, 6, 10]):
        state.load(S)
        found = state.swap_gains()
        f = reference.objective(S)
        assert (found[[*S, 7]] == -np.inf).all()
        for p in set(range(12)) - {*S, 7}:
            swaps = [reference.objective([*S[:i], *S[i + 1 :], p]) for i in range(3)]
            gain = f - min(swaps)
            if gain > 1e-9 * f:
                assert found[p] == pytest.approx(gain, rel=1e-7)
            else:
                assert found[p] <= 1e-9 * f
