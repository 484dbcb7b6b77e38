"""A Problem that was pickled or copied works without the one it came from."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from exactk import Problem, solve
from exactk.data.gram import GramMode


def make(gram: GramMode, memory_limit: int = 2**30) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40))
    return Problem.from_arrays(X, np.arange(60) % 3, gram=gram, memory_limit=memory_limit)


@pytest.mark.parametrize("gram", ["full", "columns"])
@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_a_copy_stands_alone(gram: GramMode, how: str) -> None:
    problem = make(gram)
    expected = solve(problem, 5).support.tolist()
    other = pickle.loads(pickle.dumps(problem)) if how == "pickle" else copy.deepcopy(problem)
    del problem
    gc.collect()
    assert solve(other, 5).support.tolist() == expected


@pytest.mark.parametrize("gram", ["full", "columns"])
def test_a_pickle_works_in_another_process(gram: GramMode, tmp_path: Path) -> None:
    problem = make(gram)
    expected = solve(problem, 5).support.tolist()
    (tmp_path / "problem.pickle").write_bytes(pickle.dumps(problem))
    code = (
        "import pickle, pathlib, exactk;"
        "p = pickle.loads(pathlib.Path('problem.pickle').read_bytes());"
        "print(exactk.solve(p, 5).support.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(expected)


def test_threads_share_a_problem_that_keeps_few_columns() -> None:
    problem = make("columns", memory_limit=8 * 40 * 6)
    expected = solve(problem, 5, random_state=1).support.tolist()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: solve(problem, 5, random_state=1), range(8)))
    assert [result.support.tolist() for result in found] == [expected] * 8
