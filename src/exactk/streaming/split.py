"""The rows of a stream dealt out to folds by their values, and the moments of each fold.

Rows go to folds by a hash of their values. So neither their order nor the partitions matter, and
equal rows stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from exactk.data.accumulate import MomentsAccumulator
from exactk.data.moments import Moments
from exactk.streaming.base import Block, EncodedLabels, Reducer
from exactk.streaming.moments import check_block, merge_found, outputs
from exactk.streaming.target_encoding import Labels, TargetEncoding
from exactk.types import Floats

__all__ = ["SplitReducer", "row_hashes"]

Hashes = npt.NDArray[np.uint64]

# Odd, with bits all over: the golden ratio.
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def row_hashes(block: Block, seed: int) -> Hashes:
    """Return a number for each row that follows from its values and the seed alone.

    Neither the order of the rows nor the parts that the table comes in have a share in it, nor
    has the weight: equal rows stay together, so that a weight is the same as repeated rows.
    """
    out = np.full(len(block.X), int(seed) % 2**64, dtype=np.uint64)
    for column in block.X.T:
        _stir(out, column)
    if isinstance(block.y, EncodedLabels):
        of = [int.from_bytes(blake2b(str(v).encode(), digest_size=8).digest(), "big")
              for v in block.y.labels]  # fmt: skip
        out ^= np.array(of, dtype=np.uint64)[block.y.codes]
    else:
        for column in np.asarray(block.y, dtype=np.float64).reshape(len(out), -1).T:
            _stir(out, column)
    return _mixed(out)


def _mixed(numbers: Hashes) -> Hashes:
    """Return numbers of which every bit depends on all bits of those given (SplitMix64)."""
    z = numbers + MULTIPLIER
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _stir(hashes: Hashes, values: Floats) -> None:
    """Mix the bits of a column in; minus zero is zero."""
    hashes ^= (values + 0.0).view(np.uint64)
    hashes *= MULTIPLIER
    hashes ^= hashes >> np.uint64(32)


@dataclass
class _State:
    accumulators: list[MomentsAccumulator]
    labels: Labels | None


class SplitReducer(Reducer[_State, Sequence["Moments | None"]]):
    """Adds up the moments of each fold apart.

    Parameters
    ----------
    names : tuple of str
        Columns of the table.
    target_encoding : TargetEncoding
        How its target is read; classes are known by now.
    n_folds : int
    seed : int
        Another seed, another split.
    only_fold : int or None
        With a number, only two sets of moments are made: those of this fold, and those of all
        others together.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        target_encoding: TargetEncoding,
        n_folds: int,
        seed: int,
        only_fold: int | None = None,
    ) -> None:
        self.names, self.target_encoding = names, target_encoding
        self.n_folds, self.seed, self.only_fold = n_folds, seed, only_fold
        self.n_matrices = n_folds if only_fold is None else 2

    def begin(self) -> _State:  # noqa: D102
        labels = self.target_encoding.start()
        n_outputs = self.target_encoding.n_outputs if labels is None else len(labels)
        sets = [MomentsAccumulator(len(self.names), n_outputs) for _ in range(self.n_matrices)]
        return _State(sets, labels)

    def add(self, state: _State, block: Block) -> None:  # noqa: D102
        check_block(block)
        if block.weights is not None and not block.weights.any():
            return
        Y = outputs(block, self.target_encoding, state.labels)
        folds = (row_hashes(block, self.seed) % np.uint64(self.n_folds)).astype(np.intp)
        if self.only_fold is not None:
            folds = (folds != self.only_fold).astype(np.intp)
        for reducer, accumulator in enumerate(state.accumulators):
            rows = np.flatnonzero(folds == reducer)
            # Rows of a transpose are copied as they lie, and the copy is in Fortran order again.
            X = block.X.T.take(rows, axis=1).T
            weights = None if block.weights is None else block.weights[rows]
            accumulator.update(X, Y[rows], weights)

    def close(self, state: _State) -> Sequence[Moments | None] | None:  # noqa: D102
        if all(accumulator.is_empty for accumulator in state.accumulators):
            return None
        return [
            None if accumulator.is_empty else self._named(accumulator.finish())
            for accumulator in state.accumulators
        ]

    def _named(self, moments: Moments) -> Moments:
        return replace(moments, feature_names=self.names, classes=self.target_encoding.classes)

    def merge(  # noqa: D102
        self, one: Sequence[Moments | None], other: Sequence[Moments | None]
    ) -> Sequence[Moments | None]:
        return [merge_found(mine, theirs) for mine, theirs in zip(one, other, strict=True)]
