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

    Examples
    --------
    >>> Dataset("two", np.eye(2), np.array([0, 1]), "classification", "").n_classes
    2
    """

    name: str
    X: Floats
    y: npt.NDArray[Any]
    task: Kind
    checksum: str
    informative: npt.NDArray[np.intp] | None = None

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
