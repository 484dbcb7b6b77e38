"""What effort buys: how often a search reaches the best known value, and in what time.

The default of ``exchange`` rests on this table. Every data set of the comparison that has a best
known value is searched with several seeds at several efforts.

    python -m benchmarks.effort [--seeds 10] [--k 5 10 20] [--threads 2]
"""

from __future__ import annotations

import argparse

from benchmarks.harness import pin_threads

EFFORTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--k", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    pin_threads(arguments.threads)
    run(arguments.seeds, arguments.k, arguments.threads)


def run(n_seeds: int, sizes: list[int], threads: int) -> None:
    """Search, print the table and keep the record."""
    import time

    import numpy as np

    import exactk
    from benchmarks.data import available, load_all
    from benchmarks.harness import circumstances, write_record
    from benchmarks.verdict import best_known

    values = best_known()

    records = []
    print("| data | k | best known | " + " | ".join(f"effort {e:g}" for e in EFFORTS) + " |")
    print("| --- | ---: | ---: |" + " --- |" * len(EFFORTS))
    for dataset in load_all(available(values)[0]):
        for k in sizes:
            known = values[dataset.name].get(str(k))
            if known is None:
                continue
            cells = []
            for effort in EFFORTS:
                found, seconds = [], []
                for seed in range(n_seeds if effort else 1):
                    start = time.perf_counter()
                    problem = exactk.Problem.from_arrays(dataset.X, dataset.y, task=dataset.task)
                    result = exactk.solve(problem, k, effort=effort, random_state=seed)
                    seconds.append(time.perf_counter() - start)
                    found.append(result.objective)
                hits = float(np.mean([value <= known * (1 + 1e-5) + 5e-5 for value in found]))
                gap = (float(np.mean(found)) - known) / known
                ms = 1e3 * float(np.median(seconds))
                cells.append(f"{hits:.0%}, {gap:+.2%}, {ms:.0f} ms")
                records.append(
                    {"data": dataset.name, "k": k, "effort": effort, "hits": hits,
                     "mean_gap": gap, "best": min(found), "median_ms": ms}
                )  # fmt: skip
            print(f"| {dataset.name} | {k} | {known:g} | " + " | ".join(cells) + " |", flush=True)
    write_record("effort", {**circumstances(threads), "seeds": n_seeds, "cells": records})


if __name__ == "__main__":
    main()
