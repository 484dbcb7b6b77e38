"""An AnnData on disk: an .h5ad file is opened, whole or with its matrix left where it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from exactk.errors import InputError, MissingExtraError, join_items

__all__ = ["is_h5ad", "read_h5ad", "stored_bytes"]

SUFFIX = ".h5ad"


def is_h5ad(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of an AnnData on disk, by its suffix.

    Examples
    --------
    >>> is_h5ad("pbmc/Cells.H5AD"), is_h5ad("cells.csv")
    (True, False)
    """
    return os.fspath(path).lower().endswith(SUFFIX)


def read_h5ad(path: str | os.PathLike[str], *, backed: bool = False) -> Any:
    """Open an AnnData on disk: whole, or with its `X` left where it is.

    Raises
    ------
    MissingExtraError
        anndata is not installed.
    InputError
        The file is not there, or is none.
    """
    file = Path(path)
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise InputError(
            f"table {str(path)!r} {what}", parameter="path", hint=f"give one {SUFFIX} file"
        )
    try:
        import anndata
    except ImportError as error:
        raise MissingExtraError(
            f'reading {SUFFIX} files needs anndata: pip install "exactk[omics]"'
        ) from error
    try:
        adata = anndata.read_h5ad(file, backed="r" if backed else None)
    except Exception as error:
        # For a file that is damaged or of another kind, HDF5 and anndata may raise any error.
        words = _other_parts(file) or " ".join(str(error).split()).rstrip(".")
        raise InputError(
            f"table {str(path)!r} cannot be read as {SUFFIX}: {words}", parameter="path"
        ) from error
    if adata.n_obs == 0 or adata.n_vars == 0:
        raise InputError(
            f"table {str(path)!r} has {adata.n_obs} cells and {adata.n_vars} genes",
            parameter="path",
        )
    return adata


def _other_parts(file: Path) -> str:
    """What an HDF5 file holds that is no AnnData, in words; nothing where it may be one."""
    import h5py

    try:
        with h5py.File(file, "r") as opened:
            if {"obs", "var"} <= opened.keys():
                return ""
            parts = join_items(opened.keys()) or "nothing"
    except OSError:
        return ""
    return f"it is HDF5 and no AnnData, which has 'obs' and 'var', and this has {parts}"


def stored_bytes(path: str | os.PathLike[str]) -> int:
    """Bytes that `X` of a file takes once it is in memory, sparse if it is stored so; 0 if unsaid.

    A file may be packed, so that its own length says little.
    """
    try:
        import h5py
    except ImportError:
        return 0
    try:
        with h5py.File(path, "r") as file:
            X = file["X"]
            parts = [X] if isinstance(X, h5py.Dataset) else [X["data"], X["indices"]]
            return sum(int(part.size) * int(part.dtype.itemsize) for part in parts)
    except (OSError, KeyError):
        # Whoever reads the file says what is wrong with it.
        return 0
