from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from exactk import Problem
from exactk.cli import tables
from exactk.streaming import arrow

pd = pytest.importorskip("pandas")
# Without it none of these tests is run: see tests/conftest.py.
ad: Any = import_module("anndata") if find_spec("anndata") else None
pytestmark = pytest.mark.omics


@pytest.fixture
def wine_cells(wine: Any, sites: list[str]) -> Any:
    X, labels, names, weights = wine
    obs = pd.DataFrame(
        {"cultivar": pd.Categorical(labels), "copies": weights, "site": sites},
        index=[f"bottle {i}" for i in range(len(X))],
    )
    var = pd.DataFrame({"short": [name[:4] + str(j) for j, name in enumerate(names)]}, index=names)
    adata = ad.AnnData(np.where(X > np.median(X, axis=0), X, 0.0), obs=obs, var=var)
    adata.X = sparse.csr_matrix(adata.X)
    adata.layers["whole"] = X
    return adata


@pytest.fixture(params=["read", "passed over"])
def wine_h5ad(
    request: pytest.FixtureRequest, wine_cells: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:  # fmt: skip
    if request.param == "passed over":
        monkeypatch.setattr(tables, "LARGE_CELLS", 0)
        monkeypatch.setattr(arrow, "FEWEST_ROWS", 50)
        monkeypatch.setattr(arrow, "MOST_ROWS", 50)
    path = tmp_path / "wine.h5ad"
    wine_cells.write_h5ad(path)
    return path


@pytest.fixture
def same_csv(wine_cells: Any, tmp_path: Path) -> Path:
    """The same table as text: its X beside what is in obs."""
    frame = pd.DataFrame(wine_cells.X.toarray(), columns=wine_cells.var_names)
    for name in wine_cells.obs.columns:
        frame[name] = wine_cells.obs[name].to_numpy()
    path = tmp_path / "wine.csv"
    frame.to_csv(path, index=False, float_format="%.17g")
    return path


def answer(text: str) -> tuple[Any, ...]:
    found = json.loads(text)
    return found["selected"], round(found["objective"], 6), found["classes"], found["n_rows"]


@pytest.mark.parametrize(
    "options",
    [
        ("-k", 4),
        ("-k", 4, "--include", "ash", "--weights", "copies"),
        ("-k", 2, "--columns", "ash,proline,alcohol", "--ridge", "0.3"),
        ("-k", 3, "--drop", "proline", "--classes", "first,second,third"),
        ("-k", 3, "--class-weight", "balanced"),
    ],
    ids=["plain", "include and weights", "columns", "drop and classes", "class weights"],
)
def test_the_answer_is_that_of_the_same_table_as_text(
    run: Any, wine_h5ad: Path, same_csv: Path, options: tuple[Any, ...]
) -> None:
    obs = [f"--drop={name}" for name in ("copies", "site") if name not in options]
    asked = ("--target", "cultivar", *options, "--format", "json")
    found, other = run("select", wine_h5ad, *asked), run("select", same_csv, *asked, *obs)
    assert (found.code, found.err) == (0, "")
    assert answer(found.out) == answer(other.out)


@pytest.mark.parametrize(
    ("command", "figures"),
    [
        (("path", "--k-max", 4), ("k", "n_folds")),
        (("stability", "-k", 3), ("core", "index", "jaccard")),
        (("score", "-k", 3), ("features", "test_score", "naive_score", "stability")),
    ],
    ids=["path", "stability", "score"],
)
def test_groups_are_a_column_of_obs(
    run: Any, wine_h5ad: Path, same_csv: Path, command: tuple[Any, ...], figures: tuple[str, ...]
) -> None:
    asked = ("--target", "cultivar", *command[1:], "--groups", "site", "--format", "json")
    found = run(command[0], wine_h5ad, *asked)
    assert found.code == 0, found.err
    one = json.loads(found.out)
    two = json.loads(run(command[0], same_csv, *asked, "--drop", "copies").out)
    for name in figures:
        value = two[name]
        assert one[name] == (pytest.approx(value) if isinstance(value, float) else value), name
    wrong = run(command[0], wine_h5ad, *asked, "--groups", "sit")
    assert wrong.code == 2
    assert "--groups 'sit' is not a column of adata.obs" in wrong.err


def test_layers_and_names_of_genes(run: Any, wine_h5ad: Path, wine_cells: Any) -> None:
    asked = ("select", wine_h5ad, "--target", "cultivar", "-k", 3, "--format", "json")
    found = json.loads(run(*asked, "--layer", "whole", "--gene-names", "short").out)
    assert (found["layer"], found["gene_names"]) == ("whole", "short")
    problem = Problem.from_anndata(wine_cells, "cultivar", layer="whole", ridge=found["ridge"])
    assert found["objective"] == pytest.approx(problem.objective(found["support"]), rel=1e-9)
    short = wine_cells.var["short"].tolist()
    assert [short[j] for j in found["support"]] == sorted(found["selected"], key=short.index)
    wrong = run(*asked, "--layer", "whle")
    assert wrong.code == 2
    assert "--layer 'whle' is not in adata.layers; did you mean 'whole'?" in wrong.err
    wrong = run(*asked, "--gene-names", "sort")
    assert "--gene-names 'sort' is not a column of adata.var; did you mean 'short'?" in wrong.err


def test_an_earlier_result_knows_its_layer(run: Any, wine_h5ad: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    asked = (wine_h5ad, "--target", "cultivar")
    run("select", *asked, "-k", 2, "--layer", "whole", "--format", "json", "-o", kept)
    proof = run("certify", *asked, "--from-result", kept, "--format", "json")
    assert proof.code == 0, proof.err
    assert json.loads(proof.out)["objective"] == pytest.approx(
        json.loads(kept.read_text())["objective"], rel=1e-12
    )
    assert "--layer given here" in run(
        "certify", *asked, "--layer", "X", "--from-result", kept
    ).err  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        ("-k", 3),
        ("-k", 2, "--layer", "whole", "--gene-names", "short", "--weights", "copies"),
        ("-k", 3, "--drop", "proline", "--groups", "site"),
        ("--k-max", 4, "--columns", "ash,proline,alcohol,hue", "--groups", "site"),
        ("--k-max", 3, "--groups", "site", "--weights", "copies"),
        (
            "--k-max",
            3,
            "--groups",
            "site",
            "--weights",
            "copies",
            "--classes",
            "first,second,third",
        ),
        ("-k", 2, "--columns", "alco0,hue10,prol12", "--gene-names", "short"),
        ("-k", 2, "--target", "copies", "--loss", "poisson"),
        ("--k-max", 2, "--target", "copies", "--loss", "poisson", "--groups", "site"),
    ],
)
def test_the_code_of_a_report_gives_its_features(
    run: Any, wine_h5ad: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: Any
) -> None:
    path, record = wine_h5ad, tmp_path / "record.json"
    given = [str(option) for option in options]
    quick = ["--samples", "0", "--permutations", "0", "--methods", "none", "--certify", "0"]
    page = ["-o", str(tmp_path / "page.html"), "--record", str(record)]
    target = [] if "--target" in given else ["--target", "cultivar"]
    done = run("report", str(path), *target, *given, *quick, *page)
    assert done.code == 0, done.err
    found = json.loads(record.read_text(encoding="utf-8"))
    exec(compile(found["settings"]["code"], "page", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.split("\n")[:-1] == found["selection"]["selected"]


@pytest.mark.parametrize("classes", [(), ("--classes", "first,second,third")])
def test_groups_of_cells_that_count_nothing(
    run: Any, wine_h5ad: Path, wine_cells: Any, tmp_path: Path, classes: tuple[str, ...]
) -> None:
    asked = ("--target", "cultivar", "--weights", "copies", "--groups", "site", "-k", 2)
    found = run("score", wine_h5ad, *asked, *classes, "--format", "json")
    assert (found.code, found.err) == (0, "")
    counted = tmp_path / "counted.h5ad"
    wine_cells[wine_cells.obs["copies"] > 0].copy().write_h5ad(counted)
    other = run("score", counted, *asked, "--format", "json")
    if classes or tables.LARGE_CELLS == 0:
        assert json.loads(found.out)["test_score"] == pytest.approx(
            json.loads(other.out)["test_score"]
        )


def test_a_gene_may_be_called_as_groups_are(run: Any, wine_cells: Any, tmp_path: Path) -> None:
    wine_cells.obs["hue"] = wine_cells.obs["site"]
    wine_cells.write_h5ad(tmp_path / "wine.h5ad")
    asked = ("--target", "cultivar", "--groups", "hue", "-k", "auto", "--k-max", 2)
    found = run("select", tmp_path / "wine.h5ad", *asked, "--include", "hue", "--quiet")
    assert (found.code, found.err) == (0, "")
    assert "hue" in found.out.split()


def test_moments_of_cells(run: Any, wine_h5ad: Path, tmp_path: Path) -> None:
    asked = ("--target", "cultivar", "-o", tmp_path / "wine.npz")
    built = run("stats", "build", wine_h5ad, *asked, "--weights", "copies")
    assert built.code == 0, built.err
    made = ("-k", 4, "--format", "json", "--ridge", "0.1")
    one = run("select", "--from-moments", tmp_path / "wine.npz", *made)
    two = run("select", wine_h5ad, "--target", "cultivar", "--weights", "copies", *made)
    assert answer(one.out) == answer(two.out)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "cultvar"), "target 'cultvar' is not a column of adata.obs; did you mean"),
        (("--target", "proline"), "it is a gene of adata.var"),
        (("--target", "cultivar", "--columns", "cultivar,ash"), "is among --columns, too"),
        (("--target", "cultivar", "--columns", "ahs"), "'ahs' is not a gene of the table; did"),
        (("--target", "cultivar", "--drop", "nil"), "dropped column 'nil' is not in the table"),
        (("--target", "cultivar", "--classes", "first,third"), "holds the label 'second'"),
    ],
)
def test_bad_options_are_named(
    run: Any, wine_h5ad: Path, options: tuple[str, ...], words: str
) -> None:
    found = run("select", wine_h5ad, *options, "-k", 1)
    assert found.code == 2
    assert words in found.err


