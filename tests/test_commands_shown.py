"""Commands that the pages show are commands, and print what is shown."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import click
import pytest
from sklearn.datasets import load_wine

from exactk.cli import main
from exactk.cli.app import app

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
)
# What differs from run to run: seconds at the end of a line, and how many nodes of a tree a proof
# explored.
PASSING = re.compile(r", [\d.e-]+ s$|\d+ nodes explored|right to [\d.e-]+")
CHECKED = (click.Choice, click.IntRange, click.FloatRange)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def words_of(line: str) -> list[str]:
    """The words after ``exactk``; a remark stands behind a # or behind much space."""
    command = re.split(r"\s{3,}", line.strip())[0]
    return shlex.split(command, comments=True)[1:]


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words lead to, and what is left of them."""
    command: click.Command = app
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(click.Context(command), rest[0])
        assert found is not None, f"exactk {' '.join(words)}: no command {rest[0]!r}"
        command = found
        rest.pop(0)
    return command, rest


def parse(words: list[str], whole: bool) -> None:
    """Raise unless the options are those of the command; of a whole one nothing may be missing."""
    command, rest = command_of(words)
    context = click.Context(command)
    given, left, _ = command.make_parser(context).parse_args(args=rest)
    for parameter in command.params:
        value = given.get(parameter.name)
        if whole and parameter.required:
            assert value not in (None, ()), f"exactk {' '.join(words)}: no {parameter.name}"
        typed = isinstance(parameter.type, CHECKED) and not parameter.multiple
        if whole and typed and isinstance(value, str):
            parameter.type.convert(value, parameter, context)
    assert left == [] or isinstance(command, click.Group), f"exactk {' '.join(words)}: {left}"


def test_a_command_that_is_none_is_found() -> None:
    with pytest.raises(AssertionError, match="no command 'selekt'"):
        parse(["selekt", "wine.csv"], whole=True)
    with pytest.raises(click.NoSuchOption, match="--tarket"):
        parse(["select", "wine.csv", "y", "--tarket", "y", "-k", "4"], whole=True)
    with pytest.raises(AssertionError, match="no output"):
        parse(["moments", "build", "wine.csv", "y"], whole=True)
    with pytest.raises(click.BadParameter, match="yaml"):
        parse(["select", "wine.csv", "y", "-k", "4", "--format", "yaml"], whole=True)


@pytest.mark.parametrize("page", PAGES)
def test_commands_have_the_options_that_pages_give_them(page: str) -> None:
    text = read(page)
    for line in re.findall(r"^    (?:\$ )?(exactk [a-z-].*)$", text, flags=re.M):
        parse(words_of(line), whole=True)
    for found in re.findall(r"`(exactk [a-z][^`]*)`", text):
        # "moments build|merge|info" names three commands, "select --method" an option.
        words = shlex.split(found.split("|")[0])[1:]
        try:
            parse(words, whole=False)
        except click.BadOptionUsage:
            parse([*words, "VALUE"], whole=False)


def shown(page: str) -> list[list[tuple[str, str]]]:
    """Blocks of commands, each with what it is said to print; only blocks that show something."""
    found = []
    for block in re.findall(r"^    \$ exactk .*\n(?:(?:    .*)?\n)*", read(page), flags=re.M):
        lines = [line[4:] for line in block.rstrip().splitlines()]
        starts = [i for i, line in enumerate(lines) if line.startswith("$ ")] + [len(lines)]
        pairs = [
            (lines[i][2:], "\n".join(lines[i + 1 : j]).strip("\n")) for i, j in pairwise(starts)
        ]
        if any(output for _, output in pairs):
            found.append(pairs)
    return found


def lasting(text: str) -> list[str]:
    return [PASSING.sub("", line).rstrip() for line in text.strip("\n").splitlines()]


@pytest.mark.parametrize(
    ("page", "number"), [(page, i) for page in PAGES for i in range(len(shown(page)))]
)
def test_commands_print_what_the_pages_show(
    page: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    wine = load_wine(as_frame=True)
    wine.data.assign(cultivar=[f"c{label}" for label in wine.target]).to_csv(
        tmp_path / "wine.csv", index=False
    )
    monkeypatch.chdir(tmp_path)
    for command, output in shown(page)[number]:
        with pytest.raises(SystemExit) as ended:
            main(words_of(command))
        assert ended.value.code in (0, None)
        printed = capsys.readouterr().out
        assert lasting(printed) == lasting(output), command


def test_every_command_has_its_place_on_the_page() -> None:
    page = read("docs/cli.md")

    def walk(group: click.Group, path: tuple[str, ...]) -> list[str]:
        found = []
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                found += walk(command, (*path, name))
            else:
                found.append(" ".join((*path, name)))
        return found

    commands = walk(app, ())
    assert len(commands) > 10
    for command in commands:
        assert f"# exactk {command}\n\n```{{command-help}} {command}\n" in page, command
        assert f"    $ exactk {command}" in page.split(f"# exactk {command}\n")[1], command
