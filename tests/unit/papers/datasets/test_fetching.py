"""Downloads from a real server on this machine that cuts, lies, waits and refuses."""

from __future__ import annotations

import socket
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from exactk.papers.datasets import catalogue, describe, fetch, load
from exactk.papers.datasets.fetching import FetchError, download
from tests.support import says

QUICK = {"pause": 0.0, "timeout": 5.0}


@pytest.fixture
def get(server, small, tmp_path):
    """Fetch the small set from the server into an empty folder."""
    server.files[small.path] = small.mat

    def _get(**options):
        return fetch("small", folder=tmp_path / "data", base=server.base, **{**QUICK, **options})

    return _get


def left_over(tmp_path):
    return sorted(
        str(path.relative_to(tmp_path / "data")) for path in (tmp_path / "data").rglob("*")
    )


def test_a_whole_download(get, server, small, tmp_path):
    seen = []
    path = get(on_progress=seen.append)
    assert path == tmp_path / "data" / "small.npz"
    assert left_over(tmp_path) == ["small.npz"]
    data = load("small", folder=tmp_path / "data")
    assert data.checksum == small.entry.checksum
    np.testing.assert_array_equal(data.X, small.X.astype(np.float32))
    with np.load(path) as stored:
        assert {name: stored[name].dtype.str for name in stored} == {"X": "<f4", "y": "<i2"}
    size = len(small.mat)
    assert [seen[0], seen[-1]] == [("small", 1, 1, 0, size), ("small", 1, 1, size, size)]


def test_what_is_here_is_not_fetched_again(get, server):
    path = get()
    before = path.read_bytes()
    assert get() == path
    assert len(server.asked) == 1
    assert get(force=True) == path
    assert len(server.asked) == 2
    np.testing.assert_array_equal(np.load(path)["X"], np.load(path)["X"])
    assert len(path.read_bytes()) == len(before)


def test_a_wrong_file_here_is_said_and_replaced_by_force(get, small, tmp_path):
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "small.npz", X=small.X + 1, y=small.y)
    with says("small.npz", "delete it and run"):
        get()
    get(force=True)
    assert load("small", folder=tmp_path / "data").checksum == small.entry.checksum


class TestResume:
    def test_within_one_call(self, get, server, small):
        server.cuts = [500, 200]
        get()
        assert [wanted for _, wanted in server.asked] == [None, "bytes=500-", "bytes=700-"]

    def test_by_a_later_call(self, get, server, small, tmp_path):
        server.cuts = [500]
        with pytest.raises(FetchError, match=rf"cut after 500 of {len(small.mat)} bytes"):
            get(retries=0)
        assert not (tmp_path / "data" / "small.npz").exists()
        seen = []
        get(retries=0, on_progress=seen.append)
        assert server.asked[-1][1] == "bytes=500-"
        assert seen[0].done == 500
        assert left_over(tmp_path) == ["small.npz"]

    def test_a_server_without_ranges_begins_anew(self, get, server, small):
        server.cuts, server.ranges = [500], False
        get()
        assert [wanted for _, wanted in server.asked] == [None, "bytes=500-"]

    def test_a_changed_file_is_not_glued(self, get, server, small, tmp_path):
        # The first half is of another file: a glued one would fail its checksum.
        server.files[small.path] = bytes(len(small.mat))
        server.cuts, server.etag = [500], '"older"'
        with pytest.raises(FetchError):
            get(retries=0)
        server.files[small.path], server.etag = small.mat, '"newer"'
        get(retries=0)
        assert load("small", folder=tmp_path / "data").checksum == small.entry.checksum

    @pytest.mark.parametrize("etag", [None, 'W/"weak"'], ids=["none", "weak"])
    def test_without_a_strong_tag_it_begins_anew(self, get, server, etag):
        server.cuts, server.etag = [500], etag
        get()
        assert [wanted for _, wanted in server.asked] == [None, None]

    def test_a_part_that_is_too_long_is_thrown_away(self, server, tmp_path):
        server.files["/f"] = b"12345"
        (tmp_path / "f.part").write_bytes(b"1234567890")
        (tmp_path / "f.etag").write_text('"one"')
        download(f"{server.base}/f", tmp_path / "f", **QUICK)
        assert (tmp_path / "f").read_bytes() == b"12345"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["f"]


class TestWrongContent:
    def test_another_matrix_fails_its_checksum_and_is_not_kept(self, get, server, small, tmp_path):
        file = tmp_path / "other.mat"
        savemat(file, {"X": small.X + 1, "Y": small.y})
        server.files[small.path] = file.read_bytes()
        with says("was not kept", small.entry.checksum, server.base):
            get()
        assert left_over(tmp_path) == []
        server.files[small.path] = small.mat
        get()

    def test_a_page_in_place_of_the_file(self, get, server, small, tmp_path):
        server.files[small.path] = b"<html>sign in first</html>" * 20
        with says("was not kept", "cut short or damaged"):
            get()
        assert left_over(tmp_path) == []

    def test_what_was_here_before_stays(self, get, server, small, tmp_path):
        get()
        server.files[small.path] = b"nothing"
        with says("was not kept"):
            get(force=True)
        assert load("small", folder=tmp_path / "data").checksum == small.entry.checksum


