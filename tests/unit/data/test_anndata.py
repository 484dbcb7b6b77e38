from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import exactk
from exactk import InputError, Problem, TopKSelector, solve
from exactk.data.anndata import is_anndata, read_anndata
from exactk.streaming import arrow

pd = pytest.importorskip("pandas")
# Without it none of these tests is run: see tests/conftest.py.
ad: Any = import_module("anndata") if find_spec("anndata") else None
pytestmark = pytest.mark.omics

N, D = 90, 12


def cells(X: Any) -> Any:
    kinds = np.array(["T", "B", "NK"])
    rng = np.random.default_rng(3)
    return ad.AnnData(
        X,
        obs=pd.DataFrame(
            {
                "kind": pd.Categorical(
                    kinds[np.arange(N) % 3], categories=["B", "NK", "none", "T"]
                ),
                "age": rng.normal(40, 9, N),
                "stage": rng.integers(0, 4, N),
                "copies": rng.integers(0, 3, N),
            },
            index=[f"cell{i}" for i in range(N)],
        ),
        var=pd.DataFrame(
            {"symbol": [f"S{j}" for j in range(D)]}, index=[f"ENSG{j}" for j in range(D)]
        ),
    )


@pytest.fixture
def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (N, D)) + np.outer(np.arange(N) % 3, rng.integers(0, 3, D))
    return np.log1p(X)


def same(one: Problem, other: Problem, k: int = 4) -> None:
    """Both have the same answer, by the same numbers."""
    a, b = solve(one, k), solve(other, k)
    assert a.selected == b.selected
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    assert a.classes == b.classes
    np.testing.assert_allclose(a.coef, b.coef, rtol=1e-6, atol=1e-9)


def by_hand(X: Any, adata: Any, **options: Any) -> Problem:
    labels = np.array([str(label) for label in adata.obs["kind"]])
    return Problem.from_arrays(X, labels, feature_names=list(adata.var_names), **options)


@pytest.mark.parametrize(
    "make",
    [np.array, sparse.csr_matrix, sparse.csc_matrix, lambda X: X.astype(np.float32)],
    ids=["dense", "csr", "csc", "float32"],
)
def test_the_answer_is_that_of_the_parts(table: np.ndarray, make: Any) -> None:
    adata = cells(make(table))
    problem = Problem.from_anndata(adata, "kind", ridge=0.1)
    assert problem.feature_names == tuple(f"ENSG{j}" for j in range(D))
    assert list(problem.classes) == ["B", "NK", "T"]
    same(problem, by_hand(make(table), adata, ridge=0.1))


def test_counts_are_taken_as_they_are(table: np.ndarray) -> None:
    counts = np.rint(np.expm1(table)).astype(np.int32)
    same(Problem.from_anndata(cells(counts), "kind"), by_hand(counts, cells(counts)))


def test_layers_raw_and_views(table: np.ndarray) -> None:
    adata = cells(np.zeros_like(table))
    adata.layers["log"] = sparse.csr_matrix(table)
    same(Problem.from_anndata(adata, "kind", layer="log"), by_hand(table, adata))
    adata = cells(table)
    adata.raw = adata
    few = adata[:, :5].copy()
    assert Problem.from_anndata(few, "kind").n_features == 5
    same(Problem.from_anndata(few, "kind", use_raw=True), by_hand(table, adata))
    rows, genes = np.arange(N)[::-1][:70], [3, 0, 7, 9, 11]
    for X in (table, sparse.csr_matrix(table), sparse.csc_matrix(table)):
        view = cells(X)[rows, genes]
        same(
            Problem.from_anndata(view, "kind"),
            Problem.from_arrays(
                table[np.ix_(rows, genes)],
                [str(label) for label in view.obs["kind"]],
                feature_names=[f"ENSG{j}" for j in genes],
            ),
        )
        assert view.is_view


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "FEWEST_ROWS", 16)
    monkeypatch.setattr(arrow, "MOST_ROWS", 16)


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.usefixtures("small_blocks")
def test_backed_cells_are_passed_over(table: np.ndarray, make: Any, tmp_path: Any) -> None:
    adata = cells(make(table))
    adata.raw = adata
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    problem = Problem.from_anndata(backed, "kind", ridge=0.1, weights="copies")
    assert problem.rows is None
    weights = adata.obs["copies"].to_numpy()
    same(problem, by_hand(table, adata, ridge=0.1, sample_weight=weights))
    same(problem.in_memory(), by_hand(table, adata, ridge=0.1, sample_weight=weights))
    same(Problem.from_anndata(backed, "kind", use_raw=True), by_hand(table, adata))
    same(Problem.from_anndata(backed, "age"), Problem.from_anndata(adata, "age"))
    same(Problem.from_anndata(backed, "stage"), Problem.from_anndata(adata, "stage"))
    same(
        Problem.from_anndata(backed, "stage", task="regression"),
        Problem.from_anndata(adata, "stage", task="regression"),
    )
    two = adata.obs[["age", "stage"]]
    same(Problem.from_anndata(backed, two), Problem.from_anndata(adata, two))
    likelihood = {"class_weight": "balanced", "loss": "logistic", "ridge": 0.1}
    same(
        Problem.from_anndata(backed, "kind", **likelihood),
        Problem.from_anndata(adata, "kind", **likelihood),
    )
    # What anndata itself reads, once it is a view.
    same(Problem.from_anndata(backed[5:, 2:], "kind"), Problem.from_anndata(adata[5:, 2:], "kind"))
    backed.file.close()


