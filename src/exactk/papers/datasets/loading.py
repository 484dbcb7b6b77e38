"""`load`: a name in, a checked table out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.errors import InputError, did_you_mean
from exactk.papers.datasets.builders import BUILDERS
from exactk.papers.datasets.catalogue import Dataset, Entry, checksum, dataset_names, describe
from exactk.papers.datasets.folders import SUFFIXES, folders, locate, names, target_folder
from exactk.papers.datasets.formats import Content, check_arrays, read_any
from exactk.papers.datasets.synthetic import make_genes, make_outliers, make_planted

__all__ = [
    "code_labels",
    "has_classes",
    "load",
    "load_local",
    "missing_message",
    "standardise_dataset",
    "where_to_get",
]

SYNTHETIC: dict[str, Callable[[], Dataset]] = {
    "gsrfs-synthetic-0": lambda: make_outliers(outliers=0.0),
    "gsrfs-synthetic-1": lambda: make_outliers(outliers=0.01),
    "gsrfs-synthetic-10": lambda: make_outliers(outliers=0.1),
    "planted": make_planted,
    "genes": make_genes,
}


def load(
    name: str, *, folder: str | os.PathLike[str] | None = None, verify: bool = True
) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        A name of the catalogue, see `names`; or any other NAME for which there is a file
        NAME.npz (arrays X and y), NAME.mat, NAME.csv or NAME.parquet (target in the column
        "y", or else the last one): a set is added by dropping a file. Its target is taken for
        classes or numbers as `exactk.TopKSelector` takes it, and whole numbers of which most
        are rare for numbers.
    folder : path-like, optional
        Where the file is; by default the folders of $EXACTK_DATA and then the cache folder, see
        `folders`.
    verify : bool
        Whether the content must be that of the catalogue.

    Returns
    -------
    Dataset
        A set of the catalogue that is read from a file has values rounded to float32, so that
        all forms of the file give the same numbers.

    Raises
    ------
    InputError
        No such set; its file is not here, cannot be read, or holds something else; or
        $EXACTK_DATA names a folder that does not exist, and the set is no built-in one.

    Examples
    --------
    >>> data = load("digits")
    >>> data.X.shape, data.n_classes
    ((1797, 64), 10)
    >>> load("iris").classes
    ('setosa', 'versicolor', 'virginica')
    """
    entry = describe(name) if name in dataset_names() else None
    if entry is not None and entry.origin == "synthetic":
        return replace(SYNTHETIC[name](), name=name)
    if entry is not None and entry.origin == "scikit-learn":
        return _from_sklearn(entry)
    located = locate(name, folder)
    if located is None:
        raise InputError(missing_message(name, folder), parameter="name")
    path = located.files[0]
    if entry is None:
        return load_local(name, path)
    if located.raw:
        content = Content(*BUILDERS[entry.build](located.files, entry))
    else:
        content = read_any(path, (entry.n, entry.d))
    return standardise_dataset(entry, content, path, verify=verify)


def standardise_dataset(
    entry: Entry, content: Content, path: Path, *, verify: bool = True
) -> Dataset:
    """Bring the content of a file to the form of the catalogue, and check that it is that."""
    X, y = check_arrays(content.X, content.y, path)
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(X, dtype=np.float32)
    X, _ = check_arrays(rounded, y, path)
    codes = code_labels(y)
    found = checksum(X, codes)
    if verify:
        _check_content(entry, X, codes, found, path)
    return Dataset(
        entry.name,
        X.astype(np.float64),
        codes,
        entry.task,
        found,
        feature_names=content.columns,
        classes=_label_names(y, content),
    )


def _check_content(
    entry: Entry, X: npt.NDArray[Any], y: npt.NDArray[Any], found: str, path: Path
) -> None:
    """Raise unless a table is the one that the catalogue describes."""
    classes, counts = np.unique(y, return_counts=True)
    what = ""
    if X.shape != (entry.n, entry.d) or len(classes) != entry.classes:
        what = (
            f"{X.shape[0]} x {X.shape[1]} with {len(classes)} classes, not {entry.n} x {entry.d} "
            f"with {entry.classes}"
        )
    elif entry.counts and tuple(sorted(map(int, counts), reverse=True)) != entry.counts:
        what = f"classes of {sorted(map(int, counts), reverse=True)}, not {list(entry.counts)}"
    elif entry.checksum and found != entry.checksum:
        what = f"a checksum of {found}, not {entry.checksum}"
    if what:
        raise InputError(
            f"{str(path)!r} is not the data set {entry.name!r}: it has {what}",
            parameter="name",
            hint=(
                "delete it and run "
                f"'exactk papers datasets fetch {entry.name}', or use it as it is with "
                f"load({entry.name!r}, verify=False)"
            ),
        )


