"""Columns that nearly depend on each other, as in spectra: still right, still in order."""

from __future__ import annotations

import numpy as np
import pytest

from exactk import Problem, solve, solve_path


def spectra(seed: int, noise: float) -> Problem:
    """Sixty smooth curves at 24 channels: seven shapes of ever smaller size, and noise."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((60, 7)) * 10.0 ** -np.arange(7)
    shapes = np.cos(np.pi * np.arange(7)[:, None] * np.linspace(0, 1, 24))
    X = parts @ shapes + noise * rng.standard_normal((60, 24))
    y = parts @ rng.standard_normal(7) + 1e-4 * rng.standard_normal(60)
    return Problem.from_arrays(X, y, task="regression")


@pytest.mark.filterwarnings("ignore:only .* independent:UserWarning")
@pytest.mark.parametrize("noise", [1e-6, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("seed", range(4))
def test_never_above_greedy(seed: int, noise: float) -> None:
    problem = spectra(seed, noise)
    for k in (4, 6, 8):
        greedy = solve(problem, k, "greedy").objective
        assert solve(problem, k).objective <= greedy * (1 + 1e-6) + 1e-13 * problem.total


@pytest.mark.filterwarnings("ignore:only .* independent:UserWarning")
@pytest.mark.parametrize("noise", [1e-6, 1e-5, 1e-4])
@pytest.mark.parametrize("seed", range(4))
def test_a_path_never_rises(seed: int, noise: float) -> None:
    problem = spectra(seed, noise)
    objectives = solve_path(problem, 8).objectives
    assert (np.diff(objectives) <= 1e-9 * problem.total).all()
