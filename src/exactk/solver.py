"""The one gate: checks what is asked, runs a method, grades its answer, the same way for all."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from exactk.errors import InputError, Setting, Text, join_items, render, show_value
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.methods.iteration import Step
from exactk.params import validate
from exactk.problem.constraints import Rules
from exactk.problem.problem import Problem
from exactk.result import Answer, Path, Result, Status
from exactk.search.descent import entry_order
from exactk.search.infeasibility import check_feasible
from exactk.search.loss_pricing import entry_order_by_loss
from exactk.search.unit_search import unit_entry_order
from exactk.streaming.to_memory import TooLargeError
from exactk.utils.monitor import Monitor
from exactk.utils.progress import show_progress

__all__ = ["check_problem", "check_time_limit", "grade", "solve", "solve_path"]

MESSAGES = {
    Status.MAX_ITER: "the iteration limit came before convergence; raise max_iter",
    Status.TIME_LIMIT: "the time limit ended the search; this is the best found until then",
    Status.INTERRUPTED: "stopped by the user; this is the best found until then",
    Status.FAILED: (
        "the iterates diverged; these are the columns of the last good one. Other parameters of "
        "the method, or method='exchange', may do better"
    ),
}


def solve(
    problem: Problem,
    k: int,
    method: str | Method = "exchange",
    *,
    time_limit: float | None = None,
    verbose: int = 0,
    callback: Callable[[Step], None] | None = None,
    **options: Any,
) -> Result:
    """Pick exactly k columns.

    Parameters
    ----------
    problem : Problem
    k : int
        How many columns.
    method : str or Method
        A name (`exactk.methods.registry.names`) or a configured method object.
    time_limit : float or None
        Seconds after which the best found so far is returned.
    verbose : int
        1 shows a progress bar on a terminal.
    callback : callable or None
        Called with each iteration of a method that iterates, start after start where it makes
        several: its ``support``, ``value`` and ``converged``, and with ``inside()`` the arrays
        that the method shows, such as row norms.
    **options
        Parameters of the method, for example ``effort=0``.

    Returns
    -------
    Result

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_breast_cancer
    >>> problem = exactk.Problem.from_arrays(*load_breast_cancer(return_X_y=True))
    >>> result = exactk.solve(problem, 5)
    >>> result.support, round(result.objective, 4), str(result.status)
    (array([ 2,  7, 20, 21, 23]), 70.3327, 'converged')
    """
    k = check_problem(problem).check_k(k)
    chosen, name = _method(method, options)
    limit = check_time_limit(time_limit)
    validate({"verbose": verbose})
    if callback is not None and not callable(callback):
        raise InputError(
            parameter="callback", value=callback, expected="None, or callable with one argument"
        )
    problem = _serve(problem, chosen, name, verbose)
    check_feasible(problem, k, limit)
    with show_progress(f"{name}, k={k}", verbose) as show:
        monitor = Monitor(limit, show, callback)
        answer = chosen.run(_with_loss_for(problem, chosen), k, monitor)
        seconds = monitor.seconds
    result = grade(problem, k, _checked(problem, k, answer, chosen), name, seconds)
    _warn(result)
    return result


def solve_path(
    problem: Problem,
    k_max: int,
    method: str | Method = "exchange",
    *,
    time_limit: float | None = None,
    verbose: int = 0,
    **options: Any,
) -> Path:
    """Pick k columns for every k = 1..k_max.

    Parameters
    ----------
    problem : Problem
    k_max : int
        The largest size.
    method, verbose, **options
        As in `solve`. ``exchange`` shares the search of about two sizes out among all of them:
        for one size alone `solve` looks longer and may find a better support.
    time_limit : float or None
        Seconds for the whole path, at most; a path ends by itself and does not use up the rest.

    Returns
    -------
    Path
        One `Result` for each k; by ``exchange`` and ``greedy`` the objective never rises with k.
        Under constraints it may, where a larger set cannot contain a smaller one, and sizes at
        which no set keeps them (or none was found in time) are left out.
        After Ctrl-C the sizes found until then, with status ``interrupted``.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C came before any size was found.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> path = exactk.solve_path(problem, 3)
    >>> [result.support.tolist() for result in path]
    [[2], [1, 3], [1, 2, 3]]
    """
    k_max = check_problem(problem).check_k(k_max)
    chosen, name = _method(method, options)
    limit = check_time_limit(time_limit)
    validate({"verbose": verbose})
    problem = _serve(problem, chosen, name, verbose)
    results, most = [], k_max
    if problem.rules is not None and problem.rules.is_simple:
        # Columns that are excluded cannot make up the number.
        most = min(k_max, len(np.setdiff1d(problem.usable, problem.rules.exclude)))
    with show_progress(f"{name}, k=1..{k_max}", verbose) as show:
        monitor = Monitor(limit, show)
        before = 0.0
        seen = _with_loss_for(problem, chosen)
        answers = chosen.run_path(seen, most, monitor) if most else iter(())
        try:
            for k, answer in enumerate(answers, start=1):
                if answer is None:
                    continue
                answer = _checked(problem, k, answer, chosen)
                results.append(grade(problem, k, answer, name, monitor.seconds - before))
                # Grading is no time of the method's.
                before = monitor.seconds
        except KeyboardInterrupt:
            if not results:
                raise
            message = f"Stopped by Ctrl-C: sizes above {results[-1].k} were not searched."
            results[-1] = replace(results[-1], status=Status.INTERRUPTED, message=message)
    if not results:
        # No size up to k_max can be had: the largest says why.
        check_feasible(problem, k_max, limit)
    _warn(results[-1])
    return Path(results)


def check_problem(problem: object) -> Problem:
    """Return a problem, or say that this is none."""
    if not isinstance(problem, Problem):
        raise InputError(
            f"problem must be an exactk.Problem, not {type(problem).__name__}", parameter="problem",
            hint="make one with Problem.from_arrays(X, y)",
        )  # fmt: skip
    return problem


def _method(method: str | Method, options: dict[str, Any]) -> tuple[Method, str]:
    if isinstance(method, str):
        return registry.create(method, **options), method
    if not isinstance(method, Method):
        raise InputError(parameter="method", value=method, expected="a name or a method object")
    name = type(method).__name__.lower()
    registry.check_options(name, method.option_names(), options)
    copy: Method = clone(method)
    return copy.set_params(**options), name


def _serve(problem: Problem, method: Method, name: str, verbose: int) -> Problem:
    """Return the problem as the method needs it; what cannot work is refused before any work."""
    method.check()
    if method.needs_rows and problem.rows is None and problem.stream is None:
        raise InputError(
            f"method {name!r} reads the rows of the table, and this problem was made of moments",
            parameter="method",
            hint="make it with Problem.from_arrays, or use a method of squared loss, as 'exchange'",
        )
    _check_classes(problem, method, name)
    _check_rules(problem, method, name)
    method.check_problem(problem)
    by_rows = method.needs_rows
    if not problem.loss.by_moments:
        by_rows, name = True, f"{name} with loss {problem.loss.name}"
    if by_rows and problem.rows is None:
        problem = _in_memory(problem, name, verbose)
    if not problem.loss.by_moments:
        # What is wrong with the target is said before any work.
        problem.criterion  # noqa: B018
    return problem


def _with_loss_for(problem: Problem, method: Method) -> Problem:
    """The problem with the loss that a method minimises, if it has no say in that."""
    return problem if method.takes_losses else problem.with_squared_loss


def _in_memory(problem: Problem, name: str, verbose: int) -> Problem:
    try:
        return problem.in_memory(verbose=verbose)
    except TooLargeError as error:
        others = [o for o in registry.names() if not registry.method_class(o).needs_rows]
        raise InputError(
            (f"method {name!r} needs all rows in memory: ", *_parts(error.message)),
            parameter="memory_limit",
            hint=(*_parts(error.hint), ", or use a method that needs no more than passes over "
                  f"them: {', '.join(others)}"),
        ) from error  # fmt: skip


def _parts(text: Text) -> Sequence[str | Setting]:
    return [text] if isinstance(text, (str, Setting)) else text


def _check_classes(problem: Problem, method: Method, name: str) -> None:
    if method.needs_classes and problem.classes is None:
        way: list[str | Setting]
        if problem.task == "classification":
            what, way = "several labels a row", ["give one column of y"]
        else:
            what = "numbers"
            way = ["set ", Setting("task", "classification"), " if they are classes"]
        raise InputError(
            f"method {name!r} needs classes, one a row, and y holds {what}", parameter="method",
            hint=(*way, ", or use a method for any target such as 'exchange'"),
        )  # fmt: skip


def _check_rules(problem: Problem, method: Method, name: str) -> None:
    rules = problem.rules
    if rules is None or method.takes_rules or (rules.is_simple and not rules.include):
        return
    if problem.categories and rules == Rules(feature_groups=rules.feature_groups):
        names = join_items(group.name for group in rules.feature_groups)
        what = f"columns of {names} that enter together"
    else:
        what = "constraints other than exclude"
    able = [other for other in registry.names() if registry.method_class(other).takes_rules]
    raise InputError(
        f"method {name!r} does not keep {what}", parameter="method",
        hint=f"use one of {', '.join(able)}",
    )  # fmt: skip


def check_time_limit(time_limit: object) -> float | None:
    """Return a limit in seconds, or say why it is none."""
    if time_limit is None:
        return None
    number = isinstance(time_limit, (int, float, np.number)) and not isinstance(time_limit, bool)
    if not number or not time_limit > 0:  # type: ignore[operator]  # a number by now
        raise InputError(
            parameter="time_limit", value=time_limit, expected="a number of seconds above 0"
        )
    return float(min(time_limit, 1e9))  # type: ignore[call-overload]  # a number by now


def _checked(problem: Problem, k: int, answer: Any, method: Method) -> Answer:
    """Return what a method found, or say what is wrong with it: anybody may write a method."""
    rules = problem.rules or Rules()
    try:
        found = [index(column) for column in answer.support]
    except (AttributeError, TypeError):
        wrong = f"{show_value(answer)}, not an Answer whose support is a list of column numbers"
    else:
        size = rules.size_of(found)
        if len(set(found)) != len(found):
            wrong = f"a column twice: {show_value(found)}"
        elif not all(0 <= column < problem.n_features for column in found):
            wrong = (
                f"{show_value(found)}, and columns are numbers from 0 to {problem.n_features - 1}"
            )
        elif size > k or (size < k and (rules.feature_groups or _has_more(problem, found, method))):
            wrong = f"{size} of {k} features: {show_value(found)}"
        else:
            return answer
    raise InputError(
        f"method {type(method).__name__} returned {wrong}", parameter="method",
        hint="correct its method run",
    )  # fmt: skip


def _has_more(problem: Problem, found: list[int], method: Method) -> bool:
    """Whether a method of the user left out a column that is independent of what it found."""
    if type(method).__module__.startswith("exactk."):
        return False
    others = np.setdiff1d(problem.candidates, found)[:1]
    columns = np.array([*found, *others], dtype=np.intp)
    return problem.refit(np.sort(columns)).rank > len(found)


def grade(problem: Problem, k: int, answer: Answer, name: str, seconds: float = 0.0) -> Result:
    """Recompute what counts from the problem itself; a method's own figures are only a trace.

    Parameters
    ----------
    problem : Problem
    k : int
    answer : Answer
    name : str
        Of the method.
    seconds : float
        That it took.

    Returns
    -------
    Result
    """
    found = [index(p) for p in answer.support]
    rules = problem.rules or Rules()
    size = rules.size_of(found)
    status, message = answer.status, MESSAGES.get(answer.status, "")
    if status == Status.FAILED and answer.n_iter == 0:
        message = (
            "the iterates diverged at once; these are the columns of forward selection. Other "
            "parameters of the method, or method='exchange', may do better"
        )
    order = np.array(found, dtype=np.intp)
    if rules.feature_groups:
        order = np.array(unit_entry_order(problem, found), dtype=np.intp)
    elif not answer.ordered and problem.loss.by_moments:
        order = entry_order(problem, order)
    elif not answer.ordered:
        try:
            order = entry_order_by_loss(problem, order, answer.theta)
        except KeyboardInterrupt:
            # The columns are more than their order.
            status, message = Status.INTERRUPTED, MESSAGES[Status.INTERRUPTED]
    missing = k - size
    if missing:
        # Every other column depends on these: whichever are added, the objective is the same.
        spare = np.setdiff1d(problem.usable, [*order, *rules.exclude])
        if answer.scores is not None:
            spare = spare[np.argsort(-answer.scores[spare], kind="stable")]
        spare = spare[:missing]
        order = np.concatenate([order, spare])
    support = np.sort(order)
    fit = problem.refit(support) if missing else problem.refit(support, answer.theta)
    if fit.interrupted:
        status, message = Status.INTERRUPTED, MESSAGES[Status.INTERRUPTED]
    # With a ridge even copies have full rank; the method knows them as no candidates.
    rank = min(fit.rank, len(found))
    # Of a group all columns are there, whether they add something or not.
    if rank < len(support) and not rules.feature_groups:
        which = "asked for" if missing else "chosen"
        shortfall = (
            f"only {rank} of the {len(support)} columns {which} are independent: the other "
            f"{len(support) - rank} add nothing and are there to make up the number"
        )
        message = f"{shortfall}; {message}" if message else shortfall
        # An end that was not the method's own is the more important news.
        if status not in (Status.FAILED, Status.TIME_LIMIT, Status.INTERRUPTED):
            status = Status.RANK_DEFICIENT
    if fit.note:
        message = f"{message}; {fit.note}" if message else fit.note
    return Result(
        support=support,
        order=order,
        coef=fit.coef,
        intercept=fit.intercept,
        objective=fit.objective,
        residual=fit.residual,
        total=problem.total if problem.loss.by_moments else problem.null_model[1],
        status=status,
        message=message,
        trace=tuple(float(value) for value in answer.trace),
        n_iter=answer.n_iter,
        seconds=seconds,
        method=name,
        ridge=problem.ridge,
        feature_names=tuple(problem.name(p) for p in support),
        selected=_selected(problem, order),
        k=rules.size_of(support),
        classes=None if problem.classes is None else tuple(problem.classes.tolist()),
        scores=answer.scores,
        loss=problem.loss.name,
        input_columns=tuple(problem.input_columns[support].tolist()),
        assumptions=tuple(render(assumption) for assumption in problem.assumptions),
        included=tuple(problem.name(p) for p in support if int(p) in rules.include),
    )


def _selected(problem: Problem, order: npt.NDArray[np.intp]) -> tuple[str, ...]:
    """Names of what was chosen, as the user knows it: groups and columns of the table."""
    together = {} if problem.rules is None else problem.rules.group_of
    coded = {p: category.name for category in problem.categories for p in category.columns}
    names = (
        together[p].name if p in together else coded.get(p, problem.name(p)) for p in order.tolist()
    )
    return tuple(dict.fromkeys(names))


def _warn(result: Result) -> None:
    if result.status == Status.MAX_ITER:
        warnings.warn(result.message, ConvergenceWarning, stacklevel=3)
    elif result.status in (Status.RANK_DEFICIENT, Status.FAILED):
        warnings.warn(result.message, UserWarning, stacklevel=3)
