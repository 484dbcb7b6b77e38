"""How long a run will still take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from exactk.papers.experiments.cells import Cell

__all__ = ["TimeEstimate"]

Record = dict[str, Any]


class TimeEstimate:
    """A guess at the time to go, from cells of the same method and of the same data.

    Parameters
    ----------
    before : iterable of dict
        Records of cells of the same experiment.
    todo : iterable of Cell
    jobs : int
        Cells at a time.
    """

    def __init__(self, before: Iterable[Record], todo: Iterable[Cell], jobs: int) -> None:
        self._jobs = jobs
        self._seen: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._todo: dict[tuple[str, str], int] = defaultdict(int)
        for cell in todo:
            self._todo[cell.dataset, cell.variant.label] += 1
        for record in before:
            self._add(record)

    def add_cell(self, record: Record) -> None:
        """Learn from a cell that has ended."""
        self._todo[record["dataset"], record["method"]] -= 1
        self._add(record)

    def seconds(self) -> float | None:
        """Return the guess, or None if no cell has ended yet."""
        by_data, by_method = defaultdict(list), defaultdict(list)
        means = {pair: total / count for pair, (total, count) in self._seen.items()}
        if not means:
            return None
        for (data, method), mean in means.items():
            by_data[data].append(mean)
            by_method[method].append(mean)
        overall = _mean(means.values())
        total = 0.0
        for (data, method), count in self._todo.items():
            guess = means.get((data, method))
            if guess is None:
                # As if a method took so many times longer than others on all data alike.
                guess = _mean(by_method.get(method, [overall]))
                guess *= _mean(by_data.get(data, [overall])) / overall if overall else 1.0
            total += count * guess
        return total / self._jobs

    def _add(self, record: Record) -> None:
        total = self._seen[record["dataset"], record["method"]]
        total[0] += record["wall"]
        total[1] += 1


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values)
