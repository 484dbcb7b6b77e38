"""The best values known on real data are reached at default effort for k = 5 and 10."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from exactk import Problem, solve

KNOWN = json.loads(
    (Path(__file__).resolve().parents[2] / "benchmarks" / "best_known.json").read_text()
)


@pytest.mark.parametrize("name", ["srbct", "allaml", "lymphoma", "warppie10p", "coil20", "isolet"])
def test_reached(name: str, shared_data: Path) -> None:
    with np.load(shared_data / f"{name}.npz") as stored:
        problem = Problem.from_arrays(stored["X"].astype(np.float64), stored["y"])
    for k in (5, 10):
        # The values are known to four decimals.
        assert solve(problem, k).objective <= KNOWN[name][str(k)] + 5e-5
