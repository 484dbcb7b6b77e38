"""City-block distances and pair sums: compiled and plain, against NumPy's definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk.papers.filters import distances
from exactk.papers.filters.base import Labels
from exactk.papers.filters.relieff import ReliefF


@pytest.fixture(params=["compiled", "plain"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "plain":
        monkeypatch.setattr(distances, "library", lambda: None)
    elif distances.library() is None:
        pytest.skip("the compiled kernels were not built")
    return str(request.param)


# Around the sizes of lanes, rows, strips and tasks in the C code.
SHAPES = [(1, 1, 1), (3, 5, 2), (4, 8, 256), (5, 9, 257), (17, 31, 700), (130, 260, 33)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threads", ["1", "3", "many"])
def test_distances(
    shape: tuple[int, int, int], threads: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    n, m, d = shape
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((n, d)), rng.standard_normal((m, d))
    for X in (A, np.asfortranarray(A), np.repeat(A, 2, axis=1)[:, ::2]):
        np.testing.assert_allclose(
            distances.city_block(X, B), np.abs(A[:, None] - B).sum(axis=2), rtol=1e-12
        )
        own = distances.city_block(X)
        np.testing.assert_allclose(own, np.abs(A[:, None] - A).sum(axis=2), rtol=1e-12)
        np.testing.assert_array_equal(own, own.T)
        assert not own.diagonal().any()


@pytest.mark.parametrize("d", [1, 31, 32, 33, 300])
def test_pair_sums(d: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "BLOCK_VALUES", 1000)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, d))
    first, second = rng.integers(0, 40, (2, 123)).astype(np.int32)
    weight = rng.standard_normal(123)
    wanted = weight @ np.abs(X[first] - X[second])
    for table in (X, np.asfortranarray(X)):
        found = distances.pair_sums(table, first, second, weight)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    nothing = distances.pair_sums(X, first[:0], second[:0], weight[:0])
    assert nothing.tolist() == [0.0] * d


@pytest.mark.skipif(distances.library() is None, reason="the compiled kernels were not built")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [1, 3, 50, 10**30])
def test_nearest_shares_are_those_of_the_plain_form(seed: int, most: int, monkeypatch) -> None:
    rng = np.random.default_rng(seed)
    n, c = int(rng.integers(5, 60)), int(rng.integers(2, 6))
    codes = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    # Half of the tables have rows at the same distance, and copies of rows.
    Z = rng.integers(0, 3, (n, 4)).astype(float) if seed % 2 else rng.standard_normal((n, 4))
    D = distances.city_block(Z)
    held = Labels(None, codes, np.ones(n), c)
    for rows in (np.arange(n), np.sort(rng.choice(n, n // 2, replace=False))):
        method = ReliefF(n_neighbors=most)
        compiled = method._pair_weights(D[rows], held, rows)
        with monkeypatch.context() as patch:
            patch.setattr(distances, "library", lambda: None)
            plain = method._pair_weights(D[rows], held, rows)
        np.testing.assert_allclose(compiled, plain, rtol=1e-12, atol=1e-15)


def test_a_library_that_cannot_be_loaded_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    broken = tmp_path / "_native.so"
    broken.write_bytes(b"not a library")
    monkeypatch.delenv("EXACTK_NATIVE", raising=False)
    monkeypatch.setattr(distances, "library_path", lambda: broken)
    assert distances.library.__wrapped__() is None


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACTK_NATIVE", "0")
    assert distances.library.__wrapped__() is None
