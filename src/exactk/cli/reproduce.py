"""The words and the code that come to the same features again."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.tables import is_passed_over

if TYPE_CHECKING:
    from exactk.cli.given import Given
    from exactk.cli.sought import Sizing, Sought

__all__ = ["checksum", "command_line", "python_code"]

# A larger file is read once more only for its checksum, which nobody waits for.
MOST_BYTES = 2**30
READERS = {
    ".parquet": "pd.read_parquet({})", ".pq": "pd.read_parquet({})",
    ".feather": "pd.read_feather({})", ".arrow": "pd.read_feather({})",
    ".csv": "pd.read_csv({})", ".tsv": "pd.read_csv({}, sep='\\t')",
    ".csv.gz": "pd.read_csv({})", ".tsv.gz": "pd.read_csv({}, sep='\\t')",
}  # fmt: skip


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
    given: Given, sought: Sought, sizing: Sizing, k: int | None, seconds: float | None = None
) -> str:
    """Return Python code that gives the same features.

    Parameters
    ----------
    given, sought, sizing
        What the command was given.
    k : int or None
        None has it chosen.
    seconds : float or None
        Of a proof that found better features than the search.
    """
    reader = _reader(given.table)
    if reader is None or given.classes or sizing.row_groups is not None:
        return _from_problem(given, sought, sizing, k)
    lines = ["import pandas as pd", "", *_imports(given, sought), "", f"table = {reader}"]
    lines.append(f"y = table.pop({given.target!r})")
    weights = ""
    if given.weights is not None:
        lines.append(f"weights = table.pop({given.weights!r})")
        weights = ", sample_weight=weights"
    if given.columns:
        lines.append(f"table = table[{[c for c in given.columns if c not in given.drop]!r}]")
    elif given.drop:
        lines.append(f"table = table.drop(columns={list(given.drop)!r})")
    options = _selector(given, sought, sizing, k)
    if seconds is not None:
        options["certify"] = repr(seconds)
    words = ", ".join(f"{name}={value}" for name, value in options.items())
    lines += [
        f"selector = TopKSelector({words})",
        f"selector.fit(table, y{weights})",
        'print(*table.columns[selector.selected_], sep="\\n")',
    ]
    return "\n".join(lines)


def _reader(table: str | None) -> str | None:
    """How pandas reads a file; None for what it does not read as one table in memory."""
    if table is None or is_passed_over(table):
        return None
    endings = sorted(READERS, key=len, reverse=True)
    ending = next((one for one in endings if table.lower().endswith(one)), None)
    return None if ending is None else READERS[ending].format(repr(table))


def _imports(given: Given, sought: Sought) -> list[str]:
    rich = bool(given.loss.get_params() or sought.settings)
    return [*(["import exactk"] if rich else []), "from exactk import TopKSelector"]


def _method(sought: Sought) -> str:
    if not sought.settings:
        return repr(sought.method)
    words = "".join(f", {name}={value!r}" for name, value in sought.settings.items())
    return f"exactk.registry.create({sought.method!r}{words})"


def _loss(given: Given) -> str:
    found = given.loss.get_params()
    if not found:
        return repr(given.loss.name)
    words = "".join(f", {name}={value!r}" for name, value in found.items())
    return f"exactk.losses.create({given.loss.name!r}{words})"


def _selector(given: Given, sought: Sought, sizing: Sizing, k: int | None) -> dict[str, str]:
    """Parameters of a selector that differ from its defaults, as code."""
    usual = {
        "method": (_method(sought), "'exchange'"),
        "ridge": (repr(given.ridge), "'auto'"),
        "task": (repr(given.task), "'auto'"),
        "loss": (_loss(given), "'squared'"),
        "class_weight": (repr(given.class_weight), "None"),
        "effort": (repr(sought.effort), "None"),
        "random_state": (repr(sought.seed), "None"),
    }
    found = {"k": repr("auto" if k is None else k)}
    found |= {name: value for name, (value, default) in usual.items() if value != default}
    if k is None:
        sizes = {"k_max": sizing.k_max, "criterion": sizing.criterion, "cv": sizing.folds,
                 "rule": sizing.rule}  # fmt: skip
        found |= {name: repr(value) for name, value in sizes.items() if value is not None}
    return found | {name: repr(value) for name, value in given.constraints.items()}


def _from_problem(given: Given, sought: Sought, sizing: Sizing, k: int | None) -> str:
    """The same by a problem, for tables that are passed over, and for moments."""
    lines = ["import exactk", ""]
    if given.table is None:
        lines.append(
            f"problem = exactk.Problem.from_moments(exactk.Moments.load({given.moments!r}))"
        )
    else:
        dropped = [*given.drop, *([] if sizing.row_groups is None else [sizing.row_groups])]
        asked: dict[str, Any] = {
            "target": given.target, "columns": given.columns or None, "drop": dropped or None,
            "weights": given.weights, "classes": given.classes or None,
            "task": None if given.task == "auto" else given.task,
        }  # fmt: skip
        words = "".join(f", {name}={value!r}" for name, value in asked.items() if value)
        lines.append(f"problem = exactk.Problem.from_files({given.table!r}{words})")
    if given.loss.name != "squared":
        lines.append(f"problem = problem.with_loss({_loss(given)})")
    if given.class_weight is not None:
        lines.append(f"problem = problem.with_class_weight({given.class_weight!r})")
    if given.constraints:
        rules = ", ".join(f"{name}={value!r}" for name, value in given.constraints.items())
        lines.append(f"problem = problem.with_constraints({rules})")
    options = "".join(
        f", {name}={value!r}"
        for name, value in {
            "effort": sought.effort, "random_state": sought.seed, **sought.settings,
        }.items()
        if value is not None
    )  # fmt: skip
    if k is None:
        sizes = {"criterion": sizing.criterion, "cv": sizing.folds, "rule": sizing.rule}
        more = "".join(f", {name}={value!r}" for name, value in sizes.items() if value is not None)
        # The groups of the rows are a column that the page cannot read for the reader.
        groups = ", groups=groups" if sizing.row_groups is not None else ""
        if groups:
            lines.append(f"groups = ...  # the column {sizing.row_groups!r}, in the same order")
        lines += [
            f"choice = exactk.choose_k(problem, {sizing.k_max!r}, method={sought.method!r}, "
            f"ridge={given.ridge!r}{more}{groups}{options})",
            'print(*choice.result.selected, sep="\\n")',
        ]
        return "\n".join(lines)
    lines += [
        f"ridge = exactk.resolve_ridge({given.ridge!r}, problem, {k})",
        f"result = exactk.solve(problem.with_ridge(ridge), {k}, {sought.method!r}{options})",
        'print(*result.selected, sep="\\n")',
    ]
    return "\n".join(lines)
