"""Working sets of wide tables: the same objectives, exact greedy steps, no swap left among all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from exactk import Problem, Status, solve, solve_path
from exactk.data.gram import ColumnGram
from exactk.methods.exchange import Exchange
from exactk.search import wide_search as wide_search_module
from exactk.search import working_set as working_set_module
from exactk.search.descent import Descent
from exactk.search.native_state import make_state
from exactk.search.state import State
from exactk.search.wide_search import WidePathSearch, WideSearch
from exactk.search.working_set import GreedyPrefetch, WorkingSet, highest, subproblem, working_set
from exactk.utils.monitor import Monitor, Progress
from tests.oracles.brute import Reference, make_classes, make_numbers

Array = np.ndarray[Any, Any]

# Room for a Gram matrix of 60 columns, and for 20 columns of one of 190.
LIMIT = 8 * 60**2
D = 190


def table(seed: int, classes: bool = False, d: int = D) -> tuple[Array, Array]:
    return make_classes(40, d, 3, seed) if classes else make_numbers(40, d, 2, seed)


def narrow(X: Any, y: Any, **options: Any) -> Problem:
    """The problem with so little memory that it is a wide one."""
    problem = Problem.from_arrays(X, y, memory_limit=LIMIT, **options)
    assert working_set(problem, 4) is not None
    return problem


FORMS: dict[str, Callable[[Array], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "f4": lambda X: X.astype("f4"),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ridge", [0.0, 0.4])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_support_has_the_same_objective_in_a_set(
    form: str, ridge: float, scale: bool, weighted: bool
) -> None:
    X, y = table(1)
    X[:, 5] = X[:, 5] + 1e5
    X[:, 50] = 7.0
    X = X.astype("f4").astype("f8")
    w = np.random.default_rng(2).integers(0, 4, len(X)).astype(float) if weighted else None
    problem = narrow(FORMS[form](X), y, ridge=ridge, scale=scale, sample_weight=w)
    reference = Reference(X, y, ridge=ridge, scale=scale, weights=w)
    columns = np.array([2, 5, 17, 80, 81, 140, 188])
    part = subproblem(problem, columns)
    assert part.penalty == pytest.approx(problem.penalty, rel=1e-14)
    for inside in ([0], [1, 3], [0, 1, 4, 6], list(range(7))):
        expected = reference.objective(columns[inside])
        assert part.objective(inside) == pytest.approx(expected, rel=1e-7)
        assert problem.objective(columns[inside]) == pytest.approx(expected, rel=1e-7)
        state = make_state(part, 7)
        assert state.load(inside)
        assert state.objective == pytest.approx(expected, rel=1e-7)


def test_only_what_does_not_fit_needs_a_set() -> None:
    X, y = table(1)
    assert working_set(Problem.from_arrays(X, y), 4) is None
    assert working_set(Problem.from_arrays(X, y, gram="full"), 4) is None
    fits = Problem.from_arrays(X, y, memory_limit=8 * D**2)
    assert working_set(fits, 4) is None
    # Too little memory for a set that would be of use, and a table that is hardly more than one.
    assert working_set(Problem.from_arrays(X, y, memory_limit=100), 4) is None
    assert working_set(narrow(X, y), 16) is None
    assert working_set(Problem.from_arrays(X[:, :100], y, memory_limit=LIMIT), 4) is None
    moments = Problem.from_arrays(X, y, gram="columns")
    assert len(moments.candidates) < working_set_module.SET_COLUMNS
    assert working_set(moments, 4) is None


def test_a_set_holds_groups_in_order_and_then_the_most_relevant() -> None:
    X, y = table(3)
    problem, reference = narrow(X, y), Reference(X, y)
    alone = np.argsort([reference.objective([p]) for p in range(D)])
    held = WorkingSet(problem, 30)
    assert held.columns.tolist() == sorted(alone[:30].tolist())
    last = alone[-25:]
    held.fill([last[:3], last[:10], last])
    assert held.columns.tolist() == sorted([*last.tolist(), *alone[:5].tolist()])
    held.fill([last, alone[:30]])
    assert len(held.columns) == 30
    assert held.has(last.tolist())
    assert not held.has([int(last[0]), int(alone[20])])
    some = [int(last[4]), int(alone[0]), int(last[0])]
    assert held.to_global(held.to_local(some)) == some
    assert held.small.objective(held.to_local(some)) == pytest.approx(reference.objective(some))


@pytest.mark.parametrize("most", [0, 1, 3, 6, 9])
def test_the_highest_values(most: int) -> None:
    values = np.array([2.0, -np.inf, 5.0, 2.0, np.inf, -1.0])
    finite = [2, 0, 3, 5]
    assert highest(values[[0, 1, 2, 3, 1, 5]], most).tolist() == finite[:most]


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("effort", [0, 0.3, 1])
@pytest.mark.parametrize("seed", range(3))
def test_no_swap_with_any_column_is_left(
    classes: bool, ridge: float, effort: float, seed: int
) -> None:
    X, y = table(seed, classes)
    problem, reference = narrow(X, y, ridge=ridge), Reference(X, y, ridge=ridge)
    result = solve(problem, 4, effort=effort)
    assert result.status == Status.CONVERGED
    assert result.objective == pytest.approx(reference.objective(result.support), rel=1e-8)
    slack = 1e-8 * reference.total
    assert result.objective <= reference.greedy(4)[1][-1] + slack
    assert reference.best_swap(result.support) >= result.objective - slack
    assert (np.diff(result.trace) < 0).all()
    assert result.trace[-1] == pytest.approx(result.objective, rel=1e-8)


def planted(d: int = 400, seed: int = 0) -> tuple[Array, Array, list[int]]:
    """Columns in groups that are alike, and a target that hangs on one of each of five groups."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(80, d // 8)), 8, axis=1) + 0.5 * rng.normal(size=(80, d))
    members = [3, 77, 140, 251, 390]
    return X, X[:, members].sum(axis=1) + 0.3 * rng.normal(size=80), members


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_the_same_answer_as_with_all_the_memory(seed: int, form: str, ridge: float) -> None:
    X, y, members = planted(seed=seed)
    X = FORMS[form](X)
    whole, part = Problem.from_arrays(X, y, ridge=ridge), narrow(X, y, ridge=ridge)
    one, other = solve(whole, 5), solve(part, 5)
    assert one.support.tolist() == other.support.tolist() == members
    assert other.objective == pytest.approx(one.objective, rel=1e-10)


