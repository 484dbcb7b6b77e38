"""``command-help``: a command as its own help tells it."""

from __future__ import annotations

from collections.abc import Iterator

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from exactk.cli.app import app

__all__ = ["CommandHelp", "anchor", "commands", "find"]


def commands(group: click.Group = app, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that does something, in the order of the help.

    Examples
    --------
    >>> ("papers", "run") in commands()
    True
    """
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def find(words: tuple[str, ...]) -> click.Command:
    """Return a command, or a group, by its words.

    Examples
    --------
    >>> find(("papers", "run")).name
    'run'
    """
    command: click.Command = app
    for word in words:
        assert isinstance(command, click.Group), f"{' '.join(words)} is not a command"
        found = command.get_command(click.Context(command), word)
        assert found is not None, f"{' '.join(words)} is not a command"
        command = found
    return command


def anchor(words: tuple[str, ...]) -> str:
    """Return the id of a command's place on its page."""
    return "-".join(("command", *words))


class CommandHelp(SphinxDirective):
    """``command-help``: usage, text and options of the command named in the argument."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the usage, the text and a list of the options."""
        words = tuple(self.arguments[0].split())
        command = find(words)
        context = click.Context(command, info_name=" ".join(("exactk", *words)))
        usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
        block = nodes.literal_block(usage, usage, language="none", classes=["usage"])
        block["ids"].append(anchor(words))
        found: list[nodes.Node] = [block]
        text = (command.help or "").replace("\b\n", "").strip()
        found += [nodes.paragraph("", " ".join(part.split())) for part in text.split("\n\n")]
        entries = nodes.definition_list(classes=["options"])
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is None or not record[1]:
                continue
            names, told = record
            term = nodes.term("", "", nodes.literal("", names, classes=["option-name"]))
            entry = nodes.definition("", nodes.paragraph("", told))
            entries += nodes.definition_list_item("", term, entry)
        return [*found, entries]
