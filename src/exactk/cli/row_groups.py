"""``--groups COLUMN``: which rows belong together, for every command that splits rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from exactk.cli.tables import TableRoles, open_problem, open_stream
from exactk.data.h5ad import is_h5ad
from exactk.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from exactk.cli.table_options import TableOptions
    from exactk.problem.problem import Problem

__all__ = ["groups_option", "open_grouped"]

# Not "groups", which are those of columns.
groups_option = click.option(
    "--groups",
    "row_groups",
    metavar="COLUMN",
    help="Rows that belong together: column that names the group of each (a patient, a site), "
    "which no split of the rows parts. It is no feature. (Features that enter together: --group.)",
)


def _check(source: TableOptions, column: str) -> None:
    """Raise for a column of groups that cannot be one, before anything is read."""
    if source.moments is not None:
        raise click.UsageError(
            "--groups names the groups of rows, and --from-moments has none; give TABLE and "
            "--target."
        )
    if column in (source.target, source.weights, *source.columns):
        raise click.UsageError(f"--groups {column!r} has another part already.")


def open_grouped(
    source: TableOptions, column: str | None
) -> tuple[Problem, str, npt.NDArray[np.generic] | None]:
    """Return the problem, the name of its target, and the groups of its rows, which are no feature.

    With groups the rows of the problem are in memory: those of a table that is passed over are
    read, and where they are too many for that an error says so.
    """
    if column is None:
        return *source.open(), None
    _check(source, column)
    # What stands beside the cells of an AnnData is no feature anyway, and a gene may be called so.
    out = () if is_h5ad(str(source.table)) else (column,)
    try:
        problem, target = replace(source, drop=(*source.drop, *out)).open()
    except InputError as error:
        # The user has named a column of groups, and knows of none that is dropped.
        words = str(error).replace(f"dropped column {column!r}", f"--groups {column!r}")
        raise InputError(words) from error
    try:
        held = problem.in_memory(verbose=source.verbose)
    except InputError as error:
        raise InputError(f"--groups {column!r} needs the rows in memory: {error}") from error
    return held, target, _read_groups(source, column, problem)


def _read_groups(source: TableOptions, column: str, problem: Problem) -> npt.NDArray[np.generic]:
    """The values of a column, in the order in which the rows are read.

    It is read as a target of labels is, beside one feature, so that files of every kind give
    their rows in the same order as before; the cells of an AnnData have it beside them.
    """
    from exactk.data.anndata import obs_column
    from exactk.data.h5ad import read_h5ad

    # A pass leaves out rows that count nothing; a table that is read whole keeps them.
    weights = None if problem.stream is None else source.weights
    if is_h5ad(str(source.table)):
        adata = read_h5ad(str(source.table), backed=True)
        values = obs_column(adata, column, "--groups")
        if weights is not None:
            values = values[obs_column(adata, weights, "--weights") > 0]
        adata.file.close()
        return values
    parts = TableRoles(
        column, columns=[problem.original_names[0]], weights=weights, task="classification"
    )
    try:
        if problem.stream is None:
            read = open_problem(str(source.table), parts, quiet=True)
        else:
            stream = open_stream([str(source.table)], parts)
            read = problem.from_stream(stream, task="classification").in_memory()
    except InputError as error:
        raise InputError(_of_groups(str(error), column)) from error
    target = read.target
    assert target is not None
    assert target.codes is not None
    assert target.classes is not None
    return target.classes[target.codes]


def _of_groups(words: str, column: str) -> str:
    """What is wrong with a target, said of groups of rows."""
    if "y has 1 class" in words:
        return f"--groups {column!r} has one group only; rows are split between two at least"
    for said, way in (
        ("use task='regression' or code the classes first",
         "name the groups by text or whole numbers"),
        (f"target column {column!r}", "the column"),
    ):  # fmt: skip
        words = words.replace(said, way)
    return f"--groups {column!r}: {words}"
