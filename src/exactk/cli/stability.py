"""``exactk stability``: how often each feature is selected on half-samples of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactk.cli.framework import CONFIG, RULES, TABLE, Call, command

if TYPE_CHECKING:
    from exactk.model_selection.stability import Stability
    from exactk.problem.problem import Problem

__all__ = ["stability"]


@command(
    "stability",
    parameters=(
        *TABLE, "groups", "k", "features", *RULES, "n_subsamples", "threshold", "method", "loss",
        "ridge", "effort", "time_limit", "random_state",
    ),
    config=(*CONFIG, "negligible", "level"),
    of="stability",
    table=True,
)  # fmt: skip
def stability(call: Call) -> int:
    """Select K features of TABLE on many random half-samples of its rows.

    Stable features are selected in most half-samples and rare ones in few; the others replace
    each other. The stability index is 1 if every half-sample gives the same features, and 0 if
    they agree as random sets do.
    """
    from exactk.model_selection.stability import stability as measure

    data = call.read()
    found = measure(data.problem, **call.arguments(data))
    return call.emit(found, lambda: _text(found, data.problem, data.target))


def _text(found: Stability, problem: Problem, target: str) -> str:
    return repr(found)
