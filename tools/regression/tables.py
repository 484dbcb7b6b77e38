"""The tables of the cases: real and synthetic ones in memory, and one in every kind of source."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import datasets

from tools.regression import calls

STORED = ("srbct", "lymphoma", "jaffe", "colon")
REAL = {"cancer": "breast_cancer", "wine": "wine", "digits": "digits", "diabetes": "diabetes",
        "linnerud": "linnerud"}  # fmt: skip


class NotHereError(Exception):
    """What a case needs is not on this machine."""


@cache
def table(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return X, y and further arguments of `Problem.from_arrays`."""
    if name in STORED:
        if "EXACTK_DATA" not in os.environ:
            raise NotHereError("EXACTK_DATA is not set")
        data = calls.load_dataset(name)
        return data.X, data.y, {}
    if name in REAL:
        task = "classification" if name in ("wine", "cancer", "digits") else "regression"
        return (*getattr(datasets, f"load_{REAL[name]}")(return_X_y=True), {"task": task})
    return _synthetic(name, np.random.default_rng(crc32(name.encode())))


def _synthetic(name: str, rng: Any) -> tuple[Any, Any, dict[str, Any]]:
    normal = rng.normal
    match name:
        case "wide":
            y, X = np.arange(42) % 3, normal(size=(42, 200))
            X[:, :8] += normal(size=(3, 8))[y]
            return X, np.array(["one", "three", "two"])[y], {}
        case "genes":  # too wide for its Gram matrix within the memory limit
            X = normal(size=(60, 3000))
            y = X[:, 5:3000:500] @ normal(size=6) + normal(size=60)
            return X, y, {"memory_limit": 2**20}
        case "correlated":
            X = np.cumsum(normal(size=(900, 16)), axis=1)
            return X, X[:, [2, 7, 11]] @ [1.0, -2.0, 1.5] + 3 * normal(size=900), {}
        case "copies":
            X = normal(size=(100, 14))
            X[:, 5], X[:, 6], X[:, 7] = X[:, 1], 3 - 2 * X[:, 2], 1.0
            X[:, 8] = X[:, 3] + 1e-9 * normal(size=100)
            return X, (X[:, 1] - X[:, 3] + X[:, 9] + normal(size=100) > 0).astype(int), {}
        case "dependent":
            X = normal(size=(30, 6)) @ normal(size=(6, 12))
            return X, X[:, 0] + X[:, 4] + normal(size=30), {}
        case "outputs":
            X = normal(size=(120, 25))
            return X, X[:, :6] @ normal(size=(6, 3)) + normal(size=(120, 3)), {}
        case "multilabel":
            X = normal(size=(150, 20))
            Y = X[:, :5] @ normal(size=(5, 3)) + normal(size=(150, 3)) > 0
            return X, Y.astype(int), {}
        case "counts":
            X = rng.poisson(0.4, size=(300, 40)).astype(float)
            y = rng.poisson(np.exp(0.3 + X[:, [3, 8, 21]] @ [0.4, -0.5, 0.3]))
            return sparse.csr_array(X), y, {"task": "regression"}
        case "outliers":
            X = normal(size=(150, 20))
            y = X[:, :4] @ [2.0, -1.0, 1.0, 0.5] + 0.3 * normal(size=150)
            return X, np.where(np.arange(150) < 15, -8 * y, y), {}
        case "weighted":
            X, y = normal(size=(150, 12)), np.arange(150) % 2
            X[:, :4] += np.outer(y, [1.0, -1.0, 0.5, 0.5])
            return X, y, {"sample_weight": rng.integers(0, 4, 150) * 0.5}
        case "units":
            X, scale = normal(size=(80, 10)), 10.0 ** np.arange(-4, 6)
            return X * scale + 100, X.sum(axis=1) + normal(size=80), {"scale": False}
        case "mixed":
            X = pd.DataFrame(normal(size=(160, 6)), columns=list("abcdef"))
            X["colour"] = pd.Categorical.from_codes(rng.integers(0, 4, 160), list("bgrw"))
            X["kind"] = np.where(rng.random(160) < 0.4, "x", "y")
            y = X["a"] - X["c"] + 2 * (X["colour"] == "r") + (X["kind"] == "x")
            return X, y + normal(size=160), {}
        case "rows":  # read from every kind of source: y classes, v numbers, w weights, g groups
            y, X = np.arange(240) % 3, np.round(normal(size=(240, 10)), 3)
            X[:, :5] += np.round(normal(size=(3, 5)), 3)[y]
            X[rng.random(X.shape) < 0.3] = 0
            X[:, 9] = X[:, 0]
            frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
            frame["y"], frame["w"] = np.array(["blue", "green", "red"])[y], rng.integers(0, 4, 240)
            frame["v"] = np.round(X[:, 1] - X[:, 4] + normal(size=240), 3)
            frame["g"] = np.arange(240) // 8
            return frame, None, {}
    raise KeyError(name)


