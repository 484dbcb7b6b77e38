"""Options that several commands have, and the lists that they take."""

from __future__ import annotations

import re

import click

__all__ = ["list_format", "sizes_of", "words"]

MOST_SIZES = 100_000

list_format = click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the list.",
)


def words(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[str]:
    """Take lists apart at their commas, but not within the parentheses of a label."""
    found = [word.strip() for value in values for word in re.split(r",(?![^(]*\))", value)]
    # An empty list is a slip, such as a variable of the shell that is not set: not "all".
    if values and not any(found):
        raise click.BadParameter(f"{', '.join(values)!r} names nothing; leave it out to take all.")
    return list(dict.fromkeys(word for word in found if word))


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
