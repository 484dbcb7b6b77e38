"""FIRDL: planted columns alone and in pairs, its two phases, its blocks, and its end."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest

import exactk.papers.deep.firdl as firdl
import exactk.papers.deep.training as need
from exactk import Problem, Result, Status, TopKSelector, solve, solve_path
from exactk.papers.deep.firdl import FIRDL
from exactk.papers.deep.training import deep_table
from exactk.utils.monitor import Monitor
from tests.oracles.brute import make_classes
from tests.support import says

pytestmark = pytest.mark.deep


def run(problem: Problem, k: int = 3, **options: Any) -> Result:
    return solve(problem, k, "firdl", **options)


def planted(seed: int, kind: str = "classes", n: int = 200, d: int = 20) -> tuple[Any, Any]:
    """Columns 3, 8 and 12 of twenty make y."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    value = X[:, 3] + X[:, 8] - X[:, 12] + 0.3 * rng.standard_normal(n)
    return X, value if kind == "numbers" else (value > 0).astype(int)


def pair(seed: int, d: int = 8) -> tuple[Any, Any]:
    """y is the sign of a product: no column, and no sum of columns, says anything about it."""
    X = np.random.default_rng(seed).standard_normal((200, d))
    return X, (X[:, 2] * X[:, 5] > 0).astype(int)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.from_arrays(*make_classes(50, 14, 3, seed=6))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_planted_columns_are_found(kind: str) -> None:
    # All three by chance: 1 in 1140, for each of six tables.
    assert comb(20, 3) == 1140
    for seed in range(6):
        result = run(Problem.from_arrays(*planted(seed, kind)))
        assert result.support.tolist() == [3, 8, 12]
        assert result.status == Status.CONVERGED


def test_a_pair_that_works_only_together_is_found() -> None:
    # By chance 1 in 28, for each of six tables.
    assert comb(8, 2) == 28
    for seed in range(6):
        assert run(Problem.from_arrays(*pair(seed)), 2).support.tolist() == [2, 5]


def test_which_squared_loss_cannot_see() -> None:
    found = [solve(Problem.from_arrays(*pair(seed)), 2).support.tolist() for seed in range(6)]
    assert [2, 5] not in found


def test_the_order_is_that_of_importance() -> None:
    rng = np.random.default_rng(0)
    for _ in range(4):
        X = rng.standard_normal((300, 10))
        y = 3.0 * X[:, 6] + X[:, 1] + 0.1 * rng.standard_normal(300)
        assert run(Problem.from_arrays(X, y), 2).order.tolist() == [6, 1]


def test_the_first_loss_is_that_of_the_class_shares() -> None:
    X, y = make_classes(50, 8, 3, seed=0)
    shares = np.bincount(y) / 50
    entropy = -(shares * np.log(shares)).sum()
    assert run(Problem.from_arrays(X, y)).trace[0] == pytest.approx(entropy, rel=1e-9)


def test_what_the_second_phase_looks_at_is_better_than_masks_at_random() -> None:
    trace = run(Problem.from_arrays(*planted(0)), warm_up=60).trace
    assert np.mean(trace[60:70]) < 0.8 * np.mean(trace[50:60])


def test_it_ends_when_the_mask_stays_and_not_in_the_first_phase() -> None:
    table = Problem.from_arrays(*planted(2))
    result = run(table, warm_up=70, patience=9)
    assert result.status == Status.CONVERGED
    assert result.n_iter >= 70 + 9
    with pytest.warns(UserWarning, match="raise max_iter"):
        short = run(table, warm_up=70, max_iter=70)
    assert short.status == Status.MAX_ITER
    assert short.trace == result.trace[:70]


