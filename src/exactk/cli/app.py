"""The group of commands, and the one place where an error becomes a sentence and a code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from exactk._version import __version__
from exactk.cli.apply import apply
from exactk.cli.bench import bench
from exactk.cli.certify import certify
from exactk.cli.compare import compare
from exactk.cli.datasets import datasets
from exactk.cli.explain import explain
from exactk.cli.losses import losses
from exactk.cli.methods import methods
from exactk.cli.path import path
from exactk.cli.report import report
from exactk.cli.score import score
from exactk.cli.select import select
from exactk.cli.stability import stability
from exactk.cli.stats import stats
from exactk.cli.wording import as_options, as_sentence
from exactk.errors import ExactkError

__all__ = ["app", "run"]

BAD_INPUT = 2
INTERRUPTED = 130


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Pick exactly k features of a table."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


app.add_command(select)
app.add_command(path)
app.add_command(stability)
app.add_command(score)
app.add_command(compare)
app.add_command(explain)
app.add_command(certify)
app.add_command(report)
app.add_command(apply)
app.add_command(stats)
app.add_command(methods)
app.add_command(losses)
app.add_command(datasets)
app.add_command(bench)


def run(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Examples
    --------
    >>> run(["--version"])  # doctest: +ELLIPSIS
    exactk ...
    0
    """
    try:
        # Commands that say how they were called find the words in the object of the context.
        typed = sys.argv[1:] if args is None else list(args)
        code = app.main(args=typed, prog_name="exactk", standalone_mode=False, obj=typed)
    except click.exceptions.Abort:
        return _fail("interrupted; nothing was written", INTERRUPTED)
    except click.UsageError as error:
        words = error.format_message()
        if words.startswith("Got unexpected extra argument"):
            # A shell makes many words of a pattern that is not in quotes.
            words += " Several files? Put the pattern in quotes, or give their folder."
        return _fail(words, BAD_INPUT)
    except click.ClickException as error:
        return _fail(error.format_message(), BAD_INPUT)
    except OSError as error:
        what = "write the result" if error.filename is None else f"use {str(error.filename)!r}"
        return _fail(f"cannot {what}: {error.strerror or error}", BAD_INPUT)
    except ExactkError as error:
        return _fail(as_options(str(error)), BAD_INPUT)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    click.echo(f"exactk: {as_sentence(message)}", err=True)
    return code
