"""Files in the form of their sources give the data sets of the catalogue."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from exactk.papers.datasets import describe, load
from exactk.papers.datasets.builders import BUILDERS
from tests.support import says


def write_idx(path, values):
    head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    path.write_bytes(gzip.compress(head + values.astype(np.uint8).tobytes(), compresslevel=1))


def write_digits(folder, X, y):
    write_idx(folder / "t10k-images-idx3-ubyte.gz", X.reshape(-1, 28, 28))
    write_idx(folder / "t10k-labels-idx1-ubyte.gz", y)


def stored(shared_data, name):
    with np.load(shared_data / f"{name}.npz") as content:
        return content["X"], content["y"]


class TestFromTheSharedData:
    """Each source is written from the kept copy, in its own form; the checksum must come out."""

    def test_transposed_mat(self, shared_data, tmp_path):
        X, y = stored(shared_data, "usps")
        savemat(tmp_path / "usps.mat", {"x": X.T.astype(float), "y": y[None] + 1.0})
        assert load("usps", folder=tmp_path).checksum == describe("usps").checksum

    def test_stack(self, shared_data, tmp_path):
        X, y = stored(shared_data, "isolet_full")
        names = ("Isolet1", "Isolet2", "Isolet3", "Isolet4", "isolet5")
        for number, name in enumerate(names):
            rows = slice(1560 * number, 1560 * (number + 1))
            savemat(tmp_path / f"{name}.mat", {"fea": X[rows], "gnd": y[rows, None] + 1})
        assert load("isolet_full", folder=tmp_path).checksum == describe("isolet_full").checksum

    def test_semeion(self, shared_data, tmp_path):
        X, y = stored(shared_data, "semeion")
        lines = [
            " ".join([*(f"{v:.4f}" for v in row), *("1" if y_ == c else "0" for c in range(10))])
            for row, y_ in zip(X, y, strict=True)
        ]
        (tmp_path / "semeion.data").write_text(" \n".join(lines) + " \n")
        assert load("semeion", folder=tmp_path).checksum == describe("semeion").checksum

    def test_mnist(self, shared_data, tmp_path):
        X, y = stored(shared_data, "mnist")
        # What follows the first images of each class is not of the set.
        write_digits(tmp_path, np.vstack([X, X[:500]]), np.concatenate([y, y[:500]]))
        assert load("mnist", folder=tmp_path).checksum == describe("mnist").checksum

    def test_mnist49(self, shared_data, tmp_path):
        X, y = stored(shared_data, "mnist49")
        others = X[:1991:7]
        positions = np.sort(np.random.default_rng(0).integers(0, len(X), len(others)))
        write_digits(
            tmp_path,
            np.insert(X, positions, others, axis=0),
            np.insert(np.array([4, 9])[y], positions, np.arange(len(others)) % 4),
        )
        assert load("mnist49", folder=tmp_path).checksum == describe("mnist49").checksum

    def test_orl(self, shared_data, tmp_path):
        X, _ = stored(shared_data, "orl_full")
        for row, path in zip(X, describe("orl_full").paths, strict=True):
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"P5\n# a comment\n92 112\n255\n" + row.tobytes())
        assert load("orl_full", folder=tmp_path).checksum == describe("orl_full").checksum


def test_carcinom_keeps_the_genes_with_the_largest_maxima(tmp_path):
    rng = np.random.default_rng(1)
    Z = np.exp(rng.normal(4, 2, (12, 9))).round()
    Z[:, 3] = Z[:, 7]  # a tie
    y = np.arange(12) % 3 + 1
    savemat(tmp_path / "11Tumor.mat", {"tumor": np.column_stack([Z, y])})
    entry = replace(describe("carcinom"), n=12, d=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactk.papers.datasets.builders.TUMOUR_GENES", 9)
        X, labels = BUILDERS["carcinom"]([tmp_path / "11Tumor.mat"], entry)
    ranked = sorted(range(9), key=lambda gene: (-max(Z[:, gene]), gene))
    kept = sorted(ranked[:5])
    np.testing.assert_array_equal(X, np.log10(np.where(Z < 20, 20, Z))[:, kept])
    np.testing.assert_array_equal(labels, y)


class TestDamaged:
    def test_idx(self, tmp_path):
        images, labels = np.zeros((4, 28, 28)), np.arange(4)
        write_digits(tmp_path, images, labels)
        whole = (tmp_path / "t10k-images-idx3-ubyte.gz").read_bytes()
        for content, message in (
            (whole[:-9], "not a whole .gz file"),
            (b"<html>", "not a whole .gz file"),
            (gzip.compress(gzip.decompress(whole)[:-1]), "cut short"),
            (gzip.compress(b"\x00\x00"), "not an IDX file"),
        ):
            (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(content)
            with says("t10k-images", message):
                load("mnist", folder=tmp_path)
        write_digits(tmp_path, images, labels[:3])
        with says("not images and their labels"):
            load("mnist", folder=tmp_path)
        write_digits(tmp_path, images, labels + 9)
        with says("labels beyond 9"):
            load("mnist49", folder=tmp_path)

    @pytest.mark.parametrize(
        ("content", "message"),
        [("1 2 x\n", "not a table of numbers"), ("1 2 3\n4 5 6\n", "256 pixels and 10 labels")],
        ids=["text", "narrow"],
    )
    def test_semeion(self, content, message, tmp_path):
        (tmp_path / "semeion.data").write_text(content)
        with says("semeion.data", message):
            load("semeion", folder=tmp_path)

    @pytest.mark.parametrize(
        "content",
        [b"P2\n92 112\n255\n0 0", b"P5\n92 112\n65535\n", b"P5\n92 112\n255\n\x00\x01", b""],
        ids=["text", "16 bits", "short", "nothing"],
    )
    def test_pgm(self, content, tmp_path):
        file = tmp_path / "1.pgm"
        file.write_bytes(content)
        with says("1.pgm"):
            BUILDERS["orl"]([file], describe("orl_full"))

    def test_parts_of_different_width(self, tmp_path):
        files = [tmp_path / "a.mat", tmp_path / "b.mat"]
        for width, file in enumerate(files, start=3):
            savemat(file, {"X": np.ones((4, width)), "Y": np.arange(4)})
        with says("isolet_full", "a.mat: 3, b.mat: 4"):
            BUILDERS["stack"](files, describe("isolet_full"))
