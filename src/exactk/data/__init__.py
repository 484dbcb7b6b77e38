"""Tables in memory: arrays, sparse matrices, frames, files, AnnData; targets and moments."""
