"""Cells: the units of work of an experiment, each with an identity that survives a restart.

The key of a cell is made of all that decides its outcome: method, options, checksum of the data,
sizes, draw, seed and measures. A run that is repeated or extended computes only missing cells.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from exactk.papers.experiments import several_sizes as evaluate_sizes
from exactk.papers.experiments.recipe import (
    ALL_FEATURES,
    Measure,
    MethodSpec,
    Recipe,
    Split,
    method_class,
)

__all__ = ["Cell", "cells", "seed_of", "shares_sizes"]


@dataclass(frozen=True)
class Cell:
    """One method on one draw of one data set, at one size or at all that it finds together.

    Attributes
    ----------
    recipe : str
        Name of the recipe.
    dataset : str
    variant : MethodSpec
    sizes : tuple of int
    repeat : int
        With folds, the repeat times their number plus the fold.
    seed : int
        From the run's seed, the data set and the repeat: all methods see the same draws.
    rows_seed : int
        The seed that draws the rows; that of the first repeat where repeats are starts.
    protocol : str
    split : Split
    measure : Measure
    """

    recipe: str
    dataset: str
    variant: MethodSpec
    sizes: tuple[int, ...]
    repeat: int
    seed: int
    rows_seed: int
    protocol: str
    split: Split
    measure: Measure

    def identity(self) -> dict[str, Any]:
        """Return all that decides the outcome, but for the data themselves.

        What is as by default is left out: an entry that recipes gain later changes no key.
        """
        return {
            "recipe": self.recipe,
            "dataset": self.dataset,
            "variant": _nondefault_fields(self.variant),
            "sizes": list(self.sizes),
            "repeat": self.repeat,
            "seed": self.seed,
            "rows_seed": self.rows_seed,
            "source": _source(self.variant.method),
            "protocol": self.protocol,
            "split": _nondefault_fields(self.split),
            "measure": _nondefault_fields(self.measure),
        }

    def key(self, checksum: str) -> str:
        """Return the name of this cell in a store, for data with this checksum."""
        text = json.dumps({**self.identity(), "checksum": checksum}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@cache
def _source(target: str) -> str:
    """Return a digest of the module of a method of one's own: another text is another method."""
    if ":" not in target:
        return ""
    place = inspect.getsourcefile(method_class(target))
    if place is None or not Path(place).is_file():
        return ""
    return hashlib.sha256(Path(place).read_bytes()).hexdigest()


def _nondefault_fields(of: Any) -> dict[str, Any]:
    """Return the entries of a dataclass that differ from its defaults, as JSON has them."""
    found = {}
    for part in fields(of):
        value = getattr(of, part.name)
        default = part.default_factory() if callable(part.default_factory) else part.default
        value = list(value) if isinstance(value, tuple) else value
        if value != (list(default) if isinstance(default, tuple) else default):
            found[part.name] = value
    return found


def seed_of(seed: int, dataset: str, repeat: int) -> int:
    """Return a seed for one repeat on one data set, the same on every machine.

    Examples
    --------
    >>> seed_of(0, "srbct", 0) == seed_of(0, "srbct", 0) != seed_of(0, "srbct", 1)
    True
    """
    digest = hashlib.sha256(f"{seed}/{dataset}/{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def shares_sizes(variant: MethodSpec) -> bool:
    """Whether one run of the method gives every size: a ranking, a penalty, a path."""
    if variant.path or variant.method == ALL_FEATURES:
        return True
    # A ridge by cross-validation is chosen for each size.
    return variant.ridge != "cv" and evaluate_sizes.shares_sizes(method_class(variant.method)())


def _draws(variant: MethodSpec) -> bool:
    """Whether a method draws random numbers."""
    return "random_state" in method_class(variant.method).option_names()


def cells(recipe: Recipe, seed: int = 0) -> list[Cell]:
    """Return the cells of an experiment, one data set after the other.

    Examples
    --------
    >>> from exactk.papers.experiments.reading import read_recipe
    >>> recipe = read_recipe("cdlsr-table2").restrict(methods=["cdlsr"], datasets=["srbct"])
    >>> len(cells(recipe)) == recipe.repeats * len(recipe.sizes)
    True
    """
    sizes = tuple(recipe.sizes)
    draws = recipe.repeats * (recipe.split.folds or 1)

    def repeats(variant: MethodSpec) -> int:
        # To fit the same rows again changes nothing but the time where nothing is drawn.
        same = recipe.protocol == "fit" and not recipe.exclusive and not _draws(variant)
        return 1 if same else draws

    return [
        Cell(
            recipe.name,
            dataset,
            variant,
            part,
            repeat,
            _seed(recipe, seed, dataset, repeat),
            _seed(recipe, seed, dataset, 0 if recipe.protocol == "fit" else repeat),
            recipe.protocol,
            recipe.split,
            recipe.measure,
        )
        for dataset in recipe.datasets
        for repeat in range(draws)
        for variant in recipe.methods
        if repeat < repeats(variant)
        for part in ([sizes] if shares_sizes(variant) else [(k,) for k in sizes])
    ]


def _seed(recipe: Recipe, seed: int, dataset: str, repeat: int) -> int:
    # The folds of one repeat come from one draw.
    return seed_of(seed, dataset, repeat // (recipe.split.folds or 1))
