"""Options of commands, and groups that import their commands when they are used.

See `exactk.cli.framework` for how to write a command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import click

from exactk.cli.framework.settings import is_list, textual
from exactk.errors import InputError, Setting, suggest
from exactk.params import PARAMS, AnyOf, Choice, Param

__all__ = [
    "HELP",
    "LazyGroup",
    "Option",
    "ParamType",
    "argument",
    "name_list",
    "option",
    "option_of",
    "param",
    "parse_bytes",
    "split_list",
]

HELP = {"help_option_names": ["-h", "--help"]}
UNITS = {unit: 2 ** (10 * power) for power, unit in enumerate(("", "K", "M", "G", "T"))}


def param(name: str | Param, **changes: Any) -> Param:
    """Return a parameter of `PARAMS` with changes, such as another help text."""
    return replace(PARAMS[name] if isinstance(name, str) else name, **changes)


class ParamType(click.ParamType):  # type: ignore[type-arg]
    """Reads the text of an option by the check of its parameter."""

    def __init__(self, parameter: Param) -> None:
        self.parameter = parameter
        self.check = textual(parameter)
        self.name = parameter.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of a text, or raise an error that names the option."""
        if self.name == "memory_limit":
            return parse_bytes(value)
        try:
            return self.check.parse(value)
        except ValueError:
            hint = self.check.hint(value)
            raise InputError(
                parameter=self.name, value=value, expected=str(self.check), hint=hint
            ) from None

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Return the words that begin with what was typed."""
        from click.shell_completion import CompletionItem

        words = [str(word) for word in _words(self.parameter)]
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


class Option(click.Option):
    """An option that stands under a heading of the help."""

    def __init__(self, *args: Any, section: str = "Output", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


def option(*names: str, **kwargs: Any) -> Callable[..., Any]:
    """Give a command an option that is no parameter of the library; see `Option`."""
    return click.option(*names, cls=Option, **kwargs)


argument = click.argument


def option_of(parameter: Param, default: Any) -> Option:
    """Return the option of a parameter; its help ends with the default."""
    listed, text = is_list(parameter), parameter.help
    words = "|".join(map(str, _words(parameter)))
    if default is not None and default != () and default is not False:
        shown = ",".join(default) if isinstance(default, tuple) else default
        text += f"  [default: {f'{shown:g}' if isinstance(shown, float) else shown}]"
    return Option(
        [parameter.option, parameter.name], section=parameter.section, help=text,
        type=str if listed else ParamType(parameter), multiple=listed,
        metavar=parameter.metavar or words or None,
        callback=_given_list if listed else None,
    )  # fmt: skip


def _words(parameter: Param) -> tuple[Any, ...]:
    """Return the words that a parameter may be."""
    checks = parameter.check.checks if isinstance(parameter.check, AnyOf) else (parameter.check,)
    return next((check.options for check in checks if isinstance(check, Choice)), ())


def _given_list(context: click.Context, parameter: click.Parameter, values: Any) -> Any:
    """Split a list for the library, which decides about names that are given twice."""
    return split_list(values, str(parameter.name)) if values else None


def name_list(context: click.Context, parameter: click.Parameter, values: Any) -> list[str]:
    """Split the lists of an option that may be repeated; a callback of click."""
    return list(dict.fromkeys(split_list(values, str(parameter.name)))) if values else []


def split_list(values: Sequence[str], name: str) -> list[str]:
    """Split lists at their commas, but not within parentheses or after the colon of parameters.

    Examples
    --------
    >>> split_list(["age,size (cm, dry)", "dose"], "include")
    ['age', 'size (cm, dry)', 'dose']
    >>> split_list(["gsrfs:r=1,lam=0.1"], "compare_with")
    ['gsrfs:r=1,lam=0.1']
    """
    found: list[str] = []
    for value in values:
        whole = name == "compare_with" and ":" in value
        parts = [value] if whole else re.split(r",(?![^(]*\))", value)
        found += [part.strip() for part in parts if part.strip()]
    if not found:
        # An empty list is a slip, such as a variable of the shell that is not set: not "all".
        raise InputError(
            (Setting(name), " names nothing"), parameter=name,
            hint="name one or more, or leave it out",
        )  # fmt: skip
    return found


def parse_bytes(text: str) -> int:
    """Read a number of bytes such as 4G or 500M; K, M, G and T are powers of 1024.

    Examples
    --------
    >>> parse_bytes("1.5K")
    1536
    """
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?) *([KMGT]?)(?:I?B)?", text.strip().upper())
    if match is None:
        raise InputError(
            parameter="memory_limit", value=text, expected="a number of bytes, such as 4G or 500M"
        )
    return int(Fraction(match[1]) * UNITS[match[2]])


class LazyGroup(click.Group):
    """A group that imports a command when it is used, not for its help.

    Parameters
    ----------
    name : str
    text : str
        What the help says of the group.
    commands : mapping of str to (str, str)
        Place of each command, such as "exactk.cli.select:select", and its short help.
    """

    def __init__(
        self, name: str, text: str, commands: Mapping[str, tuple[str, str]], **kwargs: Any
    ) -> None:
        super().__init__(
            name, help=text, callback=_show_help, invoke_without_command=True,
            context_settings=HELP, **kwargs,
        )  # fmt: skip
        self.lazy = dict(commands)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which they were given."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in self.lazy:
            return None
        module, _, name = self.lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command; an unknown name is an error with a suggestion."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            hint = suggest(args[0], known) or f"{ctx.command_path} has {', '.join(known)}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names with their short help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.lazy.items()])


@click.pass_context
def _show_help(context: click.Context) -> None:
    """Show the help of a group that was called without a command."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
