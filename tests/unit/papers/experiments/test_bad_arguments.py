"""What is no list, no name or no label is said in a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from exactk.papers.experiments.classifiers import accuracy
from exactk.papers.experiments.measures import jaccard, nogueira, redundancy, residual
from tests.support import says

X = np.arange(24.0).reshape(8, 3) ** 2 % 7
Y = np.arange(8) % 2


@pytest.mark.parametrize("name", [["svm"], {}, None, 5], ids=str)
def test_classifier(name):
    with says("unknown classifier", "1nn"):
        accuracy(name, X, Y, X, Y)


@pytest.mark.parametrize("labels", [[None] * 8, ["a", None] * 4, np.array(["a", 1] * 4, object)])
def test_labels(labels):
    with says("y_train"):
        accuracy("svm", X, labels, X, Y)


@pytest.mark.parametrize("support", [None, 5], ids=str)
def test_support(support):
    with says("support must be a list"):
        residual(X, Y, support, "classification")
    with says("support must be a list"):
        redundancy(X, support)


@pytest.mark.parametrize("supports", [None, 5, [1, 2]], ids=str)
def test_supports(supports):
    with says("supports must be a list of lists"):
        jaccard(supports)
    with says("supports must be a list of lists"):
        nogueira(supports, 3)
