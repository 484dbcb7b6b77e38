"""Output is there whole or not at all, whatever happens while it is written."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from exactk.errors import InputError
from exactk.papers.experiments.page.html import write_page
from exactk.utils.atomic_write import replace_file, replace_text

ERRORS = [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError("x")]
IDS = ["full", "ctrl-c", "bug"]


def left(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("old", [None, b"old"], ids=["new", "replaced"])
@pytest.mark.parametrize("error", ERRORS, ids=IDS)
def test_a_failure_in_the_middle(tmp_path: Path, old: bytes | None, error: BaseException) -> None:
    place = tmp_path / "out"
    if old is not None:
        place.write_bytes(old)
    before = left(tmp_path)

    def write_half() -> None:
        with replace_file(place) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert left(tmp_path) == before


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", ERRORS[:2], ids=IDS[:2])
def test_a_failure_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    def fail(*args: Any) -> None:
        raise error

    place = tmp_path / "out"
    place.write_bytes(b"old")
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(error)):
        replace_text(place, "new")
    assert left(tmp_path) == {"out": b"old"}


def test_the_kernel_refuses_the_rest(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    code = (
        "import resource, sys\n"
        "from exactk.utils.atomic_write import replace_text\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999))\n"
        "try: replace_text(sys.argv[1], 'x' * 100_000)\n"
        "except OSError as error: print(error.errno)"
    )
    place = tmp_path / "out"
    run = [sys.executable, "-c", code, str(place)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == f"{errno.EFBIG}\n"
    assert left(tmp_path) == {}


def test_readers_see_the_old_or_the_new(tmp_path: Path) -> None:
    place = tmp_path / "out"
    texts = ["a" * 50_000, "b" * 90_000]
    replace_text(place, texts[0])
    stop, seen = threading.Event(), set()

    def read() -> None:
        while not stop.is_set():
            seen.add(place.read_text())

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for i in range(100):
        replace_text(place, texts[i % 2])
    stop.set()
    for reader in readers:
        reader.join()
    assert seen <= set(texts)
    assert left(tmp_path) == {"out": texts[1].encode()}


def test_a_link_keeps_its_place(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "out")
    for text in ("one", "two"):
        replace_text(link, text)
        assert link.is_symlink()
        assert left(tmp_path / "real") == {"out": text.encode()}


def test_modes_are_those_of_the_old_file_or_of_any_new_one(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    replace_text(tmp_path / "new", "")
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode
    plain.chmod(0o640)
    replace_text(plain, "more")
    assert stat.S_IMODE(plain.stat().st_mode) == 0o640


def test_devices_are_written_to_and_not_replaced() -> None:
    null = Path(os.devnull)
    replace_text(null, "gone")
    assert null.exists()
    assert not null.is_file()
    full = Path("/dev/full")
    if full.exists():
        with pytest.raises(OSError, match="No space"):
            replace_text(full, "no")


def test_places_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        replace_text(tmp_path, "")
    with pytest.raises(FileNotFoundError):
        replace_text(tmp_path / "absent" / "out", "")
    assert left(tmp_path) == {}


def test_the_page_of_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise ERRORS[0]

    place = tmp_path / "report.html"
    place.write_text("old")
    monkeypatch.setattr("exactk.papers.experiments.page.html.page", lambda records, title: "new")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(InputError, match="cannot be written: No space left on device"):
            write_page([], place)
    assert left(tmp_path) == {"report.html": b"old"}
    write_page([], place)
    assert left(tmp_path) == {"report.html": b"new"}


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    place = tmp_path / ("n" * 255)
    replace_text(place, "é\r\n")
    assert place.read_bytes() == b"\xc3\xa9\r\n"


@pytest.mark.parametrize("place", ["no/such/folder/out.txt", "file/out.txt"])
def test_an_error_names_the_file_that_was_requested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(OSError, match=r"out\.txt") as caught:
        replace_text(place, "text")
    assert caught.value.filename == place
    assert ".part" not in str(caught.value)


def test_an_error_of_another_file_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, replace_file(tmp_path / "out"):
        (tmp_path / "other").read_bytes()
    assert caught.value.filename == str(tmp_path / "other")
