"""The commands ``certify``, ``explain``, ``stability`` and ``evaluate``."""

from __future__ import annotations

from typing import Any

from exactk.cli.framework import CONFIG, RULES, TABLE, Call, aligned, command, option, param
from exactk.errors import InputError, Setting
from exactk.utils.formatting import escape_controls

__all__ = ["certify", "evaluate", "explain", "stability"]

# Proofs and explanations rest on moments.
OF_MOMENTS = param(
    "loss", help="Loss: squared, or optimal_scoring for classes.", metavar="squared|optimal_scoring"
)


@command(
    "certify",
    parameters=(
        *TABLE, "k", "features", *RULES, "n_best", "within", OF_MOMENTS, "ridge", "time_limit",
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
    result = getattr(found, "result", None)
    if result is None:
        head = call.heading(len(found.table), "sets" if listed else "sizes")
    else:
        head = call.heading(len(result.selected))
    facts = {
        "proof": getattr(found, "summary", None),
        "status": found.status,
        "ridge": f"{found.ridge:.3g}" if hasattr(found, "ridge") else None,
    }
    table = found.table if result is None else result.table
    return call.emit(found, [head, "", table.to_text(), "", *aligned(facts)])


@command(
    "explain",
    parameters=(
        *TABLE, "k", "features", *RULES, "why_not", "tolerance", "max_sets", OF_MOMENTS, "ridge",
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

    found = call.ask(ask)
    return call.emit(found, [call.heading(len(found.selected)), "", repr(found)])


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
    from exactk.model_selection.stability import stability as ask
    from exactk.utils.records_table import RecordsTable

    found = call.ask(ask)
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
    return call.emit(found, [call.heading(found.k), "", table, "", *aligned(facts)])


@command(
    "evaluate",
    parameters=(
        *TABLE, "groups", "k", "cv", "estimator", "scoring", *RULES, "method", "compare_with",
        "n_permutations", "loss", "ridge", "time_limit", "random_state",
    ),
    config=(*CONFIG, "features", "effort"),
    of="evaluate",
    table=True,
)  # fmt: skip
def evaluate(call: Call) -> int:
    """Score the K selected features of TABLE on held-out rows, and compare methods.

    In each fold every method selects features on the training rows alone. An estimator is trained
    on these features and scored on the held-out rows; the folds are the same for all methods.
    """
    from exactk.evaluation.evaluate import evaluate as ask

    found = call.ask(ask)
    chosen = f"selected on all rows: {escape_controls(', '.join(found.features))}"
    return call.emit(found, [call.heading(len(found.features)), "", repr(found), "", chosen])
