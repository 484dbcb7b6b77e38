"""Two of the papers' algorithms as they are printed, and what ours gain over them.

The letter of the text, without regard to cost: loops over candidates, centring by an n × n matrix,
explicit inverses of D × D matrices. Departures are those that exactk makes too, so that both give
the same answer: rows are samples, columns are standardised and centred, and see each function.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf, sqrt
from typing import Any

import numpy as np

import exactk
from benchmarks import data, harness
from benchmarks.data import Floats, Ints, build, solve
from benchmarks.harness import Options, Row
from exactk.methods import registry
from exactk.papers.methods.standard_table import random_support, standard_table

Look = Callable[[dict[str, Any]], Any]

K = 10
CDLSR_SETS = ("srbct", "jaffe", "coil20")
# The iterations of the printed form that are made, and the columns that a quick run keeps.
IPFS_SETS = {"allaml": (5, 600), "coil20": (40, 200)}
NOISE, REPRODUCIBLE = 1e-13, 1e-6


def cdlsr_products(X: Floats, Y: Floats) -> tuple[Floats, Floats, float]:
    """A = XᵀHX, B = XᵀHY and ‖HY‖² with the centring matrix H (Algorithm 1, line 1)."""
    n = len(X)
    H = np.eye(n) - np.ones((n, n)) / n
    XH = X.T @ H
    return XH @ X, XH @ Y, float(((H @ Y) ** 2).sum())


def printed_cdlsr(
    A: Floats,
    B: Floats,
    total: float,
    xi: Ints,
    epsilon: float = 1e-7,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> tuple[Ints, int]:
    """Algorithm 1 of CD-LSR: eq. 16 for one candidate p after the other, O(k + c) each.

    ε and the stopping rule are those of the published code. A tie goes to the lowest index.

    Returns
    -------
    xi : ndarray of shape (k,)
        The support, slot by slot.
    iterations : int
    """
    xi, d, k = xi.copy(), len(A), len(xi)
    value, quiet = inf, 0
    for t in range(1, max_iter + 1):
        V = np.linalg.inv(A[np.ix_(xi, xi)] + epsilon * np.eye(k)) @ B[xi]
        U = V @ V.T
        for i in range(k):
            others = set(np.delete(xi, i).tolist())
            least, chosen = inf, -1
            for p in range(d):
                if p in others:
                    continue
                xi[i] = p
                e = A[p, xi]
                F = 2.0 * (e @ U[i]) - e[i] * U[i, i] - 2.0 * (B[p] @ V[i])
                if F < least:
                    least, chosen = F, p
            xi[i] = chosen
        last = value
        value = total - 2.0 * (V * B[xi]).sum() + (V * (A[np.ix_(xi, xi)] @ V)).sum()
        same = last < inf and abs(last - value) <= tol * abs(last)
        quiet = quiet + 1 if same else 0
        if t > 4 and quiet >= 3:
            break
    return xi, t


def printed_ipfs(
    X: Floats, Y: Floats, k: int, gamma: float = 0.2, rho: float = 1.0, mu: float = 1.05
) -> Iterator[Floats]:
    """Algorithm 1 of IPFS: eq. 10 and 11 with inverses of D × D matrices, O(D³) each.

    Eq. 12 has the new v, as in exactk: with the old one v does not settle.

    Yields
    ------
    ndarray of shape (D,)
        v after each iteration.
    """
    D = X.shape[1]
    identity = np.eye(D)
    Phi, XY = X.T @ X, X.T @ Y
    v, v1, v2 = np.ones(D), np.zeros(D), np.zeros(D)
    y1, y2, y3 = np.zeros(D), np.zeros(D), 0.0
    while True:
        A = (XY.T * v) @ np.linalg.inv(v[:, None] * Phi * v + gamma * identity)
        Psi, theta = A.T @ A, (XY * A.T).sum(axis=1)
        right = 2.0 * theta + rho * ((v1 - y1 / rho) + (v2 - y2 / rho) + (k - y3 / rho))
        v = np.linalg.inv(2.0 * Phi * Psi + rho * (1.0 + 2.0 * identity)) @ right
        v1 = np.clip(v + y1 / rho, 0.0, 1.0)
        v2 = on_sphere(v + y2 / rho)
        y1, y2, y3 = y1 + rho * (v - v1), y2 + rho * (v - v2), y3 + rho * (float(v.sum()) - k)
        rho *= mu
        yield v


def on_sphere(x: Floats) -> Floats:
    """The nearer of the paper's two candidates for the projection on ‖v − ½‖² = D/4."""
    away = (x - 0.5) * (0.5 * sqrt(len(x)) / np.linalg.norm(x - 0.5))
    first, second = 0.5 + away, 0.5 - away
    nearer = np.linalg.norm(x - first) < np.linalg.norm(x - second)
    return first if nearer else second