def suppressed() -> tuple[Array, Array]:
    """Columns 0 and 1 together give the target, and 1 has no part in it alone; 2 leads astray."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 300))
    y, z = rng.normal(size=(2, 200))
    y, z = y - y.mean(), z - z.mean()
    z -= y * (y @ z) / (y @ y)
    X[:, 0], X[:, 1] = y + z, z
    X[:, 2] = y + 0.7 * rng.normal(size=200)
    X[:, 3:] += 0.2 * y[:, None]
    return X, y + 0.01 * rng.normal(size=200)


@pytest.mark.parametrize("effort", [0, None])
def test_a_column_of_no_use_alone_is_found_beside_another(effort: float | None) -> None:
    X, y = suppressed()
    reference = Reference(X, y)
    assert reference.greedy(2)[0] == [2, 0]
    problem = narrow(X, y)
    first = working_set(problem, 2)
    assert first is not None
    assert first.has([0, 2])
    assert not first.has(1)
    result = solve(problem, 2, effort=effort)
    assert result.support.tolist() == [0, 1]
    assert reference.best_swap([0, 1]) >= result.objective


def test_the_verdict_is_one_over_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = suppressed()
    problem = narrow(X, y)
    held = working_set(problem, 2)
    assert held is not None
    search = WideSearch(make_state(problem, 2), 2, held, np.random.default_rng(0), Monitor())
    filled: list[list[int]] = []

    def fill(self: WorkingSet, groups: Any) -> None:
        # The first set is the most relevant columns and nothing else.
        filled.append([int(p) for group in groups for p in group])
        original(self, [] if len(filled) == 1 else groups)

    original = WorkingSet.fill
    monkeypatch.setattr(WorkingSet, "fill", fill)
    assert search.run([[0, 2]], 0) == Status.CONVERGED
    assert search.best == (0, 1)
    assert len(filled) >= 2
    assert held.has(1)


def test_supports_to_start_from_may_lie_outside_the_set() -> None:
    X, y = table(4)
    problem, reference = narrow(X, y), Reference(X, y)
    rng = np.random.default_rng(1)
    plain = solve(problem, 4, effort=0)
    others = [rng.choice(D, 4, replace=False).tolist() for _ in range(30)]
    best = min(others, key=reference.objective)
    for init in (best, others):
        result = solve(problem, 4, effort=0, init=init)
        assert result.status == Status.CONVERGED
        assert result.objective <= min(plain.objective, reference.objective(best))
        slack = 1e-8 * reference.total
        assert reference.best_swap(result.support) >= result.objective - slack
    good = solve(problem, 4, effort=3)
    resumed = solve(problem, 4, effort=0, init=good.support)
    assert resumed.objective <= good.objective * (1 + 1e-12)


@pytest.mark.parametrize("options", [{"time_limit": 1e-9}, {"time_limit": 0.2, "effort": np.inf}])
def test_a_time_limit_gives_the_best_so_far(options: dict[str, Any]) -> None:
    X, y = table(5)
    problem, reference = narrow(X, y), Reference(X, y)
    result = solve(problem, 5, **options)
    assert result.status == Status.TIME_LIMIT
    assert len(set(result.support.tolist())) == 5
    assert result.objective <= reference.greedy(5)[1][-1] * (1 + 1e-9)


@pytest.mark.parametrize("ridge", [0.0, 1e-14])
def test_a_perfect_fit_needs_no_further_search(ridge: float) -> None:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(60, D))
    members = [4, 60, 101, 188]
    y = X[:, members] @ np.array([1.0, -2.0, 1.5, 0.7])
    for problem in (Problem.from_arrays(X, y, ridge=ridge), narrow(X, y, ridge=ridge)):
        result = solve(problem, 4, time_limit=3)
        assert result.status == Status.CONVERGED
        assert result.support.tolist() == members


def wide_search(problem: Problem, k: int, kind: str) -> WideSearch | WidePathSearch:
    held, state, rng = working_set(problem, k), make_state(problem, k), np.random.default_rng(0)
    assert held is not None
    if kind == "rounds":
        return WideSearch(state, k, held, rng, Monitor())
    greedy, prefixes = list(range(k)), [problem.total] * k
    return WidePathSearch(state, held, greedy, prefixes, rng, Monitor())


@pytest.mark.parametrize("kind", ["rounds", "sizes"])
@pytest.mark.parametrize("known", [False, True])
def test_what_updates_and_dependence_cost_in_digits_is_not_offered(
    kind: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way ends in columns nearly alike, or on the way to a known end with a wrong objective."""
    X, y = table(12)
    X[:, 8] = X[:, 7] + 1e-3 * X[:, 8]
    problem = narrow(X, y)
    search, support = wide_search(problem, 3, kind), [20, 7, 30 if known else 8]

    def run(self: Descent, state: State, **options: Any) -> bool:
        state.load(support)
        if known:
            # As far off as updates that were never checked may be.
            state.objective *= 0.5
        return not known

    monkeypatch.setattr(Descent, "run", run)
    if not known:
        monkeypatch.setattr(Problem, "objective", lambda self, support: 0.125 * self.total)
    assert search.state.load([20, 7, 40])
    if isinstance(search, WideSearch):
        search._descend_among_all([20, 7, 40])
        found, objective = search.best, search.objective
    else:
        assert search._descend_among_all()
        found, objective = search.bests[2], search.objectives[2]
    assert found == tuple(sorted(support))
    expected = Reference(X, y).objective(support) if known else 0.125 * problem.total
    assert objective == pytest.approx(expected, rel=1e-8)


