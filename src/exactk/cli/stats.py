"""``exactk stats``: moments of tables, built where the rows are, merged, and looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.options import (
    classes_option,
    columns_option,
    drop_option,
    gene_names_option,
    layer_option,
    list_format,
    memory_option,
    only_one,
    weights_option,
)
from exactk.cli.output import check_output
from exactk.cli.tables import TableRoles, match_label_types, open_stream
from exactk.errors import InputError, join_items
from exactk.utils.formatting import escape_controls

if TYPE_CHECKING:
    from exactk.data.archive import Header
    from exactk.data.moments import Moments
    from exactk.data.targets import Task
    from exactk.streaming.base import Stream

__all__ = ["stats"]

# More classes or names than a person reads.
SHOWN = 20

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(),
    required=True,
    metavar="FILE",
    help="The moments; replaced as a whole if it exists.",
)
quiet_option = click.option("--quiet", is_flag=True, help="No progress, no closing line.")


@click.group()
def stats() -> None:
    """Moments of tables: build, merge, info.

    Squared loss needs no more of a table than its moments: rows, means, and products of columns.
    They add: days are accumulated, and sites exchange them instead of rows.
    """


@stats.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--target",
    required=True,
    multiple=True,
    metavar="COLUMN",
    callback=only_one,
    help="Column to predict.",
)
@output_option
@columns_option
@drop_option
@weights_option
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    show_default=True,
    help="What the target is; auto goes by its values, or by those added to.",
)
@classes_option
@layer_option
@gene_names_option
@memory_option
@click.option(
    "--add-to",
    type=click.Path(),
    metavar="FILE",
    help="Moments of earlier rows, which the new ones are added to.",
)
@quiet_option
def build(
    tables: tuple[str, ...],
    target: str,
    output: str,
    columns: list[str],
    drop: tuple[str, ...],
    weights: str | None,
    task: Task,
    classes: list[str],
    layer: str | None,
    gene_names: str | None,
    memory_limit: int | None,
    add_to: str | None,
    quiet: bool,
) -> None:
    """Make the moments of TABLE in one pass and bounded memory.

    TABLE is a file, a folder or a pattern: CSV or TSV (.gz too), Parquet, Arrow or Feather; or one
    .h5ad file. A part of a table in which only one class occurs needs --task classification.
    """
    from exactk.problem.constructors import STREAM_LIMIT, check_width

    inputs = [*tables, *([add_to] if add_to is not None else [])]
    check_output(output, "input", inputs)
    added = None if add_to is None else _header(add_to).facts
    if add_to is not None and added is not None:
        # Read twice rather than held during the pass, and before it, to see that it is whole.
        _load(add_to)
        task = _task_of(add_to, added, task)
    parts = TableRoles(target, columns, drop, weights, task, layer=layer, gene_names=gene_names)
    opened = open_stream(tables, parts)
    check_width(opened, STREAM_LIMIT if memory_limit is None else memory_limit)
    known = None if added is None else added.get("classes")
    if add_to is not None and added is not None:
        _check_columns(add_to, added, "the table", _facts(opened))
    stream, labels = match_label_types(opened, classes, [] if known is None else known["labels"])
    if add_to is not None and known is not None:
        _check_kind(add_to, known["labels"][0], stream.y_kind, opened.promote)
    moments = _pass(stream, task, labels, quiet)
    if add_to is not None:
        moments = _merged(_load(add_to), moments, f"the table and {add_to!r}")
    moments.save(output)
    _print_summary(moments, output, quiet)


@stats.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE FILE...")
@output_option
@quiet_option
def merge(files: tuple[str, ...], output: str, quiet: bool) -> None:
    """Merge the moments of several tables into those of all their rows.

    Columns are matched by name, and classes that only some have seen are added to the others.
    Two files are held at a time.
    """
    if len(files) < 2:
        raise click.UsageError("give two files of moments or more.")
    check_output(output, "input", files)
    headers = [_header(file) for file in files]
    _refuse_twice(files, headers)
    for file, header in zip(files[1:], headers[1:], strict=True):
        _check_columns(files[0], headers[0].facts, repr(file), header.facts)
    moments = _load(files[0])
    for file in files[1:]:
        moments = _merged(moments, _load(file), f"{file!r} and those before it")
    moments.save(output)
    _print_summary(moments, output, quiet)


@stats.command()
@click.argument("file")
@list_format
def info(file: str, style: str) -> None:
    """Say what a file of moments holds, and check that it is whole."""
    from exactk.data.usable_columns import usable_columns

    header, moments = _header(file), _load(file)
    usable = set(usable_columns(moments).tolist())
    names = moments.feature_names or tuple(f"x{j}" for j in range(len(moments.x_mean)))
    facts: dict[str, Any] = {
        "file": file,
        "bytes": Path(file).stat().st_size,
        "version": header.version,
        "exactk": header.writer,
        "checksum": header.checksum,
        "checksum_ok": True,
        "rows": moments.n_rows,
        "weight": moments.weight,
        "target": moments.target,
        "task": "regression" if moments.classes is None else "classification",
        "outputs": len(moments.y_mean),
        "classes": _shares(moments),
        "columns": list(names),
        "constant": [name for j, name in enumerate(names) if j not in usable],
    }
    if style == "json":
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        click.echo(_as_text(facts), nl=False)


def _shares(moments: Moments) -> list[dict[str, Any]] | None:
    if moments.classes is None:
        return None
    labels = moments.classes.tolist()
    return [
        {"label": label, "share": float(share)}
        for label, share in zip(labels, moments.y_mean, strict=True)
    ]


def _as_text(facts: dict[str, Any]) -> str:
    rows = f"{facts['rows']:,}"
    if facts["weight"] != facts["rows"]:
        rows += f" (weight {facts['weight']:.6g})"
    constant = facts["constant"]
    lines = [
        f"rows      {rows}",
        f"columns   {len(facts['columns']):,}: {join_items(facts['columns'])}",
        f"constant  {f'{len(constant):,}: {join_items(constant)}' if constant else 'none'}",
        f"target    {'unnamed' if facts['target'] is None else repr(facts['target'])}, "
        f"{facts['task']}",
        f"file      {facts['bytes']:,} bytes, version {facts['version']} of the format, written by "
        f"exactk {facts['exactk']}",
        f"checksum  ok, {facts['checksum']}",
    ]
    classes = facts["classes"]
    if classes is None:
        lines.append(f"outputs   {facts['outputs']}")
    else:
        lines += [f"classes   {len(classes):,}", ""]
        lines += [
            f"{held['share']:8.2%}  {escape_controls(held['label'])}" for held in classes[:SHOWN]
        ]
        if len(classes) > SHOWN:
            lines.append(f"{'':8}  and {len(classes) - SHOWN:,} more")
    return "\n".join(lines) + "\n"


def _pass(stream: Stream, task: Task, classes: list[Any] | None, quiet: bool) -> Moments:
    from exactk.problem.constructors import show_reading
    from exactk.streaming.moments import MomentsReducer, stream_moments
    from exactk.streaming.target_encoding import choose_encoding

    with show_reading(0 if quiet else 1) as show:
        if task == "auto":
            return stream_moments(stream, classes=classes, on_rows=show)
        # Said and not guessed: then a part of a table may have a single class.
        coding = choose_encoding(stream, task, classes)
        return stream.reduce(MomentsReducer(stream.feature_names, coding, stream.target), show)


def _task_of(add_to: str, added: dict[str, Any], task: Task) -> Task:
    held: Task = "regression" if added.get("classes") is None else "classification"
    if task not in ("auto", held):
        raise InputError(f"--task {task} does not go with {add_to!r}, which is of a {held}")
    return held


def _check_kind(add_to: str, label: Any, y_kind: str, widen: bool) -> None:
    """Raise for labels that cannot be merged, before the pass if they can be known."""
    kind = {str: "text", bool: "true or false"}.get(type(label), "numbers")
    new = {"text": "text", "bool": "true or false"}.get(y_kind, "numbers")
    if kind != new and (new == "text" or not widen):
        raise InputError(
            f"the target of the table holds {new}, and the classes of {add_to!r} are {kind}; make "
            f"them the same in both"
        )


def _facts(stream: Stream) -> dict[str, Any]:
    return {"feature_names": list(stream.feature_names), "target": stream.target}


def _check_columns(one: str, first: dict[str, Any], two: str, second: dict[str, Any]) -> None:
    """Raise for moments that cannot be merged, before they are made or read."""
    names, others = first.get("feature_names"), second.get("feature_names")
    if names and others and set(names) != set(others):
        raise InputError(
            f"{two} has other columns than {one!r}: only one of the two has "
            f"{join_items(sorted(set(names) ^ set(others)))}"
        )
    targets = (first.get("target"), second.get("target"))
    if None not in targets and targets[0] != targets[1]:
        raise InputError(f"{two} is for the target {targets[1]!r}, and {one!r} for {targets[0]!r}")


def _refuse_twice(files: Sequence[str], headers: Sequence[Header]) -> None:
    """Raise for one table under two names: its rows would count twice."""
    seen: dict[str, str] = {}
    for file, header in zip(files, headers, strict=True):
        if header.checksum in seen:
            raise InputError(
                f"{file!r} holds the same moments as {seen[header.checksum]!r}: their rows would "
                f"count twice"
            )
        seen[header.checksum] = file


def _merged(one: Moments, other: Moments, what: str) -> Moments:
    try:
        return one.merge(other, overwrite=True)
    except InputError as error:
        raise InputError(f"{what} do not go together: {error}") from error


def _header(file: str) -> Header:
    from exactk.data.archive import read_header
    from exactk.data.moments import FILE_VERSION

    return read_header(file, "moments", FILE_VERSION)


def _load(file: str) -> Moments:
    from exactk.data.moments import Moments

    return Moments.load(file)


def _print_summary(moments: Moments, output: str, quiet: bool) -> None:
    if not quiet:
        of = "" if moments.classes is None else f", {len(moments.classes):,} classes"
        click.echo(
            f"exactk: wrote {output}: {moments.n_rows:,} rows, {len(moments.x_mean):,} columns"
            f"{of}.",
            err=True,
        )
