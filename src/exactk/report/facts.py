"""Facts of a report that are not results: the table, the call and the code that repeats it."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from exactk._version import __version__
from exactk.errors import join_items, render
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.model_selection.choose_k import AutoK
from exactk.problem.constraints import Constraints
from exactk.problem.problem import Problem
from exactk.report.data_warnings import class_rows, rows_are_compared
from exactk.report.figure_data import plain

__all__ = [
    "call_source", "changed_parameters", "constraint_words", "name_of_target", "python_code",
    "table_facts", "versions",
]  # fmt: skip

# Names in the words of a constraint.
MOST_NAMES = 12
# A longer value is shown by the name of its parameter.
LONGEST_VALUE = 500
# Lines of the code that is shown.
LINE = 88


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on.

    Examples
    --------
    >>> list(versions())
    ['exactk', 'python', 'numpy', 'scipy', 'scikit-learn']
    """
    found = {"exactk": __version__, "python": platform.python_version()}
    return found | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}


def table_facts(problem: Problem) -> dict[str, Any]:
    """Return what a report says about the table, the loss and the constraints."""
    counts = class_rows(problem)
    classes = None
    if counts is not None and problem.classes is not None:
        pairs = zip(problem.classes, counts.tolist(), strict=True)
        classes = [{"label": str(label), "rows": rows} for label, rows in pairs]
    options = problem.loss.get_params()
    return {
        "task": problem.task,
        "loss": problem.loss.name,
        "loss_options": {name: _plain_or_text(value) for name, value in options.items()},
        "standardised": problem.scaled,
        "class_weights": ", ".join(map(str, problem.class_weights)) or None,
        "n_rows": problem.n_rows,
        "n_features": len(problem.original_names),
        "classes": classes,
        "outputs": _outputs(problem),
        "constraints": constraint_words(problem),
        "assumptions": [render(assumption) for assumption in problem.assumptions],
        "in_memory": problem.rows is not None,
        "rows_compared": rows_are_compared(problem),
        "weighted": problem.row_weights is not None,
    }


def constraint_words(problem: Problem) -> dict[str, str]:
    """Return the constraints of a problem in words, without the groups of its text columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> problem = Problem.from_arrays(X, y).with_constraints(exclude=[3], max_correlation=0.9)
    >>> constraint_words(problem)
    {'exclude': "'petal width (cm)'", 'max_correlation': '0.9'}
    """
    rules = problem.rules
    if rules is None:
        return {}

    def names(columns: Sequence[int]) -> str:
        found = dict.fromkeys(problem.original_names[problem.input_columns[j]] for j in columns)
        return join_items(found, MOST_NAMES)

    encoded = {group.name for group in problem.category_groups}
    groups = [f"{one.name}: {names(one.columns)}" for one in rules.feature_groups
              if one.name not in encoded]  # fmt: skip
    quotas = [
        f"{one.at_least} to {'any number' if one.at_most is None else one.at_most} of {one.name}: "
        f"{names(one.columns)}"
        for one in rules.quotas
    ]
    words = {
        "include": names(rules.include),
        "exclude": names(rules.exclude),
        "feature_groups": "; ".join(groups),
        "quotas": "; ".join(quotas),
        "budget": "" if rules.budget is None else f"{rules.budget:g}",
        "max_correlation": "" if rules.max_correlation is None else f"{rules.max_correlation:g}",
    }
    return {name: text for name, text in words.items() if text}


def name_of_target(y: Any) -> str:
    """Return the name of a series or of a frame with one column, or "y"."""
    columns = list(getattr(y, "columns", ()))
    name = columns[0] if len(columns) == 1 else getattr(y, "name", None)
    return "y" if name is None else str(name)


