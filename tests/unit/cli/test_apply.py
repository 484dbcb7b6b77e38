"""``exactk apply``: the chosen columns of a table, of every kind and size."""

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


@pytest.fixture
def frame(wine_csv) -> pa.Table:
    return pyarrow.csv.read_csv(wine_csv)


@pytest.fixture
def chosen(run, wine_csv, tmp_path):
    file = tmp_path / "chosen.json"
    done = run(
        "select", wine_csv, "--target", "cultivar", "--drop", "id", "-k", 3, "--export", file
    )
    assert done.code == 0, done.err
    return file


def read(path) -> pa.Table:
    if str(path).endswith((".arrow", ".feather", ".ipc")):
        return pyarrow.feather.read_table(path)
    if str(path).endswith((".parquet", ".pq")):
        return pq.read_table(path)
    options = pyarrow.csv.ParseOptions(delimiter="\t" if ".tsv" in str(path) else ",")
    return pyarrow.csv.read_csv(path, parse_options=options)


def test_csv_goes_through_as_it_stands(run, chosen, wine_csv) -> None:
    names = SavedSelection.load(chosen).names
    head, *lines = [line.split(",") for line in wine_csv.read_text().splitlines()]
    places = [head.index(name) for name in ("id", *names)]
    done = run("apply", chosen, wine_csv, "--keep", "id")
    assert (done.code, done.err) == (0, "")
    expected = [",".join(line[j] for j in places) for line in (head, *lines)]
    assert done.out.splitlines() == expected


def test_values_are_not_read_where_they_need_not_be(run, chosen, wine_csv, tmp_path) -> None:
    names = SavedSelection.load(chosen).names
    table = tmp_path / "odd.csv"
    rows = ['007,1.50,NA,"a, ""b""\nc"', "008,,0x1,é"]
    table.write_text("\n".join([",".join(["id", *names[1:], names[0]]), *rows]) + "\n")
    done = run("apply", chosen, table, "--keep", "id")
    assert done.code == 0, done.err
    shown = [
        ",".join(["id", *names]), '007,"a, ""b""\nc",1.50,NA', "008,é,,0x1",
    ]  # fmt: skip
    assert done.out == "\n".join(shown) + "\n"


@pytest.mark.parametrize(
    ("source", "suffix"),
    [
        ("csv", ".csv"), ("parquet", ".tsv"), ("feather", ".csv.gz"), ("csv", ".parquet"),
        ("parquet", ".pq"), ("feather", ".arrow"), ("csv", ".feather"), ("parquet", ".ipc"),
    ],
)  # fmt: skip
def test_every_kind_to_every_kind(run, chosen, frame, tmp_path, suffix, source) -> None:
    table = tmp_path / f"again.{source}"
    {"csv": pyarrow.csv.write_csv, "parquet": pq.write_table,
     "feather": pyarrow.feather.write_feather}[source](frame, table)  # fmt: skip
    choice = SavedSelection.load(chosen)
    out = tmp_path / f"small{suffix}"
    done = run(
        "apply", chosen, table, "--keep", "id,copies", "--keep", "cultivar", "--predict", "-o", out
    )
    assert (done.code, done.out, done.err) == (0, "", "")
    small = read(out)
    assert small.column_names == ["id", "copies", "cultivar", *choice.names, "prediction"]
    for name in small.column_names[:-1]:
        assert small[name].to_pylist() == frame[name].to_pylist()
    assert small["prediction"].to_pylist() == choice.predict(frame).tolist()
    assert small["copies"].type == pa.int64()
    if suffix == ".csv.gz":
        assert gzip.decompress(out.read_bytes()).startswith(b"id,copies,")


