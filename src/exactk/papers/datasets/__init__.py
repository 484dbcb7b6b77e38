"""The data sets of the papers: a catalogue, `load` and `fetch`, and generators of synthetic ones.

Examples
--------
>>> from exactk.papers.datasets import load
>>> wine = load("wine")
>>> wine.X.shape, wine.task
((178, 13), 'classification')
"""

from exactk.papers.datasets.catalogue import Dataset, Entry, checksum, describe
from exactk.papers.datasets.fetching import fetch
from exactk.papers.datasets.folders import available, find, folders, names
from exactk.papers.datasets.loading import load
from exactk.papers.datasets.synthetic import make_genes, make_outliers, make_planted

__all__ = [
    "Dataset",
    "Entry",
    "available",
    "checksum",
    "describe",
    "fetch",
    "find",
    "folders",
    "load",
    "make_genes",
    "make_outliers",
    "make_planted",
    "names",
]
