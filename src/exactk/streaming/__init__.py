"""Tables that are read in blocks and not held in memory: files, Dask, Spark, backed AnnData."""
