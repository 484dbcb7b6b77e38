"""A table with its target, and the checksum that says which table it is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Dataset", "Kind", "checksum"]

Kind = Literal["classification", "regression"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its target.

    Attributes
    ----------
    name : str
    X : ndarray of float64, shape (n, d), C order
        Features as the source has them: nothing is standardised.
    y : ndarray
        Whole-number labels (n,), or outputs as float64, (n,) or (n, c).
    task : {"classification", "regression"}
    checksum : str
        SHA-256 of the content, see `checksum`.
    informative : ndarray of intp or None
        Columns that the target was made of, ascending; known for synthetic data only.
    feature_names : tuple of str or None
        Names of the columns of X; known for tables and for sets of scikit-learn.
    classes : tuple of str or None
        Names of the labels 0, 1, …; known for tables, for sets of scikit-learn, and wherever the
        labels are text.

    Examples
    --------
    >>> Dataset("two", np.eye(2), np.array([0, 1]), "classification", "")
    Dataset('two', 2 rows × 2 columns, 2 classes)

    The names of the columns that are selected:

    >>> from exactk import Problem, solve
    >>> from exactk.datasets import load
    >>> wine = load("wine")
    >>> best = solve(Problem.from_arrays(wine.X, wine.y), 3, "exchange")
    >>> [wine.feature_names[column] for column in best.support]
    ['flavanoids', 'color_intensity', 'proline']
    """

    name: str
    X: Floats
    y: npt.NDArray[Any]
    task: Kind
    checksum: str
    informative: npt.NDArray[np.intp] | None = None
    feature_names: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        if self.n_classes is not None:
            target = _count(self.n_classes, "class", "classes")
        else:
            target = _count(1 if self.y.ndim == 1 else self.y.shape[1], "output", "outputs")
        table = f"{_count(rows, 'row', 'rows')} × {_count(columns, 'column', 'columns')}"
        return f"{type(self).__name__}({self.name!r}, {table}, {target})"

    @property
    def n_classes(self) -> int | None:
        """Number of different labels; None for regression."""
        return len(np.unique(self.y)) if self.task == "classification" else None


def checksum(X: npt.NDArray[Any], y: npt.NDArray[Any]) -> str:
    """SHA-256 of a table and its target, the same in whatever file they were kept.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Taken as float32 if it has that type, else as float64.
    y : ndarray
        Floating values are outputs and taken as float64; anything else is a label, and only
        the order of the labels counts, not what they are called.

    Returns
    -------
    str
        64 hexadecimal digits, over the shapes and the values in C order, little-endian.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> checksum(X, np.array([0, 1])) == checksum(np.asfortranarray(X), np.array(["a", "b"]))
    True
    >>> checksum(X, np.array([0, 1])) == checksum(X, np.array([1, 0]))
    False
    """
    kind = "<f4" if X.dtype == np.float32 else "<f8"
    outputs = np.issubdtype(y.dtype, np.floating)
    target = y.astype("<f8") if outputs else np.unique(y, return_inverse=True)[1].astype("<i4")
    digest = hashlib.sha256(f"{kind} {X.shape} {target.dtype.str} {target.shape}\n".encode())
    for values in (X.astype(kind), target):
        # Adding zero turns -0.0 into 0.0: a sparse file cannot keep the difference.
        digest.update(np.ascontiguousarray(values + values.dtype.type(0)).tobytes())
    return digest.hexdigest()


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
