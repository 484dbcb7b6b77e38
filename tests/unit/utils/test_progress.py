"""The progress line: quiet where nobody looks, a bar on a terminal."""

from __future__ import annotations

import io
import logging
from types import SimpleNamespace

import pytest

from exactk.utils import progress
from exactk.utils.monitor import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_log_line_elsewhere(monkeypatch, caplog, capsys):
    monkeypatch.setattr(progress, "LOG_EVERY", 0.0)
    with (
        caplog.at_level(logging.INFO, "exactk.utils.progress"),
        progress.show_progress("greedy, k=3", 1) as show,
    ):
        show(Progress(2, 10, 1.5))
        show(Progress(3, None, 1.25))
    assert [record.getMessage() for record in caplog.records] == [
        "greedy, k=3: step 2 of 10, objective 1.5",
        "greedy, k=3: step 3, objective 1.25",
    ]
    assert capsys.readouterr() == ("", "")


def test_log_line_is_rare(caplog):
    with (
        caplog.at_level(logging.INFO, "exactk.utils.progress"),
        progress.show_progress("greedy", 1) as show,
    ):
        for step in range(1000):
            show(Progress(step, 1000, 1.0))
    assert caplog.records == []


def test_bar_on_a_terminal(monkeypatch, capsys):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal)
    with progress.show_progress("exchange [k=5]", 1) as show:
        show(Progress(5, 10, 1.5))
    assert "exchange [k=5]" in terminal.getvalue()
    assert "objective 1.5" in terminal.getvalue()
    assert capsys.readouterr().out == ""


@pytest.fixture
def notebook(monkeypatch):
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(progress.sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    return shell


@pytest.mark.parametrize("widgets", [True, False])
def test_rich_draws_in_a_notebook_that_has_widgets(monkeypatch, notebook, widgets):
    there = {"rich": True, "ipywidgets": widgets}
    monkeypatch.setattr(progress, "find_spec", lambda name: there[name] or None)
    assert (progress.find_bar() is progress._rich_bar) == widgets


def test_ipython_without_a_kernel_is_no_notebook(monkeypatch, notebook):
    del notebook.kernel
    monkeypatch.setattr(progress, "find_spec", lambda name: True)
    assert progress.find_bar() is None
