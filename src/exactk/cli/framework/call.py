"""What a command was asked, the table that it reads, and the result that it writes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from exactk._version import __version__
from exactk.cli import INTERRUPTED, start_work
from exactk.cli.framework.options import HELP, Option, option_of, param, parse_bytes
from exactk.cli.framework.output import check_place, note, to_json, write_text
from exactk.cli.framework.settings import CONSTRAINTS, TABLES, key_of, read_config, read_spec, show
from exactk.errors import ExactkError, InputError, Setting, Text, render, suggest
from exactk.params import DEFAULTS, PARAMS, SECTIONS, Param

if TYPE_CHECKING:
    from exactk.problem.read_table import TableData

__all__ = [
    "CONFIG", "RULES", "TABLE", "Call", "Command", "Session", "command", "is_interrupted",
    "shared_options",
]  # fmt: skip

FORMATS = ("text", "json", "csv")
# Parameters of most commands that read a table: those with an option, and those without.
TABLE = ("drop", "weights", "task")
CONFIG = ("columns", "classes", "layer", "gene_names", "memory_limit", "class_weight")
RULES = ("include", "exclude", "max_correlation")
ODD_NAMES = "a name with a comma, or a space at an end, must be written in --config FILE"
# Parameters of `read_table`; the others go to the function that answers.
READ = (*TABLE, "groups", *CONFIG[:-1])


@dataclass
class Session:
    """One run of the program: what is known when an error ends it."""

    words: Sequence[str] = ()
    debug: bool = False
    quiet: bool = False
    command: Command | None = None
    call: Call | None = None

    @property
    def data_names(self) -> dict[str, str]:
        """Words for the table and the target, which Python calls X and y."""
        if self.call is None:
            return {}
        target = self.call.target if self.call.data is None else self.call.data.target
        named = {"X": ("table", self.call.table), "y": ("target", target)}
        return {
            name: f"{word} {value!r}" for name, (word, value) in named.items() if value is not None
        }

    def show(self, setting: Setting) -> str:
        """Write a parameter as the option of the command, or as a key of its configuration file."""
        if setting.name in self.data_names:
            return self.data_names[setting.name]
        return show(setting, {} if self.command is None else self.command.option_names)

    def explain(self, error: ExactkError) -> str:
        """Return the text of an error, which names the table or the target if that is wrong."""
        text = error.text(self.show)
        name = self.data_names.get(str(error.parameter), "")
        text = text if name in text else f"{name}: {text}"
        return f"{text}; {ODD_NAMES}" if self._has_odd_names(error.parameter) else text

    def _has_odd_names(self, parameter: str | None) -> bool:
        """Return whether a list of the command line may have split the name of a column."""
        if self.command is None or parameter not in self.command.parameters:
            return False
        one = self.command.parameters[parameter]
        if not one.metavar.startswith("COLUMN,") or one.option not in self.words:
            return False
        data = None if self.call is None else self.call.data
        # Without a table, what was typed is all that is known.
        names = self.words if data is None else data.problem.original_names
        return any("," in name or name != name.strip() for name in names)

    def unknown_option(self, error: click.NoSuchOption) -> str:
        """Return the error of an option that does not exist."""
        assert error.ctx is not None
        command, name, key = error.ctx.command, error.option_name, key_of(error.option_name)
        if isinstance(command, Command) and key in command.keys:
            hint = f"use {self.show(Setting(key))}"
        else:
            known = [word for one in command.get_params(error.ctx) for word in one.opts]
            hint = suggest(name, known) or f"see {error.ctx.command_path} --help"
        return f"{error.ctx.command_path} has no option {name!r}; {hint}"


@dataclass
class Call:
    """One call of a command.

    Attributes
    ----------
    name : str
        The command, such as "select" or "papers run".
    values : dict
        The parameters that were given, by name: an option goes before the configuration file.
        `constraints` is a dict, and `k` a dict if it has parameters of `AutoK`.
    table, target : str or None
    style : {"text", "json", "csv"}
    output : str or None
    session : Session
    data : TableData or None
        What was read, as soon as it is.
    """

    name: str
    values: dict[str, Any]
    table: str | None = None
    target: str | None = None
    config_file: str | None = None
    style: str = "text"
    output: str | None = None
    session: Session = field(default_factory=Session)
    data: TableData | None = None
    _said: set[str] = field(default_factory=set)

    @property
    def verbose(self) -> int:
        """1 unless ``--quiet`` was given."""
        return 0 if self.session.quiet else 1

    @property
    def inputs(self) -> list[str]:
        """Files that no output may replace."""
        return [one for one in (self.table, self.config_file) if one is not None]

    @property
    def reading(self) -> dict[str, Any]:
        """The parameters of `exactk.read_table` that were given."""
        return {name: self.values[name] for name in READ if name in self.values}

    def read(self) -> TableData:
        """Read the table by `exactk.read_table`."""
        from exactk.losses.registry import task_of
        from exactk.problem.read_table import read_table

        for name in ("method", "loss", "compare_with"):
            if name in self.values:
                self.values[name] = _made(name, self.values[name])
        given = self.reading
        if "loss" in self.values and self.target is not None:
            # Moments know their task.
            given["task"] = task_of(self.values["loss"], given.get("task", "auto"))
        self.data = read_table(str(self.table), self.target, **given, verbose=self.verbose)
        return self.data

    def arguments(self, data: TableData) -> dict[str, Any]:
        """Return the other parameters that were given, for the function that answers."""
        found = {name: value for name, value in self.values.items() if name not in READ}
        if "certify" in found:
            # Zero leaves a part of a report out.
            found["certify"] = found["certify"] or False
        if isinstance(found.get("k"), dict):
            from exactk.model_selection.choose_k import AutoK

            found["k"] = AutoK(**found["k"])
        if data.groups is not None:
            found["groups"] = data.groups
        # A problem that was just read has no ridge yet.
        found.setdefault("ridge", "auto")
        return {**found, "verbose": self.verbose}

    def ask(self, function: Callable[..., Any]) -> Any:
        """Read the table, and call a function of the library with the given parameters."""
        data = self.read()
        return function(data.problem, **self.arguments(data))

    def heading(self, count: int, what: str = "") -> str:
        """Return the first line of a text: how many features, or others, of which table."""
        assert self.data is not None
        problem = self.data.problem
        return (
            f"{count} {what or f'of {len(problem.original_names)} features'} for "
            f"{self.data.target!r} ({problem.task}, {problem.n_rows} rows)"
        )

    def emit(self, result: Any, lines: Sequence[str] = (), **parts: Any) -> int:
        """Write a result in the requested format, and return the exit code.

        Parameters
        ----------
        result : object
            With `to_dict` for JSON and `table` for CSV; its `message` and `status` are said if it
            has them.
        lines : sequence of str
            What ``--format text`` shows in place of the repr of the result.
        **parts
            Further results, which the JSON has beside "result".
        """
        found = {name: one for name, one in parts.items() if one is not None}
        if self.style == "json":
            given = {"table": self.table, "target": self.target, **self.values}
            shown = to_json({
                "format": "exactk-result",
                "version": 1,
                "command": self.name,
                "exactk": __version__,
                "call": {name: value for name, value in given.items() if value is not None},
                "assumptions": self.assumptions(),
                "result": result.to_dict(),
                **{name: one.to_dict() for name, one in found.items()},
            })  # fmt: skip
        elif self.style == "csv":
            shown = result.table.to_csv()
        else:
            assumed = [f"assumed    {one}" for one in self.assumptions()]
            shown = "\n".join([*(lines or [repr(result)]), *assumed])
        write_text(shown if shown.endswith("\n") else f"{shown}\n", self.output)
        if self.output is not None:
            self.say(f"wrote {self.output}")
        return self.finish(result, *found.values(), shown=shown if self.style == "text" else "")

    def finish(self, *results: Any, shown: str = "") -> int:
        """Say what the results assume and what happened, and return the exit code."""
        self.say(*self.assumptions(), kind="Assumed", shown=shown)
        self.say(*(getattr(one, "message", "") for one in results), shown=shown)
        if any(is_interrupted(one) for one in results):
            note("this was found until then", "Interrupted")
            return INTERRUPTED
        return 0

    def assumptions(self) -> list[str]:
        """Return what was assumed about the table, with options in place of parameters."""
        assumed = () if self.data is None else self.data.problem.assumptions
        return [render(one, self.session.show) for one in assumed]

    def say(self, *messages: Text, kind: str = "Note", shown: str = "") -> None:
        """Write notes to stderr, each once, unless ``--quiet`` was given or they were shown."""
        for message in messages:
            text = render(message, self.session.show)
            if text and not self.session.quiet and text not in self._said and text not in shown:
                self._said.add(text)
                note(text, kind)

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Write each warning of the library once, as a sentence."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                self.say(*(str(one.message) for one in caught), kind="Warning")


def is_interrupted(result: Any) -> bool:
    """Return whether Ctrl-C ended the work."""
    return getattr(result, "status", None) == "interrupted" or bool(
        getattr(result, "interrupted", False)
    )


def _made(name: str, value: Any) -> Any:
    """Make objects of methods and losses that are given with parameters, before any work."""
    if isinstance(value, list):
        return [_made(name, one) for one in value]
    if ":" not in value:
        return value
    from exactk.losses.registry import create as create_loss
    from exactk.methods.registry import create

    try:
        kind, values = read_spec(value, name)
        made = (create_loss if name == "loss" else create)(kind, **values)
        made.check()
    except ExactkError as error:
        # Parameters of a method are written as in Python; none of them is an option.
        raise InputError((Setting(name, value), f": {error}"), parameter=name) from error
    return made


def command(name: str, **options: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function ``f(call, **own)``; see `exactk.cli.framework`."""
    return lambda function: Command(name, function, **options)


