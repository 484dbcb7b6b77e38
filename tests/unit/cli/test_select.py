"""``exactk select``: the answers of the library, for tables of every kind."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from exactk import AutoK, Problem, Result, SavedSelection, choose_k, solve

WINE = ["cultivar", "--drop", "id,copies"]


@pytest.fixture
def folder(wine_csv, tmp_path):
    """The table as a folder of files, without its column of text."""
    table = pa_csv.read_csv(wine_csv).drop_columns("id")
    folder = tmp_path / "parts"
    folder.mkdir()
    for start in range(0, len(table), 50):
        pq.write_table(table.slice(start, 50), folder / f"{start:03d}.parquet")
    return folder


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


def test_csv_and_json(ask, rows, wine_csv, problem):
    result, args = solve(problem, 3), ["select", wine_csv, *WINE, "-k", 3]
    listed = rows(*args)
    assert [row["rank"] for row in listed] == ["1", "2", "3"]
    assert tuple(row["feature"] for row in listed) == result.selected
    found = Result.from_dict(ask(*args)["result"])
    assert found.support.tolist() == result.support.tolist()
    np.testing.assert_allclose(found.coef, result.coef)


def test_a_folder_a_pattern_and_moments_give_the_same(run, ask, wine_csv, folder, tmp_path):
    whole = ask("select", wine_csv, *WINE, "-k", 3)["result"]
    moments, args = tmp_path / "wine.moments", ["cultivar", "--drop", "copies"]
    assert run("moments", "build", folder, *args, "-o", moments).code == 0
    for place in ([folder, *args], [f"{folder}/*.parquet", *args], [moments]):
        found = ask("select", *place, "-k", 3)["result"]
        assert found["selected"] == whole["selected"]
        assert found["objective"] == pytest.approx(whole["objective"], rel=1e-9)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--weights", "copies"], "--weights"),
        (["--groups", "site"], "--groups"),
        (["--ridge", "cv"], "rows"),
        (["--method", "relieff"], "rows"),
    ],
)
def test_what_moments_cannot_answer(run, fails, folder, tmp_path, args, words):
    moments = tmp_path / "wine.moments"
    assert run("moments", "build", folder, "cultivar", "-o", moments).code == 0
    fails(words, "select", moments, "-k", 3, *args)


# --- parameters ------------------------------------------------------------------------------


def test_options_reach_the_library(ask, wine, wine_csv):
    X, labels, names, weights = wine
    problem = Problem.from_arrays(X, labels, sample_weight=weights, feature_names=names, ridge=0.01)
    args = ["--drop", "id", "--weights", "copies", "--ridge", "0.01", "--exclude", "hue"]
    found = ask("select", wine_csv, "cultivar", "-k", 3, *args)["result"]
    expected = solve(problem.with_constraints(exclude=["hue"]), 3)
    assert found["objective"] == pytest.approx(expected.objective)


def test_zero_is_a_value(ask, wine_csv):
    found = ask("select", wine_csv, *WINE, "-k", 3, "--ridge", 0, "--seed", 0)
    assert found["result"]["ridge"] == 0
    assert found["call"]["random_state"] == 0


def test_a_method_and_its_parameters(ask, wine, wine_csv):
    X, labels, _, _ = wine
    args = ["--ridge", 0, "--method", "gsrfs:lam=40,p=1,labels=centred"]
    found = ask("select", wine_csv, *WINE, "-k", 3, *args)["result"]
    expected = solve(Problem.from_arrays(X, labels), 3, "gsrfs", lam=40, p=1, labels="centred")
    assert found["method"] == "gsrfs"
    assert found["trace"] == pytest.approx(expected.trace)


@pytest.mark.parametrize("method", ["greedy", "exchange"])
def test_a_seed_is_for_methods_that_have_one(ask, wine_csv, method):
    found = ask("select", wine_csv, *WINE, "-k", 3, "--method", method, "--seed", 5)
    assert found["result"]["method"] == method


@pytest.mark.parametrize("loss", ["logistic", "huber:epsilon=2"])
def test_losses(ask, wine, wine_csv, loss):
    X, labels, *_ = wine
    name, _, value = loss.partition(":epsilon=")
    problem = Problem.from_arrays(X, labels, ridge=0.1)
    problem = problem.with_loss(name, **({"epsilon": float(value)} if value else {}))
    found = ask("select", wine_csv, *WINE, "-k", 2, "--loss", loss, "--ridge", 0.1)["result"]
    assert found["loss"] == name
    assert found["objective"] == pytest.approx(solve(problem, 2).objective)


def test_poisson_makes_whole_numbers_amounts(ask, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{i % 5},{i % 7},{i % 5}\n" for i in range(70)))
    found = ask("select", path, "y", "-k", 1, "--loss", "poisson")["result"]
    assert (found["classes"], found["selected"]) == (None, ["a"])


def test_settings_of_a_file_reach_the_problem(ask, wine, wine_csv, tmp_path):
    X, labels, names, _ = wine
    path = tmp_path / "s.toml"
    path.write_text(
        'class_weight = "balanced"\ncolumns = ["ash", "proline", "hue", "magnesium"]\n'
        "[constraints]\nbudget = 3\n[constraints.costs]\nash = 1\nproline = 9\n"
        "hue = 1\nmagnesium = 1\n"
        '[constraints.quotas.some]\ncolumns = ["ash", "hue"]\nat_most = 1\n'
    )
    found = ask("select", wine_csv, "cultivar", "-k", 2, "--config", path, "--ridge", 0.1)
    some = [names.index(name) for name in ("ash", "proline", "hue", "magnesium")]
    problem = Problem.from_arrays(X[:, some], labels, ridge=0.1, class_weight="balanced")
    problem = problem.with_constraints(
        budget=3, costs=[1, 9, 1, 1], quotas={"some": {"columns": [0, 2], "at_most": 1}}
    )
    expected = solve(problem, 2)
    assert found["result"]["support"] == expected.support.tolist()
    assert found["result"]["objective"] == pytest.approx(expected.objective)


@pytest.mark.parametrize(
    ("text", "words"),
    [('classes = ["first", "second"]', "'third'"), ("memory_limit = 80", "memory_limit")],
)
def test_settings_of_a_file_reach_the_reader(fails, folder, tmp_path, text, words):
    (tmp_path / "s.toml").write_text(text)
    fails(words, "select", folder, "cultivar", "-k", 2, "--config", tmp_path / "s.toml")


# --- the number of features ------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["cv", "ebic"])
def test_k_is_chosen(ask, rows, run, wine_csv, problem, criterion):
    args = ["select", wine_csv, *WINE, "--k-max", 5, "--criterion", criterion, "--seed", 1]
    found = ask(*args)
    expected = choose_k(problem, k_max=5, criterion=criterion, random_state=1)
    assert found["result"]["k"] == found["choice"]["k"] == expected.k
    assert [row["criterion"] for row in found["choice"]["table"]] == pytest.approx(
        expected.table["criterion"]
    )
    chosen = [row["k"] for row in rows(*args, "--table") if row["chosen"] == "True"]
    text = run(*args, "-k", "auto", "--table").out
    starred = [line.split()[1] for line in text.splitlines() if line.startswith("*")]
    assert chosen == starred == [str(expected.k)]
    assert "*" not in run(*args).out


def test_the_score_that_chooses_k_is_named(run, wine_csv, tmp_path):
    (tmp_path / "s.toml").write_text('[k]\nscoring = "accuracy"\nk_max = 3\n')
    text = run("select", wine_csv, *WINE, "--table", "--config", tmp_path / "s.toml").out
    (head,) = (line for line in text.splitlines() if "std. error" in line)
    assert head.split()[:2] == ["k", "accuracy"]
    assert "of 1 to 3 by accuracy (" in text


def test_no_choice_is_claimed_after_ctrl_c(run, wine_csv, monkeypatch):
    import exactk.model_selection.choose_k as module

    def stopped(*args, **options):
        found = choose_k(*args, **options)
        return replace(found, n_folds=0, status=type(found.status).INTERRUPTED)

    monkeypatch.setattr(module, "choose_k", stopped)
    done = run("select", wine_csv, *WINE, "-k", "auto", "--k-max", 3)
    assert done.code == 130
    assert "largest size found" in done.out
    assert "by cv" not in done.out


def test_k_is_required(fails, wine_csv):
    fails("-k auto", "select", wine_csv, *WINE)


def test_groups_of_rows_stay_together(ask, wine_sites, problem, sites):
    args = [*WINE, "-k", "auto", "--k-max", 4, "--groups", "site", "--quiet"]
    found = ask("select", wine_sites, *args)["choice"]
    expected = choose_k(problem, **AutoK(k_max=4).get_params(), groups=np.array(sites))
    assert [row["mean"] for row in found["table"]] == pytest.approx(expected.table["mean"])


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


def test_a_text_column_is_one_feature(run, houses):
    done = run("select", houses, "y", "-k", 2)
    assert done.out.splitlines()[0].startswith("2 of 3 features")
    listed = [line.split(None, 1)[1] for line in done.out.splitlines()[2:4]]
    assert "colour (3 levels)" in listed


def test_scores_of_a_filter_stand_beside_the_features(run, houses):
    lines = run("select", houses, "colour", "-k", 2, "--method", "fisher").out.splitlines()
    scores = [float(line.split()[-1]) for line in lines[2:4]]
    assert scores == sorted(scores, reverse=True)


# --- proof and export ------------------------------------------------------------------------


def test_certify_and_export(run, wine_csv, problem, tmp_path):
    file, out = tmp_path / "chosen.json", tmp_path / "out.json"
    args = ["-k", 3, "--certify", 60, "--export", file, "-o", out, "--format", "json"]
    done = run("select", wine_csv, *WINE, *args)
    assert done.code == 0
    saved, found = SavedSelection.load(file), json.loads(out.read_text())
    expected = solve(problem, 3)
    assert sorted(saved.names) == sorted(expected.selected)
    assert (saved.target, saved.classes) == ("cultivar", ("first", "second", "third"))
    assert saved.proven is found["certificate"]["proven"] is True
    assert found["result"]["status"] == "optimal"
    assert "Proven" in run("select", wine_csv, *WINE, "-k", 3, "--certify", 60).out


def test_export_of_text_columns_and_odd_names(run, houses, tmp_path):
    file = tmp_path / "chosen.json"
    assert run("select", houses, "y", "-k", 2, "--export", file).code == 0
    saved, table = SavedSelection.load(file), pq.read_table(houses)
    assert saved.names == (table.column_names[0], "colour")
    assert np.corrcoef(saved.predict(table), table["y"].to_numpy())[0, 1] > 0.99


def test_export_and_output_are_two_files(fails, wine_csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    args = [wine_csv, *WINE, "-k", 2, "-o", "out.txt", "--export", "./out.txt"]
    fails("same file", "select", *args)
    assert not (tmp_path / "out.txt").exists()


def test_export_after_ctrl_c(run, wine_csv, tmp_path, monkeypatch):
    import exactk.solver as solver

    whole = solver.solve

    def stopped(*args, **options):
        result = whole(*args, **options)
        return replace(result, status=type(result.status).INTERRUPTED)

    monkeypatch.setattr(solver, "solve", stopped)
    file = tmp_path / "chosen.json"
    assert run("select", wine_csv, *WINE, "-k", "2", "--export", file).code == 130
    assert SavedSelection.load(file).status == "interrupted"


# --- bad tables ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "args", "words"),
    [
        ("a,y\n1,u\n,v\n2,u\n", [], "'a'"),
        ("a,y\n1,u\n2,u\n3,u\n", [], "class"),
        ("a,y\n1,u\n1,v\n1,u\n", [], "constant"),
        ("a,y,w\n1,u,-1\n2,v,1\n3,u,1\n", ["--weights", "w"], "weight"),
        ("a,y\n1,u\n2,v\n3,u\n", ["--drop", "b"], "'b'"),
        ("a,y\n1,u\n2,v\n3,u\n", ["--task", "regression"], "regression"),
    ],
)
def test_bad_tables(fails, tmp_path, text, args, words):
    (tmp_path / "t.csv").write_text(text)
    fails(words, "select", tmp_path / "t.csv", "y", "-k", 1, *args)


def test_the_cross_validated_ridge_keeps_groups_together(ask, tmp_path):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 6)), 8, axis=0) + 0.01 * rng.normal(size=(240, 6))
    y = np.repeat(X[::8, 0] + rng.normal(size=30), 8)
    table = np.column_stack([X, y, np.repeat(np.arange(30), 8)])
    header = "a,b,c,d,e,f,y,patient"
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header=header, comments="")
    words = ("select", tmp_path / "t.csv", "y", "-k", 3, "--ridge", "cv")
    together = ask(*words, "--groups", "patient")["result"]["ridge"]
    assert together > ask(*words, "--drop", "patient")["result"]["ridge"]
