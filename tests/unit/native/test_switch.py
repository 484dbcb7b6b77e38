"""The switch between compiled and NumPy moves; their agreement is tested in search/test_state."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from exactk import Problem, solve
from exactk.search import native_state
from exactk.search.native_state import NativeState, library, library_path, make_state
from exactk.search.state import State

SOLVE = """
import json
from sklearn.datasets import load_wine
from exactk import Problem, solve, solve_path
from exactk.search.native_state import library
problem = Problem.from_arrays(*load_wine(return_X_y=True), ridge=0.05)
results = [solve(problem, 4), solve(problem, 6, effort=0), *solve_path(problem, 5)]
print(json.dumps([library() is not None, [r.support.tolist() for r in results],
                  [r.objective for r in results]]))
"""


def run(switch: str) -> tuple[bool, list[list[int]], list[float]]:
    done = subprocess.run(
        [sys.executable, "-c", SOLVE],
        env={**os.environ, "EXACTK_NATIVE": switch},
        capture_output=True,
        text=True,
        check=True,
    )
    compiled, supports, objectives = json.loads(done.stdout)
    return compiled, supports, objectives


@pytest.mark.skipif(library() is None, reason="the compiled moves are not built")
def test_the_environment_switches_the_compiled_moves_off_and_answers_stay() -> None:
    compiled, supports, objectives = run("1")
    plain, same_supports, same_objectives = run("0")
    assert compiled
    assert not plain
    assert supports == same_supports
    np.testing.assert_allclose(objectives, same_objectives, rtol=1e-12)


def test_without_the_library_the_numpy_moves_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    problem = Problem.from_arrays(rng.standard_normal((40, 6)), rng.standard_normal(40))
    before = solve(problem, 3)
    monkeypatch.setattr(native_state, "library", lambda: None)
    assert type(make_state(problem, 2)) is State
    after = solve(problem, 3)
    assert after.support.tolist() == before.support.tolist()
    assert after.objective == pytest.approx(before.objective, rel=1e-12)


def test_a_library_that_cannot_be_loaded_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    broken = tmp_path / "_native.so"
    broken.write_bytes(b"not a library")
    monkeypatch.delenv("EXACTK_NATIVE", raising=False)
    monkeypatch.setattr(native_state, "library_path", lambda: broken)
    assert library.__wrapped__() is None


@pytest.mark.skipif(library() is None, reason="the compiled moves are not built")
def test_make_state_prefers_the_compiled_moves() -> None:
    problem = Problem.from_arrays(np.eye(4), [0, 1, 0, 1])
    assert library_path().exists()
    assert type(make_state(problem, 2)) is NativeState