class TestRefusals:
    def test_404_is_not_tried_again(self, get, server, small, tmp_path):
        server.files.clear()
        with pytest.raises(FetchError, match=r"'small' cannot be downloaded: .* 404") as error:
            get()
        assert len(server.asked) == 1
        assert small.entry.addresses()[0] in str(error.value)
        assert str(tmp_path / "data") in str(error.value)
        assert left_over(tmp_path) == []

    def test_a_passing_error_is(self, get, server):
        server.statuses = [503, 429, 500]
        get(retries=3)
        assert len(server.asked) == 4

    def test_until_tries_are_used_up(self, get, server, tmp_path):
        server.statuses = [503] * 9
        with pytest.raises(FetchError, match=r"503 .* \(after 3 tries\)"):
            get(retries=2)
        assert len(server.asked) == 3
        assert left_over(tmp_path) == []

    def test_a_server_that_is_silent(self, get, server):
        server.delay = 0.6
        with pytest.raises(FetchError, match=r"did not answer in time \(after 2 tries\)"):
            get(timeout=0.05, retries=1)

    def test_nobody_listens(self, small, tmp_path):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            base = f"http://127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(FetchError, match="refused") as error:
                fetch("small", folder=tmp_path / "data", base=base, retries=1, pause=0.0)
        assert "Small-1.mat and put it into" in str(error.value)
        assert left_over(tmp_path) == []

    def test_no_network(self, small, tmp_path, monkeypatch):
        def unresolved(*args, **options):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unresolved)
        for variable in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(variable, raising=False)
        with pytest.raises(FetchError, match=r"no network\?") as error:
            fetch("small", folder=tmp_path / "data")
        assert small.entry.addresses()[0] in str(error.value)
        assert left_over(tmp_path) == []

    def test_https_is_never_left(self):
        from urllib.error import HTTPError
        from urllib.request import Request

        from exactk.papers.datasets.fetching import _SecureRedirects

        follow = _SecureRedirects().redirect_request
        safe = Request("https://a.example/x")
        assert follow(safe, None, 302, "", {}, "https://b.example/y").full_url.endswith("/y")
        with pytest.raises(HTTPError, match="not https") as error:
            follow(safe, None, 302, "", {}, "http://b.example/y")
        error.value.close()

    @pytest.mark.parametrize("base", ["file:///etc", "ftp://a.example"])
    def test_other_kinds_of_addresses(self, small, base, tmp_path):
        with pytest.raises(FetchError, match="neither an https nor an http"):
            fetch("small", folder=tmp_path / "data", base=base)

    def test_what_has_no_file(self):
        with says("'wine' is part of scikit-learn", "nothing to fetch"):
            fetch("wine")
        with says("'genes' is generated"):
            fetch("genes")
        with says("'lung56' cannot be fetched", "lung.rda", "write.csv"):
            fetch("lung56")
        with says("no data set named 'lungg'"):
            fetch("lungg")

    @pytest.mark.parametrize(
        "options", [{"timeout": 0}, {"retries": -1}, {"pause": -1.0}], ids=lambda o: next(iter(o))
    )
    def test_parameters(self, get, server, options):
        with says(next(iter(options))):
            get(**options)
        assert server.asked == []

    def test_a_folder_that_cannot_be_made(self, small, tmp_path):
        (tmp_path / "file").write_text("")
        with says("cannot be written", "choose another folder"):
            fetch("small", folder=tmp_path / "file" / "data")


def test_several_files_go_on_with_the_missing_one(server, small, tmp_path, monkeypatch):
    paths = ("one/part.mat", "two/part.mat")
    entry = replace(small.entry, build="stack", paths=paths)
    monkeypatch.setattr(catalogue, "_entries", lambda: {"small": entry})
    root = small.path.removesuffix("/data/Small-1.mat")
    for path, rows in zip(paths, (slice(0, 12), slice(12, 30)), strict=True):
        file = tmp_path / "piece.mat"
        savemat(file, {"X": small.X[rows], "Y": small.y[rows]})
        server.files[f"{root}/{path}"] = file.read_bytes()
    second = server.files.pop(f"{root}/two/part.mat")
    with pytest.raises(FetchError, match=r"\(file 2: .*/two/part.mat\)"):
        fetch("small", folder=tmp_path / "data", base=server.base, **QUICK)
    server.files[f"{root}/two/part.mat"] = second
    seen = []
    fetch("small", folder=tmp_path / "data", base=server.base, on_progress=seen.append, **QUICK)
    assert [path.rpartition("/")[0][-3:] for path, _ in server.asked] == ["one", "two", "two"]
    assert {(step.file, step.files) for step in seen} == {(2, 2)}
    assert left_over(tmp_path) == ["small.npz"]


@pytest.mark.parametrize("name", ["colon", "srbct", "pcmac"])
def test_a_real_set_over_the_wire(name, server, shared_data, tmp_path):
    """The published .mat form, written from the kept copy, ends as the same set."""
    original = load(name, folder=shared_data)
    file = tmp_path / "source.mat"
    X = sparse.csc_array(original.X) if name == "pcmac" else original.X
    savemat(file, {"X": X, "Y": original.y[:, None] * 2.0 - 1})
    (address,) = describe(name).addresses("")
    server.files[address] = file.read_bytes()
    server.cuts = [100_000]
    path = fetch(name, folder=tmp_path / "data", base=server.base, **QUICK)
    data = load(name, folder=tmp_path / "data")
    assert data.checksum == original.checksum == describe(name).checksum
    np.testing.assert_array_equal(data.X, original.X)
    assert path.stat().st_size < 1.2 * (shared_data / f"{name}.npz").stat().st_size
