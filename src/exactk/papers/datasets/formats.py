"""Files to arrays: compressed NumPy, MATLAB and tables, each to a matrix and a target."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from exactk.errors import InputError, join_items
from exactk.papers.datasets.folders import TABLES

__all__ = [
    "Arrays",
    "Content",
    "check_arrays",
    "dense",
    "read_any",
    "read_mat",
    "read_npz",
]

Arrays = tuple[npt.NDArray[Any], npt.NDArray[Any]]


class Content(NamedTuple):
    """A matrix and a target as a file has them, and the names of the columns of a table."""

    X: npt.NDArray[Any]
    y: npt.NDArray[Any]
    columns: tuple[str, ...] | None = None


# How public files call the matrix and the labels, compared in lower case.
MATRIX_NAMES = ("x", "fea", "data", "features", "samples")
TARGET_NAMES = ("y", "gnd", "label", "labels", "target", "targets", "class", "classes", "gt")
SPARSE_PARTS = ("X_data", "X_indices", "X_indptr", "X_shape")


def read_any(path: Path, shape: tuple[int, int] | None = None) -> Content:
    """Read a file by its suffix; `shape` is that of X, where it is known."""
    name = path.name.lower()
    if name.endswith(".npz"):
        return Content(*read_npz(path))
    if name.endswith(".mat"):
        return Content(*read_mat(path, shape))
    if name.endswith(TABLES):
        return _read_table(path)
    raise InputError(f"{str(path)!r} is neither .npz, .mat nor a table", parameter="path")


def read_npz(path: Path) -> Arrays:
    """Read `X` and `y`; X may also be in the parts of a CSR matrix."""
    try:
        # Opened here, since np.load leaves a damaged file open.
        with path.open("rb") as file, _arrays_of(file) as stored:
            if "y" not in stored:
                raise InputError(
                    f"{str(path)!r} has no array 'y'", parameter="path",
                    hint=f"it has {join_items(stored)}",
                )  # fmt: skip
            if "X" in stored:
                return _array(stored, "X"), _array(stored, "y")
            if missing := [part for part in SPARSE_PARTS if part not in stored]:
                raise InputError(
                    f"{str(path)!r} has no array 'X' and, for a sparse one, no "
                    f"{join_items(missing)}", parameter="path",
                )  # fmt: skip
            data, indices, indptr, shape = (_array(stored, part) for part in SPARSE_PARTS)
            X = sparse.csr_array((data, indices, indptr), shape=tuple(int(s) for s in shape))
            X.check_format(full_check=True)
            return X.toarray(), _array(stored, "y")
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{str(path)!r} does not fit into memory: {error}", parameter="path"
        ) from error
    except Exception as error:
        # For a damaged file NumPy and SciPy may raise any error.
        raise InputError(_unreadable(path, "a .npz file", error), parameter="path") from error


def read_mat(path: Path, shape: tuple[int, int] | None = None) -> Arrays:
    """Read the matrix and the labels of a MATLAB file, whatever they are called.

    The matrix may be d × n, the labels a column, a row, or one column for each class; one
    matrix alone has the target in its last column, or in its first if `shape` says so.
    """
    arrays, others = _variables(path)
    for known in (MATRIX_NAMES, TARGET_NAMES):
        # Another array must not take the place of one that is there but cannot be used.
        if _named(arrays, known) is None and (name := _named(others, known)) is not None:
            raise InputError(
                f"{str(path)!r}: {name!r} is no matrix of numbers but {others[name]}",
                parameter="path", hint="save it as one (labels as whole numbers)",
            )  # fmt: skip
    matrix = _named(arrays, MATRIX_NAMES)
    target = _named(arrays, TARGET_NAMES)
    if matrix is None:
        matrix = max(arrays, key=lambda name: int(np.prod(arrays[name].shape)))
    X = arrays[matrix]
    if target is None or target == matrix:
        target = _the_other(arrays, matrix)
    if target is None:
        if shape is None and len(arrays) > 1:
            raise InputError(
                f"{str(path)!r}: which of {join_items(arrays)} is the target? Call it 'y', or "
                "keep it "
                f"as the last column of one matrix", parameter="path",
            )  # fmt: skip
        return _split_target(path, dense(X), shape)
    y = _labels(path, target, dense(arrays[target]))
    if X.shape[0] != len(y):
        if X.shape[1] != len(y):
            raise InputError(
                f"{str(path)!r}: {matrix!r} is {X.shape[0]} x {X.shape[1]}, but {target!r} has "
                f"{len(y)} labels", parameter="path",
            )  # fmt: skip
        X = X.T
    elif shape is not None and X.shape[0] == X.shape[1] and X.shape != shape:
        X = X.T
    return dense(X), y


def _variables(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """All matrices of numbers in a MATLAB file, and in a word what the other variables are."""
    from scipy.io import loadmat

    try:
        with warnings.catch_warnings():
            # SciPy will return sparse arrays in place of matrices; both can be read here.
            warnings.simplefilter("ignore", DeprecationWarning)
            content = loadmat(path)
    except NotImplementedError as error:
        raise InputError(
            f"{str(path)!r} is a MATLAB 7.3 file (HDF5), which SciPy does not read",
            parameter="path", hint="save it in MATLAB with save(..., '-v7')",
        ) from error  # fmt: skip
    except Exception as error:
        # For a damaged file NumPy and SciPy may raise any error.
        raise InputError(_unreadable(path, "a MATLAB file", error), parameter="path") from error
    arrays = {
        name: value
        for name, value in content.items()
        if not name.startswith("__")
        and (
            sparse.issparse(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "buif")
        )
        and value.ndim == 2
        and min(value.shape) > 0
    }
    if not arrays:
        raise InputError(f"{str(path)!r} holds no matrix of numbers", parameter="path")
    others = {
        name: f"{getattr(value, 'dtype', type(value).__name__)} of shape {np.shape(value)}"
        for name, value in content.items()
        if not name.startswith("__") and name not in arrays
    }
    return arrays, others


def dense(X: Any) -> npt.NDArray[Any]:
    """Return a dense array of a sparse or dense one."""
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def check_arrays(X: npt.NDArray[Any], y: npt.NDArray[Any], path: Path) -> Arrays:
    """Refuse what is no table with a target: wrong shapes, other than numbers, NaN."""
    where = repr(str(path))
    if X.dtype.kind not in "buif":
        raise InputError(f"{where}: X holds {X.dtype}, not numbers", parameter="path")
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(
            f"{where}: X must be a table of rows and columns, its shape is {X.shape}",
            parameter="path",
        )
    if y.dtype.kind not in "buifUSO" or y.ndim not in (1, 2) or 0 in y.shape:
        raise InputError(
            f"{where}: y of shape {y.shape} and type {y.dtype} is no target", parameter="path"
        )
    if len(y) != len(X):
        raise InputError(f"{where}: X has {len(X)} rows, but y has {len(y)}", parameter="path")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    for name, values in (("X", X), ("y", y)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bad = int(np.size(values) - np.isfinite(values).sum())
            raise InputError(
                f"{where}: {name} has {bad} value(s) that are NaN or infinite", parameter="path",
                hint="fill or remove them",
            )  # fmt: skip
    return X, y


def _arrays_of(file: IO[bytes]) -> Any:
    stored = np.load(file, allow_pickle=False)
    if isinstance(stored, np.ndarray):
        raise ValueError("one array, not an archive of arrays")
    return stored


def _array(stored: Any, name: str) -> npt.NDArray[Any]:
    """Read one array; what is none of NumPy's comes back as bytes."""
    found = stored[name]
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{name!r} is not an array")
    return found


