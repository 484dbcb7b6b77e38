"""Options that several commands have, and the lists that they take."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

import click

from exactk.cli.render import STYLES
from exactk.errors import join_items

__all__ = [
    "byte_count",
    "classes_option",
    "columns_option",
    "distinct_items",
    "drop_option",
    "gene_names_option",
    "layer_option",
    "list_format",
    "memory_option",
    "only_one",
    "output_option",
    "size_or_auto",
    "sizes_of",
    "style_option",
    "weights_option",
    "words",
]

MOST_SIZES = 100_000

UNITS = {unit: 2 ** (10 * power) for power, unit in enumerate(("", "K", "M", "G", "T"))}


list_format = click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the list.",
)


style_option = click.option(
    "--format",
    "style",
    type=click.Choice(STYLES),
    default="text",
    show_default=True,
    help="How to print the result.",
)
output_option = click.option(
    "-o", "--output", type=click.Path(), metavar="FILE", help="Write there, not to stdout."
)


def only_one(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str:
    """Refuse a second target: taken for a feature it would leak into the answer."""
    if len(values) > 1:
        raise click.BadParameter(
            f"given {len(values)} times ({', '.join(values)}); there is one target here, and the "
            f"others need --drop (several outputs: exactk.Problem.from_arrays in Python)"
        )
    return values[0]


def words(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[str]:
    """Take lists apart at their commas, but not within the parentheses of a label."""
    return list(dict.fromkeys(_split_commas(values)))


def distinct_items(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> list[str]:
    """Take lists apart as `words` does, where a second mention would be left out unseen."""
    found = _split_commas(values)
    repeated = [word for word, count in Counter(found).items() if count > 1]
    if repeated:
        raise click.BadParameter(f"{join_items(repeated)} named more than once; name each once.")
    return found


def _split_commas(values: tuple[str, ...]) -> list[str]:
    found = [word.strip() for value in values for word in re.split(r",(?![^(]*\))", value)]
    # An empty list is a slip, such as a variable of the shell that is not set: not "all".
    if values and not any(found):
        raise click.BadParameter(f"{', '.join(values)!r} names nothing; leave it out to take all.")
    return [word for word in found if word]


def sizes_of(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> list[int]:
    """Read sizes: numbers, and ranges such as 10-100:10."""
    sizes: set[int] = set()
    for word in words(context, parameter, values):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", word)
        first, last, step = (int(part) if part else None for part in match.groups()) if match else (
            None, None, None,
        )  # fmt: skip
        if first is None or first < 1 or step == 0 or (last is not None and last < first):
            raise click.BadParameter(
                f"{word!r} is not a size; give numbers of at least 1 or ranges, such as 5,10 or "
                f"1-80 or 10-100:10."
            )
        wanted = range(first, (last or first) + 1, step or 1)
        if len(wanted) > MOST_SIZES:
            raise click.BadParameter(f"{word!r} is {len(wanted)} sizes, more than can be run.")
        sizes.update(wanted)
    return sorted(sizes)


def byte_count(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Read a number of bytes such as 4G or 500M; K, M, G and T are powers of 1024."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?) *([KMGT]?)(?:I?B)?", value.upper())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a number of bytes, such as 4G or 500M.")
    return int(Fraction(match[1]) * UNITS[match[2]])


columns_option = click.option(
    "--columns",
    multiple=True,
    metavar="COLUMN,...",
    callback=words,
    help="Only these are features; repeatable.",
)
drop_option = click.option(
    "--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable."
)
weights_option = click.option("--weights", metavar="COLUMN", help="Column of row weights.")
classes_option = click.option(
    "--classes",
    multiple=True,
    metavar="LABEL,...",
    callback=distinct_items,
    help="The labels, where they are known, and no others; repeatable.",
)
layer_option = click.option(
    "--layer", metavar="NAME", help="Layer of an .h5ad table that is taken in place of X."
)
gene_names_option = click.option(
    "--gene-names",
    metavar="COLUMN",
    help="Column of var in an .h5ad table that names the genes; else its var_names do.",
)
memory_option = click.option(
    "--memory-limit",
    callback=byte_count,
    metavar="BYTES",
    help="What products of columns, or rows, may take in memory; for example 8G.",
)


def size_or_auto(context: click.Context, parameter: click.Parameter, value: str) -> int | None:
    """Read a number of features; None is the word ``auto``."""
    if value == "auto":
        return None
    try:
        k = int(value)
    except ValueError:
        k = 0
    if k < 1:
        raise click.BadParameter(f"{value!r} is neither 'auto' nor a whole number of at least 1.")
    return k