def test_many_batches_and_files(run, chosen, frame, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reading, "FEWEST_ROWS", 7)
    monkeypatch.setattr(reading, "MOST_ROWS", 7)
    for year, part in ((2023, frame[:100]), (2024, frame[100:])):
        folder = tmp_path / "parts" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(part, folder / "a.parquet", row_group_size=30)
    out = tmp_path / "small.parquet"
    done = run(
        "apply", chosen, tmp_path / "parts", "--keep", "year,id", "--predict", "-o", out
    )  # fmt: skip
    assert done.code == 0, done.err
    small = read(out)
    assert pq.ParquetFile(out).num_row_groups == -(-100 // 7) + -(-78 // 7)
    assert small["id"].to_pylist() == frame["id"].to_pylist()
    assert small["year"].to_pylist() == [2023] * 100 + [2024] * 78
    assert small["prediction"].to_pylist() == SavedSelection.load(chosen).predict(frame).tolist()


def test_a_column_that_changes_its_kind_on_the_way(run, chosen, tmp_path, monkeypatch) -> None:
    """Types are guessed from the first rows; what comes later may not fit."""
    monkeypatch.setattr("exactk.streaming.csv.BLOCK_BYTES", 2**12)
    names = SavedSelection.load(chosen).names
    n = 2000
    tag = ["1"] * (n - 1) + ["none"]
    share = ["3"] * (n - 1) + ["0.5"]
    lines = [f"{i},2,{share[i]},{tag[i]},{share[i]}" for i in range(n)]
    table = tmp_path / "long.csv"
    table.write_text("\n".join([",".join([*names, "tag", "share"]), *lines]) + "\n")
    out = tmp_path / "small.parquet"
    done = run("apply", chosen, table, "--keep", "tag,share", "-o", out)
    assert done.code == 0, done.err
    small = read(out)
    assert small["tag"].to_pylist() == tag
    assert small["share"].to_pylist() == [float(word) for word in share]
    assert small[names[2]].to_pylist() == [float(word) for word in share]
    assert small[names[0]].to_pylist() == list(range(n))
    table.write_text(table.read_text().replace("0.5,none", "oops,none"))
    out.unlink()
    done = run("apply", chosen, table, "-o", out)
    assert done.code == 2
    assert f"column {names[2]!r}" in done.err
    assert "'oops', row 2001 (the header is row 1), which is not a number" in done.err
    assert not out.exists()


def test_whole_numbers_of_several_widths_stay_whole(run, chosen, frame, tmp_path) -> None:
    folder, out = tmp_path / "parts", tmp_path / "small.parquet"
    folder.mkdir()
    numbers = {"a": pa.array(range(len(frame)), pa.int32()),
               "b": pa.array([2**60 + i for i in range(len(frame))], pa.int64())}  # fmt: skip
    at = frame.column_names.index("id")
    for name, column in numbers.items():
        pq.write_table(frame.set_column(at, "id", column), folder / f"{name}.parquet")
    done = run("apply", chosen, folder, "--keep", "id", "-o", out)
    assert done.code == 0, done.err
    assert read(out)["id"].to_pylist() == [n for part in numbers.values() for n in part.to_pylist()]


def test_an_anndata_is_refused_with_a_hint(run, chosen, tmp_path) -> None:
    done = run("apply", chosen, tmp_path / "cells.h5ad")
    assert done.code == 2
    assert "is an AnnData, which apply does not write; in Python: adata[:, list(" in done.err


def test_missing_columns_are_named(run, chosen, frame, tmp_path) -> None:
    names = SavedSelection.load(chosen).names
    pq.write_table(frame.drop_columns([names[0], names[2]]), tmp_path / "less.parquet")
    done = run("apply", chosen, tmp_path / "less.parquet")
    assert (done.code, done.out) == (2, "")
    assert f"lacks 2 of the 3 chosen columns: {names[0]!r}, {names[2]!r}" in done.err
    pq.write_table(frame, tmp_path / "whole.parquet")
    done = run("apply", chosen, tmp_path / "whole.parquet", "--keep", "idd")
    assert done.code == 2
    assert "--keep: column 'idd' is not in table" in done.err
    assert "did you mean 'id'?" in done.err
    both = tmp_path / "both"
    both.mkdir()
    pq.write_table(frame, both / "a.parquet")
    pq.write_table(frame.drop_columns([names[1]]), both / "b.parquet")
    done = run("apply", chosen, both)
    assert done.code == 2
    assert "b.parquet' lacks the column" in done.err
    assert repr(names[1]) in done.err


def test_places_and_files_that_are_wrong(run, chosen, wine_csv, tmp_path) -> None:
    before = wine_csv.read_bytes(), chosen.read_bytes()
    for place in (wine_csv,):
        done = run("apply", chosen, wine_csv, "-o", place)
        assert done.code == 2
        assert "is the table or the choice itself" in done.err
    assert "does not end as a table does" in run("apply", chosen, wine_csv, "-o", chosen).err
    assert (wine_csv.read_bytes(), chosen.read_bytes()) == before
    done = run("apply", wine_csv, wine_csv)
    assert done.code == 2
    assert "cannot be read: it is not JSON" in done.err
    done = run("apply", tmp_path / "none.json", wine_csv)
    assert (done.code, "none.json" in done.err) == (2, True)
    done = run("apply", chosen, tmp_path / "none.csv")
    assert (done.code, "does not exist" in done.err) == (2, True)


def test_a_chosen_column_that_is_kept_comes_once(run, chosen, wine_csv) -> None:
    names = SavedSelection.load(chosen).names
    done = run("apply", chosen, wine_csv, "--keep", f"id,{names[0]}")
    assert done.out.splitlines()[0] == ",".join(["id", *names])


def test_a_column_called_prediction_is_not_hidden(run, chosen, frame, tmp_path) -> None:
    pq.write_table(frame.append_column("prediction", frame["id"]), tmp_path / "t.parquet")
    done = run("apply", chosen, tmp_path / "t.parquet", "--keep", "prediction", "--predict")
    assert done.code == 2
    assert "--predict adds a column 'prediction'" in done.err
    assert run("apply", chosen, tmp_path / "t.parquet", "--predict").code == 0


def test_values_that_cannot_be_predicted_from(run, chosen, frame, tmp_path) -> None:
    choice = SavedSelection.load(chosen)
    values = frame[choice.names[1]].to_pylist()
    values[4] = None
    at = frame.column_names.index(choice.names[1])
    broken = frame.set_column(at, choice.names[1], pa.array(values))
    for name, write in (("t.parquet", pq.write_table), ("t.csv", pyarrow.csv.write_csv)):
        write(broken, tmp_path / name)
        out = tmp_path / "out.csv"
        done = run("apply", chosen, tmp_path / name, "--predict", "-o", out)
        assert done.code == 2
        assert choice.names[1] in done.err
        assert not out.exists()
        # Columns alone may be incomplete.
        assert run("apply", chosen, tmp_path / name, "-o", out).code == 0
        assert read(out)[choice.names[1]].null_count == 1
        out.unlink()
    assert "holds '' in row 4, which is not a number" in done.err


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_text_truth_and_numbers(run, tmp_path, suffix) -> None:
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
    file = tmp_path / f"t.{suffix}"
    whole = table.append_column("y", pa.array(y))
    (pyarrow.csv.write_csv if suffix == "csv" else pq.write_table)(whole, file)
    chosen, out = tmp_path / "c.json", tmp_path / "out.csv"
    done = run("select", file, "--target", "y", "--ridge", 0, "-k", 3, "--export", chosen)
    assert done.code == 0, done.err
    done = run("apply", chosen, file, "--predict", "-o", out)
    assert done.code == 0, done.err
    assert read(out).column_names == ["colour", "on", "size", "prediction"]
    np.testing.assert_allclose(read(out)["prediction"].to_numpy(), y, atol=1e-9)
    file.unlink()
    other = whole.set_column(0, "colour", pa.array(["green"] * n))
    (pyarrow.csv.write_csv if suffix == "csv" else pq.write_table)(other, file)
    done = run("apply", chosen, file, "--predict")
    assert done.code == 2
    assert "column 'colour' holds 'green' in row 0, which no row had" in done.err


def test_counts_several_outputs_and_labels_of_every_kind(run, tmp_path) -> None:
    rng = np.random.default_rng(2)
    X = pa.table({name: rng.normal(size=80) for name in "abc"})
    values = np.column_stack([X[name].to_numpy() for name in "abc"])
    pq.write_table(X, tmp_path / "t.parquet")
    targets = {
        "counts": (TopKRegressor(k=2, loss="poisson"), rng.poisson(np.exp(values[:, 0]))),
        "several": (TopKRegressor(k=2), values[:, :2] + 1.0),
        "truth": (TopKClassifier(k=1), values[:, 1] > 0),
        "whole": (TopKClassifier(k=1, loss="squared"), np.where(values[:, 2] > 0, 7, -3)),
    }
    for name, (model, y) in targets.items():
        model.fit(X, y).export(tmp_path / f"{name}.json")
        out = tmp_path / f"{name}.parquet"
        done = run(
            "apply", tmp_path / f"{name}.json", tmp_path / "t.parquet", "--predict", "-o", out
        )
        assert done.code == 0, done.err
        small, expected = read(out), model.predict(X)
        if name == "several":
            found = np.column_stack([small[f"prediction_{i}"].to_numpy() for i in range(2)])
        else:
            found = small["prediction"].to_numpy(zero_copy_only=False)
        np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-9)
        kinds = {"truth": pa.bool_(), "whole": pa.int64()}
        assert small.schema.field(small.num_columns - 1).type == kinds.get(name, pa.float64())


