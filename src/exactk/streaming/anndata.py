"""A backed AnnData: its cells stay on disk, and are passed over some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from exactk.data.anndata import AnnDataParts
from exactk.data.targets import encode_target, is_missing
from exactk.errors import InputError, Setting
from exactk.streaming.arrow import rows_per_block
from exactk.streaming.base import (
    Block,
    EncodedLabels,
    Location,
    OnRows,
    Part,
    Reducer,
    Stream,
    reduce_partition,
    unwrap,
)
from exactk.streaming.partitions import kind_of
from exactk.types import Floats

__all__ = ["AnnDataStream"]


class AnnDataStream(Stream):
    """Cells × genes, read in blocks of cells; the target and the weights are in memory.

    Parameters
    ----------
    cells : AnnDataParts
        Of an AnnData; X in memory is passed over in the same way.
    task : {"auto", "classification", "regression"}
        Numbers are read as such for a regression.
    source : str
        What messages call the table.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from exactk.data.anndata import read_anndata
    >>> stream = AnnDataStream(read_anndata(anndata.AnnData(np.eye(4)), ["T", "B", "T", "B"]))
    >>> stream.feature_names, stream.n_rows, stream.y_kind
    (('0', '1', '2', '3'), 4, 'text')
    """

    # Labels are what `obs` says they are: they are never read again as text.
    promote = False

    def __init__(self, cells: AnnDataParts, task: str = "auto", source: str = "adata") -> None:
        y = np.asarray(cells.y)
        self.n_rows = int(cells.X.shape[0])
        if y.ndim not in (1, 2) or len(y) != self.n_rows:
            raise InputError(
                f"X has {self.n_rows} rows, the target has shape {y.shape}", parameter="target",
                hint="give one value a cell",
            )  # fmt: skip
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        self.feature_names, self.target = cells.names, cells.target
        self.n_outputs = 1 if y.ndim == 1 else int(y.shape[1])
        kind = kind_of(y.dtype, "the target")
        if self.n_outputs > 1 and kind == "text":
            raise InputError(
                "the target holds text in several columns", parameter="target",
                hint="these must be numbers",
            )  # fmt: skip
        as_numbers = self.n_outputs > 1 or (task == "regression" and kind != "text")
        self.y_kind = "float" if as_numbers else kind
        self._labels: list[Any] = []
        if self.y_kind == "text":
            found, y = _sorted_labels(y)
            self._labels = found.tolist()
        elif as_numbers:
            y = y.astype(np.float64)
        X = cells.X.tocsr() if sparse.issparse(cells.X) else cells.X
        self._X, self._y, self._weights, self._source = X, y, cells.weights, source

    @property
    def memory_hint(self) -> tuple[str | Setting, ...]:
        """How to give it more memory, for messages."""
        return *super().memory_hint, ", read the cells into memory with adata.to_memory()"

    def reduce(self, reducer: Reducer[Any, Part], on_rows: OnRows | None = None) -> Part:  # noqa: D102
        whole = reduce_partition(reducer, self._blocks(on_rows))
        return unwrap(whole)

    def _blocks(self, on_rows: OnRows | None) -> Iterator[Block]:
        assert self.n_rows is not None
        step = rows_per_block(self.n_features)
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            weights = None if self._weights is None else self._weights[rows]
            location = Location(self._source, 0, start)
            yield Block(self._features(rows), self._target(rows), weights, location)
            if on_rows is not None:
                on_rows(rows.stop, self.n_rows)

    def _features(self, rows: slice) -> Floats:
        X = self._X[rows]
        if sparse.issparse(X):
            X = X.toarray(order="F")
        if X.dtype.kind not in "fiub":
            raise InputError(
                f"{self._source} has dtype {X.dtype}, which is not a number", parameter="adata"
            )
        # A copy: whoever gets a block may overwrite it, and X may be in memory.
        return np.array(X, dtype=np.float64, order="F")

    def _target(self, rows: slice) -> npt.NDArray[Any] | EncodedLabels:
        if self.y_kind != "text":
            part: npt.NDArray[Any] = self._y[rows]
            return part
        # Only labels that occur: others may be of cells that weigh nothing.
        used, codes = np.unique(self._y[rows], return_inverse=True)
        return EncodedLabels(codes.astype(np.intp), [self._labels[code] for code in used])


def _sorted_labels(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """The labels of a target of text, and which each cell has."""
    # A part of a table may have one label only, which a whole one may not.
    if len(set(y.tolist())) == 1 and not is_missing(y[0]):
        return y[:1], np.zeros(len(y), dtype=np.intp)
    coded = encode_target(y, "classification")
    assert coded.classes is not None
    assert coded.codes is not None
    return coded.classes, coded.codes
