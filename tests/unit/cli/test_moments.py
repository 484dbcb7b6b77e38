"""``exactk moments``: made where the rows are, merged, and shown."""

from __future__ import annotations

import csv
import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import exactk
from exactk import Moments

BUILD = ["cultivar", "--drop", "id,copies"]
ARRAYS = ("x_mean", "y_mean", "xx", "xy", "yy")


def part(wine_csv: Path, name: str, rows: slice, order: slice = slice(None)) -> Path:
    """Some rows of the table, with the columns in this order."""
    with wine_csv.open(newline="") as file:
        head, *lines = list(csv.reader(file))
    path = wine_csv.with_name(name)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(line[order] for line in [head, *lines[rows]])
    return path


@pytest.fixture
def build(run):
    """Call ``exactk moments build`` and return the moments."""

    def _build(*args: object, into: Path) -> Moments:
        done = run("moments", "build", *args, "-o", into)
        assert (done.code, done.out) == (0, ""), done.err
        return Moments.load(into)

    return _build


@pytest.fixture
def days(wine_csv) -> list[Path]:
    """The table in three parts: the classes come in turn, so each part misses some."""
    cuts = [slice(0, 100), slice(100, 150), slice(150, None)]
    orders = [slice(None), slice(None, None, -1), slice(None)]
    return [part(wine_csv, f"day{i}.csv", *c) for i, c in enumerate(zip(cuts, orders, strict=True))]


@pytest.fixture
def whole(build, wine_csv) -> Path:
    build(wine_csv, *BUILD, into=wine_csv.with_name("whole.npz"))
    return wine_csv.with_name("whole.npz")


def assert_close(one: Moments, two: Moments) -> None:
    assert two.feature_names is not None
    one = one.with_columns(two.feature_names)
    assert (one.n_rows, one.target) == (two.n_rows, two.target)
    assert one.weight == pytest.approx(two.weight, rel=1e-12)
    assert list(one.classes) == list(two.classes)
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(two, name)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())


def test_several_files_with_weights(run, wine_csv, wine, tmp_path):
    halves = [part(wine_csv, "a.csv", slice(0, 80)), part(wine_csv, "b.csv", slice(80, None))]
    place = tmp_path / "m.npz"
    args = ["cultivar", "--drop", "id", "--weights", "copies"]
    done = run("moments", "build", *halves, *args, "-o", place)
    X, labels, names, weights = wine
    n = np.count_nonzero(weights)
    assert (done.code, done.out) == (0, "")
    assert f"wrote {place}: {n} rows, 13 columns, 3 classes" in done.err
    found, again = Moments.load(place), np.repeat(np.arange(len(X)), weights)
    targets = (labels[again, None] == np.unique(labels)).astype(float)
    wanted = Moments.from_arrays(X[again], targets)
    assert (found.weight, found.n_rows) == (weights.sum(), n)
    assert (found.feature_names, found.target) == (tuple(names), "cultivar")
    assert found.classes.tolist() == ["first", "second", "third"]
    for name in ARRAYS:
        a, b = getattr(found, name), getattr(wanted, name)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)], ids=str)
def test_merged_parts_are_the_whole_table(run, build, days, whole, tmp_path, order):
    for day in days:
        build(day, *BUILD, "--task", "classification", into=day.with_suffix(".npz"))
    place = tmp_path / "merged.npz"
    files = [days[i].with_suffix(".npz") for i in order]
    done = run("moments", "merge", *files, "-o", place)
    assert done.code == 0, done.err
    assert "178 rows, 13 columns, 3 classes" in done.err
    assert_close(Moments.load(place), Moments.load(whole))


def test_days_are_added_one_by_one(build, days, whole, tmp_path):
    earlier: list[object] = []
    for number, day in enumerate(days):
        place = tmp_path / f"until{number}.npz"
        found = build(day, *BUILD, *earlier, into=place)
        earlier = ["--add-to", place]
    assert_close(found, Moments.load(whole))