def test_the_same_seed_gives_the_same_answer() -> None:
    X, y = table(6)
    for seed in (None, 7):
        one, two = (solve(narrow(X, y), 5, random_state=seed) for _ in range(2))
        assert one.support.tolist() == two.support.tolist()
        assert one.trace == two.trace


@pytest.mark.parametrize("reports", [0, 4])
def test_an_interrupt_in_the_rounds_gives_the_best_so_far(reports: int) -> None:
    X, y = table(7)
    problem, seen = narrow(X, y), []

    def listen(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) > reports:
            raise KeyboardInterrupt

    answer = Exchange().run(problem, 5, Monitor(on_progress=listen))
    assert answer.status == Status.INTERRUPTED
    assert len(set(answer.support)) == 5
    assert problem.objective(answer.support) <= Reference(X, y).greedy(5)[1][-1] * (1 + 1e-9)


@pytest.mark.parametrize("name", ["_fill", "_has_room"])
def test_an_interrupt_between_sets_gives_the_best_so_far(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table(7)

    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(WideSearch, name, interrupt)
    result = solve(narrow(X, y), 5)
    assert result.status == Status.INTERRUPTED
    assert result.objective <= Reference(X, y).greedy(5)[1][-1] * (1 + 1e-9)


def test_progress_goes_on_from_set_to_set() -> None:
    X, y = table(8)
    seen: list[Progress] = []
    Exchange().run(narrow(X, y), 6, Monitor(on_progress=seen.append))
    objectives, done = [p.objective for p in seen], [p.done for p in seen]
    assert objectives == sorted(objectives, reverse=True)
    assert done == sorted(set(done))


@pytest.mark.parametrize("effort", [0, None])
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_a_path_falls_and_no_swap_is_left_at_any_size(effort: float | None, ridge: float) -> None:
    X, y = table(9, classes=True)
    problem, reference = narrow(X, y, ridge=ridge), Reference(X, y, ridge=ridge)
    path = solve_path(problem, 5, effort=effort)
    slack = 1e-8 * reference.total
    assert (np.diff(path.objectives) <= slack).all()
    assert (path.objectives <= np.array(reference.greedy(5)[1]) + slack).all()
    for k, result in enumerate(path, start=1):
        assert result.k == k
        assert result.status == (Status.OPTIMAL if k == 1 else Status.CONVERGED)
        assert result.objective == pytest.approx(reference.objective(result.support), rel=1e-8)
        assert reference.best_swap(result.support) >= result.objective - slack


def test_a_path_finds_what_is_of_no_use_alone() -> None:
    X, y = suppressed()
    path = solve_path(narrow(X, y), 3)
    assert path.at(1).support.tolist() == [2]
    assert path.at(2).support.tolist() == [0, 1]
    assert {0, 1} < set(path.at(3).support.tolist())


@pytest.mark.parametrize("when", ["time", "interrupt", "_lacking"])
def test_a_path_cut_short_has_every_size(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(10)
    problem, greedy = narrow(X, y), np.array(Reference(X, y).greedy(6)[1])

    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    if when == "_lacking":
        monkeypatch.setattr(wide_search_module.WidePathSearch, "_lacking", interrupt)
    listen = interrupt if when == "interrupt" else None
    monitor = Monitor(1e-9 if when == "time" else None, listen)
    answers = list(Exchange().run_path(problem, 6, monitor))
    assert [len(set(answer.support)) for answer in answers] == list(range(1, 7))
    expected = Status.TIME_LIMIT if when == "time" else Status.INTERRUPTED
    assert answers[-1].status == expected
    objectives = np.array([problem.objective(answer.support) for answer in answers])
    assert (np.diff(objectives) <= 1e-9 * problem.total).all()
    assert (objectives <= greedy * (1 + 1e-9)).all()


def dear(problem: Problem) -> Problem:
    """Passes that cost so much, and vectors so little, that looking ahead pays."""
    assert isinstance(problem.gram, ColumnGram)
    problem.gram.rows.pass_cost, problem.gram.rows.column_cost = 1.0, 1e-9
    problem.gram.rows.gram_cost = 8.0
    return problem


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_steps_are_the_same_whatever_is_foreseen(
    seed: int, classes: bool, ridge: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table(seed, classes)
    order, trace = Reference(X, y, ridge=ridge).greedy(10)
    for least in (1, 300):
        # A small set often guesses wrong, one with every column never does.
        monkeypatch.setattr(working_set_module, "FORESEEN_LEAST", least)
        monkeypatch.setattr(working_set_module, "FORESEEN_FOR_EACH", 4)
        problem = dear(Problem.from_arrays(X, y, ridge=ridge, gram="columns"))
        result = solve(problem, 10, "greedy")
        assert result.order.tolist() == order
        np.testing.assert_allclose(result.trace, trace, rtol=1e-8)
        if least == 300:
            # The first reading, the copy of the set, and one pass for all ten columns.
            assert (problem.passes, problem.gram_columns_read) == (3, 10)
        else:
            assert problem.passes < 2 + 10


def test_bad_guesses_come_to_an_end() -> None:
    # Each column is of use only beside the one before, so that no guess reaches far.
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(300, 12))
    chain = noise[:, :-1] + 3.0 * noise[:, 1:]
    rest = rng.normal(size=(300, 400))
    y = noise[:, 0] * 3.0
    X = np.column_stack([chain, rest])
    problem = dear(Problem.from_arrays(X, y, gram="columns"))
    order, _ = Reference(X, y).greedy(8)
    assert solve(problem, 8, "greedy").order.tolist() == order
    assert problem.passes <= 1 + 8 + working_set_module.MOST_POOR + 2


def test_looking_ahead_is_left_alone_where_passes_are_cheap() -> None:
    X, y = table(0)
    problem = Problem.from_arrays(X, y, gram="columns")
    solve(problem, 4, "greedy")
    assert (problem.passes, problem.gram_columns_read) == (5, 4)


def test_foresight_ends_where_no_independent_column_is_left() -> None:
    X, y = make_numbers(30, 3, 1, seed=3)
    X = np.column_stack([X, X @ np.random.default_rng(0).standard_normal((3, 40))])
    problem = dear(Problem.from_arrays(X, y, gram="columns"))
    state = make_state(problem, 6)
    assert not GreedyPrefetch(problem, 6).grow(state, 6)
    assert state.size == 3
