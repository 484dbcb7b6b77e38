"""Taking the chosen columns of a table, and making the numbers of them that a fit needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from exactk.data.categories import Category
from exactk.data.frames import encode_like, frame_to_array, is_frame, take_columns
from exactk.data.open_table import is_dask
from exactk.data.targets import first_word
from exactk.errors import InputError, did_you_mean, join_items

if TYPE_CHECKING:
    from exactk.export.saved_selection import SavedSelection

__all__ = ["find_positions", "refuse_infinite_rows", "take_features", "take_numbers"]


def find_positions(
    choice: SavedSelection, names: Sequence[Any] | None, width: int, what: str = "the table"
) -> list[int]:
    """Return where the features stand in a table with these names, or of this width.

    Parameters
    ----------
    names : sequence or None
        Names of the columns, if they have any. Columns that were not chosen need not be there.
    width : int
    what : str
        The table, for messages.
    """
    if names is None or choice.feature_names_in is None:
        if width != choice.n_features_in:
            raise InputError(
                f"{what} has {width} columns, and the choice was made among "
                f"{choice.n_features_in} by position; give all of them in the same order"
                + (", or a frame with names" if choice.feature_names_in is not None else ""),
                parameter="table",
            )
        return [feature.index for feature in choice.features]
    known = [str(name) for name in names]
    repeated = [name for name, count in Counter(known).items() if count > 1]
    if repeated:
        raise InputError(
            f"{what} has more than one column named {join_items(repeated)}", parameter="table"
        )
    place = {name: at for at, name in enumerate(known)}
    missing = [name for name in choice.names if name not in place]
    if missing:
        raise InputError(
            f"{what} lacks {len(missing)} of the {len(choice.names)} chosen columns: "
            f"{join_items(missing)}{did_you_mean(missing[0], known)}", parameter="table",
        )  # fmt: skip
    return [place[name] for name in choice.names]


def take_features(choice: SavedSelection, table: Any) -> Any:
    """Return the chosen columns of a table, as a table of the same kind."""
    X = table
    if is_dask(X):
        if not hasattr(type(X), "columns"):
            return X[:, find_positions(choice, None, X.shape[1])]
        return X[[X.columns[j] for j in find_positions(choice, list(X.columns), len(X.columns))]]
    if is_frame(X):
        names = list(X.column_names if hasattr(X, "column_names") else X.columns)
        return take_columns(X, find_positions(choice, names, len(names)))
    if not sparse.issparse(X):
        try:
            X = np.asarray(X)
        except ValueError as error:
            raise InputError(
                f"table is not a rectangular array: {error}", parameter="table"
            ) from error
    elif X.format not in ("csr", "csc"):
        X = X.tocsr()
    if X.ndim != 2:
        raise InputError(
            f"table must be a frame, or an array of rows and columns, not "
            f"{type(table).__name__} of shape {X.shape}", parameter="table",
        )  # fmt: skip
    return X[:, find_positions(choice, None, X.shape[1])]


def take_numbers(choice: SavedSelection, table: Any) -> Any:
    """Return the columns that the coefficients belong to, as float64; a sparse matrix stays so."""
    if is_dask(table):
        raise InputError(
            "predictions of a Dask collection are made part by part: "
            "X.map_blocks(choice.predict) or X.map_partitions(choice.predict)", parameter="table",
        )  # fmt: skip
    coding = {
        at: Category(one.name, one.index, 0, one.levels, str(one.reference))
        for at, one in enumerate(choice.features)
        if one.levels is not None
    }
    taken = take_features(choice, table)
    if is_frame(taken):
        values = encode_like(taken, coding) if coding else frame_to_array(taken)[0]
    elif coding:
        names = join_items(choice.features[at].name for at in coding)
        raise InputError(
            f"text or categories were chosen ({names}): table must be a frame", parameter="table"
        )
    else:
        values = taken
    if values.dtype.kind not in "fiubO":
        raise InputError(
            f"the chosen columns must hold numbers, not {values.dtype}", parameter="table"
        )
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the selected columns have {first_word(values)!r}, which is not a number",
            parameter="table",
        ) from error
    _refuse_infinite(choice, values)
    return values


def _refuse_infinite(choice: SavedSelection, values: Any) -> None:
    """Raise for the first value that is no finite number, by its column and row."""
    stored = values.data if sparse.issparse(values) else values
    if np.isfinite(stored).all():
        return
    if sparse.issparse(values):
        values = values.toarray()
    row, column = map(int, np.argwhere(~np.isfinite(values))[0])
    raise InputError(
        f"column {choice.terms[column][0]!r} is NaN or infinite in row {row}", parameter="table",
        hint="fill it in, or drop that row",
    )  # fmt: skip


def refuse_infinite_rows(made: Any, what: str, of: Any) -> None:
    """Raise for the first row in which what was made of finite numbers is none.

    Parameters
    ----------
    made : ndarray of shape (n, c)
    what : str
        What it is, for the message.
    of : array or sparse matrix of shape (n, m)
        The numbers it was made of.
    """
    bad = ~np.isfinite(made).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        largest = abs(of[row : row + 1]).max()
        raise InputError(
            f"{what} of row {row} is too large for a number, made of values up to {largest:.3g}",
            parameter="table",
            hint="are they in the units of the table that was fitted? Correct them, or drop that "
            "row",
        )
