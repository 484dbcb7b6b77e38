"""The file of an exported selection: plain JSON, every field checked, nothing executed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from reprlib import Repr
from typing import Any, NoReturn

from exactk.errors import InputError, join_items
from exactk.params import (
    Anything,
    Boolean,
    Check,
    Choice,
    Dictionary,
    Integer,
    ListOf,
    Number,
    String,
)
from exactk.result import Status

__all__ = ["FORMAT", "VERSION", "check_fields", "levels_of", "parse", "path_name", "read_text"]

FORMAT = "exactk-choice"
VERSION = 1

# The names of a million columns take a tenth of it.
MOST_BYTES = 2**28
# Characters of a value that a message shows.
SHOWN = 60

_SHORTLY = Repr()
_SHORTLY.maxstring = _SHORTLY.maxother = _SHORTLY.maxlong = SHOWN
_NAME, _NUMBER, _COUNT = String(empty=True), Number(), Integer(0)
_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    # Other programs write 1.0 as 1.
    "float": (float, int),
    "str": (str,),
    "text": (str,),
}
_FIELDS: dict[str, Check] = {
    "format": _NAME,
    "version": _COUNT,
    "exactk_version": _NAME,
    "task": Choice(options=("classification", "regression")),
    "target": String(empty=True, none="not known"),
    "k": Integer(1),
    "method": _NAME,
    "loss": _NAME,
    "ridge": Number("[0, inf)"),
    "objective": _NUMBER,
    "total": _NUMBER,
    "status": Choice(options=tuple(status.value for status in Status)),
    "proven": Boolean(none="not tried"),
    "gap": Number("[0, inf)", none="not tried"),
    "n_features_in": Integer(1),
    "feature_names_in": ListOf(_NAME, least=1, none="without names"),
    "features": ListOf(Dictionary(), least=1),
    "order": ListOf(_NAME, least=1),
    "classes": Dictionary(none="numbers"),
    "predicts": Choice(options=("class", "number", "exp"), none="nothing"),
    "fit": Dictionary(),
}
_FEATURE: dict[str, Check] = {
    "name": _NAME,
    "index": _COUNT,
    "levels": ListOf(_NAME, least=1, none="numbers"),
    "reference": String(empty=True, none="numbers"),
}
_CLASSES: dict[str, Check] = {
    "kind": Choice(options=tuple(_KINDS)),
    "labels": ListOf(Anything(text="a label")),
}
_FIT: dict[str, Check] = {"intercept": ListOf(_NUMBER, least=1), "terms": ListOf(Dictionary())}
_TERM: dict[str, Check] = {
    "feature": _NAME,
    "level": String(empty=True, none="numbers"),
    "coef": ListOf(_NUMBER, least=1),
}


def path_name(path: Any) -> str:
    """Return the name of a file as text, or say that it is none.

    Examples
    --------
    >>> path_name(None)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: path must be the name of a file, not None
    """
    # A number would be taken for a file that is open already.
    if not isinstance(path, (str, bytes, os.PathLike)) or not os.fspath(path):
        raise InputError(f"path must be the name of a file, not {_show(path)}", parameter="path")
    return os.fsdecode(path)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, or say why it is none."""
    with open(path, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise InputError(
            f"it is larger than {MOST_BYTES >> 20} MB", parameter="path",
            hint="is it the file that was meant?",
        )  # fmt: skip
    return _decoded(raw)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"it is not UTF-8 text: {error.reason} at byte {error.start}", parameter="path"
        ) from error


def parse(text: str | bytes) -> Any:
    """Read JSON strictly: no NaN or Infinity.

    Examples
    --------
    >>> parse('{"k": NaN}')
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: it holds NaN, which is no number of JSON; every number must be finite
    """
    if isinstance(text, (bytes, bytearray)):
        text = _decoded(text)
    if not isinstance(text, str):
        raise InputError(
            f"it is {_show(text)}, and no text", parameter="text",
            hint="give the JSON that to_json wrote",
        )  # fmt: skip
    try:
        return json.loads(text, parse_constant=_no_constant)
    except InputError:
        raise
    except ValueError as error:  # JSON that is none, or a number of thousands of digits
        raise InputError(f"it is not JSON: {_short(str(error), 200)}", parameter="text") from error