def changed_parameters(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that differ from their defaults, without the table and `verbose`."""
    parameters = inspect.signature(function).parameters
    return {
        name: value for name, value in given.items()
        if name not in ("X", "y", "verbose") and not _is_same(value, parameters[name].default)
    }  # fmt: skip


def _is_same(value: Any, default: Any) -> bool:
    if isinstance(value, (list, tuple)) and isinstance(default, tuple):
        return list(value) == list(default)
    # Only plain values: an array has no single truth value.
    is_plain = isinstance(value, (str, int, float, type(None)))
    return is_plain and bool(value == default)


def call_source(changed: Mapping[str, Any]) -> dict[str, str]:
    """Return changed parameters as Python source; a value without one by the parameter's name.

    Examples
    --------
    >>> call_source({"k": 4, "constraints": Constraints(exclude=["age"]), "cv": np.zeros(3)})
    {'k': '4', 'constraints': '{"exclude": ["age"]}', 'cv': 'cv'}
    """
    found = {name: _source(value) for name, value in changed.items()}
    return {
        name: text if text and len(text) <= LONGEST_VALUE else name for name, text in found.items()
    }


def python_code(call: Mapping[str, str], read: Mapping[str, Any] | None, given: str) -> str:
    """Return the lines of Python that make a report again.

    These are calls of `exactk.read_table` and `exactk.investigate` with the changed parameters
    `read` and `call`. Without a file the table is what is `given`: ``"X, y"`` or ``"problem"``.

    Examples
    --------
    >>> print(python_code({"k": "4"}, {"path": "wine.csv", "target": "cultivar"}, ""))
    import exactk
    <BLANKLINE>
    data = exactk.read_table("wine.csv", "cultivar")
    report = exactk.investigate(data.problem, target=data.target, k=4)
    report.save("report.html")
    """
    lines, call = ["import exactk", ""], dict(call)
    if read is not None:
        given = "data.problem"
        call = {"target": "data.target", **{key: call[key] for key in call if key != "target"}}
        if "groups" in call:
            call["groups"] = "data.groups"
        values = call_source(read)
        first = [values.pop(name) for name in ("path", "target") if name in values]
        arguments = [*first, *(f"{name}={text}" for name, text in values.items())]
        lines += _call("data = exactk.read_table", arguments)
    arguments = [given, *(f"{name}={text}" for name, text in call.items())]
    lines += _call("report = exactk.investigate", arguments)
    return "\n".join([*lines, 'report.save("report.html")'])


def _call(function: str, arguments: list[str]) -> list[str]:
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= LINE:
        return [line]
    return [f"{function}(", *(f"    {argument}," for argument in arguments), ")"]


def _source(value: Any) -> str:
    """Return Python source of a value; empty for an array or another object without one."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str):
        return repr(value) if '"' in repr(value) else f'"{repr(value)[1:-1]}"'
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, Constraints):
        value = value.to_dict()
    if isinstance(value, AutoK):
        return f"exactk.{_estimator_source(value)}"
    if isinstance(value, Method):
        return _method_source(value)
    if isinstance(value, BaseEstimator):
        return _estimator_source(value)
    if isinstance(value, Mapping):
        parts = {_source(key): _source(one) for key, one in value.items()}
        whole = all(parts) and all(parts.values())
        return f"{{{', '.join(f'{key}: {one}' for key, one in parts.items())}}}" if whole else ""
    if isinstance(value, (list, tuple)):
        listed = [_source(one) for one in value]
        return f"[{', '.join(listed)}]" if all(listed) else ""
    return ""


def _estimator_source(value: Any) -> str:
    """Return the repr of scikit-learn, which shows changed parameters, without "..."."""
    return " ".join(value.__repr__(N_CHAR_MAX=10 * LONGEST_VALUE).split())


def _method_source(method: Method) -> str:
    name = type(method).__name__.lower()
    if name not in registry.names() or registry.method_class(name) is not type(method):
        return ""
    defaults = type(method)().get_params()
    changed = {key: one for key, one in method.get_params().items() if one != defaults[key]}
    arguments = [_source(name), *(f"{key}={text}" for key, text in call_source(changed).items())]
    return f"exactk.registry.create({', '.join(arguments)})"


def _outputs(problem: Problem) -> list[str]:
    if problem.classes is not None:
        return [str(label) for label in problem.classes]
    several = problem.n_outputs > 1
    return [f"output {i}" for i in range(problem.n_outputs)] if several else ["coefficient"]


def _plain_or_text(value: Any) -> Any:
    """Return a number that JSON can hold, else the text of a value."""
    number = plain(value) if isinstance(value, float) else None
    return str(value) if number is None else number