def test_rows_in_blocks_are_rows_at_once(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(problem)
    # Seven rows at a time: 16 masks of 3 columns.
    monkeypatch.setattr(firdl, "BLOCK_VALUES", 7 * 16 * 3)
    blocks = run(problem)
    assert blocks.support.tolist() == whole.support.tolist()
    np.testing.assert_allclose(blocks.trace[:40], whole.trace[:40], rtol=1e-8)


def test_the_loss_of_a_mask_is_that_of_its_definition(problem: Problem) -> None:
    table = deep_table(problem)
    rng = np.random.default_rng(0)
    operator = firdl._Operator(table, 3, 5, 0.05, rng)
    masks = np.array([[0, 4, 2], [7, 1, 13], [3, 2, 1], [9, 8, 0]])
    for _ in range(5):
        operator.learn(masks, slice(None))
    A, B, b1, W, b2 = operator.adam.arrays()
    expected = []
    for mask in masks:
        m = np.isin(np.arange(14), mask).astype(float)
        output = np.tanh((table.X * m) @ A + m @ B + b1) @ W + b2
        chances = np.exp(output) / np.exp(output).sum(axis=1, keepdims=True)
        expected.append(-(table.weights @ np.log((chances * table.Y).sum(axis=1))))
    np.testing.assert_allclose(operator.learn(masks, slice(None)), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_gradients_are_those_of_torch(kind: str) -> None:
    import torch

    table = deep_table(Problem.from_arrays(*planted(0, kind, n=30, d=15)))
    rng = np.random.default_rng(0)
    operator, selector = firdl._Operator(table, 3, 5, 0.05, rng), firdl._Selector(15, 5, 0.05, rng)
    masks = np.array([[0, 4, 2], [7, 1, 8], [3, 2, 1], [6, 8, 0]])
    for _ in range(3):
        selector.learn(masks, operator.learn(masks, slice(None)))
    rows, which = np.arange(0, 30, 2), torch.from_numpy(masks)
    X, Y, w = (torch.from_numpy(a[rows]) for a in (table.X, table.Y, table.weights))
    parts = [part.clone().requires_grad_(True) for part in operator.adam.parts]
    A, B, b1, W, b2 = parts
    m = torch.zeros(4, 15, dtype=torch.float64).scatter_(1, which, 1.0)
    output = torch.tanh((X * m[:, None]) @ A + (m @ B + b1)[:, None]) @ W + b2
    if kind == "classes":
        losses = -(torch.log_softmax(output, -1) * Y).sum(-1) @ w
    else:
        losses = ((output - Y) ** 2).mean(-1) @ w
    wanted = torch.autograd.grad(losses.mean() / w.sum(), parts)
    operator.adam.step = lambda: None  # type: ignore[method-assign]
    found = operator.learn(masks, rows)
    np.testing.assert_allclose(found, losses.detach().numpy(), rtol=1e-12)
    for slope, gradient in zip(operator.adam.slopes, wanted, strict=True):
        np.testing.assert_allclose(slope.numpy(), gradient.numpy(), rtol=1e-9, atol=1e-14)

    parts = [part.clone().requires_grad_(True) for part in selector.adam.parts]
    V, b, a = parts
    goals = rng.standard_normal(4)
    remembered = [torch.from_numpy(losses) for _, losses in selector.memory]
    error = torch.tanh(m @ V + b) @ a - torch.stack([*remembered, torch.from_numpy(goals)])
    wanted = torch.autograd.grad((error**2).mean(), parts)
    selector.adam.step = lambda: None  # type: ignore[method-assign]
    selector.learn(masks, goals)
    for slope, gradient in zip(selector.adam.slopes, wanted, strict=True):
        np.testing.assert_allclose(slope.numpy(), gradient.numpy(), rtol=1e-9, atol=1e-14)


def test_the_seed_decides_and_none_is_one(problem: Problem) -> None:
    traces = [run(problem, random_state=seed).trace for seed in (None, None, 1, 1, 2)]
    assert traces[0] == traces[1]
    assert traces[2] == traces[3]
    assert len(set(traces)) == 3


def test_batches_find_the_same() -> None:
    table = Problem.from_arrays(*planted(1))
    result = run(table, batch_size=50)
    assert result.support.tolist() == [3, 8, 12]
    assert run(table, batch_size=200).trace == run(table).trace


def test_several_labels_a_row() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    Y = (X[:, [2, 7]] > 0).astype(int)
    assert run(Problem.from_arrays(X, Y), 2).support.tolist() == [2, 7]


def test_a_path_is_what_each_size_gives(problem: Problem) -> None:
    path = solve_path(problem, 3, "firdl")
    for result in path:
        assert result.order.tolist() == run(problem, result.k).order.tolist()


def test_it_fails_with_k_columns_where_the_rate_overflows(problem: Problem) -> None:
    with pytest.warns(UserWarning, match="iterates diverged"):
        result = run(problem, learning_rate=1e300)
    assert result.status == Status.FAILED
    assert len(set(result.support.tolist())) == 3


@pytest.mark.parametrize("n_masks", [4, 5, 17])
@pytest.mark.parametrize("k", [1, 13])
def test_few_masks_and_extreme_sizes(problem: Problem, n_masks: int, k: int) -> None:
    result = run(problem, k, n_masks=n_masks, perturbation=5, warm_up=5, patience=5)
    assert len(set(result.support.tolist())) == k


def test_without_torch_it_says_how_to_get_it(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(need, "find_spec", lambda name: None)
    words = ("firdl", "torch", 'pip install "exactk[deep]"', "'exchange'")
    with says(*words):
        solve(problem, 3, "firdl")
    with says(*words):
        TopKSelector(k=3, method="firdl").fit(*make_classes(50, 14, 3, seed=6))


def test_nothing_of_torch_or_numpy_is_changed(problem: Problem) -> None:
    import torch

    before = torch.get_rng_state()
    settings = (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled())
    legacy = np.random.get_state()[1].copy()  # noqa: NPY002
    FIRDL(batch_size=20).run(problem, 3, Monitor())
    assert torch.equal(torch.get_rng_state(), before)
    now = (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled())
    assert now == settings
    assert (np.random.get_state()[1] == legacy).all()  # noqa: NPY002
