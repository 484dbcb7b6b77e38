"""What Arrow columns hold, for tables that are read whole and for those that are passed over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from exactk.errors import InputError, Setting, join_items, suggest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "check_roles",
    "choose_features",
    "decode_column",
    "decode_numbers",
    "is_number",
    "is_text",
    "named_features",
    "open_arrow",
    "pandas_index",
    "plain_type",
]


def plain_type(kind: Any) -> Any:
    """Return the type of a column once its encoding is undone: what it holds, not how.

    Examples
    --------
    >>> import pyarrow as pa
    >>> plain_type(pa.dictionary(pa.int8(), pa.string())), plain_type(pa.decimal128(5, 2))
    (DataType(string), DataType(double))
    """
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return pa.float64()
    return kind


def decode_column(column: Any) -> Any:
    """Undo encodings that say how values are stored, not what they are."""
    import pyarrow as pa

    kind = plain_type(column.type)
    if kind == column.type:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column if kind == column.type else column.cast(kind)


def decode_numbers(table: pa.Table) -> pa.Table:
    """Undo the encoding of columns of numbers; text that is encoded is text of few kinds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> encoded = pa.table({"a": [1, 2], "b": ["x", "y"]})
    >>> encoded = pa.table({name: encoded[name].dictionary_encode() for name in "ab"})
    >>> [str(kind) for kind in decode_numbers(encoded).schema.types]
    ['int64', 'dictionary<values=string, indices=int32, ordered=0>']
    """
    import pyarrow as pa

    for j, kind in enumerate(table.schema.types):
        if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
            table = table.set_column(j, table.column_names[j], decode_column(table.column(j)))
    return table


def is_number(kind: Any) -> bool:
    """Whether a plain type is one of numbers; true and false count as 1 and 0."""
    import pyarrow as pa

    # A column of nulls only has no type; that it is empty is the better complaint.
    tests = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    return any(test(kind) for test in tests)


def is_text(kind: Any) -> bool:
    """Whether a plain type is text."""
    import pyarrow as pa

    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def check_roles(
    known: Sequence[str],
    targets: Sequence[str],
    weights: str | None,
    drop: Sequence[str],
    groups: str | None = None,
) -> None:
    """Raise for a column that is not in the table, or that is given two roles."""
    if isinstance(drop, str):
        raise InputError(parameter="drop", value=drop, expected="a list of column names")
    roles = [("target", "target", name) for name in targets]
    roles += [("drop", "dropped", name) for name in drop]
    single = {r: n for r, n in (("weights", weights), ("groups", groups)) if n is not None}
    roles += [(role, role, name) for role, name in single.items()]
    for parameter, role, name in roles:
        if name not in known:
            raise InputError(
                f"{role} column {name!r} is not in the table",
                parameter=parameter, value=name,
                hint=suggest(str(name), known) or f"its columns are {join_items(known)}",
            )  # fmt: skip
    taken = dict.fromkeys(targets, "target")
    for role, name in single.items():
        if name in taken:
            raise InputError(
                f"column {name!r} cannot be both {taken[name]} and {role}",
                parameter=role, value=name,
            )  # fmt: skip
        taken[name] = role
    for name in drop:
        if name in taken:
            raise InputError(
                f"column {name!r} cannot be dropped: it is the {taken[name]}",
                parameter="drop", value=name,
            )  # fmt: skip


def choose_features(
    schema: pa.Schema, columns: Sequence[str] | None, out: set[str | None]
) -> tuple[str, ...]:
    """Return the names of the features: those given, or all that have no other part.

    Parameters
    ----------
    schema : pyarrow.Schema
    columns : sequence of str or None
        Names of the features. None takes every column, but for an index that pandas stored.
    out : set of str
        Columns with another part: target, weights, and what is dropped.
    """
    known = schema.names
    if columns is None:
        out = out | pandas_index(schema)
        features = tuple(name for name in known if name not in out)
    else:
        features = named_features(columns, known, out)
    if not features:
        raise InputError(
            "the table has no feature columns besides the target, weights and dropped columns",
            parameter="drop" if columns is None else "columns",
        )
    if "" in features:
        raise InputError(
            f"column {known.index('') + 1} of the table has no name",
            parameter="path", hint=("name it, or leave it out with ", Setting("drop", [""])),
        )  # fmt: skip
    return features


def named_features(columns: Sequence[str], known: Sequence[str], out: set[Any]) -> tuple[str, ...]:
    """Return the columns asked for, or say why one cannot be a feature; `out` have other parts."""
    if isinstance(columns, str):
        raise InputError(parameter="columns", value=columns, expected="a list of column names")
    features = tuple(columns)
    repeated = [name for name, count in Counter(features).items() if count > 1]
    if repeated:
        raise InputError(
            f"columns names {join_items(repeated)} more than once", parameter="columns"
        )
    there = set(known)
    for name in features:
        if name not in there:
            raise InputError(
                f"feature column {name!r} is not in the table",
                parameter="columns", value=name,
                hint=suggest(str(name), known) or f"its columns are {join_items(known)}",
            )  # fmt: skip
        if name in out:
            raise InputError(
                f"column {name!r} cannot be a feature: it is the target, the weights, the groups "
                "or dropped",
                parameter="columns", value=name,
            )  # fmt: skip
    return features


def pandas_index(schema: pa.Schema) -> set[str]:
    """Names of the columns that pandas stored as the index of a table."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in stored if isinstance(name, str)}


def open_arrow(path: str, columns: Sequence[str] | None = None) -> Any:
    """Open an Arrow or Feather file, in the file or the stream format.

    Parameters
    ----------
    path : str
    columns : sequence of str or None
        The columns to read; None reads all.

    Returns
    -------
    pyarrow.ipc.RecordBatchFileReader or RecordBatchStreamReader
    """
    import pyarrow as pa

    source = pa.OSFile(path)
    head = source.read(6)
    source.seek(0)
    if head.startswith(b"FEA1"):
        raise InputError(
            f"table {path!r} is a Feather file of version 1", parameter="path", value=path,
            hint="write it again as version 2",
        )  # fmt: skip
    opener = pa.ipc.open_file if head == b"ARROW1" else pa.ipc.open_stream
    if columns is None:
        return opener(source)
    names = opener(source).schema.names
    source.seek(0)
    fields = [names.index(name) for name in columns]
    return opener(source, options=pa.ipc.IpcReadOptions(included_fields=fields))
