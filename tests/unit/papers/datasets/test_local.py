"""What a list says of one's own files: the truth, and without reading large ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from exactk.papers.datasets import load, local
from exactk.papers.datasets.local import local_datasets

X = np.random.default_rng(0).standard_normal((12, 5))


def outline(folder):
    (found,) = local_datasets(folder)
    return found.n, found.d, found.task, found.classes


def write(form, y, folder):
    if form == "npz":
        np.savez_compressed(folder / "mine.npz", X=X, y=y)
    elif form == "csr":
        S = sparse.csr_array(X)
        parts = {"X_data": S.data, "X_indices": S.indices, "X_indptr": S.indptr}
        np.savez(folder / "mine.npz", **parts, X_shape=S.shape, y=y)
    elif form == "mat":
        savemat(folder / "mine.mat", {"X": X, "Y": y})
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import csv, parquet

        table = pa.table({**{f"x{j}": X[:, j] for j in range(5)}, "y": y})
        put = parquet.write_table if form == "parquet" else csv.write_csv
        put(table, folder / f"mine.{form}")


@pytest.mark.parametrize("form", ["npz", "csr", "mat", "csv", "parquet"])
@pytest.mark.parametrize("y", [np.arange(12) % 3, np.arange(12) / 7], ids=["classes", "amounts"])
def test_it_is_what_load_gives(form, y, tmp_path):
    write(form, y, tmp_path)
    data = load("mine", folder=tmp_path)
    assert outline(tmp_path) == (12, 5, data.task, data.n_classes)


@pytest.mark.parametrize("form", ["mat", "csv", "parquet"])
def test_a_large_file_is_not_read(form, tmp_path, monkeypatch):
    write(form, np.arange(12) % 3, tmp_path)
    monkeypatch.setattr(local, "FEW", 20)
    monkeypatch.setattr(local, "load_local", lambda *_: pytest.fail("it was read"))
    assert outline(tmp_path) == (None, None, None, None)


def test_a_large_npz_still_has_its_shape(tmp_path, monkeypatch):
    """64 TB, if it were read."""
    shape = [2**20, 2**23]
    parts = {"X_data": [1.0], "X_indices": [0], "X_indptr": [0, 1]}
    np.savez(tmp_path / "mine.npz", **parts, X_shape=shape, y=np.arange(12) % 3)
    assert outline(tmp_path) == (*shape, "classification", 3)
    monkeypatch.setattr(local, "FEW", 5)
    assert outline(tmp_path) == (*shape, None, None)


@pytest.mark.parametrize("file", ["a.npz", "a.mat", "a.csv", "a.parquet", "a.tsv.gz"])
def test_a_damaged_file_is_listed_with_nothing_known(file, tmp_path):
    (tmp_path / file).write_bytes(b"<html>")
    (found,) = local_datasets(tmp_path)
    assert (found.name, found.path) == ("a", tmp_path / file)
    assert outline(tmp_path) == (None, None, None, None)
