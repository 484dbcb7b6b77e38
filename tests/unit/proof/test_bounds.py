"""The bound at the root: what it is made of, and that it leaves out nothing that counts."""

from __future__ import annotations

from itertools import combinations
from math import inf

import numpy as np
import numpy.typing as npt
import pytest

from exactk.proof import bounds
from exactk.proof.bounds import WorkingColumns, bound_of, improve_weights, relax, relax_wide
from exactk.types import Floats


def _made(seed: int, d: int = 9, c: int = 2, alike: float = 0.7) -> tuple[Floats, Floats, float]:
    """A Gram matrix of unit diagonal, products with a target, and the least eigenvalue."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, d)) @ (np.eye(d) + alike * rng.standard_normal((d, d)))
    X /= np.linalg.norm(X, axis=0)
    C = X.T @ (X @ rng.standard_normal((d, c)) + 0.3 * rng.standard_normal((40, c)))
    E = X.T @ X
    np.fill_diagonal(E, 1.0)
    return E, C, float(np.linalg.eigvalsh(E)[0])


def _explained(E: Floats, C: Floats, S: tuple[int, ...]) -> float:
    at = list(S)
    return float((C[at] * np.linalg.solve(E[np.ix_(at, at)], C[at])).sum())


def _all(E: Floats, C: Floats, m: int) -> dict[tuple[int, ...], float]:
    return {S: _explained(E, C, S) for S in combinations(range(len(E)), m)}


@pytest.mark.parametrize("m", [1, 3, 8])
def test_the_bound_is_made_as_it_is_written(m: int) -> None:
    E, C, least = _made(1)
    rng = np.random.default_rng(0)
    delta, weights = rng.uniform(0.2, 0.8, 9) * least, rng.uniform(0.1, 1.0, 9)
    M = E - np.diag(delta)
    U = np.linalg.solve(M + np.diag(delta / weights), C)
    s = ((C - M @ U) ** 2).sum(axis=1) / delta
    bound, parts = bound_of(E, C, delta, weights, m)
    assert parts == pytest.approx(s)
    assert bound == pytest.approx(float((U * (M @ U)).sum()) + np.sort(s)[-m:].sum())
    assert bound >= max(_all(E, C, m).values())


def test_any_weights_bound_every_set_by_its_own_columns() -> None:
    E, C, least = _made(2)
    rng = np.random.default_rng(3)
    for _ in range(20):
        delta = rng.uniform(0.01, 0.99, 9) * least
        # Some are so light that they take no part.
        weights = rng.uniform(0.0, 1.0, 9) ** 6 + 1e-4
        bound, s = bound_of(E, C, delta, weights, 3)
        inner = bound - np.sort(s)[-3:].sum()
        for S, explained in _all(E, C, 3).items():
            assert explained <= inner + s[list(S)].sum() + 1e-12


def test_at_a_choice_the_bound_of_its_columns_is_what_they_explain() -> None:
    E, C, least = _made(4)
    S = (1, 4, 7)
    weights = np.full(9, 1e-13)
    weights[list(S)] = 1.0
    bound, s = bound_of(E, C, np.full(9, 0.5 * least), weights, 3)
    inner = bound - np.sort(s)[-3:].sum()
    assert inner + s[list(S)].sum() == pytest.approx(_explained(E, C, S))


@pytest.mark.parametrize("m", [1, 2, 5, 9, 12])
def test_weights_are_a_choice_in_parts(m: int) -> None:
    rng = np.random.default_rng(m)
    for scale in (1e-9, 1.0, 1e9):
        weights, s = rng.uniform(0.0, 1.0, 9) ** 3, scale * rng.uniform(0.0, 1.0, 9) ** 4
        improved = improve_weights(weights, s, m)
        assert improved.sum() == pytest.approx(min(m, 9))
        assert improved.min() >= 0.0
        assert improved.max() <= 1.0
        grows = np.maximum(weights, bounds.LEAST_WEIGHT) * s**0.75
        # Those that grow most are heaviest.
        assert (np.diff(improved[np.argsort(grows)]) >= -1e-15).all()


def test_weights_where_few_columns_matter() -> None:
    s = np.array([5.0, 3.0, 0.0, 0.0, 0.0])
    improved = improve_weights(np.full(5, 0.6), s, 3)
    assert improved[:2].tolist() == [1.0, 1.0]
    assert (improved >= 0.0).all()
    assert (improved <= 1.0).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("m", [1, 2, 4, 7])
def test_the_relaxation_bounds_and_leaves_out_what_is_worse(seed: int, m: int) -> None:
    E, C, least = _made(seed)
    values = _all(E, C, m)
    best = max(values.values())
    first, _ = bound_of(E, C, np.full(9, 0.5 * least), np.full(9, m / 9), m)
    for need in (-inf, 0.8 * best, best * (1 - 1e-9)):
        relaxed = relax(E, C, m, least, need, 1e-12)
        kept = relaxed.columns
        assert best - 1e-10 <= relaxed.explained <= first
        assert np.linalg.eigvalsh(E[np.ix_(kept, kept)] - np.diag(relaxed.delta))[0] > 0
        assert (relaxed.delta > 0).all()
        assert len(relaxed.weights) == len(kept) >= m
        for S, value in values.items():
            assert set(S) <= set(kept.tolist()) or value <= need + 1e-12
        if need == -inf:
            assert len(kept) == 9


def test_the_diagonal_saves_time() -> None:
    E, C, least = _made(7, d=12)
    best = max(_all(E, C, 4).values())
    delta, weights = np.full(12, 0.99 * least), np.full(12, 4 / 12)
    alone = inf
    for _ in range(200):
        bound, s = bound_of(E, C, delta, weights, 4)
        alone, weights = min(alone, bound), improve_weights(weights, s, 4)
    # Weights alone, with all that an eigenvalue gives, leave a wider gap.
    assert relax(E, C, 4, least, -inf, 1e-12).explained - best < 0.95 * (alone - best)


def test_known_sets_leave_few_columns() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    X /= np.linalg.norm(X, axis=0)
    C = X.T @ (X[:, :3] @ np.array([[3.0], [2.0], [2.0]]) + 0.02 * rng.standard_normal((200, 1)))
    E = X.T @ X
    best = _explained(E, C, (0, 1, 2))
    relaxed = relax(E, C, 3, float(np.linalg.eigvalsh(E)[0]), best - 1e-9, 1e-12)
    assert {0, 1, 2} <= set(relaxed.columns.tolist())
    assert len(relaxed.columns) < 10


def test_time_that_is_up_leaves_a_bound() -> None:
    E, C, least = _made(8)
    relaxed = relax(E, C, 3, least, -inf, 1e-12, stop=lambda: True)
    assert relaxed.explained >= max(_all(E, C, 3).values())
    assert relaxed.explained > relax(E, C, 3, least, -inf, 1e-12).explained


def _ridged(seed: int, d: int = 12, share: float = 0.2) -> tuple[Floats, Floats, Floats]:
    """Fewer rows than columns and a ridge that is this share of each diagonal entry."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, d))
    X *= np.sqrt(1.0 - share) / np.linalg.norm(X, axis=0)
    C = X.T @ (X[:, :4] @ rng.standard_normal((4, 2)) + 0.1 * rng.standard_normal((6, 2)))
    E = X.T @ X
    np.fill_diagonal(E, 1.0)
    return E, C, np.full(d, share)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [3, 6, 12])
