"""The concrete selector layer against its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk.deep.selector import concrete, distinct, gumbel, temperature
from exactk.deep.train import tensor


def by_definition(logits: Any, noise: Any, T: float) -> Any:
    """exp((ln α_j + g_j)/T) / Σ_l exp((ln α_l + g_l)/T), row by row."""
    powers = np.exp((logits + noise) / T)
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("T", [10.0, 1.0, 0.1])
def test_a_sample_is_that_of_the_definition(T: float) -> None:
    pytest.importorskip("torch", reason="torch is absent (the concrete layer)")
    rng = np.random.default_rng(0)
    logits, noise = rng.standard_normal((2, 3, 7))
    found = concrete(tensor(logits), tensor(noise), T).numpy()
    np.testing.assert_allclose(found, by_definition(logits, noise, T), rtol=1e-12)


def test_a_cold_sample_is_hard_and_a_hot_one_even() -> None:
    pytest.importorskip("torch", reason="torch is absent (the concrete layer)")
    rng = np.random.default_rng(1)
    logits, noise = rng.standard_normal((2, 4, 6))
    cold = concrete(tensor(logits), tensor(noise), 1e-3).numpy()
    np.testing.assert_allclose(cold, np.eye(6)[np.argmax(logits + noise, axis=1)], atol=1e-9)
    hot = concrete(tensor(logits), tensor(noise), 1e6).numpy()
    np.testing.assert_allclose(hot, 1 / 6, atol=1e-5)


def test_hard_samples_have_the_probabilities_of_the_logits() -> None:
    # The Gumbel-max theorem: argmax(ln α + g) is j with probability α_j / Σα.
    chances = np.array([0.5, 0.3, 0.15, 0.05])
    noise = gumbel(np.random.default_rng(2), 100_000, 4)
    counts = np.bincount(np.argmax(np.log(chances) + noise, axis=1), minlength=4) / 100_000
    # Five standard errors.
    assert (np.abs(counts - chances) < 5 * np.sqrt(chances * (1 - chances) / 100_000)).all()


def test_the_gradient_is_that_of_differences() -> None:
    torch = pytest.importorskip("torch", reason="torch is absent (the concrete layer)")
    rng = np.random.default_rng(3)
    logits, noise, weights = rng.standard_normal((3, 2, 5))
    variable = tensor(logits).requires_grad_(True)
    (concrete(variable, tensor(noise), 0.7) * tensor(weights)).sum().backward()
    assert variable.grad is not None
    for at in np.ndindex(2, 5):
        step = np.zeros((2, 5))
        step[at] = 1e-6
        up, down = (by_definition(logits + s * step, noise, 0.7) for s in (1, -1))
        slope = ((up - down) * weights).sum() / 2e-6
        assert float(variable.grad[at]) == pytest.approx(slope, abs=1e-8)
    assert torch.is_grad_enabled()


def test_the_temperature_falls_by_the_same_factor_each_epoch() -> None:
    course = np.array([temperature(epoch, 50, 10.0, 0.1) for epoch in range(80)])
    assert course[0] == 10.0
    np.testing.assert_allclose(course[1:51] / course[:50], (0.1 / 10.0) ** (1 / 50))
    np.testing.assert_allclose(course[50:], 0.1)


def greedily(chances: Any) -> list[int]:
    """The assignment by its definition: the largest entry, then without its row and column."""
    left, chosen = chances.copy(), []
    for _ in range(len(chances)):
        node, column = np.unravel_index(np.argmax(left), left.shape)
        chosen.append(int(column))
        left[node], left[:, column] = -np.inf, -np.inf
    return chosen


@pytest.mark.parametrize("seed", range(20))
def test_nodes_that_agree_get_columns_of_their_own(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(1, 7)), int(rng.integers(7, 12))
    # All nodes want the same few columns.
    chances = rng.random((k, m)) + 5.0 * (np.arange(m) < 2)
    found = distinct(chances)
    assert found.tolist() == greedily(chances)
    assert len(set(found.tolist())) == k


def test_as_many_nodes_as_columns_take_all() -> None:
    same = np.tile([0.7, 0.2, 0.1], (3, 1))
    assert distinct(same).tolist() == [0, 1, 2]
