"""ILFS: tokens, EM and paths by their definition; likelihood; planted columns."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from exactk import Problem, solve
from exactk.papers.filters.ilfs import relevance
from tests.oracles.brute import make_classes


def tokens(X: Any, y: Any, T: int) -> Any:
    """How often each token occurs in each column, value by value."""
    labels = np.unique(y)
    counts = np.zeros((T, X.shape[1]))
    for f, column in enumerate(X.T):
        means = {c: column[y == c].mean() for c in labels}
        for value, own in zip(column, y, strict=True):
            delta = (value - means[own]) ** 2
            other = np.mean([(value - means[c]) ** 2 for c in labels if c != own])
            counts[min(int(T * delta / (delta + other)), T - 1), f] += 1
    return counts


def em(counts: Any, steps: int, learn: bool) -> Any:
    """P(relevant | column), with plain loops over states, tokens and columns."""
    T, d = counts.shape
    p_token = [np.linspace(5000, 1, T), np.linspace(1, 5000, T)]
    p_token = [p / p.sum() for p in p_token]
    p_state = np.full((2, d), 0.5)
    for _ in range(steps):
        posterior = np.zeros((2, T, d))
        for f in range(d):
            for t in range(T):
                joint = [p_state[z, f] * p_token[z][t] for z in range(2)]
                posterior[:, t, f] = np.array(joint) / sum(joint)
        for z in range(2):
            for f in range(d):
                p_state[z, f] = (counts[:, f] * posterior[z, :, f]).sum() / counts[:, f].sum()
            if learn:
                mass = (counts * posterior[z]).sum(axis=1)
                p_token[z] = mass / mass.sum()
    return p_state[0]


def paths(p: Any) -> Any:
    """Row sums of all paths in the graph, by a dense inverse."""
    A = np.outer(p, p)
    r = 0.9 / np.abs(np.linalg.eigvalsh(A)).max()
    return (np.linalg.inv(np.eye(len(p)) - r * A) - np.eye(len(p))).sum(axis=1)


# Thirty steps are all that is asked for.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("topics", ["learned", "fixed"])
@pytest.mark.parametrize(("c", "T"), [(2, 6), (2, 3), (4, 6)])
def test_scores_as_defined(c: int, T: int, topics: str) -> None:
    X, y = make_classes(60, 9, c, seed=c)
    wanted = paths(em(tokens(X, y, T), 30, topics == "learned"))
    problem = Problem.from_arrays(X, y)
    result = solve(problem, 9, "ilfs", n_tokens=T, topics=topics, max_iter=30, tol=0)
    np.testing.assert_allclose(result.scores, wanted, rtol=1e-6)
    assert result.order.tolist() == np.argsort(-wanted).tolist()


@pytest.mark.parametrize("learn", [True, False])
def test_em_never_lowers_the_likelihood(learn: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        counts = rng.dirichlet(np.full(6, 0.5), 30).T
        values = [likelihood for _, likelihood in islice(relevance(counts, learn), 300)]
        assert (np.diff(values) >= -1e-13).all()
        assert values[-1] > values[0]


def test_fixed_topics_end_at_the_maximum_of_a_concave_likelihood() -> None:
    counts = np.random.default_rng(1).dirichlet(np.full(6, 2.0), 8).T
    p = list(islice((p for p, _ in relevance(counts, False)), 5000))[-1]
    first = np.linspace(5000, 1, 6)
    first /= first.sum()
    grid = np.linspace(0, 1, 20001)[1:-1]
    for f in range(8):
        mixed = np.outer(grid, first) + np.outer(1 - grid, first[::-1])
        assert abs(grid[(counts[:, f] * np.log(mixed)).sum(axis=1).argmax()] - p[f]) < 1e-3


@pytest.mark.parametrize("c", [2, 5])
def test_planted_columns_are_found(c: int) -> None:
    # By chance 20 of 500 columns would hold fewer than one planted one.
    found = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = np.arange(400) % c
        X = rng.standard_normal((400, 500))
        X[:, :20] += rng.choice([-0.5, 0.5], (c, 20))[y] if c > 2 else 0.5 * y[:, None]
        found += (solve(Problem.from_arrays(X, y), 20, "ilfs").support < 20).sum()
    assert found >= 45


# With tol=0 rounding decides when the likelihood no longer rises.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equal_columns_come_in_the_order_of_their_shares() -> None:
    # Columns 0 to 3 are so clear that their relevance is 1 to the last digit.
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.standard_normal((80, 8))
    X[:, :4] = y[:, None] + rng.standard_normal((80, 4)) * np.array([0.01, 0.1, 0.15, 0.2])
    plain = solve(Problem.from_arrays(X, y), 8, "ilfs", topics="fixed", tol=0)
    assert plain.order[:4].tolist() == [0, 1, 2, 3]
    for seed in range(5):
        move = np.random.default_rng(seed).permutation(8)
        moved = solve(Problem.from_arrays(X[:, move], y), 8, "ilfs", topics="fixed", tol=0)
        assert move[moved.order].tolist() == plain.order.tolist()
