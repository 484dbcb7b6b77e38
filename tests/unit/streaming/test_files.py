"""Files that are passed over give the moments, the answers and the errors of arrays."""

from __future__ import annotations

import gzip
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactk import Problem, solve
from exactk.data.files import read_table
from exactk.data.moments import Moments
from exactk.errors import InputError
from exactk.streaming import formats, parallel_fold
from exactk.streaming.files import folder_columns, open_files
from exactk.streaming.folders import Found
from exactk.streaming.moments import stream_moments
from exactk.streaming.split import SplitReducer
from exactk.streaming.target_encoding import TargetEncoding
from tests.unit.streaming.test_moments import close

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")

Array = np.ndarray[Any, Any]
N, D = 3_000, 7
NAMES = [f"x{j}" for j in range(D)]


def says(text: str) -> Any:
    return pytest.raises(InputError, match=re.escape(text))


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks, windows and lanes, though the tables are small."""
    monkeypatch.setattr("exactk.streaming.arrow.FEWEST_ROWS", 64)
    monkeypatch.setattr("exactk.streaming.arrow.BLOCK_BYTES", 64 * 8 * D)
    monkeypatch.setattr(parallel_fold, "BLOCK_BYTES", 64 * 8 * D)
    monkeypatch.setattr(formats, "WHOLE_BYTES", 500 * 8 * D)
    monkeypatch.setattr(formats, "PAGES_BYTES", 0)


def data(n: int = N, offset: float = 0.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(n)
    y = rng.choice(["ash", "oak", "yew"], n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, D)) + (y == "oak")[:, None] * np.linspace(0, 2, D) + offset
    return X, y


def as_table(X: Array, y: Any) -> Any:
    columns = [pa.array(np.ascontiguousarray(column)) for column in X.T]
    return pa.table([*columns, pa.array(y)], names=[*NAMES[: X.shape[1]], "y"])


def read(paths: Any, threads: int = 2, **options: Any) -> Moments:
    target = options.pop("target", "y")
    stream = open_files(paths, target, **options)
    stream.threads = threads
    return stream_moments(stream)


def write_parquet(path: Path, table: Any, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


def write_folder(path: Path, table: Any, rows: int = 451) -> Path:
    path.mkdir()
    for start in range(0, len(table), rows):
        pq.write_table(table.slice(start, rows), path / f"part-{start:05d}.parquet")
    return path


def write_csv(path: Path, table: Any) -> Path:
    csv.write_csv(table, path)
    return path


def write_gzip(path: Path, table: Any) -> Path:
    plain = write_csv(path.with_suffix(".plain"), table)
    path.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    plain.unlink()
    return path


def write_stream(path: Path, table: Any) -> Path:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    return path


WRITERS: dict[str, Callable[[Path, Any], Path]] = {
    "one group": lambda p, t: write_parquet(p / "t.parquet", t),
    "groups of 400": lambda p, t: write_parquet(p / "t.parquet", t, row_group_size=400),
    "groups of 7": lambda p, t: write_parquet(p / "t.parquet", t, row_group_size=7),
    "plain": lambda p, t: write_parquet(
        p / "t.pq", t, compression="none", use_dictionary=False, row_group_size=499
    ),
    "zstd": lambda p, t: write_parquet(p / "t.parquet", t, compression="zstd"),
    "folder": lambda p, t: write_folder(p / "t", t),
    "csv": lambda p, t: write_csv(p / "t.csv", t),
    "csv.gz": lambda p, t: write_gzip(p / "t.csv.gz", t),
    "feather": lambda p, t: (
        feather.write_feather(t, p / "t.feather", chunksize=333) or p / "t.feather"
    ),
    "arrow": lambda p, t: (
        feather.write_feather(t, p / "t.arrow", compression="uncompressed") or p / "t.arrow"
    ),
    "arrow stream": lambda p, t: write_stream(p / "t.ipc", t),
}


# --- the same answer -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("writer", "threads"), [*((name, 2) for name in WRITERS), ("groups of 400", 1), ("csv", 3)]
)
def test_every_kind_of_file_gives_the_moments_of_the_array(
    tmp_path: Path, writer: str, threads: int
) -> None:
    X, y = data()
    found = read(WRITERS[writer](tmp_path, as_table(X, y)), threads)
    assert (found.n_rows, found.target, found.feature_names) == (N, "y", tuple(NAMES))
    assert found.classes is not None
    assert found.classes.tolist() == ["ash", "oak", "yew"]
    close(found, X, y)


@pytest.mark.parametrize("writer", list(WRITERS))
def test_the_answer_is_that_of_the_array(tmp_path: Path, writer: str) -> None:
    X, y = data()
    problem = Problem.from_files(WRITERS[writer](tmp_path, as_table(X, y)), "y")
    held = Problem.from_arrays(X, y)
    for k in range(1, D):
        found, wanted = solve(problem, k), solve(held, k)
        assert found.support.tolist() == wanted.support.tolist()
        assert found.objective == pytest.approx(wanted.objective, rel=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_types_of_features(tmp_path: Path, dtype: str, suffix: str) -> None:
    X, y = data()
    X = X > 0 if dtype == "bool" else (3 * X).astype(dtype)
    path = tmp_path / f"t.{suffix}"
    table = as_table(X, y)
    pq.write_table(table, path) if suffix == "parquet" else feather.write_feather(table, path)
    close(read(path), X.astype(float), y)


def test_labels_in_a_dictionary_and_as_booleans(tmp_path: Path) -> None:
    X, y = data()
    table = as_table(X, y)
    for name, column, held in (
        ("d", table["y"].dictionary_encode(), y),
        ("b", pa.array(y == "oak"), y == "oak"),
        ("i", pa.array((y == "oak") + 3), (y == "oak") + 3),
    ):
        path = write_parquet(tmp_path / f"{name}.parquet", table.set_column(D, "y", column))
        found = read(path)
        assert found.classes is not None
        assert found.classes.tolist() == np.unique(held).tolist()
        close(found, X, held)


def test_the_order_of_rows_and_files_does_not_matter(tmp_path: Path) -> None:
    X, y = data()
    mixed = np.random.default_rng(1).permutation(N)
    one = read(write_folder(tmp_path / "one", as_table(X, y), 999))
    two = read(write_folder(tmp_path / "two", as_table(X[mixed], y[mixed]), 123))
    np.testing.assert_allclose(one.xx, two.xx, rtol=1e-10, atol=1e-10 * np.abs(one.xx).max())
    np.testing.assert_allclose(one.xy, two.xy, rtol=1e-10, atol=1e-10 * np.abs(one.xy).max())
    problems = [Problem.from_moments(moments) for moments in (one, two)]
    for k in range(1, D):
        supports = [solve(problem, k).support.tolist() for problem in problems]
        assert supports[0] == supports[1]


def test_means_a_million_times_the_spread(tmp_path: Path) -> None:
    X, y = data(offset=1e6)
    close(read(write_folder(tmp_path / "t", as_table(X, y))), X, y, rtol=1e-8)


@pytest.mark.parametrize("writer", ["groups of 400", "one group", "csv", "feather"])
def test_two_passes_agree_to_the_last_bit(tmp_path: Path, writer: str) -> None:
    path = WRITERS[writer](tmp_path, as_table(*data()))
    one, two = read(path), read(path)
    for name in ("xx", "xy", "x_mean"):
        assert (getattr(one, name) == getattr(two, name)).all()


def test_a_stream_is_pickled_as_paths(tmp_path: Path) -> None:
    X, y = data()
    stream = open_files(write_folder(tmp_path / "t", as_table(X, y)), "y")
    sent = pickle.dumps(stream)
    assert len(sent) < 5_000
    close(stream_moments(pickle.loads(sent)), X, y)


def test_weights_and_several_targets(tmp_path: Path) -> None:
    X, y = data()
    w = np.random.default_rng(5).integers(0, 3, N)
    table = as_table(X, y).append_column("w", pa.array(w))
    path = write_parquet(tmp_path / "t.parquet", table, row_group_size=700)
    again = np.repeat(np.arange(N), w)
    close(read(path, weights="w"), X[again], y[again])
    found = read(path, target=["x0", "x3"], drop=["y", "w"])
    assert found.feature_names == ("x1", "x2", "x4", "x5", "x6")
    assert found.classes is None
    close(found, X[:, [1, 2, 4, 5, 6]], X[:, [0, 3]])


@pytest.mark.parametrize("writer", ["groups of 400", "one group", "csv", "feather", "arrow stream"])
def test_columns_are_taken_by_name_and_in_the_order_given(tmp_path: Path, writer: str) -> None:
    X, y = data()
    path = WRITERS[writer](tmp_path, as_table(X, y))
    found = read(path, columns=["x5", "x1"])
    assert found.feature_names == ("x5", "x1")
    close(found, X[:, [5, 1]], y)


def test_columns_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    X, y = data()
    path = write_parquet(tmp_path / "t.parquet", as_table(X, y), compression="none")
    place = pq.ParquetFile(path).metadata.row_group(0).column(2)
    content = bytearray(path.read_bytes())
    start = place.dictionary_page_offset or place.data_page_offset
    content[start : start + place.total_compressed_size] = b"\xff" * place.total_compressed_size
    path.write_bytes(content)
    with says("t.parquet' cannot be read as Parquet"):
        read(path)
    close(read(path, drop=["x2"]), np.delete(X, 2, axis=1), y)


def test_files_may_have_their_columns_in_another_order(tmp_path: Path) -> None:
    X, y = data()
    table = as_table(X, y)
    pq.write_table(table[:1000], tmp_path / "a.parquet")
    pq.write_table(table[1000:].select(["y", *NAMES[::-1]]), tmp_path / "b.parquet")
    close(read(tmp_path), X, y)


def test_whole_numbers_in_one_file_and_fractions_in_another(tmp_path: Path) -> None:
    X, y = data()
    X[:1000] = np.round(X[:1000])
    table = as_table(X, y)
    whole = pa.table({name: table[name][:1000].cast(pa.int32()) for name in NAMES})
    pq.write_table(whole.append_column("y", table["y"][:1000]), tmp_path / "a.parquet")
    pq.write_table(table[1000:], tmp_path / "b.parquet")
    close(read(tmp_path), X, y)


def test_files_without_rows_are_passed_by(tmp_path: Path) -> None:
    X, y = data()
    table = as_table(X, y)
    # As pandas writes a column of labels that has none.
    empty = table[:0].set_column(D, "y", pa.nulls(0))
    pq.write_table(empty, tmp_path / "a.parquet")
    pq.write_table(table, tmp_path / "b.parquet")
    pq.write_table(table[:0], tmp_path / "c.parquet")
    close(read(tmp_path), X, y)
    with says("no rows"):
        read(tmp_path / "c.parquet")


def test_an_index_of_pandas_is_no_feature(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(N)]).assign(y=y)
    frame.to_parquet(tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet").feature_names == tuple(NAMES)


# --- which files -----------------------------------------------------------------------------


def test_a_folder_a_pattern_and_a_list(tmp_path: Path) -> None:
    X, y = data()
    (tmp_path / "deep").mkdir()
    folder = write_folder(tmp_path / "deep" / "er", as_table(X, y))
    (folder / "_SUCCESS").touch()
    (folder / ".part.crc").write_bytes(b"crc")
    (tmp_path / "deep" / "_temporary").mkdir()
    (tmp_path / "deep" / "_temporary" / "x.parquet").write_bytes(b"not yet")
    parts = sorted(folder.glob("part*"))
    for paths in (
        tmp_path / "deep",
        f"{tmp_path}/deep/er/**/*.parquet",
        f"{folder}/*",
        f"{tmp_path}/deep/e*",
        parts,
        [parts[0], f"{folder}/part-004*", f"{folder}/part-0[1-9]*", f"{folder}/part-009*"],
    ):
        stream = open_files(paths, "y")
        assert sorted(file.path for file in stream.files) == [str(part) for part in parts]
        assert stream.n_rows == N
    close(read(tmp_path / "deep"), X, y)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ("{0}/none", "none' does not exist"),
        ("{0}/no*.csv", "no file matches"),
        ("{0}/empty", "empty' holds no table; give one with .csv"),
        ("{0}/mixed", "a.csv' is text, '"),
        ("{0}/notes", "holds 'notes.txt', which is no table"),
        ("{0}/notes/notes.txt", "has the suffix '.txt'; give .csv"),
        (["{0}/notes/a.csv", "{0}/mixed/b.parquet"], "of several kinds"),
        (["{0}/mixed/a.csv", "{0}/mixed/../mixed/a.csv"], "is given more than once"),
        ([], "no file is given"),
        ("s3://bucket/t.parquet", "does not lie on a disk"),
    ],
)
def test_files_that_are_no_table(tmp_path: Path, paths: Any, message: str) -> None:
    table = as_table(*data(20))
    for name in ("empty", "mixed", "notes"):
        (tmp_path / name).mkdir()
    write_csv(tmp_path / "mixed" / "a.csv", table)
    write_parquet(tmp_path / "mixed" / "b.parquet", table)
    write_csv(tmp_path / "notes" / "a.csv", table)
    (tmp_path / "notes" / "notes.txt").touch()
    fill = [path.format(tmp_path) for path in ([paths] if isinstance(paths, str) else paths)]
    with says(message):
        open_files(fill[0] if isinstance(paths, str) else fill, "y")


def test_folders_that_spell_out_a_column(tmp_path: Path) -> None:
    X, y = data()
    for year in range(3):
        for label in ("ash", "oak", "yew"):
            folder = tmp_path / f"year={year}" / f"tree={label}"
            folder.mkdir(parents=True)
            rows = (np.arange(N) % 3 == year) & (y == label)
            pq.write_table(as_table(X[rows], y[rows]).drop_columns("y"), folder / "0.parquet")
    found = read(tmp_path, target="tree")
    assert found.feature_names == (*NAMES, "year")
    assert found.classes is not None
    assert found.classes.tolist() == ["ash", "oak", "yew"]
    close(found, np.column_stack([X, np.arange(N) % 3]), y)
    close(read(tmp_path, target="tree", drop=["year"]), X, y)
    with says("1 feature column is not numeric (string): 'tree'"):
        read(tmp_path, target="year")
    (tmp_path / "year=0" / "other=1").mkdir()
    pq.write_table(as_table(X, y), tmp_path / "year=0" / "other=1" / "0.parquet")
    with says("spell out the columns"):
        read(tmp_path, target="tree")


@pytest.mark.parametrize(
    "value",
    ["2024_01", "007", "+7", "-0", " 7", "7.0", "\u0663", "9223372036854775808", "", "1" * 5_000],
    ids=["underscore", "zeros", "plus", "minus zero", "space", "point", "arabic", "large", "none",
         "very large"],
)  # fmt: skip
def test_folders_whose_values_are_text(tmp_path: Path, value: str) -> None:
    X, y = data(20)
    found = [Found(f"{i}", "Parquet", {"month": text}) for i, text in enumerate(["1", value])]
    assert folder_columns(found, as_table(X, y).schema) == {"month": ["1", value]}


def test_folders_whose_values_are_the_last_whole_numbers(tmp_path: Path) -> None:
    X, y = data(20)
    for number in (-(2**63), 0, 2**63 - 1):
        (tmp_path / f"month={number}").mkdir()
        pq.write_table(as_table(X, y), tmp_path / f"month={number}" / "0.parquet")
    stream = open_files(tmp_path, "month", drop=["y"])
    assert stream.y_kind == "int"
    assert [file.constants["month"] for file in stream.files] == [-(2**63), 0, 2**63 - 1]


# --- files that are not alike ----------------------------------------------------------------


def test_other_columns_and_types(tmp_path: Path) -> None:
    table = as_table(*data())
    pq.write_table(table[:1000], tmp_path / "a.parquet")
    other = tmp_path / "b.parquet"
    for changed, message in (
        (table.drop_columns("x3"), "b.parquet' lacks the column 'x3' of '"),
        (table.append_column("z", table["x0"]), "b.parquet' has the column 'z', which '"),
        (
            table.set_column(3, "x3", table["x3"].cast(pa.string())),
            "column 'x3' is string in '{}' and double in '",
        ),
        (
            table.set_column(D, "y", table["x3"]),
            "column 'y' is double in '{}' and string in '",
        ),
        (
            table.set_column(2, "x2", pa.array([[1]] * N)),
            "column 'x2' is list<",
        ),
    ):
        pq.write_table(changed, other)
        with says(message.format(other)):
            open_files(tmp_path, "y")
    pq.write_table(table.append_column("z", table["x0"]), other)
    assert len(open_files(tmp_path, "y", columns=NAMES).files) == 2
    assert len(open_files(tmp_path, "y", drop=["x3"], columns=["x1"]).files) == 2


def test_booleans_and_numbers_are_not_one_target(tmp_path: Path) -> None:
    table = as_table(*data())
    pq.write_table(table.set_column(D, "y", pa.array(np.arange(N) % 2 == 0)), tmp_path / "a.pq")
    pq.write_table(table.set_column(D, "y", pa.array(np.arange(N) % 2)), tmp_path / "b.pq")
    with says("column 'y' is int64 in '"):
        open_files(tmp_path, "y")


# --- faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", ["one group", "groups of 400", "folder", "csv", "feather"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_none_is_named_with_its_place(
    tmp_path: Path, writer: str, value: float
) -> None:
    X, y = data()
    X[N - 2, 4] = value
    path = WRITERS[writer](tmp_path, as_table(X, y))
    row = (N - 2) % 451 if writer == "folder" else N - 2
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert "column 'x4' is missing" in message
    assert ("part-02706.parquet" if writer == "folder" else "t.") in message
    # A CSV file has no NaN: it is a value that is missing.
    assert (f"line {row + 2}" if writer == "csv" else f"row {row}") in message


def test_nulls_and_the_first_of_several_flaws(tmp_path: Path) -> None:
    X, y = data()
    table = as_table(X, y)
    holes = np.zeros(N, dtype=bool)
    holes[[1_700, 2_900]] = True
    table = table.set_column(1, "x1", pa.array(X[:, 1], mask=holes))
    later = np.zeros(N, dtype=bool)
    later[1_750] = True
    table = table.set_column(0, "x0", pa.array(X[:, 0], mask=later))
    for size in (400, 3_000):
        path = write_parquet(tmp_path / "t.parquet", table, row_group_size=size)
        with pytest.raises(InputError, match=r"column 'x1' is missing .* row 1700 \(from 0\)"):
            read(path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
@pytest.mark.parametrize(
    ("name", "words"),
    [("t.parquet", "cannot be read as"), ("t.feather", "cannot be read as"),
     ("t.csv.gz", "ends too early")],
)  # fmt: skip
def test_files_cut_short(tmp_path: Path, name: str, words: str, share: float) -> None:
    table = as_table(*data())
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(table, path, row_group_size=500)
    elif name == "t.feather":
        feather.write_feather(table, path)
    else:
        write_gzip(path, table)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with says(f"{name}' {words if share else 'is empty'}"):
        read(path)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.csv", "t.csv.gz"])
def test_garbage(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(np.random.default_rng(0).bytes(10_000))
    with pytest.raises(InputError, match=re.escape(name)):
        read(path)


def test_pages_that_are_damaged(tmp_path: Path) -> None:
    X, y = data()
    path = write_parquet(tmp_path / "t.parquet", as_table(X, y), row_group_size=400)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4_000] = bytes(4_000)
    path.write_bytes(content)
    for threads in (1, 2):
        with says("t.parquet' cannot be read as Parquet"):
            read(path, threads)


def test_values_that_are_damaged_where_there_are_checksums(tmp_path: Path) -> None:
    table = as_table(*data())
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    path = write_parquet(tmp_path / "t.parquet", table, row_group_size=400, **options)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with says("t.parquet' cannot be read as Parquet"):
        read(path)


@pytest.mark.parametrize("encoded", [False, True])
def test_labels_that_are_damaged_do_not_end_the_process(tmp_path: Path, encoded: bool) -> None:
    X, y = data()
    labels = pa.array(y).dictionary_encode() if encoded else pa.array(y)
    table = as_table(X, y).set_column(D, "y", labels)
    path = tmp_path / "t.arrow"
    feather.write_feather(table, path, compression="uncompressed")
    # The offsets of the texts, or the codes of the labels.
    held = labels.indices.buffers()[1] if encoded else labels.buffers()[1]
    content = path.read_bytes()
    start = content.index(held.to_pybytes()[:400])
    path.write_bytes(content[:start] + b"\x7f" * 400 + content[start + 400 :])
    with says("t.arrow' cannot be read as Arrow"):
        read(path)
    with says("t.arrow' cannot be read as Arrow"):
        read_table(path)


def test_a_file_that_vanished_or_changed(tmp_path: Path) -> None:
    table = as_table(*data())
    folder = write_folder(tmp_path / "t", table)
    stream = open_files(folder, "y")
    stream_moments(stream)
    last = Path(stream.files[-1].path)
    os.utime(last, ns=(0, 0))
    with says(f"table {str(last)!r} was changed while it was in use"):
        stream_moments(stream)
    last.unlink()
    with says(f"table {str(last)!r} was there, and cannot be read any more: No such file"):
        stream_moments(stream)


@pytest.mark.parametrize("threads", [1, 3])
def test_no_more_handles_are_open_than_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    opened: list[int] = []
    handle = formats._Parquet.handle
    monkeypatch.setattr(
        formats._Parquet, "handle", lambda source: opened.append(1) or handle(source)
    )
    X, y = data()
    for rows in (600, 100):  # in steps, and whole
        path = write_parquet(tmp_path / f"{rows}.parquet", as_table(X, y), row_group_size=rows)
        opened.clear()
        close(read(path, threads), X, y)
        assert len(opened) <= threads + 1  # one for the metadata


def test_windows_of_wide_tables_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    n, d = 9_000, 1_000  # 72 MB in float64
    values = np.arange(n, dtype=np.int8)
    table = pa.table([values] * d + [np.arange(n) % 2], names=[f"x{j}" for j in range(d)] + ["y"])
    path = write_parquet(tmp_path / "t.parquet", table)
    held: list[int] = []
    fill = parallel_fold.fill

    def watched(blocks: Any, *others: Any) -> None:
        held.append(sum(block.nbytes for block in blocks))
        fill(blocks, *others)

    monkeypatch.setattr(parallel_fold, "fill", watched)
    stream = open_files(path, "y")
    stream.threads = 2
    found = stream_moments(stream)
    assert found.n_rows == n
    assert found.x_mean == pytest.approx(values.mean(dtype=float))
    assert max(held) <= 2 * 16 * 2**20


@pytest.mark.parametrize(("distinct", "whole"), [(20_000, True), (5, False)])
def test_row_groups_are_read_in_the_way_that_holds_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distinct: int, whole: bool
) -> None:
    monkeypatch.setattr(formats, "PAGES_BYTES", 2**20)
    # Many values are stored as they are, beside a dictionary; few as codes of some bits.
    X, y = data(20_000)
    X = X[np.arange(len(X)) % distinct]
    path = write_parquet(tmp_path / "t.parquet", as_table(X, y))
    told: list[int] = []
    stream = open_files(path, "y")
    stream.threads = 2
    close(stream_moments(stream, on_rows=lambda done, _: told.append(done)), X, y)
    assert (told == [len(X)]) == whole


@pytest.mark.parametrize("n_folds", [2, 5, 40])
def test_states_of_many_matrices_are_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_folds: int
) -> None:
    monkeypatch.setattr(parallel_fold, "BLOCK_BYTES", 8 * D**2)
    monkeypatch.setattr(parallel_fold, "STATE_BYTES", 24 * 8 * D**2)
    begun: list[int] = []
    begin = SplitReducer.begin

    def watched(fold: Any) -> Any:
        state = begin(fold)
        begun.append(len(state.accumulators))
        return state

    monkeypatch.setattr(SplitReducer, "begin", watched)
    X, y = data()
    stream = open_files(write_parquet(tmp_path / "t.parquet", as_table(X, y)), "y")
    stream.threads = 16
    coding = TargetEncoding(labels=True, classes=np.array(["ash", "oak", "yew"]))
    parts = stream.reduce(SplitReducer(stream.feature_names, coding, n_folds, 0))
    assert sum(part.n_rows for part in parts if part is not None) == N
    assert len(begun) == max(1, 24 // n_folds)
    assert set(begun) == {n_folds}
    begun.clear()
    stream.reduce(SplitReducer(stream.feature_names, coding, n_folds, 0, only_fold=1))
    assert (len(begun), set(begun)) == (12, {2})


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("writer", ["one group", "groups of 400", "csv", "feather"])
def test_an_interrupt_reaches_the_caller(tmp_path: Path, writer: str, threads: int) -> None:
    stream = open_files(WRITERS[writer](tmp_path, as_table(*data())), "y")
    stream.threads = threads
    told: list[int] = []

    def interrupt(done: int, total: int | None) -> None:
        told.append(done)
        if len(told) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream_moments(stream, on_rows=interrupt)
    assert len(told) == 3
    stream_moments(stream)


def test_rows_are_reported_in_the_thread_of_the_caller(tmp_path: Path) -> None:
    import threading

    path = WRITERS["folder"](tmp_path, as_table(*data()))
    stream = open_files(path, "y")
    stream.threads = 2
    told: list[tuple[int, int | None]] = []
    threads = set()

    def show(done: int, total: int | None) -> None:
        told.append((done, total))
        threads.add(threading.current_thread())

    stream_moments(stream, on_rows=show)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1] == (N, N)
    assert threads == {threading.current_thread()}
    write_csv(tmp_path / "t.csv", as_table(*data()))
    stream_moments(open_files(tmp_path / "t.csv", "y"), on_rows=show)
    assert told[-1] == (N, None)


# --- text ------------------------------------------------------------------------------------


def lines(values: list[str], tail: list[str]) -> str:
    """A column of these, then of those at the end, beside two features."""
    rng = np.random.default_rng(0)
    ys = [values[i % len(values)] for i in range(5_000)] + tail
    rows = [f"{rng.normal():.6f},{i % 7},{y}" for i, y in enumerate(ys)]
    return "a,b,y\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("values", "tail"),
    [
        (["1", "2"], ["3"]),
        (["1", "2"], ["3.0"]),
        (["1", "2"], ["0.5"]),
        (["1", "2"], ["z"]),
        (["0", "1"], ["true"]),
        (["true", "false"], ["maybe"]),
        (["1.0", "2.0"], ["z"]),
        (["u", "v"], ["3"]),
        (["true", "false"], []),
    ],
    ids=lambda value: "-".join(value) or "none",
)
def test_a_target_is_what_the_whole_file_says(
    tmp_path: Path, values: list[str], tail: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from exactk.data.files import read_table, split_table

    monkeypatch.setattr("exactk.streaming.csv.BLOCK_BYTES", 4_096)
    path = tmp_path / "t.csv"
    path.write_text(lines(values, tail))
    parts = split_table(read_table(path), "y")
    held = Problem.from_arrays(parts.features, parts.target)
    found = Problem.from_files(path, "y")
    assert (found.task, found.n_rows) == (held.task, held.n_rows)
    assert (found.classes is None) == (held.classes is None)
    if found.classes is not None and held.classes is not None:
        assert found.classes.tolist() == held.classes.tolist()
    np.testing.assert_allclose(found.cross, held.cross, rtol=1e-9, atol=1e-9)


def test_labels_given_as_words_are_looked_for_as_words(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,y\n1,5,01\n2,3,2\n4,4,01\n3,9,2\n")
    problem = Problem.from_files(tmp_path / "t.csv", "y", classes=["01", "2", "none yet"])
    assert problem.classes.tolist() == ["01", "2", "none yet"]
    assert Problem.from_files(tmp_path / "t.csv", "y", classes=[2, 1]).classes.tolist() == [1, 2]


def test_labels_that_are_numbers_in_one_file_and_words_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text(lines(["1", "2"], []))
    (tmp_path / "b.csv").write_text(lines(["2", "z"], []))
    found = read(tmp_path)
    assert found.classes is not None
    assert found.classes.tolist() == ["1", "2", "z"]
    with says("target 'y' holds text, not the numbers of a regression"):
        Problem.from_files(tmp_path, "y", task="regression")
    (tmp_path / "b.csv").unlink()
    (tmp_path / "a.csv").write_text(lines(["1", "2"], ["z"]))
    monkeypatch.setattr("exactk.streaming.csv.BLOCK_BYTES", 4_096)
    with says("a.csv' has 'z' in line 5002, which is not a number"):
        Problem.from_files(tmp_path, "y", task="regression")


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("1,2\n", "row '1,2' in line 5002 has 2 values where the header has 3"),
        ("1,2,u,4\n1,2\n", "row '1,2,u,4' in line 5002 has 4 values where the header has 3"),
        ("oops,2,u\n", "column 'a' of table '{}' has 'oops' in line 5002"),
        (",2,u\n", "column 'a' is missing in {}, line 5002"),
        ("1,NA,u\n", "column 'b' is missing in {}, line 5002"),
        ("1,2,NA\n", "column 'y' is missing in {}, line 5002"),
        ("1,2,\n", "column 'y' is missing in {}, line 5002"),
        ("1,2,\xff\n", "is not UTF-8 text: column 'y', line 5002"),
        ('1,2,"u\n3,4,v\n', "line break"),
    ],
    ids=["short", "long", "word", "empty", "NA", "NA label", "no label", "latin", "quote"],
)
def test_rows_of_text_that_cannot_be_used(
    tmp_path: Path, tail: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exactk.streaming.csv.BLOCK_BYTES", 4_096)
    path = tmp_path / "t.csv"
    path.write_bytes((lines(["u", "v"], []) + tail).encode("latin-1"))
    with says(message.format(path)) as error:
        read(path)
    assert error.value.parameter in ("path", "target", "X")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("a,b,y\n", "no rows"),
        ("a,b,a\n1,2,3\n", "more than one column named 'a'; rename them"),
        ("a,b,y\n1,x,u\n2,z,v\n", "1 feature column is not numeric (string): 'b'"),
        ("a,b,y\n1,2,2020-01-01\n", "target column 'y' is date32[day]"),
        ("naïve,b,y\n1,2,3\n", "is not UTF-8 text in line 1; save it as UTF-8"),
        ("a,b,y\n1,2,3\n1,é,3\n", "is not UTF-8 text in line 3; save it as UTF-8"),
        ("a,b,y\n1,2,u\n1,2,é\n", "is not UTF-8 text in line 3; save it as UTF-8"),
    ],
)
def test_text_that_is_no_table(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode("latin-1"))
    with says(message):
        read(path)


def test_booleans_as_features_and_tabs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (100, 2))
    y = rng.normal(size=100) + X[:, 0]
    path = tmp_path / "t.tsv"
    rows = [f"{bool(a)}\t{b}\t{v!r}".lower() for (a, b), v in zip(X, y.tolist(), strict=True)]
    path.write_text("a\tb\ty\n" + "\n".join(rows) + "\n")
    close(read(path), X.astype(float), y)


def test_one_row_may_be_long(tmp_path: Path) -> None:
    names = [f"{'long' * 50}{i}" for i in range(2_500)]
    X = np.random.default_rng(0).integers(0, 9, (30, 2_500))
    text = "\n".join(",".join(map(str, row)) + f",{i % 2}" for i, row in enumerate(X))
    (tmp_path / "t.csv").write_text(",".join([*names, "y"]) + "\n" + text + "\n")
    found = read(tmp_path / "t.csv")
    assert found.feature_names == tuple(names)
    np.testing.assert_allclose(found.x_mean, X.mean(axis=0))


# --- memory ----------------------------------------------------------------------------------

MEMORY = """
import resource, sys
import numpy, pyarrow.parquet, pyarrow.csv, scipy.linalg
from exactk import Problem
from exactk.streaming.files import open_files
from exactk.streaming.moments import stream_moments

