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
    if path.suffix in (".arrow", ".feather", ".ipc"):
        return pyarrow.feather.read_table(path)
    if path.suffix in (".parquet", ".pq"):
        return pq.read_table(path)
    options = pyarrow.csv.ParseOptions(delimiter="\t" if ".tsv" in path.name else ",")
    return pyarrow.csv.read_csv(path, parse_options=options)


@pytest.fixture
def apply(run):
    """Write a table to a file, and return what is in it."""

    def call(selection, table, *args, into) -> pa.Table:
        done = run("apply", selection, table, *args, "-o", into)
        assert (done.code, done.out, done.err) == (0, "", f"Note: wrote {into}.\n")
        return read(into)

    return call


# --- columns ---------------------------------------------------------------------------------


def test_csv_is_printed_as_it_is(run, selection, names, tmp_path):
    table = tmp_path / "odd.csv"
    rows = ['007,1.50,NA,"a, ""b""\nc"', "008,,0x1,é"]
    table.write_text("\n".join([",".join(["id", *names[1:], names[0]]), *rows]) + "\n")
    done = run("apply", selection, table, "--keep", f"id,{names[0]}")
    assert (done.code, done.err) == (0, "")
    shown = [",".join(["id", *names]), '007,"a, ""b""\nc",1.50,NA', "008,é,,0x1"]
    assert done.out == "\n".join(shown) + "\n"


@pytest.mark.parametrize(
    ("source", "suffix"),
    [
        ("csv", ".csv"), ("parquet", ".tsv"), ("feather", ".csv.gz"), ("csv", ".parquet"),
        ("parquet", ".pq"), ("feather", ".arrow"), ("csv", ".feather"), ("parquet", ".ipc"),
    ],
)  # fmt: skip
def test_every_format_to_every_format(apply, selection, names, frame, tmp_path, suffix, source):
    table, out = tmp_path / f"again.{source}", tmp_path / f"small{suffix}"
    WRITERS[source](frame, table)
    keep = ["--keep", "id,copies", "--keep", "cultivar", "--predict"]
    small = apply(selection, table, *keep, into=out)
    assert small.column_names == ["id", "copies", "cultivar", *names, "prediction"]
    for name in small.column_names[:-1]:
        assert small[name].to_pylist() == frame[name].to_pylist()
    expected = SavedSelection.load(selection).predict(frame).tolist()
    assert small["prediction"].to_pylist() == expected
    assert small["copies"].type == pa.int64()
    if suffix == ".csv.gz":
        assert gzip.decompress(out.read_bytes()).startswith(b"id,copies,")


