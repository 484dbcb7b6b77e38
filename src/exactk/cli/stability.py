"""``exactk stability``: how often each feature is selected on half-samples of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactk.cli.framework import CONFIG, RULES, TABLE, Call, aligned, command, heading

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
    from exactk.utils.records_table import RecordsTable

    rows = [
        (
            row["feature"],
            f"{row['frequency']:.2f}",
            f"{row['low']:.2f} to {row['high']:.2f}",
            row["frequency_group"],
            "yes" if row["in_full"] else "",
            "yes" if row["selected"] else "",
        )
        for row in found.table
        if row["frequency_group"] != "rare" or row["in_full"] or row["selected"]
    ]
    head = ["feature", "frequency", f"{found.level:.0%} interval", "group", "on all rows",
            "selected"]  # fmt: skip
    low, high = found.interval
    facts = {
        "index": f"{found.index:.3f} ({low:.3f} to {high:.3f}), mean Jaccard {found.jaccard:.3f}",
        "core": f"{len(found.core)} in at least {found.threshold:.0%} of the half-samples; "
        f"expected by chance: at most {found.expected_false:.3g}",
        "unstable": str(len(found.unstable)),
        "rare": f"{len(found.rare)} in at most {found.negligible:.0%} of the half-samples",
        "objective": f"{found.result.objective:.6g} selected, {found.full.objective:.6g} on all "
        f"rows, {found.result.total:.6g} without features",
        "ridge": f"{found.result.ridge:.3g}",
        "status": str(found.status),
        "method": f"{found.method}, {found.n_subsamples} half-samples, {found.seconds:.3g} s",
    }
    table = RecordsTable(head, rows).to_text()
    return "\n".join([heading(found.k, problem, target), "", table, "", *aligned(facts)])
