"""One's own files beside the catalogue: which there are, and what is cheaply known of them."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from exactk.papers.datasets.catalogue import Kind
from exactk.papers.datasets.folders import local_files
from exactk.papers.datasets.formats import SPARSE_PARTS
from exactk.papers.datasets.loading import has_classes, load_local

__all__ = ["LocalDataset", "local_datasets"]

# Values up to which a file is read for the sake of a list; a fraction of a second each.
FEW = 4_000_000
# A gzipped table of numbers is rarely packed tighter.
PACKED = 10


@dataclass(frozen=True)
class LocalDataset:
    """A file that is not in the catalogue.

    Attributes
    ----------
    name : str
        What `load` calls it.
    path : Path
    n, d : int or None
        Rows and columns; None where the file is large, or cannot be read.
    task : {"classification", "regression"} or None
    classes : int or None
        Number of classes; None for regression, and where the task is not known.
    """

    name: str
    path: Path
    n: int | None = None
    d: int | None = None
    task: Kind | None = None
    classes: int | None = None


def local_datasets(folder: str | os.PathLike[str] | None = None) -> list[LocalDataset]:
    """Look at one's own files in the folders of `load`, without reading large ones whole.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "mine.npz"), X=np.eye(4), y=[0, 1, 0, 1])
    ...     [(own.name, own.n, own.d, own.classes) for own in local_datasets(folder)]
    [('mine', 4, 4, 2)]
    """
    return [_outline(name, path) for name, path in local_files(folder).items()]


def _outline(name: str, path: Path) -> LocalDataset:
    try:
        if path.name.lower().endswith(".npz"):
            return _outline_npz(name, path)
        if _values(path) > FEW:
            return LocalDataset(name, path)
        data = load_local(name, path)
    except Exception:
        # One bad file must not hide the others; what is wrong with it is said when it is loaded.
        return LocalDataset(name, path)
    n, d = data.X.shape
    return LocalDataset(name, path, n, d, data.task, data.n_classes)


def _outline_npz(name: str, path: Path) -> LocalDataset:
    """Read the shape of X from its header, and only the target in full."""
    with zipfile.ZipFile(path) as archive:
        if "X.npy" in archive.namelist():
            with archive.open("X.npy") as file:
                n, d = _shape(file)
        else:
            with archive.open(f"{SPARSE_PARTS[-1]}.npy") as file:
                n, d = map(int, np.lib.format.read_array(file, allow_pickle=False))
        with archive.open("y.npy") as file:
            size = int(np.prod(_shape(file)))
        if size > FEW:
            return LocalDataset(name, path, n, d)
        with archive.open("y.npy") as file:
            y = np.lib.format.read_array(file, allow_pickle=False)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if not has_classes(y):
        return LocalDataset(name, path, n, d, "regression")
    return LocalDataset(name, path, n, d, "classification", len(np.unique(y)))


def _shape(file: IO[bytes]) -> tuple[int, ...]:
    version = np.lib.format.read_magic(file)
    read: Any = np.lib.format.read_array_header_2_0
    if version == (1, 0):
        read = np.lib.format.read_array_header_1_0
    return tuple(int(side) for side in read(file)[0])


def _values(path: Path) -> int:
    """How many numbers a file holds at most, without reading them."""
    name = path.name.lower()
    if name.endswith(".mat"):
        from scipy.io import whosmat

        return sum(int(np.prod(shape)) for _, shape, _ in whosmat(path))
    if name.endswith((".parquet", ".pq")):
        from pyarrow import parquet

        facts = parquet.read_metadata(str(path))
        return int(facts.num_rows * facts.num_columns)
    # A number and its comma take two bytes at least.
    return path.stat().st_size * (PACKED if name.endswith(".gz") else 1) // 2
