"""`fetch`: the files of a data set from their public source to one checked file here."""

from __future__ import annotations

import contextlib
import email.message
import http.client
import os
import re
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exactk._version import __version__
from exactk.errors import ExactkError, InputError
from exactk.papers.datasets.builders import BUILDERS
from exactk.papers.datasets.catalogue import RAW, Dataset, Entry, describe
from exactk.papers.datasets.folders import find, target_folder
from exactk.papers.datasets.formats import Content
from exactk.papers.datasets.loading import load, standardise_dataset, where_to_get
from exactk.params import Integer, Number
from exactk.utils.atomic_write import replace_file

__all__ = [
    "FetchError",
    "Transfer",
    "download",
    "fetch",
]


CHUNK = 1 << 16
TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
FIRST_PAUSE = 0.5


class FetchError(ExactkError):
    """A file could not be downloaded; the message says why and how to get it otherwise."""


class _TransientError(Exception):
    """Something that may be gone at the next try."""


class _FinalError(Exception):
    """Something that another try will not change."""


def download(
    address: str,
    target: Path,
    *,
    timeout: float = 30.0,
    retries: int = 3,
    pause: float = FIRST_PAUSE,
    on_bytes: Callable[[int, int | None], None] | None = None,
) -> Path:
    """Download one file.

    Until it is whole it is called ``NAME.part``, with the server's ETag beside it in
    ``NAME.etag``; a later call goes on from there if the server says that the file is still the
    same, and begins anew if not.

    Parameters
    ----------
    address : str
    target : Path
        Where to put it; the folder must exist.
    timeout : float
        Seconds without a byte after which a try is given up.
    retries : int
        Further tries after a cut connection, a timeout or an error of the server.
    pause : float
        Seconds before the first further try; doubled each time.
    on_bytes : callable, optional
        Called with the bytes that are here and all bytes, None if the server does not say.

    Returns
    -------
    Path
        `target`.

    Raises
    ------
    FetchError
        With the reason as its message.
    """
    if not address.startswith(("https://", "http://")):
        raise FetchError(f"{address!r} is neither an https nor an http address")
    part = target.with_name(target.name + ".part")
    etag = target.with_name(target.name + ".etag")
    for attempt in range(retries + 1):
        try:
            _attempt(address, part, etag, timeout, on_bytes)
            break
        except _FinalError as error:
            raise FetchError(str(error)) from error.__cause__
        except _TransientError as error:
            if attempt == retries:
                tries = "1 try" if retries == 0 else f"{retries + 1} tries"
                raise FetchError(f"{error} (after {tries})") from error.__cause__
            time.sleep(pause * 2**attempt)
    part.replace(target)
    etag.unlink(missing_ok=True)
    return target


def _attempt(
    address: str,
    part: Path,
    etag: Path,
    timeout: float,
    on_bytes: Callable[[int, int | None], None] | None,
) -> None:
    headers = {"User-Agent": f"exactk/{__version__}"}
    have = part.stat().st_size if part.exists() else 0
    # Without a strong ETag nothing says that the rest would be of the same file.
    if have and etag.exists():
        headers |= {"Range": f"bytes={have}-", "If-Range": etag.read_text(encoding="ascii")}
    with _answer(urllib.request.Request(address, headers=headers), timeout) as answer:
        if answer.status == 416:
            part.unlink(missing_ok=True)
            raise _TransientError("the server has no rest of the partial file; it is begun anew")
        resumed = answer.status == 206
        if resumed and _range_start(answer.headers) != have:
            part.unlink(missing_ok=True)
            raise _TransientError("the server sent another range than asked for")
        if not resumed:
            have = 0
            _keep_etag(answer.headers.get("ETag"), etag)
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdigit() else None
        with part.open("ab" if resumed else "wb") as file:
            _copy(answer, file, have, total, on_bytes)


