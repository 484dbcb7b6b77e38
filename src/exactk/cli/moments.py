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
    from exactk.data.archive import Header
    from exactk.data.moments import Moments
    from exactk.data.targets import Task
    from exactk.streaming.base import Stream

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
    from exactk.problem.constructors import STREAM_LIMIT, check_width
    from exactk.problem.read_table import TableRoles, match_labels, open_stream

    check_place(str(call.output), [*tables, *([add_to] if add_to is not None else [])])
    values = dict(call.values)
    classes, limit = values.pop("classes", ()), values.pop("memory_limit", STREAM_LIMIT)
    earlier = None if add_to is None else _read_header(add_to).facts
    if add_to is not None and earlier is not None:
        # Read twice and not kept during the pass; a damaged file is an error before it.
        _load(add_to)
        values["task"] = _task(add_to, earlier, values.get("task", "auto"))
    stream = open_stream(tables, TableRoles(str(call.target), **values))
    check_width(stream, limit)
    known: Sequence[Any] = ()
    if add_to is not None and earlier is not None:
        _check_same(add_to, "columns", earlier.get("feature_names"), stream.feature_names)
        _check_same(add_to, "target", [earlier.get("target") or stream.target], [stream.target])
        known = (earlier.get("classes") or {}).get("labels", ())
        if known:
            _check_labels(add_to, known[0], stream.y_kind, widen=stream.promote)
    matched, labels = match_labels(stream, classes, known)
    made = _pass(matched, values.get("task", "auto"), labels, call.verbose)
    if add_to is not None:
        made = _merge(_load(add_to), made, f"the table and {add_to!r}")
    return _save(call, made)


@command("moments merge", formats=())
@argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@output_option
def merge(call: Call, files: tuple[str, ...]) -> int:
    """Merge the moments of several tables into those of all their rows.

    Columns are matched by name. A class that only one table has is added to the
    others. Two files are in memory at a time.
    """
    if len(files) < 2:
        raise InputError("merge needs two or more files of moments", parameter="files")
    check_place(str(call.output), files)
    seen: dict[str, str] = {}
    for file in files:
        checksum = _read_header(file).checksum
        if checksum in seen:
            raise InputError(
                f"{file!r} has the moments of {seen[checksum]!r}: their rows would count twice",
                parameter="files", value=file,
            )  # fmt: skip
        seen[checksum] = file
    merged = _load(files[0])
    for file in files[1:]:
        merged = _merge(merged, _load(file), f"{file!r} and the files before it")
    return _save(call, merged)


@command("moments info")
@argument("file", type=click.Path())
def info(call: Call, file: str) -> int:
    """Show what a file of moments has, and check that it is whole."""
    from exactk.data.usable_columns import usable_columns

    header, moments = _read_header(file), _load(file)
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


def _task(add_to: str, earlier: dict[str, Any], task: Task) -> Task:
    held: Task = "regression" if earlier.get("classes") is None else "classification"
    if task not in ("auto", held):
        raise InputError(
            (Setting("task", task), f" does not match {add_to!r}, which is of a {held}"),
            parameter="task", value=task, hint="leave it out",
        )  # fmt: skip
    return held


def _check_labels(add_to: str, label: Any, y_kind: str, *, widen: bool) -> None:
    """Raise for labels that cannot be merged, before the pass if that is known."""
    kind = {str: "text", bool: "true or false"}.get(type(label), "numbers")
    new = {"text": "text", "bool": "true or false"}.get(y_kind, "numbers")
    if kind != new and (new == "text" or not widen):
        raise InputError(
            f"the labels of the table are {new}, and those of {add_to!r} are {kind}",
            parameter="target", hint="make them the same in both",
        )  # fmt: skip


def _check_same(add_to: str, what: str, names: Sequence[Any] | None, others: Sequence[Any]) -> None:
    """Raise for a table of other columns or another target, before the pass."""
    if names and set(names) != set(others):
        raise InputError(
            f"the table and {add_to!r} have different {what}: only one of the two has "
            f"{join_items(sorted(map(str, set(names) ^ set(others))))}",
            parameter=what,
        )


def _merge(one: Moments, other: Moments, what: str) -> Moments:
    try:
        return one.merge(other, overwrite=True)
    except InputError as error:
        raise InputError(f"{what} cannot be merged: {error}", parameter="files") from error


def _read_header(file: str) -> Header:
    from exactk.data.archive import read_header
    from exactk.data.moments import FILE_VERSION

    return read_header(file, "moments", FILE_VERSION)


def _load(file: str) -> Moments:
    from exactk.data.moments import Moments

    return Moments.load(file)


def _save(call: Call, made: Moments) -> int:
    made.save(str(call.output))
    classes = "" if made.classes is None else f", {len(made.classes):,} classes"
    call.say(f"wrote {call.output}: {made.n_rows:,} rows, {len(made.x_mean):,} columns{classes}")
    return 0
