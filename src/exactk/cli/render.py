"""A result as text for a person, JSON for a program, CSV for a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from exactk._version import __version__

if TYPE_CHECKING:
    from exactk.problem import Problem
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
        What the user asked for: ``table``, ``target`` and ``ridge_rule``.
    """
    if style == "json":
        return _json(result, facts)
    if style == "csv":
        return _csv(result)
    return _text(result, problem, facts)


def _entries(result: Result) -> list[tuple[int, int, str, float | None]]:
    """Rank, index, name and score (if any) of each feature, in order of entry."""
    names = dict(zip(map(int, result.support), result.feature_names, strict=True))
    scores = result.scores
    return [
        (rank, int(p), names[int(p)], None if scores is None else float(scores[p]))
        for rank, p in enumerate(result.order, start=1)
    ]


def _csv(result: Result) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    scored = result.scores is not None
    writer.writerow(["rank", "index", "feature", *(["score"] if scored else [])])
    writer.writerows(entry if scored else entry[:3] for entry in _entries(result))
    return text.getvalue()


def _json(result: Result, facts: Mapping[str, Any]) -> str:
    content = json.loads(result.to_json())
    content.update(facts, version=__version__)
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _listed(result: Result) -> list[str]:
    """One line a feature, with the scores of a filter beside the names."""
    entries = _entries(result)
    width = max(len(name) for _, _, name, _ in entries)
    return [
        f"{rank:6}  {name}" if score is None else f"{rank:6}  {name:{width}}  {score:.4g}"
        for rank, _, name, score in entries
    ]


def _text(result: Result, problem: Problem, facts: Mapping[str, Any]) -> str:
    rule = facts["ridge_rule"]
    ridge = f"{result.ridge:.3g}" + (f" ({rule})" if isinstance(rule, str) else "")
    objective = f"{result.objective:.6g} of {result.total:.6g}"
    status = f"{result.status}: {result.message}" if result.message else str(result.status)
    lines = [
        f"{len(result.support)} of {problem.n_features} features for {facts['target']!r} "
        f"({problem.task}, {problem.n_rows} rows)",
        "",
        *_listed(result),
        "",
        f"objective  {objective}{', ridge term included' if result.ridge else ''}",
        f"explained  {result.explained:.1%} of the squared error",
        f"ridge      {ridge}",
        f"status     {status}",
        f"method     {result.method}, {result.seconds:.3g} s",
    ]
    return "\n".join(lines) + "\n"
