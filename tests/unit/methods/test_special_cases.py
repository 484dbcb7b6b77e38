"""The special cases of gsrfs, and the ten iterative methods on what is hard for any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from exactk import (
    InputError,
    Moments,
    Problem,
    Status,
    TopKSelector,
    UnknownOptionError,
    progress,
    registry,
    solve,
    solve_path,
)
from exactk.monitor import Monitor, Progress
from tests.oracles.brute import Reference, make_classes, make_numbers
from tests.support import says

# An end at the iteration limit is an end like others here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KIN = ("mtfs", "rfs", "erfs", "rk1u")
TEN = ("cdlsr", "ipfs", "rpfs", "nmapg", "pgd", "gsrfs", *KIN)
every_kin = pytest.mark.parametrize("name", KIN)
every_method = pytest.mark.parametrize("name", TEN)


def defaults(name: str) -> dict[str, Any]:
    return registry.create(name).get_params()


@pytest.mark.parametrize(
    ("name", "orders"), [("mtfs", set()), ("rfs", set()), ("erfs", {"p"}), ("rk1u", {"p"})]
)
def test_only_the_orders_that_are_free_are_options(name: str, orders: set[str]) -> None:
    # Table 1 of the paper of gsrfs: r and p are fixed, p is free, or both are one.
    assert set(defaults(name)) & {"r", "p"} == orders
    assert set(defaults(name)) - orders == set(defaults("gsrfs")) - {"r", "p"}
    for option in {"r", "p"} - orders:
        with pytest.raises(UnknownOptionError, match=rf"'{name}' has no option '{option}'"):
            registry.create(name, **{option: 1.0})


@every_kin
def test_the_defaults_are_those_of_the_paper_of_gsrfs(name: str) -> None:
    # Section 5.3: λ = 1 and a change below 1e-4 for all of them; section 5.2: p = 0.5 for the
    # extended RFS and RK1U.
    named = defaults(name)
    assert (named["lam"], named["tol"], named["labels"]) == (1.0, 1e-4, "plus-minus")
    assert named.get("p", 0.5) == 0.5


@pytest.mark.parametrize("name", ["erfs", "rk1u"])
@pytest.mark.parametrize("bad", [0, 1.0001, -1, np.nan])
def test_the_order_of_the_penalty_is_checked(name: str, bad: float) -> None:
    problem = Problem.from_arrays(*make_classes(40, 6, 3, seed=1))
    with says(f"p must be a number in (0, 1], not {bad!r}"):
        solve(problem, 2, name, p=bad)


@every_kin
@pytest.mark.parametrize(
    ("option", "bad", "words"),
    [
        ("lam", 0, "a number in (0, inf), not 0"),
        ("epsilon", -1, "a number in [0, inf), not -1"),
        ("labels", "hot", "'centred', 'one-hot' or 'plus-minus', not 'hot'"),
        ("max_iter", 0, "a whole number of at least 1, not 0"),
        ("tol", -1, "a number in [0, inf), not -1"),
    ],
)
def test_shared_options_are_checked(name: str, option: str, bad: Any, words: str) -> None:
    problem = Problem.from_arrays(*make_classes(40, 6, 3, seed=1))
    with says(f"{option} must be", words):
        solve(problem, 2, name, **{option: bad})


@pytest.mark.parametrize(("name", "other"), [("erfs", "rfs"), ("rk1u", "mtfs")])
def test_at_order_one_two_of_them_are_the_other_two(name: str, other: str) -> None:
    problem = Problem.from_arrays(*make_classes(40, 10, 3, seed=1))
    for lam in (0.5, 20.0):
        assert (
            solve(problem, 3, name, p=1, lam=lam).trace == solve(problem, 3, other, lam=lam).trace
        )
    assert solve(problem, 3, name).trace != solve(problem, 3, other).trace


@every_kin
def test_a_path_ranks_the_columns_once(name: str) -> None:
    problem = Problem.from_arrays(*make_classes(40, 8, 3, seed=1))
    path = solve_path(problem, 8, name)
    assert [len(set(r.support.tolist())) for r in path] == list(range(1, 9))
    for small, large in pairwise(path):
        assert set(small.support.tolist()) < set(large.support.tolist())


@pytest.mark.parametrize(
    ("name", "misled"), [("mtfs", True), ("rk1u", True), ("rfs", False), ("erfs", False)]
)
def test_wild_rows_mislead_squared_losses_alone(name: str, misled: bool) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 10))
    y = 3.0 * X[:, 2] - 2.0 * X[:, 6] + 0.1 * rng.standard_normal(80)
    # Six rows with a target that follows another column, a hundred times as strongly.
    y[:6] = 300.0 * X[:6, 0]
    found = solve(Problem.from_arrays(X, y), 2, name).support.tolist()
    assert (0 in found) == misled
    assert (found == [2, 6]) != misled


def bad_tables() -> dict[str, tuple[Any, Any, int, tuple[str, ...]]]:
    """Table, target, k and the words of the error."""
    X, y = make_classes(20, 4, 2, seed=0)
    with_nan, with_inf = X.copy(), X.copy()
    with_nan[3, 2], with_inf[5, 1] = np.nan, -np.inf
    return {
        "k above d": (X, y, 5, ("k=5 is more than the 4 usable columns", "k <= 4")),
        "k of zero": (X, y, 0, ("k must be at least 1, not 0",)),
        "one class": (X, np.ones(20, dtype=int), 2, ("y has 1 class, '1'", "at least two")),
        "one number": (X, np.full(20, 0.5), 2, ("y is the same in every row",)),
        "one row": (X[:1], y[:1], 2, ("1 sample", "minimum of 2")),
        "nan": (with_nan, y, 2, ("X contains NaN or infinity", "'x2'", "1 of 20 rows")),
        "inf": (with_inf, y, 2, ("X contains NaN or infinity", "'x1'", "1 of 20 rows")),
        "nan in y": (X, np.r_[np.nan, y[1:]], 2, ("y contains NaN", "row 0")),
        "no row": (X[:0], y[:0], 2, ("0 sample",)),
        "no variation": (np.ones((20, 3)), y, 1, ("k=1 is more than the 0 usable columns",)),
    }


BAD_TABLES = bad_tables()


@every_method
@pytest.mark.parametrize("case", list(BAD_TABLES))
def test_input_that_cannot_be_used_is_named(name: str, case: str) -> None:
    X, y, k, words = BAD_TABLES[case]
    with says(*words):
        TopKSelector(k=k, method=name).fit(X, y)


@every_method
def test_options_are_checked_even_where_there_is_nothing_to_choose(name: str) -> None:
    problem = Problem.from_arrays(*make_classes(40, 3, 3, seed=1))
    with says("max_iter must be a whole number of at least 1, not 0"):
        solve(problem, 3, name, max_iter=0)
    with says("max_iter must be a whole number of at least 1, not 0"):
        solve_path(problem, 3, name, max_iter=0)


@pytest.mark.parametrize("name", ["rpfs", "nmapg", "gsrfs", *KIN])
def test_rows_are_asked_for_before_any_work(name: str) -> None:
    X, y = make_numbers(40, 5, 2, seed=1)
    problem = Problem.from_moments(Moments.from_arrays(X, y))
    for gate in (solve, solve_path):
        # All columns, too, though no row would be read for them.
        for k in (2, 5):
            with says(f"method {name!r} reads the rows", "moments", "from_arrays", "'exchange'"):
                gate(problem, k, name)


def interrupt_at(report: int) -> Callable[[Progress], None]:
    seen: list[Progress] = []

    def listen(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == report:
            raise KeyboardInterrupt

    return listen


OF_STARTS = [
    (name, {"n_starts": n}) for name in TEN if "n_starts" in defaults(name) for n in (1, 5)
]
OF_ONE_START: list[tuple[str, dict[str, int]]] = [
    (name, {}) for name in TEN if "n_starts" not in defaults(name)
]


@pytest.mark.parametrize(("name", "options"), [*OF_STARTS, *OF_ONE_START])
@pytest.mark.parametrize("report", [1, 3])
def test_an_interrupt_gives_k_columns(name: str, options: dict[str, int], report: int) -> None:
    problem = Problem.from_arrays(*make_classes(50, 12, 3, seed=1))
    monitor = Monitor(on_progress=interrupt_at(report))
    answer = registry.create(name, **options).run(problem, 4, monitor)
    assert answer.status == Status.INTERRUPTED
    assert len(set(answer.support)) == 4
    assert set(answer.support) <= set(range(12))


@every_method
def test_an_interrupted_solve_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def bar(description: str) -> Iterator[Callable[[Progress], None]]:
        yield interrupt_at(2)

    monkeypatch.setattr(progress, "bar", bar)
    X, y = make_classes(50, 12, 3, seed=1)
    result = solve(Problem.from_arrays(X, y), 4, name, verbose=1)
    assert result.status == Status.INTERRUPTED
    assert "stopped by the user" in result.message
    assert result.objective == pytest.approx(Reference(X, y).objective(result.support), rel=1e-9)
    # A selector is fitted, and the interrupt goes on.
    selector = TopKSelector(k=4, method=name, ridge=0, verbose=1)
    with pytest.raises(KeyboardInterrupt, match="stopped by the user"):
        selector.fit(X, y)
    assert selector.support_.sum() == 4
    assert selector.status_ == "interrupted"


@every_method
@pytest.mark.parametrize("report", [1, 4])
def test_an_interrupted_path_has_every_size_and_does_not_go_on(name: str, report: int) -> None:
    problem = Problem.from_arrays(*make_classes(50, 12, 3, seed=1))
    seen: list[Progress] = []
    stop = interrupt_at(report)

    def listen(progress: Progress) -> None:
        seen.append(progress)
        stop(progress)

    method = registry.create(name)
    answers = list(method.run_path(problem, 12, Monitor(on_progress=listen)))
    assert [len(set(answer.support)) for answer in answers] == list(range(1, 13))
    assert len(seen) == report, "nothing is iterated after the interrupt"
    assert answers[0].status == answers[-2].status == Status.INTERRUPTED


@every_method
def test_a_path_without_time_has_every_size(name: str) -> None:
    problem = Problem.from_arrays(*make_classes(50, 12, 3, seed=1))
    path = solve_path(problem, 8, name, time_limit=1e-9)
    assert [len(set(result.support.tolist())) for result in path] == list(range(1, 9))
    assert path[-1].status == Status.TIME_LIMIT


@pytest.mark.parametrize(
    ("name", "init"),
    [
        ("cdlsr", [0, 1]),
        ("cdlsr", "abc"),
        ("cdlsr", [[0, 1, 2], 3]),
        *((name, np.zeros((2, 2))) for name in ("rpfs", "nmapg", "pgd")),
        *((name, np.full((3, 3), np.nan)) for name in ("rpfs", "nmapg", "pgd")),
    ],
)
def test_a_start_is_checked_even_where_there_is_nothing_to_choose(name: str, init: Any) -> None:
    problem = Problem.from_arrays(*make_classes(40, 3, 3, seed=1))
    with says("init"):
        solve(problem, 3, name, init=init)
    with says("init"):
        solve_path(problem, 3, name, init=init)


TARGETS = {
    "one number": make_numbers(40, 9, 1, seed=2),
    "several numbers": make_numbers(40, 9, 3, seed=2),
    "several labels": (
        make_numbers(40, 9, 1, seed=2)[0],
        (make_numbers(40, 9, 3, seed=2)[1] > 0).astype(int),
    ),
    "fewer rows than columns": make_numbers(8, 15, 2, seed=2),
}


@every_method
@pytest.mark.parametrize("target", list(TARGETS))
def test_sparse_weighted_tables_with_any_target(name: str, target: str) -> None:
    X, y = TARGETS[target]
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    w = np.random.default_rng(1).integers(1, 4, len(X))
    problem = Problem.from_arrays(sparse.csr_array(X), y, sample_weight=w, ridge=0.1)
    # The same rows, dense and as many times as their weight says.
    repeated = Problem.from_arrays(np.repeat(X, w, axis=0), np.repeat(y, w, axis=0), ridge=0.1)
    for k in (1, 4):
        result = solve(problem, k, name, max_iter=100)
        assert len(set(result.support.tolist())) == k
        assert result.coef.shape == (problem.n_outputs, k)
        expected = Reference(X, y.astype(float), weights=w, ridge=0.1).objective(result.support)
        assert result.objective == pytest.approx(expected, rel=1e-8)
        other = solve(repeated, k, name, max_iter=100)
        steps = min(len(result.trace), len(other.trace), 10)
        np.testing.assert_allclose(result.trace[:steps], other.trace[:steps], rtol=1e-7)


@pytest.mark.parametrize("name", ["cdlsr", "rpfs", "pgd"])
def test_a_seed_reaches_the_starts_through_the_selector(name: str) -> None:
    X, y = make_classes(50, 20, 3, seed=1)
    one, two = (solve(Problem.from_arrays(X, y), 4, name, random_state=3) for _ in range(2))
    assert one.trace == two.trace
    selector = TopKSelector(k=4, method=name, ridge=0, random_state=3).fit(X, y)
    assert selector.result_.trace == one.trace
    with says("random_state must be", "not 'x'"):
        solve(Problem.from_arrays(X, y), 4, name, random_state="x")


@pytest.mark.parametrize("name", ["ipfs", "nmapg", "gsrfs", *KIN])
def test_where_nothing_is_random_there_is_no_seed(name: str) -> None:
    X, y = make_classes(50, 20, 3, seed=1)
    with pytest.raises(UnknownOptionError, match=f"'{name}' has no option 'random_state'"):
        solve(Problem.from_arrays(X, y), 4, name, random_state=3)


@every_method
def test_a_target_that_two_columns_fit_exactly(name: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 8))
    y = 5.0 * X[:, 1] - 3.0 * X[:, 6]
    result = solve(Problem.from_arrays(X, y), 2, name)
    assert result.support.tolist() == [1, 6]
    assert result.status in (Status.CONVERGED, Status.MAX_ITER)
    assert result.explained == pytest.approx(1.0)


@every_method
def test_two_rows_and_two_columns(name: str) -> None:
    X = np.array([[0.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    problem = Problem.from_arrays(X, [0, 1])
    # Any two rows are a line: all columns are copies of the first.
    assert solve(problem, 1, name).support.tolist() == [0]
    with pytest.warns(UserWarning, match="only 1 of the 2 columns"):
        result = solve(problem, 2, name)
    assert result.support.tolist() == [0, 1]
    assert result.status == Status.RANK_DEFICIENT


@every_method
def test_unscaled_columns_of_any_common_size_give_the_same_columns(name: str) -> None:
    X, y = make_classes(50, 10, 3, seed=4)
    found = {
        tuple(solve(Problem.from_arrays(X * unit, y, scale=False), 3, name).support.tolist())
        for unit in (1e-9, 1.0, 1e9)
    }
    assert len(found) == 1


@every_method
def test_a_name_that_is_nearly_right_is_answered_with_it(name: str) -> None:
    problem = Problem.from_arrays(*make_classes(40, 6, 3, seed=1))
    with pytest.raises(InputError, match=f"did you mean {name!r}"):
        solve(problem, 2, name.upper())
    with pytest.raises(UnknownOptionError, match=rf"{name!r}.*'maxiter'.*did you mean 'max_iter'"):
        solve(problem, 2, name, maxiter=5)
