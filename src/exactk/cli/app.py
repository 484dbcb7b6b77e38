"""The group of commands, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import click

from exactk._version import __version__
from exactk.cli import BAD_INPUT, INTERRUPTED, interrupted
from exactk.cli.framework.call import Session, shared_options
from exactk.cli.framework.options import LazyGroup
from exactk.cli.framework.output import to_sentence
from exactk.errors import ExactkError

__all__ = ["app", "run"]

COMMANDS = {
    "select": ("exactk.cli.select:select", "Select the best K features of a table."),
    "certify": ("exactk.cli.questions:certify", "Prove that no other K features are better."),
    "explain": ("exactk.cli.questions:explain", "Explain a selection and list alternatives."),
    "stability": ("exactk.cli.questions:stability", "Select on many half-samples of the rows."),
    "evaluate": ("exactk.cli.questions:evaluate", "Score selections on held-out rows."),
    "report": ("exactk.cli.report:report", "Write an HTML report on the best K features."),
    "apply": ("exactk.cli.apply:apply", "Apply an exported selection to a table."),
    "moments": ("exactk.cli.moments:moments", "Build, merge and show moments of tables."),
    "list": ("exactk.cli.list:list_", "List methods and losses."),
    "papers": ("exactk.cli.papers:papers", "Run the experiments of the papers; fetch data."),
}

EPILOG = """\b
Completion of commands and options by the Tab key; put one line in the
start file of your shell:
  bash  eval "$(_EXACTK_COMPLETE=bash_source exactk)"
  zsh   eval "$(_EXACTK_COMPLETE=zsh_source exactk)"
  fish  _EXACTK_COMPLETE=fish_source exactk | source
"""


app = LazyGroup(
    "exactk",
    """Select exactly k features of a table: exactk COMMAND TABLE TARGET.

    The options below may also follow the command.
    """,
    COMMANDS,
    params=shared_options(hidden=False),
    epilog=EPILOG,
)
click.version_option(__version__, message="%(prog)s %(version)s")(app)


def run(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Examples
    --------
    >>> run(["--version"])  # doctest: +ELLIPSIS
    exactk ...
    0
    """
    session = Session(words=sys.argv[1:] if args is None else list(args))
    try:
        code = app.main(
            args=list(session.words), prog_name="exactk", standalone_mode=False, obj=session
        )
    except (Exception, KeyboardInterrupt) as error:
        # Any error becomes a sentence and an exit code; one of our own mistakes is raised again.
        message, code = _explain(error, session)
        if session.debug:
            traceback.print_exception(error)
        click.echo(f"Error: {to_sentence(message)}", err=True)
    return code if isinstance(code, int) else 0


def _explain(error: BaseException, session: Session) -> tuple[str, int]:
    """Return the message and the exit code of an error; one of our own mistakes is raised again."""
    # A library may turn an interrupt into an error of its own.
    if isinstance(error, (click.exceptions.Abort, KeyboardInterrupt)) or interrupted():
        return "interrupted; nothing was written", INTERRUPTED
    if isinstance(error, click.NoSuchOption):
        return session.unknown_option(error), BAD_INPUT
    if isinstance(error, click.ClickException):
        return error.format_message(), BAD_INPUT
    if isinstance(error, ExactkError):
        return session.explain(error), BAD_INPUT
    if isinstance(error, OSError):
        what = "write the result" if error.filename is None else f"use {str(error.filename)!r}"
        return f"cannot {what}: {error.strerror or error}", BAD_INPUT
    raise error
