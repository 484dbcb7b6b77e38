"""IPFS: the forms of its two systems, its projections and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem, Result, Status, solve
from exactk.papers.methods.ipfs import IPFS, _on_sphere
from tests.oracles.brute import make_classes, make_numbers
from tests.support import every_pair, says

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TABLES = {
    "tall": make_classes(30, 10, 3, seed=6),
    "wide": make_classes(12, 40, 2, seed=6),
    "numbers": make_numbers(40, 9, 2, seed=4),
    "wide numbers": make_numbers(10, 30, 1, seed=4),
}
every_table = pytest.mark.parametrize("table", list(TABLES))


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.from_arrays(*TABLES["tall"])


def run(problem: Problem, k: int = 4, **options: Any) -> Result:
    return solve(problem, k, "ipfs", **options)


def test_the_defaults_are_those_of_the_paper() -> None:
    # γ = 0.2 "throughout the experiments" (section 4), ρ = 1 and μ = 1.05 (Algorithm 1); 200
    # iterations are those of the published code.
    defaults = IPFS().get_params()
    assert {name: defaults[name] for name in ("gamma", "rho", "mu", "max_iter")} == {
        "gamma": 0.2, "rho": 1.0, "mu": 1.05, "max_iter": 200,
    }  # fmt: skip


def test_a_small_memory_limit_leaves_a_solver_that_fits() -> None:
    X, y = make_numbers(10, 60, 1, seed=5)
    # The table takes 4800 bytes; a system of 60 columns 28800, one of the rows 6248.
    small = Problem.from_arrays(X, y, gram="columns", memory_limit=6000)
    result = run(small, 3)
    expected = run(Problem.from_arrays(X, y), 3, solver="cg")
    assert result.support.tolist() == expected.support.tolist()
    np.testing.assert_allclose(result.trace, expected.trace, rtol=1e-6)


def test_a_table_that_does_not_fit_is_refused() -> None:
    X, y = make_numbers(10, 60, 1, seed=5)
    with says("memory_limit=4,000", "raise memory_limit", "method='exchange'"):
        run(Problem.from_arrays(X, y, gram="columns", memory_limit=4000), 3)


def test_tol_is_the_largest_violation_of_a_constraint(problem: Problem) -> None:
    results = [run(problem, tol=tol) for tol in (1e6, 1e-1, 1e-3, 1e-5)]
    assert all(result.status == Status.CONVERGED for result in results)
    counts = [result.n_iter for result in results]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] > counts[1]
    for result in results:
        assert results[-1].trace[: result.n_iter] == result.trace
    assert run(problem, tol=0, max_iter=50).status == Status.MAX_ITER


def test_a_faster_growth_ends_sooner(problem: Problem) -> None:
    counts = [run(problem, mu=mu).n_iter for mu in (1.05, 1.1, 1.2)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_gamma_is_the_ridge_of_the_search_and_that_of_the_problem_has_no_part(
    problem: Problem,
) -> None:
    assert run(problem.with_ridge(5.0)).trace == run(problem).trace
    assert run(problem, gamma=50.0).trace != run(problem).trace


OVERFLOWING = [{"mu": 1e200}, {"mu": 1e308}, {"rho": 1e308}]


@every_pair(table=list(TABLES), solver=["auto", "direct", "woodbury"], options=OVERFLOWING)
def test_a_penalty_that_overflows_fails_with_k_columns(
    table: str, solver: str, options: Any
) -> None:
    with pytest.warns(UserWarning, match="iterates diverged"):
        result = run(Problem.from_arrays(*TABLES[table]), solver=solver, **options)
    assert result.status == Status.FAILED
    assert_whole(result)


@every_pair(table=["tall", "wide numbers"], options=OVERFLOWING)
@pytest.mark.filterwarnings("ignore:the iterates diverged")
def test_nor_do_conjugate_gradients_call_that_converged(table: str, options: Any) -> None:
    result = run(Problem.from_arrays(*TABLES[table]), solver="cg", **options)
    assert result.status in (Status.FAILED, Status.MAX_ITER)
    assert_whole(result)


def assert_whole(result: Result) -> None:
    assert len(set(result.support.tolist())) == 4
    assert np.isfinite(result.coef).all()
    assert np.isfinite(result.trace).all()


def test_the_centre_of_the_sphere_goes_to_some_point_of_it() -> None:
    found = _on_sphere(np.full(5, 0.5))
    assert ((found - 0.5) ** 2).sum() == pytest.approx(5 / 4)
