"""An AnnData is taken apart: cells × genes, a target of `obs`, names of `var`."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from exactk.data.targets import encode_weights
from exactk.errors import InputError, did_you_mean, join_items

__all__ = [
    "AnnDataParts",
    "gene_names",
    "is_anndata",
    "keep_genes",
    "obs_column",
    "read_anndata",
]

# Labels or numbers of nullable pandas columns as NumPy has them, by the kind of their dtype.
PLAIN: dict[str, Any] = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}


@dataclass(frozen=True, eq=False)
class AnnDataParts:
    """The parts of an AnnData that a problem is made of.

    Attributes
    ----------
    X : ndarray, sparse matrix, or what a backed AnnData has in its place
    names : tuple of str
        Of the genes.
    y : ndarray or what was given as target
    weights : ndarray of float64 or None
    target : str or None
        Name of the column of `obs`.
    in_memory : bool
        Whether X is; if not, it gives slices of its rows.
    """

    X: Any
    names: tuple[str, ...]
    y: Any
    weights: npt.NDArray[np.float64] | None
    target: str | None
    in_memory: bool


def is_anndata(X: Any) -> bool:
    """Whether X is an AnnData, or its `raw`; anndata itself is not imported.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> adata = anndata.AnnData(np.eye(3))
    >>> is_anndata(adata), is_anndata(adata.X)
    (True, False)
    """
    # A view of X is a class of anndata, too, but an array all the same.
    return any(
        kind.__module__.partition(".")[0] == "anndata" and kind.__name__ in ("AnnData", "Raw")
        for kind in type(X).__mro__
    )


def read_anndata(
    adata: Any,
    target: Any,
    *,
    layer: str | None = None,
    use_raw: bool = False,
    names: str | None = None,
    weights: Any = None,
) -> AnnDataParts:
    """Take an AnnData apart; it stays as it is, and what is backed is not read.

    Parameters
    ----------
    adata : AnnData
    target : str or array-like
        Column of `obs`, or one value (or row of values) for each cell.
    layer : str or None
        Layer in place of `X`.
    use_raw : bool
        Take `adata.raw`, with its genes.
    names : str or None
        Column of `var` that names the genes; None takes `var_names`.
    weights : str, array-like or None
        Column of `obs`, or one number for each cell.

    Returns
    -------
    Cells

    Raises
    ------
    InputError
        There is no such column or layer, values are missing, or two genes have the same name.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> obs = pd.DataFrame({"kind": ["T", "B", "T"]}, index=["c1", "c2", "c3"])
    >>> cells = read_anndata(anndata.AnnData(np.eye(3), obs=obs), "kind")
    >>> cells.names, cells.y.tolist()
    (('0', '1', '2'), ['T', 'B', 'T'])
    """
    _check_kind(adata)
    X, var = _table(adata, layer, use_raw)
    y = obs_column(adata, target) if isinstance(target, str) else target
    w = obs_column(adata, weights, "weights") if isinstance(weights, str) else weights
    for what, values in (("target", y), ("weights", w)):
        _refuse_other_order(adata, what, values)
    in_memory = isinstance(X, np.ndarray) or sparse.issparse(X)
    if not in_memory:
        _check_sliced(X)
    return AnnDataParts(
        X=_plain(X) if in_memory else X,
        names=gene_names(var, names),
        y=y,
        weights=encode_weights(w, adata.n_obs),
        target=target if isinstance(target, str) else None,
        in_memory=in_memory,
    )


def obs_column(adata: Any, name: str, what: str = "target") -> npt.NDArray[Any]:
    """Return a column of `obs` as NumPy has it, or say which cells have no value.

    Unused categories are none of its values.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> kind = pd.Categorical(["T", "B", "T"], categories=["B", "NK", "T"])
    >>> adata = anndata.AnnData(np.eye(3), obs=pd.DataFrame({"kind": kind}, index=list("abc")))
    >>> obs_column(adata, "kind").tolist()
    ['T', 'B', 'T']
    """
    known = [str(column) for column in adata.obs.columns]
    if known.count(name) != 1:
        if name in known:
            raise InputError(
                f"{what}: adata.obs has {known.count(name)} columns named {name!r}", parameter=what
            )
        gene = " (it is a gene of adata.var)" if name in adata.var_names else ""
        has = f"; it has {join_items(known)}" if known else "; it has no columns"
        raise InputError(
            f"{what} {name!r} is not a column of adata.obs{gene}{did_you_mean(name, known) or has}",
            parameter=what,
        )
    column = adata.obs[adata.obs.columns[known.index(name)]]
    missing = np.flatnonzero(np.asarray(column.isna()))
    if missing.size:
        # The names of cells are as unknown as they are many: a few tell which study they are of.
        raise InputError(
            f"{what} {name!r} is missing in {missing.size} of {adata.n_obs} cells "
            f"({join_items(adata.obs_names[missing])})", parameter=what,
            hint=f"leave them out with adata[~adata.obs[{name!r}].isna()]",
        )  # fmt: skip
    categories = getattr(column.dtype, "categories", None)
    if categories is not None:
        values: npt.NDArray[Any] = _as_numpy(categories)[np.asarray(column.cat.codes)]
        return values
    return _as_numpy(column)


def keep_genes(adata: Any, names: tuple[str, ...], columns: Any, drop: Any) -> Any:
    """Return the AnnData of some genes, as a view; itself where all are meant.

    Parameters
    ----------
    adata : AnnData
    names : tuple of str
        What its genes are called.
    columns : sequence of str
        Those to keep, in this order; empty for all.
    drop : sequence of str
        Those to leave out. Columns of `obs` are no features, so they may be named as well.
    """
    at = {name: j for j, name in enumerate(names)}
    for name in columns:
        if name not in at:
            raise InputError(
                f"column {name!r} is not a gene of the table{did_you_mean(name, names)}",
                parameter="columns",
            )
    for name in drop:
        if name not in at and name not in adata.obs.columns:
            raise InputError(
                f"dropped column {name!r} is not in the table{did_you_mean(name, names)}",
                parameter="drop",
            )
    kept = [at[name] for name in (columns or names) if name not in drop]
    if not kept:
        raise InputError("the table has no genes besides those that are dropped", parameter="drop")
    return adata if kept == list(range(len(names))) else adata[:, kept]


def _check_kind(adata: Any) -> None:
    if is_anndata(adata) and hasattr(adata, "obs"):
        return
    if isinstance(adata, (str, os.PathLike)):
        raise InputError(
            f"adata is a path, {str(adata)!r}",
            parameter="adata",
            hint=(
                "read it with anndata.read_h5ad(path), or "
                "anndata.read_h5ad(path, backed='r') where it does not fit into memory"
            ),
        )
    raise InputError(
        f"adata is a {type(adata).__name__}, not an AnnData", parameter="adata",
        hint="Problem.from_arrays takes tables, arrays and sparse matrices",
    )  # fmt: skip


def _table(adata: Any, layer: str | None, use_raw: bool) -> tuple[Any, Any]:
    """The matrix, and what is known of its columns."""
    if layer is not None and use_raw:
        raise InputError(
            f"layer={layer!r} and use_raw=True name two tables", parameter="layer",
            hint="give one of the two",
        )  # fmt: skip
    if use_raw:
        if adata.raw is None:
            raise InputError(
                "use_raw=True: adata.raw is not set", parameter="use_raw",
                hint="leave use_raw out to take adata.X",
            )  # fmt: skip
        return _read(adata.raw.X, "adata.raw.X"), adata.raw.var
    if layer is not None:
        known = [str(key) for key in adata.layers]
        if layer not in known:
            has = f"; there is {join_items(known)}" if known else "; there are none"
            raise InputError(
                f"layer {layer!r} is not in adata.layers{did_you_mean(str(layer), known) or has}",
                parameter="layer",
            )
        return _read(adata.layers[layer], f"adata.layers[{layer!r}]"), adata.var
    if adata.X is None:
        known = [str(key) for key in adata.layers]
        raise InputError(
            "adata.X is None", parameter="layer",
            hint=f"name a layer: {join_items(known) or 'there are none'}",
        )  # fmt: skip
    return _read(adata.X, "adata.X"), adata.var


def _read(X: Any, what: str) -> Any:
    """Refuse tables that neither are in memory nor give slices of their rows."""
    if type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
        raise InputError(
            f"{what} is a dask {type(X).__name__}", parameter="adata",
            hint=f"use Problem.from_dask({what}, adata.obs[…]), or adata.to_memory()",
        )  # fmt: skip
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        return X.to_numpy()
    return X


def _check_sliced(X: Any) -> None:
    """Raise for a backed matrix whose rows cannot be read a few at a time."""
    if getattr(X, "format", "csr") == "csc":
        raise InputError(
            "adata is backed by a matrix stored by columns (CSC), whose rows cannot be read a few "
            "at a time", parameter="adata",
            hint="read it with adata.to_memory(), or store it by rows (CSR)",
        )  # fmt: skip
    if not hasattr(X, "shape") or not hasattr(X, "__getitem__"):
        raise InputError(
            f"adata.X is a {type(X).__name__}, which cannot be read", parameter="adata",
            hint="try adata.to_memory()",
        )  # fmt: skip


def _plain(X: Any) -> Any:
    """The same values as a plain array or matrix: those of a view keep watch over being changed."""
    if not sparse.issparse(X):
        return np.asarray(X)
    if type(X).__module__.partition(".")[0] != "anndata" or X.format not in ("csr", "csc"):
        return X
    kind = sparse.csr_matrix if X.format == "csr" else sparse.csc_matrix
    return kind((X.data, X.indices, X.indptr), shape=X.shape)


def gene_names(var: Any, column: Any = None, what: str = "names") -> tuple[str, ...]:
    """Names of the genes: those of `var`, or a column of it; each must name one gene."""
    if column is None:
        names = tuple(str(name) for name in var.index)
        where, way = "adata.var_names", "call adata.var_names_make_unique() first"
    else:
        known = [str(name) for name in var.columns]
        if not isinstance(column, str) or known.count(column) != 1:
            has = f"; it has {join_items(known)}" if known else "; it has no columns"
            raise InputError(
                f"{what} {column!r} is not a column of "
                f"adata.var{did_you_mean(str(column), known) or has}", parameter=what,
            )  # fmt: skip
        values = var[var.columns[known.index(column)]]
        missing = np.flatnonzero(np.asarray(values.isna()))
        if missing.size:
            raise InputError(
                f"{what}: adata.var[{column!r}] is missing for {missing.size} of {len(var)} genes "
                f"({join_items(var.index[missing])})", parameter=what,
                hint=f"fill it in, or leave {what} out",
            )  # fmt: skip
        names = tuple(str(name) for name in values)
        where, way = f"adata.var[{column!r}]", f"leave {what} out to take adata.var_names"
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{where} names more than one gene {join_items(repeated)}", parameter=what,
            hint=way,
        )  # fmt: skip
    return names


def _refuse_other_order(adata: Any, what: str, values: Any) -> None:
    """Raise for a series of the same cells in another order: it is taken by position."""
    index: Any = getattr(values, "index", None)
    if not hasattr(index, "equals") or len(index) != adata.n_obs:
        return
    if not index.equals(adata.obs_names) and bool(index.isin(adata.obs_names).all()):
        raise InputError(
            f"{what} has the cells of adata in another order", parameter=what,
            hint=f"give it as {what}.loc[adata.obs_names]",
        )  # fmt: skip


def _as_numpy(values: Any) -> npt.NDArray[Any]:
    """A pandas column or index without missing values: numbers stay numbers, text is objects."""
    if isinstance(values.dtype, np.dtype):
        return np.asarray(values)
    kind = PLAIN.get(getattr(values.dtype, "kind", "O"), object)
    out: npt.NDArray[Any] = values.to_numpy(dtype=kind)
    return out
