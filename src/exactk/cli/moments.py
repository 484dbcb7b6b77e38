"""``exactk moments``: make the moments of tables where the rows are, merge and show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.framework import (
    Call,
    LazyGroup,
    Listing,
    aligned,
    argument,
    check_place,
    command,
    option,
)
from exactk.errors import InputError, Setting, join_items
from exactk.utils.formatting import escape_controls

if TYPE_CHECKING:
    from exactk.data.moments import Moments
    from exactk.data.targets import Task
    from exactk.streaming.anndata import AnnDataStream
    from exactk.streaming.base import Stream
    from exactk.streaming.files import FileStream

__all__ = ["build", "info", "merge", "moments"]

# More classes than a person reads.
SHOWN = 20

moments = LazyGroup(
    "moments",
    """Build, merge and show moments of tables.

    Moments are the number of rows, the means and the products of columns. With
    squared loss they replace the table: exactk select FILE -k K. They can be
    added: tables of several days or places give one file, without their rows.
    """,
    {
        "build": ("exactk.cli.moments:build", "Make the moments of a table."),
        "merge": ("exactk.cli.moments:merge", "Merge the moments of several tables."),
        "info": ("exactk.cli.moments:info", "Show what a file of moments has."),
    },
)

output_option = option("-o", "--output", type=click.Path(), required=True, metavar="FILE",
                       help="Write the moments to FILE.")  # fmt: skip


@command(
    "moments build",
    parameters=("columns", "drop", "weights", "task", "memory_limit"),
    config=("classes", "layer", "gene_names"),
    formats=(),
)
@argument("tables", nargs=-1, required=True, type=click.Path(), metavar="TABLE...")
@argument("target")
@option("--config", "config_file", type=click.Path(), section="Input", metavar="FILE",
        help="TOML file with further parameters: classes, layer, gene_names.")  # fmt: skip
@option("--add-to", type=click.Path(), section="Input", metavar="FILE",
        help="Add the rows to the moments of earlier rows.")  # fmt: skip
@output_option
def build(call: Call, tables: tuple[str, ...], add_to: str | None) -> int:
    """Make the moments of TABLE in one pass and bounded memory.

    TABLE is a file, a folder or a pattern in quotes: CSV, TSV, Parquet, Arrow or
    Feather; or one .h5ad file. If only one class occurs in it, give --task
    classification.
    """
    from exactk.data.moments import Moments
    from exactk.problem.constructors import STREAM_LIMIT, check_width
    from exactk.problem.read_table import TableRoles, match_labels, open_stream

    check_place(str(call.output), [*tables, *([add_to] if add_to is not None else [])])
    values = dict(call.values)
    classes, limit = values.pop("classes", ()), values.pop("memory_limit", STREAM_LIMIT)
    earlier = None if add_to is None else Moments.load(add_to)
    if earlier is not None:
        held = "regression" if earlier.classes is None else "classification"
        if values.setdefault("task", held) != held:
            raise InputError(
                (Setting("task", values["task"]),
                 f" does not match {add_to!r}, which is of a {held}"),
                parameter="task", value=values["task"], hint="leave it out",
            )  # fmt: skip
    stream = open_stream(tables, TableRoles(str(call.target), **values))
    check_width(stream, limit)
    known = () if earlier is None else _check_same(str(add_to), earlier, stream)
    matched, labels = match_labels(stream, classes, known)
    made = _pass(matched, values.get("task", "auto"), labels, call.verbose)
    if earlier is not None:
        made = _merge(earlier, made, f"the table and {add_to!r}")
    return _save(call, made)


@command("moments merge", formats=())
@argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@output_option
def merge(call: Call, files: tuple[str, ...]) -> int:
    """Merge the moments of several tables into those of all their rows.

    Columns are matched by name. A class that only one table has is added to the
    others. Two files are in memory at a time.
    """
    from exactk.data.archive import read_header
    from exactk.data.moments import FILE_VERSION, Moments

    if len(files) < 2:
        raise InputError("merge needs two or more files of moments", parameter="files")
    check_place(str(call.output), files)
    seen: dict[str, str] = {}
    for file in files:
        checksum = read_header(file, "moments", FILE_VERSION).checksum
        if checksum in seen:
            raise InputError(
                f"{file!r} has the moments of {seen[checksum]!r}: their rows would count twice",
                parameter="files", value=file,
            )  # fmt: skip
        seen[checksum] = file
    merged = Moments.load(files[0])
    for file in files[1:]:
        merged = _merge(merged, Moments.load(file), f"{file!r} and the files before it")
    return _save(call, merged)


@command("moments info")
@argument("file", type=click.Path())
def info(call: Call, file: str) -> int:
    """Show what a file of moments has, and check that it is whole."""
    from exactk.data.archive import read_header
    from exactk.data.moments import FILE_VERSION, Moments
    from exactk.data.usable_columns import usable_columns

    header, moments = read_header(file, "moments", FILE_VERSION), Moments.load(file)
    usable = set(usable_columns(moments).tolist())
    names = moments.feature_names or tuple(f"x{j}" for j in range(len(moments.x_mean)))
    deviations = ((moments.scatter / moments.weight) ** 0.5).tolist()
    rows = [
        {"column": name, "mean": mean, "standard_deviation": sd, "constant": j not in usable}
        for j, (name, mean, sd) in enumerate(
            zip(names, moments.x_mean.tolist(), deviations, strict=True)
        )
    ]
    labels = [] if moments.classes is None else moments.classes.tolist()
    classes = [
        {"label": label, "share": share}
        for label, share in zip(labels, moments.y_mean.tolist(), strict=False)
    ]
    facts = {
        "file": file,
        "bytes": Path(file).stat().st_size,
        "version": header.version,
        "exactk": header.writer,
        "checksum": header.checksum,
        "rows": moments.n_rows,
        "weight": moments.weight,
        "target": moments.target,
        "task": "classification" if classes else "regression",
        "outputs": len(moments.y_mean),
        "classes": classes,
    }
    constant = [row["column"] for row in rows if row["constant"]]
    weight = "" if moments.weight == moments.n_rows else f" (weight {moments.weight:.6g})"
    target = "unnamed" if moments.target is None else repr(moments.target)
    lines = aligned({
        "rows": f"{moments.n_rows:,}{weight}",
        "columns": f"{len(names):,}: {join_items(names)}",
        "constant": f"{len(constant):,}: {join_items(constant)}" if constant else "none",
        "target": f"{target}, {facts['task']}",
        "file": f"{facts['bytes']:,} bytes, version {header.version} of the format, "
        f"written by exactk {header.writer}",
        "checksum": f"correct, {header.checksum}",
        "classes" if classes else "outputs": f"{len(moments.y_mean):,}",
    })  # fmt: skip
    lines += [""] if classes else []
    for one in classes[:SHOWN]:
        lines.append(f"{one['share']:8.2%}  {escape_controls(one['label'])}")
    if len(classes) > SHOWN:
        lines.append(f"{'':8}  and {len(classes) - SHOWN:,} more")
    return call.emit(Listing("columns", rows, **facts), lines)


def _pass(stream: Stream, task: Task, classes: list[Any] | None, verbose: int) -> Moments:
    from exactk.problem.constructors import show_reading
    from exactk.streaming.moments import MomentsReducer, stream_moments
    from exactk.streaming.target_encoding import choose_encoding

    with show_reading(verbose) as show:
        if task == "auto":
            return stream_moments(stream, classes=classes, on_rows=show)
        # With a given task, a part of a table may have a single class.
        encoding = choose_encoding(stream, task, classes)
        return stream.reduce(MomentsReducer(stream.feature_names, encoding, stream.target), show)


def _check_same(add_to: str, earlier: Moments, stream: FileStream | AnnDataStream) -> Sequence[Any]:
    """Return the earlier labels; raise before the pass if the table cannot be added."""
    for what, names, others in (
        ("columns", earlier.feature_names, stream.feature_names),
        ("target", earlier.target and [earlier.target], [stream.target]),
    ):
        if names and set(names) != set(others):
            raise InputError(
                f"the table and {add_to!r} have different {what}: only one of the two has "
                f"{join_items(sorted(map(str, set(names) ^ set(others))))}",
                parameter=what,
            )
    if earlier.classes is None:
        return ()
    labels: list[Any] = earlier.classes.tolist()
    kind = {str: "text", bool: "true or false"}.get(type(labels[0]), "numbers")
    new = {"text": "text", "bool": "true or false"}.get(stream.y_kind, "numbers")
    if kind != new and (new == "text" or not stream.promote):
        raise InputError(
            f"the labels of the table are {new}, and those of {add_to!r} are {kind}",
            parameter="target", hint="make them the same in both",
        )  # fmt: skip
    return labels


def _merge(one: Moments, other: Moments, what: str) -> Moments:
    try:
        return one.merge(other, overwrite=True)
    except InputError as error:
        raise InputError(f"{what} cannot be merged: {error}", parameter="files") from error


def _save(call: Call, made: Moments) -> int:
    made.save(str(call.output))
    classes = "" if made.classes is None else f", {len(made.classes):,} classes"
    call.say(f"wrote {call.output}: {made.n_rows:,} rows, {len(made.x_mean):,} columns{classes}")
    return 0