def _no_constant(word: str) -> NoReturn:
    raise InputError(
        f"it holds {word}, which is no number of JSON", parameter="text",
        hint="every number must be finite",
    )  # fmt: skip


def check_fields(values: Any) -> None:
    """Raise unless these are the fields of a choice, of the right kinds, that go together.

    Examples
    --------
    >>> check_fields({"format": "pickle"})
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: field 'format' must be 'exactk-choice', not 'pickle'; give what
    exactk select --export or export() wrote
    """
    if not isinstance(values, Mapping):
        raise InputError(
            f"it is {type(values).__name__} and no choice", parameter="values",
            hint="give what exactk select --export or export() wrote",
        )  # fmt: skip
    name, version = values.get("format"), values.get("version")
    if name != FORMAT:
        raise InputError(
            f"field 'format' must be {FORMAT!r}, not {_show(name)}", parameter="values",
            hint="give what exactk select --export or export() wrote",
        )  # fmt: skip
    if version != VERSION or isinstance(version, (bool, float)):
        raise InputError(
            f"field 'version' must be {VERSION}, not {_show(version)}", parameter="values",
            hint="a newer exactk may read it",
        )  # fmt: skip
    _check_table(values, _FIELDS, "")
    _check_features(values)
    n_outputs = len(_part(values, "fit", _FIT)["intercept"])
    _check_classes(values, n_outputs)
    _check_terms(values, n_outputs)
    if (values["proven"] is None) != (values["gap"] is None):
        raise InputError(
            "fields 'proven' and 'gap' go together: both null, or neither", parameter="values"
        )


def levels_of(feature: Mapping[str, Any]) -> list[str | None]:
    """Return the levels of a feature that have coefficients; one None where it holds numbers.

    Examples
    --------
    >>> levels_of({"levels": ["blue", "red", "white"], "reference": "red"})
    ['blue', 'white']
    """
    levels = feature["levels"]
    if levels is None:
        return [None]
    return [
        level for level in levels if level != feature["reference"] or len(feature["levels"]) == 1
    ]


def _check_features(values: Mapping[str, Any]) -> None:
    for at, feature in enumerate(values["features"]):
        where = f"features[{at}]."
        _check_table(feature, _FEATURE, where)
        if (feature["levels"] is None) != (feature["reference"] is None):
            raise InputError(
                f"fields '{where}levels' and '{where}reference' go together", parameter="values"
            )
        if feature["levels"] is not None:
            _refuse_repeated(f"{where}levels", feature["levels"])
            if feature["reference"] not in feature["levels"]:
                raise InputError(
                    f"field '{where}reference' is {_show(feature['reference'])}, which is "
                    f"none of its levels", parameter="values",
                )  # fmt: skip
    names = [feature["name"] for feature in values["features"]]
    indices = [feature["index"] for feature in values["features"]]
    known, width = values["feature_names_in"], values["n_features_in"]
    _refuse_repeated("features", names)
    if any(j <= i for i, j in pairwise(indices)) or indices[-1] >= width:
        raise InputError(
            f"field 'features' must have indices that rise and are below n_features_in = {width}",
            parameter="values",
        )
    if len(values["order"]) != len(names) or set(values["order"]) != set(names):
        raise InputError(
            "field 'order' must have the names of the features, each once", parameter="values"
        )
    if known is None:
        return
    _refuse_repeated("feature_names_in", known)
    if len(known) != width:
        raise InputError(
            f"field 'feature_names_in' has {len(known)} names where n_features_in is {width}",
            parameter="values",
        )
    for name, j in zip(names, indices, strict=True):
        if known[j] != name:
            raise InputError(
                f"field 'features' has {_show(name)} as column {j}, which "
                f"'feature_names_in' calls {_show(known[j])}", parameter="values",
            )  # fmt: skip


