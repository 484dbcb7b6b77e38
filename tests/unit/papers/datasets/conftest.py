"""A catalogue of small sets, and a server on this machine that can misbehave."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from exactk.papers.datasets import catalogue
from exactk.papers.datasets.catalogue import checksum


@dataclass
class Server:
    """What to serve, how to misbehave, and what was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    etag: str | None = '"one"'
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    delay: float = 0.0
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    base: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append((request.path, wanted))
        time.sleep(self.delay)
        status = self.statuses.pop(0) if self.statuses else 200
        content = self.files.get(request.path)
        if content is None:
            status = 404
        if status != 200:
            request.send_error(status)
            return
        start = 0
        # A range without a condition is given of whatever the file is now.
        same = request.headers.get("If-Range", self.etag) == self.etag
        if wanted and self.ranges and same:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                request.send_error(416)
                return
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            request.send_response(200)
        if self.etag:
            request.send_header("ETag", self.etag)
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        end = start + self.cuts.pop(0) if self.cuts else len(content)
        request.wfile.write(content[start:end])


@pytest.fixture
def server():
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                state.answer(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    state.base = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """An empty folder in place of the user's cache; no EXACTK_DATA."""
    monkeypatch.delenv("EXACTK_DATA", raising=False)
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path / "cache" / "exactk"


@dataclass(frozen=True)
class Small:
    X: np.ndarray
    y: np.ndarray
    entry: catalogue.Entry
    mat: bytes
    path: str


@pytest.fixture
def small(monkeypatch, tmp_path) -> Small:
    """A set of 30 × 8 in two classes, in the catalogue as 'small'; its source is Small-1.mat."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 8))
    y = np.arange(30) % 2
    file = tmp_path / "made" / "Small-1.mat"
    file.parent.mkdir()
    savemat(file, {"X": X, "Y": (y + 1).astype(float)[:, None]})
    entry = replace(
        catalogue.describe("coil20"),
        name="small",
        n=30,
        d=8,
        classes=2,
        repository="someone/some-data",
        commit="0" * 40,
        paths=("data/Small-1.mat",),
        checksum=checksum(X.astype(np.float32), y),
    )
    entries = {**catalogue._entries(), "small": entry}
    monkeypatch.setattr(catalogue, "_entries", lambda: entries)
    path = f"/someone/some-data/{'0' * 40}/data/Small-1.mat"
    return Small(X, y, entry, file.read_bytes(), path)