def test_a_choice_without_names_goes_by_position(run, wine, tmp_path) -> None:
    X, labels, names, _ = wine
    frozen = TopKSelector(k=3).fit(X, labels).export(tmp_path / "c.json")
    pq.write_table(pa.table(dict(zip(names, X.T, strict=True))), tmp_path / "t.parquet")
    done = run("apply", tmp_path / "c.json", tmp_path / "t.parquet", "--predict")
    assert done.code == 0, done.err
    chosen = [names[feature.index] for feature in frozen.features]
    assert done.out.splitlines()[0] == ",".join([*chosen, "prediction"])
    found = [line.rpartition(",")[2] for line in done.out.splitlines()[1:]]
    assert found == frozen.predict(X).tolist()
    pq.write_table(pa.table(dict(zip(names[:5], X.T[:5], strict=True))), tmp_path / "u.parquet")
    done = run("apply", tmp_path / "c.json", tmp_path / "u.parquet")
    assert done.code == 2
    assert "has 5 columns, and the choice was made among 13 by position" in done.err


def test_what_csv_cannot_hold(run, chosen, frame, tmp_path) -> None:
    lists = pa.array([[1, 2]] * frame.num_rows)
    pq.write_table(frame.append_column("lists", lists), tmp_path / "t.parquet")
    out = tmp_path / "out.csv"
    done = run("apply", chosen, tmp_path / "t.parquet", "--keep", "lists", "-o", out)
    assert done.code == 2
    assert "column 'lists' is list" in done.err
    assert "which CSV cannot hold; write Parquet or Arrow" in done.err
    assert not out.exists()
    out = tmp_path / "out.arrow"
    assert run("apply", chosen, tmp_path / "t.parquet", "--keep", "lists", "-o", out).code == 0
    assert read(out)["lists"].to_pylist() == lists.to_pylist()


