"""``exactk certify``: whether a set of features is the best one, or how far it may be from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exactk.cli.framework import CONFIG, RULES, TABLE, Call, aligned, command, heading, option
from exactk.errors import InputError, Setting

if TYPE_CHECKING:
    from exactk.proof.results import BestSets, Certificate, CertifiedPath

__all__ = ["certify"]


@command(
    "certify",
    parameters=(
        *TABLE, "k", "features", *RULES, "n_best", "within", "loss", "ridge", "time_limit",
        "n_jobs", "random_state",
    ),
    config=(*CONFIG, "gap"),
    of="certify",
    table=True,
)  # fmt: skip
@option("--path", is_flag=True, section="Search", help="Prove every size from 1 to K.")
def certify(call: Call, path: bool) -> int:
    """Prove that no other K features of TABLE are better, or bound how much better they can be.

    The proof is about the objective that exactk select minimises, with the same ridge and
    constraints. If a better set is found, it replaces the given one. The bound is valid whenever
    the time is up, also after Ctrl-C.
    """
    from exactk.proof.certify import best_sets, certify_path
    from exactk.proof.certify import certify as prove

    listed = "n_best" in call.values or "within" in call.values
    other: Any = "--path" if path else Setting("n_best") if listed else None
    for name in ("n_best", "within", "features") if path else ("features", "gap"):
        if other is not None and name in call.values:
            raise InputError(
                (Setting(name), " does not go with ", other), parameter=name, hint="leave one out"
            )
    if path and not isinstance(call.values.get("k", 1), int):
        raise InputError(("--path needs ", Setting("k"), " with a number"), parameter="k")
    data = call.read()
    asked = call.arguments(data)
    if path:
        found: Any = certify_path(data.problem, k_max=asked.pop("k", None), **asked)
    else:
        found = (best_sets if listed else prove)(data.problem, **asked)
    return call.emit(found, lambda: _text(call, found, data.target))


def _text(call: Call, found: Certificate | BestSets | CertifiedPath, target: str) -> str:
    assert call.problem is not None
    problem, result = call.problem, getattr(found, "result", None)
    if result is None:
        what = "sets" if hasattr(found, "sets") else "sizes"
        head = f"{len(found.table)} {what} for {target!r} ({problem.task}, {problem.n_rows} rows)"
        table = found.table.to_text()
    else:
        head = heading(len(result.selected), problem, target)
        table = result.table.to_text()
    facts = {
        "proof": getattr(found, "summary", None),
        "status": found.status,
        "ridge": f"{found.ridge:.3g}" if hasattr(found, "ridge") else None,
    }
    return "\n".join([head, "", table, "", *aligned(facts)])