def _check_classes(values: Mapping[str, Any], n_outputs: int) -> None:
    predicts = values["predicts"]
    if values["classes"] is None:
        if predicts == "class":
            raise InputError(
                "field 'predicts' is 'class', and there are no classes", parameter="values"
            )
        return
    part = _part(values, "classes", _CLASSES)
    kind, labels = part["kind"], part["labels"]
    # No type of arrays holds both.
    unsigned = not any(isinstance(label, int) and label < 0 for label in labels)
    for label in labels:
        right = isinstance(label, _KINDS[kind]) and (kind == "bool") == isinstance(label, bool)
        if isinstance(label, str):
            right = right and _NAME.allows(label)
        elif kind == "int":
            right = right and -(2**63) <= label < (2**64 if unsigned else 2**63)
        if not right or (kind == "float" and not _NUMBER.allows(label)):
            raise InputError(
                f"field 'classes.labels' has {_show(label)} as {kind}", parameter="values"
            )
    _refuse_repeated("classes.labels", labels)
    if len(labels) != n_outputs:
        raise InputError(
            f"field 'classes.labels' has {len(labels)} labels where 'fit.intercept' has "
            f"{n_outputs}",
            parameter="values",
        )
    if predicts not in (None, "class") or values["task"] != "classification":
        raise InputError(
            "there are classes, but 'task' or 'predicts' says numbers", parameter="values"
        )


def _check_terms(values: Mapping[str, Any], n_outputs: int) -> None:
    terms = values["fit"]["terms"]
    for at, term in enumerate(terms):
        _check_table(term, _TERM, f"fit.terms[{at}].")
        if len(term["coef"]) != n_outputs:
            raise InputError(
                f"field 'fit.terms[{at}].coef' has {len(term['coef'])} numbers where "
                f"'fit.intercept' has {n_outputs}", parameter="values",
            )  # fmt: skip
    found = [(term["feature"], term["level"]) for term in terms]
    wanted = [
        (feature["name"], level) for feature in values["features"] for level in levels_of(feature)
    ]
    if found != wanted:
        raise InputError(
            "field 'fit.terms' must have one term for each feature, or for each of its levels but "
            "the reference, in the order of 'features'", parameter="values",
        )  # fmt: skip


def _part(values: Mapping[str, Any], name: str, fields: Mapping[str, Check]) -> Mapping[str, Any]:
    part: Mapping[str, Any] = values[name]
    _check_table(part, fields, f"{name}.")
    return part


def _check_table(values: Mapping[str, Any], fields: Mapping[str, Check], where: str) -> None:
    missing = [name for name in fields if name not in values]
    if missing:
        raise InputError(f"it lacks the field {where + missing[0]!r}", parameter="values")
    unknown = [name for name in values if name not in fields]
    if unknown:
        raise InputError(
            f"field {_show(where + str(unknown[0]))} is not known in version {VERSION}",
            parameter="values",
        )
    for name, check in fields.items():
        value = values[name]
        if value is None and check.none:
            continue
        if not check.allows(value):
            raise InputError(
                f"field {where + name!r} must be {check}, not {_show(value)}", parameter="values"
            )


def _refuse_repeated(name: str, items: Iterable[Any]) -> None:
    repeated = [item for item, n in Counter(items).items() if n > 1]
    if repeated:
        raise InputError(
            f"field {name!r} has {_short(join_items(repeated))} more than once", parameter="values"
        )


def _show(value: Any) -> str:
    """A value for a message, however large or deep it is."""
    try:
        return _SHORTLY.repr(value)
    except (RecursionError, ValueError):  # ValueError: a number of thousands of digits
        return f"a {type(value).__name__} too large to show"


def _short(text: str, length: int = SHOWN) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
