"""One cell of the proofs: a search, a proof, and the row that says what came of them."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import exactk
from benchmarks import data, harness
from benchmarks.scope import Record, Scope, build
from exactk.proof.best_first import relative_gap
from exactk.proof.run import Proof
from exactk.utils.monitor import Monitor, Progress

TIME_LIMIT = 300.0
# Seconds at which the bound is noted.
MARKS = (1.0, 5.0, 20.0, 60.0, 300.0)
# Objectives of the same columns that differ by no more, as a share, differ by rounding.
SAME = 1e-8


@dataclass
class Terms(Scope):
    """How much is asked for, on how many threads, and for how long."""

    full: bool = False
    threads: int = 2
    time_limit: float = TIME_LIMIT

    def limit(self, target: float | None = None) -> float:
        """Seconds for one cell: a cell with a higher target has so much longer."""
        return self.time_limit * max(1.0, (target or 0.0) / TIME_LIMIT)


def row(dataset: data.Dataset, certificate: exactk.Certificate, **more: Any) -> Record:
    """What every row has; the objective is held against a fit from the rows."""
    if certificate.ridge == 0:
        graded = dataset.objective(certificate.result.support.tolist())
        assert abs(graded - certificate.upper) <= SAME * (graded + dataset.total), dataset.name
    found: Record = {
        "data": dataset.name,
        "d": len(dataset.usable),
        "k": certificate.k,
        "objective": certificate.upper,
        "lower": certificate.lower,
        "gap": certificate.gap,
        "proven": certificate.proven,
        "status": str(certificate.status),
        "nodes": certificate.nodes,
        **more,
    }
    say(found)
    return found


def say(found: Record) -> None:
    """Show on the way what was measured."""
    end = "proven" if found["proven"] else f"gap {found['gap']:.2e}"
    print(
        f"{found['data']}, d = {found['d']}, k = {found['k']}: {found['objective']:.4f}, {end}, "
        f"{found['nodes']} nodes, {found['search_seconds']:.3f} s and "
        f"{found['proof_seconds']:.3f} s",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def search(problem: exactk.Problem, k: int, limit: float) -> tuple[exactk.Result, float]:
    """Search as `certify` does with a number: what it found, and in how many seconds."""
    start = time.perf_counter()
    known = exactk.solve(problem, k, effort=1.0, time_limit=limit / 2)
    return known, time.perf_counter() - start


def prove(
    dataset: data.Dataset, problem: exactk.Problem, k: int, terms: Terms,
    target: float | None = None, true: set[int] | None = None, runs: int = 1,
    n_jobs: int | None = None, **more: Any,
) -> Record:  # fmt: skip
    """Search, then prove: a row with the seconds of both, and how many true columns were found.

    A proof of milliseconds may be made several times; the shortest counts.
    """
    limit = terms.limit(target)
    known, searched = search(problem, k, limit)
    left = max(limit - searched, 0.0)
    timing = harness.timed(
        lambda: exactk.certify(problem, known, time_limit=left, n_jobs=n_jobs or terms.threads),
        runs,
    )
    certificate = timing.value
    if true is not None:
        more["true_found"] = len(true & set(certificate.result.support.tolist()))
    return row(
        dataset, certificate, search_seconds=searched, proof_seconds=timing.best,
        improved=certificate.improved, target=target, limit=limit, **more,
    )  # fmt: skip


def prove_sizes(dataset: data.Dataset, most: int, terms: Terms, target: float) -> list[Record]:
    """Prove every size up to one: a row for each, all with the seconds of all together."""
    problem = build(dataset)
    limit = terms.limit(target)
    start = time.perf_counter()
    path = exactk.solve_path(problem, most, time_limit=limit / 4)
    searched = time.perf_counter() - start
    certified = exactk.certify_path(
        problem, path, time_limit=max(limit - searched, 0.0), n_jobs=terms.threads
    )
    return [
        row(
            dataset, certificate, search_seconds=searched, proof_seconds=certified.seconds,
            improved=certificate.improved, target=target, limit=limit, together=len(certified),
        )
        for certificate in certified
    ]  # fmt: skip


class Course:
    """Bound and gap at some seconds of a proof, read whenever it reports."""

    def __init__(self, proof: Proof) -> None:
        self.proof, self.trace = proof, list[Record]()
        self._start = time.perf_counter()
        self._last: Record = {"lower": None, "gap": None, "nodes": 0}

    def __call__(self, progress: Progress) -> None:
        """Take note of a report."""
        self._pass(time.perf_counter() - self._start)
        lower, upper = self.proof.lower, self.proof.upper
        gap = relative_gap(lower, upper)
        self._last = {"lower": lower, "gap": gap, "nodes": progress.done}

    def end(self, certificate: exactk.Certificate) -> list[Record]:
        """The trace, with what was known at the end."""
        self._pass(certificate.seconds)
        last = {"lower": certificate.lower, "gap": certificate.gap, "nodes": certificate.nodes}
        return [*self.trace, {"seconds": certificate.seconds, **last}]

    def _pass(self, seconds: float) -> None:
        """Note what was known at the marks that have been passed."""
        for mark in MARKS[len(self.trace) :]:
            if mark <= seconds:
                self.trace.append({"seconds": mark, **self._last})


def follow(dataset: data.Dataset, k: int, terms: Terms, target: float | None = None) -> Record:
    """As `prove`, with bound and gap over time; the search has its time apart."""
    problem, limit = build(dataset), terms.limit(target)
    known, searched = search(problem, k, limit)
    start = time.perf_counter()
    proof = Proof(problem, known, 1e-6)
    course = Course(proof)
    proof.run(Monitor(limit, course), terms.threads)
    certificate = proof.certificate(time.perf_counter() - start)
    return row(
        dataset, certificate, search_seconds=searched, proof_seconds=certificate.seconds,
        improved=certificate.improved, target=target, limit=limit, trace=course.end(certificate),
    )  # fmt: skip


def same_optimum(ours: Record, every: exactk.Result) -> bool:
    """Whether enumeration came to its end; if so, what is proven is what it found."""
    finished = str(every.status) == "optimal"
    if finished and ours["proven"]:
        assert abs(every.objective - ours["objective"]) <= SAME * every.objective, ours
    return finished
