"""CD-LSR beside the authors' code, an implementation by definition, and table 2 of the paper."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactk import Problem, Status, solve
from exactk.papers.methods.cdlsr import CDLSR
from exactk.result import Answer
from exactk.types import Floats
from exactk.utils.monitor import Monitor
from tests.oracles.brute import Reference, make_classes, make_numbers
from tests.oracles.cases import SMALL, every_run, problem, stored, table

STARTS = 200


def run_from(problem: Problem, init: Any, **options: Any) -> Answer:
    return CDLSR(init=init, n_starts=1, **options).run(problem, len(init), Monitor())


@every_run("cdlsr", *SMALL, "digitsA")
def test_the_iterations_of_the_authors(name: str, run: dict[str, Any]) -> None:
    answer = run_from(problem(name), run["init"])
    assert answer.status == Status.CONVERGED
    assert list(answer.support) == run["slots"]
    np.testing.assert_allclose(answer.trace, run["trace"], rtol=1e-11)
    result = solve(problem(name), run["k"], "cdlsr", init=run["init"])
    assert result.support.tolist() == sorted(run["slots"])
    assert result.objective == pytest.approx(run["trace"][-1], rel=1e-11)


def test_the_iterations_of_the_authors_on_srbct(shared_data: Path) -> None:
    file, case = shared_data / "srbct.npz", stored("cdlsr")["srbct"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == case["sha256"], "another srbct.npz"
    srbct = real(shared_data, "srbct")
    assert srbct.total == pytest.approx(case["total"], rel=1e-12)
    for run in case["runs"]:
        answer = run_from(srbct, run["init"])
        assert list(answer.support) == run["slots"]
        # The file has the authors' numbers in single precision, half a unit of which is 6e-8.
        np.testing.assert_allclose(answer.trace, run["trace"], rtol=1e-7)


@pytest.mark.parametrize("name", SMALL)
def test_no_start_ends_below_the_optimum_and_the_best_start_is_kept(name: str) -> None:
    reference = Reference(*table(name))
    [(k, best)] = stored("cdlsr")[name]["optimum"].items()
    assert reference.objective(best["support"]) == pytest.approx(best["objective"], rel=1e-10)
    if len(reference.usable) <= 20:
        assert list(reference.best(int(k))[0]) == best["support"]
    rng = np.random.default_rng(0)
    supports = [rng.choice(len(reference.usable), int(k), replace=False) for _ in range(40)]
    ends = [run_from(problem(name), support).trace[-1] for support in supports]
    assert min(ends) >= best["objective"] * (1 - 1e-10)
    assert max(ends) > 1.05 * min(ends), "all starts alike: nothing to keep the best of"
    kept = solve(problem(name), int(k), "cdlsr", init=supports)
    assert kept.objective == pytest.approx(min(ends), rel=1e-8)


def by_definition(
    reference: Reference, init: list[int], epsilon: float
) -> tuple[list[int], list[float]]:
    """The published iteration without Gram matrices: every column of a slot by its residual."""
    X, Y, xi, trace = reference.X, reference.Y, list(init), []

    def objective(columns: list[int], V: Floats) -> float:
        fit = ((Y - X[:, columns] @ V) ** 2).sum()
        return float(fit + reference.penalty * (V**2).sum())

    while True:
        ridge = np.sqrt(reference.penalty + epsilon) * np.eye(len(xi))
        design = np.vstack([X[:, xi], ridge])
        V = np.linalg.lstsq(design, np.vstack([Y, np.zeros((len(xi), Y.shape[1]))]), rcond=None)[0]
        for i in range(len(xi)):
            others = [*xi[:i], *xi[i + 1 :]]
            moves = [[*xi[:i], p, *xi[i + 1 :]] for p in reference.usable if p not in others]
            xi = min(moves, key=lambda columns: objective(columns, V))
        trace.append(objective(xi, V))
        changes = np.abs(np.diff(trace[-4:])) / np.abs(trace[-4:-1])
        if len(trace) > 4 and (changes <= 1e-4).all():
            return xi, trace


TABLES = {
    "classes": make_classes(50, 12, 4, seed=5),
    "numbers": make_numbers(40, 10, 3, seed=6),
    "one number": make_numbers(40, 10, 1, seed=7),
    "fewer rows than columns": make_classes(12, 20, 3, seed=8),
}


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(TABLES))
def test_eq_16_is_the_residual_of_every_column_in_a_slot(
    name: str, weighted: bool, scale: bool, ridge: float
) -> None:
    """Without scale the term of A_pp differs from column to column."""
    X, y = TABLES[name]
    rng = np.random.default_rng(9)
    weights = rng.uniform(0.5, 2.0, len(X)) if weighted else None
    own = Problem.from_arrays(X, y, ridge=ridge, sample_weight=weights, scale=scale)
    reference = Reference(X, y, ridge=ridge, weights=weights, scale=scale)
    moved = 0
    for _ in range(12):
        init = rng.choice(X.shape[1], 4, replace=False).tolist()
        # What the published code adds to the diagonal is meant for standardised columns.
        epsilon = 1e-7 if scale else 0.0
        xi, trace = by_definition(reference, init, epsilon)
        answer = run_from(own, init, epsilon=epsilon)
        assert list(answer.support) == xi
        np.testing.assert_allclose(answer.trace, trace, rtol=1e-9)
        moved += xi != init
    assert moved, "no start moved: nothing was tested"


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_the_objective_never_rises(seed: int, ridge: float) -> None:
    X, y = make_classes(60, 40, 3, seed)
    own = Problem.from_arrays(X, y, ridge=ridge)
    for start in range(10):
        result = solve(own, 6, "cdlsr", n_starts=1, random_state=start)
        assert (np.diff(result.trace) <= 1e-10 * own.total).all()
        assert result.trace[-1] < result.trace[0]
        # The coefficients have settled too: a refit gains nothing more.
        assert result.objective == pytest.approx(result.trace[-1], rel=2e-4)
        assert result.objective <= result.trace[-1] * (1 + 1e-10)


def real(folder: Path, name: str) -> Problem:
    with np.load(folder / f"{name}.npz") as held:
        return Problem.from_arrays(held["X"].astype(np.float64), held["y"])


# Table 2 of the paper (mean and standard deviation of 40 random starts), and the mean of 1000
# starts of a NumPy version that was written apart from this package.
TABLE_2 = {
    "srbct": {1: (45.71, 4.1, 45.37), 5: (12.91, 2.1, 12.97), 10: (6.994, 1.0, 6.66)},
    "jaffe": {1: (175.4, 1.9, 175.0), 5: (118.0, 7.1, 116.6), 10: (68.36, 8.5, 69.4)},
}


@pytest.fixture(scope="module")
def ends(shared_data: Path) -> dict[tuple[str, int], Floats]:
    """The objectives of single random starts."""
    return {
        (name, k): np.array(
            [
                solve(own, k, "cdlsr", n_starts=1, random_state=seed).objective
                for seed in range(STARTS)
            ]
        )
        for name in TABLE_2
        for own in [real(shared_data, name)]
        for k in TABLE_2[name]
    }


def test_table_2_of_the_paper(ends: dict[tuple[str, int], Floats]) -> None:
    """Both means are of random starts, so both vary.

    Of six cells one is beyond two standard errors of the difference: at k = 10 on SRBCT the paper
    is 2.3 of them above 1000 starts of ours, 6.994 beside 6.624 ± 0.033, and nearly as far above
    those of the other version. So the six are judged together: by chance alone the largest is
    beyond 2.64 once in twenty times, and so is the sum of their squares beyond 12.6.
    """
    far = {}
    for (name, k), values in ends.items():
        mean, deviation, _ = TABLE_2[name][k]
        error = np.sqrt(deviation**2 / 40 + values.var(ddof=1) / STARTS)
        far[name, k] = (values.mean() - mean) / error
    assert max(map(abs, far.values())) < 2.64, far
    assert sum(z * z for z in far.values()) < 12.6, far


def test_the_mean_of_many_starts_of_another_version(ends: dict[tuple[str, int], Floats]) -> None:
    for (name, k), values in ends.items():
        _, _, mean = TABLE_2[name][k]
        error = values.std(ddof=1) * np.sqrt(1 / STARTS + 1 / 1000)
        # Half a unit of the last digit stored beyond what is due to chance.
        digit = 0.005 if mean < 100 else 0.05
        assert abs(values.mean() - mean) < 3 * error + digit, (name, k)


def test_the_mean_of_the_code_of_the_authors(ends: dict[tuple[str, int], Floats]) -> None:
    for k, theirs in stored("cdlsr")["srbct"]["authors"].items():
        own = ends["srbct", int(k)]
        error = np.sqrt(theirs["std"] ** 2 / theirs["n"] + own.var(ddof=1) / STARTS)
        assert abs(own.mean() - theirs["mean"]) < 2.4 * error, k
