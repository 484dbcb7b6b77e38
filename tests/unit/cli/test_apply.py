"""``exactk apply``: the selected columns of a table, of every kind and size."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from exactk import SavedSelection, TopKClassifier, TopKRegressor, TopKSelector
from exactk.streaming import columns as reading

WRITERS = {
    "csv": pyarrow.csv.write_csv,
    "parquet": pq.write_table,
    "feather": pyarrow.feather.write_feather,
}


@pytest.fixture
def frame(wine_csv) -> pa.Table:
    return pyarrow.csv.read_csv(wine_csv)


def export(path, table: pa.Table, y, **options):
    TopKSelector(**options).fit(table, y).export(path)
    return path


@pytest.fixture
def selection(frame, tmp_path):
    """Three of the columns of the wine table."""
    features = frame.drop_columns(["id", "copies", "cultivar"])
    return export(tmp_path / "s.json", features, frame["cultivar"].to_pylist(), k=3)


@pytest.fixture
def names(selection) -> tuple[str, ...]:
    return SavedSelection.load(selection).names


def read(path) -> pa.Table:
    if str(path).endswith((".arrow", ".feather", ".ipc")):
        return pyarrow.feather.read_table(path)
    if str(path).endswith((".parquet", ".pq")):
        return pq.read_table(path)
    options = pyarrow.csv.ParseOptions(delimiter="\t" if ".tsv" in str(path) else ",")
    return pyarrow.csv.read_csv(path, parse_options=options)


def test_csv_is_printed_as_it_is(run, selection, names, wine_csv):
    head, *lines = [line.split(",") for line in wine_csv.read_text().splitlines()]
    places = [head.index(name) for name in ("id", *names)]
    done = run("apply", selection, wine_csv, "--keep", f"id,{names[0]}")
    assert (done.code, done.err) == (0, "")
    expected = [",".join(line[j] for j in places) for line in (head, *lines)]
    assert done.out.splitlines() == expected


def test_values_of_text_are_copied(run, selection, names, tmp_path):
    table = tmp_path / "odd.csv"
    rows = ['007,1.50,NA,"a, ""b""\nc"', "008,,0x1,é"]
    table.write_text("\n".join([",".join(["id", *names[1:], names[0]]), *rows]) + "\n")
    done = run("apply", selection, table, "--keep", "id")
    assert done.code == 0, done.err
    shown = [",".join(["id", *names]), '007,"a, ""b""\nc",1.50,NA', "008,é,,0x1"]
    assert done.out == "\n".join(shown) + "\n"


@pytest.mark.parametrize(
    ("source", "suffix"),
    [
        ("csv", ".csv"), ("parquet", ".tsv"), ("feather", ".csv.gz"), ("csv", ".parquet"),
        ("parquet", ".pq"), ("feather", ".arrow"), ("csv", ".feather"), ("parquet", ".ipc"),
    ],
)  # fmt: skip
def test_every_format_to_every_format(run, selection, names, frame, tmp_path, suffix, source):
    table, out = tmp_path / f"again.{source}", tmp_path / f"small{suffix}"
    WRITERS[source](frame, table)
    keep = ["--keep", "id,copies", "--keep", "cultivar"]
    done = run("apply", selection, table, *keep, "--predict", "-o", out)
    assert (done.code, done.out, done.err) == (0, "", "")
    small = read(out)
    assert small.column_names == ["id", "copies", "cultivar", *names, "prediction"]
    for name in small.column_names[:-1]:
        assert small[name].to_pylist() == frame[name].to_pylist()
    expected = SavedSelection.load(selection).predict(frame).tolist()
    assert small["prediction"].to_pylist() == expected
    assert small["copies"].type == pa.int64()
    if suffix == ".csv.gz":
        assert gzip.decompress(out.read_bytes()).startswith(b"id,copies,")


def test_a_folder_is_read_in_batches(run, selection, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "FEWEST_ROWS", 7)
    monkeypatch.setattr(reading, "MOST_ROWS", 7)
    for year, part in ((2023, frame[:100]), (2024, frame[100:])):
        folder = tmp_path / "parts" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(part, folder / "a.parquet", row_group_size=30)
    out = tmp_path / "small.parquet"
    done = run("apply", selection, tmp_path / "parts", "--keep", "year,id", "--predict", "-o", out)
    assert done.code == 0, done.err
    small = read(out)
    assert pq.ParquetFile(out).num_row_groups == -(-100 // 7) + -(-78 // 7)
    assert small["id"].to_pylist() == frame["id"].to_pylist()
    assert small["year"].to_pylist() == [2023] * 100 + [2024] * 78
    expected = SavedSelection.load(selection).predict(frame).tolist()
    assert small["prediction"].to_pylist() == expected


def test_a_column_whose_later_values_have_another_type(
    run, selection, names, tmp_path, monkeypatch
):
    """Types are guessed from the first rows."""
    monkeypatch.setattr("exactk.streaming.csv.BLOCK_BYTES", 2**12)
    n = 2000
    tag = ["1"] * (n - 1) + ["none"]
    share = ["3"] * (n - 1) + ["0.5"]
    lines = [f"{i},2,{share[i]},{tag[i]},{share[i]}" for i in range(n)]
    table, out = tmp_path / "long.csv", tmp_path / "small.parquet"
    table.write_text("\n".join([",".join([*names, "tag", "share"]), *lines]) + "\n")
    done = run("apply", selection, table, "--keep", "tag,share", "-o", out)
    assert done.code == 0, done.err
    small = read(out)
    assert small["tag"].to_pylist() == tag
    assert small["share"].to_pylist() == [float(word) for word in share]
    assert small[names[2]].to_pylist() == [float(word) for word in share]
    assert small[names[0]].to_pylist() == list(range(n))
    table.write_text(table.read_text().replace("0.5,none", "oops,none"))
    out.unlink()
    done = run("apply", selection, table, "-o", out)
    assert done.code == 2
    assert repr(names[2]) in done.err
    assert "'oops'" in done.err
    # Line 1 is the header.
    assert str(n + 1) in done.err
    assert not out.exists()


def test_whole_numbers_of_several_widths_stay_whole(run, selection, frame, tmp_path):
    folder, out = tmp_path / "parts", tmp_path / "small.parquet"
    folder.mkdir()
    numbers = {
        "a": pa.array(range(len(frame)), pa.int32()),
        "b": pa.array([2**60 + i for i in range(len(frame))], pa.int64()),
    }
    at = frame.column_names.index("id")
    for name, column in numbers.items():
        pq.write_table(frame.set_column(at, "id", column), folder / f"{name}.parquet")
    done = run("apply", selection, folder, "--keep", "id", "-o", out)
    assert done.code == 0, done.err
    assert read(out)["id"].to_pylist() == [n for part in numbers.values() for n in part.to_pylist()]


def test_columns_that_are_not_there(run, selection, names, frame, tmp_path):
    less, whole, both = tmp_path / "less.parquet", tmp_path / "whole.parquet", tmp_path / "both"
    pq.write_table(frame.drop_columns([names[0], names[2]]), less)
    done = run("apply", selection, less)
    assert (done.code, done.out) == (2, "")
    assert f"{names[0]!r}, {names[2]!r}" in done.err
    pq.write_table(frame, whole)
    done = run("apply", selection, whole, "--keep", "copis")
    assert done.code == 2
    assert "did you mean 'copies'?" in done.err
    both.mkdir()
    pq.write_table(frame, both / "a.parquet")
    pq.write_table(frame.drop_columns([names[1]]), both / "b.parquet")
    done = run("apply", selection, both)
    assert done.code == 2
    assert "b.parquet'" in done.err
    assert repr(names[1]) in done.err


def test_wrong_files_and_places(run, selection, wine_csv, tmp_path):
    before = wine_csv.read_bytes(), selection.read_bytes()
    for args, words in (
        ([selection, wine_csv, "-o", wine_csv], "also an input"),
        ([selection, wine_csv, "-o", selection], ".parquet"),
        ([selection, wine_csv, "-o", tmp_path / "a" / "b.csv"], "folder does not exist"),
        ([wine_csv, wine_csv], "cannot be read"),
        ([tmp_path / "none.json", wine_csv], "none.json"),
        ([selection, tmp_path / "none.csv"], "does not exist"),
        ([selection, tmp_path / "cells.h5ad"], "adata[:, list("),
        ([selection, wine_csv, "--keep", ","], "--keep"),
    ):
        done = run("apply", *args)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
        assert done.err.count("\n") == 1
    assert (wine_csv.read_bytes(), selection.read_bytes()) == before


def test_a_column_called_prediction_is_not_hidden(run, selection, frame, tmp_path):
    table = tmp_path / "t.parquet"
    pq.write_table(frame.append_column("prediction", frame["id"]), table)
    done = run("apply", selection, table, "--keep", "prediction", "--predict")
    assert done.code == 2
    assert "--predict adds a column 'prediction'" in done.err
    assert run("apply", selection, table, "--predict").code == 0


@pytest.mark.parametrize(("suffix", "place"), [("csv", "line 6"), ("parquet", "row 4")])
def test_a_missing_value_cannot_be_predicted_from(
    run, selection, names, frame, tmp_path, suffix, place
):
    values = frame[names[1]].to_pylist()
    values[4] = None
    at = frame.column_names.index(names[1])
    table, out = tmp_path / f"t.{suffix}", tmp_path / "out.csv"
    WRITERS[suffix](frame.set_column(at, names[1], pa.array(values)), table)
    done = run("apply", selection, table, "--predict", "-o", out)
    assert done.code == 2
    assert names[1] in done.err
    assert place in done.err
    assert not out.exists()
    # Without predictions they may be missing.
    assert run("apply", selection, table, "-o", out).code == 0
    assert read(out)[names[1]].null_count == 1


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_text_truth_and_numbers(run, tmp_path, suffix):
    rng = np.random.default_rng(3)
    n = 120
    table = pa.table({
        "colour": rng.choice(["red", "blue", "white"], n),
        "on": rng.random(n) < 0.5,
        "size": rng.normal(size=n),
        "noise": rng.normal(size=n),
    })  # fmt: skip
    colour, on, size = (
        table[name].to_numpy(zero_copy_only=False) for name in ("colour", "on", "size")
    )
    y = 3.0 * (colour == "red") + 4.0 * on + 2.0 * size
    file, out = tmp_path / f"t.{suffix}", tmp_path / "out.csv"
    selection = export(tmp_path / "s.json", table, y, k=3, ridge=0.0)
    WRITERS[suffix](table, file)
    done = run("apply", selection, file, "--predict", "-o", out)
    assert done.code == 0, done.err
    assert read(out).column_names == ["colour", "on", "size", "prediction"]
    np.testing.assert_allclose(read(out)["prediction"].to_numpy(), y, atol=1e-9)
    WRITERS[suffix](table.set_column(0, "colour", pa.array(["green"] * n)), file)
    done = run("apply", selection, file, "--predict")
    assert done.code == 2
    assert "'green'" in done.err
    assert ("line 2 of" if suffix == "csv" else "row 0, counted from 0,") in done.err


def test_counts_several_outputs_and_labels_of_every_type(run, tmp_path):
    rng = np.random.default_rng(2)
    X = pa.table({name: rng.normal(size=80) for name in "abc"})
    values = np.column_stack([X[name].to_numpy() for name in "abc"])
    table = tmp_path / "t.parquet"
    pq.write_table(X, table)
    targets = {
        "counts": (TopKRegressor(k=2, loss="poisson"), rng.poisson(np.exp(values[:, 0]))),
        "several": (TopKRegressor(k=2), values[:, :2] + 1.0),
        "truth": (TopKClassifier(k=1), values[:, 1] > 0),
        "whole": (TopKClassifier(k=1, loss="squared"), np.where(values[:, 2] > 0, 7, -3)),
    }
    for name, (model, y) in targets.items():
        selection, out = tmp_path / f"{name}.json", tmp_path / f"{name}.parquet"
        model.fit(X, y).export(selection)
        done = run("apply", selection, table, "--predict", "-o", out)
        assert done.code == 0, done.err
        small, expected = read(out), model.predict(X)
        if name == "several":
            found = np.column_stack([small[f"prediction_{i}"].to_numpy() for i in range(2)])
        else:
            found = small["prediction"].to_numpy(zero_copy_only=False)
        np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-9)
        kinds = {"truth": pa.bool_(), "whole": pa.int64()}
        assert small.schema.field(small.num_columns - 1).type == kinds.get(name, pa.float64())


def test_a_selection_without_names_uses_positions(run, wine, tmp_path):
    X, labels, names, _ = wine
    saved = TopKSelector(k=3).fit(X, labels).export(tmp_path / "s.json")
    table, narrow = tmp_path / "t.parquet", tmp_path / "u.parquet"
    pq.write_table(pa.table(dict(zip(names, X.T, strict=True))), table)
    done = run("apply", tmp_path / "s.json", table, "--predict")
    assert done.code == 0, done.err
    selected = [names[feature.index] for feature in saved.features]
    assert done.out.splitlines()[0] == ",".join([*selected, "prediction"])
    found = [line.rpartition(",")[2] for line in done.out.splitlines()[1:]]
    assert found == saved.predict(X).tolist()
    pq.write_table(pa.table(dict(zip(names[:5], X.T[:5], strict=True))), narrow)
    done = run("apply", tmp_path / "s.json", narrow)
    assert done.code == 2
    assert "5 columns" in done.err
    assert "13" in done.err


def test_what_csv_cannot_hold(run, selection, frame, tmp_path):
    lists = pa.array([[1, 2]] * frame.num_rows)
    table, out = tmp_path / "t.parquet", tmp_path / "out.csv"
    pq.write_table(frame.append_column("lists", lists), table)
    done = run("apply", selection, table, "--keep", "lists", "-o", out)
    assert done.code == 2
    assert "'lists' is list" in done.err
    assert not out.exists()
    out = tmp_path / "out.arrow"
    assert run("apply", selection, table, "--keep", "lists", "-o", out).code == 0
    assert read(out)["lists"].to_pylist() == lists.to_pylist()


def test_a_table_without_rows(run, selection, names, frame, tmp_path):
    pq.write_table(frame[:0], tmp_path / "t.parquet")
    done = run("apply", selection, tmp_path / "t.parquet", "--predict")
    assert done.code == 0, done.err
    assert done.out == ",".join([*names, "prediction"]) + "\n"


def test_encoded_columns_and_decimals(run, selection, names, frame, tmp_path):
    """Batches of encoded text come with their own dictionaries."""
    at = frame.column_names.index("cultivar")
    encoded = pa.concat_tables(
        part.set_column(at, "cultivar", part["cultivar"].dictionary_encode())
        for part in (frame[:90], frame[90:])
    )
    exact = frame[names[0]].cast(pa.decimal128(9, 4))
    encoded = encoded.set_column(frame.column_names.index(names[0]), names[0], exact)
    table, out = tmp_path / "t.parquet", tmp_path / "out.arrow"
    pq.write_table(encoded, table, row_group_size=40)
    done = run("apply", selection, table, "--keep", "cultivar", "--predict", "-o", out)
    assert done.code == 0, done.err
    small = read(out)
    assert small["cultivar"].to_pylist() == frame["cultivar"].to_pylist()
    assert small[names[0]].type == exact.type
    expected = SavedSelection.load(selection).predict(frame).tolist()
    assert small["prediction"].to_pylist() == expected


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow"])
def test_ctrl_c_leaves_the_old_file(run, selection, wine_csv, tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(reading, "FEWEST_ROWS", 50)
    monkeypatch.setattr(reading, "MOST_ROWS", 50)
    whole, calls = SavedSelection.predict, []

    def stopped(self: SavedSelection, table: object):
        calls.append(table)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(self, table)

    monkeypatch.setattr(SavedSelection, "predict", stopped)
    out = tmp_path / f"out{suffix}"
    out.write_text("old")
    before = sorted(tmp_path.iterdir())
    done = run("apply", selection, wine_csv, "--predict", "-o", out)
    assert (done.code, len(calls)) == (130, 3)
    assert out.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_control_characters_in_names_and_values_are_kept(run, tmp_path, source):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    frame = pa.table({"a\rb": x[:, 0], "c\nd": x[:, 1], "note": ["x\ry", "\r"] * 20})
    table, out, again = (tmp_path / name for name in (f"t.{source}", "out.csv", "again.csv"))
    WRITERS[source](frame, table)
    selection = export(tmp_path / "s.json", frame.drop_columns(["note"]), x.sum(axis=1), k=2)
    assert run("apply", selection, table, "--keep", "note", "-o", out).code == 0
    assert read(out).column_names == ["note", "a\rb", "c\nd"]
    assert read(out)["note"].to_pylist() == frame["note"].to_pylist()
    assert run("apply", selection, out, "--keep", "note", "-o", again).code == 0
    assert again.read_bytes() == out.read_bytes()
    red = pa.table({"red\x1b[31m": x[:, 0]})
    pq.write_table(red, tmp_path / "red.parquet")
    selection = export(tmp_path / "red.json", red, x[:, 0], k=1)
    shown = run("apply", selection, tmp_path / "red.parquet").out
    assert shown.splitlines()[0] == "red\x1b[31m"


def test_a_prediction_that_is_too_large(run, selection, names, frame, tmp_path):
    for at, name in enumerate(names):
        values = frame[name].to_numpy().astype(float).copy()
        # Of both signs: added one after the other they would be infinite, and then NaN.
        values[5] = (-1) ** at * 1.7e308
        frame = frame.set_column(frame.column_names.index(name), name, pa.array(values))
    values = SavedSelection.load(selection).to_dict()
    for at, term in enumerate(values["fit"]["terms"]):
        term["coef"] = [(-1) ** at * 10.0, 0.0, 1.0]
    SavedSelection.from_dict(values).save(tmp_path / "steep.json")
    pq.write_table(frame, tmp_path / "large.parquet")
    done = run("apply", tmp_path / "steep.json", tmp_path / "large.parquet", "--predict")
    assert done.code == 2
    assert "row 5 is too large" in done.err
    assert "Warning" not in done.err


def test_a_wrong_word_is_named_with_its_line(run, tmp_path):
    rng = np.random.default_rng(0)
    flag, x = rng.integers(0, 2, 40).astype(bool), rng.normal(size=40)
    selection = export(tmp_path / "s.json", pa.table({"flag": flag, "x": x}), 2.0 * flag + x, k=2)
    bad = tmp_path / "bad.csv"
    truths = ["True", "false", "true", "False", "TRUE", "maybe"]
    bad.write_text("flag,x\n" + "".join(f"{word},1.5\n" for word in truths))
    done = run("apply", selection, bad, "--predict")
    assert done.code == 2
    assert "'flag' has 'maybe' in line 7" in done.err
    assert "not true or false" in done.err
    bad.write_text("flag,x\n" + "true,1.5\n" * 3 + "true,high\nfalse,2\n")
    done = run("apply", selection, bad, "--predict")
    assert "'x' has 'high' in line 5" in done.err
    assert "not a number" in done.err


def test_a_full_disk(run, selection, wine_csv, tmp_path, monkeypatch):
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device", str(next(tmp_path.glob(".*.part"))))

    monkeypatch.setattr("os.replace", no_space)
    out = tmp_path / "out.csv"
    done = run("apply", selection, wine_csv, "-o", out)
    assert done.code == 2
    assert repr(str(out)) in done.err
    assert "No space left on device" in done.err
    assert done.err.count("\n") == 1
    assert not list(tmp_path.glob(".*.part"))