def test_a_folder_is_read_in_batches(apply, selection, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "FEWEST_ROWS", 7)
    monkeypatch.setattr(reading, "MOST_ROWS", 7)
    for year, part in ((2023, frame[:100]), (2024, frame[100:])):
        folder = tmp_path / "parts" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(part, folder / "a.parquet", row_group_size=30)
    out = tmp_path / "small.parquet"
    small = apply(selection, tmp_path / "parts", "--keep", "year,id", "--predict", into=out)
    assert pq.ParquetFile(out).num_row_groups == -(-100 // 7) + -(-78 // 7)
    assert small["id"].to_pylist() == frame["id"].to_pylist()
    assert small["year"].to_pylist() == [2023] * 100 + [2024] * 78
    expected = SavedSelection.load(selection).predict(frame).tolist()
    assert small["prediction"].to_pylist() == expected


def test_a_column_whose_later_values_have_another_type(
    apply, fails, selection, names, tmp_path, monkeypatch
):
    """Types are guessed from the first rows."""
    monkeypatch.setattr("exactk.streaming.csv.BLOCK_BYTES", 2**12)
    n = 2000
    tag = ["1"] * (n - 1) + ["none"]
    share = ["3"] * (n - 1) + ["0.5"]
    lines = [f"{i},2,{share[i]},{tag[i]},{share[i]}" for i in range(n)]
    table, out = tmp_path / "long.csv", tmp_path / "small.parquet"
    table.write_text("\n".join([",".join([*names, "tag", "share"]), *lines]) + "\n")
    small = apply(selection, table, "--keep", "tag,share", into=out)
    assert small["tag"].to_pylist() == tag
    assert small["share"].to_pylist() == [float(word) for word in share]
    assert small[names[2]].to_pylist() == [float(word) for word in share]
    assert small[names[0]].to_pylist() == list(range(n))
    table.write_text(table.read_text().replace("0.5,none", "oops,none"))
    out.unlink()
    said = fails("'oops'", "apply", selection, table, "-o", out)
    assert repr(names[2]) in said
    # Line 1 is the header.
    assert str(n + 1) in said
    assert not out.exists()


def test_encoded_columns_decimals_and_no_rows(apply, run, selection, names, frame, tmp_path):
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
    small = apply(selection, table, "--keep", "cultivar", "--predict", into=out)
    assert small["cultivar"].to_pylist() == frame["cultivar"].to_pylist()
    assert small[names[0]].type == exact.type
    expected = SavedSelection.load(selection).predict(frame).tolist()
    assert small["prediction"].to_pylist() == expected
    pq.write_table(frame[:0], table)
    none = run("apply", selection, table, "--predict")
    assert (none.code, none.out) == (0, ",".join([*names, "prediction"]) + "\n")


def test_what_csv_cannot_hold(apply, fails, selection, frame, tmp_path):
    lists = pa.array([[1, 2]] * frame.num_rows)
    table, out = tmp_path / "t.parquet", tmp_path / "out.csv"
    pq.write_table(frame.append_column("lists", lists), table)
    fails("'lists' is list", "apply", selection, table, "--keep", "lists", "-o", out)
    assert not out.exists()
    small = apply(selection, table, "--keep", "lists", into=tmp_path / "out.arrow")
    assert small["lists"].to_pylist() == lists.to_pylist()


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_control_characters_in_names_and_values_are_kept(apply, tmp_path, source):
    x = np.random.default_rng(0).normal(size=(40, 2))
    frame = pa.table({"a\rb": x[:, 0], "c\nd": x[:, 1], "note": ["x\ry", "\r"] * 20})
    table, out, again = (tmp_path / name for name in (f"t.{source}", "out.csv", "again.csv"))
    WRITERS[source](frame, table)
    selection = export(tmp_path / "s.json", frame.drop_columns(["note"]), x.sum(axis=1), k=2)
    small = apply(selection, table, "--keep", "note", into=out)
    assert small.column_names == ["note", "a\rb", "c\nd"]
    assert small["note"].to_pylist() == frame["note"].to_pylist()
    apply(selection, out, "--keep", "note", into=again)
    assert again.read_bytes() == out.read_bytes()


# --- predictions -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_text_truth_and_numbers(apply, fails, tmp_path, suffix):
    rng = np.random.default_rng(3)
    colour, on, size = rng.choice(["red", "blue"], 120), rng.random(120) < 0.5, rng.random(120)
    table = pa.table({"colour": colour, "on": on, "size": size, "noise": rng.random(120)})
    y = 3.0 * (colour == "red") + 4.0 * on + 2.0 * size
    file = tmp_path / f"t.{suffix}"
    selection = export(tmp_path / "s.json", table, y, k=3, ridge=0.0)
    WRITERS[suffix](table, file)
    small = apply(selection, file, "--predict", into=tmp_path / "out.csv")
    assert small.column_names == ["colour", "on", "size", "prediction"]
    np.testing.assert_allclose(small["prediction"].to_numpy(), y, atol=1e-9)
    WRITERS[suffix](table.set_column(0, "colour", pa.array(["green"] * 120)), file)
    said = fails("'green'", "apply", selection, file, "--predict", "-o", tmp_path / "out.csv")
    assert ("line 2 of" if suffix == "csv" else "row 0, counted from 0,") in said


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (TopKRegressor(k=2, loss="poisson"), pa.float64()),
        (TopKRegressor(k=2), pa.float64()),
        (TopKClassifier(k=1), pa.bool_()),
        (TopKClassifier(k=1, loss="squared"), pa.int64()),
    ],
)
def test_predictions_have_the_type_of_the_target(apply, tmp_path, model, kind):
    values = np.random.default_rng(2).normal(size=(80, 3))
    X = pa.table(dict(zip("abc", values.T, strict=True)))
    several = np.column_stack([values[:, 0], values[:, 1] + 1.0])
    numbers = np.exp(values[:, 0]).round() if model.loss == "poisson" else several
    y = {pa.bool_(): values[:, 1] > 0, pa.int64(): np.where(values[:, 2] > 0, 7, -3)}
    pq.write_table(X, tmp_path / "t.parquet")
    model.fit(X, y.get(kind, numbers)).export(tmp_path / "s.json")
    out = tmp_path / "out.parquet"
    small = apply(tmp_path / "s.json", tmp_path / "t.parquet", "--predict", into=out)
    added = [name for name in small.column_names if name.startswith("prediction")]
    assert added == (["prediction"] if len(added) == 1 else ["prediction_0", "prediction_1"])
    assert {small.schema.field(name).type for name in added} == {kind}
    found = [small[name].to_numpy(zero_copy_only=False) for name in added]
    expected = np.atleast_2d(model.predict(X).T.astype(float))
    np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-9)


