"""`fetch`: the files of a data set from their public source to one checked file here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exactk.atomic import replace_file
from exactk.checks import Number, Whole
from exactk.datasets.builders import BUILDERS
from exactk.datasets.catalogue import RAW, Entry, describe
from exactk.datasets.download import FIRST_PAUSE, FetchError, download
from exactk.datasets.folders import find, target_folder
from exactk.datasets.formats import Content
from exactk.datasets.loading import catalogued, load, where_to_get
from exactk.datasets.model import Dataset
from exactk.errors import InputError

__all__ = ["FetchError", "Transfer", "fetch"]


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
    Whole(0)("retries", retries)
    Number("[0, inf)")("pause", pause)
    place = target_folder(folder)
    # Before the search: a folder of $EXACTK_DATA that does not exist would end it.
    _make(place)
    if not force and (here := find(name, folder=folder)) is not None:
        load(name, folder=folder)
        return here
    workshop = place / f".fetch-{name}"
    _make(workshop)
    try:
        files = _download_all(
            entry, place, workshop, base or RAW, timeout, retries, pause, on_progress
        )
    finally:
        # A part of a file is worth keeping for the next try; an empty folder is not.
        if not any(file.stat().st_size for file in workshop.iterdir()):
            shutil.rmtree(workshop, ignore_errors=True)
    try:
        made = catalogued(entry, Content(*BUILDERS[entry.build](files, entry)), files[0])
    except InputError as error:
        shutil.rmtree(workshop, ignore_errors=True)
        raise InputError(
            f"what {entry.addresses(base or RAW)[0]} gave was not kept: {error}"
        ) from error
    path = _keep(made, place / f"{name}.npz")
    shutil.rmtree(workshop, ignore_errors=True)
    return path


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"folder {str(place)!r} cannot be written ({error.strerror}); choose another folder"
        ) from error


def _check_fetchable(entry: Entry, place: Path) -> None:
    if entry.origin != "file":
        what = "part of scikit-learn" if entry.origin == "scikit-learn" else "generated"
        raise InputError(f"data set {entry.name!r} is {what}: there is nothing to fetch")
    if not entry.build:
        raise InputError(
            f"data set {entry.name!r} cannot be fetched by exactk; {where_to_get(entry, place)}"
        )


def _download_all(
    entry: Entry,
    place: Path,
    workshop: Path,
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
        file = workshop / f"{number}-{Path(entry.paths[number - 1]).name}"

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
                    f"{str(file)!r} cannot be written: {error.strerror or error}"
                ) from error
        files.append(file)
    return files


def _keep(data: Dataset, path: Path) -> Path:
    """Write a set in the smallest type that keeps its values."""
    try:
        with replace_file(path) as file:
            np.savez_compressed(file, X=_smallest(data.X), y=data.y.astype(np.int16))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error
    return path


def _smallest(X: npt.NDArray[np.float64]) -> npt.NDArray[np.generic]:
    for kind in (np.uint8, np.int8, np.int16):
        limits = np.iinfo(kind)
        if X.min() >= limits.min and X.max() <= limits.max and (X == np.rint(X)).all():
            return X.astype(kind)
    return X.astype(np.float32)
