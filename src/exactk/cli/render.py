"""A result as text for a person, JSON for a program, CSV for a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from exactk._version import __version__
from exactk.utils.formatting import csv_text, escape_controls

if TYPE_CHECKING:
    from exactk.problem.problem import Problem
    from exactk.proof.results import Certificate
    from exactk.result import Result

__all__ = ["STYLES", "render"]

STYLES = ("text", "json", "csv")


def render(result: Result, problem: Problem, style: str, facts: Mapping[str, Any]) -> str:
    """Return the whole output, line break at the end included.

    Parameters
    ----------
    result : Result
    problem : Problem
        The problem that was solved.
    style : {"text", "json", "csv"}
    facts : mapping
        What the user asked for: ``table``, ``target`` and ``ridge_rule``; a proof of the result
        as ``certificate``, if there is one.
    """
    if style == "json":
        return _json(result, problem, facts)
    if style == "csv":
        return _csv(result, problem, facts.get("certificate"))
    return _text(result, problem, facts)


def _entries(result: Result, problem: Problem) -> list[tuple[int, int, str, float | None]]:
    """Rank, index, name and score (if any) of each feature of the table, in order of entry."""
    names = problem.original_names
    chosen: dict[int, list[float]] = {}
    for p in result.order:
        scores = chosen.setdefault(int(problem.input_columns[p]), [])
        if result.scores is not None:
            scores.append(float(result.scores[p]))
    # Of a category the best of its levels.
    return [
        (rank, j, names[j], max(scores, default=None))
        for rank, (j, scores) in enumerate(chosen.items(), start=1)
    ]


def _csv(result: Result, problem: Problem, certificate: Certificate | None) -> str:
    scored = result.scores is not None
    # A proof is of all of them together: the same in every line.
    head, proof = ["rank", "index", "feature", *(["score"] if scored else [])], list[Any]()
    if certificate is not None:
        head += ["proven", "lower_bound", "gap"]
        proof = [certificate.proven, certificate.lower, certificate.gap]
    entries = _entries(result, problem)
    return csv_text([head, *([*(entry if scored else entry[:3]), *proof] for entry in entries)])


def _json(result: Result, problem: Problem, facts: Mapping[str, Any]) -> str:
    content = json.loads(result.to_json())
    content.update(facts, version=__version__)
    if "certificate" in facts:
        whole = facts["certificate"].to_dict()
        content["certificate"] = {name: whole[name] for name in whole if name != "result"}
    if problem.categories:
        content["categories"] = [
            {
                "name": category.name,
                "levels": category.levels,
                "reference": category.reference,
                "columns": category.columns,
            }
            for category in problem.categories
        ]
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _listed(entries: Sequence[tuple[int, int, str, float | None]], problem: Problem) -> list[str]:
    """One line a feature, with the scores of a filter beside the names."""
    levels = {c.column: f" ({len(c.levels)} levels)" for c in problem.categories}
    shown = [escape_controls(name) + levels.get(j, "") for _, j, name, _ in entries]
    width = max(map(len, shown))
    return [
        f"{rank:6}  {name}" if score is None else f"{rank:6}  {name:{width}}  {score:.4g}"
        for (rank, _, _, score), name in zip(entries, shown, strict=True)
    ]


def _choice(facts: Mapping[str, Any]) -> list[str]:
    """The line that says how the number of features was chosen, if it was."""
    if "choice" not in facts:
        return []
    choice = facts["choice"]
    how = f"{choice['rule']}, {choice['n_folds']} folds" if choice["n_folds"] else "the least"
    return [
        f"chosen     k = {choice['k']} of 1..{choice['k_max']} by {choice['criterion']} ({how})"
    ]


def _proof(facts: Mapping[str, Any]) -> list[str]:
    """What is proven, if it was tried."""
    if "certificate" not in facts:
        return []
    found = facts["certificate"]
    return [
        f"proof      {found.summary}",
        f"           {found.nodes:,} part{'s' * (found.nodes != 1)}, {found.seconds:.3g} s",
    ]


def _measure(loss: str) -> str:
    """What a loss without columns is called."""
    names = {"squared": "squared error", "logistic": "deviance", "poisson": "deviance"}
    return names.get(loss, "loss")


def _loss(loss: str, facts: Mapping[str, Any]) -> str:
    """The loss with its parameters."""
    options = facts.get("loss_options") or {}
    given = ", ".join(f"{name} = {value:g}" for name, value in options.items())
    return f"{loss} ({given})" if given else loss


def _text(result: Result, problem: Problem, facts: Mapping[str, Any]) -> str:
    rule = facts["ridge_rule"]
    ridge = f"{result.ridge:.3g}" + (f" ({rule})" if isinstance(rule, str) else "")
    objective = f"{result.objective:.6g} of {result.total:.6g}"
    status = f"{result.status}: {result.message}" if result.message else str(result.status)
    entries = _entries(result, problem)
    open_proof = "certificate" in facts and not facts["certificate"].proven
    lines = [
        f"{len(entries)} of {len(problem.original_names)} features for {facts['target']!r} "
        f"({problem.task}, {problem.n_rows} rows)",
        "",
        *_listed(entries, problem),
        "",
        *_choice(facts),
        f"objective  {objective}{', ridge term included' if result.ridge else ''}",
        f"explained  {result.explained:.1%} of the {_measure(result.loss)}",
        *([] if result.loss == "squared" else [f"loss       {_loss(result.loss, facts)}"]),
        f"ridge      {ridge}",
        # Where a proof has a line of its own this one is about the search.
        f"{'status' if not open_proof else 'search'}     {status}",
        f"method     {result.method}, {result.seconds:.3g} s",
        *_proof(facts),
    ]
    return "\n".join(lines) + "\n"
