"""``exactk score``: what a selection is worth on rows that it has not seen."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from exactk._version import __version__
from exactk.cli.options import output_option, style_option
from exactk.cli.output import check_output, write_output
from exactk.cli.row_groups import groups_option, open_grouped
from exactk.cli.search_options import SearchOptions, search_options
from exactk.cli.table_options import TableOptions, show_warnings, table_options
from exactk.utils.formatting import escape_controls

if TYPE_CHECKING:
    from exactk.evaluation.nested_cv import SelectionScore

__all__ = ["score"]

INTERRUPTED = 130
ESTIMATORS = ("logistic", "ridge", "svm", "knn", "forest")


def _size(context: click.Context, parameter: click.Parameter, value: str) -> int | str:
    """Read a number of features, or the word ``auto``."""
    if value == "auto":
        return value
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is neither 'auto' nor a whole number of at least 1.")
    return int(value)


@click.command()
@table_options
@click.option("-k", callback=_size, default="10", show_default=True, metavar="NUMBER|auto",
              help="How many features; auto chooses the number anew in each fold.")  # fmt: skip
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True,
              help="Parts of the rows that are held out in turn.")  # fmt: skip
@click.option("--estimator", type=click.Choice(ESTIMATORS),
              help="What is trained; logistic for classes, ridge for numbers.")  # fmt: skip
@click.option("--scoring", metavar="NAME",
              help="A score of scikit-learn; accuracy for classes, r2 for numbers.")  # fmt: skip
@click.option("--permutations", type=click.IntRange(min=0), default=100, show_default=True,
              help="Shuffled targets that are searched for comparison.")  # fmt: skip
@groups_option
@search_options
@style_option
@output_option
def score(
    source: TableOptions,
    k: int | str,
    folds: int,
    estimator: str | None,
    scoring: str | None,
    permutations: int,
    row_groups: str | None,
    search: SearchOptions,
    style: str,
    output: str | None,
) -> int:
    """Score the selection of K columns of TABLE on rows held out.

    In each fold the features are picked on the training rows alone, an estimator is trained on
    them, and scored on the rows held out: the honest figure. The naive one picks them on all rows
    first, which leaks. The p-value says how often the same search explains as much of a target
    that is shuffled over the rows. TABLE is what exactk select takes, and must fit in memory.
    """
    from exactk.estimators.selector import TopKSelector
    from exactk.evaluation.nested_cv import score_selection
    from exactk.methods.registry import create

    options = search.options()
    if source.moments is not None:
        raise click.UsageError(
            "--from-moments cannot be scored: rows are held out, and moments have none; give TABLE "
            "and --target."
        )
    if output is not None:
        check_output(output, *source.inputs)
    selector = TopKSelector(
        k, method=create(search.method, **options), time_limit=search.time_limit
    )
    with show_warnings(source.quiet):
        problem, target, groups = open_grouped(source, row_groups)
        found = score_selection(
            problem, selector=selector, ridge=source.ridge, estimator=estimator, scoring=scoring,
            cv=folds, groups=groups, n_permutations=permutations,
            random_state=options.get("random_state", search.seed), verbose=source.verbose,
        )  # fmt: skip
    source.echo(found.message)
    facts = {**source.facts(problem, target), "row_groups": row_groups, "options": options}
    write_output(_rendered(found, style, facts), output)
    return INTERRUPTED if found.message else 0


def _rendered(found: SelectionScore, style: str, facts: dict[str, Any]) -> str:
    if style == "csv":
        return found.folds.to_csv()
    if style == "json":
        content = {**facts, "version": __version__, **found.to_dict()}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    return _text(found, facts)


def _text(found: SelectionScore, facts: dict[str, Any]) -> str:
    from exactk.utils.records_table import RecordsTable

    figures = [name for name in found.folds.columns if name != "features"]
    table = RecordsTable(
        figures,
        [[_rounded(row[name]) for name in figures] for row in found.folds],
    )
    lines = [
        f"{found.scoring} of {found.estimator} on {found.k} of {found.n_features} features for "
        f"{facts['target']!r} ({found.task}, {found.n_rows} rows, {len(found.folds)} folds)",
        "",
        *_figures(found),
        "",
        table.to_text(),
        "",
        *(
            f"fold {row['fold']:<7} {escape_controls(', '.join(row['features']))}"
            for row in found.folds
        ),
        f"in all folds {escape_controls(', '.join(found.in_all_folds)) or 'none'}",
        f"on all rows  {escape_controls(', '.join(found.features))}",
    ]
    return "\n".join(lines) + "\n"


def _figures(found: SelectionScore) -> list[str]:
    lines = [
        ("honest", f"{found.test_score:.3f} ± {found.standard_error:.3f}",
         "mean and standard error, features picked within each fold"),
        ("naive", f"{found.naive_score:.3f}", "features picked on all rows, which leaks"),
        ("optimism", f"{found.optimism:.3f}", "naive less honest"),
        ("baseline", f"{found.baseline_score:.3f}", "no features"),
        ("stability", f"{found.stability:.3f}", "Nogueira's index of the picks of the folds"),
    ]  # fmt: skip
    if isfinite(found.p_value):
        shown = f"{len(found.null)} shuffled targets: {found.null.max():.3f} of one explained at "
        lines.append(
            (
                "p-value",
                f"{found.p_value:.3g}",
                f"{shown}most, {found.observed:.3f} of the true one",
            )
        )
    return [f"{name:<10} {value:<15}  {words}" for name, value, words in lines]


def _rounded(value: Any) -> Any:
    return f"{value:.3f}" if isinstance(value, float) else value
