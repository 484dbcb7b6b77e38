"""Files as their sources have them to one matrix and its labels.

Each builder takes the files in the order of the catalogue and the entry, and returns X and y.
Where a source was not at hand when this was written, the checksum of the catalogue decides
whether the result is right.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError
from exactk.papers.datasets.catalogue import Entry
from exactk.papers.datasets.formats import Arrays, read_mat

__all__ = ["BUILDERS"]

# A tenth of each class of all 70000 digits, rounded down: what ipfs draws of MNIST.
MNIST_SHARES = (690, 787, 699, 714, 682, 631, 687, 729, 682, 695)
TUMOUR_GENES = 12_533
TUMOUR_FLOOR = 20.0
PGM_SHAPE = (112, 92)


def build_mat(files: Sequence[Path], entry: Entry) -> Arrays:
    """One MATLAB file."""
    return read_mat(files[0], (entry.n, entry.d))


def build_stack(files: Sequence[Path], entry: Entry) -> Arrays:
    """Several MATLAB files, one below the other."""
    parts = [read_mat(file) for file in files]
    if len({X.shape[1] for X, _ in parts}) > 1:
        widths = ", ".join(
            f"{file.name}: {X.shape[1]}" for file, (X, _) in zip(files, parts, strict=True)
        )
        raise InputError(
            f"the parts of {entry.name!r} have different numbers of columns ({widths})",
            parameter="path",
        )
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def build_semeion(files: Sequence[Path], entry: Entry) -> Arrays:
    """Text of 256 pixels and then ten columns, of which one is 1."""
    try:
        table = np.loadtxt(files[0])
    except ValueError as error:
        raise InputError(
            f"{str(files[0])!r} is not a table of numbers: {error}", parameter="path"
        ) from error
    if table.ndim != 2 or table.shape[1] != entry.d + 10:
        raise InputError(
            f"{str(files[0])!r} does not have {entry.d} pixels and 10 labels a row",
            parameter="path",
        )
    return table[:, : entry.d], table[:, entry.d :].argmax(axis=1)


def build_mnist(files: Sequence[Path], entry: Entry) -> Arrays:
    """The first test images of each digit, as many as a tenth of all of that digit."""
    X, y = _digits(files)
    rank = np.empty(len(y), dtype=np.intp)
    for digit in range(10):
        rows = np.flatnonzero(y == digit)
        rank[rows] = np.arange(len(rows))
    kept = rank < np.array(MNIST_SHARES)[y]
    return X[kept], y[kept]


def build_mnist49(files: Sequence[Path], entry: Entry) -> Arrays:
    """All fours and nines of the test images."""
    X, y = _digits(files)
    kept = (y == 4) | (y == 9)
    return X[kept], y[kept]


def build_carcinom(files: Sequence[Path], entry: Entry) -> Arrays:
    """The genes with the largest maxima, floored and in log10; ties go to the first."""
    X, y = read_mat(files[0], (entry.n, TUMOUR_GENES))
    if X.shape[1] < entry.d:
        raise InputError(
            f"{str(files[0])!r} has {X.shape[1]} genes, fewer than {entry.d}", parameter="path"
        )
    kept = np.sort(np.argsort(-X.max(axis=0).astype(np.float64), kind="stable")[: entry.d])
    return np.log10(np.maximum(X[:, kept].astype(np.float64), TUMOUR_FLOOR)), y


def build_orl(files: Sequence[Path], entry: Entry) -> Arrays:
    """Grey images, ten of a person."""
    X = np.stack([_read_pgm(file) for file in files])
    return X, np.arange(len(files)) // 10


def _digits(files: Sequence[Path]) -> Arrays:
    images, labels = (_read_idx(file) for file in files)
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise InputError(
            f"{str(files[0])!r} and {str(files[1])!r} are not images and their labels: shapes "
            f"{images.shape} and {labels.shape}", parameter="path",
        )  # fmt: skip
    if labels.size and labels.max() > 9:
        raise InputError(f"{str(files[1])!r} has labels beyond 9", parameter="path")
    return images.reshape(len(images), -1), labels.astype(np.int64)


def _read_idx(file: Path) -> npt.NDArray[np.uint8]:
    """Read the IDX form of MNIST: two zeros, the type, the number of sides, the sides, bytes."""
    try:
        with gzip.open(file) as stream:
            content = stream.read()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{str(file)!r} is not a whole .gz file: {error}", parameter="path"
        ) from error
    sides = content[3] if len(content) > 3 and content[:3] == b"\x00\x00\x08" else 0
    shape = tuple(np.frombuffer(content[4 : 4 + 4 * sides], dtype=">u4").astype(int).tolist())
    if not shape or len(content) != 4 + 4 * sides + int(np.prod(shape)):
        raise InputError(
            f"{str(file)!r} is not an IDX file of bytes, or is cut short", parameter="path"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * sides).reshape(shape)


def _read_pgm(file: Path) -> npt.NDArray[np.uint8]:
    """Read a binary grey image: P5, width, height and largest value, then one byte a pixel."""
    content = file.read_bytes()
    # One blank ends the header; a comment may stand between its numbers.
    head = re.match(
        rb"P5(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)\s", content
    )
    if head is None or int(head[3]) > 255:
        raise InputError(f"{str(file)!r} is not a binary PGM image of 8 bits", parameter="path")
    height, width = int(head[2]), int(head[1])
    pixels = np.frombuffer(content, dtype=np.uint8, offset=head.end())
    if (height, width) != PGM_SHAPE or len(pixels) != height * width:
        raise InputError(
            f"{str(file)!r} is not a whole image of {PGM_SHAPE[0]} x {PGM_SHAPE[1]} pixels",
            parameter="path",
        )
    return pixels


BUILDERS: dict[str, Callable[[Sequence[Path], Entry], Arrays]] = {
    "mat": build_mat,
    "stack": build_stack,
    "semeion": build_semeion,
    "mnist": build_mnist,
    "mnist49": build_mnist49,
    "carcinom": build_carcinom,
    "orl": build_orl,
}
