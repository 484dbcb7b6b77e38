"""Folds that watch, or break, the cluster they run on; workers import them from here."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

from exactk.data.moments import Moments
from exactk.streaming.base import Block, Reducer
from exactk.streaming.moments import MomentsReducer

# How many parts were unpickled in this process.
ARRIVED: list[int] = []


class Carried:
    """A number of rows, with the processes that counted them; knows when it has travelled."""

    def __init__(self, n_rows: int, processes: frozenset[int]) -> None:
        self.n_rows, self.processes = n_rows, processes

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrive, (self.n_rows, self.processes)


def _arrive(n_rows: int, processes: frozenset[int]) -> Carried:
    ARRIVED.append(n_rows)
    return Carried(n_rows, processes)


class Counting(Reducer[list[Carried], Carried]):
    """Counts rows, and notes where."""

    def begin(self) -> list[Carried]:
        return []

    def add(self, state: list[Carried], block: Block) -> None:
        state.append(Carried(len(block.X), frozenset([os.getpid()])))

    def close(self, state: list[Carried]) -> Carried | None:
        whole: Carried | None = None
        for part in state:
            whole = part if whole is None else self.merge(whole, part)
        return whole

    def merge(self, one: Carried, other: Carried) -> Carried:
        here = frozenset([os.getpid()])
        return Carried(one.n_rows + other.n_rows, one.processes | other.processes | here)


class Deadly(MomentsReducer):
    """Kills the process it runs in, once: the first that adds a block, or has merged two parts."""

    def arm(self, marker: Path, moment: str) -> Deadly:
        self.marker, self.moment, self.caller = marker, moment, os.getpid()
        return self

    def add(self, state: Any, block: Block) -> None:
        super().add(state, block)
        self._strike("add")

    def merge(self, one: Moments, other: Moments) -> Moments:
        merged = super().merge(one, other)
        self._strike("merge")
        return merged

    def _strike(self, moment: str) -> None:
        if moment != self.moment:
            return
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return
        assert os.getpid() != self.caller
        os.kill(os.getpid(), signal.SIGKILL)


def explode(part: Any) -> Any:
    """A partition that must not be computed."""
    raise AssertionError("computed, though nothing but names and types was needed")


def flawed(block: Any, row: int, column: int, value: float, block_info: Any = None) -> Any:
    """The same block; one value differs in the second of them."""
    block = np.array(block)
    if block_info[0]["chunk-location"][0] == 1:
        block[row, column] = value
    return block
