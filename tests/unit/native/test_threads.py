"""Tasks side by side: all of them, none after a failure, and tasks that have tasks of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from threading import Event

import pytest

from exactk.native.threads import run_in_threads


@pytest.mark.parametrize("threads", ["1", "2", "3"])
@pytest.mark.parametrize("n_tasks", [0, 1, 20])
def test_every_task_runs_once(threads: str, n_tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    done: list[int] = []
    run_in_threads(partial(done.append, i) for i in range(n_tasks))
    assert sorted(done) == list(range(n_tasks))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_failure_drops_what_has_not_begun_and_waits_for_the_rest(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exactk.native.threads.threads_allowed", lambda: 2)
    other_runs = Event()
    begun: list[int] = []
    ended: list[int] = []

    def fail() -> None:
        other_runs.wait(30)
        raise error

    def work(i: int) -> None:
        begun.append(i)
        other_runs.set()
        time.sleep(0.1)
        ended.append(i)

    with pytest.raises(error):
        run_in_threads([fail, *(partial(work, i) for i in range(12))])
    assert ended
    assert sorted(begun) == sorted(ended)
    assert len(ended) < 12
    after = len(begun)
    time.sleep(0.3)
    assert len(begun) == after
    run_in_threads(partial(work, i) for i in range(2))
    assert len(ended) == after + 2


NESTED = """
from functools import partial
from exactk.native import threads
threads.threads_allowed = lambda: 2
done = []
def inner(i):
    threads.run_in_threads(partial(done.append, (i, j)) for j in range(5))
threads.run_in_threads(partial(inner, i) for i in range(6))
print(sorted(done) == [(i, j) for i in range(6) for j in range(5)])
"""


def test_a_task_may_have_tasks_of_its_own() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", NESTED],
        env=dict(os.environ), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert ran.stdout.strip() == "True"
