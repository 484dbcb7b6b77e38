"""Several sizes in one run are what a run for each size gives."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

from exactk import Problem, Result, solve
from exactk.methods import registry
from exactk.papers.experiments import several_sizes
from exactk.papers.experiments.several_sizes import select_sizes
from exactk.papers.filters.base import Filter
from exactk.papers.methods.base import PenaltyMethod
from tests.support import over, refused, says

ONE_RUN = [name for name in registry.names() if several_sizes.shares_sizes(name)]


@cache
def problem(kind: str) -> Problem:
    rng = np.random.default_rng(5)
    if kind == "wine":
        return Problem.from_arrays(*load_wine(return_X_y=True))
    if kind == "wide":
        X = rng.standard_normal((30, 60)).round(1)
        return Problem.from_arrays(X, np.arange(30) % 3, gram="columns")
    # Copies, constants and few levels: ties, and fewer candidates than columns.
    X = rng.integers(-1, 2, (40, 9)) * 2.0
    X = np.column_stack([X, -X[:, 2], X[:, 4], np.ones(40), X[:, 0] + X[:, 1]])
    return Problem.from_arrays(X, np.arange(40) % 2)


def alone(problem: Problem, k: int, method: Any, **options: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, k, method, **options)


def without_seconds(result: Result) -> dict[str, Any]:
    """All but the time, and the scores of columns that are not chosen."""
    values = {key: value for key, value in result.to_dict().items() if key != "seconds"}
    if result.scores is not None:
        values["scores"] = result.scores[result.support].tolist()
    return values


def test_which_methods_run_once() -> None:
    assert {"greedy", "fisher", "relieff", "mrmr", "svmrfe", "gsrfs", "rfs", "dlsr"} <= set(ONE_RUN)
    assert not {"exchange", "cfs", "cdlsr", "nmapg", "exhaustive"} & set(ONE_RUN)
    for name in ONE_RUN:
        assert issubclass(registry.method_class(name), (Filter, PenaltyMethod)) or name == "greedy"


@pytest.mark.parametrize("kind", ["wine", "wide", "tied"])
@pytest.mark.parametrize("name", over(ONE_RUN))
def test_one_run_gives_the_answer_of_every_size(name: str, kind: str) -> None:
    given = problem(kind)
    if refused(name, given):
        return
    wanted = [7, 1, 3, given.n_usable] if kind != "wide" else [7, 1, 20]
    for k, result in zip(wanted, select_sizes(given, wanted, name), strict=True):
        assert without_seconds(result) == without_seconds(alone(given, k, name)), k


@pytest.mark.parametrize("name", ["exchange", "nmapg", "cfs", "cdlsr"])
def test_other_methods_run_for_each_size(name: str) -> None:
    given = problem("wine")
    for k, result in enumerate(select_sizes(given, [1, 2, 3], name), start=1):
        assert without_seconds(result) == without_seconds(alone(given, k, name))


def test_a_method_runs_as_often_as_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = registry.method_class("relieff")
    calls = []
    rank = cls.rank  # type: ignore[attr-defined]
    monkeypatch.setattr(cls, "rank", lambda *args: calls.append(args[2]) or rank(*args))
    found = select_sizes(problem("wine"), [2, 6, 4], "relieff")
    assert calls == [6]
    assert [result.k for result in found] == [2, 6, 4]
    assert found[0].seconds > 10 * found[1].seconds
    assert {result.method for result in found} == {"relieff"}


def test_a_configured_method_and_its_options() -> None:
    given = problem("wine")
    method = registry.create("gsrfs", lam=5.0)
    found = select_sizes(given, [2, 4], method, p=1.0)
    for k, result in zip([2, 4], found, strict=True):
        assert without_seconds(result) == without_seconds(alone(given, k, method, p=1.0))
    assert method.p == 0.5  # type: ignore[attr-defined]


def test_it_is_quiet_and_the_status_says_so() -> None:
    found = select_sizes(problem("wine"), [2, 3], "gsrfs", max_iter=1)
    assert {str(result.status) for result in found} == {"max_iter"}


def test_what_cannot_be_selected_is_refused() -> None:
    given = problem("wine")
    with says("different sizes", "[2, 2]"):
        select_sizes(given, [2, 2], "fisher")
    with says("different sizes"):
        select_sizes(given, [], "fisher")
    with says("k"):
        select_sizes(given, [2, 14], "fisher")
    numbers = Problem.from_arrays(*load_wine(return_X_y=True), task="regression")
    with says("'fisher' needs classes"):
        select_sizes(numbers, [1, 2], "fisher")
    with says("lam", "-1"):
        select_sizes(given, [1, 2], "gsrfs", lam=-1)
    with pytest.raises(TypeError, match="'gsrfs' has no option 'lamb'; did you mean 'lam'"):
        select_sizes(given, [1, 2], "gsrfs", lamb=1)
