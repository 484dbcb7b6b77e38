"""The best values known on real data are reached: k = 5 at default effort, k = 10 with more.

By logistic loss what other libraries came to is not above them, whatever the seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import read_record
from benchmarks.verdict import best_known
from exactk import Problem, solve

KNOWN = best_known()


@pytest.mark.parametrize("name", ["srbct", "allaml", "lymphoma", "warppie10p", "coil20", "isolet"])
def test_reached(name: str, shared_data: Path) -> None:
    with np.load(shared_data / f"{name}.npz") as stored:
        problem = Problem.from_arrays(stored["X"].astype(np.float64), stored["y"])
    # The values are known to four decimals. At k = 10 a few seeds in a hundred need the effort.
    assert solve(problem, 5).objective <= KNOWN[name]["5"] + 5e-5
    assert solve(problem, 10, effort=4).objective <= KNOWN[name]["10"] + 5e-5


@pytest.mark.parametrize(
    ("name", "k"), [("srbct", 10), ("lymphoma", 5), ("jaffe", 5), ("jaffe", 10)]
)
def test_no_other_library_has_a_lower_deviance(name: str, k: int, shared_data: Path) -> None:
    record = read_record("likelihood")
    theirs = min(
        cell["objective"]
        for cell in record["cells"]
        if (cell["data"], cell["k"]) == (name, k)
        and not cell["contestant"].startswith("exactk")
        and 0 < cell.get("size", 0) <= k
    )
    with np.load(shared_data / f"{name}.npz") as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
    problem = Problem.from_arrays(X, y, loss="logistic", ridge=1.0)
    problem = problem.with_ridge(record["ridge"] * (len(y) - 1) / problem.penalty)
    for seed in range(4):
        assert solve(problem, k, random_state=seed).objective < theirs