def test_a_selection_without_names_uses_positions(apply, fails, wine, tmp_path):
    X, labels, names, _ = wine
    saved = TopKSelector(k=3).fit(X, labels).export(tmp_path / "s.json")
    table, narrow = tmp_path / "t.parquet", tmp_path / "u.parquet"
    pq.write_table(pa.table(dict(zip(names, X.T, strict=True))), table)
    small = apply(tmp_path / "s.json", table, "--predict", into=tmp_path / "out.csv")
    selected = [names[feature.index] for feature in saved.features]
    assert small.column_names == [*selected, "prediction"]
    assert small["prediction"].to_pylist() == saved.predict(X).tolist()
    pq.write_table(pa.table(dict(zip(names[:5], X.T[:5], strict=True))), narrow)
    fails("5 columns", "apply", tmp_path / "s.json", narrow)


# --- mistakes --------------------------------------------------------------------------------


def test_columns_that_are_not_there(fails, selection, names, frame, tmp_path):
    less, both = tmp_path / "less.parquet", tmp_path / "both"
    both.mkdir()
    pq.write_table(frame.drop_columns([names[0], names[2]]), less)
    pq.write_table(frame, both / "a.parquet")
    pq.write_table(frame.drop_columns([names[1]]), both / "b.parquet")
    fails(f"{names[0]!r}, {names[2]!r}", "apply", selection, less)
    fails("did you mean 'copies'?", "apply", selection, both / "a.parquet", "--keep", "copis")
    assert repr(names[1]) in fails("b.parquet'", "apply", selection, both)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["s.json", "wine.csv", "-o", "wine.csv"], "also an input"),
        (["wine.csv", "s.json"], "selection file 'wine.csv' cannot be read"),
        (["s.json", "wine.csv", "-o", "s.json"], ".parquet"),
        (["s.json", "wine.csv", "-o", "a/b.csv"], "folder does not exist"),
        (["wine.csv", "wine.csv"], "cannot be read"),
        (["none.json", "wine.csv"], "none.json"),
        (["s.json", "none.csv"], "does not exist"),
        (["s.json", "cells.h5ad"], "adata[:, list("),
        (["s.json", "wine.csv", "--keep", ","], "--keep"),
    ],
)
def test_wrong_files_and_places(fails, selection, wine_csv, tmp_path, monkeypatch, args, words):
    monkeypatch.chdir(tmp_path)
    before = wine_csv.read_bytes(), selection.read_bytes()
    fails(words, "apply", *args)
    assert (wine_csv.read_bytes(), selection.read_bytes()) == before


def test_a_column_called_prediction_is_not_hidden(run, fails, selection, frame, tmp_path):
    table = tmp_path / "t.parquet"
    pq.write_table(frame.append_column("prediction", frame["id"]), table)
    args = ["apply", selection, table, "--predict"]
    fails("--predict adds a column 'prediction'", *args, "--keep", "prediction")
    assert run(*args).code == 0


@pytest.mark.parametrize(("suffix", "place"), [("csv", "line 6"), ("parquet", "row 4")])
def test_a_missing_value_cannot_be_predicted_from(
    apply, fails, selection, names, frame, tmp_path, suffix, place
):
    values = frame[names[1]].to_pylist()
    values[4] = None
    at = frame.column_names.index(names[1])
    table, out = tmp_path / f"t.{suffix}", tmp_path / "out.csv"
    WRITERS[suffix](frame.set_column(at, names[1], pa.array(values)), table)
    assert names[1] in fails(place, "apply", selection, table, "--predict", "-o", out)
    assert not out.exists()
    # Without predictions they may be missing.
    assert apply(selection, table, into=out)[names[1]].null_count == 1


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["True,1", "false,1", "true,1", "maybe,1"], "'flag' has 'maybe' in line 5"),
        (["true,1.5", "true,1.5", "true,high", "false,2"], "'x' has 'high' in line 4"),
    ],
)
def test_a_wrong_word_is_named_with_its_line(fails, tmp_path, lines, words):
    rng = np.random.default_rng(0)
    flag, x = rng.integers(0, 2, 40).astype(bool), rng.normal(size=40)
    selection = export(tmp_path / "s.json", pa.table({"flag": flag, "x": x}), 2.0 * flag + x, k=2)
    (tmp_path / "bad.csv").write_text("\n".join(["flag,x", *lines]) + "\n")
    args = [tmp_path / "bad.csv", "--predict", "-o", tmp_path / "out.csv"]
    said = fails(words, "apply", selection, *args)
    assert ("not true or false" if "flag" in words else "not a number") in said


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


def test_a_full_disk(fails, selection, wine_csv, tmp_path, monkeypatch):
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device", str(next(tmp_path.glob(".*.part"))))

    monkeypatch.setattr("os.replace", no_space)
    out = tmp_path / "out.csv"
    assert repr(str(out)) in fails("No space left", "apply", selection, wine_csv, "-o", out)
    assert not list(tmp_path.glob(".*.part"))