def test_cells_without_a_label_are_named(run: Any, wine_cells: Any, tmp_path: Path) -> None:
    wine_cells.obs.loc["bottle 7", "cultivar"] = np.nan
    wine_cells.write_h5ad(tmp_path / "gap.h5ad")
    found = run("select", tmp_path / "gap.h5ad", "--target", "cultivar", "-k", 2)
    assert found.code == 2
    assert "target 'cultivar' is missing in 1 of 178 cells ('bottle 7')" in found.err


def test_files_that_are_none(run: Any, tmp_path: Path, wine_csv: Path, wine_h5ad: Path) -> None:
    asked = ("--target", "cultivar", "-k", 2)
    (tmp_path / "text.h5ad").write_text("a,b\n1,2\n")
    assert "cannot be read as .h5ad" in run("select", tmp_path / "text.h5ad", *asked).err
    assert "does not exist" in run("select", tmp_path / "no.h5ad", *asked).err
    pattern = run("select", str(tmp_path / "w*.h5ad"), *asked)
    assert "which commands take one at a time" in pattern.err
    other = run("select", wine_csv, *asked, "--layer", "whole")
    assert other.code == 2
    assert "--layer 'whole' is for .h5ad tables" in other.err


def test_without_anndata_the_line_to_install_it(
    run: Any, wine_h5ad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anndata", None)
    found = run("select", wine_h5ad, "--target", "cultivar", "-k", 2)
    assert found.code == 2
    assert 'pip install "exactk[omics]"' in found.err


def test_hdf5_that_is_no_anndata(run: Any, tmp_path: Path) -> None:
    import h5py

    with h5py.File(tmp_path / "other.h5ad", "w") as file:
        file["weights"] = np.ones(3)
    found = run("select", tmp_path / "other.h5ad", "--target", "kind", "-k", 2)
    assert found.code == 2
    assert "other.h5ad' cannot be read as .h5ad: it is HDF5 and no AnnData" in found.err
    assert "this has 'weights'" in found.err
    assert "__init__" not in found.err