def test_a_table_without_rows(run, chosen, frame, tmp_path) -> None:
    pq.write_table(frame[:0], tmp_path / "t.parquet")
    done = run("apply", chosen, tmp_path / "t.parquet", "--predict")
    assert done.code == 0, done.err
    assert done.out == ",".join([*SavedSelection.load(chosen).names, "prediction"]) + "\n"


def test_encoded_columns(run, chosen, frame, tmp_path) -> None:
    """A file of Arrow has one dictionary a column, and batches come with their own."""
    name = SavedSelection.load(chosen).names[0]
    encoded = pa.concat_tables([
        part.set_column(frame.column_names.index(each), each, part[each].dictionary_encode())
        for part in (frame[:90], frame[90:])
        for each in ("cultivar",)
    ])  # fmt: skip
    pq.write_table(encoded, tmp_path / "t.parquet", row_group_size=40)
    out = tmp_path / "out.arrow"
    done = run("apply", chosen, tmp_path / "t.parquet", "--keep", "cultivar", "-o", out)
    assert done.code == 0, done.err
    assert read(out)["cultivar"].to_pylist() == frame["cultivar"].to_pylist()
    assert read(out)[name].to_pylist() == frame[name].to_pylist()


def test_decimals_are_numbers_as_they_were_when_chosen(run, chosen, frame, tmp_path) -> None:
    choice = SavedSelection.load(chosen)
    name = choice.names[0]
    exact = frame[name].cast(pa.decimal128(9, 4))
    table = frame.set_column(frame.column_names.index(name), name, exact)
    pq.write_table(table, tmp_path / "t.parquet")
    out = tmp_path / "out.parquet"
    done = run("apply", chosen, tmp_path / "t.parquet", "--predict", "-o", out)
    assert done.code == 0, done.err
    assert read(out)[name].type == exact.type
    assert read(out)["prediction"].to_pylist() == choice.predict(frame).tolist()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow"])
