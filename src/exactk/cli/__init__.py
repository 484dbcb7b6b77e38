"""The command line: ``exactk select``, ``stats``, ``methods``, ``datasets`` and ``bench``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn

__all__ = ["main"]

NEEDED = ("click", "rich", "pyarrow")


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 done, 2 bad usage or input, 130 interrupted.

    Parameters
    ----------
    args : sequence of str, optional
        Words of the command line; those of the process by default.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"exactk: the command line needs {', '.join(missing)}; "
            'install with: pip install "exactk[cli]"\n'
        )
        sys.exit(2)
    try:
        from exactk.cli.app import run

        sys.exit(run(args))
    except KeyboardInterrupt:
        # Before the command has begun, while libraries load.
        sys.stderr.write("exactk: interrupted; nothing was written.\n")
        sys.exit(130)
