"""A Dask dataframe on a cluster: the same columns as from the rows in memory.

For whoever has a table in partitions on several machines, here two processes on this one: each
partition comes to a small matrix of moments, and rows never leave their worker. Needs
``pip install "exactk[dask]"``. Run it with

    python examples/dask_table.py
"""

from __future__ import annotations

import dask.dataframe as dd
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits

from exactk import TopKSelector

K = 10


def main() -> None:
    digits = load_digits(as_frame=True)
    in_memory = TopKSelector(K).fit(digits.data, digits.target)

    # In earnest: table = dd.read_parquet("s3://bucket/digits/")
    table = dd.from_pandas(digits.frame, npartitions=6)
    X, y = table.drop(columns="target"), table["target"]
    with (
        # Any free port for the dashboard: another cluster may have the usual one.
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        # A client is the scheduler for all that Dask computes until it is closed.
        Client(cluster) as client,
    ):
        selector = TopKSelector(K).fit(X, y)
        # Nothing is computed here: the result is as lazy as the table.
        reduced = selector.transform(X)
        rows, columns = len(reduced), len(reduced.columns)
        workers = len(client.scheduler_info()["workers"])

    print(f"{rows:,} rows in {table.npartitions} partitions on {workers} workers")
    print(f"chosen        {', '.join(selector.get_feature_names_out())}")
    same = selector.selected_.tolist() == in_memory.selected_.tolist()
    print(f"as in memory  {'yes, in the same order of use' if same else 'no'}")
    near = abs(selector.objective_ / in_memory.objective_ - 1) < 1e-9
    print(f"objective     {selector.objective_:.2f}, {'the same' if near else 'another'}")
    print(f"transformed   {rows:,} rows, {columns} columns")


if __name__ == "__main__":
    # Workers are processes that import this file: without this line each would start a cluster.
    main()
