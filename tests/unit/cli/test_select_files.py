"""``exactk select`` on folders, patterns and large files: passed over, with the same answer."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import click
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from exactk.cli import tables
from exactk.cli.options import byte_count
from exactk.cli.select import select
from exactk.cli.tables import is_streamed, labels_of
from exactk.data.files import read_table


@pytest.fixture
def parquet(wine_csv, tmp_path):
    """The table of `wine_csv` without its names, whole and as a folder of Parquet."""
    table = read_table(wine_csv).drop_columns("id")
    folder = tmp_path / "wine"
    folder.mkdir()
    for start in range(0, len(table), 50):
        pq.write_table(table.slice(start, 50), folder / f"part-{start:03d}.parquet")
    (folder / "_SUCCESS").touch()
    return table, folder


def support(result) -> list[str]:
    assert result.code == 0, result.err
    return json.loads(result.out)["feature_names"]


def test_a_folder_a_pattern_and_a_file_give_one_answer(run, wine_csv, parquet, tmp_path):
    table, folder = parquet
    feather.write_feather(table, tmp_path / "wine.feather")
    args = ["--target", "cultivar", "-k", 4, "--weights", "copies", "--format", "json"]
    wanted = run("select", wine_csv, *args, "--drop", "id")
    for place in (folder, f"{folder}/part-*.parquet", tmp_path / "wine.feather"):
        found = run("select", place, *args)
        assert support(found) == support(wanted)
        content = json.loads(found.out)
        assert content["table"] == str(place)
        assert content["n_rows"] == json.loads(wanted.out)["n_rows"]
        assert content["objective"] == pytest.approx(json.loads(wanted.out)["objective"])


def test_a_file_is_passed_over_if_it_is_large(run, wine_csv, parquet, tmp_path, monkeypatch):
    table, _ = parquet
    paths = [tmp_path / "w.parquet", tmp_path / "w.arrow", wine_csv]
    pq.write_table(table, paths[0])
    feather.write_feather(table, paths[1])
    wanted = run("select", paths[0], "--target", "cultivar", "-k", 3, "--format", "json")

    def fail(path):
        raise AssertionError("the table was read")

    assert not any(is_streamed(str(path)) for path in paths)
    monkeypatch.setattr(tables, "LARGE_TABLE", 8 * table.num_rows * table.num_columns - 1)
    assert is_streamed(str(paths[0]))
    monkeypatch.setattr(tables, "LARGE_TABLE", 1_000)
    monkeypatch.setattr("exactk.data.files.read_table", fail)
    for path in paths:
        args = ["--target", "cultivar", "-k", 3, "--format", "json"]
        drop = ["--drop", "id"] if path == wine_csv else []
        assert support(run("select", path, *args, *drop)) == support(wanted)


def test_a_small_file_of_a_large_table_is_passed_over(tmp_path):
    zeros = pa.table({f"x{j}": pa.array(np.zeros(350_000)) for j in range(100)})
    path = tmp_path / "zeros.parquet"
    pq.write_table(zeros, path, compression="zstd")
    assert 100 * path.stat().st_size < tables.LARGE_TABLE < 8 * 100 * 350_000
    assert is_streamed(str(path))


def test_rows_that_a_file_does_not_count_are_passed_over(run, parquet, tmp_path):
    table, folder = parquet
    path = tmp_path / "stream.arrow"
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)
    assert is_streamed(str(path))
    args = ["--target", "cultivar", "-k", 3, "--format", "json"]
    assert support(run("select", path, *args)) == support(run("select", folder, *args))


def test_text_is_taken_for_as_many_numbers_as_it_can_hold(tmp_path, monkeypatch):
    text = "a,y\n" + "0,1\n" * 5_000
    plain, packed = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        monkeypatch.setattr(tables, "LARGE_TABLE", 8 * 2 * 5_000 - 1)
        assert is_streamed(str(path))
        monkeypatch.setattr(tables, "LARGE_TABLE", 4 * len(text))
        assert not is_streamed(str(path))


def test_the_memory_limit_is_an_option(run, wine_csv, parquet, tmp_path):
    _, folder = parquet
    args = ["--target", "cultivar", "-k", 3, "--format", "json"]
    refused = run("select", folder, *args, "--memory-limit", "1K")
    assert (refused.code, refused.out) == (2, "")
    assert "14 columns need 1,568 bytes for their products" in refused.err
    assert "more than --memory-limit (1,024): raise it, name fewer columns" in refused.err
    assert "memory_limit" not in refused.err
    kept = tmp_path / "answer.json"
    assert run("select", folder, *args, "--memory-limit", "1.6K", "-o", kept).code == 0
    found = json.loads(kept.read_text())["feature_names"]
    assert found == support(run("select", folder, *args))
    rows = [*args, "--method", "relieff", "--memory-limit"]
    refused = run("select", folder, *rows, "8K")
    assert "bytes in memory, more than --memory-limit (8,192): raise it, or name" in refused.err
    assert support(run("select", folder, *rows, "1M"))
    held = run("select", wine_csv, *args, "--drop", "id", "--method", "rfs", "--memory-limit", 100)
    assert held.code == 2
    assert "more than --memory-limit 100; raise --memory-limit, or use" in held.err
    context, parameter = click.Context(select), select.params[0]
    for text, size in (("0", 0), ("4G", 2**32), ("500M", 500 * 2**20), ("1.5 kiB", 1536)):
        assert byte_count(context, parameter, text) == size
    for word in ("4X", "-1", "much", ""):
        wrong = run("select", folder, *args, "--memory-limit", word)
        assert wrong.code == 2
        assert "is not a number of bytes, such as 4G or 500M" in wrong.err


def test_columns_are_named(run, wine_csv, parquet):
    _, folder = parquet
    args = ["--target", "cultivar", "-k", 2, "--format", "json"]
    for place in (wine_csv, folder):
        found = run("select", place, *args, "--columns", "proline, ash", "--columns", "hue")
        assert set(support(found)) <= {"proline", "ash", "hue"}
        assert json.loads(found.out)["n_features"] == 3
        assert json.loads(found.out)["columns"] == ["proline", "ash", "hue"]
        wrong = run("select", place, *args, "--columns", "prolin")
        assert wrong.code == 2
        assert "feature column 'prolin' is not in the table; did you mean 'proline'?" in wrong.err


def test_classes_that_are_known(run, wine_csv, parquet):
    table, folder = parquet
    labels = sorted(set(map(str, table["cultivar"].to_pylist())))
    for place, drop in ((wine_csv, ["--drop", "id"]), (folder, [])):
        args = ["select", place, "--target", "cultivar", "-k", 2, "--format", "json", *drop]
        assert support(run(*args, "--classes", ",".join(labels))) == support(run(*args))
        wrong = run(*args, "--classes", ",".join(labels[1:]))
        assert wrong.code == 2
        assert "which is not among the classes given" in wrong.err
        twice = run(*args, "--classes", ",".join([*labels, labels[0]]))
        assert twice.code == 2
        assert f"'--classes': {labels[0]!r} named more than once" in twice.err
    assert labels_of(["true", "False"], "bool") == [True, False]


@pytest.mark.parametrize("method", ["exchange", "rfs", "relieff"])
@pytest.mark.parametrize("ridge", ["auto", "cv"])
def test_methods_on_a_folder(run, wine_csv, parquet, method, ridge):
    _, folder = parquet
    args = ["--target", "cultivar", "-k", 3, "--method", method, "--ridge", ridge]
    args += ["--format", "json", "--quiet", "--seed", 1]
    if method == "relieff":
        args = args[:-2]
    wanted = run("select", wine_csv, *args, "--drop", "id")
    assert support(run("select", folder, *args)) == support(wanted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns("ash"), "part-999.parquet' lacks the column 'ash' of"),
        (
            lambda t: t.set_column(0, t.column_names[0], t.column(0).cast(pa.string())),
            "is string in",
        ),
        (
            lambda t: t.set_column(
                t.column_names.index("ash"),
                "ash",
                pa.array([float("nan")] * len(t)),
            ),
            "column 'ash' is missing or infinite in",
        ),
        (
            lambda t: t.set_column(
                t.column_names.index("ash"), "ash", pa.nulls(len(t), pa.float64())
            ),
            "column 'ash' is missing in",
        ),
    ],
    ids=["columns", "types", "nan", "null"],
)
def test_one_bad_file_is_one_sentence(run, parquet, tmp_path, change, message):
    table, folder = parquet
    pq.write_table(change(table), folder / "part-999.parquet")
    output = tmp_path / "answer.json"
    result = run("select", folder, "--target", "cultivar", "-k", 2, "--output", output)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert "part-999.parquet" in result.err
    assert result.err.count("\n") == 1
    assert not output.exists()


def test_a_damaged_file_and_an_empty_folder(run, parquet, tmp_path):
    _, folder = parquet
    last = sorted(folder.glob("part*"))[-1]
    last.write_bytes(last.read_bytes()[:-100])
    result = run("select", folder, "--target", "cultivar", "-k", 2)
    assert result.code == 2
    assert f"{last.name}' cannot be read as Parquet" in result.err
    (tmp_path / "none").mkdir()
    assert "holds no table" in run("select", tmp_path / "none", "--target", "y", "-k", 2).err
    assert "no file matches" in run("select", f"{tmp_path}/x*", "--target", "y", "-k", 2).err


def test_an_interrupt_while_reading_leaves_nothing(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "t"
    folder.mkdir()
    columns = dict(zip([f"x{j}" for j in range(60)], rng.normal(size=(60, 100_000)), strict=True))
    table = pa.table({**columns, "y": rng.normal(size=100_000)})
    pq.write_table(table, folder / "0.parquet", row_group_size=5_000, compression="none")
    for i in range(1, 100):
        os.link(folder / "0.parquet", folder / f"{i}.parquet")
    out = tmp_path / "out"
    out.mkdir()
    args = ["select", str(folder), "--target", "y", "-k", "3", "--output", str(out / "a.json")]
    code = (
        "import signal\n"
        # Ignored in what a script starts in the background, and so in all that it starts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import exactk.streaming.parallel_fold as lanes\n"
        "told = lanes.fold_windows\n"
        "def tell(*args, **options):\n"
        "    shown = options['on_rows']\n"
        "    def show(done, total):\n"
        "        print('reading', flush=True)\n"
        "        shown(done, total)\n"
        "    options['on_rows'] = show\n"
        "    return told(*args, **options)\n"
        "import exactk.streaming.files as files\n"
        "files.fold_windows = tell\n"
        "from exactk.cli import main\n"
        f"main({args!r})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.endswith("exactk: interrupted; nothing was written.\n")
    assert "Traceback" not in err
    assert time.monotonic() - sent < 10
    assert list(out.iterdir()) == []


def test_a_pattern_without_quotes_is_guessed(run, parquet):
    _, folder = parquet
    result = run("select", folder, folder, "--target", "cultivar", "-k", 3)
    assert result.code == 2
    assert "Put the pattern in quotes" in result.err
