"""Agreement of sets against the formulas of the papers, in loops."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from exactk.papers.experiments.measures import jaccard, nogueira
from exactk.utils.set_similarity import mean_jaccard, nogueira_index, nogueira_interval, wilson


def random_member(seed: int, m: int = 12, d: int = 9, *, k: int | None = None):
    rng = np.random.default_rng(seed)
    member = np.zeros((m, d))
    for row in member:
        size = rng.integers(1, d) if k is None else k
        row[rng.permutation(d)[:size] if seed % 2 else rng.integers(0, d, size)] = 1.0
    return member


def by_the_paper(Z, z_level: float) -> tuple[float, float, float]:
    """Definition of the estimate and of its variance, term by term."""
    M, d = len(Z), len(Z[0])
    p = [sum(Z[i][f] for i in range(M)) / M for f in range(d)]
    k = [sum(Z[i]) for i in range(M)]
    k_bar = sum(k) / M
    chance = k_bar / d * (1 - k_bar / d)
    phi = 1 - sum(M / (M - 1) * p[f] * (1 - p[f]) for f in range(d)) / d / chance
    own = []
    for i in range(M):
        common = sum(Z[i][f] * p[f] for f in range(d)) / d
        rest = 2 * k_bar * k[i] / d**2 - k[i] / d - k_bar / d + 1
        own.append((common - k[i] * k_bar / d**2 + phi / 2 * rest) / chance)
    mean = sum(own) / M
    variance = 4 / M**2 * sum((one - mean) ** 2 for one in own)
    return phi, phi - z_level * sqrt(variance), phi + z_level * sqrt(variance)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_index_and_interval_by_the_paper(seed: int, level: float) -> None:
    member = random_member(seed)
    phi, low, high = by_the_paper(member.tolist(), stats.norm.ppf(0.5 + level / 2))
    assert nogueira_index(member) == pytest.approx(phi, abs=1e-13)
    assert nogueira_interval(member, level) == pytest.approx((low, high), abs=1e-13)


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_with_sets_of_one_size_it_is_kunchevas_index(seed: int) -> None:
    # As the paper proves: the mean over pairs of (common − k²/d) / (k − k²/d).
    d, k = 9, 4
    member = random_member(seed, d=d, k=k)
    pairs = [(a @ b - k**2 / d) / (k - k**2 / d) for a, b in combinations(member, 2)]
    assert nogueira_index(member) == pytest.approx(np.mean(pairs), abs=1e-13)


def test_random_sets_have_an_index_about_zero_within_its_interval() -> None:
    inside = 0
    for seed in range(1, 120, 2):
        member = random_member(seed, m=60, d=30, k=6)
        low, high = nogueira_interval(member)
        inside += low <= 0.0 <= high
    assert inside >= 48


def test_equal_sets() -> None:
    for row in ([1.0, 0.0, 1.0], [0.0] * 3, [1.0] * 3):
        member = np.array([row] * 4)
        assert nogueira_index(member) == 1.0
        assert nogueira_interval(member) == (1.0, 1.0)


def test_the_public_measures_are_the_same_numbers() -> None:
    member = random_member(3)
    sets = [np.flatnonzero(row).tolist() for row in member]
    assert nogueira(sets, member.shape[1]) == nogueira_index(member)
    wanted = np.mean(
        [len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in combinations(sets, 2)]
    )
    assert jaccard(sets) == mean_jaccard(sets) == pytest.approx(wanted)


@pytest.mark.parametrize("count", [0, 1, 17, 40])
def test_wilson(count: int) -> None:
    wanted = stats.binomtest(count, 40).proportion_ci(0.95, "wilson")
    low, high = wilson(np.array([count / 40]), 40)
    assert (low[0], high[0]) == pytest.approx((wanted.low, wanted.high), abs=1e-12)
