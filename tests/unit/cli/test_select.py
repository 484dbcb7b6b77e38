"""``exactk select``: the answers of the library, for tables of every kind."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from exactk import AutoK, Problem, Result, SavedSelection, TopKSelector, choose_k, solve
from exactk.cli import main

WINE = ["cultivar", "--drop", "id,copies"]


@pytest.fixture
def problem(wine) -> Problem:
    X, labels, names, _ = wine
    return Problem.from_arrays(X, labels, feature_names=names).with_ridge("auto")


@pytest.fixture
def selected(run):
    """The JSON of a call."""

    def call(*args):
        done = run("select", *args, "--format", "json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    return call


@pytest.fixture
def parquet(wine_csv, tmp_path):
    """The table as one file and as a folder, without its column of text."""
    table = pa_csv.read_csv(wine_csv).drop_columns("id")
    pq.write_table(table, tmp_path / "wine.parquet")
    folder = tmp_path / "parts"
    folder.mkdir()
    for start in range(0, len(table), 50):
        pq.write_table(table.slice(start, 50), folder / f"{start:03d}.parquet")
    return tmp_path / "wine.parquet", folder


# --- formats ---------------------------------------------------------------------------------


def test_text(run, wine_csv, problem):
    done = run("select", wine_csv, *WINE, "-k", 3)
    assert (done.code, done.err) == (0, "")
    result = solve(problem, 3)
    head, _, *lines = done.out.splitlines()
    assert head == "3 of 13 features for 'cultivar' (classification, 178 rows)"
    assert [line.split() for line in lines[:3]] == [
        [str(rank), name] for rank, name in enumerate(result.selected, 1)
    ]
    facts = dict(line.split(None, 1) for line in lines[4:])
    assert facts["objective"].startswith(f"{result.objective:.6g} of {result.total:.6g}")
    assert facts["explained"].startswith(f"{result.explained:.1%} ")
    assert facts["status"] == str(result.status)


def test_included_features_have_no_rank(run, wine_csv):
    done = run("select", wine_csv, *WINE, "-k", 3, "--include", "ash,hue")
    lines = [line.split() for line in done.out.splitlines()[2:5]]
    assert [line[0] for line in lines] == ["1", "included", "included"]
    assert {line[1] for line in lines[1:]} == {"ash", "hue"}


def test_csv(run, wine_csv, problem):
    done = run("select", wine_csv, *WINE, "-k", 3, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    result = solve(problem, 3)
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    assert [int(row["index"]) for row in rows] == result.order.tolist()
    assert tuple(row["feature"] for row in rows) == result.selected
    by_name = dict(zip(result.feature_names, result.coef[0], strict=True))
    assert [float(row["coef:first"]) for row in rows] == pytest.approx(
        [by_name[row["feature"]] for row in rows]
    )


def test_json_is_read_back(selected, wine_csv, problem):
    found, result = (
        Result.from_dict(selected(wine_csv, *WINE, "-k", 3)["result"]),
        solve(problem, 3),
    )
    assert found.support.tolist() == result.support.tolist()
    assert found.feature_names == result.feature_names
    np.testing.assert_allclose(found.coef, result.coef)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv", "t.tsv.gz", "t.parquet", "t.feather"])
def test_every_kind_of_file_gives_the_same(run, wine_csv, tmp_path, name):
    path = tmp_path / name
    table = pa_csv.read_csv(wine_csv)
    if name == "t.parquet":
        pq.write_table(table, path)
    elif name == "t.feather":
        feather.write_feather(table, path)
    else:
        text = wine_csv.read_text()
        text = text.replace(",", "\t") if ".tsv" in name else text
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    args = [*WINE, "-k", 4, "--format", "csv"]
    assert run("select", path, *args).out == run("select", wine_csv, *args).out


def test_a_folder_a_pattern_and_moments_give_the_same(run, selected, wine_csv, parquet, tmp_path):
    _, folder = parquet
    whole = selected(wine_csv, *WINE, "-k", 3)["result"]
    moments = tmp_path / "wine.moments"
    args = ["cultivar", "--drop", "copies"]
    built = run("moments", "build", folder, *args, "-o", moments)
    assert built.code == 0, built.err
    for place in ([folder, *args], [f"{folder}/*.parquet", *args], [moments]):
        found = selected(*place, "-k", 3)["result"]
        assert found["selected"] == whole["selected"]
        assert found["objective"] == pytest.approx(whole["objective"], rel=1e-9)


def test_what_moments_cannot_answer(run, parquet, tmp_path):
    moments = tmp_path / "wine.moments"
    assert run("moments", "build", parquet[1], "cultivar", "-o", moments).code == 0
    for args, words in (
        (["--weights", "copies"], "--weights"),
        (["--groups", "site"], "--groups"),
        (["--ridge", "cv"], "rows"),
        (["--method", "relieff"], "rows"),
    ):
        done = run("select", moments, "-k", 3, *args)
        assert done.code == 2
        assert words in done.err


# --- parameters ------------------------------------------------------------------------------


def test_weights_are_repeated_rows(selected, wine, wine_csv):
    X, labels, names, weights = wine
    problem = Problem.from_arrays(
        np.repeat(X, weights, axis=0), np.repeat(labels, weights), feature_names=names, ridge=0.01
    )
    args = ["cultivar", "-k", 3, "--drop", "id", "--weights", "copies", "--ridge", "0.01"]
    found = selected(wine_csv, *args)["result"]
    assert found["objective"] == pytest.approx(solve(problem, 3).objective)


def test_zero_is_a_value(selected, wine_csv):
    found = selected(wine_csv, *WINE, "-k", 3, "--ridge", 0, "--seed", 0)
    assert found["result"]["ridge"] == 0
    assert found["call"]["random_state"] == 0


def test_a_method_and_its_parameters(selected, wine, wine_csv):
    X, labels, _, _ = wine
    found = selected(
        wine_csv, *WINE, "-k", 3, "--ridge", 0, "--method", "gsrfs:lam=40,p=1,labels=centred"
    )["result"]
    expected = solve(Problem.from_arrays(X, labels), 3, "gsrfs", lam=40, p=1, labels="centred")
    assert found["method"] == "gsrfs"
    assert found["trace"] == pytest.approx(expected.trace)
    assert selected(wine_csv, *WINE, "-k", 3, "--method", "greedy")["result"]["method"] == "greedy"


def test_a_seed_is_for_methods_that_have_one(selected, wine_csv):
    for method in ("greedy", "exchange"):
        assert selected(wine_csv, *WINE, "-k", 3, "--method", method, "--seed", 5)


@pytest.mark.parametrize("loss", ["logistic", "l21", "huber:epsilon=2", "optimal_scoring"])
def test_losses(selected, wine, wine_csv, loss):
    X, labels, *_ = wine
    name, _, value = loss.partition(":epsilon=")
    problem = Problem.from_arrays(X, labels, ridge=0.1)
    problem = problem.with_loss(name, **({"epsilon": float(value)} if value else {}))
    found = selected(wine_csv, *WINE, "-k", 2, "--loss", loss, "--ridge", 0.1)["result"]
    assert found["loss"] == name
    assert found["objective"] == pytest.approx(solve(problem, 2).objective)


def test_poisson_makes_whole_numbers_amounts(selected, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{i % 5},{i % 7},{i % 5}\n" for i in range(70)))
    found = selected(path, "y", "-k", 1, "--loss", "poisson")["result"]
    assert (found["classes"], found["selected"]) == (None, ["a"])


def test_settings_of_a_file_reach_the_problem(selected, wine, wine_csv, tmp_path):
    X, labels, names, _ = wine
    path = tmp_path / "s.toml"
    path.write_text(
        'class_weight = "balanced"\ncolumns = ["ash", "proline", "hue", "magnesium"]\n'
        "[constraints]\nbudget = 3\n[constraints.costs]\nash = 1\nproline = 9\n"
        "hue = 1\nmagnesium = 1\n"
        '[constraints.quotas.some]\ncolumns = ["ash", "hue"]\nat_most = 1\n'
    )
    found = selected(wine_csv, "cultivar", "-k", 2, "--config", path, "--ridge", 0.1)["result"]
    some = [names.index(name) for name in ("ash", "proline", "hue", "magnesium")]
    problem = Problem.from_arrays(X[:, some], labels, ridge=0.1, class_weight="balanced")
    problem = problem.with_constraints(
        budget=3, costs=[1, 9, 1, 1], quotas={"some": {"columns": [0, 2], "at_most": 1}}
    )
    expected = solve(problem, 2)
    assert found["support"] == expected.support.tolist()
    assert found["objective"] == pytest.approx(expected.objective)


def test_known_classes(selected, run, wine_csv, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text('drop = ["id"]\nclasses = ["first", "second", "third"]\n')
    found = selected(wine_csv, "cultivar", "-k", 2, "--config", path)["result"]
    assert found["classes"] == ["first", "second", "third"]
    path.write_text('drop = ["id"]\nclasses = ["first", "second"]\n')
    done = run("select", wine_csv, "cultivar", "-k", 2, "--config", path)
    assert done.code == 2
    assert "third" in done.err


def test_memory_limit(run, wine_csv, parquet, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("memory_limit = 80\n")
    done = run("select", parquet[1], "cultivar", "-k", 2, "--config", path)
    assert done.code == 2
    assert "memory_limit" in done.err


# --- the number of features ------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["cv", "ebic"])
def test_k_is_chosen(selected, run, wine_csv, problem, criterion):
    args = [wine_csv, *WINE, "-k", "auto", "--k-max", 5, "--criterion", criterion, "--seed", 1]
    found = selected(*args)
    expected = choose_k(problem, k_max=5, criterion=criterion, random_state=1)
    assert found["result"]["k"] == found["choice"]["k"] == expected.k
    assert [row["k"] for row in found["choice"]["table"]] == [1, 2, 3, 4, 5]
    assert [row["criterion"] for row in found["choice"]["table"]] == pytest.approx(
        expected.table["criterion"]
    )
    rows = list(csv.DictReader(io.StringIO(run("select", *args, "--table", "--format", "csv").out)))
    assert [row["k"] for row in rows if row["chosen"] == "True"] == [str(expected.k)]
    text = run("select", *args, "--table").out
    assert [line.split()[1] for line in text.splitlines() if line.startswith("*")] == [
        str(expected.k)
    ]
    assert "*" not in run("select", *args).out


def test_k_max_means_auto(selected, wine_csv):
    assert selected(wine_csv, *WINE, "--k-max", 2)["choice"]["k_max"] == 2


def test_k_is_required(run, wine_csv):
    done = run("select", wine_csv, *WINE)
    assert done.code == 2
    assert "-k auto" in done.err


def test_groups_of_rows_stay_together(selected, run, wine_sites, problem, sites):
    args = [wine_sites, *WINE, "-k", "auto", "--k-max", 4, "--groups", "site", "--quiet"]
    found = selected(*args)["choice"]
    expected = choose_k(problem, **AutoK(k_max=4).get_params(), groups=np.array(sites))
    assert [row["mean"] for row in found["table"]] == pytest.approx(expected.table["mean"])
    done = run("select", wine_sites, *WINE, "-k", "auto", "--groups", "sit")
    assert done.code == 2
    assert "did you mean 'site'?" in done.err


# --- text columns ----------------------------------------------------------------------------


@pytest.fixture
def houses(tmp_path):
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue", "white"], 90, p=[0.6, 0.2, 0.2])
    odd = "<script>\nü\"x'"
    columns = {odd: rng.normal(size=90), "colour": colour, "noise": rng.normal(size=90)}
    y = 3 * columns[odd] + 5 * (colour == "blue") - 4 * (colour == "white")
    pq.write_table(pa.table({**columns, "y": y}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_a_text_column_is_one_feature(run, selected, houses):
    done = run("select", houses, "y", "-k", 2)
    assert done.out.splitlines()[0].startswith("2 of 3 features")
    listed = [line.split(None, 1)[1] for line in done.out.splitlines()[2:4]]
    assert "colour (3 levels)" in listed
    assert selected(houses, "y", "-k", 2)["result"]["k"] == 2


def test_scores_of_a_filter_stand_beside_the_features(run, houses):
    lines = run("select", houses, "y", "-k", 2, "--method", "fisher", "--task", "regression")
    assert lines.code == 2, "fisher needs classes"
    lines = run("select", houses, "colour", "-k", 2, "--method", "fisher").out.splitlines()
    scores = [float(line.split()[-1]) for line in lines[2:4]]
    assert scores == sorted(scores, reverse=True)


# --- proof and export ------------------------------------------------------------------------


def test_certify(selected, run, wine_csv):
    found = selected(wine_csv, *WINE, "-k", 3, "--certify", 60)
    assert found["certificate"]["proven"] is True
    assert found["result"]["status"] == "optimal"
    assert "Proven" in run("select", wine_csv, *WINE, "-k", 3, "--certify", 60).out


def test_export(run, wine, wine_csv, tmp_path):
    X, labels, names, _ = wine
    file, out = tmp_path / "chosen.json", tmp_path / "out.json"
    done = run(
        "select", wine_csv, *WINE, "-k", 3, "--certify", 30, "--export", file, "-o", out,
        "--format", "json",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    saved, found = SavedSelection.load(file), json.loads(out.read_text())
    expected = TopKSelector(k=3).fit(X, labels)
    assert sorted(map(names.index, saved.names)) == np.flatnonzero(expected.support_).tolist()
    assert (saved.target, saved.classes) == ("cultivar", ("first", "second", "third"))
    assert saved.feature_names_in == tuple(names)
    np.testing.assert_allclose(saved.coef, expected.result_.coef, rtol=1e-9)
    assert saved.proven is found["certificate"]["proven"] is True


def test_export_of_text_columns_and_odd_names(run, houses, tmp_path):
    file = tmp_path / "chosen.json"
    assert run("select", houses, "y", "-k", 2, "--export", file).code == 0
    saved, table = SavedSelection.load(file), pq.read_table(houses)
    assert saved.names == (table.column_names[0], "colour")
    assert saved.features[1].levels == ("blue", "red", "white")
    assert np.corrcoef(saved.predict(table), table["y"].to_numpy())[0, 1] > 0.99


def test_export_and_output_are_two_files(run, wine_csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    args = [wine_csv, *WINE, "-k", 2, "-o", "out.txt", "--export", "./out.txt"]
    done = run("select", *args)
    assert done.code == 2
    assert "same file" in done.err
    assert not (tmp_path / "out.txt").exists()


def test_export_after_ctrl_c(wine_csv, tmp_path, monkeypatch):
    import exactk.solver as solver

    whole = solver.solve

    def stopped(*args, **options):
        result = whole(*args, **options)
        return replace(result, status=type(result.status).INTERRUPTED)

    monkeypatch.setattr(solver, "solve", stopped)
    file = tmp_path / "chosen.json"
    with pytest.raises(SystemExit) as stop:
        main(["select", str(wine_csv), *WINE, "-k", "2", "--export", str(file)])
    assert stop.value.code == 130
    assert SavedSelection.load(file).status == "interrupted"


# --- bad tables ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "args", "words"),
    [
        ("a,y\n1,u\n,v\n2,u\n", [], "'a'"),
        ("a,y\n1,u\ninf,v\n2,u\n", [], "'a'"),
        ("a,y\n1,u\n2,u\n3,u\n", [], "class"),
        ("a,y\n1,u\n1,v\n1,u\n", [], "constant"),
        ("y\nu\nv\n", [], "no feature"),
        ("a,y,w\n1,u,-1\n2,v,1\n3,u,1\n", ["--weights", "w"], "weight"),
        ("a,y,w\n1,u,0\n2,v,0\n3,u,0\n", ["--weights", "w"], "weight"),
        ("a,y,w\n1,u,x\n2,v,0\n3,u,0\n", ["--weights", "w"], "'w'"),
        ("a,y\n1,u\n2,v\n3,u\n", ["--weights", "w"], "'w'"),
        ("a,y\n1,u\n2,v\n3,u\n", ["--drop", "b"], "'b'"),
        ("a,y\n1,u\n2,v\n3,u\n", ["--task", "regression"], "regression"),
        ("a,y\n1,2\n2,3\nx3,4\n", [], "'a'"),
    ],
)
def test_bad_tables(run, tmp_path, text, args, words):
    path = tmp_path / "t.csv"
    path.write_text(text)
    done = run("select", path, "y", "-k", 1, *args)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "could not convert" not in done.err
    assert done.err.count("\n") == 1
