"""A Spark table: the same columns as from the rows in memory.

For whoever has a table in Spark: executors make the moments of their partitions, and only these
come to the driver. Needs Java and ``pip install "exactk[spark]"``, on the executors too. Run it
with

    python examples/spark_table.py
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession
from sklearn.datasets import load_wine

import exactk

K = 5


def main() -> None:
    # The executors' Python is that of this script.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("exactk")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    wine = load_wine(as_frame=True)
    # In earnest: table = spark.read.parquet("s3://bucket/wine/")
    table = spark.createDataFrame(wine.frame.values.tolist(), list(wine.frame)).repartition(4)
    problem = exactk.Problem.from_spark(table, target="target")
    result = exactk.solve(problem, K)
    partitions = table.rdd.getNumPartitions()
    spark.stop()

    in_memory = exactk.Problem.from_arrays(wine.data, wine.target)
    same = exactk.solve(in_memory, K).feature_names == result.feature_names
    print(f"{problem.n_rows} rows in {partitions} partitions")
    print(f"chosen        {', '.join(result.feature_names)}")
    print(f"as in memory  {'yes' if same else 'no'}")


if __name__ == "__main__":
    main()
