"""From a TOML file to a recipe: every entry checked before anything runs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from exactk.errors import InputError, did_you_mean, join_items
from exactk.papers.experiments.recipe import (
    ALL_FEATURES,
    FigureSpec,
    Measure,
    MethodSpec,
    Recipe,
    Split,
)
from exactk.params import Boolean, Check, Choice, Dictionary, Integer, ListOf, Number, String

__all__ = ["make_recipe", "read_recipe", "recipe_names"]

PROTOCOLS = ("fit", "classify", "regress")
VIEWS = ("table", "curve", "trace", "bars", "ranks", "profile")
SCALES = ("linear", "log", "percent")
STATISTICS = ("mean", "min", "max")
T = TypeVar("T")


@cache
def _shipped() -> dict[str, Recipe]:
    folder = files("exactk.papers.experiments") / "recipes"
    recipes = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            recipe = make_recipe(tomllib.loads(entry.read_text(encoding="utf-8")), entry.name)
            recipes[recipe.name] = recipe
    return recipes


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with exactk."""
    return list(_shipped())


def read_recipe(name: str | Path) -> Recipe:
    """Return a recipe by its name, by a table or figure that it shows, or from a TOML file.

    Examples
    --------
    >>> read_recipe("gsrfs-table2").sizes
    [50]
    """
    text = str(name)
    if text.endswith(".toml"):
        try:
            values = tomllib.loads(Path(text).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise InputError(
                f"recipe {text!r} cannot be read: {error.strerror}", parameter="recipe"
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"recipe {text!r} is not TOML: {error}", parameter="recipe") from error
        return make_recipe(values, text)
    recipes = _shipped()
    if text in recipes:
        return recipes[text]
    aliases = {alias: recipe for recipe in recipes.values() for alias in recipe.aliases}
    key = re.sub(r"[\s_]+", "-", text.lower())
    if key in aliases or key in recipes:
        return aliases.get(key) or recipes[key]
    hint = did_you_mean(text, [*recipes, *aliases])
    raise InputError(
        f"no recipe {text!r}{hint} (exactk papers list shows them", parameter="recipe",
        hint="a name that ends in .toml is a file of your own)",
    )  # fmt: skip


class _Ridge(Check):
    def __str__(self) -> str:
        return "a number in [0, inf), 'auto' or 'cv'"

    def allows(self, value: Any) -> bool:
        return (
            value in ("auto", "cv") if isinstance(value, str) else Number("[0, inf)").allows(value)
        )


class _Measures(Check):
    def __str__(self) -> str:
        return "the name of a measure, or a list of names"

    def allows(self, value: Any) -> bool:
        return String(empty=True).allows(value) or ListOf(least=1).allows(value)


# Beyond these an experiment would not end, and its list of cells not fit into memory.
MOST_REPEATS = 10_000
MOST_SIZE = 1_000_000

_CHECKS: dict[type, dict[str, Check]] = {
    Split: {
        "train": Number("(0, 1)", none="no share"),
        "folds": Integer(2, none="no folds"),
    },
    Measure: {
        **{name: Boolean() for name in ("redundancy", "trace", "one_start")},
        "classifiers": ListOf(),
        "details": ListOf(),
        "norms": ListOf(least=1),
        "sparsity": ListOf(Number("[0, inf)")),
        "tune_folds": Integer(2),
        "tune_classifier": String(),
    },
    FigureSpec: {
        "kind": Choice(options=VIEWS),
        "scale": Choice(options=SCALES),
        "statistic": Choice(options=STATISTICS),
        "measure": _Measures(),
        "x": String(),
        "title": String(empty=True),
        "caption": String(empty=True),
    },
    MethodSpec: {
        "label": String(),
        "method": String(),
        "options": Dictionary(),
        "grid": Dictionary(),
        "ridge": _Ridge(),
        "path": Boolean(),
    },
    Recipe: {
        "protocol": Choice(options=PROTOCOLS),
        "name": String(),
        "title": String(),
        "paper": String(),
        "description": String(empty=True),
        "reproduces": ListOf(),
        "datasets": ListOf(least=1),
        "published": Dictionary(),
        "quick": Dictionary(),
        "repeats": Integer(1, MOST_REPEATS),
        "exclusive": Boolean(),
        "time_limit": Number("(0, inf)"),
        "published_repeats": Integer(1, none="as the recipe"),
        "small": Boolean(),
    },
}


def _make(kind: type[T], values: Any, where: str) -> T:
    """Make a dataclass of a table of the file; unknown, missing and wrong entries are named."""
    if not isinstance(values, Mapping):
        raise InputError(
            f"{where} must be a table of names and values, not {values!r}", parameter="recipe"
        )
    known = [part.name for part in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    for name in values:
        if name not in known:
            raise InputError(
                f"{where} has no entry {name!r}{did_you_mean(name, known)}", parameter="recipe"
            )
    for name, check in _CHECKS[kind].items():
        if name in values:
            check(f"{where}: {name}", values[name])
    missing = [
        part.name
        for part in fields(kind)  # type: ignore[arg-type]  # a dataclass
        if part.name not in values and part.default is part.default_factory is MISSING
    ]
    if missing:
        raise InputError(f"{where} lacks {join_items(missing)}", parameter="recipe")
    return kind(**values)


def _sizes(value: Any, where: str) -> list[int]:
    """Read a list of sizes, or ``{from = 1, to = 80, step = 1}``."""
    if isinstance(value, Mapping):
        ends = {"step": 1, **value}
        if set(ends) != {"from", "to", "step"}:
            raise InputError(
                f"{where}: sizes must be a list, or have from, to and step", parameter="recipe"
            )
        for name, end in ends.items():
            Integer(1, MOST_SIZE)(f"{where}: sizes.{name}", end)
        value = list(range(ends["from"], ends["to"] + 1, ends["step"]))
    ListOf(Integer(1, MOST_SIZE), least=1)(f"{where}: sizes", value)
    return sorted(set(value))


def make_recipe(values: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Make a recipe of plain values; what is unknown, missing or wrong is named.

    Parameters
    ----------
    values : mapping
        As in the file.
    where : str
        What an error calls it.
    """
    values = dict(values)
    if "sizes" in values:
        values["sizes"] = _sizes(values["sizes"], where)
    values["split"] = _make(Split, values.get("split", {}), f"{where}: split")
    values["measure"] = _make(Measure, values.get("measure", {}), f"{where}: measure")
    ListOf(Dictionary())(f"{where}: views", values.get("views", []))
    ListOf(Dictionary())(f"{where}: methods", values.get("methods", []))
    values["views"] = [
        _make(FigureSpec, view, f"{where}: view {i}")
        for i, view in enumerate(values.get("views", []), 1)
    ]
    if not values.get("methods"):
        raise InputError(
            f"{where} has no methods", parameter="recipe", hint="give one or more [[methods]]"
        )
    values["methods"] = [
        _make(MethodSpec, variant, f"{where}: method {i}")
        for i, variant in enumerate(values["methods"], 1)
    ]
    _check_classifiers(values["measure"], where)
    recipe = _make(Recipe, values, where)
    labels = [variant.label for variant in recipe.methods]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(
                f"{where}: two methods are labelled {label!r}", parameter="recipe",
                hint="labels must differ",
            )  # fmt: skip
    for variant in recipe.methods:
        variant.check(where)
    if recipe.split.train is not None and recipe.split.folds is not None:
        raise InputError(
            f"{where}: split has both train and folds", parameter="recipe", hint="give one of them"
        )
    if recipe.protocol != "fit" and recipe.split == Split():
        raise InputError(
            f"{where}: protocol {recipe.protocol!r} needs a split: train or folds",
            parameter="recipe",
        )
    if recipe.protocol == "fit" and recipe.split.folds is not None:
        raise InputError(
            f"{where}: protocol 'fit' tests nothing, so that folds have no use", parameter="recipe",
            hint="give train, a share of the rows to fit, or no split",
        )  # fmt: skip
    for variant in recipe.methods:
        if variant.method == ALL_FEATURES and recipe.protocol != "classify":
            raise InputError(
                f"{where}: method {ALL_FEATURES!r} of {variant.label!r} is a baseline of accuracy",
                parameter="recipe", hint=f"protocol {recipe.protocol!r} has none",
            )  # fmt: skip
        if variant.grid and recipe.protocol != "classify":
            raise InputError(
                f"{where}: method {variant.label!r} has a grid, which is searched by accuracy, and "
                f"protocol {recipe.protocol!r} has none", parameter="recipe",
                hint="put its values into options",
            )  # fmt: skip
    _check_published(recipe, where)
    return replace(recipe, quick=_read_quick(recipe, where))


def _check_published(recipe: Recipe, where: str) -> None:
    """A printed figure must belong to a method and a data set, or it would never be shown."""
    labels = [variant.label for variant in recipe.methods]
    for measure, by_set in recipe.published.items():
        for dataset, by_size in _table(by_set, f"{where}: published.{measure}"):
            place = f"{where}: published.{measure}.{dataset}"
            if dataset not in recipe.datasets:
                hint = did_you_mean(dataset, list(recipe.datasets))
                raise InputError(
                    f"{place}: the recipe has no data set {dataset!r}{hint}", parameter="recipe"
                )
            for k, by_label in _table(by_size, place):
                if not k.isdigit() or int(k) not in recipe.sizes:
                    raise InputError(
                        f"{place}.{k}: {k!r} is none of the sizes of the recipe", parameter="recipe"
                    )
                for label, printed in _table(by_label, f"{place}.{k}"):
                    if label not in labels:
                        hint = did_you_mean(label, labels)
                        raise InputError(
                            f"{place}.{k}: no method is labelled {label!r}{hint}",
                            parameter="recipe",
                        )
                    pair = printed if isinstance(printed, Sequence) else [printed]
                    if len(pair) not in (1, 2) or not all(Number().allows(v) for v in pair):
                        raise InputError(
                            f"{place}.{k}: {label!r} must have a number, or a number and its "
                            f"deviation, not {printed!r}", parameter="recipe",
                        )  # fmt: skip


def _table(value: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise InputError(
            f"{where} must be a table of names and values, not {value!r}", parameter="recipe"
        )
    return list(value.items())


def _check_classifiers(measure: Measure, where: str) -> None:
    from exactk.papers.experiments.classifiers import CLASSIFIERS

    for name in (*measure.classifiers, measure.tune_classifier):
        if name not in CLASSIFIERS:
            raise InputError(
                f"{where}: no classifier {name!r}{did_you_mean(str(name), CLASSIFIERS)} (there are "
                f"{', '.join(CLASSIFIERS)})", parameter="recipe",
            )  # fmt: skip


def _read_quick(recipe: Recipe, where: str) -> dict[str, Any]:
    allowed = ("datasets", "sizes", "repeats", "methods", "split", "time_limit")
    quick = dict(recipe.quick)
    if "split" in quick:
        quick["split"] = _make(Split, quick["split"], f"{where}: quick.split")
    for name in quick:
        if name not in allowed:
            raise InputError(
                f"{where}: quick has no entry {name!r}{did_you_mean(name, allowed)}",
                parameter="recipe",
            )
    if "sizes" in quick:
        quick["sizes"] = _sizes(quick["sizes"], f"{where}: quick")
    checks = {**_CHECKS[Recipe], "methods": ListOf(least=1)}
    for name in ("repeats", "datasets", "methods", "time_limit"):
        if name in quick:
            checks[name](f"{where}: quick.{name}", quick[name])
    labels = [variant.label for variant in recipe.methods]
    for label in quick.get("methods", ()):
        if label not in labels:
            raise InputError(
                f"{where}: quick names a method {label!r}{did_you_mean(label, labels)}",
                parameter="recipe",
            )
    return quick
