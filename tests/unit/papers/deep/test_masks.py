"""Masks: their size, their distribution, and what is made of a network of masks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from exactk.papers.deep.firdl import MaskNet, best_mask, random_masks, varied_masks
from exactk.papers.deep.training import tensor

pytestmark = pytest.mark.deep


def some_net(seed: int, m: int = 9, hidden: int = 6) -> MaskNet:
    rng = np.random.default_rng(seed)
    return MaskNet(
        rng.standard_normal((m, hidden)), rng.standard_normal(hidden), rng.standard_normal(hidden)
    )


def test_every_set_is_as_likely() -> None:
    masks = np.sort(random_masks(np.random.default_rng(0), 20_000, 5, 2), axis=1)
    sets, counts = np.unique(masks, axis=0, return_counts=True)
    assert [tuple(s) for s in sets.tolist()] == list(combinations(range(5), 2))
    # Five standard errors of a tenth.
    assert np.abs(counts / 20_000 - 0.1).max() < 5 * np.sqrt(0.09 / 20_000)


def test_equal_importances_go_by_the_order_of_the_columns() -> None:
    # So far out that the slope of tanh is zero, and all columns are equal.
    net = MaskNet(np.full((40, 2), 50.0), np.zeros(2), np.array([-1.0, -1.0]))
    assert best_mask(net, 5, 3).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("k", "swaps"), [(1, 2), (3, 2), (7, 2), (3, 9), (4, 1)])
def test_varied_masks_have_k_columns_and_differ_by_the_swaps(k: int, swaps: int) -> None:
    mask = np.arange(8)[::-1][:k]
    masks = varied_masks(np.random.default_rng(1), mask, 50, 8, swaps)
    for row in masks.tolist():
        assert len(set(row)) == k
        assert len(set(row) - set(mask.tolist())) == min(swaps, k, 8 - k)


def test_the_gradient_of_the_network_is_that_of_torch() -> None:
    import torch

    net = some_net(0)
    mask = np.random.default_rng(1).random(9)
    variable = tensor(mask).requires_grad_(True)
    value = torch.tanh(variable @ tensor(net.V) + tensor(net.b)) @ tensor(net.a)
    value.backward()
    assert float(net.values(mask[None])[0]) == pytest.approx(float(value.detach()))
    assert variable.grad is not None
    np.testing.assert_allclose(net.gradient(mask), variable.grad.numpy(), rtol=1e-10)


def mask_matrix(masks: np.ndarray, m: int) -> np.ndarray:
    """The sets as rows of zeros and ones."""
    matrix = np.zeros((len(masks), m))
    np.put_along_axis(matrix, masks, 1.0, axis=1)
    return matrix


def test_swaps_only_improve_the_mask() -> None:
    better = 0
    for seed in range(40):
        net = some_net(seed)

        def value(chosen: object, net: MaskNet = net) -> float:
            return float(net.values(mask_matrix(np.array([chosen]), 9))[0])

        values = [value(best_mask(net, 4, swaps)) for swaps in range(6)]
        assert (np.diff(values) <= 1e-12).all()
        better += values[-1] < values[0] - 1e-9
        chosen = best_mask(net, 4, 9)
        assert len(set(chosen.tolist())) == 4
        gradient = net.gradient(mask_matrix(chosen[None], 9)[0])
        assert (np.diff(gradient[chosen]) >= 0).all(), "the most important first"
    assert better > 10, "else the swaps are not tested"


def test_the_mask_is_near_the_best_of_all() -> None:
    places = []
    for seed in range(40):
        net = some_net(seed)
        everything = np.array(list(combinations(range(9), 3)))
        values = np.sort(net.values(mask_matrix(everything, 9)))
        found = net.values(mask_matrix(best_mask(net, 3, 12)[None], 9))[0]
        places.append(int(np.searchsorted(values, found - 1e-9)))
    # A mask at random stands at 42 of 84 in the mean.
    assert np.mean(places) < 8
