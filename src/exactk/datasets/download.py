"""One file over HTTP: resumed where it was cut, and retried where that may help."""

from __future__ import annotations

import contextlib
import email.message
import http.client
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from exactk._version import __version__
from exactk.errors import ExactkError

__all__ = ["FetchError", "download"]

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


class _SameSafety(urllib.request.HTTPRedirectHandler):
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
    return urllib.request.build_opener(_SameSafety)


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
