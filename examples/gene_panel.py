"""A gene panel: eight genes, two of them required, one excluded, no two highly correlated.

It shows which genes are selected, how certain the selection is, which genes could replace each of
them, and the accuracy on held-out tumours. It uses the expression table of SRBCT (83 tumours of 4
kinds, 2,308 genes) if you have it (``exactk papers datasets``, ``EXACTK_DATA``), otherwise a table
with planted genes. Needs ``pip install "exactk[pandas]"``. Run it with

    python examples/gene_panel.py
"""

from __future__ import annotations

import pandas as pd

import exactk
from exactk import Constraints, TopKSelector
from exactk.papers.datasets import find, load, make_genes

K = 8
# Largest correlation of two genes of the panel.
MAX_CORRELATION = 0.5


def main() -> None:
    # Required: genes that the laboratory measures anyway. Excluded: a gene with an unreliable
    # probe, here the most useful one of each table.
    if find("srbct") is not None:
        data, required, excluded = load("srbct"), ["g0186", "g2049"], "g1388"
    else:
        data = make_genes(n=120, d=1_000, informative=12, shift=1.0, random_state=4)
        required, excluded = ["g0475", "g0780"], "g0988"
    X = pd.DataFrame(data.X, columns=[f"g{number:04}" for number in range(data.X.shape[1])])
    print(f"{data.name}: {len(X)} samples, {X.shape[1]:,} genes, {data.n_classes} classes")
    print(f"required {', '.join(required)}; excluded {excluded}; correlation ≤ {MAX_CORRELATION}\n")

    constraints = Constraints(include=required, exclude=[excluded], max_correlation=MAX_CORRELATION)
    # The proof may take 20 seconds; its bound is valid even if it does not finish.
    selector = TopKSelector(K, constraints=constraints, certify=20).fit(X, data.y)
    stable = exactk.stability(X, data.y, features=selector)
    frequency = dict(zip(stable.table["feature"], stable.table["frequency"], strict=True))
    why = exactk.explain(X, data.y, features=selector)

    print("gene         half-samples  loss without  best substitute, and the loss with it")
    for row in sorted(why.selected_features, key=lambda row: -row["loss"]):
        role = "fixed" if row["included"] else ""
        loss = row["substitution_fraction"]
        substitute = "" if row["included"] else f"{row['substitute']} {loss:6.1%}"
        often = f"{frequency[row['feature']]:.0%}"
        without = f"{row['loss_fraction']:.1%}"
        print(f"{row['feature']}  {role:5}  {often:>12}  {without:>12}  {substitute}".rstrip())

    free = TopKSelector(K).fit(X, data.y)
    price = selector.objective_ / free.objective_ - 1
    score = exactk.evaluate(X, data.y, k=K, constraints=constraints)
    bound = "no panel that keeps the constraints has a lower objective"
    if not selector.proven_:
        bound = (
            f"not finished: a better panel could lower the objective by at most {selector.gap_:.0%}"
        )
    print(f"\nproof       {bound}")
    print(f"constraints raise the objective by {price:.0%}")
    print(f"stability   {stable.index:.2f} (1: every half-sample gives the same panel)")
    accuracy = f"{score.test_score:.1%} ± {score.standard_error:.1%}"
    print(f"accuracy    {accuracy} on held-out samples")
    print(f"            {score.baseline_score:.1%} without genes")
    if data.informative is not None:
        planted = len(set(selector.selected_) & set(data.informative))
        print(f"planted     {planted} of {K} genes, of {len(data.informative)} planted genes")


if __name__ == "__main__":
    main()
