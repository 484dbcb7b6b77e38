"""The catalogue says of every set what a reader needs, and says nothing false of the files."""

from __future__ import annotations

import re

import numpy as np
import pytest

from exactk.errors import InputError
from exactk.papers.datasets import available, describe, load, names
from exactk.papers.datasets.builders import BUILDERS
from exactk.papers.datasets.catalogue import PAPERS

FILES = [name for name in names() if describe(name).origin == "file"]


def test_the_sets_that_are_promised():
    assert len(FILES) == 33
    assert {"digits", "breast_cancer", "wine", "iris", "diabetes"} <= set(names())
    assert {"gsrfs-synthetic-0", "gsrfs-synthetic-1", "gsrfs-synthetic-10"} <= set(names())
    assert {"planted", "genes", "lung", "gli85"} <= set(names())


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_a_source_a_licence_note_and_a_way(name):
    entry = describe(name)
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.repository)
    assert re.fullmatch(r"[0-9a-f]{40}", entry.commit)
    assert entry.paths
    assert all(address.startswith("https://") for address in entry.addresses())
    assert "licence" in entry.licence or "GPL" in entry.licence
    assert entry.build in BUILDERS or entry.how
    assert set(entry.papers) <= set(PAPERS)
    if name not in ("lung", "gli85"):
        assert entry.checked == "checksum"
        assert re.fullmatch(r"[0-9a-f]{64}", entry.checksum)


def test_what_is_checked_where_no_checksum_is_known():
    assert describe("lung").checked == "shape and class sizes"
    assert describe("gli85").checked == "shape and number of classes"
    assert describe("wine").checked == describe("genes").checked == ""


def test_every_paper_has_sets():
    for paper in PAPERS:
        assert sum(paper in describe(name).papers for name in names()) >= 3


def test_ranges_in_paths_are_written_out_in_the_order_of_the_persons():
    paths = describe("orl_full").paths
    assert len(paths) == 400
    assert paths[:2] == ("att_faces/s1/1.pgm", "att_faces/s1/2.pgm")
    assert paths[9:11] == ("att_faces/s1/10.pgm", "att_faces/s2/1.pgm")
    assert paths[-1] == "att_faces/s40/10.pgm"
    assert len(describe("orl_full").source) < 200


def test_addresses_are_quoted_and_can_be_moved():
    assert describe("coil20").addresses("http://mirror/") == (
        "http://mirror/jundongl/scikit-feature/48cffad4e88ff4b9d2f1c7baffb314d1b3303792"
        "/skfeature/data/COIL20.mat",
    )


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(InputError, match="no data set named 'coil2'; did you mean 'coil20'"):
        describe("coil2")


@pytest.mark.parametrize("name", names())
def test_the_shape_and_checksum_hold(name, shared_data):
    here, _ = available([name], folder=shared_data)
    if not here:
        assert name in ("lung", "gli85")
        return
    entry, data = describe(name), load(name, folder=shared_data)
    assert data.X.shape == (entry.n, entry.d)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.task == entry.task
    assert data.n_classes == entry.classes
    if entry.task == "classification":
        assert data.y.dtype == np.int64
        assert set(np.unique(data.y)) == set(range(entry.classes))
    else:
        assert data.y.reshape(entry.n, -1).shape[1] == entry.outputs
    assert re.fullmatch(r"[0-9a-f]{64}", data.checksum)
    assert not entry.checksum or data.checksum == entry.checksum