def need(module: str) -> Any:
    """Import a module, if it is installed."""
    if find_spec(module.split(".")[0]) is None:
        raise NotHereError(f"{module} is not installed")
    return import_module(module)


def problem(name: str, ridge: float = 0.1, torch: bool = False, **more: Any) -> Any:
    """Return the problem of a table."""
    X, y, given = table(name)
    if torch:
        need("torch")
    return calls.from_arrays(X, y, ridge=ridge, **given, **more)


NAMES = [f"x{j}" for j in range(10)]
FILES = ("t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.feather", "folder")
LOADED = {
    "array": np.asarray,
    "Fortran": np.asfortranarray,
    "lists": lambda X: np.asarray(X).tolist(),
    "float32": lambda X: np.asarray(X, np.float32),
    "integers": lambda X: (100 * np.asarray(X)).astype(int),
    "csr": lambda X: sparse.csr_array(np.asarray(X)),
    "csc": lambda X: sparse.csc_array(np.asarray(X)),
    "coo": lambda X: sparse.coo_array(np.asarray(X)),
    "pandas": lambda X: X,
    "polars": lambda X: need("polars").from_pandas(X),
    "Arrow": lambda X: need("pyarrow").Table.from_pandas(X),
}
OTHERS = (
    "Dask array", "Dask frame", "moments", "merged moments", "Spark", "AnnData", "backed AnnData",
)  # fmt: skip
SPARK = {
    "driver.bindAddress": "127.0.0.1", "driver.host": "127.0.0.1", "log.level": "OFF",
    "ui.enabled": "false", "ui.showConsoleProgress": "false", "sql.shuffle.partitions": "2",
}  # fmt: skip


def source(kind: str, target: str = "y", weights: str | None = None, **more: Any) -> Any:
    """Return the problem of the table `rows`, read from one kind of source."""
    frame = table("rows")[0]
    X, y = frame[NAMES], frame[target].to_numpy()
    w = None if weights is None else frame[weights].to_numpy()
    drop = [other for other in "yvwg" if other not in (target, weights)]
    named: dict[str, Any] = {"drop": drop, "weights": weights, "ridge": 0.1, **more}
    if kind in FILES:
        return calls.from_files(kind, target, **named)
    if kind in LOADED:
        return calls.from_arrays(LOADED[kind](X), y, sample_weight=w, ridge=0.1)
    if kind == "Dask frame":
        return calls.from_dask(lazy(frame), target=target, **named)
    if kind == "Dask array":
        array, y = need("dask.array").from_array, y.astype(str) if target == "y" else y
        rows = array(X.to_numpy(), chunks=(70, 10))
        w = None if w is None else array(w, chunks=70)
        return calls.from_dask(rows, array(y, chunks=70), weights=w, ridge=0.1)
    if kind == "Spark":
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = need("pyspark.sql").SparkSession.builder.master("local[1]")
        for setting, value in SPARK.items():
            builder = builder.config(f"spark.{setting}", value)
        rows = builder.getOrCreate().createDataFrame(frame).repartition(3)
        return calls.from_spark(rows, target, **named)
    if kind.endswith("AnnData"):
        anndata = need("anndata")
        cells = anndata.AnnData(X.to_numpy(), obs=frame[list("yvw")].set_index(X.index.astype(str)))
        if kind == "backed AnnData":
            if not Path("cells.h5ad").exists():
                cells.write_h5ad("cells.h5ad")
            cells = anndata.read_h5ad("cells.h5ad", backed="r")
        return calls.from_anndata(cells, target, weights=weights, ridge=0.1)
    labels, made = np.unique(y) if target == "y" else None, None
    Y = y if labels is None else (y[:, None] == labels).astype(float)
    for part in np.array_split(np.arange(len(X)), 1 if kind == "moments" else 3):
        new = calls.make_moments(X.to_numpy()[part], Y[part], None if w is None else w[part])
        made = new if made is None else made.merge(new)
    made.save("moments.npz")
    return calls.from_moments(calls.load_moments("moments.npz"), classes=labels, ridge=0.1)


