"""A gene panel: eight genes, two of them given, one barred, no two much alike.

For whoever must defend a short list: which genes, how surely, what could stand in for each, and
how well they tell tumours apart that had no part in the choice. Takes the expression table of
SRBCT (83 tumours of 4 kinds, 2,308 genes) if it is among your data sets (``exactk datasets``,
``EXACTK_DATA``), else one with planted genes. Needs ``pip install "exactk[pandas]"``. Run it with

    python examples/gene_panel.py
"""

from __future__ import annotations

import pandas as pd

import exactk
from exactk import TopKSelector
from exactk.papers.datasets import find, load, make_genes

K = 8
# No two genes of the panel may go together more than this: one failing probe should not take
# another with it.
MOST_ALIKE = 0.5


def main() -> None:
    # Given: genes that the laboratory measures anyway. Barred: one whose probe is not trusted,
    # here the one that is the most useful in each table.
    if find("srbct") is not None:
        data, given, barred = load("srbct"), ["g0186", "g2049"], "g1388"
    else:
        data = make_genes(n=120, d=1_000, informative=12, shift=1.0, random_state=4)
        given, barred = ["g0475", "g0780"], "g0988"
    X = pd.DataFrame(data.X, columns=[f"g{number:04}" for number in range(data.X.shape[1])])
    print(f"{data.name}: {len(X)} samples, {X.shape[1]:,} genes, {data.n_classes} classes")
    print(f"given {', '.join(given)}; barred {barred}; correlations up to {MOST_ALIKE}\n")

    # The proof may take 20 seconds; what it knows by then is right, proven or not.
    selector = TopKSelector(
        K, include=given, exclude=[barred], max_correlation=MOST_ALIKE, certify=20
    ).fit(X, data.y)
    problem = selector.problem(X, data.y)
    stable = exactk.stability(problem, K)
    frequency = dict(zip(stable.table["feature"], stable.table["frequency"], strict=True))
    why = exactk.explain(problem, selector.result_)

    print("gene          in halves  loss without  best stand-in, and the loss with it")
    for row in sorted(why.selected_features, key=lambda row: -row["loss"]):
        role = "given" if row["included"] else ""
        loss = row["substitution_fraction"]
        stand_in = "" if row["included"] else f"{row['substitute']} {loss:6.1%}"
        often = f"{frequency[row['feature']]:.0%}"
        without = f"{row['loss_fraction']:.1%}"
        print(f"{row['feature']}  {role:5}  {often:>9}  {without:>12}  {stand_in}".rstrip())

    free = TopKSelector(K).fit(X, data.y)
    price = selector.objective_ / free.objective_ - 1
    selector.set_params(certify=False)
    score = exactk.score_selection(X, data.y, selector=selector, n_permutations=0)
    bound = "proven: no panel under these conditions fits better"
    if not selector.proven_:
        bound = f"open: the objective could fall by {selector.gap_:.0%} at most"
    print(f"\nproof       {bound}")
    print(f"conditions  raise the objective by {price:.0%}")
    print(f"stability   {stable.index:.2f}; 1 would be the same panel from any half of the samples")
    accuracy = f"{score.test_score:.1%} ± {score.standard_error:.1%}"
    print(f"accuracy    {accuracy} on samples that had no part in the choice")
    print(f"            {score.baseline_score:.1%} without any genes")
    if data.informative is not None:
        planted = len(set(selector.selected_) & set(data.informative))
        print(f"planted     {planted} of these {K}, of {len(data.informative)} planted in all")


if __name__ == "__main__":
    main()