def cdlsr(options: Options) -> Iterator[Row]:
    """The loop of Algorithm 1 against ours, from the same random supports.

    What counts is a run where all products are at hand: A of the one, and of the other the
    problem with the Gram columns that it reads. The time from the rows is measured beside it.
    """
    for dataset in data.sets(options, CDLSR_SETS):
        table = standard_table(build(dataset))
        forming = harness.timed(partial(cdlsr_products, table.X, table.Y), runs=3)
        for k in (5,) if options.quick else (5, 10):
            runs = compare_cdlsr(dataset, k, forming.value, 2 if options.quick else 5)
            record: Row = {"data": dataset.name, "k": k, "starts": len(runs)}
            for key in runs[0]:
                record[key] = statistics.fmean(run[key] for run in runs)
            record["same"] = round(record["same"] * len(runs))
            record["literal_from_rows"] = record["literal_seconds"] + forming.best
            many = harness.timed(partial(solve, build(dataset), k, "cdlsr", n_starts=40), runs=5)
            record["of_forty_seconds"] = many.best / 40
            yield record


def compare_cdlsr(
    dataset: data.Dataset, k: int, products: tuple[Floats, Floats, float], starts: int
) -> list[Row]:
    """Both forms from each start: seconds, and whether they end with the same columns."""
    problem = build(dataset)
    columns, rng = problem.candidates, np.random.default_rng(k)
    runs: list[Row] = []
    for _ in range(starts):
        xi = random_support(problem, k, rng)
        printed = harness.timed(
            partial(printed_cdlsr, *products, np.searchsorted(columns, xi)), runs=1
        )

        def ours(which: exactk.Problem | None = None, xi: Ints = xi) -> Ints:
            return solve(which or build(dataset), k, "cdlsr", init=xi).support

        from_rows = harness.timed(ours, runs=3)
        # The first of these reads the columns that the others find.
        at_hand = harness.timed(partial(ours, problem), runs=9)
        runs.append(
            {
                "same": np.array_equal(np.sort(columns[printed.value[0]]), at_hand.value),
                "literal_seconds": printed.best,
                "iterations": printed.value[1],
                "seconds": at_hand.best,
                "from_rows": from_rows.best,
            }
        )
    return runs


def ipfs(options: Options) -> Iterator[Row]:
    """Eq. 10 and 11 with inverses against ours: seconds an iteration, and the course of v.

    v is compared for as long as the printed form gives the same v, within REPRODUCIBLE, when X is
    changed in its last digits.
    """
    for dataset in data.sets(options, tuple(IPFS_SETS), quick=2):
        iterations, columns = IPFS_SETS[dataset.name]
        if options.quick:
            dataset = data.Dataset(dataset.name, dataset.X[:, :columns].copy(), dataset.y)
        problem = build(dataset)
        table = standard_table(problem)
        noise = 1.0 + NOISE * np.random.default_rng(0).standard_normal(table.X.shape)
        printed, seconds = course_of_v(table.X, table.Y, iterations)
        changed, _ = course_of_v(table.X * noise, table.Y, iterations)
        ours = take_steps(problem, K, "ipfs", iterations, lambda own: own["v"].copy(), tol=0.0)
        apart = [float(np.abs(v - w).max()) for v, w in zip(printed, changed, strict=True)]
        distance = [float(np.abs(v - w).max()) for v, w in zip(printed, ours.seen, strict=True)]
        agree, within = (
            next((t for t, a in enumerate(each) if a > REPRODUCIBLE), iterations)
            for each in (apart, distance)
        )
        yield {
            "data": dataset.name,
            "columns": len(problem.candidates),
            "iterations": iterations,
            "literal_seconds": statistics.median(seconds),
            "seconds": statistics.median(ours.seconds),
            "reproducible": agree,
            "difference": max(distance[:agree], default=None),
            "within": within,
            "literal_changed": max(apart[:agree], default=None),
        }


def course_of_v(X: Floats, Y: Floats, most: int) -> tuple[list[Floats], list[float]]:
    """The printed form's v, and the seconds of each iteration."""
    steps, found, seconds = printed_ipfs(X, Y, K), [], []
    for _ in range(most):
        start = time.perf_counter()
        found.append(next(steps))
        seconds.append(time.perf_counter() - start)
    return found, seconds


@dataclass
class Steps:
    """A method's iterations one by one.

    Attributes
    ----------
    setup : float
        Seconds before the first iteration.
    seconds : list of float
        Seconds of each iteration.
    seen : list
        What was looked at after each.
    settled : int or None
        The iteration after which the stopping rule was met, if it was.
    """

    setup: float
    seconds: list[float] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    settled: int | None = None


def take_steps(
    problem: exactk.Problem,
    k: int,
    method: str,
    most: int,
    look: Look | None = None,
    **options: Any,
) -> Steps:
    """Take iterations of a method's first start until it converges.

    Parameters
    ----------
    look : callable or None
        What to keep of the variables of the method's generator after each iteration: what a
        method does not tell in its steps is still its own, and not a copy of its code.
    """
    chosen: Any = registry.create(method, **options)
    start = time.perf_counter()
    steps: Any = next(iter(chosen.starts(problem, k, chosen.prepare(problem)))).steps
    found = Steps(time.perf_counter() - start)
    while len(found.seconds) < most and found.settled is None:
        start = time.perf_counter()
        step = next(steps)
        found.seconds.append(time.perf_counter() - start)
        if look:
            found.seen.append(look(steps.gi_frame.f_locals))
        if step.converged:
            found.settled = len(found.seconds)
    return found