def _read_table(path: Path) -> Content:
    from exactk.data.files import read_table, split_table

    table = read_table(path)
    if not path.name.lower().endswith((".parquet", ".pq")) and _is_row(table.column_names):
        raise InputError(
            f"{str(path)!r} has no header: its first row is {join_items(table.column_names)}",
            parameter="path", hint="write names of the columns above it",
        )  # fmt: skip
    target = "y" if "y" in table.column_names else table.column_names[-1]
    try:
        parts = split_table(table, target)
    except InputError as error:
        # Its hint names a parameter that `load` does not have.
        flaw = InputError(error.message, hint="change the file", parameter="path")
        raise InputError(f"{str(path)!r}: {flaw}", parameter="path") from error
    columns = [column.to_numpy() for column in parts.features.columns]
    X = np.column_stack(columns).astype(np.float64)
    return Content(X, parts.target, tuple(parts.features.column_names))


def _is_row(names: Sequence[str]) -> bool:
    """Whether what stands for the names of columns is a row of numbers.

    Numbers that count the columns are names: tables are written so.
    """
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return any(b - a != 1 for a, b in pairwise(numbers))


def _named(arrays: Mapping[str, Any], known: tuple[str, ...]) -> str | None:
    lowered = {name.lower(): name for name in reversed(list(arrays))}
    return next((lowered[name] for name in known if name in lowered), None)


def _the_other(arrays: Mapping[str, Any], matrix: str) -> str | None:
    """Name of the one array that can be the labels of the matrix; None if there is none."""
    sides = set(arrays[matrix].shape)
    fitting = [
        name
        for name, value in arrays.items()
        if name != matrix and min(value.shape) == 1 and max(value.shape) in sides
    ]
    return fitting[0] if len(fitting) == 1 else None


def _labels(path: Path, name: str, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if min(y.shape) == 1:
        return y.ravel()
    wide = y if y.shape[0] >= y.shape[1] else y.T
    top = wide.max()
    if (np.sum(wide == top, axis=1) == 1).all() and len(np.unique(wide)) == 2:
        return wide.argmax(axis=1)
    raise InputError(
        f"{str(path)!r}: {name!r} is {y.shape[0]} x {y.shape[1]}", parameter="path",
        hint="labels must be a vector, or one column for each class",
    )  # fmt: skip


def _split_target(path: Path, Z: npt.NDArray[Any], shape: tuple[int, int] | None) -> Arrays:
    """Take a matrix apart that holds the target as one of its columns."""
    if shape is not None:
        n, d = shape
        if Z.shape == (d + 1, n):
            Z = Z.T
        if Z.shape != (n, d + 1):
            raise InputError(
                f"{str(path)!r} holds no labels beside a matrix of {Z.shape[0]} x {Z.shape[1]}",
                parameter="path",
            )
        # Labels repeat; measurements rarely do.
        if len(np.unique(Z[:, 0])) < len(np.unique(Z[:, -1])):
            return Z[:, 1:], Z[:, 0]
    if Z.shape[1] < 2:
        raise InputError(
            f"{str(path)!r} holds one column", parameter="path",
            hint="features and a target are needed",
        )  # fmt: skip
    return Z[:, :-1], Z[:, -1]


def _unreadable(path: Path, kind: str, error: Exception) -> str:
    return (
        f"{str(path)!r} cannot be read as {kind}, it may be cut short or damaged "
        f"({type(error).__name__}: {' '.join(str(error).split())})"
    )
