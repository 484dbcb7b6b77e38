"""Parameters as text: in options, in the configuration file and in messages."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from exactk.errors import NO_VALUE, InputError, Setting, suggest
from exactk.params import (
    PARAMS,
    AnyOf,
    Boolean,
    Check,
    Dictionary,
    Instance,
    Integer,
    Number,
    Param,
)

__all__ = [
    "CONSTRAINTS", "SHARED", "TABLES", "is_list", "key_of", "read_config", "read_spec", "show",
    "textual",
]  # fmt: skip

# Keys of the tables [k] and [constraints] of a configuration file.
AUTO_K = ("k_max", "criterion", "cv", "rule", "scoring", "estimator")
CONSTRAINTS = tuple(
    name for name, one in PARAMS.items() if one.section == "Constraints" and name != "constraints"
)
TABLES = {"k": AUTO_K, "constraints": CONSTRAINTS}
# Keys that one command or another takes outside of these tables.
SHARED = set(PARAMS) - {
    "sample_weight", "verbose", "k_max", "criterion", "rule", *CONSTRAINTS
}  # fmt: skip
# Parameters of Python that have another name on the command line.
NAMES = {"sample_weight": "weights", "X": "table", "path": "table", "y": "target"}
# Checks of parameters that take objects in Python.
CHECKS = {"cv": Integer(2), "random_state": Integer(0)}


def textual(parameter: Param) -> Check:
    """Return the part of a parameter's check that a text can meet: no objects and no None.

    Examples
    --------
    >>> print(textual(PARAMS["k"]))
    a whole number of at least 1 or 'auto'
    """
    check = replace(CHECKS.get(parameter.name, parameter.check), none="")
    if not isinstance(check, AnyOf):
        return check
    parts = [one for one in check.checks if not isinstance(one, Instance)]
    # A text is no table, but a file may have one in place of it.
    parts = [one for one in parts if not isinstance(one, Dictionary)] or parts
    if any(isinstance(one, Number) for one in parts):
        parts = [one for one in parts if not isinstance(one, Boolean)]
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def show(setting: Setting, options: Mapping[str, str]) -> str:
    """Write a parameter of a message as an option, or as a key of ``--config FILE``.

    Parameters
    ----------
    setting : Setting
    options : mapping of str to str
        Option of each parameter of the command.

    Examples
    --------
    >>> options = {"criterion": "--criterion", "config_file": "--config"}
    >>> show(Setting("criterion", "ebic"), options), show(Setting("gap", 0.1), options)
    ('--criterion ebic', 'gap = 0.1 in --config FILE')
    >>> show(Setting("budget", 3), options)
    'budget = 3 under [constraints] in --config FILE'
    """
    name, value = NAMES.get(setting.name, setting.name), setting.value
    if name in options:
        option = options[name]
        if value is NO_VALUE or value is True:
            return option
        if value is None or value is False:
            return f"no {option}"
        items = value if isinstance(value, (list, tuple)) else [value]
        return f"{option} {shlex.quote(','.join(map(str, items)))}"
    if name not in PARAMS or "config_file" not in options:
        return str(setting)
    given = json.dumps(value, ensure_ascii=False, default=repr) if value is not NO_VALUE else ""
    under = next((f" under [{table}]" for table, names in TABLES.items() if name in names), "")
    return f"{name}{' = ' if given else ''}{given}{under} in --config FILE"


def key_of(name: str) -> str:
    """Return the parameter that an option, or another name of a parameter, stands for.

    Examples
    --------
    >>> key_of("--folds"), key_of("--class-weight"), key_of("sample_weight")
    ('cv', 'class_weight', 'weights')
    """
    word = name.lstrip("-").replace("_", "-")
    options = {one.option.lstrip("-"): one.name for one in PARAMS.values() if one.option}
    key = options.get(word, word.replace("-", "_"))
    return NAMES.get(key, key)


def read_config(
    path: str, allowed: Mapping[str, Param], command: str, say: Callable[[str], object]
) -> dict[str, Any]:
    """Read and check the parameters of a command in a TOML file.

    "k" and "constraints" may be tables, which are returned as dicts. Keys of other commands are
    left out, which is said.
    """
    import tomllib

    text = b""
    try:
        with open(path, "rb") as file:
            text = file.read()
        values = tomllib.loads(text.decode())
    except OSError as error:
        raise InputError(
            f"--config {path!r} cannot be read: {error.strerror}", parameter="config"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        both = re.search(rb"^\s*\[k\]", text, re.M) and re.search(rb"^\s*k\s*=", text, re.M)
        raise InputError(
            f"--config {path!r} is no TOML file: {error}", parameter="config",
            hint='[k] already means k = "auto": leave one of the two out' if both else "",
        ) from error  # fmt: skip
    known = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name in allowed or name not in SHARED:
            known[key] = value
        else:
            hint = f"; {_place(name, allowed)}" if _place(name, allowed) else ""
            say(f"{name!r} in {path!r} is not used by {command}{hint}")
    found = _checked(known, allowed, path, command)
    if found.get("k") == {}:
        found["k"] = "auto"
    return found


def _place(name: str, allowed: Mapping[str, Param]) -> str:
    """Return where the parameter is written that a key stands for, or an empty text."""
    key = key_of(name)
    if key in allowed:
        return f"write {key}"
    table = next((one for one in TABLES if one in allowed and key in TABLES[one]), None)
    return f"write {'it' if key == name else key} under [{table}]" if table else ""


def _checked(
    values: Mapping[str, Any], allowed: Mapping[str, Param], path: str, owner: str
) -> dict[str, Any]:
    """Return the values of a table of a file by the names of their parameters."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in allowed:
            hint = _place(name, allowed) or suggest(name, list(allowed))
            raise InputError(
                f"--config {path!r}: {owner} has no parameter {name!r}",
                parameter=name, hint=hint or f"it has {', '.join(allowed)}",
            )  # fmt: skip
        if name in found:
            raise InputError(
                f"--config {path!r}: {name} is given twice, with a hyphen and with an underscore",
                parameter=name, hint="give it once",
            )  # fmt: skip
        found[name] = value
        if name in TABLES and isinstance(value, dict):
            inside = {one: PARAMS[one] for one in TABLES[name]}
            found[name] = _checked(value, inside, path, f"[{name}]")
            continue
        check, listed = textual(allowed[name]), is_list(allowed[name])
        is_flag = isinstance(value, bool) and allowed[name].check.allows(value)
        if (listed and not isinstance(value, list)) or not (is_flag or check.allows(value)):
            expected = "a list" if listed and not isinstance(value, list) else check
            raise InputError(
                f"--config {path!r}: {name} must be {expected}, not {value!r}",
                parameter=name, value=value,
            )  # fmt: skip
    return found