def test_the_quick_bound_of_a_wide_table_holds(
    seed: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MOST_JOINING", 1)
    E, C, delta = _ridged(seed)
    values = _all(E, C, 3)
    best = max(values.values())
    asked: list[int] = []

    def rows(which: npt.NDArray[np.intp]) -> Floats:
        asked.extend(which.tolist())
        return E[which]

    for need in (-inf, 0.9 * best, best * (1 - 1e-9)):
        asked.clear()
        working = WorkingColumns(rows, np.arange(12)[::-1][:size], 3, 12)
        relaxed = relax_wide(working, C, delta, need)
        # Rows that are not needed are not read, and none is read twice.
        assert len(asked) == len(set(asked)) <= 12
        assert relaxed.explained >= best - 1e-10
        kept = set(relaxed.columns.tolist())
        for S, value in values.items():
            assert set(S) <= kept or value <= need + 1e-12
        # The bound is that of all columns with the weights it ends with, or better.
        full = np.full(12, 1e-12)
        full[working.columns] = np.maximum(working.weights, 1e-12)
        assert relaxed.explained <= bound_of(E, C, delta, full, 3)[0] * (1 + 1e-2)
        for barred in range(12):
            without = relax_wide(working, C, delta, need, barred=barred)
            own = max(value for S, value in values.items() if barred not in S)
            assert without.explained >= own - 1e-10
            assert barred not in without.columns


def test_one_round_on_all_columns_is_the_plain_bound() -> None:
    E, C, delta = _ridged(9)
    working = WorkingColumns(lambda which: E[which], np.arange(12), 3, 12)
    relaxed = relax_wide(working, C, delta, -inf, stop=lambda: True)
    bound, _ = bound_of(E, C, delta, np.full(12, 3 / 12), 3)
    assert relaxed.explained == pytest.approx(bound)
    assert relaxed.columns.tolist() == list(range(12))
    more = relax_wide(working, C, delta, -inf)
    assert more.explained < bound
