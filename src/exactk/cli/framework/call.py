"""What a command was asked, the table that it reads, and the result that it writes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from exactk._version import __version__
from exactk.cli import INTERRUPTED
from exactk.cli.framework.options import (
    FORMATS,
    HELP,
    Command,
    Session,
    argument,
    option,
    parse_bytes,
    shared_options,
)
from exactk.cli.framework.output import check_place, note, plain, to_json, write_text
from exactk.cli.framework.settings import CONSTRAINTS, read_config, read_spec
from exactk.errors import ExactkError, InputError, Setting, Text, render
from exactk.params import PARAMS, Param

if TYPE_CHECKING:
    from exactk.problem.problem import Problem
    from exactk.problem.read_table import TableData

__all__ = ["CONFIG", "RULES", "TABLE", "Call", "command", "is_interrupted"]

# Parameters of most commands that read a table: those with an option, and those without.
TABLE = ("drop", "weights", "task")
CONFIG = ("columns", "classes", "layer", "gene_names", "memory_limit", "class_weight")
RULES = ("include", "exclude", "max_correlation")
# Parameters of `read_table`; the others go to the function that answers.
READ = (
    "columns", "drop", "weights", "groups", "task", "classes", "layer", "gene_names",
    "memory_limit",
)  # fmt: skip


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
    problem : Problem or None
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
    problem: Problem | None = None

    @property
    def verbose(self) -> int:
        """1 unless ``--quiet`` was given."""
        return 0 if self.session.quiet else 1

    @property
    def inputs(self) -> list[str]:
        """Files that no output may replace."""
        return [one for one in (self.table, self.config_file) if one is not None]

    def reading(self) -> dict[str, Any]:
        """Return the parameters of `exactk.read_table` that were given."""
        return {name: self.values[name] for name in READ if name in self.values}

    def read(self) -> TableData:
        """Read the table by `exactk.read_table`."""
        from exactk.losses.registry import task_of
        from exactk.problem.read_table import read_table

        for name in ("method", "loss", "compare_with"):
            if name in self.values:
                self.values[name] = _made(name, self.values[name])
        given = self.reading()
        if "loss" in self.values:
            # Moments know their task.
            task = task_of(self.values["loss"], given.get("task", "auto"))
            given |= {"task": task} if self.target is not None else {}
        assert self.table is not None
        data = read_table(self.table, self.target, **given, verbose=self.verbose)
        self.problem = data.problem
        return data

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

    def emit(self, result: Any, text: Callable[[], str] | str | None = None, **parts: Any) -> int:
        """Write a result in the format that was asked for, and return the exit code.

        Parameters
        ----------
        result : object
            With `to_dict` for JSON and `table` for CSV; its `message`, `assumptions` and `status`
            are said if it has them.
        text : str, callable or None
            What ``--format text`` shows; None is the repr of the result.
        **parts
            Further results, which the JSON has beside "result".
        """
        if self.style == "json":
            found = {name: one.to_dict() for name, one in parts.items() if one is not None}
            shown = to_json({**self.envelope(result.to_dict()), **plain(found)})
        elif self.style == "csv":
            shown = result.table.to_csv()
        else:
            shown = (text() if callable(text) else text) or repr(result)
            shown = "\n".join([shown, *(f"assumed    {one}" for one in self.assumptions())])
        write_text(shown if shown.endswith("\n") else f"{shown}\n", self.output)
        results = [result, *(one for one in parts.values() if one is not None)]
        return self.finish(*results, shown=shown if self.style == "text" else "")

    def finish(self, *results: Any, shown: str = "") -> int:
        """Say what the results assume and what happened, and return the exit code."""
        self.say(*self.assumptions(), kind="Assumed", shown=shown)
        self.say(*(getattr(one, "message", "") for one in results), shown=shown)
        if any(is_interrupted(one) for one in results):
            note("this was found until then", "Interrupted")
            return INTERRUPTED
        return 0

    def envelope(self, result: Any) -> dict[str, Any]:
        """Return what ``--format json`` writes, with any plain value as the result."""
        given = {"table": self.table, "target": self.target, **self.values}
        return {
            "format": "exactk-result",
            "version": 1,
            "command": self.name,
            "exactk": __version__,
            "call": plain({name: value for name, value in given.items() if value is not None}),
            "assumptions": self.assumptions(),
            "result": plain(result),
        }

    def assumptions(self) -> list[str]:
        """Return what was assumed about the table, with options in place of parameters."""
        return [self.text_of(one) for one in getattr(self.problem, "assumptions", ())]

    def text_of(self, message: Text) -> str:
        """Return a message with options in place of parameters."""
        return render(message, self.session.show)

    def say(self, *messages: Text, kind: str = "Note", shown: str = "") -> None:
        """Write notes to stderr, each once, unless ``--quiet`` was given or they were shown."""
        for message in messages:
            text = self.text_of(message)
            if text and not self.session.quiet and text not in self._said and text not in shown:
                self._said.add(text)
                note(text, kind)

    _said: set[str] = field(default_factory=set)

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


def command(
    name: str,
    *,
    parameters: Sequence[str | Param] = (),
    config: Sequence[str | Param] = (),
    of: str = "",
    auto: Sequence[str] = (),
    table: bool = False,
    formats: Sequence[str] = FORMATS,
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function ``f(call, **own)``; see `exactk.cli.framework`."""

    def decorate(function: Callable[..., Any]) -> Command:
        def run(**values: Any) -> Any:
            call = _read_call(name, values)
            if call.output is not None:
                check_place(call.output, call.inputs)
            with call.warnings_as_notes():
                return function(call, **values)

        run.__doc__ = function.__doc__
        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        wrapped: Any = shared_options(hidden=True)(run)
        if formats:
            wrapped = option(
                "-o", "--output", type=click.Path(), metavar="FILE",
                help="Write to FILE in place of stdout.",
            )(wrapped)  # fmt: skip
            wrapped = option(
                "--format", "style", type=click.Choice(list(formats)), default=formats[0],
                metavar="|".join(formats), help="Format of the result.",
            )(wrapped)  # fmt: skip
        if table:
            wrapped = option(
                "--config", "config_file", type=click.Path(), metavar="FILE", section="Input",
                help=_config_help(config, parameters),
            )(wrapped)  # fmt: skip
            wrapped = argument("target", required=False)(wrapped)
            wrapped = argument("table", type=click.Path())(wrapped)
        made: Command = click.command(
            name.rpartition(" ")[2], cls=Command, parameters=parameters, config=config, of=of,
            auto=auto, context_settings=HELP,
        )(wrapped)  # fmt: skip
        return made

    return decorate


