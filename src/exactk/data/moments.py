"""Moments: all that squared loss needs to know of a table, and they add.

Centred sums of squares and products of two parts of a table combine exactly (Chan, Golub and
LeVeque 1979), so blocks of a file, partitions of a cluster and folds of a cross-validation are
accumulated apart and merged. Nothing here subtracts large raw sums: an accumulator works about
a provisional centre taken from its first block.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactk.data.archive import labels_as_json, labels_from_json, read_archive, write_archive
from exactk.errors import InputError, join_items
from exactk.params import Integer
from exactk.types import Floats

__all__ = [
    "Margins",
    "Moments",
    "add_outer",
    "leave_one_out",
    "merged_classes",
]


# Matrices are looked through in strips of this size.
STRIP_BYTES = 16 * 2**20
# Of the files that `Moments.save` writes, and the arrays in them.
FILE_VERSION = 1
# by d features and c outputs.
ARRAYS = {"x_mean": "d", "y_mean": "c", "xx": "dd", "xy": "dc", "yy": "cc"}
# What rounding may leave of the squares of a mean that was taken off; and how far the two halves
# of a matrix may be apart besides, in units of the lengths of the columns.
CENTRING_LOSS = 1e-12
APART = 1e-6


@dataclass(frozen=True, eq=False)
class Margins:
    """Moments without the d × d matrix: what wide data can afford.

    Attributes
    ----------
    n_rows : int
        Rows of non-zero weight.
    weight : float
        Sum of the weights (the number of rows where there are none).
    x_mean, y_mean : ndarray
        Weighted means of the d features and c outputs.
    scatter : ndarray of shape (d,)
        Centred sums of squares, the diagonal of XᵀHX.
    xy : ndarray of shape (d, c)
        XᵀHY.
    yy : ndarray of shape (c, c)
        YᵀHY.
    """

    n_rows: int
    weight: float
    x_mean: Floats
    y_mean: Floats
    scatter: Floats
    xy: Floats
    yy: Floats


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, weight, means and centred products of a table.

    Attributes
    ----------
    n_rows, weight, x_mean, y_mean, xy, yy
        As in `Margins`.
    xx : ndarray of shape (d, d)
        The centred Gram matrix XᵀHX.
    feature_names : tuple of str or None
        Names of the columns, where the table had them.
    classes : ndarray or None
        Sorted labels of the outputs, where these are one-hot classes.
    target : str or None
        Name of the column that was predicted.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.array([[1.0], [2.0], [6.0]]), np.array([[0.0], [1.0], [2.0]])
    >>> whole = Moments.from_arrays(X, Y)
    >>> parts = Moments.from_arrays(X[:1], Y[:1]).merge(Moments.from_arrays(X[1:], Y[1:]))
    >>> whole.xx, parts.xx
    (array([[14.]]), array([[14.]]))
    """

    n_rows: int
    weight: float
    x_mean: Floats
    y_mean: Floats
    xx: Floats
    xy: Floats
    yy: Floats
    feature_names: tuple[str, ...] | None = None
    classes: npt.NDArray[Any] | None = None
    target: str | None = None

    def __repr__(self) -> str:
        """Return one line: size, target and classes."""
        kind = f"{len(self.y_mean)} {'outputs' if self.classes is None else 'classes'}"
        of = "" if self.target is None else f" of {self.target!r}"
        return f"Moments({self.n_rows} rows, {len(self.x_mean)} columns, {kind}{of})"

    @property
    def scatter(self) -> Floats:
        """Diagonal of `xx`."""
        diagonal: Floats = np.diagonal(self.xx)
        return diagonal

    def validate(self) -> Moments:
        """Return these moments in float64, or raise where no table can have them."""
        size = {"d": len(self.x_mean), "c": len(self.y_mean)}
        shapes = {name: tuple(size[one] for one in sizes) for name, sizes in ARRAYS.items()}
        arrays: dict[str, Any] = {
            name: np.asarray(getattr(self, name), dtype=np.float64) for name in shapes
        }
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise InputError(
                    f"moments: {name} has shape {arrays[name].shape}, not {shape}",
                    parameter="moments",
                )
            if not _all_finite(arrays[name]):
                raise InputError(f"moments: {name} holds NaN or infinity", parameter="moments")
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise InputError(
                f"moments: weight must be above 0, not {self.weight!r}", parameter="moments"
            )
        Integer(1)("moments: n_rows", self.n_rows)
        for name, held, wanted in (
            ("feature_names", self.feature_names, size["d"]),
            ("classes", self.classes, size["c"]),
        ):
            if held is not None and len(held) != wanted:
                raise InputError(
                    f"moments: {name} has {len(held)} entries, not {wanted}", parameter="moments"
                )
            if held is not None and len(set(held)) != wanted:
                raise InputError(
                    f"moments: {name} has an entry twice: {join_items(held)}", parameter="moments"
                )
        if self.classes is not None and not _is_sorted(self.classes):
            raise InputError(
                f"moments: classes are not sorted: {join_items(self.classes)}", parameter="moments"
            )
        kept = replace(self, n_rows=int(self.n_rows), weight=float(self.weight), **arrays)
        kept._check_products()
        return kept

    def _check_products(self) -> None:
        """Raise for products that no table has: squares below zero, or halves that differ."""
        with np.errstate(over="ignore", invalid="ignore"):
            lost = CENTRING_LOSS * (self.weight * self.x_mean**2 + self.scatter.max(initial=0.0))
            below = np.flatnonzero(self.scatter < -lost)
            if below.size:
                j = int(below[0])
                raise InputError(
                    f"moments: xx[{j}, {j}] is {self.scatter[j]:.6g}, and a sum of squares cannot "
                    f"be negative", parameter="moments",
                )  # fmt: skip
            room = np.sqrt(APART * np.maximum(self.scatter, 0.0) + lost)
            step = max(1, STRIP_BYTES // (8 * max(1, len(room))))
            for start in range(0, len(room), step):
                rows = slice(start, start + step)
                apart = np.abs(self.xx[rows, start:] - self.xx[start:, rows].T)
                if not apart.any():
                    continue
                far = np.argwhere(apart > np.outer(room[rows], room[start:]))
                if len(far):
                    i, j = (start + int(place) for place in far[0])
                    raise InputError(
                        f"moments: xx is not symmetric: [{i}, {j}] is {self.xx[i, j]:.6g} and "
                        f"[{j}, {i}] is {self.xx[j, i]:.6g}", parameter="moments",
                    )  # fmt: skip

    @classmethod
    def from_arrays(cls, X: Any, Y: Any, sample_weight: Any = None) -> Moments:
        """Moments of arrays in memory, without a second copy of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
        Y : array-like of shape (n,) or (n, c)
            Numbers; code classes first.
        sample_weight : array-like of shape (n,) or None

        Returns
        -------
        Moments
        """
        X, Y = np.asarray(X), np.asarray(Y, dtype=np.float64)
        Y = Y[:, None] if Y.ndim == 1 else Y
        if X.ndim != 2 or len(X) != len(Y):
            raise ValueError(f"X has shape {X.shape}, Y has {len(Y)} rows: need n × d and n rows")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        # Here and not above: the accumulator makes moments, and so stands on this module.
        from exactk.data.accumulate import MomentsAccumulator

        accumulator = MomentsAccumulator(X.shape[1], Y.shape[1])
        accumulator.add(X, Y, weights)
        return accumulator.finish()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write these moments to a file, whole or not at all: npz, checksummed, no pickle.

        What they tell of single rows is said in docs/scale.md: read it before giving them away.

        Examples
        --------
        >>> import tempfile
        >>> today = Moments.from_arrays([[1.0], [2.0], [6.0]], [0.0, 1.0, 2.0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     today.save(f"{folder}/today.npz")
        ...     Moments.load(f"{folder}/today.npz").xx
        array([[14.]])
        """
        kept = self.validate()
        facts = {
            "n_rows": int(kept.n_rows),
            "weight": kept.weight,
            "feature_names": None if kept.feature_names is None else list(kept.feature_names),
            "classes": None if kept.classes is None else labels_as_json(kept.classes),
            "target": kept.target,
        }
        write_archive(path, "moments", FILE_VERSION, facts, {n: getattr(kept, n) for n in ARRAYS})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Moments:
        """Read moments that `save` has written, on whatever machine; the checksum is checked."""
        header, arrays = read_archive(path, "moments", FILE_VERSION, ARRAYS)
        facts, names = header.facts, header.facts.get("feature_names")
        labels = facts.get("classes")
        try:
            return cls(
                n_rows=facts["n_rows"],
                weight=float(facts["weight"]),
                feature_names=None if names is None else tuple(map(str, names)),
                classes=None if labels is None else labels_from_json(labels),
                target=facts["target"],
                **arrays,
            ).validate()
        except (InputError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise InputError(
                f"{str(path)!r} holds no moments that can be used: {error}", parameter="path"
            ) from error

    def merge(self, other: Moments, *, overwrite: bool = False) -> Moments:
        """Moments of both tables together (Chan's update).

        Columns are matched by name where both have names, and classes that only one of the two
        has seen are added to the other.

        Parameters
        ----------
        other : Moments
            Not changed.
        overwrite : bool
            Add to this Gram matrix in place, which saves a third d × d matrix; these moments
            must not be used again. Otherwise they are not changed.

        Raises
        ------
        InputError
            Other columns, another target, or labels that do not go together.

        Examples
        --------
        >>> import numpy as np
        >>> north = Moments.from_arrays([[1.0], [2.0]], [[1.0], [1.0]])
        >>> south = Moments.from_arrays([[3.0], [5.0]], [[1.0], [1.0]])
        >>> north = replace(north, classes=np.array(["a"]))
        >>> south = replace(south, classes=np.array(["b"]))
        >>> north.merge(south).classes.tolist(), north.merge(south).y_mean.tolist()
        (['a', 'b'], [0.5, 0.5])
        """
        one, two = _same_names(self, other)
        weight = one.weight + two.weight
        share = two.weight / weight if weight > 0 else 0.0
        dx, dy = two.x_mean - one.x_mean, two.y_mean - one.y_mean
        pull = one.weight * share
        xx = np.add(one.xx, two.xx, out=one.xx if overwrite else None)
        add_outer(xx, dx, pull)
        return replace(
            one,
            n_rows=one.n_rows + two.n_rows,
            weight=weight,
            x_mean=one.x_mean + share * dx,
            y_mean=one.y_mean + share * dy,
            xx=xx,
            xy=one.xy + two.xy + pull * np.outer(dx, dy),
            yy=one.yy + two.yy + pull * np.outer(dy, dy),
        )

    def with_classes(self, classes: npt.NDArray[Any]) -> Moments:
        """Return the same with more classes, or in another order; those not seen have share 0."""
        assert self.classes is not None
        place = {label: j for j, label in enumerate(classes.tolist())}
        to = np.array([place[label] for label in self.classes.tolist()], dtype=np.intp)
        y_mean, xy = np.zeros(len(classes)), np.zeros((len(self.x_mean), len(classes)))
        yy = np.zeros((len(classes), len(classes)))
        y_mean[to], xy[:, to], yy[np.ix_(to, to)] = self.y_mean, self.xy, self.yy
        return replace(self, classes=classes, y_mean=y_mean, xy=xy, yy=yy)

    def with_columns(self, names: tuple[str, ...]) -> Moments:
        """Return the moments of some columns, in this order."""
        assert self.feature_names is not None
        place = {name: j for j, name in enumerate(self.feature_names)}
        unknown = [name for name in names if name not in place]
        if unknown:
            raise InputError(
                f"the moments have no column {join_items(unknown)}", parameter="columns"
            )
        to = np.array([place[name] for name in names], dtype=np.intp)
        return replace(
            self,
            feature_names=names,
            x_mean=self.x_mean[to],
            xy=self.xy[to],
            xx=self.xx[np.ix_(to, to)],
        )


def _is_sorted(labels: npt.NDArray[Any]) -> bool:
    try:
        held = labels.tolist()
        return bool(held == sorted(held))
    except TypeError:
        # Numbers beside text have no order.
        return False


def _all_finite(array: Floats) -> bool:
    """Whether all is finite, found without an array of truth values."""
    with np.errstate(invalid="ignore"):
        return not array.size or bool(np.isfinite([array.min(), array.max()]).all())


def _same_names(one: Moments, two: Moments) -> tuple[Moments, Moments]:
    """Both with the same columns and classes in the same order, or an error that says why not."""
    if one.target is not None and two.target is not None and one.target != two.target:
        raise InputError(
            f"moments of target {one.target!r} cannot merge with those of {two.target!r}",
            parameter="moments",
        )
    # What only one of them says holds for both.
    target = one.target if one.target is not None else two.target
    names = one.feature_names if one.feature_names is not None else two.feature_names
    if one.feature_names is None or two.feature_names is None:
        if len(one.x_mean) != len(two.x_mean):
            raise InputError(
                f"moments of {len(one.x_mean)} columns cannot merge with those of "
                f"{len(two.x_mean)}",
                parameter="moments",
            )
    elif one.feature_names != two.feature_names:
        first, second = set(one.feature_names), set(two.feature_names)
        if first != second:
            apart = sorted(first ^ second)
            raise InputError(
                "moments of different columns cannot merge", parameter="moments",
                hint=f"only one of the two has {join_items(apart)}",
            )  # fmt: skip
        two = two.with_columns(one.feature_names)
    one = replace(one, target=target, feature_names=names)
    if (one.classes is None) != (two.classes is None):
        raise InputError(
            "moments of classes cannot merge with moments of numbers", parameter="moments"
        )
    if one.classes is not None and two.classes is not None:
        classes = merged_classes(one.classes, two.classes)
        return one.with_classes(classes), two.with_classes(classes)
    if len(one.y_mean) != len(two.y_mean):
        raise InputError(
            f"moments of {len(one.y_mean)} outputs cannot merge with those of {len(two.y_mean)}",
            parameter="moments",
        )
    return one, two


def merged_classes(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels of both, sorted; NumPy would make strings of numbers without a word.

    Examples
    --------
    >>> merged_classes(np.array(["b", "c"]), np.array(["a", "c"])).tolist()
    ['a', 'b', 'c']
    """
    every = [*one.tolist(), *two.tolist()]
    # Of all and not of the distinct ones: to Python True and 1 are the same label.
    kinds = {_kind(label) for label in every}
    if len(kinds) > 1:
        raise InputError(
            f"labels of different kinds cannot be merged ({join_items(sorted(kinds))})",
            parameter="moments", hint="make them all strings or all numbers",
        )  # fmt: skip
    dtype = object if object in (one.dtype, two.dtype) else np.result_type(one, two)
    labels = sorted(set(every))
    merged = np.array(labels, dtype=dtype)
    if merged.tolist() != labels:
        raise InputError(
            f"labels of {one.dtype} and {two.dtype} cannot be told apart as {dtype}",
            parameter="moments",
        )
    return merged


def _kind(label: Any) -> str:
    if isinstance(label, bool):
        return "true or false"
    return "numbers" if isinstance(label, (int, float)) else "strings"


def leave_one_out(parts: list[Moments]) -> list[Moments]:
    """Moments of all parts but one, for each, by prefix and suffix merges.

    Parameters
    ----------
    parts : list of Moments
        At least two, the folds of a cross-validation for example.

    Returns
    -------
    list of Moments
        Item i is the merge of every part except ``parts[i]``: about 3K merges in all, no pass
        over rows.
    """
    if len(parts) < 2:
        raise ValueError(f"leave_one_out needs two parts or more, not {len(parts)}")
    suffixes = [parts[-1]]
    for part in parts[-2:0:-1]:
        suffixes.append(part.merge(suffixes[-1]))
    suffixes.reverse()
    rest, prefix = [suffixes[0]], parts[0]
    for i in range(1, len(parts) - 1):
        rest.append(prefix.merge(suffixes[i]))
        prefix = prefix.merge(parts[i])
    return [*rest, prefix]


def add_outer(matrix: Floats, vector: Floats, factor: float, step: int = 256) -> None:
    """``matrix += factor · vector vectorᵀ`` without a d × d temporary."""
    for start in range(0, len(vector), step):
        matrix[start : start + step] += factor * np.outer(vector[start : start + step], vector)
