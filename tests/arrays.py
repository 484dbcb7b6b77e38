"""An array passed over in parts: the plainest stream, to hold the others and the folds to."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from exactk.streaming.base import (
    Block,
    EncodedLabels,
    Location,
    OnRows,
    Reducer,
    Stream,
    merge_partitions,
    reduce_partition,
    unwrap,
)


class ArrayStream(Stream):
    """Rows of an array in `n_parts` parts of `n_blocks` blocks; folds and states are pickled."""

    def __init__(
        self, X: Any, y: Any, weights: Any = None, *, n_parts: int = 3, n_blocks: int = 2
    ) -> None:
        self.X, self.y = np.asarray(X), np.asarray(y)
        self.weights = None if weights is None else np.asarray(weights, dtype=float)
        self.feature_names = tuple(f"x{j}" for j in range(self.X.shape[1]))
        kinds = {"U": "text", "O": "text", "b": "bool", "i": "int", "u": "int", "f": "float"}
        self.target, self.y_kind = "y", kinds[self.y.dtype.kind]
        self.n_outputs = 1 if self.y.ndim == 1 else self.y.shape[1]
        self.n_rows = len(self.X)
        self.n_parts, self.n_blocks = n_parts, n_blocks
        self.passes = 0

    def blocks(self, part: int, rows: Any) -> Iterator[Block]:
        for some in np.array_split(rows, self.n_blocks):
            y: Any = self.y[some]
            if self.y_kind == "text":
                labels, codes = np.unique(y.astype(str), return_inverse=True)
                y = EncodedLabels(codes, labels.tolist())
            yield Block(
                np.array(self.X[some], dtype=float, order="F"),
                y,
                None if self.weights is None else self.weights[some],
                Location(f"part {part}", part, int(some[0] - rows[0]) if len(some) else 0),
            )

    def reduce(self, fold: Reducer[Any, Any], on_rows: OnRows | None = None) -> Any:
        self.passes += 1
        parts = []
        for part, rows in enumerate(np.array_split(np.arange(len(self.X)), self.n_parts)):
            sent = pickle.loads(pickle.dumps(fold))
            parts.append(
                pickle.loads(pickle.dumps(reduce_partition(sent, self.blocks(part, rows))))
            )
        return unwrap(merge_partitions(fold, parts))
