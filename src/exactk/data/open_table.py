"""Open a table in memory, whatever its kind."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from exactk.data.anndata import is_anndata
from exactk.data.categories import Category
from exactk.data.dense import DenseRows
from exactk.data.design_matrix import DesignMatrix
from exactk.data.frames import is_frame, open_frame
from exactk.data.sparse import SparseRows
from exactk.data.targets import first_word
from exactk.errors import InputError, join_items, show_value

__all__ = ["check_names", "is_dask", "open_rows"]


def open_rows(
    X: Any, feature_names: Sequence[str] | None = None, sample_weight: Any = None
) -> DesignMatrix:
    """Open a table for reading: array, nested list, sparse matrix, or frame.

    Parameters
    ----------
    X : array-like, sparse matrix, pandas or polars frame, Arrow table
    feature_names : sequence of str or None
        Names for columns that have none, or in place of those they have. Text and categories of a
        frame are coded as columns of 0 and 1 afterwards, see `Rows.categories`.
    sample_weight : array-like of shape (n,) or None
        What each row counts where a category is coded: the level that weighs most has no column.

    Returns
    -------
    Rows

    Raises
    ------
    InputError
        Not two-dimensional, empty, neither numbers nor text in a frame, duplicate or too few names.
    """
    if isinstance(X, (str, os.PathLike)):
        raise InputError(
            f"X is a path, {show_value(str(X))}", parameter="X",
            hint="Problem.from_files(path, target) reads files",
        )  # fmt: skip
    _refuse_elsewhere(X)
    given = check_names(feature_names)
    categories: tuple[Category, ...] = ()
    if type(X) is not np.ndarray and is_frame(X):
        X, given, categories = open_frame(X, given, sample_weight)
    elif isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InputError(
            f"X is a masked array with {int(np.ma.getmaskarray(X).sum())} masked values",
            parameter="X", hint="fill them in (X.filled) or drop those rows",
        )  # fmt: skip
    elif isinstance(X, np.matrix):
        raise InputError(
            "X is a numpy.matrix", parameter="X", hint="make it an array with numpy.asarray(X)"
        )
    if not _is_plain(X):
        try:
            # Values are checked for NaN and infinity in the first pass of arithmetic, not here.
            X = check_array(
                X,
                accept_sparse=("csr", "csc"),
                dtype="numeric",
                ensure_all_finite=False,
                ensure_min_samples=2,
                input_name="X",
            )
        except ValueError as error:
            raise _flaw_of(X, given, str(error)) from error
    if not sparse.issparse(X) and X.dtype.kind not in "fiub":
        words = f"X has dtype {X.dtype}, which is not a number; convert it to float64"
        raise _flaw_of(X, given, words)
    if given is not None and len(given) != X.shape[1]:
        raise InputError(
            f"feature_names has {len(given)} names, X has {X.shape[1]} columns",
            parameter="feature_names",
        )
    if sparse.issparse(X):
        return SparseRows(X, given)
    return DenseRows(np.asarray(X), given, categories)


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask itself is not imported.

    Examples
    --------
    >>> is_dask([[1.0]])
    False
    """
    return _library(X) in ("dask", "dask_expr")


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def _refuse_elsewhere(X: Any) -> None:
    """Raise for tables that other constructors take, and name the constructor."""
    if is_dask(X):
        raise InputError(
            f"X is a dask {type(X).__name__}, whose rows are not in memory", parameter="X",
            hint="use Problem.from_dask(X, y), or TopKSelector",
        )  # fmt: skip
    if is_anndata(X):
        raise InputError(
            f"X is an {type(X).__name__} of anndata",
            parameter="X",
            hint=(
                "use Problem.from_anndata(adata, target), or "
                "give the parts: X=adata.X, y=adata.obs[target]"
            ),
        )
    if _library(X) == "pyspark":
        raise InputError(
            "X is a Spark table, whose rows are not in memory", parameter="X",
            hint="use Problem.from_spark(X, target=…)",
        )  # fmt: skip


def _flaw_of(X: Any, names: Sequence[str] | None, words: str) -> InputError:
    """Return what is wrong with a table; if nothing more is found, in these words."""
    try:
        values = X if sparse.issparse(X) else np.asarray(X)
    except ValueError:
        return InputError("X has rows of different lengths", parameter="X")
    if values.ndim == 0:
        return InputError(
            f"X is no table but of type {type(X).__name__}", parameter="X",
            hint="give an array, a sparse matrix or a frame: a row for each sample, a column for "
                 "each feature",
        )  # fmt: skip
    if values.ndim != 2:
        dimensions = "1 dimension" if values.ndim == 1 else f"{values.ndim} dimensions"
        return InputError(
            f"X has {dimensions}, and a table has 2: rows and columns", parameter="X",
            hint="numpy.reshape(X, (-1, 1)) has one column" if values.ndim == 1 else "",
        )  # fmt: skip
    if values.ndim == 2 and values.shape[1] == 0:
        # The words that scikit-learn's checks of an estimator want.
        return InputError(
            f"X has 0 feature(s) (shape={values.shape}) while a minimum of 1 is required.",
            parameter="X",
        )
    if values.dtype.kind == "c":
        return InputError(words, parameter="X")
    if values.shape[0] < 2:
        samples = "1 sample (row)" if values.shape[0] else "no samples (rows)"
        return InputError(
            f"X has {samples}, and a selection needs at least 2", parameter="X",
            hint="give more rows",
        )  # fmt: skip
    bad = first_word(values) if values.dtype.kind in "OUS" else None
    if bad is None:
        return InputError(words, parameter="X")
    row, column = np.argwhere(values == bad)[0]
    name = f"column {column}" if names is None else f"column {names[column]!r}"
    return InputError(
        f"{name} of X has {bad!r} in row {row}, which is not a number", parameter="X", value=bad,
        hint="correct it, or give a pandas or polars frame, which may have columns of text",
    )  # fmt: skip


def _is_plain(X: Any) -> bool:
    """Whether X is an array that nothing need be done to, by far the most common case."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.kind in "fiub"
        and X.shape[0] >= 2
        and X.shape[1] >= 1
    )


def check_names(feature_names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return names as strings, or say which occur twice."""
    if feature_names is None:
        return None
    if isinstance(feature_names, str) or not hasattr(feature_names, "__iter__"):
        raise InputError(parameter="feature_names", value=feature_names, expected="a list of names")
    names = tuple(str(name) for name in feature_names)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"duplicate names in feature_names: {join_items(repeated)}", parameter="feature_names"
        )
    return names
