"""Select 3 of 30 measurements of tumours, and write a report about them.

Run with ``make demo``. The table comes with scikit-learn; nothing is downloaded. Every method
selects its features anew in the training rows of each fold.
"""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer

import exactk

K = 3
LABELS = {"exchange": "exactk", "selectkbest": "SelectKBest", "rfe": "RFE", "l1": "L1 (lasso)"}

if __name__ == "__main__":
    data = load_breast_cancer()
    problem = exactk.Problem.from_arrays(
        data.data, data.target_names[data.target], feature_names=data.feature_names
    )
    report = exactk.investigate(problem, k=K, ridge="auto", target="diagnosis")
    assert report.certificate is not None
    assert report.evaluation is not None

    n_rows, n_features = data.data.shape
    print(f"breast cancer: {n_rows} rows, {n_features} features, 2 classes; select {K} features\n")
    print(f"  {'feature':24}{'selected in':25}best substitute")
    for row in report.table:
        share = f"{row['frequency']:.0%} of half-samples"
        print(f"  {row['feature']:24}{share:25}{row['substitute']}")
    print(f"\n  {report.certificate.summary}")

    print(f"\n  accuracy on held-out rows, {K} features")
    for method in report.evaluation.table:
        print(f"  {LABELS[method['method']]:24}{method['test_score']:.1%}")
    print(f"  {f'all {n_features} features':24}{report.evaluation.all_features_score:.1%}")
    print(f"  {'largest class':24}{report.evaluation.baseline_score:.1%}")

    print(f"\nReport (open it in a browser): {report.save('demo_report.html')}")
