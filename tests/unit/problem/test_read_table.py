"""`read_table`: files of every kind give the problem that their rows give in memory."""

from __future__ import annotations

import bz2
import gzip
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactk import Problem, solve
from exactk.errors import InputError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

import pyarrow.feather as feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from pyarrow import csv  # noqa: E402

from exactk.problem import read_table as module  # noqa: E402
from exactk.problem.read_table import TableRoles, is_streamed, open_stream, read_table  # noqa: E402
from exactk.streaming.moments import stream_moments  # noqa: E402

NAMES = [f"x{j}" for j in range(6)]
RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 6))
LABELS = np.array(["low", "high"])[(X[:, 1] - 2 * X[:, 4] > 0).astype(int)]
WEIGHTS = RNG.integers(0, 3, N)
SITES = np.array([f"site {i}" for i in RNG.integers(0, 9, N)])
ROLES: dict[str, Any] = {"weights": "w", "groups": "site"}


@pytest.fixture(scope="module")
def table() -> Any:
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    return pa.table({**columns, "w": WEIGHTS, "site": SITES, "y": LABELS})


@pytest.fixture(scope="module")
def places(table: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same table in every format, and as a folder of three files."""
    root = tmp_path_factory.mktemp("tables")
    csv.write_csv(table, root / "t.csv")
    (root / "t.csv.gz").write_bytes(gzip.compress((root / "t.csv").read_bytes()))
    (root / "t.tsv").write_text((root / "t.csv").read_text().replace(",", "\t"))
    pq.write_table(table, root / "t.parquet")
    feather.write_feather(table, root / "t.feather")
    with pa.ipc.new_stream(root / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    (root / "parts").mkdir()
    for start in range(0, N, 50):
        pq.write_table(table.slice(start, 50), root / "parts" / f"{start:03d}.parquet")
    kinds = ("csv", "csv.gz", "tsv", "parquet", "feather", "arrow")
    found = {kind: str(root / f"t.{kind}") for kind in kinds}
    return {**found, "folder": str(root / "parts"), "pattern": str(root / "parts" / "*.parquet")}


EVERY = ("csv", "csv.gz", "tsv", "parquet", "feather", "arrow", "folder", "pattern")


@pytest.mark.parametrize("kind", EVERY)
def test_every_format_gives_the_problem_of_its_rows(kind: str, places: dict[str, str]) -> None:
    data = read_table(places[kind], "y", **ROLES)
    wanted = Problem.from_arrays(X, LABELS, sample_weight=WEIGHTS, feature_names=NAMES)
    assert data.target == "y"
    assert data.problem.feature_names == tuple(NAMES)
    assert data.problem.task == "classification"
    result = solve(data.problem, 2)
    assert result.feature_names == solve(wanted, 2).feature_names
    assert result.objective == pytest.approx(solve(wanted, 2).objective)
    # Rows of weight zero are left out of a stream that is loaded.
    counted = WEIGHTS > 0 if is_streamed(places[kind]) else slice(None)
    assert data.groups is not None
    assert data.groups.tolist() == SITES[counted].tolist()
    assert data.problem.rows is not None
    assert data.problem.rows.n_rows == len(data.groups)


def test_a_folder_stays_on_disk_without_groups(places: dict[str, str]) -> None:
    for kind in ("folder", "pattern", "arrow"):
        data = read_table(places[kind], "y", drop=["site"], weights="w")
        assert data.problem.stream is not None
        assert data.problem.rows is None
        assert data.groups is None


def test_a_large_table_is_streamed(places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = solve(read_table(places["csv"], "y", **ROLES).problem, 2).selected
    for kind in ("csv", "csv.gz", "parquet", "feather"):
        assert not is_streamed(places[kind])
        assert read_table(places[kind], "y", **ROLES).problem.stream is None
    monkeypatch.setattr(module, "LARGE_TABLE", 8 * N * 9 - 1)
    for kind in ("csv", "csv.gz", "parquet", "feather"):
        assert is_streamed(places[kind])
        assert solve(read_table(places[kind], "y", **ROLES).problem, 2).selected == wanted


def test_columns_are_chosen_and_dropped(places: dict[str, str]) -> None:
    for kind in ("csv", "folder"):
        data = read_table(places[kind], "y", columns=["x4", "x0"])
        assert data.problem.feature_names == ("x4", "x0")
        data = read_table(places[kind], "y", drop=["site", "w", "x1"])
        assert data.problem.feature_names == ("x0", "x2", "x3", "x4", "x5")


def test_text_columns_are_encoded_in_memory_alone(places: dict[str, str]) -> None:
    data = read_table(places["csv"], "y", columns=["site", "x0"])
    assert data.problem.original_names == ("site", "x0")
    assert data.problem.n_features > 2
    with pytest.raises(InputError) as error:
        read_table(places["folder"], "y", columns=["site", "x0"])
    assert error.value.parameter == "columns"


def test_classes_known_in_advance(places: dict[str, str], tmp_path: Path) -> None:
    data = read_table(places["csv"], "y", drop=["site"], classes=["high", "low", "none"])
    assert data.problem.classes is not None
    assert data.problem.classes.tolist() == ["high", "low", "none"]
    with pytest.raises(InputError, match="'low'"):
        read_table(places["csv"], "y", drop=["site"], classes=["high", "none"])
    numbers = tmp_path / "n.csv"
    numbers.write_text("a,y\n1,0\n2,1\n3,1\n5,0\n")
    for classes, wanted in ((["0", "1", "2"], [0, 1, 2]), ([0, 1], [0, 1])):
        found = read_table(numbers, "y", task="classification", classes=classes).problem.classes
        assert found is not None
        assert found.tolist() == wanted
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [0, 1]}), tmp_path / "n.parquet")
    with pytest.raises(InputError) as error:
        read_table(tmp_path / "n.parquet", "y", classes=["zero", "one"])
    assert error.value.parameter == "classes"


def test_a_task_is_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\n2,1\n3,1\n5,0\n")
    assert read_table(path, "y", task="classification").problem.task == "classification"
    assert read_table(path, "y", task="regression").problem.task == "regression"


def test_moments_are_a_table(places: dict[str, str], tmp_path: Path) -> None:
    stream = open_stream([places["folder"]], TableRoles("y", weights="w", drop=["site"]))
    path = tmp_path / "moments.npz"
    stream_moments(stream).save(path)
    wanted = Problem.from_arrays(X, LABELS, sample_weight=WEIGHTS, feature_names=NAMES)
    data = read_table(path)
    assert (data.target, data.groups) == ("y", None)
    assert solve(data.problem, 2).feature_names == solve(wanted, 2).feature_names
    fewer = read_table(path, "y", drop=["x4"], memory_limit=10**6).problem
    assert fewer.feature_names == ("x0", "x1", "x2", "x3", "x5")
    assert fewer.memory_limit == 10**6
    assert read_table(path, columns=["x5", "x1"]).problem.feature_names == ("x5", "x1")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"groups": "site"}, "groups"), ({"weights": "w"}, "weights"),
        ({"task": "regression"}, "task"), ({"layer": "raw"}, "layer"),
        ({"classes": ["a"]}, "classes"), ({"target": "z"}, "target"),
        ({"columns": ["x9"]}, "columns"), ({"drop": ["x9"]}, "drop"), ({"drop": NAMES}, "drop"),
    ]  # fmt: skip
    for given, parameter in wrong:
        with pytest.raises(InputError) as error:
            read_table(path, **given)
        assert error.value.parameter == parameter


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"target": None}, "target"),
        ({"target": "z"}, "target"),
        ({"weights": "z"}, "weights"),
        ({"groups": "z"}, "groups"),
        ({"groups": "y"}, "groups"),
        ({"groups": "w", "weights": "w"}, "groups"),
        ({"columns": ["x0", "site"], "groups": "site"}, "columns"),
        ({"columns": ["z"]}, "columns"),
        ({"columns": "x0"}, "columns"),
        ({"drop": ["z"]}, "drop"),
        ({"drop": ["site"], "groups": "site"}, "drop"),
        ({"groups": "x0"}, "groups"),
        ({"layer": "raw"}, "layer"),
        ({"gene_names": "symbol"}, "gene_names"),
        ({"task": "guess"}, "task"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "folder"])
def test_a_wrong_value_names_its_parameter(
    kind: str, given: dict[str, Any], parameter: str, places: dict[str, str]
) -> None:
    roles = {"target": "y", "drop": ["site"], **given}
    if roles.get("groups") == "site" and "drop" not in given:
        roles["drop"] = []
    with pytest.raises(InputError) as error:
        read_table(places[kind], **roles)
    assert error.value.parameter == parameter


def test_groups_of_a_folder_that_does_not_fit_into_memory(places: dict[str, str]) -> None:
    with pytest.raises(InputError) as error:
        read_table(places["folder"], "y", groups="site", memory_limit=2_000)
    assert error.value.parameter == "memory_limit"


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("values", [[1, 1, 1, 1], [None, 1, 2, 2], [1.5, 1.0, 2.0, 2.0]])
def test_groups_are_two_or_more_names(values: list[Any], folder: bool, tmp_path: Path) -> None:
    columns = {"a": [1.0, 2.0, 3.0, 5.0], "y": [0.1, 0.7, 0.3, 0.2], "g": values}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="'g'") as error:
        read_table(tmp_path if folder else tmp_path / "t.parquet", "y", groups="g")
    assert error.value.parameter == "groups"


def test_groups_may_be_whole_numbers_in_any_column_type(tmp_path: Path) -> None:
    columns = {"a": [1.0, 2.0, 3.0, 5.0], "y": [0.1, 0.7, 0.3, 0.2], "g": [7.0, 8.0, 7.0, 8.0]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    for place in (tmp_path, tmp_path / "t.parquet"):
        groups = read_table(place, "y", groups="g").groups
        assert groups is not None
        assert groups.tolist() == [7, 8, 7, 8]


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize(
    ("rows", "parameter", "words"),
    [
        (["1,2,1", "2,3,-1", "4,1,2"], "weights", "line 3"),
        (["1,2,1", "2,3,1", "4,1,inf"], "weights", "weight|'w'"),
        (["1,2,1e-310", "2,3,1e-310", "4,1,1e-310"], "weights", "1e-310|3e-310"),
        (["1,2,1", ",3,1", "4,1,2"], "columns|X", "'x'"),
        (["1,2,1", "2,3,1", "?,1,2", "5,6,1", "7,7,1"], "columns|X", "'x'"),
    ],
)
def test_bad_values_name_their_line_and_parameter(
    rows: list[str], parameter: str, words: str, folder: bool, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("\n".join(["x,y,w", *rows]) + "\n")
    with pytest.raises(InputError, match=words) as error:
        read_table(tmp_path if folder else tmp_path / "t.csv", "y", weights="w")
    assert error.value.parameter in parameter.split("|")
    assert "sample_weight" not in str(error.value)


def test_a_mark_among_numbers_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,2\n3,5\n?,1\n4,2\n5,6\n7,7\n")
    with pytest.raises(InputError, match=r"'x'.*'\?'.*line 4"):
        read_table(path, "y")
    # Far below the rows that the types are inferred from, and in a column of numbers.
    path.write_text("x,y\n" + "1,2\n3,5\n" * 1_000_000 + "oops,3\n")
    with pytest.raises(InputError, match=r"'x'.*'oops' in line 2000002") as error:
        read_table(tmp_path, "y")
    assert error.value.parameter == "X"


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(b"a,y\n1,2\n"))
    (tmp_path / "t.xlsx").write_bytes(b"table")
    (tmp_path / "empty").mkdir()
    for name in ("t.csv.bz2", "t.xlsx", "empty", "nowhere.csv", "*.parquet"):
        with pytest.raises(InputError) as error:
            read_table(tmp_path / name, "y")
        assert error.value.parameter == "path"


@pytest.mark.omics
@pytest.mark.parametrize("large", [False, True])
def test_an_h5ad_file(large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_spec("anndata")
    anndata, pandas = import_module("anndata"), import_module("pandas")
    obs = pandas.DataFrame({"y": LABELS, "w": WEIGHTS, "site": SITES}, index=[*map(str, range(N))])
    cells = anndata.AnnData(X, obs=obs, var=pandas.DataFrame(index=NAMES))
    cells.write_h5ad(tmp_path / "t.h5ad")
    if large:
        monkeypatch.setattr(module, "LARGE_CELLS", 0)
    data = read_table(tmp_path / "t.h5ad", "y", drop=["x0"], **ROLES)
    wanted = Problem.from_arrays(X[:, 1:], LABELS, sample_weight=WEIGHTS, feature_names=NAMES[1:])
    assert solve(data.problem, 2).feature_names == solve(wanted, 2).feature_names
    assert data.groups is not None
    assert data.groups.tolist() == SITES[WEIGHTS > 0 if large else slice(None)].tolist()
    with pytest.raises(InputError) as error:
        read_table(tmp_path / "t.h5ad", "y", weights="y")
    assert error.value.parameter == "weights"


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ("path", [5, None, b"t.csv"]),
        ("target", [5, ["y"], np.array(["y"])]),
        ("weights", [5, ["w"], np.ones(3)]),
        ("groups", [5, np.ones(3)]),
        ("columns", [5, "x0", ["x0", 3], [["x0"]], {"x0"}]),
        ("drop", [5, "x0", None, [None]]),
        ("classes", [5, 0, False, "", "01", [], [None, 1], {0: 1}]),
    ],
)
def test_parameters_of_the_wrong_type_are_refused_by_name(
    parameter: str, values: list[Any], places: dict[str, str]
) -> None:
    for value in values:
        given = {"path": places["csv"], "target": "y", parameter: value}
        with pytest.raises(InputError) as error:
            read_table(**given)
        assert error.value.parameter == parameter


def test_names_and_labels_may_be_arrays(places: dict[str, str]) -> None:
    drop = np.array(["site", "w"])
    data = read_table(places["folder"], "y", drop=drop, classes=np.array(["high", "low"]))
    assert data.problem.feature_names == tuple(NAMES)
    assert data.problem.classes is not None
    assert list(data.problem.classes) == ["high", "low"]
    data = read_table(places["csv"], "y", columns=np.array(["x4", "x0"]))
    assert data.problem.feature_names == ("x4", "x0")


def test_no_columns_are_not_all_columns(places: dict[str, str], tmp_path: Path) -> None:
    moments = tmp_path / "m.npz"
    stream_moments(open_stream([places["csv"]], TableRoles("y", drop=["site"]))).save(moments)
    for place, target in ((places["csv"], "y"), (places["folder"], "y"), (moments, None)):
        with pytest.raises(InputError) as error:
            read_table(place, target, columns=[])
        assert error.value.parameter == "columns"