def test_one_class_needs_the_task_or_the_classes(fails, build, days, tmp_path):
    place, config = tmp_path / "m.npz", tmp_path / "c.toml"
    args = [days[2], *BUILD, "--config", config]
    for text in ("", 'classes = ["first", "second"]'):
        config.write_text(text)
        fails("'third'", "moments", "build", *args, "-o", place)
        assert not place.exists()
    config.write_text('classes = ["first", "second", "third"]')
    assert build(*args, into=place).y_mean.tolist() == [0.0, 0.0, 1.0]


def test_labels_of_a_text_file_are_text_where_earlier_ones_were(fails, build, tmp_path):
    days, places = [], [tmp_path / f"{number}.npz" for number in range(3)]
    for number, labels in enumerate((["1", "A"], ["1", "02"])):
        days.append(tmp_path / f"{number}.csv")
        lines = [f"{i * 7 % 11},{labels[i % 2]}" for i in range(20)]
        days[-1].write_text("\n".join(["x,y", *lines]) + "\n")
    build(days[0], "y", into=places[0])
    found = build(days[1], "y", "--add-to", places[0], into=places[1])
    assert found.classes.tolist() == ["02", "1", "A"]
    assert found.y_mean.tolist() == [0.25, 0.5, 0.25]
    # Whole numbers alone are numbers, which cannot be merged with text.
    assert build(days[1], "y", into=places[2]).classes.tolist() == [1, 2]
    fails("different kinds", "moments", "merge", places[0], places[2], "-o", tmp_path / "no.npz")


def test_labels_of_another_type_are_refused_before_the_pass(fails, whole, tmp_path, wine):
    X, labels, names, _ = wine
    codes = np.unique(labels, return_inverse=True)[1]
    # A missing value, which only the pass can find.
    columns = dict(zip(names, [[None, *column[1:]] for column in X.T], strict=True))
    pq.write_table(pa.table({**columns, "cultivar": codes}), tmp_path / "t.parquet")
    args = [tmp_path / "t.parquet", "cultivar", "--add-to", whole, "-o", tmp_path / "m.npz"]
    fails("are numbers, and those of", "moments", "build", *args)


def test_info(run, ask, rows, build, wine, tmp_path):
    X, labels, names, weights = wine
    columns = dict(zip(names, X.T, strict=True))
    same = np.full(len(X), 7.5)
    table = pa.table({**columns, "same": same, "copies": weights, "cultivar": labels})
    pq.write_table(table, tmp_path / "t.parquet")
    place = tmp_path / "m.npz"
    build(tmp_path / "t.parquet", "cultivar", "--weights", "copies", into=place)
    facts = ask("moments", "info", place)["result"]
    shares = {one["label"]: one["share"] for one in facts["classes"]}
    for label in set(labels):
        assert shares[label] == pytest.approx(weights[labels == label].sum() / weights.sum())
    assert (facts["rows"], facts["weight"]) == (np.count_nonzero(weights), weights.sum())
    assert [one["column"] for one in facts["columns"]] == [*names, "same"]
    assert [one["column"] for one in facts["columns"] if one["constant"]] == ["same"]
    assert (facts["target"], facts["task"]) == ("cultivar", "classification")
    assert facts["bytes"] == place.stat().st_size
    assert (facts["version"], facts["exactk"]) == (1, exactk.__version__)
    alcohol = rows("moments", "info", place)[0]
    assert float(alcohol["mean"]) == pytest.approx(np.average(X[:, 0], weights=weights))
    spread = np.cov(X[:, 0], fweights=weights, ddof=0) ** 0.5
    assert float(alcohol["standard_deviation"]) == pytest.approx(spread)
    text = run("moments", "info", place).out
    assert f"{np.count_nonzero(weights)} (weight {weights.sum()})" in text
    assert f"{shares['second']:.2%}  second" in text


