"""Workers: every end of a task is an outcome, and the next task runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exactk.papers.experiments.pool import ONE_THREAD, Pool, Task, WorkerError

ROOT = Path(__file__).resolve().parents[4]
ACT = "tests.unit.papers.experiments.fakes:act"
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def outcomes(target, tasks, jobs=1):
    with Pool(target, jobs) as pool:
        found = {outcome.key: outcome for outcome in pool.run(tasks)}
    assert set(found) == {task.key for task in tasks}
    return found


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process ends in time; one that nobody buries counts as ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_has_its_value(jobs):
    started = []
    tasks = [Task(str(i), (float(i),)) for i in range(10)]
    with Pool("tests.unit.papers.experiments.fakes:square", jobs) as pool:
        found = {outcome.key: outcome for outcome in pool.run(tasks, started.append)}
    assert {key: outcome.value for key, outcome in found.items()} == {
        str(i): float(i * i) for i in range(10)
    }
    assert {outcome.status for outcome in found.values()} == {"done"}
    assert sorted(task.key for task in started) == sorted(found)


@posix
def test_every_end_is_an_outcome_and_the_run_goes_on():
    ends = {
        "raise": ("failed", "ValueError: k is too large (fakes.py, line "),
        "memory": ("failed", "out of memory: Unable to allocate 9 EiB (fakes.py, line "),
        "leave": ("failed", "SystemExit: enough"),
        "exit": ("failed", "the process ended with exit code 3"),
        "segfault": ("failed", "the process crashed (SIGSEGV)"),
        "killed": ("failed", "the process was killed (SIGKILL): out of memory, or by hand"),
        "lambda": ("failed", "pickle"),
        "interrupt": ("done", ""),
        "hang": ("time_limit", "no answer within 1 s"),
        # A part of a task may have a limit of its own.
        "hang within": ("time_limit", "no answer within 0.3 s"),
        "late but outside": ("done", ""),
    }
    tasks = []
    for what in ends:
        limit = 1.0 if what == "hang" else 60.0
        tasks += [Task(what, (what,), limit), Task(f"after {what}", ("fine",), 60.0)]
    found = outcomes(ACT, tasks, jobs=2)
    for what, (status, reason) in ends.items():
        assert found[what].status == status, what
        assert reason in found[what].reason
        assert (found[what].value is None) == (status != "done")
        assert found[f"after {what}"].value == "fine"
    assert 1.0 <= found["hang"].wall < 10.0


def test_the_whole_limit_holds_beside_that_of_a_part():
    found = outcomes(ACT, [Task("a", ("hang within",), limit=0.1)])
    assert found["a"].reason == "no answer within 0.1 s"


def test_workers_have_one_thread_and_the_parent_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    found = outcomes("tests.unit.papers.experiments.fakes:threads", [Task("a")])["a"]
    assert found.reason == ""
    assert found.value["environment"] == ["1", "1", "1"]
    assert set(found.value["pools"]) <= {1}
    assert {name: os.environ.get(name) for name in ONE_THREAD} == before


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("tests.unit.papers.experiments.fakes:nothing", "AttributeError"),
        ("no_such_module:act", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_a_function_that_is_not_there_ends_the_run(target, words):
    with pytest.raises(WorkerError, match=words), Pool(target) as pool:
        list(pool.run([Task("a", ("fine",))]))


def test_no_tasks_no_workers():
    with Pool("no_such_module:act") as pool:
        assert list(pool.run([])) == []


def test_closing_ends_busy_workers(tmp_path):
    place = tmp_path / "pid"
    with Pool("tests.unit.papers.experiments.fakes:tell_and_spin", 2) as pool:
        tasks = [Task("a", (str(place),)), Task("b", (str(tmp_path / "other"),), limit=0.5)]
        assert next(pool.run(tasks)).key == "b"
        while not (place.exists() and place.read_text()):
            time.sleep(0.01)
    assert gone(int(place.read_text()), seconds=1.0)


@posix
def test_a_busy_worker_dies_with_its_parent(tmp_path):
    place = tmp_path / "pid"
    code = (
        "from exactk.papers.experiments.pool import Pool, Task\n"
        "if __name__ == '__main__':\n"
        "    with Pool('tests.unit.papers.experiments.fakes:tell_and_spin') as pool:\n"
        f"        list(pool.run([Task('a', ({str(place)!r},))]))\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, str(script)], env=environment, cwd=ROOT)
    try:
        until = time.monotonic() + 60
        while not (place.exists() and place.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        worker = int(place.read_text())
        os.kill(worker, 0)
        parent.send_signal(signal.SIGKILL)
        assert gone(worker)
    finally:
        parent.kill()
        parent.wait()
