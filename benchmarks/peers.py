"""The contestants: each takes a data set and a k and returns the indices that it chose.

What a peer needs in another form (standardised columns, their memory order, the scale of the
outputs) is prepared before the clock starts. exactk starts from the raw table.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.data import Dataset, Floats, Ints

Run = Callable[[], Ints]
Prepare = Callable[[Dataset, int], Run]

# abess accepts an exchange when the loss falls by an absolute amount: with one-hot outputs it
# would stop far too early, so its outputs are scaled up.
ABESS_SCALE = 1_000.0


@dataclass(frozen=True)
class Contestant:
    """One library in one setting.

    Attributes
    ----------
    name : str
        Short name, used in tables and records.
    package : str
        Distribution that must be installed.
    settings : str
        What was chosen, in words.
    prepare : callable
        `prepare(dataset, k)` returns the function to be timed, without arguments.
    """

    name: str
    package: str
    settings: str
    prepare: Prepare = field(repr=False)

    @property
    def installed(self) -> bool:
        """True when the package can be imported here."""
        return find_spec(self.package.replace("scikit-learn", "sklearn")) is not None


def nonzero_rows(coef: Floats) -> Ints:
    """Indices of the rows of `coef` that are not all zero."""
    return np.flatnonzero(np.any(coef != 0, axis=1))


def abess(path: bool, **settings: Any) -> Prepare:
    """Splicing of abess at one size, or along all sizes up to k with warm starts."""

    def prepare(dataset: Dataset, k: int) -> Run:
        from abess import MultiTaskRegression

        Z, Y = dataset.standardised_by_column, dataset.outputs * ABESS_SCALE
        sizes = range(1, k + 1) if path else k

        def run() -> Ints:
            # Z is standardised and Y centred already. The criterion "loss" keeps the largest size
            # of the path: k.
            model = MultiTaskRegression(
                support_size=sizes, ic_type="loss", fit_intercept=False, **settings
            )
            return nonzero_rows(model.fit(Z, Y, is_normal=False).coef_)

        return run

    return prepare


def fastcan(beam_width: int = 1, drop: int | None = None) -> Prepare:
    """Forward search of fastcan on canonical correlations; `drop` adds its refinement."""

    def prepare(dataset: Dataset, k: int) -> Run:
        library: Any = import_module("fastcan")
        Z, Y = dataset.standardised_by_column, dataset.outputs
        n, d = Z.shape
        # eta replaces the n rows by d + c, at the price of one singular value decomposition.
        # Measured, that pays from k = 10 on for the beam, and for the refinement where rows are
        # many; greedy passes over the rows too seldom.
        rows_per_eta = n / (d + Y.shape[1])
        eta = k >= 10 and rows_per_eta >= (1 if beam_width > 1 else 2 if drop else math.inf)

        def run() -> Ints:
            model = library.FastCan(k, beam_width=beam_width, eta=eta, verbose=0).fit(Z, Y)
            if drop is None or k <= drop:
                return np.asarray(model.indices_, dtype=np.intp)
            return np.asarray(library.refine(model, drop=drop, verbose=0)[0], dtype=np.intp)

        return run

    return prepare


def block_mcp(gamma: float = 3.0, step: float = 0.8, bisections: int = 8) -> Prepare:
    """Block MCP of skglm down a warm-started path to k rows, then bisection of the penalty."""

    def prepare(dataset: Dataset, k: int) -> Run:
        from skglm.datafits import QuadraticMultiTask
        from skglm.penalties import BlockMCPenalty
        from skglm.solvers import MultiTaskBCD

        Z, Y = dataset.standardised_by_column, np.asfortranarray(dataset.outputs)
        solver = MultiTaskBCD(max_iter=10, max_epochs=100, tol=1e-3, fit_intercept=False)

        def solve(alpha: float, start: Floats) -> Floats:
            penalty = BlockMCPenalty(alpha, gamma)
            coef = start.copy()
            fitted = np.asfortranarray(Z @ coef)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                solved: Floats = solver.solve(Z, Y, QuadraticMultiTask(), penalty, coef, fitted)[0]
            return solved

        def run() -> Ints:
            high = float(np.linalg.norm(Z.T @ Y, axis=1).max()) / Z.shape[0]
            few = many = np.zeros((Z.shape[1], Y.shape[1]))
            low, least = high, 1e-4 * high
            while nonzero_rows(many).size < k and low > least:
                few, high, low = many, low, low * step
                many = solve(low, few)
            for _ in range(bisections):
                if nonzero_rows(many).size <= k:
                    break
                alpha = math.sqrt(low * high)
                coef = solve(alpha, few)
                if nonzero_rows(coef).size < k:
                    few, high = coef, alpha
                else:
                    many, low = coef, alpha
            largest = np.argsort(-np.linalg.norm(many, axis=1), kind="stable")[:k]
            return largest[np.any(many[largest] != 0, axis=1)]

        return run

    return prepare


def f_score(dataset: Dataset, k: int) -> Run:
    """The k columns of largest F statistic, summed over outputs when there are several."""
    from sklearn.feature_selection import f_classif, f_regression

    Z = dataset.standardised

    def run() -> Ints:
        if dataset.is_classification:
            scores = f_classif(Z, dataset.y)[0]
        else:
            scores = sum(f_regression(Z, column)[0] for column in dataset.outputs.T)
        return np.argsort(-np.asarray(scores), kind="stable")[:k]

    return run


def on_all_columns(prepare: Prepare) -> Prepare:
    """Translate the answers of a peer, which saw the usable columns, into raw indices."""

    def prepared(dataset: Dataset, k: int) -> Run:
        run = prepare(dataset, k)
        return lambda: dataset.usable[run()]

    return prepared


def exactk(time_limit: float | None = None, **options: Any) -> Prepare:
    """Our own library from the raw table: building the Problem is part of the run."""

    def prepare(dataset: Dataset, k: int) -> Run:
        import exactk as library

        def run() -> Ints:
            problem = library.Problem.from_arrays(dataset.X, dataset.y, task=dataset.task)
            result = library.solve(problem, k, time_limit=time_limit, **options)
            return np.asarray(result.support, dtype=np.intp)

        return run

    return prepare


EXACTK = "exactk"
EXACTK_FAST = "exactk effort=0"

OURS = (
    Contestant(EXACTK_FAST, "exactk", "greedy start and swaps only", exactk(effort=0)),
    Contestant(EXACTK, "exactk", "defaults", exactk()),
)

PEERS = tuple(
    Contestant(name, package, settings, on_all_columns(prepare))
    for name, package, settings, prepare in (
        ("fastcan greedy", "fastcan", "beam_width=1", fastcan()),
        ("fastcan refine", "fastcan", "greedy, then refine(drop=1)", fastcan(drop=1)),
        ("fastcan beam 10", "fastcan", "beam_width=10", fastcan(beam_width=10)),
        ("abess", "abess", "support_size=k", abess(path=False)),
        ("abess path", "abess", "support_size=1..k", abess(path=True)),
        (
            "abess path, thorough",
            "abess",
            "support_size=1..k, splicing_type=1, important_search=0",
            abess(path=True, splicing_type=1, important_search=0),
        ),
        ("skglm block MCP", "skglm", "gamma=3, path in alpha, then bisection", block_mcp()),
        ("f score", "scikit-learn", "f_classif or f_regression", f_score),
    )
)


def installed(
    entered: Sequence[Contestant], names: Sequence[str] | None = None
) -> list[Contestant]:
    """The contestants (or those with some names) that are installed; the others are printed."""
    wanted = [contestant for contestant in entered if not names or contestant.name in names]
    for contestant in wanted:
        if not contestant.installed:
            print(f"left out, not installed: {contestant.name}", file=sys.stderr)
    return [contestant for contestant in wanted if contestant.installed]


def warm_up(contestants: Iterable[Contestant]) -> None:
    """Run each contestant once on a tiny table: imports and compilation are not measured."""
    rng = np.random.default_rng(0)
    tiny = Dataset("tiny", rng.standard_normal((60, 30)), np.arange(60) % 3)
    for contestant in contestants:
        contestant.prepare(tiny, 2)()
