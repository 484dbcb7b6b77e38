"""What every method that iterates must keep: its trace, its ends, its start, its units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from exactk import InputError, Problem, Status, TopKSelector, solve, solve_path
from exactk.methods import registry
from exactk.methods.base import IterativeMethod
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import Reference, make_classes, make_numbers
from tests.support import over, refused

# An end at the iteration limit is an end like others here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ITERATIVE = [
    name for name in registry.names() if issubclass(registry.method_class(name), IterativeMethod)
]
every_iterative = pytest.mark.parametrize("name", over(ITERATIVE))


def options(name: str) -> dict[str, Any]:
    return registry.create(name).get_params()


def of_matrices() -> list[str]:
    """Those that start from a matrix of coefficients."""
    return [name for name in ITERATIVE if "matrix" in str(_check(name, "init"))]


def _check(name: str, option: str) -> Any:
    return registry.method_class(name).checks.get(option)


OF_STARTS = [name for name in ITERATIVE if "n_starts" in options(name)]
every_matrix = pytest.mark.parametrize("name", over(of_matrices()))
every_list = pytest.mark.parametrize("name", ["cdlsr", "exchange"])


def one_start(name: str) -> dict[str, int]:
    return {"n_starts": 1} if name in OF_STARTS else {}


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.from_arrays(*make_classes(50, 12, 3, seed=1))


def interrupt_at(report: int) -> Callable[[Progress], None]:
    seen: list[Progress] = []

    def listen(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == report:
            raise KeyboardInterrupt

    return listen


# --- how it ends -----------------------------------------------------------------------------


@every_iterative
def test_the_trace_has_the_own_objective_of_every_iteration(name: str, problem: Problem) -> None:
    whole = solve(problem, 4, name, **one_start(name))
    assert len(whole.trace) == whole.n_iter > 1
    assert np.isfinite(whole.trace).all()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        cut = solve(problem, 4, name, max_iter=1, **one_start(name))
    assert (cut.status, cut.n_iter, cut.k) == (Status.MAX_ITER, 1, 4)
    # A schedule may depend on the number of iterations.
    assert cut.trace == whole.trace[:1] or "annealing" in options(name)


@every_iterative
def test_an_interrupt_keeps_the_last_iterate(name: str, problem: Problem) -> None:
    whole = solve(problem, 4, name, **one_start(name))
    method = registry.create(name, **one_start(name))
    answer = method.run(problem, 4, Monitor(on_progress=interrupt_at(min(3, whole.n_iter))))
    assert answer.status == Status.INTERRUPTED
    assert answer.trace == whole.trace[: answer.n_iter]
    assert answer.n_iter == min(3, whole.n_iter)
    assert len(set(answer.support)) == 4


@pytest.mark.parametrize("name", over(OF_STARTS))
def test_an_interrupt_between_starts_keeps_the_best(name: str, problem: Problem) -> None:
    answer = registry.create(name, n_starts=4).run(problem, 4, Monitor(on_progress=interrupt_at(2)))
    assert answer.status == Status.INTERRUPTED
    assert answer.trace == solve(problem, 4, name, n_starts=2).trace


@every_iterative
def test_an_interrupted_solve_says_so(
    name: str, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def show(description: str, verbose: int) -> Iterator[Callable[[Progress], None]]:
        yield interrupt_at(2)

    monkeypatch.setattr(import_module("exactk.solver"), "show_progress", show)
    X, y = make_classes(50, 12, 3, seed=1)
    result = solve(problem, 4, name, verbose=1)
    assert result.status == Status.INTERRUPTED
    assert result.message
    assert result.objective == pytest.approx(Reference(X, y).objective(result.support), rel=1e-9)
    # A selector is fitted, and the interrupt goes on.
    selector = TopKSelector(k=4, method=name, ridge=0, verbose=1)
    with pytest.raises(KeyboardInterrupt):
        selector.fit(X, y)
    assert selector.support_.sum() == 4
    assert selector.status_ == "interrupted"


@every_iterative
def test_an_interrupted_path_has_every_size_and_does_not_go_on(name: str, problem: Problem) -> None:
    seen: list[Progress] = []
    stop = interrupt_at(2)

    def listen(progress: Progress) -> None:
        seen.append(progress)
        stop(progress)

    method = registry.create(name)
    answers = list(method.run_path(problem, 12, Monitor(on_progress=listen)))
    assert [len(set(answer.support)) for answer in answers] == list(range(1, 13))
    assert len(seen) == 2, "nothing is iterated after the interrupt"
    assert answers[-2].status == Status.INTERRUPTED


@every_iterative
def test_time_ends_a_run_and_a_path_and_the_rest_is_filled_up(name: str, problem: Problem) -> None:
    result = solve(problem, 5, name, time_limit=1e-9)
    assert (result.status, result.k, result.n_iter) == (Status.TIME_LIMIT, 5, 1)
    path = solve_path(problem, 8, name, time_limit=1e-9)
    assert [len(set(result.support.tolist())) for result in path] == list(range(1, 9))
    assert {str(result.status) for result in path} == {"time_limit"}


# --- where it starts -------------------------------------------------------------------------


@pytest.mark.parametrize("name", over(OF_STARTS))
def test_more_starts_are_never_worse_and_the_seed_decides_them(name: str) -> None:
    X, y = make_classes(60, 40, 4, seed=3)
    problem = Problem.from_arrays(X, y)
    named = {"max_iter": 100}
    found = [
        solve(problem, 6, name, n_starts=n, random_state=1, **named).trace[-1] for n in (1, 2, 8)
    ]
    assert found == sorted(found, reverse=True)
    # None is a seed, too.
    seeds = (None, None, 1, 1, 2)
    traces = [solve(problem, 6, name, n_starts=8, random_state=s, **named).trace for s in seeds]
    assert traces[0] == traces[1]
    assert traces[2] == traces[3]
    assert len(set(traces)) > 1
    method = registry.create(name, n_starts=8, **named)
    selector = TopKSelector(k=6, method=method, ridge=0, random_state=2).fit(X, y)
    assert selector.result_.trace == traces[4]


@every_matrix
def test_a_matrix_is_where_it_starts(name: str) -> None:
    X, y = make_classes(50, 12, 3, seed=6)
    problem = Problem.from_arrays(np.column_stack([X, np.ones(50)]), y)
    W = np.random.default_rng(0).standard_normal((13, 3))
    first = solve(problem, 4, name, init=W, max_iter=5)
    # Rows of columns that are no candidates do not count.
    W[12] = 1e9
    again = solve(problem, 4, name, init=W, max_iter=5)
    assert again.trace == first.trace != solve(problem, 4, name, max_iter=5).trace
    assert solve_path(problem, 2, name, init=W, max_iter=5).at(1).trace == (
        solve(problem, 1, name, init=W, max_iter=5).trace
    )
    if name in OF_STARTS:
        more = solve(problem, 4, name, init=W, max_iter=5, n_starts=5, random_state=3)
        assert more.trace == first.trace, "a given start is the only one"


@every_matrix
@pytest.mark.parametrize(
    "init",
    [
        np.zeros((8, 2)),
        np.zeros((3, 8)),
        np.zeros(8),
        np.full((8, 3), np.nan),
        [[10**400] * 3] * 8,
        np.ones((8, 3)) * 1j,
        np.ma.array(np.ones((8, 3)), mask=np.eye(8, 3)),
        [["1", "2", "3"]] * 8,
        {"a": 1},
        "garbage",
    ],
    ids=["narrow", "turned", "flat", "nan", "huge", "complex", "masked", "text", "dict", "word"],
)
def test_an_odd_matrix_is_refused_by_name(name: str, init: Any) -> None:
    problem = Problem.from_arrays(*make_classes(40, 8, 3, seed=2))
    # Also where there is nothing to choose.
    for k in (2, 8):
        for gate in (solve, solve_path):
            with pytest.raises(InputError, match=r"^init\b"):
                gate(problem, k, name, init=init)


@every_list
@pytest.mark.parametrize(
    "init",
    [
        [0, 1], [[0, 1, 2], [0, 1]], [[0, 1, 2], 3], [], [0, 1, 7], [0, 1, -1], [0, 1, 1],
        [0.0, 1.0, 2.0], [0, np.nan, 2], "abc", b"\x00\x01", np.array(3), [0, 1, 5], [0, 1, 6],
    ],
    ids=repr,
)  # fmt: skip
def test_an_odd_list_of_columns_is_refused_by_name(name: str, init: Any) -> None:
    X, y = make_classes(40, 5, 3, seed=1)
    # A constant column and a copy cannot be in a start.
    problem = Problem.from_arrays(np.column_stack([X, np.ones(40), X[:, 0]]), y)
    with pytest.raises(InputError, match=r"^init\b"):
        solve(problem, 3, name, init=init)


# --- what it must find -----------------------------------------------------------------------


@every_iterative
def test_two_columns_that_make_the_target(name: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 8))
    problem = Problem.from_arrays(X, 5.0 * X[:, 1] - 3.0 * X[:, 6])
    if refused(name, problem) or not registry.method_class(name).uses_target:
        return
    result = solve(problem, 2, name)
    assert result.support.tolist() == [1, 6]
    assert result.status in (Status.CONVERGED, Status.MAX_ITER)
    assert result.explained == pytest.approx(1.0)


@every_iterative
def test_two_rows_and_two_columns(name: str) -> None:
    X = np.array([[0.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    problem = Problem.from_arrays(X, [0, 1])
    # Any two rows are a line: all columns are copies of the first.
    assert solve(problem, 1, name).support.tolist() == [0]
    with pytest.warns(UserWarning, match="only 1 of the 2 columns"):
        result = solve(problem, 2, name)
    assert result.support.tolist() == [0, 1]
    assert result.status == Status.RANK_DEFICIENT


@every_iterative
def test_without_scaling_a_common_unit_of_the_columns_does_not_matter(name: str) -> None:
    X, y = make_classes(50, 12, 3, seed=5)
    X = X * np.random.default_rng(0).uniform(0.5, 2, 12)
    plain = solve(Problem.from_arrays(X, y, scale=False), 4, name)
    for unit in (1e-9, 1e9):
        scaled = solve(Problem.from_arrays(X * unit, y, scale=False), 4, name)
        assert scaled.support.tolist() == plain.support.tolist()
        assert scaled.objective == pytest.approx(plain.objective, rel=1e-7)


TARGETS = {
    "several numbers": make_numbers(40, 9, 3, seed=2),
    "several labels": (
        make_numbers(40, 9, 1, seed=2)[0],
        (make_numbers(40, 9, 3, seed=2)[1] > 0).astype(int),
    ),
    "fewer rows than columns": make_numbers(8, 15, 1, seed=2),
}


@every_iterative
@pytest.mark.parametrize("target", list(TARGETS))
def test_a_weight_is_as_many_rows_along_the_whole_trace(name: str, target: str) -> None:
    X, y = TARGETS[target]
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    w = np.random.default_rng(1).integers(1, 4, len(X))
    problem = Problem.from_arrays(sparse.csr_array(X), y, sample_weight=w, ridge=0.1)
    if refused(name, problem):
        return
    repeated = Problem.from_arrays(np.repeat(X, w, axis=0), np.repeat(y, w, axis=0), ridge=0.1)
    result, other = (solve(p, 4, name, max_iter=30) for p in (problem, repeated))
    assert result.coef.shape == (problem.n_outputs, 4)
    expected = Reference(X, y.astype(float), weights=w, ridge=0.1).objective(result.support)
    assert result.objective == pytest.approx(expected, rel=1e-8)
    steps = min(len(result.trace), len(other.trace), 10)
    np.testing.assert_allclose(result.trace[:steps], other.trace[:steps], rtol=1e-7)
