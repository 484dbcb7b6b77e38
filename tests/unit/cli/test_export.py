"""``exactk select --export FILE``: the choice as JSON, beside the usual output."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from exactk import SavedSelection, TopKSelector


def test_it_is_written_beside_the_output(run, wine, wine_csv, tmp_path) -> None:
    X, labels, names, _ = wine
    options = ("select", wine_csv, "--target", "cultivar", "--drop", "id", "--drop", "copies")
    plain = run(*options, "-k", 3)
    file = tmp_path / "chosen.json"
    done = run(*options, "-k", 3, "--export", file)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[:6] == plain.out.splitlines()[:6]
    choice = SavedSelection.load(file)
    expected = TopKSelector(k=3).fit(X, labels)
    assert [names.index(name) for name in choice.names] == np.flatnonzero(
        expected.support_
    ).tolist()
    assert (choice.target, choice.classes) == ("cultivar", ("first", "second", "third"))
    assert choice.feature_names_in == tuple(names)
    np.testing.assert_allclose(choice.coef, expected.result_.coef, rtol=1e-9)
    # Plain JSON, in an encoding that people can read.
    assert json.loads(file.read_text(encoding="utf-8"))["format"] == "exactk-choice"


def test_with_a_size_that_is_chosen_and_a_proof(run, wine_csv, tmp_path) -> None:
    file, out = tmp_path / "chosen.json", tmp_path / "out.json"
    done = run(
        "select", wine_csv, "--target", "cultivar", "--drop", "id", "-k", "auto", "--k-max", 3,
        "--certify", 30, "--export", file, "-o", out, "--format", "json",
    )  # fmt: skip
    assert done.code == 0, done.err
    choice, said = SavedSelection.load(file), json.loads(out.read_text())
    assert choice.k == said["k"]
    assert list(choice.names) == said["feature_names"]
    assert list(choice.order) == said["selected"]
    assert choice.proven is said["certificate"]["proven"] is True
    assert choice.gap == said["certificate"]["gap"]
    assert choice.ridge == said["ridge"]


def test_of_moments(run, wine_csv, tmp_path) -> None:
    moments, file = tmp_path / "wine.moments", tmp_path / "chosen.json"
    built = run("stats", "build", wine_csv, "--target", "cultivar", "--drop", "id", "-o", moments)
    assert built.code == 0, built.err
    done = run("select", "--from-moments", moments, "-k", 2, "--export", file)
    assert done.code == 0, done.err
    again = tmp_path / "again.json"
    run("select", wine_csv, "--target", "cultivar", "--drop", "id", "-k", 2, "--export", again)
    left, right = SavedSelection.load(file), SavedSelection.load(again)
    assert (left.names, left.target, left.classes) == (right.names, "cultivar", right.classes)
    np.testing.assert_allclose(left.coef, right.coef, rtol=1e-8)


def test_categories_and_odd_names(run, tmp_path) -> None:
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue", "white"], 90, p=[0.6, 0.2, 0.2])
    odd = "<script>\nü\"x'"
    table = pa.table({
        odd: rng.normal(size=90),
        "colour": colour,
        "noise": rng.normal(size=90),
    })  # fmt: skip
    y = 3 * table[odd].to_numpy() + 5 * (colour == "blue") - 4 * (colour == "white")
    table = table.append_column("y", pa.array(y))
    pq.write_table(table, tmp_path / "t.parquet")
    file = tmp_path / "chosen.json"
    done = run("select", tmp_path / "t.parquet", "--target", "y", "-k", 2, "--export", file)
    assert done.code == 0, done.err
    choice = SavedSelection.load(file)
    assert choice.names == (odd, "colour")
    assert choice.features[1].levels == ("blue", "red", "white")
    assert choice.features[1].reference == "red"
    assert np.corrcoef(choice.predict(table), y)[0, 1] > 0.99


def test_a_loss_whose_fit_does_not_predict(run, wine_csv, tmp_path) -> None:
    file = tmp_path / "chosen.json"
    done = run(
        "select", wine_csv, "--target", "cultivar", "--drop", "id", "-k", 2,
        "--loss", "optimal_scoring", "--export", file,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert SavedSelection.load(file).predicts is None
    refused = run("apply", file, wine_csv, "--predict")
    assert refused.code == 2
    assert "'optimal_scoring'" in refused.err
    assert run("apply", file, wine_csv).code == 0


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("wine.csv", "is the table itself"),
        (".", "is a folder"),
        ("none/chosen.json", "its folder does not exist"),
        ("out.txt", "and --output are the same file"),
        ("./x/../out.txt", "and --output are the same file"),
    ],
)
def test_the_place_is_checked_before_any_work(
    run, wine_csv, tmp_path, monkeypatch, place, said
) -> None:
    def no_work(*args: object, **options: object) -> None:
        raise AssertionError("nothing is to be read")

    monkeypatch.setattr("exactk.cli.select.open_grouped", no_work)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    before = wine_csv.read_bytes()
    done = run(
        "select", "wine.csv", "--target", "cultivar", "-k", 2, "-o", "out.txt", "--export", place
    )
    assert (done.code, done.out) == (2, "")
    assert f"--export {place!r}" in done.err
    assert said in done.err
    assert wine_csv.read_bytes() == before
    assert not (tmp_path / "out.txt").exists()


def test_after_ctrl_c_it_is_still_written(run, wine_csv, tmp_path, monkeypatch) -> None:
    # The package has a function of that name.
    solving = sys.modules["exactk.solver"]
    whole = solving.solve

    def stopped(*args: object, **options: object):
        result = whole(*args, **options)
        return replace(result, status=type(result.status).INTERRUPTED)

    monkeypatch.setattr(solving, "solve", stopped)
    file = tmp_path / "chosen.json"
    done = run(
        "select", wine_csv, "--target", "cultivar", "--drop", "id", "-k", 2, "--export", file
    )
    assert done.code == 130
    assert SavedSelection.load(file).status == "interrupted"
