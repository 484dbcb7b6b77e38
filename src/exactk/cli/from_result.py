"""``--from-result FILE``: what an earlier command chose, and what it was asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from exactk.errors import InputError

if TYPE_CHECKING:
    from exactk.cli.table_options import TableOptions
    from exactk.result import Result

__all__ = ["PreviousResult", "read_result", "result_option"]

# What a file says of its table, and the options that say it.
OPTIONS = {
    "columns": "--columns", "drop": "--drop", "weights": "--weights", "layer": "--layer",
    "gene_names": "--gene-names",
}  # fmt: skip


@dataclass(frozen=True)
class PreviousResult:
    """A result that exactk select wrote as JSON, and the rest of the file."""

    file: str
    result: Result
    facts: dict[str, Any]

    def source(self, source: TableOptions) -> TableOptions:
        """Return the options of a command with those of the file where they were not given.

        The ridge is that of the result. Options that say otherwise than the file are refused: the
        result would be of another problem.
        """
        groups = self.facts.get("row_groups")
        dropped = [*self.facts.get("dropped", ()), *([] if groups is None else [groups])]
        stored = {
            "columns": self.facts.get("columns") or [],
            "drop": tuple(dropped),
            **{name: self.facts.get(name) for name in ("weights", "layer", "gene_names")},
        }
        taken: dict[str, Any] = {}
        for name, value in stored.items():
            now = getattr(source, name)
            same = (
                now == value if isinstance(now, str) else sorted(now or ()) == sorted(value or ())
            )
            if now and not same:
                raise self._differs(OPTIONS[name])
            taken[name] = now or value
        constraints = self.facts.get("constraints", {})
        if source.constraints and json.loads(json.dumps(source.constraints)) != constraints:
            raise self._differs("the constraints")
        task = self.facts.get("task", "auto") if source.task == "auto" else source.task
        if source.moments is not None:
            # Moments know their task and have no rows.
            task = "auto"
            taken |= {"weights": None, "layer": None, "gene_names": None}
        return replace(source, constraints=constraints, ridge=self.result.ridge, task=task, **taken)

    def _differs(self, what: str) -> click.UsageError:
        return click.UsageError(
            f"{what} given here and in {self.file!r} differ, so that its result is of another "
            f"problem; leave them out to take those of the file."
        )


def read_result(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> PreviousResult | None:
    """Read the JSON of a command that chooses features."""
    if value is None:
        return None
    from exactk.result import Result

    try:
        with open(value, encoding="utf-8") as file:
            content = json.load(file)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"--from-result {value!r} is not JSON: {error}") from error
    # Other commands have it as a part of theirs.
    stored = content
    if isinstance(content, dict) and "support" not in content:
        stored = content.get("result")
    if not isinstance(content, dict) or not isinstance(stored, dict):
        raise InputError(
            f"--from-result {value!r} has no result: give what exactk select --format json wrote"
        )
    try:
        return PreviousResult(value, Result.from_dict(stored), content)
    except (InputError, TypeError, ValueError, KeyError) as error:
        raise InputError(
            f"--from-result {value!r} cannot be read: {error}; give what exactk select --format "
            f"json wrote"
        ) from error


result_option = click.option(
    "--from-result",
    "earlier",
    metavar="FILE",
    callback=read_result,
    help="JSON of exactk select: prove its features, with its ridge, columns and constraints.",
)
