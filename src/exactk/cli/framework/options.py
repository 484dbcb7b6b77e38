"""Commands whose options come from `exactk.params`, and groups that load them when they are used.

See `exactk.cli.framework` for how to write a command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import click

from exactk.cli import start_work
from exactk.cli.framework.settings import Show, is_list, textual
from exactk.errors import InputError, Setting, suggest
from exactk.params import DEFAULTS, PARAMS, SECTIONS, AnyOf, Choice, Param

__all__ = [
    "FORMATS",
    "Command",
    "LazyGroup",
    "Option",
    "ParamType",
    "Session",
    "argument",
    "option",
    "param",
    "parse_bytes",
    "shared_options",
    "split_list",
]

FORMATS = ("text", "json", "csv")
HELP = {"help_option_names": ["-h", "--help"]}
UNITS = {unit: 2 ** (10 * power) for power, unit in enumerate(("", "K", "M", "G", "T"))}


@dataclass
class Session:
    """One run of the program: what is known when an error ends it."""

    words: Sequence[str] = ()
    debug: bool = False
    quiet: bool = False
    command: Command | None = None

    def show(self, setting: Setting) -> str:
        """Write a parameter as the option of the command, or as a key of its configuration file."""
        return Show({} if self.command is None else self.command.option_names)(setting)


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
        if not isinstance(value, str):
            return value
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


def option(*names: str, section: str = "Output", **kwargs: Any) -> Callable[..., Any]:
    """Give a command an option that is no parameter of the library; see `click.option`."""
    return click.option(*names, cls=Option, section=section, **kwargs)


argument = click.argument


def _option_of(parameter: Param, default: Any) -> Option:
    listed, text = is_list(parameter), parameter.help
    words = "|".join(map(str, _words(parameter)))
    if default is not None and default != () and default is not False:
        shown = ",".join(default) if isinstance(default, tuple) else default
        text += f"  [default: {f'{shown:g}' if isinstance(shown, float) else shown}]"
    return Option(
        [parameter.option, parameter.name], section=parameter.section, help=text,
        type=str if listed else ParamType(parameter), multiple=listed,
        metavar=parameter.metavar or words or None, callback=_split if listed else None,
    )  # fmt: skip


def _words(parameter: Param) -> tuple[Any, ...]:
    """Return the words that a parameter may be."""
    checks = parameter.check.checks if isinstance(parameter.check, AnyOf) else (parameter.check,)
    return next((check.options for check in checks if isinstance(check, Choice)), ())


def _split(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> list[str] | None:
    return split_list(values, parameter.name or "") if values else None


def split_list(values: Sequence[str], name: str) -> list[str]:
    """Split lists at their commas, but not within parentheses or after the colon of parameters.

    Examples
    --------
    >>> split_list(["age,size (cm, dry)", "age"], "include")
    ['age', 'size (cm, dry)']
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
            (Setting(name), " names nothing"), parameter=name, hint="name a column, or leave it out"
        )
    return list(dict.fromkeys(found))


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


def shared_options(*, hidden: bool) -> Callable[[Any], Any]:
    """Give a command ``--quiet`` and ``--debug``, which stand in the help of ``exactk`` only."""

    def keep(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        session = context.ensure_object(Session)
        if value:
            setattr(session, str(parameter.name), True)

    def decorate(command: Any) -> Any:
        for name, text in (
            ("--debug", "Show where an error comes from."),
            ("--quiet", "Show no progress, warnings or notes."),
        ):
            command = option(
                name, is_flag=True, hidden=hidden, expose_value=False, is_eager=True,
                callback=keep, help=text,
            )(command)  # fmt: skip
        return command

    return decorate


class Command(click.Command):
    """A command with options of `exactk.params`; its help has them under headings."""

    def __init__(
        self,
        *args: Any,
        parameters: Sequence[str | Param] = (),
        config: Sequence[str | Param] = (),
        of: str = "",
        auto: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        given = [param(one) for one in parameters]
        self.parameters = {one.name: one for one in given}
        self.config = [param(one) for one in config]
        self.auto_names = tuple(auto)
        # A table that was just read has no ridge and no loss of its own.
        other = {**DEFAULTS.get(of, {}), **{n: PARAMS[n].default for n in ("ridge", "loss")}}
        own = [_option_of(one, other.get(one.name, one.default)) for one in given]
        self.params = [*own, *self.params]

    @property
    def option_names(self) -> dict[str, str]:
        """Option or argument of each parameter."""
        return {
            str(one.name): one.human_readable_name
            if isinstance(one, click.Argument)
            else max(one.opts, key=len)
            for one in self.params
        }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line."""
        ctx.ensure_object(Session).command = self
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            # A shell makes many words of a pattern that is not in quotes.
            raise click.UsageError(
                f"unexpected {' '.join(ctx.args)!r}. Several files? Put the pattern in quotes, or "
                f"give their folder.", ctx,
            )  # fmt: skip
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; from here on Ctrl-C returns what was found."""
        start_work()
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of `exactk.params.SECTIONS`."""
        for section in SECTIONS:
            records = [
                one.get_help_record(ctx)
                for one in self.get_params(ctx)
                if isinstance(one, click.Option) and getattr(one, "section", "Output") == section
            ]
            rows = [record for record in records if record]
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows, col_max=26)


class LazyGroup(click.Group):
    """A group that imports a command when it is used, not for its help.

    Parameters
    ----------
    lazy : mapping of str to (str, str)
        Place of each command, such as "exactk.cli.select:select", and its short help.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy)

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
