"""Ctrl-C: exit code 130 without a traceback at any moment, with what was found."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

import exactk.cli
from exactk.cli.framework import call as call_module

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child on Windows")

WINE = ["cultivar", "--drop", "id,copies"]
# Handlers of a shell's background jobs ignore SIGINT, and so would their children.
START = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"


def start(args: list[str], before: str = "") -> subprocess.Popen[str]:
    code = f"{START}from exactk.cli import main\n{before}\nprint('go', flush=True)\nmain({args!r})"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.1, 0.3, 0.8])
def test_while_python_imports(wine_csv, delay):
    process = start(["stability", str(wine_csv), *WINE, "-k", "3", "--subsamples", "100000"])
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "nterrupted" in err


SLOW_IMPORT = """
    import slow_module
    print("imported", flush=True)
"""
DESTRUCTOR = """
    class Hides:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)

    Hides()
"""


@pytest.mark.parametrize(
    ("hidden", "printed"),
    [(SLOW_IMPORT, ["go", "imported"]), (DESTRUCTOR, ["go"])],
    ids=["import", "destructor"],
)
def test_an_interrupt_that_a_library_hides_is_raised_again(tmp_path, wine_csv, hidden, printed):
    """Python cannot raise in a destructor; modules make other errors of an interrupt."""
    (tmp_path / "slow_module.py").write_text(
        "import signal, os, time\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(0.2)\n"
        "except BaseException as error:\n    raise ImportError('broken') from error\n"
    )
    before = (
        "import exactk.cli.framework.call as call, os, signal, sys, time\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        f"def read(self):{hidden}    time.sleep(60)\n"
        "call.Call.read = read"
    )
    process = start(["stability", str(wine_csv), *WINE, "-k", "3"], before)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out.splitlines() == printed
    assert err.strip() == "Error: interrupted; nothing was written."


def broken(self):
    exactk.cli._Ctrl.pressed = True
    raise ImportError("numpy could not be imported")


def stopped(self):
    raise KeyboardInterrupt


@pytest.mark.parametrize("read", [broken, stopped])
def test_before_there_is_a_result(run, wine_csv, tmp_path, monkeypatch, read):
    monkeypatch.setattr(call_module.Call, "read", read)
    done = run("select", wine_csv, *WINE, "-k", 2, "-o", tmp_path / "x.csv")
    assert (done.code, done.out) == (130, "")
    assert done.err.strip() == "Error: interrupted; nothing was written."
    assert not (tmp_path / "x.csv").exists()


def test_handlers_are_restored(run):
    before = signal.getsignal(signal.SIGINT)
    run("--version")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_job_in_the_background_ignores_it(wine_csv):
    ignore = (
        "import exactk.cli.framework.call as call, os, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "whole = call.Call.read\n"
        "def read(self):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return whole(self)\n"
        "call.Call.read = read"
    )
    process = start(["select", str(wine_csv), *WINE, "-k", "2"], ignore)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "2 of 13 features" in out


@pytest.mark.parametrize(
    "args",
    [
        ["select", "-k", "4"],
        ["select", "-k", "4", "--certify", "60"],
        ["select", "-k", "auto", "--k-max", "4"],
        ["certify", "-k", "4"],
    ],
    ids=" ".join,
)
def test_what_was_found_is_given(wine_csv, args):
    """The signal comes with the first report of progress."""
    stop = (
        "import _thread\n"
        "from exactk.utils.monitor import Monitor\n"
        "Monitor.report = lambda *progress: _thread.interrupt_main()"
    )
    command, *options = args
    done = start([command, str(wine_csv), *WINE, *options, "--format", "json"], stop)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 130, err
    assert "Traceback" not in err
    found = json.loads(out.partition("\n")[2])
    result = found["result"].get("result", found["result"])
    assert len(result["support"]) >= 1
    assert "interrupted" in (found["result"]["status"], found.get("choice", {}).get("status"))