def _copy(
    answer: Any,
    file: IO[bytes],
    have: int,
    total: int | None,
    on_bytes: Callable[[int, int | None], None] | None,
) -> None:
    while True:
        if on_bytes is not None:
            on_bytes(have, total)
        try:
            chunk = answer.read(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _TransientError(_reason(error)) from error
        if not chunk:
            break
        file.write(chunk)
        have += len(chunk)
    if total is not None and have != total:
        raise _TransientError(f"the connection was cut after {have} of {total} bytes")


@contextlib.contextmanager
def _answer(request: urllib.request.Request, timeout: float) -> Iterator[Any]:
    """Open an address; what goes wrong is either worth another try or not."""
    try:
        answer = _opener().open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:
                yield error
                return
            kind = _TransientError if error.code in TRANSIENT else _FinalError
            raise kind(f"the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        cause = error.reason if isinstance(error.reason, BaseException) else error
        offline = isinstance(cause, (socket.gaierror, ssl.SSLCertVerificationError))
        raise (_FinalError if offline else _TransientError)(_reason(cause)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _TransientError(_reason(error)) from error
    with answer:
        yield answer


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follow a redirection, but never from https to something less safe."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise urllib.error.HTTPError(
                req.full_url,
                code,
                f"and a redirection to {newurl}, which is not https",
                headers,
                fp,
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_SecureRedirects)


def _keep_etag(value: str | None, etag: Path) -> None:
    if value and re.fullmatch(r'"[!#-~]*"', value):
        etag.write_text(value, encoding="ascii")
    else:
        etag.unlink(missing_ok=True)


def _range_start(headers: email.message.Message) -> int | None:
    found = re.match(r"bytes (\d+)-", headers.get("Content-Range", ""))
    return int(found[1]) if found else None


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    if isinstance(error, socket.gaierror):
        return "the name of the server cannot be resolved (no network?)"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())


class Transfer(NamedTuple):
    """How far a download is.

    Attributes
    ----------
    name : str
        Data set.
    file, files : int
        Number of the file under way, from 1, and how many there are.
    done, total : int, int or None
        Bytes of this file that are here, and all of them, if the server says.
    """

    name: str
    file: int
    files: int
    done: int
    total: int | None


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    force: bool = False,
    base: str | None = None,
    timeout: float = 30.0,
    retries: int = 3,
    pause: float = FIRST_PAUSE,
    on_progress: Callable[[Transfer], None] | None = None,
) -> Path:
    """Download a data set of the catalogue, check it, and keep it as NAME.npz.

    A download that was cut goes on where it stopped at the next call. Nothing takes the place
    of NAME.npz before its content has the checksum of the catalogue. Where none is known
    (lung, gli85), shape and class sizes alone are checked: `Entry.checked` says which.

    Parameters
    ----------
    name : str
    folder : path-like, optional
        Where to put it; by default the first folder of $EXACTK_DATA, or the cache folder if that
        is not set. It is made if it does not exist.
    force : bool
        Download although the set is here.
    base : str, optional
        Address of a mirror in place of raw.githubusercontent.com, followed by
        /OWNER/REPOSITORY/COMMIT/PATH; only this may be other than https.
    timeout : float
        Seconds without a byte before a try is given up.
    retries : int
        Further tries after a passing error.
    pause : float
        Seconds before the first further try; doubled each time.
    on_progress : callable, optional
        Called with a `Transfer` as bytes arrive.

    Returns
    -------
    Path
        The file: NAME.npz, or whatever form of the set was here before.

    Raises
    ------
    InputError
        The set is unknown, or cannot be fetched; or what came is not the set.
    FetchError
        The download failed; the message says what to download by hand and where to put it.

    Examples
    --------
    >>> fetch("wine")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: data set 'wine' is part of scikit-learn: there is nothing to fetch
    """
    entry = describe(name)
    _check_fetchable(entry, target_folder(folder))
    Number("(0, inf)")("timeout", timeout)
    Integer(0)("retries", retries)
    Number("[0, inf)")("pause", pause)
    place = target_folder(folder)
    # Before the search: a folder of $EXACTK_DATA that does not exist would end it.
    _make(place)
    if not force and (here := find(name, folder=folder)) is not None:
        load(name, folder=folder)
        return here
    temporary = place / f".fetch-{name}"
    _make(temporary)
    try:
        files = _download_all(
            entry, place, temporary, base or RAW, timeout, retries, pause, on_progress
        )
    finally:
        # A part of a file is worth keeping for the next try; an empty folder is not.
        if not any(file.stat().st_size for file in temporary.iterdir()):
            shutil.rmtree(temporary, ignore_errors=True)
    try:
        made = standardise_dataset(entry, Content(*BUILDERS[entry.build](files, entry)), files[0])
    except InputError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise InputError(
            f"what {entry.addresses(base or RAW)[0]} gave was not kept: {error}", parameter="name"
        ) from error
    path = _keep(made, place / f"{name}.npz")
    shutil.rmtree(temporary, ignore_errors=True)
    return path


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"folder {str(place)!r} cannot be written ({error.strerror})", parameter="folder",
            hint="choose another folder",
        ) from error  # fmt: skip


def _check_fetchable(entry: Entry, place: Path) -> None:
    if entry.origin != "file":
        what = "part of scikit-learn" if entry.origin == "scikit-learn" else "generated"
        raise InputError(
            f"data set {entry.name!r} is {what}: there is nothing to fetch", parameter="name"
        )
    if not entry.build:
        raise InputError(
            f"data set {entry.name!r} cannot be fetched by exactk", parameter="name",
            hint=f"{where_to_get(entry, place)}",
        )  # fmt: skip


def _download_all(
    entry: Entry,
    place: Path,
    temporary: Path,
    base: str,
    timeout: float,
    retries: int,
    pause: float,
    on_progress: Callable[[Transfer], None] | None,
) -> list[Path]:
    files = []
    addresses = entry.addresses(base)
    for number, address in enumerate(addresses, start=1):
        # Numbered, because the names of several files need not differ; the name is for errors.
        file = temporary / f"{number}-{Path(entry.paths[number - 1]).name}"

        def show(done: int, total: int | None, number: int = number) -> None:
            if on_progress is not None:
                on_progress(Transfer(entry.name, number, len(addresses), done, total))

        if not file.exists():
            try:
                download(
                    address, file, timeout=timeout, retries=retries, pause=pause, on_bytes=show
                )
            except FetchError as error:
                which = f" (file {number}: {address})" if len(addresses) > 1 else ""
                raise FetchError(
                    f"data set {entry.name!r} cannot be downloaded{which}: {error}; "
                    f"try again later, or {where_to_get(entry, place)}"
                ) from error
            except OSError as error:
                raise InputError(
                    f"{str(file)!r} cannot be written: {error.strerror or error}",
                    parameter="folder",
                ) from error
        files.append(file)
    return files


def _keep(data: Dataset, path: Path) -> Path:
    """Write a set in the smallest type that keeps its values."""
    try:
        with replace_file(path) as file:
            np.savez_compressed(file, X=_smallest(data.X), y=data.y.astype(np.int16))
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written: {error.strerror or error}", parameter="folder"
        ) from error
    return path


def _smallest(X: npt.NDArray[np.float64]) -> npt.NDArray[np.generic]:
    for kind in (np.uint8, np.int8, np.int16):
        limits = np.iinfo(kind)
        if X.min() >= limits.min and X.max() <= limits.max and (X == np.rint(X)).all():
            return X.astype(kind)
    return X.astype(np.float32)
