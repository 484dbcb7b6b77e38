"""Every public name that the cases use, here and in ``commands.txt`` alone.

A rename costs a line here. Cases, and fields in the record, keep their names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from typing import Any

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import exactk
from exactk import Moments, Problem, losses
from exactk.cli.app import run as run_command
from exactk.methods import registry
from exactk.papers import datasets
from exactk.report.page.record import page_record

# Fields of answers and of JSON that are not recorded: wording, time, effort, what was asked, and
# what follows from other fields.
DROPPED = {
    "absent", "assumptions", "bytes", "checked", "checksum", "classes", "command", "commit",
    "constraints", "dataset", "difference_error", "dropped", "estimator", "exactk_version",
    "excess", "explained", "failures", "family", "feature_names", "feature_names_in",
    "features_in", "fetchable", "file", "fold", "format", "here", "high", "highest", "included",
    "input_columns", "left", "level", "licence", "loss_options", "low", "lowest", "made",
    "message", "method", "missing_parts", "moments", "n_features", "n_folds", "n_iter", "n_rows",
    "n_test", "n_train", "names", "needs", "negligible", "nodes", "note", "options", "papers",
    "paths", "published", "rank", "recipe", "reference", "repository", "requested", "ridge_rule",
    "row_groups", "rule", "score_error", "scoring", "seconds", "settings", "standard_error",
    "substitution_fraction", "summary", "target", "task", "threshold", "title", "tolerance",
    "total", "trace", "version", "versions", "warnings",
}  # fmt: skip
CLASS_LOSSES = ("logistic", "optimal_scoring")
# Names of columns, which are left out beside their numbers.
NAMED = {"added", "features", "removed", "selected", "selected_features"}
# Fields whose name in the library is another than in the record.
FIELDS = {"frequency_group": "part"}
# What is recorded of a result inside another answer, and of one alone.
BRIEF = {"support", "objective", "status"}
RESULT = {"order", "objective", "status", "scores"}
FITTED = (
    "ranking_", "coef_", "intercept_", "objective_", "ridge_", "status_", "k_", "scores_",
    "lower_bound_", "gap_", "coded_feature_names_",
)  # fmt: skip

ExactkError = exactk.ExactkError
from_arrays, from_files, from_dask = Problem.from_arrays, Problem.from_files, Problem.from_dask
from_spark, from_anndata = Problem.from_spark, Problem.from_anndata
from_moments, make_moments, load_moments = Problem.from_moments, Moments.from_arrays, Moments.load
loss_names, method_names, load_dataset = losses.names, registry.names, datasets.load
make_outliers, make_planted = datasets.make_outliers, datasets.make_planted
make_genes = datasets.make_genes
with_loss, balanced = Problem.with_loss, partial(Problem.with_class_weight, class_weight="balanced")


def fields(answer: Any, only: set[str] | None = None) -> Any:
    """Return the recorded fields of an answer or its JSON; a list of rows becomes columns."""
    if isinstance(answer, exactk.Path):
        answer = list(answer)
    if type(answer).__module__.startswith("exactk") and hasattr(answer, "to_dict"):
        answer = answer.to_dict()
    if isinstance(answer, Mapping):
        # A field of that name may also hold a table, or whether a row is among those selected.
        named = {n for n in NAMED & answer.keys() if isinstance((*_list(answer[n]), "")[0], str)}
        dropped = DROPPED | named if "support" in answer else DROPPED
        kept = [n for n in answer if n not in dropped and (only is None or n in only)]
        brief = {n: BRIEF if n in ("result", "full") else None for n in kept}
        return {FIELDS.get(n, n): fields(answer[n], brief[n]) for n in kept}
    if isinstance(answer, list | tuple):
        # The JSON of a benchmark has seconds in a row of their own.
        measures = [one.get("measure") if isinstance(one, Mapping) else None for one in answer]
        rows = [fields(a, only) for a, m in zip(answer, measures, strict=True) if m not in DROPPED]
        if rows and all(isinstance(row, dict) for row in rows):
            return {n: [row.get(n) for row in rows] for n in rows[0]}
        return rows
    return answer


def _list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def solve(problem: Problem, k: int) -> Any:
    """Solve by the default method, and return the main fields with the coefficients."""
    return fields(exactk.solve(problem, k), RESULT | {"coef", "intercept"})


def solution(problem: Problem, k: int, method: str, **options: Any) -> Any:
    """Solve, and return the main fields."""
    return fields(exactk.solve(problem, k, method, **options), RESULT)


def path(problem: Problem, k_max: int, method: str) -> Any:
    """Solve for every size, and return the main fields."""
    return fields(exactk.solve_path(problem, k_max, method), {"support", "objective"})


def facts(problem: Problem) -> Any:
    """Return what a problem knows about its table."""
    return {
        "rows": problem.n_rows, "columns": problem.feature_names, "kind": problem.task,
        "candidates": problem.candidates, "empty": problem.total, "penalty": problem.penalty,
    }  # fmt: skip


def fit(problem: Problem, columns: list[int]) -> Any:
    """Return the fit on some columns."""
    fit = problem.refit(columns)
    return {"objective": problem.objective(columns), "residual": fit.residual, "coef": fit.coef}


def _of(selection: Any) -> dict[str, Any]:
    """Return a number of features or a list of columns as keywords."""
    return {"features" if isinstance(selection, list) else "k": selection}


def _method(name: str, options: dict[str, Any], parameters: tuple[str, ...]) -> Any:
    """Return a method with those of the options that are its own, which are taken out."""
    own = {option: options.pop(option) for option in parameters if option in options}
    return registry.create(name, **own) if own else name


def certify(problem: Problem, selection: Any, **options: Any) -> Any:
    """Prove a selection, or that of k features."""
    return exactk.certify(problem, **_of(selection), time_limit=None, **options)


def certify_path(problem: Problem, k_max: int) -> Any:
    """Prove the best set of every size."""
    return exactk.certify_path(problem, k_max=k_max, time_limit=None)


def best_sets(problem: Problem, k: int, n: int, **options: Any) -> Any:
    """List the n best sets."""
    return exactk.best_sets(problem, k=k, n_best=n, time_limit=None, **options)


def explain(problem: Problem, selection: Any, **options: Any) -> Any:
    """Explain a selection, or that of k features."""
    return exactk.explain(problem, **_of(selection), **options)


def choose_k(problem: Problem, k_max: int, *, method: str = "exchange", **options: Any) -> Any:
    """Choose the number of features."""
    chosen = _method(method, options, ("lam",))
    return exactk.choose_k(problem, k_max=k_max, method=chosen, **options)


def stability(problem: Problem, k: int, n: int = 20, **options: Any) -> Any:
    """Select on n half-samples."""
    return exactk.stability(problem, k=k, n_subsamples=n, **options)


def investigate(X: Any, y: Any, k: Any, n: int, k_max: int | None = None, **options: Any) -> Any:
    """Answer every question about a table, or about a problem."""
    k = exactk.AutoK(k_max=k_max) if k_max else k
    report = exactk.investigate(X, y, k=k, n_subsamples=n, n_permutations=n, **options)
    return _report(report.to_dict())


def _report(found: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a report as its page arranges them."""
    page = page_record(found)
    parts = ("selection", "features", "coefficients", "near", "correlations", "means")
    answer = {name: page[name] for name in parts if page[name] is not None}
    answer["result"] = found["result"]
    for name, left in (("certificate", {"result"}), ("frequencies", set()), ("sizes", set())):
        if page[name] is not None:
            answer[name] = {one: page[name][one] for one in page[name] if one not in left}
    stable = ("index", "interval", "n_subsamples", "core", "unstable")
    if found["stability"] is not None:
        rows = [row for row in found["stability"]["table"] if row["frequency_group"] != "rare"]
        answer["stability"] = {name: found["stability"][name] for name in stable}
        answer["stability"]["frequencies"] = rows
    if found["evaluation"] is not None:
        first = found["evaluation"]["methods"][0]["method"]
        rows = [row for row in found["evaluation"]["folds"] if row["method"] == first]
        answer["score"] = _score({**found["evaluation"], "folds": rows})
        answer["comparison"] = _comparison(found["evaluation"])
    return answer


