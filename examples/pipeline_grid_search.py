"""Tune the number of features, the method and the ridge in a pipeline, with nested validation.

`TopKSelector` is a step of a scikit-learn pipeline. The grid search is nested in an outer
cross-validation, so the accuracy in the last lines is on rows that neither the selection nor the
tuning has seen. Run it with

    python examples/pipeline_grid_search.py
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from exactk import TopKSelector

SIZES = [1, 2, 3, 4, 6, 8]
GRID = [
    {
        "select__method": ["exchange"],
        "select__ridge": [0, "auto", 1],
        # Greedy steps and swaps are enough for hundreds of fits.
        "select__effort": [0],
        "select__k": SIZES,
    },
    # Filters have no ridge and no effort.
    {"select__method": ["fisher", "mrmr"], "select__k": SIZES},
]


def named(setting: dict[str, Any]) -> str:
    ridge = setting.get("select__ridge")
    return setting["select__method"] + ("" if ridge is None else f", ridge {ridge}")


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = Pipeline(
        [
            # As a frame, so that the columns keep their names.
            ("scale", StandardScaler().set_output(transform="pandas")),
            ("select", TopKSelector()),
            ("classify", LogisticRegression()),
        ]
    )
    inner = StratifiedKFold(3, shuffle=True, random_state=0)
    outer = StratifiedKFold(4, shuffle=True, random_state=1)
    search = GridSearchCV(model, GRID, cv=inner, scoring="accuracy")
    nested = cross_val_score(search, X, y, cv=outer).mean()
    every = cross_val_score(clone(model).set_params(select="passthrough"), X, y, cv=outer).mean()
    search.fit(X, y)

    print(f"breast cancer, {len(X)} rows, {X.shape[1]} columns; accuracy in the inner folds:\n")
    print(f"{'':20}" + "".join(f"  k = {k}" for k in SIZES))
    table: dict[str, dict[int, float]] = {}
    tried = search.cv_results_
    for setting, score in zip(tried["params"], tried["mean_test_score"], strict=True):
        table.setdefault(named(setting), {})[setting["select__k"]] = score
    for name, scores in table.items():
        print(f"{name:20}" + "".join(f"  {scores[k]:.1%}" for k in SIZES))

    selector = search.best_estimator_["select"]
    print(f"\nchosen    k = {selector.k}, {named(search.best_params_)}:")
    print(*(f"          {name}" for name in selector.get_feature_names_out()), sep="\n")
    print(f"accuracy  {nested:.1%} nested ({search.best_score_:.1%} by the folds that chose)")
    print(f"          {every:.1%} with all {X.shape[1]} columns")


if __name__ == "__main__":
    main()
