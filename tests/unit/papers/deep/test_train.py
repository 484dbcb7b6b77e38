"""Adam against PyTorch's, losses against scikit-learn's, slopes and the table against rules."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_squared_error

from exactk import Problem
from exactk.papers.deep import training
from exactk.papers.deep.training import (
    EPSILON,
    Adam,
    DeepTable,
    Target,
    deep_table,
    row_batches,
    start_bias,
    tanh_,
    tensor,
)
from tests.oracles.brute import make_classes, make_numbers

with suppress(ImportError):  # the marker skips these tests without PyTorch
    import torch

pytestmark = pytest.mark.deep


def target(Y: Any, weights: Any, kind: Any) -> Target:
    """Of a table of one column that says nothing."""
    table = DeepTable(np.zeros((len(Y), 1)), np.asarray(Y, float), weights, np.arange(1), kind)
    return Target.of(table)


def outputs(output: Any) -> Any:
    """As `Target` reads them: outputs first."""
    return tensor(output.T)[None]


def test_the_steps_are_those_of_adam() -> None:
    rng = np.random.default_rng(0)
    start, goal = rng.standard_normal((2, 3, 4))
    sizes = rng.uniform(0.1, 10, (3, 4))
    ours = Adam([start], [0.05])
    theirs = tensor(start).requires_grad_(True)
    optimiser = torch.optim.Adam([theirs], lr=0.05, eps=EPSILON)
    for _ in range(30):
        ours.slopes[0].copy_(2.0 * tensor(sizes) * (ours.parts[0] - tensor(goal)))
        ours.step()
        optimiser.zero_grad()
        (tensor(sizes) * (theirs - tensor(goal)) ** 2).sum().backward()
        optimiser.step()
    np.testing.assert_allclose(ours.arrays()[0], theirs.detach().numpy(), rtol=1e-10)


def test_blocks_of_weights_are_weights_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape) for shape in ((5, 3), (4,), (2, 2))]
    found = []
    for block in (training.BLOCK, 4, 1):
        monkeypatch.setattr(training, "BLOCK", block)
        adam = Adam(arrays, [0.1, 0.1, 0.02])
        for _ in range(5):
            for part, slope in zip(adam.parts, adam.slopes, strict=True):
                slope.copy_(torch.sin(3.0 * part))
            adam.step()
        found.append(np.concatenate([array.ravel() for array in adam.arrays()]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-13)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-13)


def test_each_array_has_its_rate() -> None:
    adam = Adam([np.zeros(2), np.zeros((1, 1)), np.zeros(3)], [0.1, 0.001, 0.1])
    for slope in adam.slopes:
        slope.fill_(7.0)
    adam.step()
    # The first step of Adam is the rate, whatever the gradient.
    np.testing.assert_allclose(adam.arrays()[0], [-0.1, -0.1], rtol=1e-5)
    np.testing.assert_allclose(adam.arrays()[1], [[-0.001]], rtol=1e-5)
    np.testing.assert_allclose(adam.arrays()[2], [-0.1, -0.1, -0.1], rtol=1e-5)


def test_tanh_in_place_is_tanh() -> None:
    x = np.linspace(-40.0, 40.0, 4001)
    np.testing.assert_allclose(tanh_(tensor(x)).numpy(), np.tanh(x), rtol=0, atol=1e-15)


def test_the_losses_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    output, w = rng.standard_normal((20, 3)), rng.random(20)
    w /= w.sum()
    codes = rng.integers(0, 3, 20)
    chances = np.exp(output) / np.exp(output).sum(axis=1, keepdims=True)
    loss, _ = target(np.eye(3)[codes], w, "classes").losses(outputs(output))
    assert float(loss) == pytest.approx(log_loss(codes, chances, sample_weight=w))
    Y = rng.integers(0, 2, (20, 3))
    chances = 1 / (1 + np.exp(-output))
    loss, _ = target(Y, w, "labels").losses(outputs(output))
    each = [log_loss(Y[:, j], chances[:, j], sample_weight=w) for j in range(3)]
    assert float(loss) == pytest.approx(np.mean(each))
    loss, _ = target(Y, w, "numbers").losses(outputs(output))
    assert float(loss) == pytest.approx(mean_squared_error(Y, output, sample_weight=w))


@pytest.mark.parametrize("kind", ["classes", "labels", "numbers"])
def test_the_derivatives_are_those_of_differences(kind: Any) -> None:
    rng = np.random.default_rng(3)
    w = rng.random(6)
    these = target(np.eye(3)[rng.integers(0, 3, 6)], w / w.sum(), kind)
    output = rng.standard_normal((2, 3, 6))
    slopes = these.losses(tensor(output))[1].numpy().copy()
    for at in np.ndindex(2, 3, 6):
        step = np.zeros((2, 3, 6))
        step[at] = 1e-6
        up, down = (float(these.losses(tensor(output + s * step))[0][at[0]]) for s in (1, -1))
        assert slopes[at] == pytest.approx((up - down) / 2e-6, abs=1e-8)


@pytest.mark.parametrize("kind", ["classes", "labels", "numbers"])
def test_some_rows_and_the_others_are_all(kind: Any) -> None:
    rng = np.random.default_rng(4)
    w = rng.random(9)
    whole = target(np.eye(3)[rng.integers(0, 3, 9)], w / w.sum(), kind)
    output = rng.standard_normal((1, 3, 9))
    some, others = np.array([4, 0, 7]), np.array([1, 2, 3, 5, 6, 8])
    parts = [float(whole.rows(r).losses(tensor(output[:, :, r]))[0]) for r in (some, others)]
    assert sum(parts) == pytest.approx(float(whole.losses(tensor(output))[0]))
    assert whole.rows(some).weight == pytest.approx((w / w.sum())[some].sum())


@pytest.mark.parametrize("kind", ["classes", "labels", "numbers"])
def test_the_start_is_the_best_constant(kind: Any) -> None:
    rng = np.random.default_rng(2)
    Y = np.eye(3)[rng.integers(0, 3, 30)]
    w = rng.random(30)
    w /= w.sum()
    bias = start_bias(Y, w, kind)
    _, slopes = target(Y, w, kind).losses(outputs(np.tile(bias, (30, 1))))
    np.testing.assert_allclose(slopes.sum(2).numpy(), 0.0, atol=1e-12)


def test_columns_come_in_an_order_and_with_a_sign_of_their_own() -> None:
    X, y = make_classes(50, 9, 3, seed=1)
    rng = np.random.default_rng(0)
    move, signs = rng.permutation(9), rng.choice([-1.0, 1.0], 9)
    for reconstruct in (False, True):
        plain = deep_table(Problem.from_arrays(X, y), reconstruct=reconstruct)
        moved = deep_table(Problem.from_arrays((X * signs)[:, move], y), reconstruct=reconstruct)
        np.testing.assert_allclose(moved.X, plain.X, atol=1e-12)
        assert move[moved.columns].tolist() == plain.columns.tolist()
        assert plain.weights.sum() == pytest.approx(1.0)


def test_for_a_reconstruction_y_says_nothing() -> None:
    X, y = make_classes(50, 9, 3, seed=1)
    one = deep_table(Problem.from_arrays(X, y), reconstruct=True)
    other = deep_table(Problem.from_arrays(X, X[:, 4] + y), reconstruct=True)
    np.testing.assert_array_equal(one.columns, other.columns)
    np.testing.assert_array_equal(one.Y, one.X)


def test_the_kinds_of_target() -> None:
    X, y = make_classes(50, 5, 3, seed=1)
    assert deep_table(Problem.from_arrays(X, y)).kind == "classes"
    labels = np.eye(3, dtype=int)[y] | np.eye(3, dtype=int)[(y + 1) % 3]
    assert deep_table(Problem.from_arrays(X, labels)).kind == "labels"
    X, Y = make_numbers(40, 5, 2, seed=1)
    table = deep_table(Problem.from_arrays(X, 1e9 * Y + 7))
    assert table.kind == "numbers"
    assert np.mean(table.Y**2) == pytest.approx(1.0)


def test_batches_hold_every_row_once() -> None:
    rng = np.random.default_rng(0)
    batches = [rows for rows in row_batches(10, 4, rng) if not isinstance(rows, slice)]
    assert [len(rows) for rows in batches] == [4, 4, 2]
    assert sorted(np.concatenate(batches).tolist()) == list(range(10))
    again = [rows for rows in row_batches(10, 4, rng) if not isinstance(rows, slice)]
    assert np.concatenate(again).tolist() != np.concatenate(batches).tolist()
