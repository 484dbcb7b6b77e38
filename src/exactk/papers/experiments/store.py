"""Where records go: one JSON object a line, each on the disk before the next cell begins.

A run may be killed at any moment. A line is written whole and forced to the disk, so what a kill
can leave behind is one torn last line; it is dropped, and its cell runs again. The lock on the file
belongs to the process and dies with it.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from exactk.errors import InputError
from exactk.papers.experiments.schema import find_fault, missing_fields

__all__ = ["SCHEMA", "Store", "to_jsonable"]

logger = logging.getLogger(__name__)

Record = dict[str, Any]

SCHEMA = 1
TYPES = ("recipe", "cell")
OPENING = b'{"type":'
# Windows locks bytes, and nobody can then read them: so it is one far behind every record.
LOCKED_BYTE = 2**31 - 2


class Store:
    """Records of a benchmark in a file of JSON lines.

    Parameters
    ----------
    path : str or path
        The file; it is made, with its folder, when the first record is written.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(Path(folder.name) / "records.jsonl")
    >>> with store.writing():
    ...     store.append({"type": "cell", "key": "a", "status": "done", "seconds": float("nan")})
    >>> Store(store.path).records()
    [{'type': 'cell', 'key': 'a', 'status': 'done', 'seconds': None}]
    >>> store.done_keys()
    {'a'}
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file: BinaryIO | None = None

    def records(self) -> list[Record]:
        """Return the last record of every cell and the last definition of every recipe.

        A cell has several records if failed ones were tried again. A line that is being written,
        or that a kill has torn, is not there yet.
        """
        latest: dict[tuple[str, str], Record] = {}
        for record in self._lines(self._read())[0]:
            name = record.get("key") if record["type"] == "cell" else record.get("name")
            # The place of a record is where its last version stands.
            latest.pop((record["type"], str(name)), None)
            latest[record["type"], str(name)] = record
        return list(latest.values())

    def done_keys(self, *, retry_failed: bool = False) -> set[str]:
        """Return the keys of the cells that need not run.

        Parameters
        ----------
        retry_failed : bool
            Leave out those that failed or passed their time limit.
        """
        return {
            record["key"]
            for record in self.records()
            if record["type"] == "cell" and (not retry_failed or record.get("status") == "done")
        }

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """Hold the file for one run: lock it, mend its end, and let records be appended.

        Raises
        ------
        InputError
            If another run writes there, if the file cannot be written, or if it is not a store.
        """
        self._check_kind()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("a+b")
        except OSError as error:
            raise InputError(
                f"the store {str(self.path)!r} cannot be written: {error.strerror}",
                parameter="store", hint="give another place with --store",
            ) from error  # fmt: skip
        with file:
            if not _lock(file):
                raise InputError(
                    f"another run is writing to the store {str(self.path)!r}", parameter="store",
                    hint="wait for its end, or give another place with --store",
                )  # fmt: skip
            self._repair_tail(file)
            self._file = file
            try:
                yield self
            finally:
                self._file = None

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record and wait until it is on the disk; what is not finite becomes null."""
        if self._file is None:
            raise RuntimeError("append needs the store to be held: with store.writing():")
        content = to_jsonable(record)
        line = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        if not line.encode().startswith(OPENING):
            raise ValueError("a record starts with its type")
        if wrong := find_fault(content):
            # Not written, for a store with it could not be read any more.
            raise InputError(f"a {content['type']} cannot be recorded: {wrong}", parameter="store")
        self._check_place(self._file)
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise InputError(
                f"the store {str(self.path)!r} cannot be written any more: {error.strerror}",
                parameter="store",
                hint="what is recorded is kept, and the same command goes on from there",
            ) from error

    def _check_place(self, file: BinaryIO) -> None:
        """Raise if the file that is held is not the one of this name any more.

        Records would go into a file that nobody can open: better to stop after one cell than to
        find nothing at the end.
        """
        try:
            same = os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except OSError:
            same = False
        if not same:
            raise InputError(
                f"the store {str(self.path)!r} was moved, replaced or deleted during the run, "
                "which stops here", parameter="store",
                hint="put it back, and the same command goes on from there",
            )  # fmt: skip

    def _check_kind(self) -> None:
        # A device or a pipe may never come to an end.
        if self.path.exists() and not self.path.is_file():
            raise InputError(
                f"the store {str(self.path)!r} is not a file", parameter="store",
                hint="give another place",
            )  # fmt: skip

    def _read(self) -> bytes:
        try:
            self._check_kind()
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise InputError(
                f"the store {str(self.path)!r} cannot be read: {error.strerror}", parameter="store"
            ) from error

    def _lines(self, content: bytes) -> tuple[list[Record], int]:
        """Return the records, and how many bytes of the file they take."""
        *lines, last = content.split(b"\n")
        records = [self._record(line, number) for number, line in enumerate(lines, start=1)]
        size = len(content) - len(last)
        if last:
            try:
                # Only the line break was lost: an object that ends is whole.
                records.append(self._record(last, len(lines) + 1))
                size = len(content)
            except InputError:
                # A write that broke off; anything else is not ours to throw away.
                start = last[: len(OPENING)].rstrip(b"\0")
                if not OPENING.startswith(start):
                    raise
        return records, size

    def _record(self, line: bytes, number: int) -> Record:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or record.get("type") not in TYPES:
            what = (
                "the file is not a store of exactk papers run; give another place"
                if number == 1
                else "delete this line, and its cell runs again"
            )
            raise InputError(
                f"the store {str(self.path)!r} holds no record in line {number} "
                f"({line[:40].decode(errors='replace')!r}): {what}", parameter="store",
            )  # fmt: skip
        if record["type"] == "cell" and not isinstance(record.get("key"), str):
            raise InputError(
                f"the record in line {number} of the store {str(self.path)!r} has no key: delete "
                f"this line, and its cell runs again", parameter="store",
            )  # fmt: skip
        schema = record.get("schema", SCHEMA)
        if isinstance(schema, int) and schema > SCHEMA:
            raise InputError(
                f"the store {str(self.path)!r} was written by a newer exactk (schema {schema} in "
                f"line {number}, known here: {SCHEMA})", parameter="store",
                hint="update exactk, or give another place with --store",
            )  # fmt: skip
        wrong = find_fault(record) if schema == SCHEMA else f"schema is {schema!r}"
        if record["type"] == "recipe" and not wrong and (lacks := missing_fields(record)):
            wrong = f"it has no {lacks[0]}"
        if wrong:
            raise InputError(
                f"the record in line {number} of the store {str(self.path)!r} is damaged "
                f"({wrong}): delete this line, and its cell runs again", parameter="store",
            )  # fmt: skip
        return record

    def _repair_tail(self, file: BinaryIO) -> None:
        """Cut off a torn last line, or end one that lost its line break."""
        file.seek(0)
        content = file.read()
        _, size = self._lines(content)
        if size < len(content):
            logger.warning(
                "%s: the last line was cut short when a run was killed; it is dropped and its cell "
                "runs again",
                self.path,
            )
            file.truncate(size)
        elif content and not content.endswith(b"\n"):
            file.write(b"\n")
        file.flush()
        os.fsync(file.fileno())


def to_jsonable(value: Any) -> Any:
    """Return a value as JSON can hold it: NumPy made plain, null for what is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> to_jsonable({"support": np.array([1, 2]), "objective": np.float64("inf"), "ok": np.True_})
    {'support': [1, 2], 'objective': None, 'ok': True}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): to_jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


if sys.platform == "win32":

    def _lock(file: BinaryIO) -> bool:
        import msvcrt

        file.seek(LOCKED_BYTE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _lock(file: BinaryIO) -> bool:
        import fcntl

        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
