"""The file of arrays: what is read is what was written, to the bit, or an error."""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exactk
import exactk.data.archive
from exactk.data.archive import (
    labels_as_json,
    labels_from_json,
    read_archive,
    read_header,
    write_archive,
)
from exactk.errors import InputError

Array = np.ndarray[Any, Any]
# The arrays of `small`, and which of their sizes are the same.
SUMS = {"x": "d", "xx": "dd"}


def bits(array: Array) -> list[int]:
    return np.ascontiguousarray(array).view(np.int64).ravel().tolist()


def square(n: int, seed: int = 0) -> Array:
    half = np.random.default_rng(seed).normal(size=(n, n))
    return half + half.T


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.npz"
    arrays = {"xx": square(3), "x": np.arange(3.0)}
    write_archive(path, "sums", 2, {"name": "é\n", "weight": 0.1}, arrays)
    return path


def rewrite(path: Path, **changes: Any) -> Path:
    """The same file with another header (checksum made anew) or other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    members |= changes.pop("members", {})
    checksum = header.pop("checksum")
    header |= changes
    digest = hashlib.blake2b(digest_size=32)
    for name in sorted(members):
        if name != "header.json":
            digest.update(members[name])
    digest.update(json.dumps(header, sort_keys=True, indent=1).encode())
    assert changes or digest.hexdigest() == checksum
    members["header.json"] = json.dumps(header | {"checksum": digest.hexdigest()}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("strip", [8, 100, 2**22])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_strips_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strip: int, n: int
) -> None:
    monkeypatch.setattr(exactk.data.archive, "STRIP_BYTES", strip)
    rng = np.random.default_rng(n)
    arrays = {
        "symmetric": square(n),
        "fortran": np.asfortranarray(square(n, 1)),
        "wide": rng.normal(size=(n, 3)),
        "turned": rng.normal(size=(3, n)).T,
        "odd": rng.normal(size=(n, n)),
        "line": rng.normal(size=n)[::-1],
    }
    path = tmp_path / "a.npz"
    write_archive(path, "sums", 1, {}, arrays)
    sizes = {"symmetric": "nn", "fortran": "nn", "wide": "nm", "turned": "nm", "odd": "nn"}
    _, back = read_archive(path, "sums", 1, {**sizes, "line": "n"})
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        assert back[name].shape == array.shape
        assert bits(back[name]) == bits(array), name


def test_numpy_reads_it_and_a_symmetric_matrix_is_half(small: Path) -> None:
    with np.load(small, allow_pickle=False) as held:
        np.testing.assert_array_equal(held["x"], np.arange(3.0))
        np.testing.assert_array_equal(held["xx"], square(3)[np.triu_indices(3)])
        assert held["xx"].flags.writeable
        header = json.loads(held["header.json"])
    assert header["format"] == "exactk sums"
    assert header["version"] == 2
    assert header["exactk"] == exactk.__version__


def test_the_last_bit_of_symmetry_counts(tmp_path: Path) -> None:
    for change in (np.nextafter(1.0, 2.0), -0.0):
        matrix = np.array([[1.0, 1.0], [1.0, 1.0]]) if change > 0 else np.zeros((2, 2))
        matrix[1, 0] = change
        write_archive(tmp_path / "a.npz", "sums", 1, {}, {"m": matrix})
        header, back = read_archive(tmp_path / "a.npz", "sums", 1, {"m": "dd"})
        assert not header.arrays["m"][1]
        assert bits(back["m"]) == bits(matrix)


def test_extreme_numbers(tmp_path: Path) -> None:
    line = np.array([0.0, -0.0, 5e-324, -1.7976931348623157e308, 1 / 3])
    arrays = {"line": line, "twice": np.array([line, line])}
    write_archive(tmp_path / "a.npz", "s", 1, {}, arrays)
    back = read_archive(tmp_path / "a.npz", "s", 1, {"line": "d", "twice": "cd"})[1]
    assert {name: bits(array) for name, array in back.items()} == {
        name: bits(array) for name, array in arrays.items()
    }


def test_the_same_content_makes_the_same_bytes(small: Path, tmp_path: Path) -> None:
    header, arrays = read_archive(small, "sums", 2, SUMS)
    write_archive(tmp_path / "again.npz", "sums", 2, header.facts, arrays)
    assert (tmp_path / "again.npz").read_bytes() == small.read_bytes()
    assert read_header(small, "sums", 2) == header
    assert header.facts == {"name": "é\n", "weight": 0.1}


@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_every_byte_that_changes_is_noticed_or_does_not_matter(small: Path, mask: int) -> None:
    whole = small.read_bytes()
    header, arrays = read_archive(small, "sums", 2, SUMS)
    noticed = 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= mask
        small.write_bytes(changed)
        try:
            other, found = read_archive(small, "sums", 2, SUMS)
        except InputError:
            noticed += 1
            continue
        assert other == header, place
        assert {name: bits(array) for name, array in found.items()} == {
            name: bits(array) for name, array in arrays.items()
        }, place
    # What may change unseen: dates, attributes and sizes that zip keeps twice.
    assert noticed > 0.8 * len(whole)


def test_every_length_that_is_too_short(small: Path) -> None:
    whole = small.read_bytes()
    for length in range(len(whole)):
        small.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"is empty|is no file|damaged or was cut short"):
            read_archive(small, "sums", 2, SUMS)
    for start in range(1, 200):
        small.write_bytes(whole[start:])
        with pytest.raises(InputError):
            read_archive(small, "sums", 2, SUMS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, r"version 3 .* exactk 9\.9; .* up to version 2: install a later"),
        ({"version": "2"}, r"version 2 of the format"),
        ({"format": "exactk sum"}, "holds 'exactk sum', not exactk sums"),
        ({"arrays": {}}, "damaged"),
        ({"arrays": {"xx": {"shape": [3, 3], "half": True}}}, "damaged .*it holds"),
        ({"arrays": []}, "damaged"),
        ({"facts": 5}, "damaged"),
    ],
)
def test_headers_that_do_not_fit(small: Path, changes: dict[str, Any], message: str) -> None:
    rewrite(small, exactk="9.9", **changes)
    with pytest.raises(InputError, match=f"^'{re.escape(str(small))}' .*{message}"):
        read_archive(small, "sums", 2, SUMS)


@pytest.mark.parametrize(
    ("shape", "half"),
    [
        ([3, 4], True),
        ([4, 4], True),
        ([3, 3], False),
        ([6], True),
        ([3, 1, 2], False),
        ([-3, -3], True),
        ([10**9, 10**9], True),
        ([], True),
        (["a"], False),
    ],
)
def test_shapes_that_do_not_fit(small: Path, shape: list[Any], half: bool) -> None:
    rewrite(small)
    read_archive(small, "sums", 2, SUMS)
    arrays = {"xx": {"shape": shape, "half": half}, "x": {"shape": [3], "half": False}}
    rewrite(small, arrays=arrays)
    with pytest.raises(InputError, match="damaged"):
        read_archive(small, "sums", 2, SUMS)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": [0], "xx": [10**17, 0]}, r"xx has shape .*, not d × d with d = 0"),
        ({"x": [10**17, 0], "xx": [0, 0]}, r"x has shape \(100000000000000000, 0\), not d"),
        ({"x": [0], "xx": [1, 0]}, r"xx has shape \(1, 0\), not d × d with d = 0"),
    ],
)
def test_sizes_that_do_not_go_together_without_a_number(
    tmp_path: Path, shapes: dict[str, list[int]], message: str
) -> None:
    """Shapes of no bytes, whose rows would be counted for hours."""
    path = tmp_path / "a.npz"
    write_archive(
        path, "sums", 1, {}, {name: np.zeros((0,) * len(s)) for name, s in shapes.items()}
    )
    members = {f"{n}.npy": exactk.data.archive._npy_header(tuple(s)) for n, s in shapes.items()}
    rewrite(
        path,
        members=members,
        arrays={name: {"shape": shape, "half": False} for name, shape in shapes.items()},
    )
    with pytest.raises(InputError, match=f"holds no sums that can be used: {message}"):
        read_archive(path, "sums", 1, SUMS)


def test_an_array_without_a_number_has_no_strips() -> None:
    assert list(exactk.data.archive._steps((10**17, 0))) == []


def test_arrays_are_known_before_one_is_read(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise AssertionError("an array was read")

    monkeypatch.setattr(exactk.data.archive, "_read", fail)
    for sizes in ({"x": "d"}, {**SUMS, "y": "d"}, {"x": "d", "yy": "dd"}):
        with pytest.raises(InputError, match="its arrays are 'x', 'xx'"):
            read_archive(small, "sums", 2, sizes)
    with pytest.raises(InputError, match=r"xx has shape \(3, 3\), not d × d × d with d = 3"):
        read_archive(small, "sums", 2, {"x": "d", "xx": "ddd"})


def test_entries_that_lie_over_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", bytes(5000))
        twin = copy.copy(archive.getinfo("a.npy"))
        twin.filename = "b.npy"
        archive.filelist.append(twin)
    with pytest.raises(InputError, match="its parts are longer than the file"):
        read_archive(path, "sums", 1, {"a": "d", "b": "d"})


def test_an_array_of_another_kind_with_a_true_checksum(small: Path) -> None:
    with zipfile.ZipFile(small) as archive:
        line = archive.read("x.npy")
    rewrite(small, members={"x.npy": line.replace(b"<f8", b"<i8")}, exactk="1")
    with pytest.raises(InputError, match="'x' is not an array of the shape"):
        read_archive(small, "sums", 2, SUMS)


def test_other_files_are_distinguished(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content, message in ((b"", "is empty"), (b"a,b\n1,2\n", "is no file of exactk sums")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_archive(path, "sums", 1, SUMS)
    with path.open("wb") as file:
        np.savez(file, a=np.ones(2))
    with pytest.raises(InputError, match="is another archive, not exactk sums"):
        read_archive(path, "sums", 1, SUMS)
    with path.open("wb") as file:
        np.savez_compressed(file, a=np.ones(2))
    with pytest.raises(InputError, match="compressed or encrypted"):
        read_archive(path, "sums", 1, SUMS)
    with pytest.raises(InputError, match="does not exist"):
        read_archive(tmp_path / "none", "sums", 1, SUMS)
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_archive(tmp_path, "sums", 1, SUMS)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("after", [0, 3])
def test_a_write_that_fails_leaves_the_old_file(
    small: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, after: int
) -> None:
    before = small.read_bytes()
    count = 0

    def strips(array: Array, half: bool) -> Any:
        nonlocal count
        for part in kept(array, half):
            count += 1
            if count > after:
                raise error
            yield part

    kept = exactk.data.archive._bytes_of
    monkeypatch.setattr(exactk.data.archive, "_bytes_of", strips)
    with pytest.raises((InputError, KeyboardInterrupt)) as caught:
        write_archive(small, "sums", 2, {}, {name: np.ones((3, 3)) for name in "abc"})
    if isinstance(error, OSError):
        assert "cannot be written: No space left; nothing was kept" in str(caught.value)
    else:
        assert caught.value is error
    assert small.read_bytes() == before
    assert os.listdir(small.parent) == [small.name]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        write_archive(tmp_path / "no" / "a.npz", "sums", 1, {}, {})


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["b", "ä\n\"'\\", "", "\U0001f333", "\ud800", "a\0b"]),
        np.array(["oak", "yew"], dtype=object),
        np.array(["oak", "yew"], dtype="U40"),
        np.array([-(2**63), 0, 2**63 - 1]),
        np.array([0, 2**64 - 1], dtype=np.uint64),
        np.array([3, 1], dtype=np.int8),
        np.array([3, 1], dtype=">i4"),
        np.array([0.1, 1e300, -0.0, 5e-324]),
        np.array([0.1, 2.5], dtype=np.float32),
        np.array([False, True]),
        np.array([0, 2.5, True, "text"], dtype=object),
        np.array([np.int64(3), np.float64(0.1), np.str_("s"), np.bool_(True)], dtype=object),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_keep_kind_and_dtype(labels: Array) -> None:
    back = labels_from_json(json.loads(json.dumps(labels_as_json(labels), allow_nan=False)))
    # Text takes the room that it needs, whatever was stated.
    assert back.dtype == (
        np.array(labels.tolist()).dtype if labels.dtype.kind == "U" else labels.dtype
    )
    plain = [value.item() if isinstance(value, np.generic) else value for value in labels.tolist()]
    assert back.tolist() == plain
    assert [type(label) for label in back.tolist()] == [type(label) for label in plain]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([b"a"]),
        np.array(["2024-01-01"], dtype="M8[D]"),
        np.array([None], dtype=object),
        np.array([(1,)], dtype="i4,"),
        np.array([1 + 2j]),
        np.array([np.nan, 1.0]),
        np.array([np.inf], dtype=object),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_that_cannot_be_saved(labels: Array) -> None:
    with pytest.raises(InputError, match="cannot be saved: classes must be"):
        labels_as_json(labels)


def test_the_stated_length_of_text_is_not_believed() -> None:
    labels = labels_from_json({"dtype": "<U50000000", "labels": ["oak", "yew"]})
    assert labels.nbytes == 2 * 3 * 4


@pytest.mark.parametrize(
    "content",
    [
        ("|O", [None]),
        ("|O", [[1]]),
        ("<M8[D]", [1]),
        ("|S1", []),
        ("<i8", [1.5]),
        ("<i8", [2**64]),
        ("|i1", [1, 999]),
        ("|b1", [0, 1]),
        ("<f4", [0.1]),
        ("<f8", ["a"]),
        ("<U3", ["oak\0"]),
        ("<U3", [1, 2]),
    ],
)
def test_labels_that_cannot_be_read(content: tuple[str, list[Any]]) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        labels_from_json({"dtype": content[0], "labels": content[1]})
