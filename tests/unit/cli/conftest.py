from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

pytest.importorskip("click")
pytest.importorskip("pyarrow")

from exactk import Problem
from exactk.cli import main


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Call the command line in this process."""

    def _run(*args: object) -> Run:
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Run(int(stop.value.code or 0), captured.out, captured.err)

    return _run


@pytest.fixture
def ask(run):
    """Return what the JSON of a call has."""

    def call(*args: object):
        done = run(*args, "--format", "json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    return call


@pytest.fixture
def rows(run):
    """Return the lines of the CSV of a call."""

    def call(*args: object) -> list[dict[str, str]]:
        done = run(*args, "--format", "csv")
        assert done.code == 0, done.err
        return list(csv.DictReader(io.StringIO(done.out)))

    return call


@pytest.fixture
def fails(run):
    """Check that a call is a mistake of the user: one sentence has the words, nothing else."""

    def call(words: str, *args: object) -> str:
        done = run(*args)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("Error: ")
        assert done.err.count("\n") == 1
        assert words in done.err
        return done.err

    return call


@pytest.fixture
def problem(wine) -> Problem:
    X, labels, names, _ = wine
    return Problem.from_arrays(X, labels, feature_names=names).with_ridge("auto")


@pytest.fixture(scope="session")
def wine():
    """13 named columns, 3 classes, and whole row weights between 0 and 2."""
    data = load_wine()
    weights = np.random.default_rng(0).integers(0, 3, len(data.target))
    labels = np.array(["first", "second", "third"])[data.target]
    return data.data, labels, list(data.feature_names), weights


@pytest.fixture
def wine_csv(wine, tmp_path) -> Path:
    X, labels, names, weights = wine
    path = tmp_path / "wine.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *names, "copies", "cultivar"])
        for i, row in enumerate(X):
            writer.writerow([f"bottle {i}", *row, weights[i], labels[i]])
    return path


@pytest.fixture
def sites(wine) -> list[str]:
    """Twelve groups of rows."""
    return [f"site {i % 12}" for i in range(len(wine[1]))]


@pytest.fixture(params=["file", "folder"])
def wine_sites(request, wine_csv, sites, tmp_path) -> Path:
    """The table with a column of sites: a file that is read, and a folder that is passed over."""
    named = zip(wine_csv.read_text().splitlines(), ["site", *sites], strict=True)
    head, *rows = [f"{line},{site}" for line, site in named]
    folder = tmp_path / "parts"
    folder.mkdir()
    if request.param == "file":
        (folder / "whole.csv").write_text("\n".join([head, *rows]))
        return folder / "whole.csv"
    (folder / "a.csv").write_text("\n".join([head, *rows[:100]]))
    (folder / "b.csv").write_text("\n".join([head, *rows[100:]]))
    return folder
