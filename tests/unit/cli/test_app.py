"""The frame of the command line: version, help, exit codes, missing extras."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest

import exactk
from exactk.cli import main
from exactk.methods import registry


def python(*args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


def test_version(run):
    assert run("--version") == type(run("--version"))(0, f"exactk {exactk.__version__}\n", "")


def test_version_loads_nothing_for_the_work():
    code = (
        "import sys, exactk\n"
        "before = set(sys.modules)\n"
        "from exactk.cli import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: pass\n"
        "heavy = ('numpy', 'scipy', 'sklearn', 'pyarrow', 'rich', 'pandas')\n"
        "print([name for name in heavy if name in set(sys.modules) - before])"
    )
    assert python("-c", code).stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"]])
def test_help(run, args):
    result = run(*args)
    assert result.code == 0
    assert "select" in result.out
    assert "methods" in result.out
    assert result.err == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["selct"], "exactk: No such command 'selct'"),
        (["--nope"], "exactk: No such option"),
        (["methods", "gsrsf"], "exactk: unknown method 'gsrsf'; did you mean 'gsrfs'?"),
        (["methods", "--format", "xml"], "exactk: Invalid value for '--format': 'xml' is not"),
    ],
)
def test_wrong_usage_is_one_sentence(run, args, message):
    result = run(*args)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith(message)
    assert result.err.count("\n") == 1


def test_methods_lists_the_registry(run):
    text = run("methods")
    assert text.code == 0
    for name in registry.names():
        info = registry.describe(name)
        assert any(
            line.startswith(name) and info.family in line and info.summary in line
            for line in text.out.splitlines()
        )
        assert info.reference in text.out


def test_methods_shows_the_options_of_one(run):
    out = run("methods", "gsrfs").out
    assert "Peng & Fan" in out
    assert re.search(r"^  r=2\.0 +a number in \(0, 2\]$", out, re.MULTILINE)
    assert re.search(r"^  labels=plus-minus +'centred', 'one-hot' or 'plus-", out, re.MULTILINE)
    facts = json.loads(run("methods", "gsrfs", "--format", "json").out)
    assert {option["name"]: option["default"] for option in facts["options"]} == (
        registry.create("gsrfs").get_params()
    )
    assert run("methods", "greedy").out.count("\n") == 1, "it has no options"


def test_methods_as_json(run):
    rows = json.loads(run("methods", "--format", "json").out)
    assert [row["name"] for row in rows] == registry.names()
    assert set(rows[0]) == {"name", "family", "summary", "reference", "needs"}
    needs = {row["name"]: row["needs"] for row in rows}
    assert needs["greedy"] == []
    assert "needs classes, one a row" in needs["relieff"]
    assert "ignores y" in needs["covth"]
    assert 'needs: pip install "exactk[deep]"' in needs["cae"]


@pytest.mark.parametrize("module", ["click", "rich", "pyarrow"])
def test_a_missing_extra_is_named(capsys, monkeypatch, module):
    find = importlib.util.find_spec
    monkeypatch.setattr("exactk.cli.find_spec", lambda name: None if name == module else find(name))
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 2
    expected = f'exactk: the command line needs {module}; install with: pip install "exactk[cli]"\n'
    assert capsys.readouterr().err == expected


def test_python_m():
    result = python("-m", "exactk", "--version")
    assert (result.returncode, result.stdout) == (0, f"exactk {exactk.__version__}\n")
