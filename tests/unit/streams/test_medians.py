"""Medians found in passes are those of all numbers sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactk.linalg import weighted_median
from exactk.streams import medians
from exactk.streams.coding import Coding
from exactk.streams.medians import norm_median, output_medians
from tests.arrays import ArrayStream

Array = np.ndarray[Any, Any]


def found(Y: Array, w: Array | None = None, n_parts: int = 3) -> tuple[Array, float, int]:
    """Medians of the columns, that of the distances from them, and how many passes it took."""
    Y = Y.reshape(len(Y), -1)
    stream = ArrayStream(np.zeros((len(Y), 1)), Y, w, n_parts=n_parts)
    coding = Coding(labels=False, n_outputs=Y.shape[1])
    v = np.ones(len(Y)) if w is None else w
    mean = v @ Y / v.sum()
    spread = np.sqrt(v @ (Y - mean) ** 2 / v.sum())
    middle = output_medians(stream, coding, mean, float(spread.max()))
    bound = np.sqrt(v @ ((Y - middle) ** 2).sum(axis=1) / v.sum())
    return middle, norm_median(stream, coding, middle, float(bound)), stream.passes


@pytest.mark.parametrize("n", [1, 2, 3, 30, 31, 1000])
@pytest.mark.parametrize("outputs", [1, 3])
def test_they_are_numpys(n: int, outputs: int) -> None:
    Y = np.random.default_rng(n).normal(size=(n, outputs)) + 5.0
    middle, size, _ = found(Y, n_parts=min(n, 3))
    np.testing.assert_allclose(middle, np.median(Y, axis=0), rtol=1e-15)
    wanted = np.median(np.linalg.norm(Y - np.median(Y, axis=0), axis=1))
    assert size == pytest.approx(wanted, rel=1e-14)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.sampled_from([-7.0, -1.0, 0.0, 0.25, 3.0, 1e9]), min_size=2, max_size=30),
    seed=st.integers(0, 99),
)
def test_ties_and_weights_as_for_repeated_rows(values: list[float], seed: int) -> None:
    w = np.random.default_rng(seed).integers(0, 4, len(values)).astype(float)
    w[0] = 1.0
    Y = np.array(values)
    again = np.repeat(Y, w.astype(int))
    middle, size, _ = found(Y, w, n_parts=2)
    assert middle[0] == np.median(again)
    assert size == pytest.approx(np.median(np.abs(again - np.median(again))), rel=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_fractions_as_weights_by_the_definition_for_arrays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, w = rng.standard_t(1, 501), rng.uniform(0.0, 2.0, 501)
    middle, size, _ = found(y, w)
    assert middle[0] == weighted_median(y, w)
    assert size == weighted_median(np.abs(y - middle[0]), w)


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "wild": lambda rng, n: rng.standard_t(1, n) ** 3,
    "far": lambda rng, n: 1e9 + rng.normal(size=n),
    "two heaps": lambda rng, n: np.where(np.arange(n) % 2, -1.0, 1.0) + 1e-6 * rng.normal(size=n),
    "one outlier": lambda rng, n: np.append(rng.normal(size=n - 1), 1e15),
    "whole": lambda rng, n: rng.integers(0, 50, n) * 1.0,
}


@pytest.mark.parametrize("shape", list(SHAPES))
def test_more_values_than_are_kept(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(medians, "FEW_VALUES", 64)
    monkeypatch.setattr(medians, "CELLS", 128)
    y = SHAPES[shape](np.random.default_rng(0), 20_000)
    middle, size, passes = found(y, n_parts=5)
    assert middle[0] == np.median(y)
    assert size == np.median(np.abs(y - np.median(y)))
    # One to look and one to keep, twice; more where outliers make the first look a coarse one.
    assert passes <= {"wild": 30, "far": 8, "two heaps": 12, "one outlier": 24}.get(shape, 8)


def test_usual_numbers_take_four_passes() -> None:
    y = np.random.default_rng(1).normal(size=200_000)
    middle, size, passes = found(y)
    assert passes == 4
    assert middle[0] == np.median(y)
    assert size == np.median(np.abs(y - np.median(y)))
