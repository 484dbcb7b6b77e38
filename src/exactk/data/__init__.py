"""Tables in memory: arrays, sparse matrices, data frames, files and AnnData; targets, moments and the Gram matrix."""
