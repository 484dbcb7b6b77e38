"""The data sets of the papers: a catalogue, `load` and `fetch`, and generators of synthetic ones.

Examples
--------
>>> from exactk.datasets import load
>>> wine = load("wine")
>>> wine.X.shape, wine.task
((178, 13), 'classification')
"""

from exactk.datasets.catalogue import Entry, describe
from exactk.datasets.fetching import fetch
from exactk.datasets.folders import available, find, folders, names
from exactk.datasets.loading import load
from exactk.datasets.model import Dataset, checksum
from exactk.datasets.synthetic import make_genes, make_outliers, make_planted

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
