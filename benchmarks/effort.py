"""What effort buys: how often a search reaches the best known value, and in what time.

The default of ``exchange`` rests on this table. Every data set of the comparison that has a best
known value is searched with several seeds at several efforts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

import numpy as np

import exactk
from benchmarks.data import Dataset, build, sets
from benchmarks.harness import Options, Record, Row, markdown, timed
from benchmarks.verdict import best_known

EFFORTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
SIZES = (5, 10, 20)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--seeds", type=int, default=6)


def search(dataset: Dataset, k: int, effort: float, seed: int) -> exactk.Result:
    """Search from the raw table."""
    return exactk.solve(build(dataset), k, effort=effort, random_state=seed)


def cells(options: Options) -> Iterator[Row]:
    """Search every data set at each size and effort."""
    known = best_known()
    for dataset in sets(options, known):
        for k in (k for k in SIZES if str(k) in known[dataset.name]):
            for effort in EFFORTS:
                seeds = range(options.seeds if effort else 1)
                searches = [partial(search, dataset, k, effort, seed) for seed in seeds]
                runs = [timed(run, runs=1) for run in searches]
                found = [run.value.objective for run in runs]
                best = known[dataset.name][str(k)]
                yield {
                    "data": dataset.name,
                    "k": k,
                    "effort": effort,
                    "hits": float(np.mean([f <= best * (1 + 1e-5) + 5e-5 for f in found])),
                    "mean_gap": (float(np.mean(found)) - best) / best,
                    "best": min(found),
                    "median_ms": 1e3 * float(np.median([run.best for run in runs])),
                }


PARTS = {"cells": cells}


def report(record: Record) -> str:
    """A line for each data set and size: share of hits, mean distance and milliseconds."""
    lines: dict[tuple[str, int], list[str]] = {}
    for row in record["cells"]:
        text = f"{row['hits']:.0%}, {row['mean_gap']:+.2%}, {row['median_ms']:.0f} ms"
        lines.setdefault((row["data"], row["k"]), []).append(text)
    known = best_known()
    rows = [[name, str(k), f"{known[name][str(k)]:g}", *line] for (name, k), line in lines.items()]
    return markdown(["data", "k", "best known", *(f"effort {e:g}" for e in EFFORTS)], rows)