@pytest.mark.usefixtures("small_blocks")
def test_what_backed_cells_cannot(table: np.ndarray, tmp_path: Any) -> None:
    by_columns = tmp_path / "csc.h5ad"
    cells(sparse.csc_matrix(table)).write_h5ad(by_columns)
    backed = ad.read_h5ad(by_columns, backed="r")
    with pytest.raises(InputError, match=r"stored by columns \(CSC\).*adata\.to_memory\(\)"):
        Problem.from_anndata(backed, "kind")
    same(Problem.from_anndata(backed.to_memory(), "kind"), by_hand(table, backed))
    backed.file.close()
    table[40, 3] = np.nan
    cells(table).write_h5ad(tmp_path / "nan.h5ad")
    backed = ad.read_h5ad(tmp_path / "nan.h5ad", backed="r")
    with pytest.raises(InputError, match=r"'ENSG3' is missing or infinite .* first in row 40"):
        Problem.from_anndata(backed, "kind")
    with pytest.raises(InputError, match=r"gram='columns' needs the cells in memory"):
        Problem.from_anndata(backed, "kind", gram="columns")
    with pytest.raises(InputError, match=r"memory_limit.*adata\.to_memory\(\)"):
        Problem.from_anndata(backed, "kind", memory_limit=100)
    with pytest.raises(InputError, match=r"X has 90 rows, the target has shape \(3,\)"):
        Problem.from_anndata(backed, [0, 1, 0])
    backed.file.close()


def test_names_come_from_var(table: np.ndarray) -> None:
    adata = cells(table)
    problem = Problem.from_anndata(adata, "kind", names="symbol")
    assert problem.feature_names[:2] == ("S0", "S1")
    held = solve(problem.with_constraints(include=["S7"]), 3)
    assert "S7" in held.selected
    with pytest.raises(InputError, match=r"names 'symbl' is not a column of adata\.var; did you"):
        Problem.from_anndata(adata, "kind", names="symbl")
    adata.var.loc["ENSG4", "symbol"] = "S0"
    with pytest.raises(InputError, match=r"adata\.var\['symbol'\] names more than one gene 'S0'"):
        Problem.from_anndata(adata, "kind", names="symbol")
    adata.var.loc["ENSG4", "symbol"] = None
    with pytest.raises(InputError, match=r"missing for 1 of 12 genes \('ENSG4'\)"):
        Problem.from_anndata(adata, "kind", names="symbol")


def test_genes_of_the_same_name_are_refused(table: np.ndarray) -> None:
    adata = cells(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that of anndata says the same
        adata.var_names = ["ACTB", "ACTB", *adata.var_names[2:]]
        with pytest.raises(InputError, match=r"gene 'ACTB'; call adata\.var_names_make_unique\(\)"):
            Problem.from_anndata(adata, "kind")
        adata.var_names_make_unique()
    assert Problem.from_anndata(adata, "kind").feature_names[:2] == ("ACTB", "ACTB-1")


@pytest.mark.parametrize("column", ["kind", "age"])
def test_missing_labels_are_counted_and_named(table: np.ndarray, column: str) -> None:
    adata = cells(table)
    adata.obs.loc[["cell4", "cell9"], column] = np.nan
    with pytest.raises(InputError) as caught:
        Problem.from_anndata(adata, column)
    words = str(caught.value)
    assert f"target '{column}' is missing in 2 of 90 cells ('cell4', 'cell9')" in words
    # The way out that it names is one.
    way = words.partition("with ")[2]
    assert way == f"adata[~adata.obs['{column}'].isna()]"
    assert Problem.from_anndata(adata[~adata.obs[column].isna()], column).n_rows == 88


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (pd.array([1, 2, 3] * 30, dtype="Int64"), [1, 2, 3]),
        (pd.array([True, False, True] * 30, dtype="boolean"), [False, True]),
        (pd.array(["u", "v", "u"] * 30, dtype="string"), ["u", "v"]),
        (pd.Categorical([3, 1, 3] * 30), [1, 3]),
        (pd.Categorical(["lo", "hi", "lo"] * 30, ["lo", "mid", "hi"], ordered=True), ["hi", "lo"]),
    ],
    ids=["Int64", "boolean", "string", "whole categories", "ordered"],
)
def test_labels_of_every_kind(
    table: np.ndarray, values: Any, classes: list[Any], tmp_path: Any
) -> None:
    adata = cells(table)
    adata.obs["label"] = pd.Series(values, index=adata.obs_names)
    problem = Problem.from_anndata(adata, "label")
    assert problem.classes.tolist() == classes
    assert Problem.from_anndata(adata, adata.obs["label"].to_numpy().tolist()).n_rows == N


