"""Commands on .h5ad files, read into memory and streamed."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from exactk import Problem
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


@pytest.fixture(params=["read", "streamed"])
def wine_h5ad(
    request: pytest.FixtureRequest, wine_cells: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:  # fmt: skip
    if request.param == "streamed":
        module = import_module("exactk.problem.read_table")
        monkeypatch.setattr(module, "LARGE_CELLS", 0)
        monkeypatch.setattr(arrow, "FEWEST_ROWS", 50)
        monkeypatch.setattr(arrow, "MOST_ROWS", 50)
    path = tmp_path / "wine.h5ad"
    wine_cells.write_h5ad(path)
    return path


def test_layers_and_names_of_genes(
    ask: Any, fails: Any, wine_h5ad: Path, wine_cells: Any, tmp_path: Path
) -> None:
    config = tmp_path / "s.toml"
    config.write_text('layer = "whole"\ngene_names = "short"\n')
    asked = (wine_h5ad, "cultivar", "-k", 3, "--config", config)
    found = ask("select", *asked)["result"]
    problem = Problem.from_anndata(wine_cells, "cultivar", layer="whole", ridge=found["ridge"])
    assert found["objective"] == pytest.approx(problem.objective(found["support"]), rel=1e-9)
    short = wine_cells.var["short"].tolist()
    assert [short[j] for j in found["support"]] == sorted(found["selected"], key=short.index)
    config.write_text('layer = "whle"\n')
    fails("did you mean 'whole'?", "select", *asked)


def test_moments_of_cells(run: Any, ask: Any, wine_h5ad: Path, tmp_path: Path) -> None:
    moments, asked = tmp_path / "wine.npz", ("cultivar", "--weights", "copies")
    built = run("moments", "build", wine_h5ad, *asked, "-o", moments)
    assert built.code == 0, built.err
    one = ask("select", moments, "-k", 4, "--ridge", 0.1)["result"]
    two = ask("select", wine_h5ad, *asked, "-k", 4, "--ridge", 0.1)["result"]
    assert one["selected"] == two["selected"]
    assert one["objective"] == pytest.approx(two["objective"], rel=1e-9)


def test_a_gene_may_be_called_as_groups_are(run: Any, wine_cells: Any, tmp_path: Path) -> None:
    wine_cells.obs["hue"] = wine_cells.obs["site"]
    wine_cells.write_h5ad(tmp_path / "wine.h5ad")
    asked = ("cultivar", "--groups", "hue", "--k-max", 2, "--include", "hue", "--quiet")
    found = run("select", tmp_path / "wine.h5ad", *asked)
    assert (found.code, found.err) == (0, "")
    assert "hue" in found.out.split()


def test_without_anndata_the_line_to_install_it(
    fails: Any, wine_h5ad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anndata", None)
    fails('pip install "exactk[omics]"', "select", wine_h5ad, "cultivar", "-k", 2)
