"""``exactk select``: a table and a k in, the k best columns out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from exactk.cli.framework import (
    CONFIG,
    RULES,
    TABLE,
    Call,
    aligned,
    check_place,
    command,
    is_interrupted,
    option,
    param,
    write_text,
)
from exactk.errors import InputError, Setting
from exactk.utils.formatting import escape_controls

if TYPE_CHECKING:
    from exactk.model_selection.choose_k import AutoKResult
    from exactk.problem.problem import Problem
    from exactk.proof.results import Certificate
    from exactk.result import Result

__all__ = ["select"]

AUTO = ("k_max", "criterion")
# Parameters of the problem, which must be set before it is searched.
OF_TABLE = ("loss", "class_weight", "constraints")
MEASURES = {"squared": "squared error", "logistic": "deviance", "poisson": "deviance"}


@command(
    "select",
    parameters=(
        *TABLE, "groups", param("k", default=None), *AUTO, *RULES, "method", "loss", "ridge",
        "time_limit", "certify", "random_state",
    ),
    config=(*CONFIG, "effort"),
    auto=AUTO,
    table=True,
)  # fmt: skip
@option(
    "--table", "with_table", is_flag=True, section="Features",
    help="With -k auto: show the best set of every size.",
)  # fmt: skip
@option(
    "--export", type=click.Path(), metavar="FILE",
    help="Also write the selection and its linear fit to FILE, for exactk apply.",
)  # fmt: skip
def select(call: Call, with_table: bool, export: str | None) -> int:
    """Select the best K features of TABLE to predict TARGET.

    TABLE is a file, a folder or a quoted pattern: CSV or TSV (also .gz), Parquet, Arrow, Feather,
    an .h5ad file, or a file made by exactk moments. Every column without another role is a
    feature: numbers, or text with few distinct values, which is encoded and counts as one.
    Folders and large tables are streamed; these must be numeric.
    """
    from exactk.question import read_problem

    if export is not None:
        check_place(export, call.inputs, "--export")
        if call.output is not None and os.path.realpath(export) == os.path.realpath(call.output):
            raise InputError(
                f"--export {export!r} and --output are the same file", parameter="export"
            )
    if "k" not in call.values:
        raise InputError((Setting("k"), " is missing"), parameter="k", hint=(
            "give the number of features, or ", Setting("k", "auto")))  # fmt: skip
    if with_table and isinstance(call.values["k"], int):
        raise InputError(
            "--table shows the sizes that are tried", parameter="table", hint="use it with -k auto"
        )
    data = call.read()
    asked = call.arguments(data)
    seconds = asked.pop("certify", False)
    table = {name: asked.pop(name) for name in OF_TABLE if name in asked}
    problem, choice, certificate = read_problem(data.problem, **table), None, None
    if isinstance(asked["k"], int):
        result = _solve(problem, **asked)
    else:
        from exactk.model_selection.choose_k import choose_k

        given = asked.pop("k")
        auto = {} if isinstance(given, str) else given.get_params(deep=False)
        choice = choose_k(problem, **auto, **asked)
        result = choice.result
    problem = problem.with_ridge(result.ridge)
    if seconds and not is_interrupted(result):
        from exactk.proof.certify import certify

        limit = {} if seconds is True else {"time_limit": seconds}
        certificate = certify(problem, features=result, verbose=call.verbose, **limit)
        result = certificate.result
    if export is not None:
        from exactk.export.saved_selection import SavedSelection

        saved = SavedSelection.from_problem(problem, result, certificate, target=data.target)
        write_text(saved.to_json(indent=2, ensure_ascii=False) + "\n", export, "--export")
        call.say(f"wrote {export}")

    lines = [call.heading(len(result.selected)), "", *_listed(problem, result), ""]
    if choice is not None and with_table:
        lines += [_sizes(choice), ""]
    lines += _facts(problem, result, choice, certificate, asked["ridge"])
    found = choice if choice is not None and with_table and call.style == "csv" else result
    return call.emit(found, lines, choice=choice, certificate=certificate)


def _solve(
    problem: Problem, *, k: int, ridge: Any, method: Any = "exchange", time_limit: Any = None,
    verbose: int = 0, random_state: Any = None, groups: Any = None, **options: Any,
) -> Result:  # fmt: skip
    from exactk.methods.registry import method_class
    from exactk.solver import solve

    kind = method_class(method) if isinstance(method, str) else type(method)
    if random_state is not None and "random_state" in kind.option_names():
        options["random_state"] = random_state
    problem = problem.with_ridge(ridge, k, random_state=random_state, groups=groups)
    return solve(problem, k, method, time_limit=time_limit, verbose=verbose, **options)


def _facts(
    problem: Problem, result: Result, choice: AutoKResult | None, certificate: Certificate | None,
    ridge: str | float,
) -> list[str]:  # fmt: skip
    """Return what is said about a selection, one line for each fact."""
    chosen = None
    if choice is not None:
        how = f"{choice.rule}, {choice.n_folds} folds" if choice.n_folds else "the lowest value"
        by = f"by {choice.scoring or choice.criterion} ({how})"
        chosen = f"k = {choice.k} of 1 to {choice.k_max} "
        chosen += by if choice.is_chosen else "is the largest size found"
    ridge_term = ", ridge term included" if result.ridge else ""
    return aligned({
        "chosen": chosen,
        "objective": f"{result.objective:.6g} of {result.total:.6g}{ridge_term}",
        "explained": f"{result.explained:.1%} of the {MEASURES.get(result.loss, 'loss')}",
        "loss": None if result.loss == "squared" else repr(problem.loss),
        "ridge": f"{result.ridge:.3g}{f' ({ridge})' if isinstance(ridge, str) else ''}",
        "status": f"{result.status}{f': {result.message}' if result.message else ''}",
        "method": f"{result.method}, {result.seconds:.3g} s",
        "proof": None if certificate is None else str(certificate),
    })  # fmt: skip


def _listed(problem: Problem, result: Result) -> list[str]:
    """Return one line for each feature of the table, with the score of a filter."""
    levels = {one.column: f" ({len(one.levels)} levels)" for one in problem.categories}
    places = dict(zip(result.feature_names, result.support.tolist(), strict=True))
    found: dict[int, tuple[bool, float | None]] = {}
    for row in result.table:
        column = int(problem.input_columns[places[row["feature"]]])
        score = row.get("score")
        if column in found and score is not None:
            # Of a category the best of its levels.
            score = max(score, found[column][1] or score)
        found[column] = (row["rank"] is None, score)
    names = {j: escape_controls(problem.original_names[j]) + levels.get(j, "") for j in found}
    width = max(map(len, names.values()), default=0)
    lines, rank = [], 0
    for j, (is_included, score) in found.items():
        rank += not is_included
        place = "included" if is_included else str(rank)
        shown = "" if score is None else f"  {score:.4g}"
        lines.append(f"{place:>8}  {names[j]:{width}}{shown}".rstrip())
    return lines


def _sizes(choice: AutoKResult) -> str:
    """Return one line for each size; a star marks the chosen one."""
    from exactk.utils.records_table import RecordsTable

    names = ["k", "criterion", *(["standard_error"] if choice.n_folds else []), "objective",
             "added", "removed"]  # fmt: skip
    rows = [["*" if row["chosen"] else "", *(row[name] for name in names)] for row in choice.table]
    head = {"criterion": choice.scoring or choice.criterion, "standard_error": "std. error"}
    return RecordsTable(["", *(head.get(name, name) for name in names)], rows).to_text()
