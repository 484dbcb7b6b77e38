"""``exactk evaluate``: scores of selections on held-out rows, one method or several."""

from __future__ import annotations

from exactk.cli.framework import CONFIG, RULES, TABLE, Call, command, heading
from exactk.utils.formatting import escape_controls

__all__ = ["evaluate"]


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

    data = call.read()
    found = ask(data.problem, **call.arguments(data))

    def text() -> str:
        chosen = escape_controls(", ".join(found.features))
        head = heading(len(found.features), data.problem, data.target)
        return f"{head}\n\n{found!r}\n\nselected on all rows: {chosen}"

    return call.emit(found, text)
