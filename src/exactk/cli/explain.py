"""``exactk explain``: what each selected feature contributes, and what could replace it."""

from __future__ import annotations

from exactk.cli.framework import CONFIG, RULES, TABLE, Call, command, heading

__all__ = ["explain"]


@command(
    "explain",
    parameters=(
        *TABLE, "k", "features", *RULES, "why_not", "tolerance", "max_sets", "loss", "ridge",
        "effort", "time_limit", "random_state",
    ),
    config=CONFIG,
    of="explain",
    table=True,
)  # fmt: skip
def explain(call: Call) -> int:
    """Explain what each selected feature of TABLE contributes, and what could replace it.

    For the best K features, or for those of --features: the loss without each of them and its
    best substitute; for the columns of --why-not, the best set that has them; sets that are
    nearly as good, and whether these are all. The constraints are kept.
    """
    from exactk.model_selection.explain import explain as ask

    data = call.read()
    found = ask(data.problem, **call.arguments(data))
    return call.emit(
        found, lambda: f"{heading(len(found.selected), data.problem, data.target)}\n\n{found!r}"
    )
