"""Half-samples: which rows, how often, and that their moments are those of their rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from exactk import InputError, Problem
from exactk.data.moments import Moments
from exactk.search import subsampling
from exactk.search.subsampling import BlockMoments, half_samples, number_groups
from tests.support import says


def table(n: int = 90, d: int = 6, seed: int = 0):
    """Column 0 is the number of the row, so that a half tells which rows it has."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)) + 0.5 * y[:, None] * rng.normal(size=d)
    X[:, 0] = np.arange(n)
    return X, y


def drawn(problem: Problem, seed: int = 0, n_subsamples: int = 6, **named) -> list[Problem]:
    rng = np.random.default_rng(seed)
    return list(half_samples(problem, rng, n_subsamples=n_subsamples, **named))


def rows_of(half: Problem) -> dict[int, float]:
    """Weight of each row that is in a half."""
    assert half.rows is not None
    numbers = half.rows.columns(np.array([0]))[:, 0].astype(int)
    weights = np.ones(len(numbers)) if half.weights is None else half.weights
    return dict(zip(numbers.tolist(), weights.tolist(), strict=True))


def in_blocks(monkeypatch: pytest.MonkeyPatch, *, merged: bool) -> None:
    monkeypatch.setattr(subsampling, "BLOCK_ROWS", 60)
    monkeypatch.setattr(subsampling, "_merging_pays", lambda *_: merged)