def _evaluate(X: Any, y: Any, options: dict[str, Any]) -> Any:
    if "include" in options:
        options["constraints"] = {"include": options.pop("include")}
    return exactk.evaluate(X, y, **options).to_dict()


def score_selection(X: Any, y: Any, k: Any, **options: Any) -> Any:
    """Evaluate one method."""
    return _score(_evaluate(X, y, {"k": k, **options}))


def _score(found: dict[str, Any]) -> dict[str, Any]:
    named = ("k", "test_score", "naive_score", "baseline_score", "optimism", "stability",
             "observed", "null", "features", "in_all_folds", "n_permutations")  # fmt: skip
    kept = ("k", "features", "test_score", "naive_score", "baseline_score")
    folds = [{name: row[name] for name in kept} for row in found["folds"]]
    answer = {name: found[name] for name in named} | {"folds": folds}
    return {**answer, "p_value": found["p_value"]} if found["null"] else answer


def compare(X: Any, y: Any, k: int, methods: Any = None, **options: Any) -> Any:
    """Evaluate several methods."""
    first, *others = methods or ("exchange", "selectkbest", "rfe", "l1")
    return _comparison(
        _evaluate(X, y, {"k": k, "method": first, "compare_with": others, **options})
    )


def _comparison(found: dict[str, Any]) -> dict[str, Any]:
    renamed = {"test_score": "mean", "n_shared": "shared"}
    left = {"k", "naive_score"}
    rows = [
        {renamed.get(n, n): one for n, one in row.items() if n not in left}
        for row in found["methods"]
    ]
    folds = [{"score": row["test_score"], "features": row["features"]} for row in found["folds"]]
    return {
        "k": found["k"], "ridge": found["ridge"], "baseline": found["baseline_score"],
        "all_features": found["all_features_score"], "methods": rows, "folds": folds,
    }  # fmt: skip