def lazy(data: Any) -> Any:
    """Return a Dask frame."""
    return need("dask.dataframe").from_pandas(pd.DataFrame(data), npartitions=3)


RECIPE = """
name = "own"\ntitle = "Own"\npaper = "exactk"\nprotocol = "classify"\ndatasets = ["wine"]
sizes = [3]\nrepeats = 2\n[split]\ntrain = 0.6\n[measure]\ntune_folds = 3\ntune_classifier = "svm"
classifiers = ["1nn", "svm", "linear", "svm-tuned"]
[[methods]]\nlabel = "exchange"\nmethod = "exchange"\nridge = "auto"
[[methods]]\nlabel = "rfs"\nmethod = "rfs"\ngrid = {lam = [0.1, 1.0]}
[[views]]\nkind = "table"\nmeasure = "1nn"\ntitle = "Accuracy"
"""

CONFIG = {
    "balanced": 'class_weight = "balanced"',
    "budget": "[constraints]\nbudget = 5\nCOSTS",
    "columns": 'columns = ["x1", "x2", "x3", "x4"]',
    "effort": 'columns = ["x1", "x2", "x3", "x4"]\neffort = 0',
    "folds": "[k]\nk_max = 4\ncv = 3",
    "group": '[constraints]\ncount = "columns"\nfeature_groups = {A = ["x1", "x2"]}',
    "paired": '[k]\nk_max = 5\ncv = 4\nrule = "paired"',
    "poor": "[constraints]\nbudget = 1\nCOSTS",
    "quota": '[constraints.quotas.F]\ncolumns = ["x1", "x2", "x3"]\nat_least = 1\nat_most = 1',
    "short": "n_subsamples = 10",
}


def write_files() -> None:
    """Write the tables that files, folders and commands need to the working folder."""
    frame, (mixed, value, _) = table("rows")[0], table("mixed")
    for name in ("t.csv", "t.csv.gz", "t.tsv"):
        frame.to_csv(name, index=False, sep="\t" if name == "t.tsv" else ",")
    frame.to_parquet("t.parquet", index=False, row_group_size=50)
    frame.to_feather("t.feather")
    Path("folder").mkdir()
    for part in range(3):
        frame[80 * part : 80 * part + 80].to_parquet(f"folder/{part}.parquet", index=False)
    frame.drop(columns=["v", "w"]).to_csv("grouped.csv", index=False)
    mixed.assign(y=value).to_csv("mixed.csv", index=False)
    Path("own.toml").write_text(RECIPE)
    costs = ", ".join(f"x{j} = {1 + j % 3}" for j in range(10))
    for name, text in CONFIG.items():
        Path(f"{name}.toml").write_text(text.replace("COSTS", f"costs = {{{costs}}}"))
    Path("bad.csv").write_text("a,b,y\n1,2,u\n3,,v\n5,6,u\n")


def read_json(name: str) -> Any:
    """Read a file that a command wrote."""
    return json.loads(Path(name).read_text())


def read_csv(name: str) -> Any:
    """Read the columns of a file that a command wrote."""
    return pd.read_csv(name).to_dict("list")
