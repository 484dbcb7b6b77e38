"""CAE: planted columns, its schedule and its end, its modes, seeds, and what it leaves alone."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest

import exactk.papers.deep.cae as cae
import exactk.papers.deep.training as need
from exactk import Problem, Result, Status, TopKSelector, solve
from exactk.papers.deep.cae import CAE
from exactk.papers.deep.training import deep_table
from exactk.utils.monitor import Monitor
from tests.oracles.brute import make_classes
from tests.support import says

pytestmark = pytest.mark.deep


def run(problem: Problem, k: int = 3, **options: Any) -> Result:
    return solve(problem, k, "cae", **options)


def planted(seed: int, kind: str = "classes", n: int = 200, d: int = 20) -> tuple[Any, Any]:
    """Columns 3, 8 and 12 of twenty make y."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    value = X[:, 3] + X[:, 8] - X[:, 12] + 0.3 * rng.standard_normal(n)
    return X, value if kind == "numbers" else (value > 0).astype(int)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.from_arrays(*make_classes(50, 14, 3, seed=6))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_planted_columns_are_found(kind: str) -> None:
    # All three by chance: 1 in 1140, for each of eight tables.
    assert comb(20, 3) == 1140
    for seed in range(8):
        result = run(Problem.from_arrays(*planted(seed, kind)))
        assert result.support.tolist() == [3, 8, 12]
        assert result.status == Status.CONVERGED


def sources(seed: int) -> Any:
    """Three hidden numbers; each stands in one clean column and in four noisy ones."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((200, 3))
    noisy = np.repeat(hidden, 4, axis=1) + 1.0 * rng.standard_normal((200, 12))
    return np.hstack([hidden, noisy])


def test_a_reconstruction_takes_the_columns_that_tell_most_of_the_others() -> None:
    hits = 0
    for seed in range(6):
        X = sources(seed)
        y = np.random.default_rng(seed).integers(0, 2, 200)
        hits += len({0, 1, 2} & set(run(Problem.from_arrays(X, y), mode="reconstruction").support))
    # 3·3/15 = 0.6 of three by chance in each table, 3.6 of 18 in all.
    assert hits >= 14


def test_a_reconstruction_does_not_look_at_y() -> None:
    X = sources(0)
    rng = np.random.default_rng(1)
    one = run(Problem.from_arrays(X, rng.integers(0, 2, 200)), mode="reconstruction")
    other = run(Problem.from_arrays(X, X[:, 9] + rng.random(200)), mode="reconstruction")
    assert one.trace == other.trace
    assert one.support.tolist() == other.support.tolist()


def test_the_first_loss_is_that_of_the_class_shares() -> None:
    X, y = make_classes(50, 8, 3, seed=0)
    shares = np.bincount(y) / 50
    entropy = -(shares * np.log(shares)).sum()
    assert run(Problem.from_arrays(X, y)).trace[0] == pytest.approx(entropy, rel=1e-9)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("T", [5.0, 0.3])
def test_the_gradient_is_that_of_torch(kind: str, T: float) -> None:
    import torch

    table = deep_table(Problem.from_arrays(*planted(0, kind, n=30, d=15)))
    network = cae._Network(CAE(hidden=5), table, 3, np.random.default_rng(0))
    for _ in range(3):
        network.learn(slice(None), T, np.random.default_rng(1))
    rows = np.arange(0, 30, 2)
    X, Y, w = (torch.from_numpy(a[rows]) for a in (table.X, table.Y, table.weights))
    parts = [part.clone().requires_grad_(True) for part in network.adam.parts]
    logits, W1, b1, W2, b2 = parts
    noise = torch.from_numpy(np.random.default_rng(2).gumbel(size=(3, 15)))
    M = torch.softmax((logits + noise) / T, 1)
    output = torch.tanh(X @ M.T @ W1 + b1) @ W2 + b2
    if kind == "classes":
        loss = -(torch.log_softmax(output, -1) * Y).sum(-1) @ w
    else:
        loss = ((output - Y) ** 2).mean(-1) @ w
    wanted = torch.autograd.grad(loss / w.sum(), parts)
    network.adam.step = lambda: None  # type: ignore[method-assign]
    assert network.learn(rows, T, np.random.default_rng(2)) == pytest.approx(float(loss.detach()))
    for slope, gradient in zip(network.adam.slopes, wanted, strict=True):
        np.testing.assert_allclose(slope.numpy(), gradient.numpy(), rtol=1e-9, atol=1e-14)


def test_the_loss_falls() -> None:
    trace = run(Problem.from_arrays(*planted(0))).trace
    assert np.mean(trace[-10:]) < 0.7 * trace[0]


def test_it_ends_after_the_annealing_or_when_the_nodes_have_decided(problem: Problem) -> None:
    calm = run(problem, annealing=50, patience=7, selector_rate=1e-9)
    # Nothing moves: the first epoch at the end temperature is the 51st.
    assert calm.n_iter == 51
    assert calm.status == Status.CONVERGED
    quick = run(problem, annealing=900, selector_rate=2.0)
    assert quick.n_iter < 900
    assert quick.status == Status.CONVERGED


def test_the_seed_decides_and_none_is_one(problem: Problem) -> None:
    traces = [run(problem, random_state=seed).trace for seed in (None, None, 1, 1, 2)]
    assert traces[0] == traces[1]
    assert traces[2] == traces[3]
    assert len(set(traces)) == 3


def test_batches_take_more_steps_and_find_the_same() -> None:
    table = Problem.from_arrays(*planted(1))
    result = run(table, batch_size=50)
    assert result.support.tolist() == [3, 8, 12]
    assert result.trace != run(table).trace
    # As many rows as there are, or more, are all of them.
    assert run(table, batch_size=200).trace == run(table).trace


def test_several_labels_a_row() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    Y = (X[:, [2, 7]] > 0).astype(int)
    assert run(Problem.from_arrays(X, Y), 2).support.tolist() == [2, 7]


def test_it_fails_with_k_columns_where_the_rate_overflows(problem: Problem) -> None:
    with pytest.warns(UserWarning, match="iterates diverged"):
        result = run(problem, learning_rate=1e300, selector_rate=1e300)
    assert result.status == Status.FAILED
    assert len(set(result.support.tolist())) == 3


def test_without_torch_it_says_how_to_get_it(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(need, "find_spec", lambda name: None)
    words = ("cae", "torch", 'pip install "exactk[deep]"', "'exchange'")
    with says(*words):
        solve(problem, 3, "cae")
    with says(*words):
        TopKSelector(k=3, method="cae").fit(*make_classes(50, 14, 3, seed=6))


def test_nothing_of_torch_or_numpy_is_changed(problem: Problem) -> None:
    import torch

    before = torch.get_rng_state()
    settings = (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled())
    legacy = np.random.get_state()[1].copy()  # noqa: NPY002
    CAE(batch_size=20).run(problem, 3, Monitor())
    assert torch.equal(torch.get_rng_state(), before)
    now = (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled())
    assert now == settings
    assert (np.random.get_state()[1] == legacy).all()  # noqa: NPY002
