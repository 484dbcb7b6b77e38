"""Rows that are wrong: how many of the true columns each loss finds as more of them are.

For whoever has numbers of which some are plainly false. In the tables of Peng & Fan (2017) some
rows have their target turned upside down; 20 of 90 columns make the target, and 10 are made of
those and tempt a search. Run it with

    python examples/robust_outliers.py
"""

from __future__ import annotations

import exactk
from exactk.losses.base import Loss
from exactk.papers.datasets import make_outliers

LOSSES = {
    "squared": exactk.losses.create("squared"),
    "huber": exactk.losses.create("huber"),
    "l21": exactk.losses.create("l21"),
    "l2r, r = 0.5": exactk.losses.create("l2r", r=0.5),
}
SHARES = (0.0, 0.1, 0.2, 0.3)
TABLES = 3


def found(loss: Loss, share: float, seed: int) -> tuple[int, int]:
    """How many of the columns that make the target are chosen, and how many there are."""
    data = make_outliers(n=250, d1=10, d2=60, c=3, outliers=share, random_state=seed)
    k = len(data.informative)
    problem = exactk.Problem.from_arrays(data.X, data.y, task="regression", loss=loss)
    chosen = exactk.solve(problem, k).support
    return len(set(chosen) & set(data.informative)), k


def main() -> None:
    print(f"true columns found, of all in {TABLES} tables, by share of wrong rows:\n")
    print(f"{'loss':14}" + "".join(f"{share:>8.0%}" for share in SHARES))
    for name, loss in LOSSES.items():
        print(f"{name:14}", end="")
        for share in SHARES:
            counts = [found(loss, share, seed) for seed in range(TABLES)]
            hits, of = (sum(column) for column in zip(*counts, strict=True))
            print(f"{hits / of:>8.0%}", end="")
        print()


if __name__ == "__main__":
    main()
