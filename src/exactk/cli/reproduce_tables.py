"""Lines of code that read the table of a command: a frame of pandas, or a problem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactk.cli.tables import is_streamed
from exactk.data.h5ad import is_h5ad
from exactk.losses.registry import task_of

if TYPE_CHECKING:
    import pyarrow as pa

    from exactk.cli.table_options import TableOptions
    from exactk.problem.problem import Problem

__all__ = ["frame_lines", "group_lines", "problem_lines"]

# pandas reads a larger text in pieces, and what one column holds may then be of two kinds.
ONE_PIECE = 2**18
PANDAS = {
    ".parquet": "pd.read_parquet", ".pq": "pd.read_parquet", ".feather": "pd.read_feather",
    ".arrow": "pd.read_feather", ".ipc": "pd.read_feather", ".csv": "pd.read_csv",
    ".csv.gz": "pd.read_csv", ".tsv": "pd.read_csv", ".tsv.gz": "pd.read_csv",
}  # fmt: skip
# What pandas reads by means of these, they read without what pandas has noted of an index.
ARROW = {"pd.read_parquet": "pyarrow.parquet", "pd.read_feather": "pyarrow.feather"}


def frame_lines(source: TableOptions, row_groups: str | None) -> tuple[list[str], list[str]] | None:
    """Return imports, and lines that make ``table`` (of the features) and ``y`` of one file.

    Beside them ``weights`` and ``groups``, where the command has them. None for what it did not
    read into memory at once.
    """
    from exactk.data.arrow import pandas_index
    from exactk.data.files import suffix_of
    from exactk.streaming.folders import find_files
    from exactk.streaming.formats import read_schema

    table = source.table
    if table is None or source.classes or is_streamed(table) or is_h5ad(table):
        return None
    # A CSV file has an index that pandas stored as little as it has types.
    schema = read_schema(find_files(table)[0])[1]
    index = pandas_index(schema)
    parts = {"y": source.target, "weights": source.weights, "groups": row_groups}
    taken = {name: column for name, column in parts.items() if column is not None}
    asked = {*taken.values(), *source.columns}
    imports, dropped = ["import pandas as pd"], [*source.drop]
    reader = PANDAS[suffix_of(table)]
    if reader == "pd.read_csv":
        lines = [f"table = {_text(table, schema)}"]
    elif asked & index or not _named_by_text(schema):
        imports = [f"import {ARROW[reader]}"]
        read = f"{ARROW[reader]}.read_table({table!r})"
        lines = [f"table = {read}.to_pandas(ignore_metadata=True)"]
        dropped += sorted(index - asked - {*dropped})
    else:
        lines = [f"table = {reader}({table!r})"]
        dropped = [name for name in dropped if name not in index]
    if kinds := _encoded(schema, source, asked, index):
        lines.append(f"table = table.astype({kinds!r})")
    lines += [f"{name} = table.pop({column!r})" for name, column in taken.items()]
    dropped = [name for name in dropped if name not in taken.values()]
    if source.columns:
        lines.append(f"table = table[{source.columns!r}]")
    elif dropped:
        lines.append(f"table = table.drop(columns={dropped!r})")
    return imports, lines


def _text(table: str, schema: pa.Schema) -> str:
    """How pandas reads a CSV or TSV file as the command does."""
    from exactk.data.files import DELIMITERS, suffix_of

    # Nothing is missing in a table that was accepted, and to pandas the word None would be.
    more = ", keep_default_na=False"
    if (delimiter := DELIMITERS[suffix_of(table)]) != ",":
        more = f", sep={delimiter!r}{more}"
    if Path(table).stat().st_size > ONE_PIECE:
        more += ", low_memory=False"
    read = f"pd.read_csv({table!r}{more})"
    if "" in schema.names:
        # So pandas calls a column that has no name; it is left out, or the target.
        read += f".rename(columns={{'Unnamed: {schema.names.index('')}': ''}})"
    return read


def _named_by_text(schema: pa.Schema) -> bool:
    """Whether pandas calls the columns as the file does: it may have had numbers for names."""
    levels = (schema.pandas_metadata or {}).get("column_indexes", [])
    words = ("unicode", "string", "empty", "mixed", "mixed-integer")
    return len(levels) <= 1 and all(level.get("pandas_type") in words for level in levels)


def _encoded(
    schema: pa.Schema, source: TableOptions, asked: set[str], index: set[str]
) -> dict[str, str]:
    """Columns of numbers that pandas takes for categories or objects: what they are read as."""
    import pyarrow as pa

    from exactk.data.arrow import is_number, plain_type

    used = asked if source.columns else {*schema.names} - {*source.drop} - (index - asked)
    return {
        field.name: "float64"
        for field in schema
        if field.name in used
        and (pa.types.is_dictionary(field.type) or pa.types.is_decimal(field.type))
        and is_number(plain_type(field.type))
    }


def problem_lines(
    source: TableOptions, row_groups: str | None, problem: Problem, held: bool
) -> list[str]:
    """Return the lines that make ``problem``, their imports first.

    Parameters
    ----------
    source : TableOptions
    row_groups : str or None
        Column of the groups of rows.
    problem : Problem
        As the command has it.
    held : bool
        Whether its rows are in memory.
    """
    if source.table is None:
        return _moments(source)
    if is_h5ad(source.table):
        return _cells(source)
    options: dict[str, Any] = {
        "target": source.target,
        "columns": source.columns,
        "drop": [*source.drop, *([] if row_groups is None else [row_groups])],
        "weights": source.weights,
        # As the target holds them: on the command line all are words.
        "classes": problem.classes.tolist()
        if source.classes and problem.classes is not None
        else 0,
        "task": _task(source),
        "memory_limit": source.memory_limit,
    }
    words = "".join(f", {name}={value!r}" for name, value in options.items() if value)
    read = f"exactk.Problem.from_files({source.table!r}{words}){'.in_memory()' if held else ''}"
    return ["import exactk", "", f"problem = {read}"]


def _task(source: TableOptions) -> str | None:
    """What the target holds, where that is known: a loss may be for one kind alone."""
    task: str = task_of(source.loss, source.task)
    return None if task == "auto" else task


def _moments(source: TableOptions) -> list[str]:
    lines = ["import exactk", "", f"moments = exactk.Moments.load({source.moments!r})"]
    if source.columns:
        kept = tuple(name for name in source.columns if name not in source.drop)
        lines.append(f"moments = moments.with_columns({kept!r})")
    elif source.drop:
        lines += [
            f"dropped = {list(source.drop)!r}",
            "kept = tuple(name for name in moments.feature_names if name not in dropped)",
            "moments = moments.with_columns(kept)",
        ]
    return [*lines, "problem = exactk.Problem.from_moments(moments)"]


def _cells(source: TableOptions) -> list[str]:
    lines = ["import anndata", "import exactk", "", f"adata = anndata.read_h5ad({source.table!r})"]
    if source.weights is not None and _is_stream(source):
        # A pass leaves out what counts nothing, and so do folds of the rows that it has read.
        lines.append(f"adata = adata[adata.obs[{source.weights!r}] > 0]")
    # Genes that are not asked for are left out as they are named on the command line.
    names = "adata.var_names" if source.gene_names is None else f"adata.var[{source.gene_names!r}]"
    cells = "adata"
    if source.columns:
        kept = [name for name in source.columns if name not in source.drop]
        lines.append(f"genes = [list({names}).index(name) for name in {kept!r}]")
        cells = "adata[:, genes]"
    elif source.drop:
        cells = f"adata[:, ~{names}.isin({list(source.drop)!r})]"
    options = {
        "layer": source.layer, "names": source.gene_names, "weights": source.weights,
        "task": _task(source), "memory_limit": source.memory_limit,
    }  # fmt: skip
    words = "".join(f", {name}={value!r}" for name, value in options.items() if value)
    made = f"exactk.Problem.from_anndata({cells}, {source.target!r}{words})"
    return [*lines, f"problem = {made}"]


def _is_stream(source: TableOptions) -> bool:
    return bool(source.classes) or is_streamed(str(source.table))


def group_lines(source: TableOptions, name: str, problem: Problem) -> list[str]:
    """Return the lines that read the ``groups`` of the rows, after those of `problem_lines`."""
    if is_h5ad(str(source.table)):
        return [f"groups = adata.obs[{name!r}].to_numpy()"]
    # Read as a target of labels is, so that the same rows come in the same order.
    options: dict[str, Any] = {
        "target": name, "columns": [problem.original_names[0]], "weights": source.weights,
        "task": "classification",
    }  # fmt: skip
    words = "".join(f", {option}={value!r}" for option, value in options.items() if value)
    return [
        f"sites = exactk.Problem.from_files({source.table!r}{words}).in_memory().target",
        "groups = sites.classes[sites.codes]",
    ]