small = open_files(sys.argv[1], "y")
small.threads = 2
stream_moments(small)
with open("/proc/self/status") as lines:
    base = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
large = open_files(sys.argv[2], "y")
large.threads = 2
moments = stream_moments(large)
with open("/proc/self/status") as lines:
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(moments.n_rows, (peak - base) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell")
@pytest.mark.parametrize(("group", "most"), [(50_000, 150), (1_500_000, 200)])
def test_memory_does_not_grow_with_rows(tmp_path: Path, group: int, most: int) -> None:
    """600 MB in float64; blocks, and what Arrow holds of 50 columns, take a part of that."""
    n, d, rows = 1_500_000, 50, 250_000
    values = np.random.default_rng(0).normal(size=(d, rows))
    names = [*(f"x{j}" for j in range(d)), "y"]
    table = pa.table([*values, pa.array(np.arange(rows) % 3)], names=names)
    large = tmp_path / "large"
    large.mkdir()
    if group > rows:
        whole = pa.concat_tables([table] * (n // rows))
        plain = {"compression": "none", "use_dictionary": False}
        pq.write_table(whole, large / "0.parquet", row_group_size=group, **plain)
    else:
        pq.write_table(table, large / "0.parquet", row_group_size=group)
        for i in range(1, n // rows):
            os.link(large / "0.parquet", large / f"{i}.parquet")
    small = write_parquet(tmp_path / "small.parquet", table[:20_000])
    answer = subprocess.run(
        [sys.executable, "-c", MEMORY, str(small), str(large)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found, megabytes = map(int, answer.stdout.split())
    assert found == n
    assert megabytes < most


def test_one_name_to_drop_is_no_list(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"i": [1.0, 2.0], "id": [3.0, 5.0], "y": [0, 1]}), tmp_path / "t.parquet"
    )
    with pytest.raises(InputError, match="drop must be a list of column names, not 'id'"):
        open_files(tmp_path / "t.parquet", "y", drop="id")
