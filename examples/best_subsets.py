"""Best subsets of every size, proven, with Cp, BIC, AICc and cross-validation.

For users of R's leaps or bestglm. Least squares without ridge on scikit-learn's
diabetes table; the best set of every size is proven by branch and bound.
Run it with

    python examples/best_subsets.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes

import exactk
from exactk.model_selection.criteria import criterion_values


def main() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    problem = exactk.Problem.from_arrays(X, y, task="regression")
    proofs = exactk.certify_path(problem, k_max=X.shape[1])
    print(f"{len(X)} rows; the best set of every size is proven: {proofs.proven}\n")

    scores = {
        **{name: criterion_values(problem, proofs.path, name) for name in ("cp", "bic", "aicc")},
        # Mean squared error on held-out rows; features are selected anew in each fold.
        "cv": np.array(exactk.choose_k(problem, k_max=X.shape[1]).table["mean"]),
    }
    names = X.columns
    print("  k  " + " ".join(names) + "     R²      Cp      BIC     AICc      CV")
    for row, result in enumerate(proofs.path):
        chosen = " ".join(("*" if n in result.feature_names else ".").center(len(n)) for n in names)
        cp, bic, aicc, cv = (values[row] for values in scores.values())
        grades = f"{result.explained:.3f}  {cp:6.1f}  {bic:7.1f}  {aicc:7.1f}  {cv:6.0f}"
        print(f" {result.k:2}  {chosen}  {grades}")
    best = {name: int(np.argmin(values)) + 1 for name, values in scores.items()}
    print("\nsmallest value: " + ", ".join(f"{name} at {k}" for name, k in best.items()))

    near = exactk.best_sets(problem, k=best["bic"], n_best=4)
    print(f"\nthe 4 best sets of {best['bic']} (proven: {near.is_complete}):")
    for line in near.table:
        print(f"  {line['excess']:6.2%}  {', '.join(line['features'])}")

    why = exactk.explain(problem, features=proofs.at(best["bic"]).result)
    print("\nloss without each feature, as a share of the variance, and its best substitute:")
    for line in why.selected_features:
        substitute = f"{line['substitute']} (loss {line['substitution_fraction']:.2%})"
        print(f"  {line['feature']:4} {line['loss_fraction']:6.2%}   {substitute}")


if __name__ == "__main__":
    main()
