"""Arrays in a file that another machine can trust: versioned, checksummed, without pickle.

The file is what NumPy calls npz, a zip of ``NAME.npy``, all float64 and not compressed, beside a
``header.json``. The header says what the file holds (format and its version, sizes, and the facts
of whoever writes it) and ends in a BLAKE2b checksum over itself and every byte of the arrays. A
symmetric matrix is kept as its upper half, row by row, which ``numpy.triu_indices`` unfolds. What
is read is either what was written or an `InputError`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from exactk._version import __version__
from exactk.errors import InputError, join_items
from exactk.types import Floats
from exactk.utils.atomic_write import replace_file

__all__ = [
    "Header",
    "labels_as_json",
    "labels_from_json",
    "read_archive",
    "read_header",
    "write_archive",
]


HEADER = "header.json"
# Arrays are hashed, written and read in strips of about this size.
STRIP_BYTES = 4 * 2**20
GIVE = "give a file that exactk has saved"
# What Python's zipfile and json raise where bytes are not what they should be.
DAMAGE = (
    zipfile.BadZipFile,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)


@dataclass(frozen=True)
class Header:
    """What a file says of itself.

    Attributes
    ----------
    version : int
        Of the format.
    writer : str
        Version of exactk that wrote it.
    facts : dict
        As given to `write_archive`.
    arrays : dict of str to (shape, bool)
        The shape of each array, and whether it is kept as its upper half.
    checksum : str
        Hexadecimal.
    """

    version: int
    writer: str
    facts: dict[str, Any]
    arrays: dict[str, tuple[tuple[int, ...], bool]]
    checksum: str


def write_archive(
    path: str | os.PathLike[str],
    form: str,
    version: int,
    facts: Mapping[str, Any],
    arrays: Mapping[str, Floats],
) -> None:
    """Write arrays and facts to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Replaced if it exists.
    form : str
        What the file holds, in words: ``"moments"``.
    version : int
        Of the form.
    facts : mapping
        Whatever JSON can hold.
    arrays : mapping of str to ndarray
        Float64, of one or two dimensions.

    Raises
    ------
    InputError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.npz")
    ...     write_archive(path, "squares", 1, {"of": "table"}, {"A": np.eye(2)})
    ...     header, arrays = read_archive(path, "squares", 1, {"A": "nn"})
    >>> header.facts, arrays["A"].tolist()
    ({'of': 'table'}, [[1.0, 0.0], [0.0, 1.0]])
    """
    digest = hashlib.blake2b(digest_size=32)
    layout = {name: (array.shape, _is_symmetric(array)) for name, array in arrays.items()}
    header = {
        "format": f"exactk {form}",
        "version": version,
        "exactk": __version__,
        "facts": dict(facts),
        "arrays": {name: {"shape": shape, "half": half} for name, (shape, half) in layout.items()},
    }
    try:
        with replace_file(path) as file, zipfile.ZipFile(file, "w") as archive:
            for name, array in sorted(arrays.items()):
                # An entry without a date: the same arrays make the same bytes.
                entry = zipfile.ZipInfo(f"{name}.npy")
                with archive.open(entry, "w", force_zip64=True) as member:
                    for part in _bytes_of(array, layout[name][1]):
                        digest.update(part)
                        member.write(part)
            digest.update(_as_text(header))
            entry = zipfile.ZipInfo(HEADER)
            archive.writestr(entry, _as_text({**header, "checksum": digest.hexdigest()}))
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written: {error.strerror or error}", parameter="path",
            hint="nothing was kept of it",
        ) from error  # fmt: skip


def read_header(path: str | os.PathLike[str], form: str, version: int) -> Header:
    """Return what a file says of itself; its arrays are not looked at.

    Parameters
    ----------
    path : path-like
    form, version
        What is expected, and the last version that is understood.

    Raises
    ------
    InputError
        If it is another file, damaged, or written by a later version.
    """
    with _opened(path, form) as archive:
        return _header(archive, path, form, version)[0]


def read_archive(
    path: str | os.PathLike[str], form: str, version: int, sizes: Mapping[str, str]
) -> tuple[Header, dict[str, Floats]]:
    """Return what `write_archive` has written, checked against its checksum.

    Parameters
    ----------
    path : path-like
    form, version
        As in `read_header`.
    sizes : mapping of str to str
        The arrays that must be there, each with a letter for every dimension; the same letter
        stands for the same size, so that ``{"mean": "d", "products": "dd"}`` go together.

    Returns
    -------
    Header
    dict of str to ndarray
        In C order.

    Raises
    ------
    InputError
        If it is another file, damaged, or written by a later version.
    """
    with _opened(path, form) as archive:
        header, text = _header(archive, path, form, version)
        wanted = {HEADER, *(f"{name}.npy" for name in header.arrays)}
        if sorted(archive.namelist()) != sorted(wanted):
            raise ValueError(f"it holds {join_items(sorted(archive.namelist()))}")
        for name, (shape, half) in header.arrays.items():
            _check_length(archive, name, shape, half)
        _check_sizes(header, f"{str(path)!r} holds no {form} that can be used", sizes)
        digest = hashlib.blake2b(digest_size=32)
        arrays = {
            name: _read(archive, name, shape, half, digest)
            for name, (shape, half) in sorted(header.arrays.items())
        }
        digest.update(text)
        if digest.hexdigest() != header.checksum:
            raise ValueError("its checksum is not that of its content")
        return header, arrays


@contextmanager
def _opened(path: str | os.PathLike[str], form: str) -> Iterator[zipfile.ZipFile]:
    """Open a file to read; whatever is wrong with it becomes one kind of error."""
    name = repr(str(path))
    try:
        with Path(path).open("rb") as file:
            start = file.read(4)
            if start != b"PK\x03\x04":
                what = "is empty" if not start else f"is no file of exactk {form}"
                raise InputError(f"{name} {what}: {GIVE}", parameter="path")
            with zipfile.ZipFile(file) as archive:
                _check_entries(archive, os.fstat(file.fileno()).st_size)
                yield archive
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"file {name} does not exist", parameter="path") from error
    except OSError as error:
        raise InputError(
            f"{name} cannot be read: {error.strerror or error}", parameter="path"
        ) from error
    except DAMAGE as error:
        raise InputError(
            f"{name} is damaged or was cut short ({' '.join(str(error).split())})",
            parameter="path", hint="copy it again, or make it anew",
        ) from error  # fmt: skip


def _check_entries(archive: zipfile.ZipFile, size: int) -> None:
    """Raise before anything is read or allocated that a true file does not have."""
    for entry in archive.infolist():
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 0x1:
            raise ValueError(f"{entry.filename!r} is compressed or encrypted")
        if entry.file_size > size or entry.compress_size != entry.file_size:
            raise ValueError(f"{entry.filename!r} is longer than the file")
    # Entries that lie over each other would make more numbers than there are bytes.
    if sum(entry.file_size for entry in archive.infolist()) > size:
        raise ValueError("its parts are longer than the file")


def _check_sizes(header: Header, refusal: str, sizes: Mapping[str, str]) -> None:
    """Raise before any array is read unless all are there, and of sizes that go together."""
    if set(sizes) != set(header.arrays):
        held, wanted = join_items(sorted(header.arrays), 9), join_items(sorted(sizes), 9)
        raise InputError(f"{refusal}: its arrays are {held}, not {wanted}", parameter="path")
    known: dict[str, int] = {}
    for array, letters in sizes.items():
        shape = header.arrays[array][0]
        fits = len(shape) == len(letters) and all(
            known.setdefault(letter, size) == size
            for letter, size in zip(letters, shape, strict=True)
        )
        if not fits:
            others = ", ".join(f"{letter} = {size}" for letter, size in known.items())
            raise InputError(
                f"{refusal}: {array} has shape {shape}, not {' × '.join(letters)} with {others}",
                parameter="path",
            )


def _header(
    archive: zipfile.ZipFile, path: str | os.PathLike[str], form: str, version: int
) -> tuple[Header, bytes]:
    """The header, and the text of it that the checksum is taken of."""
    name = repr(str(path))
    if HEADER not in archive.namelist():
        raise InputError(f"{name} is another archive, not exactk {form}: {GIVE}", parameter="path")
    content = json.loads(archive.read(HEADER))
    if content["format"] != f"exactk {form}":
        raise InputError(
            f"{name} holds {content['format']!r}, not exactk {form}: {GIVE}", parameter="path"
        )
    written = content["version"]
    if not isinstance(written, int) or written > version:
        raise InputError(
            f"{name} is in version {written} of the format, written by exactk "
            f"{content.get('exactk')}",
            parameter="path",
            hint=(
                f"this is exactk {__version__}, which reads up to version "
                f"{version}: install a later one"
            ),
        )
    checksum = content.pop("checksum")
    arrays = {
        array: (tuple(int(size) for size in entry["shape"]), bool(entry["half"]))
        for array, entry in content["arrays"].items()
    }
    header = Header(written, str(content["exactk"]), dict(content["facts"]), arrays, str(checksum))
    return header, _as_text(content)


def _as_text(content: Mapping[str, Any]) -> bytes:
    """JSON in the one form that the checksum is taken of: ASCII, keys sorted."""
    return json.dumps(content, sort_keys=True, indent=1, allow_nan=False).encode("ascii")


def _npy_header(length: tuple[int, ...]) -> bytes:
    """The head of an npy file, version 1.0, as NumPy describes it: the same in all its releases."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {length!r}, }}"
    padded = text.ljust(-(-(len(text) + 11) // 64) * 64 - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode("ascii")


def _kept_shape(shape: tuple[int, ...], half: bool) -> tuple[int, ...]:
    return (shape[0] * (shape[0] + 1) // 2,) if half else shape


def _steps(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Rows of the strips of an array; an array without a number in it has no strips."""
    if not math.prod(shape):
        return
    step = max(1, STRIP_BYTES // (8 * max(1, math.prod(shape[1:]))))
    for start in range(0, shape[0], step):
        yield start, min(start + step, shape[0])


def _bytes_of(array: Floats, half: bool) -> Iterator[bytes]:
    yield _npy_header(_kept_shape(array.shape, half))
    if half and array.flags.f_contiguous:
        # The same numbers, in the order in which they lie.
        array = array.T
    for start, stop in _steps(array.shape):
        rows = [array[i, i:] for i in range(start, stop)] if half else [array[start:stop].ravel()]
        yield np.concatenate(rows).astype("<f8", copy=False).tobytes()


def _is_symmetric(array: Floats) -> bool:
    """Whether a matrix is its transpose to the last bit, which keeps the sign of a zero."""
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        return False
    for start, stop in _steps(array.shape):
        across = np.ascontiguousarray(array[start:stop, start:])
        down = np.ascontiguousarray(array[start:, start:stop].T)
        if (across.view(np.int64) != down.view(np.int64)).any():
            return False
    return True


def _check_length(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], half: bool) -> None:
    """Raise where an entry has not as many bytes as its shape says."""
    if len(shape) not in (1, 2) or min(shape) < 0 or (half and len(set(shape)) > 1):
        raise ValueError(f"{name!r} cannot have the shape {shape}")
    kept = _kept_shape(shape, half)
    n_bytes = len(_npy_header(kept)) + 8 * math.prod(kept)
    if archive.getinfo(f"{name}.npy").file_size != n_bytes:
        raise ValueError(f"{name!r} has not the {' × '.join(map(str, shape))} numbers it should")


def _read(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], half: bool, digest: hashlib.blake2b
) -> Floats:
    """One array, unfolded; what was read goes into the digest."""
    head = _npy_header(_kept_shape(shape, half))
    out = np.empty(shape)
    with archive.open(f"{name}.npy") as member:
        if _take(member, len(head), digest) != head:
            raise ValueError(f"{name!r} is not an array of the shape {shape}")
        for start, stop in _steps(shape):
            if half:
                _unfold(out, start, stop, member, digest)
            else:
                part = _take(member, 8 * out[start:stop].size, digest)
                out[start:stop] = np.frombuffer(part, "<f8").reshape(out[start:stop].shape)
    return out


def _unfold(out: Floats, start: int, stop: int, member: IO[bytes], digest: hashlib.blake2b) -> None:
    """Read some rows of the upper half of a matrix into both halves."""
    n = len(out)
    length = (stop - start) * n - (stop * (stop - 1) - start * (start - 1)) // 2
    part = np.frombuffer(_take(member, 8 * length, digest), "<f8")
    at = 0
    for i in range(start, stop):
        out[i, i:] = part[at : at + n - i]
        at += n - i
    out[stop:, start:stop] = out[start:stop, stop:].T
    block = out[start:stop, start:stop]
    below = np.tril_indices(len(block), -1)
    block[below] = block.T[below]


def _take(member: IO[bytes], n_bytes: int, digest: hashlib.blake2b) -> bytes:
    part = member.read(n_bytes)
    if len(part) != n_bytes:
        raise EOFError("it ends early")
    digest.update(part)
    return part


def labels_as_json(labels: npt.NDArray[Any]) -> dict[str, Any]:
    """Return class labels as JSON can hold them, with their dtype.

    Raises
    ------
    InputError
        For labels that are neither text nor numbers nor true and false.

    Examples
    --------
    >>> labels_as_json(np.array([True, False]))
    {'dtype': '|b1', 'labels': [True, False]}
    """
    values = [value.item() if isinstance(value, np.generic) else value for value in labels.tolist()]
    odd = [value for value in values if not isinstance(value, (str, int, float))]
    odd += [value for value in values if isinstance(value, float) and not math.isfinite(value)]
    if odd:
        raise InputError(
            f"the label {odd[0]!r} cannot be saved: classes must be strings, numbers, or true and "
            f"false", parameter="classes",
        )  # fmt: skip
    return {"dtype": labels.dtype.str, "labels": values}


def labels_from_json(content: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return class labels as they were, kind and dtype; text takes the room that it needs.

    Examples
    --------
    >>> labels_from_json({"dtype": "<U4", "labels": ["oak", "yew"]})
    array(['oak', 'yew'], dtype='<U3')
    """
    dtype = np.dtype(str(content["dtype"]))
    labels = list(content["labels"])
    simple = all(isinstance(label, (str, int, float)) for label in labels)
    refusal = f"classes of dtype {dtype} with {join_items(labels)} cannot be read"
    if dtype.kind not in "OUiufb" or not simple:
        raise InputError(refusal, parameter="path")
    try:
        # The length of text that a file states may be anything, and each label would take it.
        out = np.array(labels, dtype=str if dtype.kind == "U" else dtype)
    except (OverflowError, ValueError) as error:
        raise InputError(refusal, parameter="path") from error
    if [(type(label), label) for label in out.tolist()] != [(type(x), x) for x in labels]:
        raise InputError(refusal, parameter="path")
    return out
