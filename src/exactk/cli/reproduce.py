"""The words and the code that come to the same features again."""

from __future__ import annotations

import hashlib
import shlex
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.tables import is_passed_over
from exactk.sources.h5ad import is_h5ad

if TYPE_CHECKING:
    from exactk.cli.given import Given
    from exactk.cli.sought import Sizing, Sought

__all__ = ["checksum", "command_line", "python_code"]

# A larger file is read once more only for its checksum, which nobody waits for.
MOST_BYTES = 2**30
# Nothing is missing in a table that was accepted, and to pandas the word None would be.
CSV, TSV = (
    "pd.read_csv({}, keep_default_na=False)",
    "pd.read_csv({}, sep='\\t', keep_default_na=False)",
)
READERS = {
    ".parquet": "pd.read_parquet({})", ".pq": "pd.read_parquet({})",
    ".feather": "pd.read_feather({})", ".arrow": "pd.read_feather({})",
    ".csv": CSV, ".csv.gz": CSV, ".tsv": TSV, ".tsv.gz": TSV,
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
    given: Given,
    sought: Sought,
    sizing: Sizing,
    k: int | None,
    *,
    seconds: float | None = None,
    column: str | None = None,
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
    column : str or None
        A feature, if the rows of the table were read into memory.
    """
    reader = _reader(given.table)
    if reader is None or given.classes or sizing.row_groups is not None:
        return _from_problem(given, sought, sizing, k, seconds, column)
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
        options["certify"] = _seconds(seconds)
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


def _seed(sought: Sought) -> Any:
    """The seed of everything, which may be given as a parameter of the method."""
    return sought.settings.get("random_state", sought.seed)


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
        "random_state": (repr(_seed(sought)), "None"),
    }
    found = {"k": repr("auto" if k is None else k)}
    found |= {name: value for name, (value, default) in usual.items() if value != default}
    if k is None:
        sizes = {"k_max": sizing.k_max, "criterion": sizing.criterion, "cv": sizing.folds,
                 "rule": sizing.rule}  # fmt: skip
        found |= {name: repr(value) for name, value in sizes.items() if value is not None}
    return found | {name: repr(value) for name, value in given.constraints.items()}


def _seconds(seconds: float) -> str:
    return repr(seconds) if isfinite(seconds) else 'float("inf")'


def _from_problem(
    given: Given,
    sought: Sought,
    sizing: Sizing,
    k: int | None,
    seconds: float | None,
    column: str | None,
) -> str:
    """The same by a problem, for tables that are passed over, and for moments."""
    from exactk.registry import method_class

    lines = _opened(given, sizing, column)
    if given.loss.name != "squared":
        lines.append(f"problem = problem.with_loss({_loss(given)})")
    if given.class_weight is not None:
        lines.append(f"problem = problem.with_class_weight({given.class_weight!r})")
    if given.constraints:
        rules = ", ".join(f"{name}={value!r}" for name, value in given.constraints.items())
        lines.append(f"problem = problem.with_constraints({rules})")
    effort = "" if sought.effort is None else f", effort={sought.effort!r}"
    seed = "" if _seed(sought) is None else f", random_state={_seed(sought)!r}"
    if k is None:
        sizes = {"criterion": sizing.criterion, "cv": sizing.folds, "rule": sizing.rule}
        more = "".join(f", {name}={value!r}" for name, value in sizes.items() if value is not None)
        if sizing.row_groups is not None and sizing.criterion in (None, "cv"):
            lines += _groups(given, sizing.row_groups, column)
            more += ", groups=groups"
        lines += [
            f"choice = exactk.choose_k(problem, {sizing.k_max!r}, method={_method(sought)}, "
            f"ridge={given.ridge!r}{more}{effort}{seed})",
            "result = choice.result",
        ]
    else:
        seeded = "random_state" in method_class(sought.method).option_names()
        search = f"{_method(sought)}{effort}{seed if seeded else ''}"
        lines += [
            f"ridge = exactk.resolve_ridge({given.ridge!r}, problem, {k}{seed})",
            f"result = exactk.solve(problem.with_ridge(ridge), {k}, {search})",
        ]
    if seconds is not None:
        limit = _seconds(seconds)
        lines += [
            "problem = problem.with_ridge(result.ridge)",
            f"result = exactk.certify(problem, result, time_limit={limit}).result",
        ]
    return "\n".join([*lines, 'print(*result.selected, sep="\\n")'])


def _opened(given: Given, sizing: Sizing, column: str | None) -> list[str]:
    """The lines that make the problem."""
    if given.table is None:
        read = f"exactk.Problem.from_moments(exactk.Moments.load({given.moments!r}))"
        return ["import exactk", "", f"problem = {read}"]
    dropped = [*given.drop, *([] if sizing.row_groups is None else [sizing.row_groups])]
    task = None if given.task == "auto" else given.task
    if is_h5ad(given.table):
        asked: dict[str, Any] = {
            "layer": given.layer, "names": given.gene_names, "weights": given.weights,
            "task": task,
        }  # fmt: skip
        lines = ["import anndata", "import exactk", ""]
        lines.append(f"adata = anndata.read_h5ad({given.table!r})")
        # Genes that are not asked for are left out as they are named on the command line.
        names = (
            "adata.var_names" if given.gene_names is None else f"adata.var[{given.gene_names!r}]"
        )
        cells = "adata"
        if given.columns:
            cells = f"adata[:, {names}.isin({[c for c in given.columns if c not in dropped]!r})]"
        elif given.drop:
            cells = f"adata[:, ~{names}.isin({list(given.drop)!r})]"
        words = "".join(f", {name}={value!r}" for name, value in asked.items() if value)
        return [
            *lines, f"problem = exactk.Problem.from_anndata({cells}, {given.target!r}{words})",
        ]  # fmt: skip
    asked = {
        "target": given.target, "columns": given.columns or None, "drop": dropped or None,
        "weights": given.weights, "classes": given.classes or None, "task": task,
    }  # fmt: skip
    words = "".join(f", {name}={value!r}" for name, value in asked.items() if value)
    held = "" if column is None else ".in_memory()"
    read = f"exactk.Problem.from_files({given.table!r}{words}){held}"
    return ["import exactk", "", f"problem = {read}"]


def _groups(given: Given, name: str, column: str | None) -> list[str]:
    """The lines that read the groups of the rows."""
    if is_h5ad(str(given.table)):
        return [f"groups = adata.obs[{name!r}].to_numpy()"]
    # Read as a target of labels is, so that the rows come in the same order.
    return [
        f"sites = exactk.Problem.from_files({given.table!r}, target={name!r}, "
        f"columns=[{column!r}], task='classification').in_memory().target",
        "groups = sites.classes[sites.codes]",
    ]
