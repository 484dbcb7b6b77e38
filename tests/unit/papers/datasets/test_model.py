"""The checksum is that of the content: no more, no less."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest

from exactk.papers.datasets import Dataset, checksum

X = np.array([[1.5, -2.0, 0.0], [4.0, 5.25, 1e-3]])
Y = np.array([3, 7])


def test_it_is_sha256_over_the_canonical_form():
    content = b"<f4 (2, 3) <i4 (2,)\n" + struct.pack("<6f", *X.ravel()) + struct.pack("<2i", 0, 1)
    assert checksum(X.astype(np.float32), Y) == hashlib.sha256(content).hexdigest()
    content = b"<f8 (2, 3) <f8 (2,)\n" + struct.pack("<6d", *X.ravel()) + struct.pack("<2d", 3, 7)
    assert checksum(X, Y.astype(float)) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "same",
    [
        pytest.param((np.asfortranarray(X), Y), id="order"),
        pytest.param((X.astype(">f8"), Y.astype(">i8")), id="bytes"),
        pytest.param((X, np.array(["a", "b"])), id="label names"),
        pytest.param((np.where(X == 0, -0.0, X), Y), id="negative zero"),
        pytest.param((np.repeat(X, 2, axis=0)[::2], Y), id="view"),
    ],
)
def test_the_form_does_not_matter(same):
    assert checksum(*same) == checksum(X, Y)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((X + np.eye(2, 3) * 1e-9, Y), id="a value"),
        pytest.param((X[::-1], Y), id="order of rows"),
        pytest.param((X, Y[::-1]), id="labels"),
        pytest.param((X.reshape(3, 2), np.array([3, 7, 7])), id="shape"),
        pytest.param((X, Y.astype(float)), id="outputs for labels"),
    ],
)
def test_the_content_does(other):
    assert checksum(*other) != checksum(X, Y)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            Dataset("it's", np.zeros((900, 1)), np.arange(900) % 3, "classification", ""),
            """Dataset("it's", 900 rows × 1 column, 3 classes)""",
        ),
        (
            Dataset("a", np.zeros((1, 2)), np.zeros(1), "regression", ""),
            "Dataset('a', 1 row × 2 columns, 1 output)",
        ),
        (
            Dataset("a", np.zeros((2, 2)), np.zeros((2, 4)), "regression", ""),
            "Dataset('a', 2 rows × 2 columns, 4 outputs)",
        ),
    ],
    ids=["classes", "one output", "outputs"],
)
def test_it_is_shown_in_one_line(data, line):
    assert repr(data) == line
