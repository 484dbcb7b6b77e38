"""The words and the code that come to the same features again."""

from __future__ import annotations

import hashlib
import shlex
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.reproduce_tables import frame_lines, group_lines, problem_lines

if TYPE_CHECKING:
    from exactk.cli.search_options import SearchOptions, SizeOptions
    from exactk.cli.table_options import TableOptions
    from exactk.problem.problem import Problem

__all__ = ["checksum", "command_line", "python_code"]

# A larger file is read once more only for its checksum, which nobody waits for.
MOST_BYTES = 2**30


def command_line(context: click.Context) -> str:
    """Return the command as it was typed, quoted for a shell."""
    words = context.find_root().obj or []
    return shlex.join(["exactk", *words])


def checksum(table: str | None) -> str | None:
    """Return the SHA-256 of a file; None of what is no single file, or is very large."""
    if table is None or not Path(table).is_file() or Path(table).stat().st_size > MOST_BYTES:
        return None
    with open(table, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def python_code(
    source: TableOptions,
    search: SearchOptions,
    sizing: SizeOptions,
    k: int | None,
    problem: Problem,
    *,
    held: bool,
    seconds: float | None = None,
) -> str:
    """Return Python code that gives the same features.

    Parameters
    ----------
    source, search, sizing
        What the command was given.
    k : int or None
        None has it chosen.
    problem : Problem
        What the command has made of its table.
    held : bool
        Whether its rows were read into memory, at once or later.
    seconds : float or None
        Of a proof that found better features than the search.
    """
    read = frame_lines(source, sizing.row_groups)
    if read is None:
        return _from_problem(source, search, sizing, k, problem, held, seconds)
    imports, lines = read
    options = _selector(source, search, sizing, k)
    if seconds is not None:
        options["certify"] = _code(seconds)
    words = ", ".join(f"{name}={value}" for name, value in options.items())
    weights = "" if source.weights is None else ", sample_weight=weights"
    groups = "" if sizing.row_groups is None else ", groups=groups"
    return "\n".join(
        [
            *imports,
            "",
            *_imports(source, search),
            "",
            *lines,
            f"selector = TopKSelector({words})",
            f"selector.fit(table, y{weights}{groups})",
            'print(*table.columns[selector.selected_], sep="\\n")',
        ]
    )


def _imports(source: TableOptions, search: SearchOptions) -> list[str]:
    rich = bool(source.loss.get_params() or search.settings)
    return [*(["import exactk"] if rich else []), "from exactk import TopKSelector"]


def _method(search: SearchOptions) -> str:
    if not search.settings:
        return repr(search.method)
    words = "".join(f", {name}={_code(value)}" for name, value in search.settings.items())
    return f"exactk.methods.registry.create({search.method!r}{words})"


def _seed(search: SearchOptions) -> Any:
    """The seed of everything, which may be given as a parameter of the method."""
    return search.settings.get("random_state", search.seed)


def _loss(source: TableOptions) -> str:
    found = source.loss.get_params()
    if not found:
        return repr(source.loss.name)
    words = "".join(f", {name}={_code(value)}" for name, value in found.items())
    return f"exactk.losses.create({source.loss.name!r}{words})"


def _selector(
    source: TableOptions, search: SearchOptions, sizing: SizeOptions, k: int | None
) -> dict[str, str]:
    """Parameters of a selector that differ from its defaults, as code."""
    usual = {
        "method": (_method(search), "'exchange'"),
        "ridge": (repr(source.ridge), "'auto'"),
        "task": (repr(source.task), "'auto'"),
        "loss": (_loss(source), "'squared'"),
        "class_weight": (repr(source.class_weight), "None"),
        "effort": (repr(search.effort), "None"),
        "random_state": (repr(_seed(search)), "None"),
    }
    found = {"k": repr("auto" if k is None else k)}
    found |= {name: value for name, (value, default) in usual.items() if value != default}
    if k is None:
        found |= {name: repr(value) for name, value in _sizes(sizing).items()}
    return found | {name: repr(value) for name, value in source.constraints.items()}


def _sizes(sizing: SizeOptions) -> dict[str, Any]:
    """What chooses a size and is not the default."""
    found = {
        "k_max": sizing.k_max, "criterion": sizing.criterion, "cv": sizing.folds,
        "rule": sizing.rule,
    }  # fmt: skip
    if sizing.criterion not in (None, "cv"):
        # The command has its folds for scores; the choice of a size refuses what it has no use for.
        del found["cv"]
    return {name: value for name, value in found.items() if value is not None}


def _code(value: Any) -> str:
    """A value as Python reads it: it writes infinity as no name that it knows."""
    if isinstance(value, float) and not isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _from_problem(
    source: TableOptions,
    search: SearchOptions,
    sizing: SizeOptions,
    k: int | None,
    problem: Problem,
    held: bool,
    seconds: float | None,
) -> str:
    """The same by a problem, for tables that are passed over, and for moments."""
    from exactk.methods.registry import method_class

    lines = problem_lines(source, sizing.row_groups, problem, held)
    if source.loss.name != "squared":
        lines.append(f"problem = problem.with_loss({_loss(source)})")
    if source.class_weight is not None:
        lines.append(f"problem = problem.with_class_weight({source.class_weight!r})")
    if source.constraints:
        rules = ", ".join(f"{name}={value!r}" for name, value in source.constraints.items())
        lines.append(f"problem = problem.with_constraints({rules})")
    effort = "" if search.effort is None else f", effort={search.effort!r}"
    seed = "" if _seed(search) is None else f", random_state={_seed(search)!r}"
    if k is None:
        more = "".join(f", {name}={value!r}" for name, value in _sizes(sizing).items())
        if sizing.row_groups is not None and sizing.criterion in (None, "cv"):
            lines += group_lines(source, sizing.row_groups, problem)
            more += ", groups=groups"
        lines += [
            f"choice = exactk.choose_k(problem, method={_method(search)}, "
            f"ridge={source.ridge!r}{more}{effort}{seed})",
            "result = choice.result",
        ]
    else:
        seeded = "random_state" in method_class(search.method).option_names()
        method = f"{_method(search)}{effort}{seed if seeded else ''}"
        lines += [
            f"problem = problem.with_ridge({source.ridge!r}, {k}{seed})",
            f"result = exactk.solve(problem, {k}, {method})",
        ]
    if seconds is not None:
        limit = _code(seconds)
        lines += [
            "problem = problem.with_ridge(result.ridge)",
            f"result = exactk.certify(problem, result, time_limit={limit}).result",
        ]
    return "\n".join([*lines, 'print(*result.selected, sep="\\n")'])
