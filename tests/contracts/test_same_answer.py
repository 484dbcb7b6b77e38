"""The same rows give the same moments and the same columns, whatever they come in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from scipy import sparse

from exactk import Moments, Problem, solve
from exactk.streaming.files import open_files
from exactk.streaming.moments import stream_moments

Array = np.ndarray[Any, Any]
NAMES = [f"gene {j}" for j in range(12)]
LABELS = np.array(["ash", "birch", "oak", "yew"])


def rows(offset: float = 0.0, n: int = 600) -> tuple[Array, Array]:
    """Counts with many zeros, so that sparse and dense are both at home; some columns tell."""
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 4, n)
    rate = 0.3 + 2.0 * (np.arange(12)[None, :] % 4 == codes[:, None]) * (np.arange(12) < 8)
    X = rng.poisson(rate).astype(float) * rng.uniform(0.5, 1.5, (n, 12))
    # Sums of powers of two and small whole numbers keep the offset exact in float64.
    return np.round(X * 64) / 64 + offset, LABELS[codes]


def frame(X: Array, y: Array) -> pd.DataFrame:
    return pd.DataFrame(X, columns=NAMES).assign(tree=y)


def held(X: Array, y: Array, folder: Path) -> Problem:
    return Problem.from_arrays(X, y)


def csr(X: Array, y: Array, folder: Path) -> Problem:
    return Problem.from_arrays(sparse.csr_array(X), y)


def csc(X: Array, y: Array, folder: Path) -> Problem:
    return Problem.from_arrays(sparse.csc_array(X), y)


def pandas_frame(X: Array, y: Array, folder: Path) -> Problem:
    return Problem.from_arrays(pd.DataFrame(X, columns=NAMES), pd.Series(y))


def polars_frame(X: Array, y: Array, folder: Path) -> Problem:
    return Problem.from_arrays(pl.DataFrame(X, schema=NAMES), pl.Series(y))


def one_parquet(X: Array, y: Array, folder: Path) -> Problem:
    parquet.write_table(table(X, y), folder / "all.parquet", row_group_size=97)
    return Problem.from_files(folder / "all.parquet", target="tree")


def parquet_folder(X: Array, y: Array, folder: Path) -> Problem:
    for i, part in enumerate(np.array_split(np.arange(len(X)), 5)):
        parquet.write_table(table(X[part], y[part]), folder / f"part-{i}.parquet")
    return Problem.from_files(folder, target="tree")


def csv_file(X: Array, y: Array, folder: Path) -> Problem:
    csv.write_csv(table(X, y), folder / "all.csv")
    return Problem.from_files(folder / "all.csv", target="tree")


def feather_file(X: Array, y: Array, folder: Path) -> Problem:
    feather.write_feather(table(X, y), str(folder / "all.feather"), chunksize=83)
    return Problem.from_files(folder / "all.feather", target="tree")


def dask_frame(X: Array, y: Array, folder: Path) -> Problem:
    import dask
    import dask.dataframe as dd

    with dask.config.set(scheduler="synchronous"):
        return Problem.from_dask(dd.from_pandas(frame(X, y), npartitions=7), target="tree")


def dask_array(X: Array, y: Array, folder: Path) -> Problem:
    import dask
    import dask.array as da

    with dask.config.set(scheduler="threads"):
        return Problem.from_dask(da.from_array(X, chunks=(101, 5)), y)


def merged_archives(X: Array, y: Array, folder: Path) -> Problem:
    """Three sites that send moments, not rows."""
    for site, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        parquet.write_table(table(X[part], y[part]), folder / "site.parquet")
        stream_moments(open_files(folder / "site.parquet", "tree")).save(folder / f"{site}.npz")
    first, *others = (Moments.load(folder / f"{site}.npz") for site in (2, 0, 1))
    for other in others:
        first = first.merge(other)
    return Problem.from_moments(first)


def table(X: Array, y: Array) -> pa.Table:
    return pa.table({**{name: X[:, j] for j, name in enumerate(NAMES)}, "tree": y})


WAYS: list[Callable[[Array, Array, Path], Problem]] = [
    held, csr, csc, pandas_frame, polars_frame, one_parquet, parquet_folder, csv_file,
    feather_file, merged_archives,
]  # fmt: skip


every_way = pytest.mark.parametrize(
    "way",
    [*WAYS, *(pytest.param(way, marks=pytest.mark.dask) for way in (dask_frame, dask_array))],
    ids=lambda way: way.__name__,
)


def exact(X: Array, y: Array) -> tuple[Array, Array, Array]:
    """Means, standardised Gram matrix and cross-products, in extended precision."""
    X, Y = X.astype(np.longdouble), (y[:, None] == LABELS).astype(np.longdouble)
    mean = X.mean(axis=0)
    Z = (X - mean) / X.std(axis=0, ddof=1)
    return mean, Z.T @ Z, (Y - Y.mean(axis=0)).T @ Z


@every_way
@pytest.mark.parametrize(("offset", "rtol"), [(0.0, 1e-10), (2.0**20, 1e-8)], ids=["plain", "far"])
def test_moments_by_their_definition(
    way: Callable[..., Problem], offset: float, rtol: float, tmp_path: Path
) -> None:
    X, y = rows(offset)
    problem = way(X, y, tmp_path)
    mean, gram, cross = exact(X, y)
    assert problem.classes is not None
    assert problem.classes.tolist() == LABELS.tolist()
    assert problem.n_rows == len(X)
    for found, wanted in [
        (problem.x_mean, mean),
        (problem.gram_rows(np.arange(12)), gram),
        (problem.cross, cross),
    ]:
        assert np.abs(found - wanted).max() <= rtol * np.abs(wanted).max()


@every_way
def test_the_same_columns_and_coefficients(way: Callable[..., Problem], tmp_path: Path) -> None:
    X, y = rows()
    mixed = np.random.default_rng(0).permutation(len(X))
    wanted_of, found_of = Problem.from_arrays(X, y), way(X[mixed], y[mixed], tmp_path)
    for k in (1, 3, 6, 11):
        wanted = solve(wanted_of.with_ridge(0.1), k)
        found = solve(found_of.with_ridge(0.1), k)
        assert found.support.tolist() == wanted.support.tolist()
        assert found.objective == pytest.approx(wanted.objective, rel=1e-10)
        np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-8)
