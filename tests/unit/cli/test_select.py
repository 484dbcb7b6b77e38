"""``exactk select``: right answers in every format, one sentence for every mistake."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys

import numpy as np
import pytest

import exactk
from exactk import Problem, Result, solve

pa = pytest.importorskip("pyarrow")
pa_csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

NO_ID = ["--drop", "id", "--drop", "copies"]


@pytest.fixture
def answer(wine):
    """What the library says, for k=3 and the automatic ridge."""
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names)
    return solve(problem.with_ridge("auto"), 3)


def test_text(run, wine_csv, answer):
    result = run("select", wine_csv, "--target", "cultivar", "-k", 3, *NO_ID)
    assert result.code == 0
    assert result.err == ""
    head, *lines = result.out.splitlines()
    assert head == "3 of 13 features for 'cultivar' (classification, 178 rows)"
    names = dict(zip(answer.support, answer.feature_names, strict=True))
    assert lines[1:4] == [f"{rank:6}  {names[p]}" for rank, p in enumerate(answer.order, 1)]
    assert f"objective  {answer.objective:.6g} of " in result.out
    assert "% of the squared error" in result.out
    assert "(auto)" in result.out
    assert f"status     {answer.status}" in result.out


def test_csv(run, wine_csv, answer):
    args = ["--target", "cultivar", "-k", 3, *NO_ID, "--format", "csv"]
    rows = list(csv.DictReader(io.StringIO(run("select", wine_csv, *args).out)))
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    assert [int(row["index"]) for row in rows] == [int(p) for p in answer.order]
    assert {row["feature"] for row in rows} == set(answer.feature_names)


def test_json_round_trip(run, wine_csv, answer):
    args = ["--target", "cultivar", "-k", 3, *NO_ID, "--format", "json"]
    text = run("select", wine_csv, *args).out
    content = json.loads(text)
    assert content["version"] == exactk.__version__
    assert content["table"] == str(wine_csv)
    assert content["target"] == "cultivar"
    assert content["ridge"] == pytest.approx(answer.ridge)
    back = Result.from_json(text)
    assert list(back.support) == list(answer.support)
    assert list(back.order) == list(answer.order)
    assert back.feature_names == answer.feature_names
    assert back.objective == pytest.approx(answer.objective)
    np.testing.assert_allclose(back.coef, answer.coef)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv", "t.tsv.gz", "t.parquet"])
def test_every_file_format_gives_the_same(run, wine_csv, tmp_path, name):
    args = ["--target", "cultivar", "-k", 4, *NO_ID, "--format", "csv"]
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(pa_csv.read_csv(wine_csv), path)
    else:
        text = wine_csv.read_text()
        text = text.replace(",", "\t") if ".tsv" in name else text
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert run("select", path, *args).out == run("select", wine_csv, *args).out


def test_weights_are_repeated_rows(run, wine, wine_csv):
    X, labels, names, weights = wine
    problem = Problem.from_arrays(
        np.repeat(X, weights, axis=0), np.repeat(labels, weights), feature_names=names, ridge=0.01
    )
    args = ["--target", "cultivar", "-k", 3, "--drop", "id", "--weights", "copies"]
    text = run("select", wine_csv, *args, "--ridge", "0.01", "--format", "json").out
    assert json.loads(text)["objective"] == pytest.approx(solve(problem, 3).objective)


def test_options_reach_the_solver(run, wine_csv):
    args = ["--target", "cultivar", "-k", 3, *NO_ID, "--format", "json"]
    content = json.loads(run("select", wine_csv, *args, "--method", "greedy", "--ridge", "0").out)
    assert (content["method"], content["ridge"], content["ridge_rule"]) == ("greedy", 0, 0)
    more = ["--effort", "0", "--seed", "3", "--time-limit", "20", "--ridge", "cv", "--quiet"]
    result = run("select", wine_csv, *args, *more)
    assert result.code == 0
    assert json.loads(result.out)["ridge_rule"] == "cv"


def test_options_of_a_method_reach_it(run, wine, wine_csv):
    args = ["select", wine_csv, "--target", "cultivar", "-k", 3, *NO_ID, "--ridge", 0]
    more = ["--method", "gsrfs", "-O", "lam=40", "--option", "p=1", "-O", "labels=centred"]
    content = json.loads(run(*args, *more, "--format", "json").out)
    assert content["options"] == {"lam": 40, "p": 1, "labels": "centred"}
    X, labels, _, _ = wine
    problem = Problem.from_arrays(X, labels)
    expected = solve(problem, 3, "gsrfs", lam=40, p=1, labels="centred")
    assert content["trace"] == pytest.approx(expected.trace)
    loud = run(*args, "--method", "nmapg", "-O", "rho=none", "-O", "max-iter=2")
    assert loud.code == 0
    assert loud.err == ("exactk: the iteration limit came before convergence; raise max_iter.\n")


def test_task(run, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 5))
    y = np.round(3 * X[:, 2] + 1).astype(int)
    path = tmp_path / "counts.parquet"
    pq.write_table(pa.table({**{f"x{j}": X[:, j] for j in range(5)}, "y": y}), path)
    args = ["select", path, "--target", "y", "-k", 1]
    assert "(regression, 40 rows)" in run(*args, "--task", "regression").out
    assert "(classification, 40 rows)" in run(*args, "--task", "classification").out


def test_output_file(run, wine_csv, tmp_path):
    args = ["select", wine_csv, "--target", "cultivar", "-k", 2, *NO_ID, "--format", "csv"]
    place = tmp_path / "chosen.csv"
    result = run(*args, "--output", place)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert place.read_text() == run(*args).out


def test_a_shortfall_is_said_on_stderr(run, tmp_path):
    # Two of three columns carry the same values: three independent ones do not exist.
    x, z = [1.0, 2.0, 3.0, 5.0], [2.0, 1.0, 0.0, 3.0]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": x, "b": x, "c": z, "y": [0.1, 0.9, 0.4, 0.6]}), path)
    args = ["select", path, "--target", "y", "-k", 3, "--ridge", 0]
    loud, quiet = run(*args), run(*args, "--quiet")
    assert loud.code == quiet.code == 0
    assert loud.err.startswith("exactk: ")
    assert quiet.err == ""
    assert "status     rank_deficient" in quiet.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "Missing argument 'TABLE'"),
        (["{table}", "-k", 3], "Missing option '--target'"),
        (["{table}", "--target", "cultivar"], "Missing option '-k'"),
        (["{good}", "-k", 0], "Invalid value for '-k': '0' is neither 'auto' nor a whole number"),
        (["{good}", "-k", "many"], "Invalid value for '-k'"),
        (["{good}", "-k", 14], "14"),
        (["{good}", "-k", 3, "--method", "exchnage"], "did you mean 'exchange'?"),
        (["{good}", "-k", 3, "--ridge", "-1"], "'-1' is neither 'auto', 'cv' nor a number"),
        (["{good}", "-k", 3, "--ridge", "nan"], "'nan' is neither 'auto', 'cv' nor a number"),
        (["{good}", "-k", 3, "--ridge", "some"], "'some' is neither 'auto', 'cv' nor a number"),
        (["{good}", "-k", 3, "--effort", "-1"], "Invalid value for '--effort'"),
        (["{good}", "-k", 3, "--time-limit", "0"], "Invalid value for '--time-limit'"),
        (["{good}", "-k", 3, "--task", "rank"], "Invalid value for '--task'"),
        (["{good}", "-k", 3, "--format", "xml"], "Invalid value for '--format'"),
        (["{good}", "-k", 3, "--method", "greedy", "--effort", 1], "effort"),
        (["{good}", "-k", 3, "-O", "effort"], "'effort' is not of the form NAME=VALUE"),
        (["{good}", "-k", 3, "-O", "=2"], "'=2' is not of the form NAME=VALUE"),
        (["{good}", "-k", 3, "-O", "effort=1", "-O", "effort=2"], "'effort' is given twice"),
        (["{good}", "-k", 3, "-O", "efort=1"], "did you mean 'effort'?"),
        (["{good}", "-k", 3, "--method", "gsrfs", "-O", "p=2"], "p must be a number in (0, 1]"),
        (["none.csv", "--target", "y", "-k", 3, "--method", "rfs", "-O", "lam=0"], "lam must be"),
        (["{good}", "-k", 3, "--drop", "ash", "--drop", "asch"], "did you mean 'ash'?"),
        (["{good}", "-k", 3, "--weights", "kopies"], "did you mean 'copies'?"),
        (["{good}", "-k", 3, "--output", "{folder}"], "is a folder"),
        (["{good}", "-k", 3, "--output", "{folder}/no/x"], "its folder does not exist"),
        (["{good}", "-k", 3, "--output", "{table}"], "is the table itself"),
        (["{folder}/none.csv", "--target", "y", "-k", 3], "does not exist"),
        (["{table}", "--target", "Cultivar", "-k", 3], "did you mean 'cultivar'?"),
        (["{table}", "--target", "cultivar", "-k", 3], "column 'id' has 178 different values"),
        (["{table}", "--target", "proline", "--drop", "id", "--drop", "cultivar", "-k", 3], "task"),
    ],
)
def test_a_mistake_is_one_sentence(run, wine_csv, args, message):
    words = {"table": str(wine_csv), "folder": str(wine_csv.parent)}
    full: list[str] = []
    for arg in args:
        if arg == "{good}":
            full += [str(wine_csv), "--target", "cultivar", *NO_ID]
        else:
            full.append(str(arg).format(**words))
    result = run("select", *full)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("exactk: ")
    assert message in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0, None, 2.0], "y": ["u", "v", "u"]}, "column 'a' has 1 missing value"),
        ({"a": [1.0, float("inf"), 2.0], "y": ["u", "v", "u"]}, "column 'a' has 1 infinite value"),
        ({"a": [1.0, 2.0, 3.0], "y": ["u", None, "u"]}, "target column 'y' has 1 missing value"),
        ({"a": [1.0, 2.0, 3.0], "y": ["u", "u", "u"]}, "class"),
        ({"a": [1.0, 1.0, 1.0], "y": ["u", "v", "u"]}, "constant"),
        ({"y": ["u", "v", "u"]}, "no feature columns"),
    ],
)
def test_bad_tables(run, tmp_path, columns, message):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    result = run("select", path, "--target", "y", "-k", 1)
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("weights", [[1.0, -1.0, 1.0], [0.0, 0.0, 0.0]])
def test_bad_weights(run, tmp_path, weights):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0], "y": ["u", "v", "u"], "w": weights}), path)
    result = run("select", path, "--target", "y", "-k", 1, "--weights", "w")
    assert result.code == 2
    assert "weight" in result.err
    assert result.err.count("\n") == 1


def test_output_is_checked_before_the_work(run, wine_csv, tmp_path, monkeypatch):
    def fail(path):
        raise AssertionError("the table was read")

    monkeypatch.setattr("exactk.data.files.read_table", fail)
    place = tmp_path / "absent" / "x.csv"
    args = ["--target", "cultivar", "-k", 2, "--output", place]
    assert run("select", wine_csv, *args).code == 2


# --- as a process ----------------------------------------------------------------------------


def start(*args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "exactk", "select", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_process_keeps_streams_apart(wine_csv):
    process = start(wine_csv, "--target", "cultivar", "-k", 2, *NO_ID, "--format", "csv")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("rank,index,feature\n1,")
    process = start(wine_csv, "--target", "cultivar", "-k", 99, *NO_ID)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert "Traceback" not in err


def test_interrupt_gives_the_best_so_far(wine_csv):
    args = ["select", str(wine_csv), "--target", "cultivar", "-k", "4", *NO_ID]
    code = (
        "import _thread, signal\n"
        # Ignored in what a script starts in the background, and so in all that it starts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from exactk.cli import main\n"
        "from exactk.utils.monitor import Monitor\n"
        "Monitor.report = lambda *progress: _thread.interrupt_main()\n"
        f"main({[*args, '--time-limit', '60', '--format', 'json']!r})"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 130, process.stderr
    assert process.stderr.startswith("exactk: stopped by the user")
    assert process.stderr.count("\n") == 1
    content = json.loads(process.stdout)
    assert content["status"] == "interrupted"
    assert len(content["support"]) == 4


def test_interrupt_before_there_is_a_result(run, wine_csv, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("exactk.data.files.read_table", interrupt)
    place = tmp_path / "x.csv"
    result = run("select", wine_csv, "--target", "cultivar", "-k", 2, "--output", place)
    assert (result.code, result.out) == (130, "")
    assert "interrupted" in result.err
    assert not place.exists()


def test_a_second_target_is_refused(run, wine_csv):
    result = run("select", wine_csv, "--target", "cultivar", "--target", "alcohol", "-k", 2)
    assert result.code == 2
    assert result.out == ""
    assert "given 2 times (cultivar, alcohol)" in result.err


def test_messages_name_options_not_parameters(run, tmp_path):
    table = tmp_path / "amounts.csv"
    rows = [f"{i * 7 % 31},{i}" for i in range(60)]
    table.write_text("x,y\n" + "\n".join(rows) + "\n")
    result = run("select", table, "--target", "y", "-k", 1)
    assert result.code == 2
    assert "--task regression" in result.err