def is_list(parameter: Param) -> bool:
    """Return whether a parameter is a list, which an option splits at its commas."""
    return parameter.metavar.endswith(",...") or parameter.name == "classes"


def read_spec(text: str, parameter: str = "method") -> tuple[str, dict[str, Any]]:
    """Read ``NAME:PARAMETER=VALUE,...``; a value is a number, true, false, none, or a word.

    Examples
    --------
    >>> read_spec("gsrfs:lam=0.1,max-iter=1e4,labels=centred")
    ('gsrfs', {'lam': 0.1, 'max_iter': 10000, 'labels': 'centred'})
    """
    name, colon, rest = text.partition(":")
    values: dict[str, Any] = {}
    for pair in rest.split(",") if colon else ():
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (key and equals and value):
            raise InputError(
                f"{pair!r} is not PARAMETER=VALUE",
                parameter=parameter,
                hint=f"write it as in {'l2r:r=0.7' if parameter == 'loss' else 'gsrfs:lam=0.1'}",
            )  # fmt: skip
        key = key.replace("-", "_")
        if key in values:
            raise InputError(
                f"{text!r} has {key!r} twice", parameter=parameter, hint="give it once"
            )
        values[key] = _value(value)
    return name.strip(), values


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        number = float(text)
    except ValueError:
        return text
    # 1e4 is how one writes a whole number of iterations.
    return int(number) if "." not in text and number.is_integer() else number
