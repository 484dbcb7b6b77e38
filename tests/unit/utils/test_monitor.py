from __future__ import annotations

import pytest

from exactk.utils import monitor as module
from exactk.utils.monitor import Monitor, Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands where the test puts it."""
    now = [100.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    return now


def test_time_runs_from_the_making(clock: list[float]) -> None:
    monitor = Monitor(time_limit=2.0)
    assert monitor.seconds == 0.0
    clock[0] = 101.5
    assert monitor.seconds == 1.5
    assert not monitor.expired
    clock[0] = 102.0
    assert monitor.expired


def test_no_limit_never_expires(clock: list[float]) -> None:
    monitor = Monitor()
    clock[0] = 1e12
    assert not monitor.expired


def test_reports_reach_the_listener_and_nobody_else() -> None:
    seen: list[Progress] = []
    Monitor(on_progress=seen.append).report(2, None, 7.5)
    assert seen == [Progress(done=2, total=None, objective=7.5)]
    Monitor().report(2, None, 7.5)
    assert len(seen) == 1


def test_what_the_listener_raises_comes_through() -> None:
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Monitor(on_progress=stop).report(1, 2, 3.0)