def _config_help(config: Sequence[str | Param], parameters: Sequence[str | Param]) -> str:
    names = [one if isinstance(one, str) else one.name for one in (*config, *parameters)]
    tables = ["[k]"] * ("k" in names) + ["[constraints]"] * ("include" in names)
    return f"TOML file with further parameters: {', '.join([*names[: len(config)], *tables])}."


def _read_call(name: str, values: dict[str, Any]) -> Call:
    """Take what every command has out of the values of click."""
    context = click.get_current_context()
    spec: Any = context.command
    options = {one: values.pop(one) for one in spec.parameters}
    known = {one: values.pop(one, None) for one in ("table", "target", "config_file", "output")}
    found: dict[str, Any] = {}
    if known["config_file"] is not None:
        # What stands in the tables [k] and [constraints] does not stand beside them.
        inside = {*CONSTRAINTS, *spec.auto_names}
        allowed = {one.name: one for one in (*spec.parameters.values(), *spec.config)
                   if one.name not in inside}  # fmt: skip
        if "include" in spec.parameters:
            allowed["constraints"] = PARAMS["constraints"]
        found = read_config(known["config_file"], allowed, f"exactk {name}")
        if isinstance(found.get("memory_limit"), str):
            found["memory_limit"] = parse_bytes(found["memory_limit"])
    _merge(found, {one: value for one, value in options.items() if value is not None}, spec)
    style, session = values.pop("style", "text"), context.ensure_object(Session)
    return Call(name, found, style=style, session=session, **known)


def _merge(found: dict[str, Any], given: dict[str, Any], spec: Command) -> None:
    """Put options over the values of the configuration file."""
    rules = {one: given.pop(one) for one in CONSTRAINTS if one in given}
    if rules:
        found["constraints"] = {**found.get("constraints", {}), **rules}
    auto = {one: given.pop(one) for one in spec.auto_names if one in given}
    if given.get("k") == "auto" and isinstance(found.get("k"), dict):
        del given["k"]
    found.update(given)
    if auto:
        base = found.get("k", "auto")
        if isinstance(base, int):
            name = next(iter(auto))
            raise InputError(
                (Setting(name), f" chooses the number of features, and k is {base}"),
                parameter=name, hint=("use ", Setting("k", "auto")),
            )  # fmt: skip
        found["k"] = {**(base if isinstance(base, dict) else {}), **auto}
