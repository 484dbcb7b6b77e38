"""The concrete selector layer against its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from exactk.papers.deep.cae import assign_unique, concrete, gumbel, temperature
from exactk.papers.deep.training import tensor

pytestmark = pytest.mark.deep


def by_definition(logits: Any, noise: Any, T: float) -> Any:
    """exp((ln α_j + g_j)/T) / Σ_l exp((ln α_l + g_l)/T), row by row."""
    powers = np.exp((logits + noise) / T)
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("T", [10.0, 1.0, 0.1])
def test_a_sample_is_that_of_the_definition(T: float) -> None:
    rng = np.random.default_rng(0)
    logits, noise = rng.standard_normal((2, 3, 7))
    found = concrete(tensor(logits), tensor(noise), T).numpy()
    np.testing.assert_allclose(found, by_definition(logits, noise, T), rtol=1e-12)


def test_a_cold_sample_is_hard_and_a_hot_one_even() -> None:
    rng = np.random.default_rng(1)
    logits, noise = rng.standard_normal((2, 4, 6))
    cold = concrete(tensor(logits), tensor(noise), 1e-3).numpy()
    np.testing.assert_allclose(cold, np.eye(6)[np.argmax(logits + noise, axis=1)], atol=1e-9)
    hot = concrete(tensor(logits), tensor(noise), 1e6).numpy()
    np.testing.assert_allclose(hot, 1 / 6, atol=1e-5)


def test_hard_samples_have_the_probabilities_of_the_logits() -> None:
    # The Gumbel-max theorem: argmax(ln α + g) is j with probability α_j / Σα.
    chances = np.array([0.5, 0.3, 0.15, 0.05])
    import torch

    noise = gumbel(np.random.default_rng(2), torch.empty(100_000, 4, dtype=torch.float64)).numpy()
    counts = np.bincount(np.argmax(np.log(chances) + noise, axis=1), minlength=4) / 100_000
    # Five standard errors.
    assert (np.abs(counts - chances) < 5 * np.sqrt(chances * (1 - chances) / 100_000)).all()


def test_the_noise_is_that_of_numpy() -> None:
    import torch

    noise = gumbel(np.random.default_rng(3), torch.empty(50, 40, dtype=torch.float64)).numpy()
    wanted = np.random.default_rng(3).gumbel(size=(50, 40))
    np.testing.assert_allclose(noise, wanted, rtol=1e-11, atol=1e-13)


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


@pytest.mark.parametrize("crowd", [0, 1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_nodes_that_agree_get_columns_of_their_own(seed: int, crowd: int) -> None:
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(1, 7)), int(rng.integers(7, 40))
    # All nodes want the same few columns.
    logits = rng.standard_normal((k, m)) + 5.0 * (np.arange(m) < crowd)
    found, largest = assign_unique(logits, softmax(logits, axis=1))
    assert found.tolist() == greedily(log_softmax(logits, axis=1))
    assert len(set(found.tolist())) == k
    np.testing.assert_allclose(largest, softmax(logits, axis=1).max(axis=1))


def test_columns_whose_probability_is_too_small_for_a_number_are_distinguished() -> None:
    logits = np.array([[5000.0, 0.0, 2.0, 1.0], [4000.0, 9.0, 7.0, 8.0], [6000.0, 3.0, 1.0, 2.0]])
    found, largest = assign_unique(logits, softmax(logits, axis=1))
    assert largest.tolist() == [1.0, 1.0, 1.0]
    # The first node of equals has its wish; the second is then 3991 away from its next column.
    assert found.tolist() == [0, 1, 3]


def test_as_many_nodes_as_columns_take_all() -> None:
    same = np.tile([0.7, 0.2, 0.1], (3, 1))
    assert assign_unique(np.log(same), same)[0].tolist() == [0, 1, 2]
