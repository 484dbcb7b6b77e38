"""The progress line: quiet where nobody looks, a bar on a terminal."""

from __future__ import annotations

import io
import logging
from types import SimpleNamespace

import pytest

from exactk import progress
from exactk.monitor import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_log_line_elsewhere(monkeypatch, caplog, capsys):
    monkeypatch.setattr(progress, "LOG_EVERY", 0.0)
    with caplog.at_level(logging.INFO, "exactk.progress"), progress.bar("greedy, k=3") as show:
        show(Progress(2, 10, 1.5))
        show(Progress(3, None, 1.25))
    assert [record.getMessage() for record in caplog.records] == [
        "greedy, k=3: step 2 of 10, objective 1.5",
        "greedy, k=3: step 3, objective 1.25",
    ]
    assert capsys.readouterr() == ("", "")


def test_log_line_is_rare(caplog):
    with caplog.at_level(logging.INFO, "exactk.progress"), progress.bar("greedy") as show:
        for step in range(1000):
            show(Progress(step, 1000, 1.0))
    assert caplog.records == []


def test_bar_on_a_terminal(monkeypatch, capsys):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal)
    with progress.bar("exchange [k=5]") as show:
        show(Progress(5, 10, 1.5))
    assert "exchange [k=5]" in terminal.getvalue()
    assert "objective 1.5" in terminal.getvalue()
    assert capsys.readouterr().out == ""


class Notebook:
    """The cell of a notebook: what a front end would show."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Notebook:
        assert raw
        assert display_id
        self.shown.append(data)
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(data)

    def get_ipython(self) -> object:
        return SimpleNamespace(kernel=object())


@pytest.fixture
def notebook(monkeypatch):
    cell = Notebook()
    monkeypatch.setitem(progress.sys.modules, "IPython", cell)
    monkeypatch.setitem(progress.sys.modules, "IPython.display", cell)
    return cell


def test_bar_in_a_notebook(monkeypatch, notebook, capsys):
    monkeypatch.setattr(progress, "DRAW_EVERY", 0.0)
    with progress.bar("exchange, k<5") as show:
        show(Progress(5, 10, 1.5))
        show(Progress(6, None, 1.25))
    html = [data["text/html"] for data in notebook.shown]
    assert html == [
        'exchange, k&lt;5 <progress value="5" max="10"></progress> objective 1.5',
        "exchange, k&lt;5 <progress></progress> objective 1.25",
        # Nothing stays behind.
        "",
    ]
    assert notebook.shown[0]["text/plain"] == "exchange, k<5: objective 1.5"
    assert capsys.readouterr() == ("", "")


def test_a_notebook_is_left_alone_by_quick_work(notebook):
    with progress.count_bar("folds", 5) as show:
        show(1)
    assert notebook.shown == []


def test_a_bar_leaves_a_notebook_after_ctrl_c(monkeypatch, notebook):
    monkeypatch.setattr(progress, "DRAW_EVERY", 0.0)

    def interrupted() -> None:
        with progress.row_bar("reading") as show:
            show(1_000, None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [data["text/html"] for data in notebook.shown] == [
        "reading <progress></progress> 1,000 rows",
        "",
    ]


def test_ipython_without_a_kernel_is_no_notebook(monkeypatch, notebook):
    monkeypatch.setattr(notebook, "get_ipython", lambda: SimpleNamespace())
    monkeypatch.setattr(progress, "DRAW_EVERY", 0.0)
    with progress.count_bar("folds", 5) as show:
        show(1)
    assert notebook.shown == []