def _estimator(kind: Any, options: dict[str, Any]) -> Any:
    auto = {name: options.pop(name) for name in ("k_max", "cv", "criterion") if name in options}
    if auto:
        options["k"] = exactk.AutoK(**auto)
    names = [name for name in exactk.Constraints().get_params() if name in options]
    if names:
        options["constraints"] = {name: options.pop(name) for name in names}
    return kind(**options)


def selector(**options: Any) -> Any:
    """Make a selector."""
    return _estimator(exactk.TopKSelector, options)


def classifier(**options: Any) -> Any:
    """Make a classifier."""
    return _estimator(exactk.TopKClassifier, options)


def regressor(**options: Any) -> Any:
    """Make a regressor."""
    return _estimator(exactk.TopKRegressor, options)


def find_ridge(problem: Problem, way: Any, k: int) -> float:
    """Return the ridge that "auto" or "cv" chooses."""
    return problem.with_ridge(way, k).ridge


def constraints(quotas: Any = None, groups: Any = None, **others: Any) -> Any:
    """Return constraints as arguments; a quota is (columns, fewest, most)."""
    if quotas:
        names = ("columns", "at_least", "at_most")
        quotas = {n: dict(zip(names, quota, strict=True)) for n, quota in quotas.items()}
    given = {"quotas": quotas, "feature_groups": groups}
    return {**others, **{name: one for name, one in given.items() if one is not None}}


def constrain(problem: Problem, **given: Any) -> Problem:
    """Put constraints on a problem."""
    return problem.with_constraints(**constraints(**given))


def needs_classes(method: str) -> bool:
    """Whether a method is for classes alone."""
    return registry.method_class(method).needs_classes


def fitted(selector: Any, X: Any, y: Any, new: Any = None) -> Any:
    """Fit a selector, and return its attributes, what it gives of X or `new`, and what it saves."""
    selector.fit(X, y)
    answer = {name: getattr(selector, name) for name in FITTED if hasattr(selector, name)}
    answer["path"] = fields(selector.path(X, y, k_max=4), BRIEF)
    X = X if new is None else new
    answer["given"] = selector.transform(X)
    for name in ("predict", "predict_proba"):
        if hasattr(selector, name):
            answer[name] = getattr(selector, name)(X)
    selector.export("selection.json")
    saved = exactk.SavedSelection.load("selection.json")
    used = {"selects": saved.select(X), "predicts": saved.predict(X), "gives": saved.scores(X)}
    return {**answer, "saved": fields(saved), **used}


def pipeline_scores(selector: Any, grid: Any, X: Any, y: Any) -> Any:
    """Return the scores of a grid search over a pipeline."""
    pipe = Pipeline([("scale", StandardScaler()), ("s", selector)])
    found = GridSearchCV(pipe, {f"s__{name}": values for name, values in grid.items()}, cv=3)
    return found.fit(X, y).cv_results_["mean_test_score"]


def command(words: str) -> Any:
    """Run a command: its exit code, and the fields of its JSON if it prints any."""
    words = words.replace("CLASSES", "y --drop v,w,g QUIET")
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()):
        code = run_command(words.replace("QUIET", "--quiet").split())
    try:
        found = json.loads(out.getvalue())
    except ValueError:
        return {"exit": code}
    result, table = found["result"], found["call"].get("table")
    if found["command"] == "evaluate":
        result = (_comparison if "compare_with" in found["call"] else _score)(result)
    if "--table" in words:
        result = found["choice"]
    elif found["command"] == "select":
        result |= {name: found[name] for name in ("certificate", "choice") if name in found}
    if isinstance(result, dict) and table is not None:
        result = {"table": table, **result}
    return {"exit": code, "printed": fields(result)}
