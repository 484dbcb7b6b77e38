"""A selection saved as plain JSON, for production without exactk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactk._version import __version__
from exactk.errors import InputError
from exactk.export.builders import ChosenFeature, parts_of_problem, parts_of_selector
from exactk.export.schema import (
    FORMAT,
    VERSION,
    check_fields,
    levels_of,
    parse,
    path_name,
    read_text,
)
from exactk.export.transform import refuse_infinite_rows, take_features, take_numbers
from exactk.types import Floats
from exactk.utils.atomic_write import replace_text

if TYPE_CHECKING:
    from exactk.problem.problem import Problem
    from exactk.proof.results import Certificate
    from exactk.result import Result

__all__ = ["SavedSelection"]


_READ_BACK = {"int": int, "float": float, "bool": bool, "str": str, "text": str}


@dataclass(frozen=True)
class SavedSelection:
    """Which features were chosen and the linear fit on them, as plain values.

    Make one with ``TopKSelector.export()``, ``exactk select --export FILE`` or `from_problem`;
    `load` reads it back. The file is JSON that any program can read, and reading it executes
    nothing.

    Attributes
    ----------
    features : tuple of ChosenFeature
        In the order of the table.
    order : tuple of str
        Their names, the most useful first.
    n_features_in : int
        Columns of the table that was fitted.
    feature_names_in : tuple of str or None
        Their names, if it had any.
    task : {"classification", "regression"}
    target : str or None
        Name of the target, where it is known.
    classes : tuple or None
        Labels of the outputs: int, float, bool or str, as `class_kind` says.
    class_kind : {"int", "float", "bool", "str", "text"} or None
        "text" stands for labels of another kind, such as dates, by their text.
    k : int
        How many features, as they were counted.
    method, loss, status : str
    ridge, objective, total : float
        As in `Result`.
    proven : bool or None
        Whether they are proven to be the best; None where that was not tried.
    gap : float or None
        By how much the objective could fall at most, as a share.
    predicts : {"class", "number", "exp"} or None
        What the scores of the fit come to: the label with the largest one, themselves, or their
        exponential. None where they predict nothing.
    intercept : tuple of float
        One for each output.
    coef : tuple of tuple of float
        For each output one coefficient for each of `terms`, in the units of the table.
    exactk_version : str
        What has made it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from exactk import SavedSelection, TopKSelector
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> choice = TopKSelector(k=2).fit(X, y).export()
    >>> choice.names
    ('sepal width (cm)', 'petal width (cm)')
    >>> choice.select(X).shape, choice.predict(X[:2]).tolist()
    ((150, 2), [0, 0])
    >>> SavedSelection.from_json(choice.to_json()) == choice
    True
    """

    features: tuple[ChosenFeature, ...]
    order: tuple[str, ...]
    n_features_in: int
    feature_names_in: tuple[str, ...] | None = field(repr=False)
    task: str
    target: str | None
    classes: tuple[Any, ...] | None
    class_kind: str | None
    k: int
    method: str
    loss: str
    ridge: float
    objective: float
    total: float
    status: str
    proven: bool | None
    gap: float | None
    predicts: str | None
    intercept: tuple[float, ...] = field(repr=False)
    coef: tuple[tuple[float, ...], ...] = field(repr=False)
    exactk_version: str = __version__

    def __post_init__(self) -> None:
        """Check that the parts go together."""
        try:
            check_fields(self.to_dict())
        except (TypeError, AttributeError, ValueError) as error:
            raise InputError(f"this is no choice: {error}", parameter="values") from error

    @classmethod
    def from_problem(
        cls,
        problem: Problem,
        result: Result,
        certificate: Certificate | None = None,
        *,
        target: str | None = None,
    ) -> SavedSelection:
        """Freeze what was chosen in a problem.

        Parameters
        ----------
        problem : Problem
        result : Result
            A result of this problem.
        certificate : Certificate or None
            The proof of that result, if there is one.
        target : str or None
            What the target is called.

        Examples
        --------
        >>> import exactk
        >>> from sklearn.datasets import load_iris
        >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
        >>> exactk.SavedSelection.from_problem(problem, exactk.solve(problem, 2)).names
        ('x1', 'x3')
        """
        return cls(**parts_of_problem(problem, result, certificate, target))

    @classmethod
    def from_selector(cls, selector: Any) -> SavedSelection:
        """Make one from a fitted selector; see ``TopKSelector.export``."""
        return cls(**parts_of_selector(selector))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the table."""
        return tuple(feature.name for feature in self.features)

    @property
    def terms(self) -> tuple[tuple[str, str | None], ...]:
        """What each coefficient belongs to: a feature, and the level of a category or None."""
        return tuple(
            (feature.name, level)
            for feature in self.features
            for level in levels_of(feature.to_dict())
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, fit for JSON."""
        names, classes = self.feature_names_in, None
        if self.classes is not None:
            classes = {"kind": self.class_kind, "labels": list(self.classes)}
        terms = [
            {"feature": name, "level": level, "coef": list(numbers)}
            for (name, level), numbers in zip(self.terms, zip(*self.coef, strict=True), strict=True)
        ]
        same = (
            "exactk_version", "task", "target", "k", "method", "loss", "ridge", "objective",
            "total", "status", "proven", "gap", "n_features_in",
        )  # fmt: skip
        return {
            "format": FORMAT,
            "version": VERSION,
            **{name: getattr(self, name) for name in same},
            "feature_names_in": None if names is None else list(names),
            "features": [feature.to_dict() for feature in self.features],
            "order": list(self.order),
            "classes": classes,
            "predicts": self.predicts,
            "fit": {"intercept": list(self.intercept), "terms": terms},
        }

    def to_json(self, **options: Any) -> str:
        """Return the choice as JSON; options go to ``json.dumps``."""
        return json.dumps(self.to_dict(), **{"allow_nan": False, **options})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the choice to a file, whole or not at all.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        InputError
            The file cannot be written.
        """
        place = path_name(path)
        try:
            replace_text(place, self.to_json(indent=2, ensure_ascii=False) + "\n")
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            why = getattr(error, "strerror", None) or error
            raise InputError(
                f"choice {place!r} cannot be written: {why}", parameter="path",
                hint="give another place",
            ) from error  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SavedSelection:
        """Read what `to_dict` gave; raises an `InputError` that names what is wrong."""
        check_fields(values)
        names, classes, fit = values["feature_names_in"], values["classes"], values["fit"]
        kind = None if classes is None else classes["kind"]
        plain = (
            "exactk_version", "task", "target", "k", "method", "loss", "status", "proven",
            "n_features_in", "predicts",
        )  # fmt: skip
        same: dict[str, Any] = {name: values[name] for name in plain}
        return cls(
            **same,
            ridge=float(values["ridge"]),
            objective=float(values["objective"]),
            total=float(values["total"]),
            gap=None if values["gap"] is None else float(values["gap"]),
            feature_names_in=None if names is None else tuple(names),
            features=tuple(
                ChosenFeature(
                    one["name"],
                    one["index"],
                    None if one["levels"] is None else tuple(one["levels"]),
                    one["reference"],
                )
                for one in values["features"]
            ),
            order=tuple(values["order"]),
            class_kind=kind,
            classes=None if kind is None else tuple(map(_READ_BACK[kind], classes["labels"])),
            intercept=tuple(map(float, fit["intercept"])),
            coef=tuple(
                tuple(float(term["coef"][i]) for term in fit["terms"])
                for i in range(len(fit["intercept"]))
            ),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> SavedSelection:
        """Read what `to_json` wrote, as text or as its bytes in UTF-8."""
        return cls.from_dict(parse(text))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedSelection:
        """Read a file that `save` or ``exactk select --export`` wrote; nothing is executed."""
        place = path_name(path)
        try:
            return cls.from_json(read_text(place))
        except InputError as error:
            raise InputError(
                f"choice {place!r} cannot be read: {error}", parameter="path"
            ) from error

    def column_transformer(self) -> Any:
        """Return an unfitted scikit-learn transformer that keeps the features and drops the rest.

        It takes columns by name if the table that was fitted had names, else by position. Nothing
        of exactk is in it: pickled or dumped by joblib it loads where exactk is not installed.

        Returns
        -------
        sklearn.compose.ColumnTransformer
        """
        from sklearn.compose import ColumnTransformer

        named = self.feature_names_in is not None
        columns = [feature.name if named else feature.index for feature in self.features]
        return ColumnTransformer(
            [("chosen", "passthrough", columns)], remainder="drop", verbose_feature_names_out=False
        )

    def select(self, table: Any) -> Any:
        """Return the chosen columns of a table, in the order of `features`.

        Parameters
        ----------
        table : pandas or polars frame, Arrow table, Dask collection, array or sparse matrix
            Columns of a frame are taken by name, and others need not be there; those of an array
            by position, and all must be there.

        Returns
        -------
        A table of the same kind

        Raises
        ------
        InputError
            Columns are missing, by name.
        """
        return take_features(self, table)

    def scores(self, table: Any) -> Floats:
        """Return the linear fit on each row, one column for each output.

        Parameters
        ----------
        table : pandas or polars frame, Arrow table, array or sparse matrix
            As in `select`; a frame where text or categories were chosen.

        Returns
        -------
        ndarray of shape (n, n_outputs)

        Raises
        ------
        InputError
            A score is too large for a number, by its row.
        """
        values = take_numbers(self, table)
        # What is too large is named below, by its row.
        with np.errstate(over="ignore", invalid="ignore"):
            fitted: Floats = np.asarray(values @ np.array(self.coef).T) + np.array(self.intercept)
        refuse_infinite_rows(fitted, "the score", values)
        return fitted

    def check_predicts(self) -> None:
        """Raise where the fit does not predict the target."""
        if self.predicts is None:
            raise InputError(
                f"the linear fit of loss {self.loss!r} on this target does not predict it"
                + (
                    "; export a TopKClassifier, whose fit is that of the discriminants"
                    if self.classes is not None
                    else " (it has several labels a row)"
                )
                + ", or fit a model on select(table)", parameter="method",
            )  # fmt: skip

    def predict(self, table: Any) -> npt.NDArray[Any]:
        """Return the prediction of the linear fit for each row.

        Parameters
        ----------
        table
            As in `scores`.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs) where the target had several columns
            Labels of classes; numbers; for a Poisson loss their mean, exp of the score.

        Raises
        ------
        InputError
            The fit does not predict: `predicts` is None. Or a prediction is too large for a
            number, by its row.
        """
        self.check_predicts()
        scores = self.scores(table)
        if self.classes is not None:
            return self.label_array()[np.argmax(scores, axis=1)]
        if self.predicts == "exp":
            with np.errstate(over="ignore"):
                means = np.exp(scores)
            refuse_infinite_rows(means, "exp of the score", scores)
            scores = means
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def label_array(self) -> npt.NDArray[Any]:
        """Return `classes` as an array."""
        labels = np.array(self.classes)
        if self.class_kind == "int" and labels.dtype.kind == "f":
            # NumPy takes small and large whole numbers together for fractions.
            return np.array(self.classes, dtype=np.uint64)
        return labels
