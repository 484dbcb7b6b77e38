"""The plain values of a report in the arrangement that the sections of the page read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["feature_rows", "page_record"]

Record = Mapping[str, Any]

# Features that come nearest to being selected.
NEAREST = 10
# Where a part of the report is drawn, and which part that is.
PARTS = {
    "explanation": "explanation", "stability": "stability", "sizes": "choice",
    "score": "evaluation", "comparison": "evaluation", "certificate": "certificate",
    "scores": "scores", "losses": "losses", "frequencies": "stability",
}  # fmt: skip
CONSTRAINED = "only sets that keep the constraints count"
NOT_REQUESTED = "not requested"


def page_record(report: Record) -> dict[str, Any]:
    """Return what the sections of the page read.

    Parameters
    ----------
    report : mapping
        Of `SelectionReport.to_dict`.
    """
    settings, figures, result = report["settings"], report["figures"], report["result"]
    missing, evaluation = report["missing_parts"], report["evaluation"]
    compared = evaluation is not None and len(evaluation["methods"]) > 1
    return {
        "made": settings["made"],
        "versions": settings["versions"],
        "interrupted": report["interrupted"],
        "settings": {
            **settings, "method": result["method"], "ridge": result["ridge"],
            "options": {
                name: text for name, text in settings["call"].items()
                if name in ("effort", "method") and text != repr(result["method"])
            },
        },
        "selection": {
            **{name: result[name] for name in ("k", "selected", "objective", "residual", "total",
                                               "status", "message", "seconds", "method")},
            "explained": _explained(result),
            "outputs": settings["outputs"],
        },
        "features": feature_rows(report),
        "coefficients": figures["coefficients"],
        "correlations": figures["correlations"],
        "means": figures["means"],
        "near": _near(report["explanation"]),
        "certificate": _certificate(report["certificate"], result),
        "stability": _stability(report["stability"]),
        "frequencies": figures["frequencies"],
        "sizes": _sizes(report),
        "score": evaluation,
        "comparison": evaluation if compared else None,
        "warnings": report["warnings"],
        "missing_parts": {
            place: missing.get(part, NOT_REQUESTED) for place, part in PARTS.items()
        },
        "reasons": sorted(set(missing.values())),
    }  # fmt: skip


def feature_rows(report: Record) -> list[dict[str, Any]]:
    """Return one row for each selected feature, with what every part says about it."""
    figures, explanation = report["figures"], report["explanation"]
    losses = figures["losses"] if explanation is None else explanation["selected_features"]
    stable = [] if report["stability"] is None else report["stability"]["table"]
    by_loss = {row["feature"]: row for row in losses or ()}
    by_name = {row["feature"]: row for row in stable}
    rows = []
    for one in figures["features"]:
        loss, often = by_loss.get(one["feature"], {}), by_name.get(one["feature"], {})
        parts = ("loss", "loss_fraction", "substitute", "substitution_cost",
                 "substitution_fraction")  # fmt: skip
        found = {name: loss.get(name) for name in parts}
        found |= {name: often.get(name) for name in ("frequency", "low", "high")}
        rows.append({**one, **found, "group": often.get("frequency_group")})
    return rows


def _explained(result: Record) -> float:
    return 1.0 - result["residual"] / result["total"] if result["total"] > 0 else 0.0


def _near(found: Record | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        **{name: found[name] for name in ("tolerance", "is_complete", "message", "pairs")},
        "sets": found["alternatives"],
        "outside": found["runners_up"][:NEAREST],
    }


def _certificate(found: Record | None, result: Record) -> dict[str, Any] | None:
    if found is None:
        return None
    best = found["result"]["selected"]
    differs = found["improved"] and set(best) != set(result["selected"])
    return {
        **found,
        "constrained": CONSTRAINED in found["assumptions"],
        "better": best if differs else None,
    }


def _stability(found: Record | None) -> dict[str, Any] | None:
    return None if found is None else {**found, "frequencies": found["table"]}


def _sizes(report: Record) -> dict[str, Any] | None:
    """Return one row for each number of features, and how it was chosen."""
    choice, result = report["choice"], report["result"]
    if choice is None:
        return None
    scored, explained = report["figures"]["scores"], report["figures"]["explained"]
    scores = {} if scored is None else {row["k"]: row for row in scored["table"]}
    rows: list[dict[str, Any]] = []
    before: list[str] = []
    for row in choice["table"]:
        here, score = row["k"] == result["k"], scores.get(row["k"], {})
        names = list(result["selected"] if here else row["features"])
        rows.append(
            {
                "k": row["k"],
                "explained": explained[str(row["k"])],
                "criterion": row["criterion"],
                "standard_error": row["standard_error"],
                "score": score.get("mean"),
                "score_error": score.get("standard_error"),
                "added": [name for name in names if name not in before],
                "removed": [name for name in before if name not in names],
                "requested": here,
            }
        )
        before = names
    return {
        "rows": rows,
        "criterion": choice["criterion"],
        "rule": choice["rule"],
        "chosen": choice["k"],
        "is_chosen": choice["is_chosen"],
        "n_folds": choice["n_folds"],
        "message": choice["message"],
        "scoring": None if scored is None else scored["scoring"],
        "score_chosen": None if scored is None else scored["k"],
        "score_rule": None if scored is None else scored["rule"],
        "score_folds": None if scored is None else scored["n_folds"],
    }
