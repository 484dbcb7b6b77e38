"""``exactk stats`` and ``select --from-moments``: the answer of the table, without its rows."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import exactk
from exactk import Moments, Problem, solve
from exactk.streaming.moments import stream_moments

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NO_ID = ["--drop", "id", "--drop", "copies"]
BUILD = ["--target", "cultivar", *NO_ID]
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
def days(wine_csv: Path) -> list[Path]:
    """The table in three parts: the classes come in turn, so each part misses some."""
    cuts = [slice(0, 100), slice(100, 150), slice(150, None)]
    orders = [slice(None), slice(None, None, -1), slice(None)]
    return [part(wine_csv, f"day{i}.csv", *c) for i, c in enumerate(zip(cuts, orders, strict=True))]


@pytest.fixture
def built(run, days) -> list[Path]:
    """The moments of the parts; the last has one class alone."""
    made = []
    for day in days:
        made.append(day.with_suffix(".npz"))
        done = run("stats", "build", day, *BUILD, "--task", "classification", "-o", made[-1])
        assert done.code == 0, done.err
    return made


@pytest.fixture
def whole(run, wine_csv) -> Path:
    path = wine_csv.with_name("whole.npz")
    done = run("stats", "build", wine_csv, *BUILD, "-o", path)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"exactk: wrote {path}: 178 rows, 13 columns, 3 classes.\n"
    return path


def assert_close(one: Moments, two: Moments, rtol: float = 1e-10) -> None:
    assert two.feature_names is not None
    one = one.with_columns(two.feature_names)
    assert (one.n_rows, one.target) == (two.n_rows, two.target)
    assert one.weight == pytest.approx(two.weight, rel=1e-12)
    assert one.classes is not None
    assert two.classes is not None
    assert one.classes.tolist() == two.classes.tolist()
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(two, name)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


def test_build_gives_the_moments_of_the_table(whole, wine):
    X, labels, names, _ = wine
    found = Moments.load(whole)
    Y = (labels[:, None] == np.unique(labels)).astype(float)
    wanted = Moments.from_arrays(X, Y)
    assert found.feature_names == tuple(names)
    assert found.target == "cultivar"
    assert found.classes is not None
    assert found.classes.tolist() == ["first", "second", "third"]
    for name in ARRAYS:
        a, b = getattr(found, name), getattr(wanted, name)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())


def test_build_of_several_files_with_weights(run, wine_csv, wine, tmp_path):
    halves = [part(wine_csv, "a.csv", slice(0, 80)), part(wine_csv, "b.csv", slice(80, None))]
    args = ["--target", "cultivar", "--drop", "id", "--weights", "copies", "--quiet"]
    done = run("stats", "build", *halves, *args, "-o", tmp_path / "m.npz")
    assert (done.code, done.out, done.err) == (0, "", "")
    X, labels, _, weights = wine
    found = Moments.load(tmp_path / "m.npz")
    again = np.repeat(np.arange(len(X)), weights)
    assert found.weight == weights.sum()
    assert found.n_rows == np.count_nonzero(weights)
    np.testing.assert_allclose(found.x_mean, X[again].mean(axis=0), rtol=1e-12)
    Z = X[again] - X[again].mean(axis=0)
    np.testing.assert_allclose(found.xx, Z.T @ Z, rtol=1e-9, atol=1e-9 * np.abs(Z.T @ Z).max())
    assert found.classes is not None
    assert found.classes.tolist() == sorted(set(labels[again]))


def test_columns_may_be_named(run, wine_csv, tmp_path):
    args = ["--target", "cultivar", "--columns", "hue", "--columns", "ash"]
    assert run("stats", "build", wine_csv, *args, "-o", tmp_path / "m.npz").code == 0
    assert Moments.load(tmp_path / "m.npz").feature_names == ("hue", "ash")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)], ids=str)
def test_merged_parts_are_the_whole(run, built, whole, tmp_path, order):
    place = tmp_path / "merged.npz"
    done = run("stats", "merge", *(built[i] for i in order), "-o", place)
    assert done.code == 0, done.err
    assert done.err == f"exactk: wrote {place}: 178 rows, 13 columns, 3 classes.\n"
    assert_close(Moments.load(place), Moments.load(whole))
    args = ["-k", 4, "--format", "json"]
    one = json.loads(run("select", "--from-moments", place, *args).out)
    two = json.loads(run("select", "--from-moments", whole, *args).out)
    assert sorted(one["feature_names"]) == sorted(two["feature_names"])
    assert one["objective"] == pytest.approx(two["objective"], rel=1e-9)


def test_days_are_added_one_by_one(run, days, whole, tmp_path):
    last = None
    for number, day in enumerate(days):
        place = tmp_path / f"until{number}.npz"
        earlier = [] if last is None else ["--add-to", last]
        done = run("stats", "build", day, *BUILD, *earlier, "-o", place)
        assert done.code == 0, done.err
        last = place
    assert last is not None
    assert_close(Moments.load(last), Moments.load(whole))


def test_a_part_with_one_class_says_how(run, days, tmp_path):
    place = tmp_path / "m.npz"
    done = run("stats", "build", days[2], *BUILD, "-o", place)
    assert done.code == 2
    assert "1 class, 'third'" in done.err
    assert not place.exists()
    labels = [word for label in ("first", "second", "third") for word in ("--classes", label)]
    assert run("stats", "build", days[2], *BUILD, *labels, "-o", place).code == 0
    assert Moments.load(place).y_mean.tolist() == [0.0, 0.0, 1.0]
    done = run("stats", "build", days[2], *BUILD, *labels[:4], "-o", place)
    assert done.code == 2
    assert "'third'" in done.err
    assert "not among the classes" in done.err


@pytest.mark.parametrize(
    ("kind", "words", "labels"),
    [
        (pa.int16(), ["3", "1", "7"], [1, 3, 7]),
        (pa.float64(), ["3", "1", "7"], [1.0, 3.0, 7.0]),
        (pa.bool_(), ["true", "False"], [False, True]),
        (pa.string(), ["3", "1", "7"], ["1", "3", "7"]),
    ],
    ids=str,
)
def test_classes_are_read_as_what_the_target_holds(run, tmp_path, kind, words, labels):
    y = pa.array([labels[0], labels[1]] * 20).cast(kind)
    table = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.arange(40.0), "y": y}), table)
    given = [part for word in words for part in ("--classes", word)]
    done = run("stats", "build", table, "--target", "y", *given, "-o", tmp_path / "m.npz")
    assert done.code == 0, done.err
    found = Moments.load(tmp_path / "m.npz").classes
    assert found is not None
    assert found.tolist() == labels
    assert [type(label) for label in found.tolist()] == [type(label) for label in labels]


def test_labels_of_a_csv_are_text_where_they_were(run, tmp_path):
    days = []
    for number, labels in enumerate((["1", "A"], ["1", "02"], ["A", "1"])):
        days.append(tmp_path / f"{number}.csv")
        lines = [f"{i * 7 % 11},{labels[i % 2]}" for i in range(20)]
        days[-1].write_text("\n".join(["x,y", *lines]) + "\n")
    places = [tmp_path / f"{number}.npz" for number in range(3)]
    args = ["--target", "y", "--quiet"]
    assert run("stats", "build", days[0], *args, "-o", places[0]).code == 0
    done = run("stats", "build", days[1], *args, "--add-to", places[0], "-o", places[1])
    assert done.code == 0, done.err
    found = Moments.load(places[1])
    assert found.classes is not None
    assert found.classes.tolist() == ["02", "1", "A"]
    assert found.y_mean.tolist() == [0.25, 0.5, 0.25]
    words = ["--classes", "1", "--classes", "02", "--classes", "A"]
    assert run("stats", "build", days[1], *args, *words, "-o", places[2]).code == 0
    done = run("stats", "merge", places[0], places[2], "-o", tmp_path / "both.npz")
    assert done.code == 0, done.err
    assert_close(Moments.load(tmp_path / "both.npz"), found)
    # Whole numbers alone are numbers, and do not go with text.
    assert run("stats", "build", days[1], *args, "-o", places[2]).code == 0
    done = run("stats", "merge", places[0], places[2], "-o", tmp_path / "no.npz")
    assert done.code == 2
    assert "different kinds" in done.err


def test_classes_that_are_none(run, tmp_path):
    table = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.arange(40.0), "y": np.arange(40) % 2}), table)
    args = ["--target", "y", "-o", tmp_path / "m.npz"]
    done = run("stats", "build", table, *args, "--classes", "0", "--classes", "one")
    assert done.code == 2
    assert "--classes '0', 'one': the target holds whole numbers" in done.err
    done = run("stats", "build", table, *args, "--classes", "0")
    assert done.code == 2
    assert "two labels or more" in done.err


def test_numbers(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    columns = {f"x{j}": X[:, j] for j in range(4)} | {"y": X[:, 2] + rng.normal(size=60) / 9}
    halves = []
    for number, rows in enumerate((slice(0, 25), slice(25, 60))):
        table = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({name: values[rows] for name, values in columns.items()}), table)
        halves.append(table.with_suffix(".npz"))
        assert run("stats", "build", table, "--target", "y", "-o", halves[-1]).code == 0
    assert run("stats", "merge", *halves, "-o", tmp_path / "both.npz").code == 0
    out = run("select", "--from-moments", tmp_path / "both.npz", "-k", 1).out
    assert out.startswith("1 of 4 features for 'y' (regression, 60 rows)")
    assert "     1  x2\n" in out


# --- select ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 4, 9])
def test_select_from_moments_is_select_from_the_table(run, wine_csv, whole, k):
    one = json.loads(run("select", wine_csv, *BUILD, "-k", k, "--format", "json").out)
    two = json.loads(run("select", "--from-moments", whole, "-k", k, "--format", "json").out)
    assert two["support"] == one["support"]
    assert two["feature_names"] == one["feature_names"]
    assert two["order"] == one["order"]
    assert two["objective"] == pytest.approx(one["objective"], rel=1e-9)
    assert two["ridge"] == pytest.approx(one["ridge"])
    np.testing.assert_allclose(two["coef"], one["coef"], rtol=1e-6)
    assert (two["table"], two["moments"], two["target"]) == (None, str(whole), "cultivar")
    assert (one["table"], one["moments"]) == (str(wine_csv), None)


def test_columns_of_moments_may_be_dropped(run, wine_csv, whole):
    drop = ["--drop", "proline", "--drop", "flavanoids"]
    one = run("select", wine_csv, *BUILD, *drop, "-k", 3, "--format", "csv").out
    two = run("select", "--from-moments", whole, *drop, "-k", 3, "--format", "csv").out
    assert two == one


def test_moments_made_in_python_may_lack_names(run, tmp_path, wine):
    X, labels, _, _ = wine
    codes = np.unique(labels, return_inverse=True)[1]
    Moments.from_arrays(X, codes.astype(float)).save(tmp_path / "m.npz")
    out = run("select", "--from-moments", tmp_path / "m.npz", "-k", 2, "--ridge", 0).out
    wanted = solve(Problem.from_arrays(X, codes, task="regression"), 2)
    assert out.startswith("2 of 13 features for 'y' (regression, 178 rows)")
    for name in wanted.feature_names:
        assert f"  {name}\n" in out
    text = run("stats", "info", tmp_path / "m.npz").out
    assert "target    unnamed, regression" in text
    assert "outputs   1" in text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-k", 3], "Missing argument 'TABLE'"),
        (["{table}", "--from-moments", "{moments}", "-k", 3], "goes without 'TABLE'"),
        (["--from-moments", "{moments}", "--target", "y", "-k", 3], "goes without '--target'"),
        (["--from-moments", "{moments}", "-k", 3, "--weights", "w"], "goes without --weights"),
        (["--from-moments", "{moments}", "-k", 3, "--task", "regression"], "without --task"),
        (["--from-moments", "{moments}", "-k", 3, "--ridge", "cv"], "moments have none"),
        (["--from-moments", "{moments}", "-k", 3, "--method", "relieff"], "reads the rows"),
        (["--from-moments", "{moments}", "-k", 3, "--drop", "prolin"], "mean 'proline'?"),
        (["--from-moments", "{moments}", "-k", 3, "--output", "{moments}"], "input itself"),
        (["--from-moments", "{moments}", "-k", 14], "14"),
        (["--from-moments", "{table}", "-k", 3], "is no file of exactk moments"),
        (["--from-moments", "none.npz", "-k", 3], "does not exist"),
    ],
)
def test_mistakes_of_select(run, wine_csv, whole, args, message):
    before = whole.read_bytes()
    words = {"table": str(wine_csv), "moments": str(whole)}
    result = run("select", *(str(arg).format(**words) for arg in args))
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.startswith("exactk: ")
    assert result.err.count("\n") == 1
    assert whole.read_bytes() == before


# --- info ------------------------------------------------------------------------------------


def test_info(run, wine_csv, wine, tmp_path):
    X, labels, names, weights = wine
    rows = [[*x, 7.5, w, label] for x, w, label in zip(X, weights, labels, strict=True)]
    columns = [*names, "same", "copies", "cultivar"]
    table = pa.table({name: [row[j] for row in rows] for j, name in enumerate(columns)})
    pq.write_table(table, tmp_path / "t.parquet")
    place = tmp_path / "m.npz"
    args = ["--target", "cultivar", "--weights", "copies", "-o", place]
    assert run("stats", "build", tmp_path / "t.parquet", *args).code == 0
    facts = json.loads(run("stats", "info", place, "--format", "json").out)
    shares = {held["label"]: held["share"] for held in facts["classes"]}
    for label in set(labels):
        assert shares[label] == pytest.approx(weights[labels == label].sum() / weights.sum())
    assert facts["rows"] == np.count_nonzero(weights)
    assert facts["weight"] == weights.sum()
    assert facts["columns"] == [*names, "same"]
    assert facts["constant"] == ["same"]
    assert (facts["target"], facts["task"]) == ("cultivar", "classification")
    assert facts["bytes"] == place.stat().st_size
    assert (facts["version"], facts["exactk"]) == (1, exactk.__version__)
    assert facts["checksum_ok"] is True
    text = run("stats", "info", place).out
    assert f"rows      {np.count_nonzero(weights)} (weight {weights.sum()})" in text
    assert "columns   14: 'alcohol'," in text
    assert "constant  1: 'same'" in text
    assert f"checksum  ok, {facts['checksum']}" in text
    assert f"{shares['second']:8.2%}  second" in text


def test_info_of_a_damaged_file(run, whole):
    content = bytearray(whole.read_bytes())
    content[len(content) // 2] ^= 1
    whole.write_bytes(content)
    result = run("stats", "info", whole)
    assert (result.code, result.out) == (2, "")
    assert "damaged" in result.err
    assert result.err.count("\n") == 1


# --- mistakes --------------------------------------------------------------------------------


@pytest.fixture
def other(wine_csv, run) -> Path:
    """Moments of the same columns as numbers, and of fewer."""
    place = wine_csv.with_name("other.npz")
    args = ["--target", "hue", *NO_ID, "--drop", "cultivar", "--task", "regression"]
    assert run("stats", "build", wine_csv, *args, "-o", place).code == 0
    return place


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["build", "{table}", "-o", "{new}"], "Missing option '--target'"),
        (["build", "{table}", "--target", "cultivar"], "Missing option '-o'"),
        (["build", "-o", "{new}", "--target", "cultivar"], "Missing argument 'TABLE...'"),
        (["build", "{good}", "-o", "{table}"], "is the input itself"),
        (["build", "{folder}/w*.csv", *BUILD, "-o", "{table}"], "is the input itself"),
        (["build", "{folder}", *BUILD, "-o", "{folder}/m.npz"], "which is read"),
        (["build", "{good}", "-o", "{folder}"], "is a folder"),
        (["build", "{good}", "-o", "{folder}/no/m.npz"], "its folder does not exist"),
        (["build", "{good}", "--add-to", "{whole}", "-o", "{whole}"], "is the input itself"),
        (["build", "{good}", "--add-to", "{folder}/no.npz", "-o", "{new}"], "does not exist"),
        (["build", "{good}", "--add-to", "{table}", "-o", "{new}"], "is no file of exactk moments"),
        (
            ["build", "{good}", "--add-to", "{whole}", "--task", "regression", "-o", "{new}"],
            "--task regression does not go with",
        ),
        (
            ["build", "{good}", "--drop", "ash", "--add-to", "{whole}", "-o", "{new}"],
            "only one of the two has 'ash'",
        ),
        (["build", "{table}", "--target", "cultivr", "-o", "{new}"], "did you mean 'cultivar'?"),
        (["build", "{good}", "--target", "hue", "-o", "{new}"], "given 2 times"),
        (["build", "{good}", "--weights", "kopies", "-o", "{new}"], "did you mean 'copies'?"),
        (["merge", "{whole}", "-o", "{new}"], "two files of moments or more"),
        (["merge", "{whole}", "{whole}", "-o", "{new}"], "count twice"),
        (["merge", "{whole}", "{copy}", "-o", "{new}"], "count twice"),
        (["merge", "{whole}", "{other}", "-o", "{whole}"], "is the input itself"),
        (["merge", "{whole}", "{table}", "-o", "{new}"], "is no file of exactk moments"),
        (["merge", "{whole}", "{other}", "-o", "{new}"], "only one of the two has 'hue'"),
        (["info", "{table}"], "is no file of exactk moments"),
        (["info"], "Missing argument 'FILE'"),
    ],
)
def test_a_mistake_is_one_sentence(run, wine_csv, whole, other, args, message):
    copy = shutil.copy(whole, wine_csv.with_name("copy.npz"))
    words = {
        "table": wine_csv,
        "whole": whole,
        "copy": copy,
        "other": other,
        "folder": wine_csv.parent,
        "new": wine_csv.with_name("new.npz"),
    }
    full: list[str] = []
    for arg in args:
        full += [str(wine_csv), *BUILD] if arg == "{good}" else [arg.format(**words)]
    before = {path.name: path.read_bytes() for path in wine_csv.parent.iterdir()}
    result = run("stats", *full)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.startswith("exactk: ")
    assert result.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in wine_csv.parent.iterdir()} == before


def test_classes_of_two_kinds_are_refused_before_the_pass(run, whole, tmp_path, wine, monkeypatch):
    X, labels, names, _ = wine
    codes = np.unique(labels, return_inverse=True)[1]
    table = tmp_path / "codes.parquet"
    columns = dict(zip(names, X.T, strict=True))
    pq.write_table(pa.table({**columns, "cultivar": codes}), table)
    place = tmp_path / "m.npz"
    args = [table, "--target", "cultivar"]
    with monkeypatch.context() as patch:
        patch.setattr("exactk.cli.stats._pass", None)
        done = run("stats", "build", *args, "--add-to", whole, "-o", place)
    assert done.code == 2
    assert "holds numbers, and the classes of" in done.err
    assert run("stats", "build", *args, "-o", place).code == 0
    done = run("stats", "merge", whole, place, "-o", tmp_path / "both.npz")
    assert done.code == 2
    assert "do not go together: labels of different kinds" in done.err
    assert run("stats", "build", *args, "--task", "regression", "-o", place).code == 0
    done = run("stats", "merge", whole, place, "-o", tmp_path / "both.npz")
    assert "classes cannot merge with moments of numbers" in done.err
    assert not (tmp_path / "both.npz").exists()


def test_a_flaw_in_the_table_leaves_nothing(run, wine_csv, whole, tmp_path):
    text = wine_csv.read_text().splitlines()
    cells = text[150].split(",")
    cells[5] = "nan"
    text[150] = ",".join(cells)
    table = tmp_path / "flawed.csv"
    table.write_text("\n".join(text) + "\n")
    before = whole.read_bytes()
    done = run("stats", "build", table, *BUILD, "-o", whole)
    assert done.code == 2
    assert "flawed.csv" in done.err
    assert "'magnesium'" in done.err
    assert whole.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


# --- a full disk, and Ctrl-C -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 2, "cannot be written: No space left"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
    ],
    ids=["full", "ctrl-c"],
)
@pytest.mark.parametrize("command", ["build", "merge", "select"])
def test_output_that_fails(run, wine_csv, built, monkeypatch, command, error, code, words):
    def fail(*args):
        raise error

    place = wine_csv.with_name("out")
    place.write_text("old")
    before = sorted(path.name for path in wine_csv.parent.iterdir())
    monkeypatch.setattr(os, "fsync", fail)
    args = {
        "build": ["stats", "build", wine_csv, *BUILD, "-o", place],
        "merge": ["stats", "merge", *built, "-o", place],
        "select": ["select", wine_csv, *BUILD, "-k", 2, "--output", place],
    }[command]
    done = run(*args)
    assert done.code == code
    assert words in done.err
    assert place.read_text() == "old"
    assert sorted(path.name for path in wine_csv.parent.iterdir()) == before


def test_ctrl_c_during_the_pass(run, wine_csv, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("exactk.streaming.moments.MomentsReducer.close", interrupt)
    done = run("stats", "build", wine_csv, *BUILD, "-o", tmp_path / "m.npz")
    assert done.code == 130
    assert "interrupted" in done.err
    assert not (tmp_path / "m.npz").exists()


def test_a_process_whose_files_may_not_grow(wine_csv):
    pytest.importorskip("resource")
    place = wine_csv.with_name("m.npz")
    args = ["stats", "build", str(wine_csv), *BUILD, "-o", str(place)]
    code = (
        "import resource\n"
        "from exactk.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        f"main({args!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir(wine_csv.parent) == [wine_csv.name]


def test_ctrl_c_while_the_file_grows(wine_csv):
    place = wine_csv.with_name("m.npz")
    args = ["stats", "build", str(wine_csv), *BUILD, "-o", str(place)]
    code = (
        "import signal, time\n"
        # Ignored in what a script starts in the background, and so in all that it starts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import exactk.data.archive\n"
        "from exactk.cli import main\n"
        "strips = exactk.data.archive._bytes_of\n"
        "def slow(array, half):\n"
        "    for part in strips(array, half):\n"
        "        yield part\n"
        "        time.sleep(60)\n"
        "exactk.data.archive._bytes_of = slow\n"
        f"main({args!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not list(wine_csv.parent.glob(".exactk-*.part")) and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.strip() == "exactk: interrupted; nothing was written."
    assert os.listdir(wine_csv.parent) == [wine_csv.name]


def test_streams_and_files_give_the_same_moments(whole, wine):
    from tests.arrays import ArrayStream

    X, labels, names, _ = wine
    stream = ArrayStream(X, labels, n_parts=5)
    stream.feature_names, stream.target = tuple(names), "cultivar"
    assert_close(stream_moments(stream), Moments.load(whole))


def test_lists_are_split_as_in_select(run, wine_csv, tmp_path):
    args = ["stats", "build", wine_csv, "--target", "cultivar", "-o", tmp_path / "m.npz"]
    lists = ["--columns", "proline, ash", "--columns", "hue", "--classes", "first,second,third"]
    done = run(*args, *lists)
    assert done.code == 0, done.err
    found = Moments.load(tmp_path / "m.npz")
    assert found.feature_names == ("proline", "ash", "hue")
    assert found.classes.tolist() == ["first", "second", "third"]
    assert "names nothing" in run(*args, "--columns", ",").err


def test_the_memory_limit_of_a_build(run, wine_csv, tmp_path):
    args = ["stats", "build", wine_csv, *BUILD, "-o", tmp_path / "m.npz", "--memory-limit"]
    refused = run(*args, "1K")
    assert refused.code == 2
    assert "13 columns need 1,352 bytes" in refused.err
    assert "more than --memory-limit (1,024): raise it, name fewer columns" in refused.err
    assert not (tmp_path / "m.npz").exists()
    assert run(*args, "2kB").code == 0


def test_moments_without_the_columns_that_are_dropped(run, whole):
    names = Moments.load(whole).feature_names
    drops = [word for name in names for word in ("--drop", name)]
    none = run("select", "--from-moments", whole, "-k", 1, *drops)
    assert (none.code, none.out) == (2, "")
    assert "has no feature columns besides those that are dropped" in none.err
    both = run("select", "--from-moments", whole, "-k", 1, "--columns", "ash", "--drop", "ash")
    assert both.code == 2
    assert run("select", "--from-moments", whole, "-k", 1, *drops[2:]).code == 0
