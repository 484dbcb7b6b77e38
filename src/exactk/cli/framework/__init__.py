"""How commands are written: options from `exactk.params`, one way to read and one to write.

A command is a function of a `Call` and of the options that only it has::

    @command(
        "stability",
        parameters=(*TABLE, "groups", "k", *RULES, "n_subsamples", "method", "random_state"),
        config=(*CONFIG, "negligible", "level"),
        of="stability",
        table=True,
    )
    def stability(call: Call) -> int:
        \"\"\"Select K features of TABLE on many half-samples of its rows.\"\"\"
        from exactk import stability

        return call.emit(call.ask(stability))

* ``parameters`` are names of `PARAMS`, or `param("k", help="...")` for one that differs here.
  The option, its check, its help and its heading come from there. ``config`` are parameters that
  can be set in ``--config FILE`` only. ``of`` names the entry of `DEFAULTS` that the help shows.
* ``table=True`` adds the arguments TABLE and TARGET and the option ``--config``.
* ``formats=("text", "json")`` limits ``--format``; an empty tuple leaves out it and ``--output``.
* Options that are no parameter of the library are added by `option("--export", section="Output",
  ...)` and arguments by `argument("FILE")`, below the decorator; they are passed to the function.
* `Call.values` has the parameters that were given, and only those: defaults stay in the library.
  `Call.ask` reads the table and gives the function of the library the rest.
* `Call.emit` writes text, JSON or CSV of a result with ``table`` and ``to_dict``, says what was
  assumed, and returns the exit code. `Listing` is a result of rows.
* An error is an `InputError` with `Setting` parts, which become options. Exit code 2.
* Imports of numpy, scikit-learn and the library stand inside the function: ``exactk --help``
  loads none of them. A `LazyGroup` has the place and the short help of its commands.
* ``--quiet`` and ``--debug`` work in every command; read `Call.verbose`.
"""

from __future__ import annotations

from exactk.cli.framework.call import CONFIG, RULES, TABLE, Call, command, is_interrupted
from exactk.cli.framework.options import LazyGroup, argument, name_list, option, param, split_list
from exactk.cli.framework.output import Listing, aligned, check_place, note, write_text

__all__ = [
    "CONFIG", "RULES", "TABLE", "Call", "LazyGroup", "Listing", "aligned", "argument",
    "check_place", "command", "is_interrupted", "name_list", "note", "option", "param",
    "split_list", "write_text",
]  # fmt: skip