@pytest.mark.parametrize("blocks", [False, True], ids=["rows", "blocks"])
def test_pairs_are_disjoint_complete_and_stratified(
    blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if blocks:
        in_blocks(monkeypatch, merged=False)
    X, y = table(200)
    found = drawn(Problem.from_arrays(X, y), n_subsamples=10)
    for one, other in zip(found[::2], found[1::2], strict=True):
        first, second = set(rows_of(one)), set(rows_of(other))
        assert not first & second
        assert first | second == set(range(200))
        apart = np.bincount(y[sorted(first)]) - np.bincount(y[sorted(second)])
        assert (np.abs(apart) <= (40 if blocks else 1)).all()
    # Draws differ from pair to pair.
    assert len({tuple(sorted(rows_of(half))) for half in found}) == 10


def test_an_odd_number_ends_with_half_a_pair() -> None:
    X, y = table()
    problem = Problem.from_arrays(X, y)
    five, six = drawn(problem, n_subsamples=5), drawn(problem, n_subsamples=6)
    assert len(five) == 5
    for one, other in zip(five, six, strict=False):
        assert rows_of(one) == rows_of(other)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_merged_blocks_are_the_moments_of_their_rows(
    weighted: bool, task: str, offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table(150)
    X[:, 1:] += offset
    target = y if task == "classification" else X[:, 1] - offset + y
    w = np.random.default_rng(1).integers(0, 4, 150) if weighted else None
    problem = Problem.from_arrays(X, target, sample_weight=w, ridge=0.1)
    in_blocks(monkeypatch, merged=True)
    merged = drawn(problem)
    in_blocks(monkeypatch, merged=False)
    by_rows = drawn(problem)
    assert all(half.rows is None for half in merged)
    for half, same in zip(merged, by_rows, strict=True):
        counts = rows_of(same)
        part = np.repeat(list(counts), np.array(list(counts.values()), dtype=int))
        x = X[part].astype(np.longdouble)
        z = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
        Y = (y[part][:, None] == [0, 1, 2]) if task == "classification" else target[part][:, None]
        Y = Y - Y.astype(np.longdouble).mean(axis=0)
        gram, cross = (z.T @ z).astype(float), (Y.T @ z).astype(float)
        rel = 1e-10 if offset == 0 else 1e-8
        gram[np.arange(6), np.arange(6)] += half.penalty
        for found, wanted in [(half.gram_rows(np.arange(6)), gram), (half.cross, cross)]:
            assert np.abs(found - wanted).max() <= rel * np.abs(wanted).max()
        assert half.weight == len(part)
        assert half.ridge == 0.1


def test_many_rows_are_drawn_in_blocks_whichever_way_costs_less() -> None:
    X, y = table(3000)
    problem = Problem.from_arrays(X, y)
    cheapest, by_rows = drawn(problem), drawn(problem, with_rows=True)
    for half, same in zip(cheapest, by_rows, strict=True):
        np.testing.assert_allclose(half.x_mean, same.x_mean, rtol=1e-12)
        np.testing.assert_allclose(half.cross, same.cross, rtol=1e-9, atol=1e-9)
    # A half is half of 64 blocks: whatever two rows share a block are always together.
    sets = [frozenset(rows_of(half)) for half in drawn(problem, n_subsamples=40, with_rows=True)]
    patterns = {tuple(row in one for one in sets) for row in range(3000)}
    assert len(patterns) == subsampling.BLOCKS


def test_what_costs_less_is_chosen_by_the_estimates_of_the_table() -> None:
    tall = Problem.from_arrays(*table(40_000, 30)).rows
    short = Problem.from_arrays(*table(2100, 400)).rows
    assert tall is not None
    assert short is not None
    assert subsampling._merging_pays(tall, 64, 100)
    assert not subsampling._merging_pays(short, 64, 100)


def test_without_memory_for_blocks_rows_are_drawn_one_by_one() -> None:
    X, y = table(2100)
    small = Problem.from_arrays(X, y, memory_limit=8 * 36 * 10)
    for one, other in zip(drawn(small)[::2], drawn(small)[1::2], strict=True):
        first, second = sorted(rows_of(one)), sorted(rows_of(other))
        assert (np.abs(np.bincount(y[first]) - np.bincount(y[second])) <= 1).all()


def test_block_moments_against_one_merge_after_the_other() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 300)) + 5.0, rng.normal(size=(60, 2))
    parts = [Moments.from_arrays(X[i : i + 10], Y[i : i + 10]) for i in range(0, 60, 10)]
    which = np.array([True, False, True, True, False, False])
    wanted = parts[0].merge(parts[2]).merge(parts[3])
    one, other = BlockMoments.of(list(parts)).merged(which, ~which)
    whole = one.merge(other)
    everything = Moments.from_arrays(X, Y)
    for name in ("weight", "n_rows", "x_mean", "y_mean", "xx", "xy", "yy"):
        np.testing.assert_allclose(getattr(one, name), getattr(wanted, name), rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(
            getattr(whole, name), getattr(everything, name), rtol=1e-10, atol=1e-9
        )


@pytest.mark.parametrize("blocks", [False, True], ids=["rows", "blocks"])
def test_the_draw_goes_with_the_rows_and_not_their_order(
    blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if blocks:
        in_blocks(monkeypatch, merged=False)
    X, y = table()
    wanted = [rows_of(half) for half in drawn(Problem.from_arrays(X, y))]
    rng = np.random.default_rng(5)
    rows, columns = rng.permutation(90), np.array([0, *(1 + rng.permutation(5))])
    factors = np.array([1.0, 1e-3, -7.0, 1e5, -1.0, 2.0])
    same = [
        Problem.from_arrays(X[rows], y[rows]),
        Problem.from_arrays(X[:, columns], y),
        Problem.from_arrays(X * factors + np.arange(6) * (factors != 1), y),
        Problem.from_arrays(X, np.array(["z", "a", "m"])[y]),
        Problem.from_arrays(sparse.csr_array(X), y, gram="columns"),
        Problem.from_arrays(np.column_stack([X, -2.0 * X]), y, ridge=0.3),
        Problem.from_arrays(X, y).with_constraints(exclude=[2, 3]),
    ]
    for problem in same:
        assert [rows_of(half) for half in drawn(problem)] == wanted
    assert [rows_of(half) for half in drawn(Problem.from_arrays(X, y), seed=1)] != wanted


def test_the_draw_does_not_know_units_and_sign_of_a_number() -> None:
    X, y = table()
    target = X[:, 1] + y
    wanted = [rows_of(half) for half in drawn(Problem.from_arrays(X, target))]
    for factor in (1e-6, -3.0):
        problem = Problem.from_arrays(X, factor * target + 2.0)
        assert [rows_of(half) for half in drawn(problem)] == wanted


@pytest.mark.parametrize("blocks", [False, True], ids=["rows", "blocks"])
def test_a_whole_weight_is_as_many_rows(blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if blocks:
        in_blocks(monkeypatch, merged=False)
    X, y = table()
    w = np.random.default_rng(2).integers(0, 4, 90)
    weighted = drawn(Problem.from_arrays(X, y, sample_weight=w))
    repeated = drawn(Problem.from_arrays(np.repeat(X, w, axis=0), np.repeat(y, w)))
    for one, other in zip(weighted, repeated, strict=True):
        assert other.rows is not None
        numbers = other.rows.columns(np.array([0]))[:, 0].astype(int)
        counts = np.bincount(numbers, minlength=90)
        assert rows_of(one) == {int(i): float(counts[i]) for i in np.flatnonzero(counts)}
    for one, other in zip(weighted[::2], weighted[1::2], strict=True):
        first, second = rows_of(one), rows_of(other)
        assert [first.get(i, 0) + second.get(i, 0) for i in range(90)] == w.tolist()


def test_other_weights_stay_with_their_rows() -> None:
    X, y = table()
    w = np.random.default_rng(3).uniform(0.0, 2.0, 90)
    w[:10] = 0.0
    for half in drawn(Problem.from_arrays(X, y, sample_weight=w)):
        kept = rows_of(half)
        assert min(kept) >= 10
        assert kept == {i: w[i] for i in kept}


def test_a_class_that_is_missing_in_a_half_stays_an_output() -> None:
    X, y = table()
    y = np.where(np.arange(90) == 7, 5, y)
    found = drawn(Problem.from_arrays(X, y))
    for half in found:
        assert half.n_outputs == 4
    assert [(7 in rows_of(half)) for half in found].count(True) == 3


def test_a_half_with_a_constant_target_is_none() -> None:
    X, _ = table(20)
    y = (np.arange(20) == 7).astype(int)
    found = drawn(Problem.from_arrays(X, y))
    assert [half is None for half in found].count(True) == 3
    assert all((a is None) != (b is None) for a, b in zip(found[::2], found[1::2], strict=True))


def test_halves_keep_rules_ridge_and_scaling() -> None:
    X, y = table()
    problem = Problem.from_arrays(X, y, ridge=0.2, scale=False).with_constraints(include=[3])
    for half in drawn(problem):
        assert half.rules == problem.rules
        assert (half.ridge, half.scaled) == (0.2, False)


def test_what_cannot_be_halved() -> None:
    X, y = table()
    with says("made of moments", "from_arrays"):
        drawn(Problem.from_moments(Moments.from_arrays(X, np.eye(3)[y]), classes=[0, 1, 2]))
    with says("at least 6 rows", "there are 5"):
        drawn(Problem.from_arrays(X[:5], [0, 1, 0, 1, 1]))
    with pytest.raises(InputError, match="there are 4"):
        drawn(Problem.from_arrays(X[:5], [0, 1, 0, 1, 1], sample_weight=[1, 1, 0, 1, 1]))


@pytest.fixture
def parquet(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = table(400)
    columns = {f"c{j}": X[:, j] for j in range(6)} | {"y": np.array(["a", "b", "c"])[y]}
    pq.write_table(pa.table(columns), tmp_path / "table.parquet", row_group_size=90)
    return tmp_path / "table.parquet", X, y


def test_a_small_stream_is_drawn_as_a_table_is(parquet) -> None:
    path, X, y = parquet
    wanted = [rows_of(half) for half in drawn(Problem.from_arrays(X, np.array(["a", "b", "c"])[y]))]
    assert [rows_of(half) for half in drawn(Problem.from_files(path, target="y"))] == wanted


@pytest.mark.parametrize("limit", [2**20, 3000], ids=["one pass", "a pass each"])
def test_halves_of_a_large_stream_add_up_to_it(
    parquet, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, X, _ = parquet
    monkeypatch.setattr(subsampling, "HELD_BYTES", 0)
    problem = Problem.from_files(path, target="y", memory_limit=limit)
    found = drawn(problem)
    sums = [half.weight * half.x_mean for half in found]
    for i in range(0, 6, 2):
        np.testing.assert_allclose(sums[i] + sums[i + 1], X.sum(axis=0), rtol=1e-10)
        assert found[i].n_rows + found[i + 1].n_rows == 400
        assert 120 < found[i].n_rows < 280
    assert all(half.feature_names == problem.feature_names for half in found)
    again = drawn(problem)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_allclose(one.x_mean, other.x_mean, rtol=1e-12)
    assert all(a.x_mean[0] != b.x_mean[0] for a, b in pairwise(found))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weights"])
def test_whole_groups_go_to_one_half_or_the_other(weighted: bool) -> None:
    X, y = table(200)
    labels = np.random.default_rng(3).integers(0, 9, 200)
    weights = np.arange(200) % 4 / 2.0 if weighted else np.ones(200)
    problem = Problem.from_arrays(X, y, sample_weight=weights if weighted else None)
    found = drawn(problem, n_subsamples=12, groups=number_groups(problem, labels))
    there = set(np.flatnonzero(weights).tolist())
    for one, other in zip(found[::2], found[1::2], strict=True):
        first, second = rows_of(one), rows_of(other)
        sides = [set(labels[list(half)].tolist()) for half in (first, second)]
        assert not sides[0] & sides[1]
        assert {len(side) for side in sides} == {4, 5}
        assert not set(first) & set(second)
        assert set(first) | set(second) == there
        assert all(weights[i] == w for i, w in (first | second).items())
    assert len({tuple(sorted(rows_of(half))) for half in found}) > 6


def test_draws_of_groups_go_by_their_labels_and_not_by_the_order_of_rows() -> None:
    X, y = table(120)
    labels = np.array([f"p{i % 7}" for i in range(120)])
    problem = Problem.from_arrays(X, y)
    found = drawn(problem, seed=5, groups=number_groups(problem, labels))
    again = drawn(problem, seed=5, groups=number_groups(problem, labels))
    order = np.random.default_rng(1).permutation(120)
    shuffled = Problem.from_arrays(X[order], y[order])
    moved = drawn(shuffled, seed=5, groups=number_groups(shuffled, labels[order]))
    rows = [sorted(rows_of(half)) for half in found]
    assert rows == [sorted(rows_of(half)) for half in again]
    assert rows == [sorted(rows_of(half)) for half in moved]
    other = drawn(problem, seed=6, groups=number_groups(problem, labels))
    assert rows != [sorted(rows_of(half)) for half in other]


def test_groups_added_up_by_moments_are_the_same_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(160)
    weights = np.arange(160) % 3 + 0.5
    problem = Problem.from_arrays(X, y, sample_weight=weights)
    groups = number_groups(problem, np.arange(160) % 11)
    in_blocks(monkeypatch, merged=False)
    by_rows = drawn(problem, groups=groups)
    in_blocks(monkeypatch, merged=True)
    by_moments = drawn(problem, groups=groups)
    for one, other in zip(by_rows, by_moments, strict=True):
        assert other.rows is None
        assert one.n_rows == other.n_rows
        np.testing.assert_allclose(one.x_mean, other.x_mean)
        np.testing.assert_allclose(one.cross, other.cross, atol=1e-9)
    assert all(half.rows is not None for half in drawn(problem, groups=groups, with_rows=True))
