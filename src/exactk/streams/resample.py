"""Resampling by weights: a bootstrap or one half of the rows, of arrays and streams alike.

Whether and how often a row counts follows from a seed, the part of the table that it lies in and
its number there. So nothing need be stored or sent but the seed, and a part that is read again
gives the same sample again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, factorial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from exactk.checks import Choice, Whole
from exactk.streams.base import Block, Fold, OnRows, Part, State, Stream

__all__ = ["Resample", "SampleKind", "SampledStream", "mixed"]

Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]
SampleKind = Literal["bootstrap", "half", "other half"]

# P(0), P(≤ 1), … of a Poisson variable with mean 1; beyond them is less than one in 10^17.
POISSON = np.cumsum([exp(-1.0) / factorial(count) for count in range(18)])


def mixed(numbers: Hashes) -> Hashes:
    """Return numbers of which every bit depends on all bits of those given (SplitMix64).

    Examples
    --------
    >>> len(np.unique(mixed(np.arange(1000, dtype=np.uint64)) % np.uint64(1 << 40)))
    1000
    """
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class Resample:
    """How often each row of a table counts.

    Attributes
    ----------
    seed : int
        Zero or more.
    kind : {"bootstrap", "half", "other half"}
        "bootstrap" counts each row a Poisson number of times, one on average, which for many rows
        is drawing as many as there are with replacement. "half" takes each row with probability
        one half, and "other half" those that "half" with the same seed does not take.

    Examples
    --------
    >>> one, other = Resample(3, "half").counts(0, 0, 8), Resample(3, "other half").counts(0, 0, 8)
    >>> (one + other).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    seed: int
    kind: SampleKind = "bootstrap"

    def checked(self) -> Resample:
        """Return itself, or say what is wrong with it."""
        Whole(0)("seed", self.seed)
        Choice(words=get_args(SampleKind))("kind", self.kind)
        return self

    def counts(self, part: int, first_row: int, n_rows: int) -> Floats:
        """Return how often rows of a part count, from `first_row` on."""
        key = np.array([int(self.seed) % 2**64], dtype=np.uint64)
        key = mixed(mixed(key) ^ np.array([part], dtype=np.uint64))
        rows = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
        # Numbers in [0, 1), of as many bits as a float64 has.
        drawn = (mixed(mixed(rows) ^ key) >> np.uint64(11)) * 2.0**-53
        if self.kind == "bootstrap":
            return np.searchsorted(POISSON, drawn, side="right").astype(np.float64)
        return (drawn < 0.5 if self.kind == "half" else drawn >= 0.5).astype(np.float64)


class _SampledFold(Fold[State, Part]):
    """Hands blocks with their new weights on to another fold."""

    def __init__(self, inner: Fold[State, Part], sample: Resample) -> None:
        self.inner, self.sample = inner, sample
        self.n_matrices = inner.n_matrices

    def begin(self) -> State:
        return self.inner.begin()

    def add(self, state: State, block: Block) -> None:
        place = block.place
        weights = self.sample.counts(place.part, place.first_row, len(block.X))
        if block.weights is not None:
            weights *= block.weights
        self.inner.add(state, replace(block, weights=weights))

    def close(self, state: State) -> Part | None:
        return self.inner.close(state)

    def merge(self, one: Part, other: Part) -> Part:
        return self.inner.merge(one, other)


class SampledStream(Stream):
    """A stream whose rows count as a sample says.

    Parameters
    ----------
    inner : Stream
    sample : Resample
    """

    def __init__(self, inner: Stream, sample: Resample) -> None:
        self.inner, self.sample = inner, sample
        self.feature_names, self.target = inner.feature_names, inner.target
        self.y_kind, self.n_outputs, self.n_rows = inner.y_kind, inner.n_outputs, inner.n_rows

    def reduce(self, fold: Fold[Any, Part], on_rows: OnRows | None = None) -> Part:  # noqa: D102
        return self.inner.reduce(_SampledFold(fold, self.sample), on_rows)