class Command(click.Command):
    """A command with options of `exactk.params`; its help has them under headings."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        parameters: Sequence[str | Param] = (),
        config: Sequence[str | Param] = (),
        of: str = "",
        auto: Sequence[str] = (),
        table: bool = False,
        formats: Sequence[str] = FORMATS,
    ) -> None:
        self.words, self.function, self.auto = name, function, auto
        self.parameters = {one.name: one for one in map(param, parameters)}
        self.config = [param(one) for one in config]
        # A table that was just read has no ridge and no loss of its own.
        other = {**DEFAULTS.get(of, {}), **{n: PARAMS[n].default for n in ("ridge", "loss")}}
        params: list[click.Parameter] = [
            option_of(one, other.get(one.name, one.default)) for one in self.parameters.values()
        ]
        self.tables = {
            table: names
            for table, names in TABLES.items()
            if table in self.parameters or (table == "constraints" and "include" in self.parameters)
        }
        if table:
            further = [*(one.name for one in self.config), *(f"[{one}]" for one in self.tables)]
            params += [
                click.Argument(["table"], type=click.Path()),
                click.Argument(["target"], required=False),
                Option(["--config", "config_file"], type=click.Path(), metavar="FILE",
                       section="Input",
                       help=f"TOML file with further parameters: {', '.join(further)}."),
            ]  # fmt: skip
        if formats:
            params += [
                Option(["--format", "style"], type=click.Choice(formats), default=formats[0],
                       metavar="|".join(formats), help="Format of the result."),
                Option(["-o", "--output"], type=click.Path(), metavar="FILE",
                       help="Write to FILE in place of stdout."),
            ]  # fmt: skip
        own = reversed(getattr(function, "__click_params__", []))
        super().__init__(
            name.rpartition(" ")[2], params=[*params, *shared_options(), *own],
            help=inspect.getdoc(function), context_settings=HELP,
            epilog="\n\n".join(
                f"[{one}] in --config FILE has {', '.join(keys)}."
                for one, keys in self.tables.items()
            ),
        )  # fmt: skip

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
            hint = "several files? Put the pattern in quotes, or give their folder"
            if "table" not in self.option_names:
                hint = f"see {ctx.command_path} --help"
            raise click.UsageError(f"unexpected {' '.join(ctx.args)!r}; {hint}", ctx)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; from here on Ctrl-C returns what was found."""
        start_work()
        own = dict(ctx.params)
        given = {name: own.pop(name) for name in self.parameters}
        taken = {name: own.pop(name, None) for name in ("table", "target", "config_file", "output")}
        session = ctx.ensure_object(Session)
        style = own.pop("style", "text")
        session.call = call = Call(self.words, {}, **taken, style=style, session=session)
        call.values = self._values(given, taken["config_file"], call.say)
        if call.output is not None:
            check_place(call.output, call.inputs)
        with call.warnings_as_notes():
            return self.function(call, **own)

    @property
    def keys(self) -> set[str]:
        """Parameters that its configuration file may have, and that are no options."""
        found = {one.name for one in self.config}.union(*self.tables.values())
        return found - set(self.parameters)

    def _values(
        self, options: dict[str, Any], config_file: str | None, say: Callable[[str], object]
    ) -> dict[str, Any]:
        """Put the options that were given over the values of the configuration file."""
        found: dict[str, Any] = {}
        if config_file is not None:
            # Parameters of the tables [k] and [constraints] cannot be set outside them.
            known = {one.name: one for one in (*self.parameters.values(), *self.config)}
            allowed = {n: one for n, one in known.items() if n not in (*CONSTRAINTS, *self.auto)}
            if "include" in known:
                allowed["constraints"] = PARAMS["constraints"]
            found = read_config(config_file, allowed, f"exactk {self.words}", say)
            if isinstance(found.get("memory_limit"), str):
                found["memory_limit"] = parse_bytes(found["memory_limit"])
        given = {name: value for name, value in options.items() if value is not None}
        rules = {name: given.pop(name) for name in CONSTRAINTS if name in given}
        if rules:
            found["constraints"] = {**found.get("constraints", {}), **rules}
        auto = {name: given.pop(name) for name in self.auto if name in given}
        if given.get("k") == "auto" and isinstance(found.get("k"), dict):
            del given["k"]
        found.update(given)
        base = found.get("k", "auto")
        if auto and isinstance(base, int):
            name = next(iter(auto))
            raise InputError(
                (Setting(name), f" chooses the number of features, and k is {base}"),
                parameter=name, hint=("use ", Setting("k", "auto")),
            )  # fmt: skip
        if auto:
            found["k"] = {**(base if isinstance(base, dict) else {}), **auto}
        return found

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


def shared_options(*, hidden: bool = True) -> list[click.Parameter]:
    """Return ``--quiet`` and ``--debug``, which are in the help of ``exactk`` only."""

    def keep(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            setattr(context.ensure_object(Session), str(parameter.name), True)

    texts = {
        "--quiet": "Show no progress, warnings or notes.",
        "--debug": "Show where an error comes from.",
    }
    return [
        Option([name], is_flag=True, hidden=hidden, expose_value=False, is_eager=True,
               callback=keep, help=text)
        for name, text in texts.items()
    ]  # fmt: skip