def test_a_target_may_be_an_array(table: np.ndarray) -> None:
    adata = cells(table)
    same(
        Problem.from_anndata(adata, adata.obs["age"].to_numpy()), Problem.from_anndata(adata, "age")
    )
    shuffled = adata.obs["age"].iloc[::-1]
    for option in ({"target": shuffled}, {"target": "kind", "weights": shuffled}):
        with pytest.raises(InputError, match=r"has the cells of adata in another order"):
            Problem.from_anndata(adata, **option)
    same(
        Problem.from_anndata(adata, shuffled.loc[adata.obs_names]),
        Problem.from_anndata(adata, "age"),
    )


def test_what_is_not_there_is_named(table: np.ndarray) -> None:
    adata = cells(table)
    for options, words in (
        ({"target": "knid"}, r"target 'knid' is not a column of adata\.obs; it has 'kind'"),
        ({"target": "ENSG3"}, r"'ENSG3' is not a column of adata\.obs \(it is a gene"),
        ({"target": "kind", "weights": "wt"}, r"weights 'wt' is not a column of adata\.obs"),
        ({"target": "kind", "weights": "kind"}, r"sample_weight must be numbers"),
        ({"target": "kind", "layer": "x"}, r"layer 'x' is not in adata\.layers; there are none"),
        ({"target": "kind", "use_raw": True}, r"adata\.raw is not set"),
        ({"target": "kind", "use_raw": True, "layer": "x"}, r"give one of the two"),
        ({"target": [0, 1]}, r"X has 90 rows, y has 2"),
    ):
        with pytest.raises(InputError, match=words):
            Problem.from_anndata(adata, **options)
    with pytest.raises(InputError, match=r"adata\.X is None; name a layer"):
        Problem.from_anndata(ad.AnnData(obs=adata.obs), "kind")
    with pytest.raises(InputError, match=r"adata is a path, 'c\.h5ad'.*anndata\.read_h5ad"):
        Problem.from_anndata("c.h5ad", "kind")
    with pytest.raises(InputError, match=r"adata is a ndarray, not an AnnData"):
        Problem.from_anndata(table, "kind")


def test_nan_and_infinity_are_named(table: np.ndarray) -> None:
    table[3, 5] = np.inf
    with pytest.raises(InputError, match="'ENSG5'"):
        Problem.from_anndata(cells(table), "kind")


def test_other_constructors_name_this_one(table: np.ndarray, tmp_path: Any) -> None:
    adata = cells(table)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    labels = adata.obs["kind"]
    for call in (
        lambda: Problem.from_arrays(adata, labels),
        lambda: TopKSelector(k=2).fit(adata, labels),
    ):
        with pytest.raises(InputError, match=r"Problem\.from_anndata\(adata, target\)"):
            call()
    with pytest.raises(InputError, match=r"is an AnnData.*Problem\.from_anndata"):
        Problem.from_files(tmp_path / "cells.h5ad", "kind")
    # An array of a view is a table like any other.
    assert not is_anndata(adata[:50].X)
    assert Problem.from_arrays(adata[:50].X, labels[:50]).n_rows == 50


def test_nothing_is_changed(table: np.ndarray) -> None:
    adata = cells(sparse.csr_matrix(table))
    adata.layers["log"] = table.copy()
    before = adata.copy()
    for options in ({}, {"layer": "log"}, {"names": "symbol", "weights": "copies"}):
        solve(Problem.from_anndata(adata, "kind", **options), 3)
        solve(Problem.from_anndata(adata[:60], "kind", **options), 3)
    assert (adata.X != before.X).nnz == 0
    np.testing.assert_array_equal(adata.layers["log"], before.layers["log"])
    pd.testing.assert_frame_equal(adata.obs, before.obs)
    pd.testing.assert_frame_equal(adata.var, before.var)
    assert "none" in adata.obs["kind"].cat.categories


def test_sparse_cells_stay_sparse(table: np.ndarray) -> None:
    taken = read_anndata(cells(sparse.csr_matrix(table))[10:], "kind")
    assert sparse.issparse(taken.X)
    assert type(taken.X).__module__.startswith("scipy")


def test_donors_stay_together(table: np.ndarray) -> None:
    adata = cells(table)
    adata.obs["donor"] = [f"d{i // 9}" for i in range(N)]
    problem = Problem.from_anndata(adata, "kind", ridge=0.1)
    found = exactk.stability(problem, k=2, groups=adata.obs["donor"], n_subsamples=10)
    assert found.n_subsamples == 10
    assert exactk.choose_k(problem, k_max=3, groups=adata.obs["donor"]).k in (1, 2, 3)


def test_a_target_of_dates_is_refused() -> None:
    adata = cells(np.random.default_rng(0).normal(size=(N, D)))
    adata.obs["day"] = pd.date_range("2020", periods=N)
    with pytest.raises(InputError, match=f"y has {N} different dates .* such as days"):
        Problem.from_anndata(adata, "day")