def code_labels(y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Labels as 0, 1, … in the order of their values."""
    if y.ndim != 1:
        raise InputError(f"labels must be one a row, y has shape {y.shape}", parameter="y")
    return np.unique(y, return_inverse=True)[1].astype(np.int64)


def _label_names(y: npt.NDArray[Any], content: Content) -> tuple[str, ...] | None:
    """Names of the labels in the order of `code_labels`; None for the numbers of arrays.

    A table is written for readers, and what its labels are called is meant; an array of
    numbers says no more than which rows are alike.
    """
    if content.columns is None and y.dtype.kind not in "UO":
        return None
    return tuple(
        f"{label:g}" if isinstance(label, float) else str(label) for label in np.unique(y).tolist()
    )


def where_to_get(entry: Entry, folder: Path) -> str:
    """Say which file to download by hand, and where to put it."""
    addresses = entry.addresses()
    files = addresses[0] if len(addresses) == 1 else f"{addresses[0]} … {addresses[-1]}"
    if len(addresses) <= 5:
        files = " and ".join(addresses)
    if not entry.build:
        return f"download {files}; {entry.how}; put the file into {str(folder)!r}"
    if len(addresses) > 5:
        return f"download {files} into the same paths below {str(folder)!r}"
    return f"download {files} and put it into {str(folder)!r}"


def missing_message(name: str, folder: str | os.PathLike[str] | None = None) -> str:
    """Say that a set is not in the folders, and how it could come there."""
    entry = describe(name) if name in dataset_names() else None
    looked = " or ".join(repr(str(place)) for place in folders(folder))
    if entry is None:
        endings = ", ".join(SUFFIXES)
        hint = did_you_mean(name, names(own=True, folder=folder))
        return (
            f"no data set named {name!r}{f'{hint} See' if hint else '; see'} 'exactk papers "
            f"datasets list', or put a file {name} with one of {endings} into {looked}"
        )
    by_hand = where_to_get(entry, target_folder(folder))
    fetch = f"run 'exactk papers datasets fetch {name}', or " if entry.build else ""
    return f"data set {name!r} is not in {looked}; {fetch}{by_hand}"


def _from_sklearn(entry: Entry) -> Dataset:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{entry.name}")()
    X = np.ascontiguousarray(bunch.data, dtype=np.float64)
    columns = tuple(map(str, bunch.feature_names))
    if entry.task == "regression":
        y = np.asarray(bunch.target, dtype=np.float64)
        return Dataset(entry.name, X, y, entry.task, checksum(X, y), feature_names=columns)
    labels = code_labels(bunch.target)
    return Dataset(
        entry.name,
        X,
        labels,
        entry.task,
        checksum(X, labels),
        feature_names=columns,
        classes=tuple(map(str, bunch.target_names)),
    )


def load_local(name: str, path: Path) -> Dataset:
    """Read a set that is not in the catalogue; what its target is goes by its values."""
    content = read_any(path)
    X, y = check_arrays(content.X, content.y, path)
    X = np.ascontiguousarray(X, dtype=np.float64)
    try:
        classes = has_classes(y)
    except InputError as error:
        # Its hint names a parameter that `load` does not have.
        flaw = InputError(error.message, parameter="path")
        raise InputError(f"{str(path)!r}: {flaw}", parameter="path") from error
    if classes:
        codes = code_labels(y)
        return Dataset(
            name,
            X,
            codes,
            "classification",
            checksum(X, codes),
            feature_names=content.columns,
            classes=_label_names(y, content),
        )
    y = y.astype(np.float64)
    return Dataset(name, X, y, "regression", checksum(X, y), feature_names=content.columns)


def has_classes(y: npt.NDArray[Any]) -> bool:
    """Guess as the selector does; where it refuses to guess, numbers are amounts."""
    from exactk.data.targets import MANY_CLASSES, encode_target

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return encode_target(y).codes is not None
        except InputError:
            if y.dtype.kind in "iuf" and len(np.unique(y)) > MANY_CLASSES:
                return False
            raise
