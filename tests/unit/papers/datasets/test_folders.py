"""Where sets are looked for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from exactk.papers.datasets import available, describe, fetch, find, folders, load, names
from exactk.papers.datasets.folders import local_files
from tests.support import says


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def test_the_cache_folder_of_each_system(monkeypatch):
    for variable in ("EXACTK_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/of/someone"))
    expected = {
        "linux": "/home/of/someone/.cache/exactk",
        "darwin": "/home/of/someone/Library/Caches/exactk",
        "win32": "/home/of/someone/AppData/Local/exactk",
    }
    for system, folder in expected.items():
        monkeypatch.setattr("sys.platform", system)
        assert folders() == [Path(folder)]
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert folders() == [Path("/local/exactk")]
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert folders() == [Path("/xdg/exactk")]


def test_the_order_is_folder_or_variable_and_cache(elsewhere, monkeypatch, tmp_path):
    in_cache = touch(elsewhere / "mine.npz")
    assert find("mine") == in_cache
    monkeypatch.setenv("EXACTK_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    assert find("mine") == in_cache
    named = touch(tmp_path / "data" / "mine.npz")
    assert find("mine") == named
    assert find("mine", folder=tmp_path / "other") is None
    given = touch(tmp_path / "other" / "mine.csv")
    assert find("mine", folder=tmp_path / "other") == given


def several(monkeypatch, *places: Path) -> None:
    monkeypatch.setenv("EXACTK_DATA", os.pathsep.join(map(str, places)))


def test_several_folders_are_searched_in_their_order(elsewhere, monkeypatch, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    several(monkeypatch, a, b)
    assert folders() == [a, b, elsewhere]
    only = touch(b / "mine.csv")
    a.mkdir()
    assert find("mine") == only
    # The folder decides before the form of the file does.
    first = touch(a / "mine.parquet")
    touch(b / "mine.npz")
    assert find("mine") == first
    touch(elsewhere / "kept.npz")
    assert available(["mine", "kept", "colon"]) == (["mine", "kept"], ["colon"])
    monkeypatch.setenv("EXACTK_DATA", f"{os.pathsep}{a}{os.pathsep}")
    assert folders() == [a, elsewhere]


def test_a_named_folder_that_does_not_exist_is_said(elsewhere, monkeypatch, tmp_path):
    here, gone = tmp_path / "here", tmp_path / "gone"
    touch(here / "mine.npz")
    touch(elsewhere / "mine.npz")
    several(monkeypatch, here, gone)
    for ask in (find, load, lambda name: available([name]), lambda _: names(own=True)):
        with says(f"EXACTK_DATA names {str(gone)!r}", "does not exist", "make that folder"):
            ask("mine")
    # What needs no file needs no folder; neither does another folder that is given.
    assert available(["wine", "planted"])[0] == ["wine", "planted"]
    assert load("iris").X.shape == (150, 4)
    assert names()
    assert folders()[1] == gone
    assert find("mine", folder=here) is not None
    gone.write_text("a file")
    with says(str(gone), "is no folder"):
        find("mine")


def test_fetch_makes_the_first_named_folder_and_no_other(elsewhere, monkeypatch, tmp_path):
    several(monkeypatch, tmp_path / "new", tmp_path / "gone")
    with says(str(tmp_path / "gone"), "does not exist"):
        fetch("colon")
    assert (tmp_path / "new").is_dir()
    assert not (tmp_path / "gone").exists()


def test_names_of_ones_own_files(elsewhere, monkeypatch, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    several(monkeypatch, a, b)
    for file in ("flowers.csv", "Cells.tsv.gz", "v1.2.npz", "twice.npz", "twice.csv"):
        touch(a / file)
    # Of the catalogue, of its sources, of no form that is read, no name, no file.
    for file in ("colon.csv", "COIL20.mat", "SRBCTML.mat", "Isolet3.mat", "notes.txt", "my x.csv"):
        touch(a / file)
    for file in (".hidden.npz", "wine.npz"):
        touch(a / file)
    (a / "folder.csv").mkdir()
    for file in ("Flowers.npz", "late.parquet"):
        touch(b / file)
    touch(elsewhere / "kept.mat")
    found = local_files()
    assert list(found) == ["Cells", "flowers", "kept", "late", "twice", "v1.2"]
    for name, path in found.items():
        assert find(name) == path
    assert names(own=True) == names() + list(found)
    assert names(own=True, folder=b) == [*names(), "Flowers", "late"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("coil20", "COIL20.mat"),
        ("prostate_ge", "Prostate-GE.mat"),
        ("prostate_ge", "Prostate_GE.mat"),
        ("gli85", "GLI-85.mat"),
        ("gli85", "gli85.mat"),
        ("srbct", "SRBCTML.mat"),
        ("semeion", "semeion.data"),
        ("lung56", "lung56.csv"),
        ("of-mine", "of_mine.parquet"),
    ],
)
def test_names_of_files(name, file, tmp_path):
    path = touch(tmp_path / file)
    assert find(name, folder=tmp_path) == path
    assert available([name], folder=tmp_path) == ([name], [])


def test_npz_goes_before_the_source_and_that_before_others(tmp_path):
    touch(tmp_path / "coil20.csv")
    source = touch(tmp_path / "COIL20.mat")
    assert find("coil20", folder=tmp_path) == source
    npz = touch(tmp_path / "coil20.npz")
    assert find("coil20", folder=tmp_path) == npz


def test_a_set_of_several_files_is_here_when_all_are(tmp_path):
    touch(tmp_path / "t10k-images-idx3-ubyte.gz")
    assert find("mnist", folder=tmp_path) is None
    touch(tmp_path / "t10k-labels-idx1-ubyte.gz")
    assert find("mnist", folder=tmp_path).name == "t10k-images-idx3-ubyte.gz"
    assert available(["mnist49", "isolet_full"], folder=tmp_path) == (["mnist49"], ["isolet_full"])


def test_sets_without_a_file_are_always_here(tmp_path):
    assert available(["wine", "genes", "nothing"], folder=tmp_path) == (
        ["wine", "genes"],
        ["nothing"],
    )
    np.savez(tmp_path / "wine.npz", X=np.eye(2), y=[0, 1])
    assert find("wine", folder=tmp_path) is None


@pytest.mark.parametrize("name", ["../secret", "a/b", "", ".hidden", "a b"])
def test_a_name_is_no_path(name, tmp_path):
    with says(repr(name), "plain file name"):
        find(name, folder=tmp_path)


def test_without_a_home(monkeypatch, tmp_path):
    """As in a container whose user is a number."""

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for variable in ("EXACTK_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with says("no home folder", "EXACTK_DATA"):
        folders()
    monkeypatch.setenv("EXACTK_DATA", str(tmp_path))
    assert folders() == [tmp_path]


def test_a_home_of_nobody():
    with says("~nobody-of-this-name/data"):
        folders("~nobody-of-this-name/data")


def test_the_exact_spelling_comes_first(tmp_path):
    touch(tmp_path / "Mine.npz")
    if (tmp_path / "mine.npz").exists():
        pytest.skip("letters of both cases are the same here")
    small = touch(tmp_path / "mine.npz")
    assert find("mine", folder=tmp_path) == small
    assert find("Mine", folder=tmp_path) == tmp_path / "Mine.npz"
    assert find("MINE", folder=tmp_path) is not None


@pytest.mark.parametrize("name", [None, 5, b"wine", ["wine"]], ids=str)
def test_a_name_is_text(name):
    for ask in (find, describe, load):
        with says("name", repr(name)):
            ask(name)


def test_one_name_is_no_list_of_letters():
    with says("['wine']"):
        available("wine")