def test_info_of_numbers_without_names(run, ask, wine, tmp_path):
    X, _, _, _ = wine
    Moments.from_arrays(X[:, 1:], X[:, 0]).save(tmp_path / "m.npz")
    facts = ask("moments", "info", tmp_path / "m.npz")["result"]
    assert (facts["target"], facts["task"], facts["outputs"]) == (None, "regression", 1)
    assert [one["column"] for one in facts["columns"]] == [f"x{j}" for j in range(12)]
    assert "unnamed, regression" in run("moments", "info", tmp_path / "m.npz").out


@pytest.fixture
def other(build, wine_csv) -> Path:
    """Moments of other columns, of numbers."""
    args = ["hue", "--drop", "id,copies,cultivar", "--task", "regression"]
    build(wine_csv, *args, into=wine_csv.with_name("other.npz"))
    return wine_csv.with_name("other.npz")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["build", "{table}", "cultivar"], "--output"),
        (["build", "cultivar", "-o", "{new}"], "TABLE..."),
        (["build", "{good}", "-o", "{table}"], "also an input"),
        (["build", "{folder}/w*.csv", *BUILD, "-o", "{table}"], "also an input"),
        (["build", "{folder}", *BUILD, "-o", "{folder}/m.npz"], "which is read"),
        (["build", "{good}", "--add-to", "{whole}", "-o", "{whole}"], "also an input"),
        (["build", "{good}", "--add-to", "{folder}/no.npz", "-o", "{new}"], "does not exist"),
        (["build", "{good}", "--add-to", "{table}", "-o", "{new}"], "is no file of exactk moments"),
        (
            ["build", "{good}", "--add-to", "{whole}", "--task", "regression", "-o", "{new}"],
            "--task regression does not match",
        ),
        (
            ["build", "{good}", "--drop", "ash", "--add-to", "{whole}", "-o", "{new}"],
            "only one of the two has 'ash'",
        ),
        (["build", "{good}", "--memory-limit", "1K", "-o", "{new}"], "1,352 bytes"),
        (["merge", "{whole}", "-o", "{new}"], "two or more files"),
        (["merge", "{whole}", "{copy}", "-o", "{new}"], "count twice"),
        (["merge", "{whole}", "{other}", "-o", "{whole}"], "also an input"),
        (["merge", "{whole}", "{table}", "-o", "{new}"], "is no file of exactk moments"),
        (["merge", "{whole}", "{other}", "-o", "{new}"], "cannot be merged"),
        (["info", "{table}"], "is no file of exactk moments"),
    ],
)
def test_a_mistake_is_one_sentence_and_changes_nothing(
    fails, wine_csv, whole, other, args, message
):
    words = {
        "table": wine_csv,
        "whole": whole,
        "copy": shutil.copy(whole, wine_csv.with_name("copy.npz")),
        "other": other,
        "folder": wine_csv.parent,
        "new": wine_csv.with_name("new.npz"),
    }
    full: list[str] = []
    for arg in args:
        full += [str(wine_csv), *BUILD] if arg == "{good}" else [arg.format(**words)]
    before = {path.name: path.read_bytes() for path in wine_csv.parent.iterdir()}
    fails(message, "moments", *full)
    assert {path.name: path.read_bytes() for path in wine_csv.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 2, "No space left"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
    ],
    ids=["full disk", "Ctrl-C"],
)
@pytest.mark.parametrize("command", ["build", "merge"])
def test_output_that_fails(run, wine_csv, whole, other, monkeypatch, command, error, code, words):
    def fail(*args):
        raise error

    place = wine_csv.with_name("out")
    place.write_text("old")
    before = sorted(path.name for path in wine_csv.parent.iterdir())
    args = {"build": [wine_csv, *BUILD], "merge": [whole, other]}[command]
    if command == "merge":
        monkeypatch.setattr(Moments, "merge", lambda one, *_, **__: one)
    monkeypatch.setattr(os, "fsync", fail)
    done = run("moments", command, *args, "-o", place)
    assert done.code == code
    assert words in done.err
    assert place.read_text() == "old"
    assert sorted(path.name for path in wine_csv.parent.iterdir()) == before
