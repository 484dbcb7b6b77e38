"""The compiled tree over columns against enumeration, integer programs and exact fractions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from exactk import Problem, best_sets, certify, certify_path, solve
from exactk.proof import column_tree as compiled
from exactk.proof import make_tree as make_tree_module
from exactk.proof.best_first import BestFirstSearch, BoundTree, Node
from exactk.proof.bounds import bound_of, relax
from exactk.proof.column_tree import ColumnTree, library, make_column_problem
from exactk.proof.make_tree import make_tree
from exactk.types import Floats
from exactk.utils.monitor import Monitor
from tests.oracles.brute import Reference, make_numbers

pytestmark = pytest.mark.skipif(library() is None, reason="the tree is not compiled here")

Set = tuple[int, ...]

FIXED: dict[str, Any] = {"deadline": None, "derandomize": True, "database": None}


@dataclass
class Posed:
    """A table, and what is asked of it."""

    X: Floats = field(repr=False)
    Y: npt.NDArray[Any] = field(repr=False)
    k: int
    ridge: float = 0.0
    weights: Floats | None = None
    include: list[int] = field(default_factory=list)
    exclude: list[int] = field(default_factory=list)
    # How near columns are to depending on each other: so many digits are lost even from the rows.
    share: float = 1.0

    def problem(self) -> Problem:
        problem = Problem.from_arrays(
            self.X, self.Y, ridge=self.ridge, sample_weight=self.weights
        )  # fmt: skip
        if self.include or self.exclude:
            return problem.with_constraints(include=self.include, exclude=self.exclude)
        return problem

    @cached_property
    def objectives(self) -> dict[Set, float]:
        """Every set that may be chosen, each fitted by its own QR factors of the rows."""
        reference = Reference(self.X, self.Y, ridge=self.ridge, weights=self.weights)
        free = [j for j in reference.usable if j not in {*self.include, *self.exclude}]
        some = combinations(free, self.k - len(self.include))
        sets = [tuple(sorted((*self.include, *one))) for one in some]
        values = [
            fitted(reference, np.array(part))
            for part in np.array_split(np.array(sets), 1 + len(sets) // 2000)
        ]
        return dict(zip(sets, np.concatenate(values).tolist(), strict=True))

    @property
    def rounding(self) -> float:
        """What fits from the rows may be off, of the total."""
        return 1e-12 + 1e-14 / self.share


def fitted(reference: Reference, sets: npt.NDArray[np.int64]) -> Floats:
    (n, k), c = (len(reference.X), sets.shape[1]), reference.Y.shape[1]
    design = np.zeros((len(sets), n + k, k))
    design[:, :n] = reference.X[:, sets].transpose(1, 0, 2)
    design[:, n:] = np.sqrt(reference.penalty) * np.eye(k)
    design /= np.sqrt((design**2).sum(axis=1, keepdims=True))
    Q = np.linalg.qr(design)[0]
    rest = np.broadcast_to(np.vstack([reference.Y, np.zeros((k, c))]), (len(sets), n + k, c))
    for _ in range(2):
        rest = rest - Q @ (Q.transpose(0, 2, 1) @ rest)
    return (rest**2).sum(axis=(1, 2))


def targets(rng: np.random.Generator, X: Floats, kind: str) -> npt.NDArray[Any]:
    c = {"numbers": 1, "several": 3, "classes": 4}[kind]
    Y = X @ rng.standard_normal((X.shape[1], c)) + 3.0 * rng.standard_normal((len(X), c))
    if kind == "classes":
        labels = Y.argmax(axis=1)
        labels[:4] = np.arange(4)
        return labels
    return Y[:, 0] if c == 1 else Y


@st.composite
def posed(draw: st.DrawFn, most: int = 11) -> Posed:
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    d = draw(st.integers(2, most))
    kind = draw(st.sampled_from(["plain", "alike", "near", "nears", "wide"]))
    n = draw(st.integers(3, d)) if kind == "wide" and d > 3 else 35
    X = rng.standard_normal((n, d))
    if kind == "alike":
        X = X @ (np.eye(d) + rng.standard_normal((d, d))) + 2.0 * rng.standard_normal((n, 1))
    target = "several" if kind == "wide" else draw(
        st.sampled_from(["numbers", "several", "classes"])
    )  # fmt: skip
    share, places = 1.0, rng.permutation(d).tolist()
    if kind in ("near", "nears") and d >= 4:
        share = 10.0 ** -draw(st.integers(1, 7))
        for i, j in [places[:2], places[2:4]][: 1 if kind == "near" else 2]:
            X[:, j] = X[:, i] + share * rng.standard_normal(n)
    Y = targets(rng, X, target)
    if share < 1.0 and target != "classes" and draw(st.booleans()):
        # What near columns differ in matters.
        i, j = places[:2]
        Y = (Y.T + draw(st.sampled_from([1.0, 10.0])) * (X[:, j] - X[:, i]) / share).T
    ruled = d >= 4 and draw(st.booleans())
    include = sorted(places[: draw(st.integers(0, 2))]) if ruled else []
    exclude = sorted(places[2 : 2 + draw(st.integers(0, 1))]) if ruled else []
    most_chosen = d - len(exclude)
    if kind == "wide":
        # More columns than rows fit everything: of sets that all do none is the best.
        most_chosen = min(most_chosen, max(n - 2, len(include)))
    k = draw(st.integers(max(1, len(include)), most_chosen))
    weights = rng.uniform(0.2, 2.0, n) if draw(st.booleans()) else None
    ridge = draw(st.sampled_from([0.0, 0.0, 1e-6, 0.05, 1.0]))
    return Posed(X, Y, k, ridge, weights, include, exclude, share)


class Steps(Monitor):
    """Time for one exploration at a time."""

    expired_now = False

    @property
    def expired(self) -> bool:
        return self.expired_now

    def report(self, *_: Any) -> None:
        self.expired_now = True


def stop(value: int = 0) -> npt.NDArray[np.int64]:
    return np.full(1, value, dtype=np.int64)


def holds(tree: ColumnTree, part: Node, support: Set) -> bool:
    """Whether a set is one of those in a part."""
    branch: Any = part.state
    inside = set(tree.columns_of(branch.inside))
    both = set(tree.columns_of(np.append(branch.inside, branch.free)))
    return inside <= set(support) <= both


def parts_are_right(tree: ColumnTree, parts: Sequence[Node], one: Posed, slack: float) -> None:
    """No set of a part lies below its bound."""
    for part in parts:
        own = [value for S, value in one.objectives.items() if holds(tree, part, S)]
        assert part.bound <= min(own, default=inf) + slack


def check_drive(one: Posed, n_best: int, start: Set | None) -> None:
    """Cut short and taken up again, until it is proven: right at every step, and at the end."""
    problem, objectives = one.problem(), one.objectives
    best = min(objectives.values())
    starts = [] if start is None else [start]
    ceiling = inf if start is None or n_best > 1 else objectives[start] + 1e-11 * problem.total
    tree = make_tree(problem, one.k, ceiling)
    search = BestFirstSearch(problem, tree, starts, n_best=n_best)
    slack = tree.tolerance + one.rounding * problem.total
    for _ in range(100_000):
        search.run(Steps(), 1)
        assert search.lower <= best + slack
        assert search.upper >= best - slack
        if search.is_closed:
            break
    assert search.is_closed
    assert search.is_proven
    assert search.upper == pytest.approx(best, abs=slack)
    for found in search.sets:
        assert found.objective == pytest.approx(objectives[found.columns], abs=slack)
    expected = sorted(objectives.values())[:n_best]
    assert [found.objective for found in search.sets] == pytest.approx(expected, abs=slack)
    assert len({found.columns for found in search.sets}) == len(search.sets)


@settings(max_examples=400, **FIXED)
@given(posed(most=12), st.sampled_from([1, 1, 4, 1000]), st.data())
def test_the_tree_finds_what_enumeration_finds(one: Posed, n_best: int, data: Any) -> None:
    start = data.draw(st.none() | st.sampled_from(sorted(one.objectives)))
    budget = data.draw(st.sampled_from([1, 300, 3000, 20_000_000]))
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            # With a ridge columns are left out or taken in before there is a tree.
            patch.setattr(make_tree_module, "WIDE", 1)
        patch.setattr(compiled, "QUICK_BUDGET", budget)
        patch.setattr(compiled, "BUDGET", budget)
        check_drive(one, n_best, start)


@settings(max_examples=300, **FIXED)
@given(
    posed(most=12),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.sampled_from([0, 1, 200, 1000, 5000]),
    st.booleans(),
)
def test_nothing_is_lost_when_time_is_up(one: Posed, share: float, budget: int, late: bool) -> None:
    """Every set below the ceiling was found or lies in a part that is left, and is there once."""
    problem, objectives = one.problem(), one.objectives
    values = np.sort(list(objectives.values()))
    ceiling = float(values[int(share * (len(values) - 1))]) + 1e-6 * problem.total
    # What is told late is left for the compiled tree to make use of.
    tree = make_tree(problem, one.k, inf if late else ceiling)
    if not isinstance(tree, ColumnTree):
        return
    slack = tree.tolerance + one.rounding * problem.total
    parts = tree.root()
    parts_are_right(tree, parts, one, slack)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "QUICK_BUDGET", budget)
        for _ in range(3):
            if not parts:
                break
            part = parts.pop()
            # A budget of 0 stands for a stop that came before anything was looked at.
            explored = tree.explore(part, ceiling, 1000, stop(int(budget == 0)), quick=True)
            assert explored.is_sure
            parts_are_right(tree, explored.left, one, slack)
            found = {each.columns for each in explored.found}
            for S, value in objectives.items():
                if not holds(tree, part, S):
                    continue
                places = sum(holds(tree, left, S) for left in explored.left)
                assert places <= 1
                if value < ceiling - slack:
                    assert places or S in found
            assert all(left.bound >= part.bound for left in explored.left)
            for each in explored.found:
                if each.objective > 0:
                    assert each.objective == pytest.approx(objectives[each.columns], abs=slack)
            parts += explored.left


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rank", [0, 1, 6, 60])
def test_columns_are_fixed_only_where_no_set_of_interest_is_lost(seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 5)) @ rng.standard_normal((5, 15)) + rng.standard_normal((50, 15))
    one = Posed(X, targets(rng, X, ["numbers", "several"][seed % 2]), 4 + seed % 4, 0.02)
    problem = one.problem()
    by_value = sorted(one.objectives, key=one.objectives.__getitem__)
    ceiling = one.objectives[by_value[rank]] + 1e-9 * problem.total
    tree = make_tree(problem, one.k)
    assert isinstance(tree, ColumnTree)
    assert len(tree.relaxed.columns) == 15
    explored = tree.explore(tree.root()[0], ceiling, 1000, stop(), quick=False)
    assert not explored.left
    assert sorted(found.columns for found in explored.found) == sorted(by_value[: rank + 1])


@settings(max_examples=12, **FIXED)
@given(posed(most=20), st.data())
def test_more_columns_and_bad_starts(one: Posed, data: Any) -> None:
    if len(one.objectives) > 20_000:
        one.k = len(one.include) + 4
        del one.objectives
    worst = max(one.objectives, key=one.objectives.__getitem__)
    check_drive(one, data.draw(st.sampled_from([1, 5])), worst)


@settings(max_examples=25, **FIXED)
@given(posed(most=9))
def test_the_facets_say_what_enumeration_says(one: Posed) -> None:
    problem, objectives = one.problem(), one.objectives
    values, slack = sorted(objectives.values()), 2e-8 * problem.total + 1e-9
    worst = max(objectives, key=objectives.__getitem__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns that depend on each other
        given_worst = certify(problem, features=list(worst), n_jobs=2)
        listed = best_sets(problem, k=one.k, n_best=6, n_jobs=2)
        path = certify_path(problem, k_max=one.k, n_jobs=1)
        exhaustive = solve(problem, one.k, "exhaustive")
    assert given_worst.proven
    assert given_worst.upper == pytest.approx(values[0], abs=slack)
    assert given_worst.lower <= values[0] + given_worst.tolerance + one.rounding * problem.total
    assert objectives[tuple(given_worst.result.support)] == pytest.approx(values[0], abs=slack)
    if one.share > 1e-4:
        # Nearer columns count as dependent there.
        assert exhaustive.objective == pytest.approx(values[0], abs=slack)
    assert listed.is_complete
    assert list(listed.objectives) == pytest.approx(values[:6], abs=slack)
    assert path[-1].proven
    assert path[-1].upper == pytest.approx(values[0], abs=slack)


@pytest.mark.parametrize("seed", range(6))
def test_one_thread_and_two_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "QUICK_BUDGET", 2000)
    monkeypatch.setattr(compiled, "BUDGET", 5000)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 14)) + rng.standard_normal((60, 14))
    one = Posed(X, targets(rng, X, ["numbers", "classes"][seed % 2]), 6, 0.01 * (seed % 3))
    problem = one.problem()
    lists = []
    for threads in (1, 2):
        tree = make_tree(problem, one.k)
        search = BestFirstSearch(problem, tree, n_best=5)
        search.run(Monitor(), threads)
        assert search.is_closed
        lists.append([found.columns for found in search.sets])
    by_value = sorted(one.objectives, key=one.objectives.__getitem__)[:5]
    assert lists == [by_value, by_value]


@pytest.mark.parametrize("share", [1e-3, 1e-4, 1e-5, 1e-6, 2e-7, 2e-8])
def test_triples_of_near_columns_are_priced_by_the_rows(share: float) -> None:
    # Beside one of two near columns hardly anything is left of the other: the Gram matrix cannot
    # tell what it explains there, nor what a third one adds to the pair.
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 12))
        i, j, p, q, a, b = rng.permutation(12)[:6]
        X[:, j] = X[:, i] + share * rng.standard_normal(40)
        X[:, q] = X[:, p] + share * rng.standard_normal(40)
        y = rng.uniform(0.9, 1.1) * (X[:, j] - X[:, i]) / share + (X[:, q] - X[:, p]) / share
        y += 0.3 * X[:, a] + 0.3 * X[:, b] + 0.5 * rng.standard_normal(40)
        one = Posed(X, y, 3, share=share)
        by_value = sorted(one.objectives, key=one.objectives.__getitem__)
        for start in (by_value[1], by_value[5]):
            check_drive(one, 1, start)
        check_drive(one, 3, None)
        # A ceiling just above a set is not above what rounding makes of it, and yet it is found.
        tree, total = make_tree(one.problem(), 3), one.problem().total
        assert isinstance(tree, ColumnTree)
        slack = tree.tolerance + one.rounding * total
        for S, value in one.objectives.items():
            if {i, j} <= set(S) or {p, q} <= set(S):
                explored = tree.explore(tree.root()[0], value + slack, 1000, stop(), quick=False)
                assert S in {found.columns for found in explored.found}
                assert explored.is_sure


@pytest.mark.parametrize("share", [3e-2, 3e-3, 7e-4])
@pytest.mark.parametrize("both", [False, True])
def test_columns_near_those_that_must_be_in(share: float, both: bool) -> None:
    # What is left of them is a difference of nearly equal numbers, and so is its tolerance.
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 8)) @ (np.eye(8) + 0.5 * rng.standard_normal((8, 8)))
        X[:, 5] = X[:, 2] + share * rng.standard_normal(40)
        Y = 0.01 * targets(rng, X, "several")
        Y += rng.choice([0.0, 1.0]) * (X[:, [5]] - X[:, [2]]) / share
        include = [2, 5] if both else [2]
        one = Posed(X, Y, int(rng.integers(3, 7)), include=include, share=share)
        problem, best = one.problem(), min(one.objectives.values())
        for ceiling in (inf, best + 1e-11 * problem.total):
            tree = make_tree(problem, one.k, ceiling)
            slack = tree.tolerance + one.rounding * problem.total
            assert all(part.bound <= best + slack for part in tree.root())
        check_drive(one, 1, None)


@pytest.mark.parametrize("more", [1, 2, 3])
def test_few_rows_and_columns_near_those_that_must_be_in(more: int) -> None:
    # Here every set is priced; what rounding has made of them is read from the rows.
    looked_at = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        share = 10.0 ** -rng.uniform(0.5, 3.3)
        X = rng.standard_normal((9, 12))
        X[:, 5] = X[:, 2] + share * rng.standard_normal(9)
        X[:, 8] = X[:, 5] + 0.1 * share * rng.standard_normal(9)
        Y = 0.1 * rng.standard_normal((9, 2)) + (X[:, [5]] - X[:, [2]]) / share
        include = [[2], [2, 7], [2, 5]][seed % 3]
        one = Posed(X, Y, len(include) + more, include=include, share=0.1 * share)
        problem, objectives = one.problem(), one.objectives
        tree = make_tree(problem, one.k)
        if not isinstance(tree, ColumnTree):
            continue
        looked_at += 1
        slack = tree.tolerance + one.rounding * problem.total
        explored = tree.explore(tree.root()[0], inf, 1000, stop(), quick=False)
        assert {found.columns for found in explored.found} == objectives.keys()
        for found in explored.found:
            if found.objective != 0.0:
                assert found.objective == pytest.approx(objectives[found.columns], abs=slack)
        check_drive(one, 1, sorted(objectives, key=objectives.__getitem__)[3])
    assert looked_at > 10


# The same optimum by cuts and integer programs: f is convex in the choice z if there is a ridge.


def optimum_by_cuts(reference: Reference, k: int) -> float:
    """min f(z), f(z) = tr Yᵀ(I + XZXᵀ/γ)⁻¹Y: tangents below it, until one meets it."""
    X, Y, gamma = reference.X, reference.Y, reference.penalty
    d = X.shape[1]
    rows, levels, upper = [], [], inf
    z = np.full(d, k / d)
    total = LinearConstraint(np.append(np.ones(d), 0.0)[None], k, k)
    for _ in range(2000):
        alpha = np.linalg.solve(np.eye(len(X)) + (X * z) @ X.T / gamma, Y)
        slope = -((X.T @ alpha) ** 2).sum(axis=1) / gamma
        value = float((Y * alpha).sum())
        if np.isin(z, (0.0, 1.0)).all():
            upper = min(upper, value)
        rows.append(np.append(slope, -1.0))
        levels.append(float(slope @ z) - value)
        solved = milp(
            np.append(np.zeros(d), 1.0),
            constraints=[total, LinearConstraint(np.array(rows), -inf, np.array(levels))],
            integrality=np.append(np.ones(d), 0.0),
            bounds=Bounds(np.zeros(d + 1), np.append(np.ones(d), inf)),
            options={"mip_rel_gap": 1e-9},
        )
        assert solved.success
        if upper - solved.fun <= 1e-7 * reference.total:
            return upper
        z = np.round(solved.x[:d])
    raise AssertionError("cuts did not close")


@pytest.mark.parametrize(
    ("seed", "k", "ridge", "c"), [(0, 3, 0.5, 1), (1, 4, 1.0, 1), (2, 5, 2.0, 1), (3, 4, 1.0, 2)]
)
def test_an_integer_program_has_the_same_optimum(seed: int, k: int, ridge: float, c: int) -> None:
    X, Y = make_numbers(n=50, d=12, c=c, seed=seed)
    expected = optimum_by_cuts(Reference(X, Y, ridge=ridge), k)
    problem = Problem.from_arrays(X, Y, ridge=ridge)
    certificate = certify(problem, features=list(range(k)), n_jobs=1)
    assert certificate.proven
    assert certificate.upper == pytest.approx(expected, rel=1e-6)


# In fractions: the same inputs to the last bit, and no rounding at all.


def exact(M: Floats) -> list[list[Fraction]]:
    return [[Fraction(float(value)) for value in row] for row in np.atleast_2d(M)]


def eliminated(M: list[list[Fraction]], B: list[list[Fraction]]) -> tuple[list[Fraction], Fraction]:
    """Pivots of M in order, and tr BᵀM⁻¹B, by elimination."""
    M, B, pivots, explained = [row[:] for row in M], [row[:] for row in B], [], Fraction(0)
    for i in range(len(M)):
        pivot = M[i][i]
        pivots.append(pivot)
        if pivot <= 0:
            break
        explained += sum(value * value for value in B[i]) / pivot
        for j in range(i + 1, len(M)):
            by = M[j][i] / pivot
            M[j] = [a - by * b for a, b in zip(M[j], M[i], strict=True)]
            B[j] = [a - by * b for a, b in zip(B[j], B[i], strict=True)]
    return pivots, explained


def explained_exactly(E: Floats, C: Floats, S: Sequence[int]) -> Fraction:
    at = list(S)
    return eliminated(exact(E[np.ix_(at, at)]), exact(C[at]))[1]


@settings(max_examples=20, **FIXED)
@given(st.integers(0, 1000), st.integers(4, 7), st.sampled_from([0.0, 1e-1, 1e-2]), st.data())
def test_bounds_hold_in_exact_arithmetic(seed: int, d: int, share: float, data: Any) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)))
    if share:
        X[:, 1] = X[:, 0] + share * rng.standard_normal(30)
    problem = Problem.from_arrays(X, targets(rng, X, "numbers"))
    m = data.draw(st.integers(1, d - 1))
    column_problem = make_column_problem(problem, m)
    assert column_problem is not None
    E, C = column_problem.block(np.arange(d)), column_problem.C
    least = float(np.linalg.eigvalsh(E)[0])
    values = {S: explained_exactly(E, C, S) for S in combinations(range(d), m)}
    best = max(values.values())
    tree = make_tree(problem, m)
    assert isinstance(tree, ColumnTree)
    slack = Fraction(tree.tolerance)
    for need in (-inf, float(best) * (1 - 1e-9), float(best) * 0.9):
        relaxed = relax(E, C, m, least, need, tree.margin)
        kept, delta, weights = relaxed.columns, relaxed.delta, relaxed.weights
        M = E[np.ix_(kept, kept)] - np.diag(delta)
        assert min(eliminated(exact(M), exact(C[kept]))[0]) > 0
        inner = [S for S in values if set(S) <= set(kept.tolist())]
        bound, _ = bound_of(E[np.ix_(kept, kept)], C[kept], delta, weights, m)
        own = max(values[S] for S in inner)
        assert Fraction(bound) >= own - slack
        assert Fraction(relaxed.explained) >= own - slack
        # Sets with a column that was left out explain no more than needed.
        for S, value in values.items():
            assert S in inner or float(value) <= need + tree.tolerance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "QUICK_BUDGET", 1)
        parts, rounds = tree.root(), 0
        while parts and rounds < 4:
            part = parts.pop()
            explored = tree.explore(part, inf, 1, stop(), quick=True)
            for left in [part, *explored.left]:
                own = [v for S, v in values.items() if holds(tree, left, S)]
                most = Fraction(column_problem.total) - Fraction(left.bound)
                assert most >= max(own, default=most) - slack
            parts += explored.left
            rounds += 1


@pytest.mark.parametrize("share", [1e-1, 1e-2])
def test_a_diagonal_stays_below_the_matrix_within_the_tree(share: float) -> None:
    """The Δ of parts that are left: what is left of M beside those inside has no negative pivot."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 12)) @ (np.eye(12) + 0.5 * rng.standard_normal((12, 12)))
    X[:, 7] = X[:, 3] + share * rng.standard_normal(50)
    tree = make_tree(Problem.from_arrays(X, targets(rng, X, "several")), 6)
    assert isinstance(tree, ColumnTree)
    E = tree.column_problem.block(tree.relaxed.columns)
    seen = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "QUICK_BUDGET", 1000)
        parts = tree.root()
        while parts and seen < 12:
            part = parts.pop()
            branch: Any = part.state
            order = [*branch.inside.tolist(), *branch.free.tolist()]
            M = E[np.ix_(order, order)] - np.diag(
                np.append(np.zeros(len(branch.inside)), branch.delta)
            )
            assert (branch.delta > 0).all()
            assert min(eliminated(exact(M), exact(np.zeros((len(M), 1))))[0]) > 0
            parts += tree.explore(part, inf, 1, stop(), quick=True).left
            seen += 1
    assert seen > 5


def test_a_table_too_wide_to_look_through_gets_a_bound_that_holds() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 700))
    y = X[:, :4] @ np.array([3.0, -2.0, 2.0, 1.0]) + 0.1 * rng.standard_normal(30)
    problem = Problem.from_arrays(X, y, ridge=0.2)
    known = solve(problem, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactk.proof.make_tree.MOST_BOUNDED", 1)
        tree = make_tree(problem, 4)
    assert isinstance(tree, BoundTree)
    (root,) = tree.root()
    assert 0.0 < root.bound <= known.objective