def test_ctrl_c_leaves_the_old_file(run, chosen, wine_csv, tmp_path, monkeypatch, suffix) -> None:
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
    done = run("apply", chosen, wine_csv, "--predict", "-o", out)
    assert (done.code, len(calls)) == (130, 3)
    assert out.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_line_ends_in_names_and_values_read_back(run, tmp_path, source) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    frame = pa.table({"a\rb": x[:, 0], "c\nd": x[:, 1], "note": ["x\ry", "\r"] * 20,
                      "y": x.sum(axis=1)})  # fmt: skip
    table = tmp_path / f"table.{source}"
    {"csv": pyarrow.csv.write_csv, "parquet": pq.write_table}[source](frame, table)
    chosen, out, again = (tmp_path / name for name in ("c.json", "out.csv", "again.csv"))
    done = run("select", table, "--target", "y", "--drop", "note", "-k", 2, "--export", chosen)
    assert done.code == 0, done.err
    assert run("apply", chosen, table, "--keep", "note", "-o", out).code == 0
    assert read(out).column_names == ["note", "a\rb", "c\nd"]
    assert read(out)["note"].to_pylist() == frame["note"].to_pylist()
    assert run("apply", chosen, out, "--keep", "note", "-o", again).code == 0
    assert again.read_bytes() == out.read_bytes()
    shown = pytest.importorskip("pandas").read_csv(out)
    np.testing.assert_allclose(shown["a\rb"], x[:, 0])


def test_predictions_too_large_for_numbers_name_their_row(run, chosen, frame, tmp_path) -> None:
    names = SavedSelection.load(chosen).names
    for at, name in enumerate(names):
        values = frame[name].to_numpy().astype(float).copy()
        # Of both signs: one after the other they would be infinite, and then nothing.
        values[5] = (-1) ** at * 1.7e308
        frame = frame.set_column(frame.column_names.index(name), name, pa.array(values))
    values = SavedSelection.load(chosen).to_dict()
    for at, term in enumerate(values["fit"]["terms"]):
        term["coef"] = [(-1) ** at * 10.0, 0.0, 1.0]
    steep = tmp_path / "steep.json"
    SavedSelection.from_dict(values).save(steep)
    pq.write_table(frame, tmp_path / "large.parquet")
    done = run("apply", steep, tmp_path / "large.parquet", "--predict")
    assert done.code == 2
    assert "the score of row 5 is too large for a number" in done.err
    assert "Warning" not in done.err


def test_the_word_that_is_wrong_is_the_one_named(run, tmp_path) -> None:
    rng = np.random.default_rng(0)
    flag, x = rng.integers(0, 2, 40).astype(bool), rng.normal(size=40)
    table = pa.table({"flag": flag, "x": x, "y": 2.0 * flag + x})
    good, bad, chosen = (tmp_path / name for name in ("good.csv", "bad.csv", "chosen.json"))
    pyarrow.csv.write_csv(table, good)
    assert run("select", good, "--target", "y", "-k", 2, "--export", chosen).code == 0
    truths = ["True", "false", "true", "False", "TRUE", "maybe"]
    bad.write_text("flag,x\n" + "".join(f"{word},1.5\n" for word in truths))
    done = run("apply", chosen, bad, "--predict")
    assert done.code == 2
    assert "'flag' holds 'maybe' in row 5, which is neither true nor false" in done.err
    bad.write_text("flag,x\n" + "true,1.5\n" * 3 + "true,high\nfalse,2\n")
    done = run("apply", chosen, bad, "--predict")
    assert "'x' holds 'high' in row 3, which is not a number" in done.err


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(
    run, chosen, wine_csv, tmp_path, monkeypatch
) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device", str(next(tmp_path.glob(".*.part"))))

    monkeypatch.setattr("os.replace", no_space)
    out = tmp_path / "out.csv"
    done = run("apply", chosen, wine_csv, "-o", out)
    assert done.code == 2
    assert (
        done.err == f"exactk: --output {str(out)!r} cannot be written: No space left on device.\n"
    )
    assert not list(tmp_path.glob(".*.part"))


def test_stdout_has_names_as_they_are(run, tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=40)
    chosen, table = tmp_path / "chosen.json", tmp_path / "table.parquet"
    pq.write_table(pa.table({"red\x1b[31m": x, "y": x}), table)
    assert run("select", table, "--target", "y", "-k", 1, "--export", chosen).code == 0
    assert run("apply", chosen, table).out.splitlines()[0] == "red\x1b[31m"
