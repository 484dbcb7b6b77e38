"""A recipe: one experiment, said in one file that a person can read and a program can check."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from exactk import registry
from exactk.checks import Check, Choice, Flag, Number, Whole
from exactk.errors import InputError, listing, nearest
from exactk.methods.base import Method

__all__ = [
    "ALL_FEATURES",
    "Measure",
    "Recipe",
    "Split",
    "Variant",
    "View",
    "method_class",
    "read_recipe",
    "recipe_names",
]

PROTOCOLS = ("fit", "classify", "regress")
VIEWS = ("table", "curve", "trace", "bars", "ranks", "profile")
SCALES = ("linear", "log", "percent")
STATISTICS = ("mean", "min", "max")
TIME_LIMIT = 300.0
# In place of a method: no selection at all.
ALL_FEATURES = "all"
T = TypeVar("T")


@dataclass(frozen=True)
class Variant:
    """A method with the parameters of the experiment.

    Attributes
    ----------
    label : str
        The name that tables and figures show.
    method : str
        A registered name, ``package.module:Class`` of a method of one's own, or ``all``: every
        feature, as a baseline.
    options : mapping
        Parameters that are fixed.
    grid : mapping
        Parameters to choose by cross-validation within the training part, each with its values.
    ridge : float or str
        Ridge of the problem: a number, "auto" or "cv".
    path : bool
        Whether all sizes come from one path, each started from the one before.
    """

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    ridge: float | str = 0.0
    path: bool = False

    def settings(self) -> list[dict[str, Any]]:
        """Every setting of the grid, the fixed options included.

        Examples
        --------
        >>> Variant("GSR-FS", "gsrfs", {"p": 0.5}, {"lam": [0.1, 1]}).settings()
        [{'p': 0.5, 'lam': 0.1}, {'p': 0.5, 'lam': 1}]
        """
        names = list(self.grid)
        return [
            {**self.options, **dict(zip(names, values, strict=True))}
            for values in product(*(self.grid[name] for name in names))
        ]


@dataclass(frozen=True)
class Split:
    """Which rows a method sees: a share of each class, all folds but one, or (neither) all."""

    train: float | None = None
    folds: int | None = None


@dataclass(frozen=True)
class Measure:
    """What is measured beside objective, time and columns.

    Attributes
    ----------
    classifiers : sequence of str
        Accuracies on the test part, by `exactk.evaluate.accuracy`.
    redundancy : bool
        Mean correlation of the chosen columns, by both definitions.
    trace : bool
        The method's own objective after each iteration.
    details : sequence of str
        Arrays that the method shows of its last iterate, such as ``row_norms``.
    sparsity : sequence of float
        Tolerances above which a row norm counts; the measure is named ``sparsity@TOL``.
    norms : sequence of str
        Which array sparsity counts: the first of these that a method shows.
    tune_folds : int
        Folds within the training part for parameters with a grid.
    tune_classifier : str
    one_start : bool
        Each repeat is a single random start of methods that make several.
    """

    classifiers: Sequence[str] = ()
    redundancy: bool = False
    trace: bool = False
    details: Sequence[str] = ()
    sparsity: Sequence[float] = ()
    norms: Sequence[str] = ("row_norms",)
    tune_folds: int = 5
    tune_classifier: str = "svm"
    one_start: bool = False


@dataclass(frozen=True)
class View:
    """One table or figure of the report.

    Attributes
    ----------
    kind : str
    measure : str or sequence of str
        What it shows: ``objective``, ``own``, ``seconds``, ``n_iter`` or a name under measures.
    title : str
    scale : {"linear", "log", "percent"}
    x : str
        ``k``, ``iteration``, or the name of an option that the methods differ in.
    statistic : {"mean", "min", "max"}
        Over the repeats.
    caption : str
    """

    kind: str
    measure: str | Sequence[str] = ""
    title: str = ""
    scale: str = "linear"
    x: str = "k"
    statistic: str = "mean"
    caption: str = ""


@dataclass(frozen=True)
class Recipe:
    """One experiment: which methods, on which data, measured how, shown how.

    Attributes
    ----------
    name, title, paper, about : str
    shows : sequence of str
        Tables and figures of the paper, such as ``"table 2"``.
    protocol : {"fit", "classify", "regress"}
    datasets : sequence of str
    sizes : sequence of int
        Every k.
    repeats : int
    methods : sequence of Variant
    split : Split
    measure : Measure
    views : sequence of View
    published : mapping
        measure → data set → k → label → value or [value, standard deviation], in the paper's units.
    quick : mapping
        What a small version takes in place of the above.
    alone : bool
        Whether times are the point, so that nothing else may run beside a cell.
    time_limit : float
        Seconds for one solve.
    """

    name: str
    title: str
    protocol: str
    datasets: Sequence[str]
    sizes: Sequence[int]
    repeats: int
    methods: Sequence[Variant]
    paper: str = "exactk"
    shows: Sequence[str] = ()
    about: str = ""
    split: Split = field(default_factory=Split)
    measure: Measure = field(default_factory=Measure)
    views: Sequence[View] = ()
    published: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = False
    time_limit: float = TIME_LIMIT

    @property
    def aliases(self) -> list[str]:
        """Further names: the paper with each table or figure, as in ``gsrfs-figure3``."""
        return [f"{self.paper}-{what.replace(' ', '')}" for what in self.shows]

    def variant(self, label: str) -> Variant:
        """Return the method with this label."""
        return next(variant for variant in self.methods if variant.label == label)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as in the file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "recipe") -> Recipe:
        """Make a recipe of plain values, each of them checked."""
        return _read(values, where)

    def restrict(
        self,
        *,
        quick: bool = False,
        methods: Sequence[str] = (),
        datasets: Sequence[str] = (),
        repeats: int | None = None,
        sizes: Sequence[int] = (),
    ) -> Recipe:
        """Return the same experiment on less, or with other methods and data.

        Parameters
        ----------
        quick : bool
            Take the small version first.
        methods : sequence of str
            Labels or names of methods, in any case of letters; a registered method (or
            ``module:Class``) that the recipe does not have joins with its defaults.
        datasets : sequence of str
            Any names; those outside the recipe join it.
        repeats : int or None
        sizes : sequence of int

        Examples
        --------
        >>> recipe = read_recipe("cdlsr-table2").restrict(methods=["cdlsr"], sizes=[5])
        >>> [variant.label for variant in recipe.methods], recipe.sizes
        (['CD-LSR'], [5])
        """
        recipe = self
        if quick and self.quick:
            changes = {name: value for name, value in self.quick.items() if name != "methods"}
            recipe = replace(recipe, **changes)
            chosen = self.quick.get("methods")
            if chosen:
                recipe = replace(recipe, methods=[self.variant(label) for label in chosen])
        if methods:
            # A label named on purpose counts even where the small version leaves it out.
            recipe = replace(recipe, methods=self._find_methods(methods))
        changes = {"datasets": list(datasets), "sizes": list(sizes), "repeats": repeats}
        recipe = replace(recipe, **{name: value for name, value in changes.items() if value})
        if repeats is not None:
            Whole(1)("repeats", repeats)
        return recipe

    def _find_methods(self, wanted: Sequence[str]) -> list[Variant]:
        found: list[Variant] = []
        for name in wanted:
            low = name.lower()
            matches = [v for v in self.methods if v.label.lower() == low]
            matches = matches or [v for v in self.methods if v.method.lower() == low]
            if not matches:
                if low not in registry.names() and ":" not in name:
                    known = [v.label for v in self.methods] + list(registry.names())
                    raise InputError(
                        f"recipe {self.name!r} has no method {name!r}, and none of that name is "
                        f"registered{nearest(name, known)} (exactk methods lists them; "
                        f"package.module:Class names one of your own)"
                    )
                target = low if low in registry.names() else name
                ridge = 0.0 if self.protocol == "fit" else "auto"
                matches = [Variant(name, target, ridge=ridge)]
                _check_variant(matches[0], "--methods")
            found += [match for match in matches if match not in found]
        return found


@cache
def _shipped() -> dict[str, Recipe]:
    folder = files("exactk.bench") / "recipes"
    recipes = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            recipe = _read(tomllib.loads(entry.read_text(encoding="utf-8")), entry.name)
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
            values = tomllib.loads(Path(text).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"recipe {text!r} cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"recipe {text!r} is not TOML: {error}") from error
        return _read(values, text)
    recipes = _shipped()
    if text in recipes:
        return recipes[text]
    aliases = {alias: recipe for recipe in recipes.values() for alias in recipe.aliases}
    key = re.sub(r"[\s_]+", "-", text.lower())
    if key in aliases or key in recipes:
        return aliases.get(key) or recipes[key]
    hint = nearest(text, [*recipes, *aliases])
    raise InputError(
        f"no recipe {text!r}{hint} (exactk bench list shows them; a name that ends in .toml is a "
        f"file of your own)"
    )


def method_class(target: str) -> type[Method]:
    """Return the class of a registered name, or of ``package.module:Class``."""
    if ":" not in target:
        return registry.method_class(target)
    module, _, name = target.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"method {target!r} cannot be imported: {error}; it is read as package.module:Class"
        ) from error
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise InputError(f"method {target!r} is not a subclass of exactk.methods.base.Method")
    return found


_CHECKS: dict[type, dict[str, Check]] = {
    Split: {
        "train": Number("(0, 1)", none="no share"),
        "folds": Whole(2, none="no folds"),
    },
    Measure: {
        **{name: Flag() for name in ("redundancy", "trace", "one_start")},
        "tune_folds": Whole(2),
    },
    View: {
        "kind": Choice(words=VIEWS),
        "scale": Choice(words=SCALES),
        "statistic": Choice(words=STATISTICS),
    },
    Variant: {"path": Flag()},
    Recipe: {
        "protocol": Choice(words=PROTOCOLS),
        "repeats": Whole(1),
        "alone": Flag(),
        "time_limit": Number("(0, inf)"),
    },
}


def _make(kind: type[T], values: Any, where: str) -> T:
    """Make a dataclass of a table of the file; unknown, missing and wrong entries are named."""
    if not isinstance(values, Mapping):
        raise InputError(f"{where} must be a table of names and values, not {values!r}")
    known = [part.name for part in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    for name in values:
        if name not in known:
            raise InputError(f"{where} has no entry {name!r}{nearest(name, known)}")
    for name, check in _CHECKS[kind].items():
        if name in values:
            check(f"{where}: {name}", values[name])
    try:
        return kind(**values)
    except TypeError as error:
        missing = re.findall(r"'(\w+)'", str(error))
        raise InputError(f"{where} lacks {listing(missing)}") from None


def _sizes(value: Any, where: str) -> list[int]:
    """Read a list of sizes, or ``{from = 1, to = 80, step = 1}``."""
    if isinstance(value, Mapping):
        ends = {"step": 1, **value}
        if set(ends) != {"from", "to", "step"}:
            raise InputError(f"{where}: sizes must be a list, or have from, to and step")
        for name, end in ends.items():
            Whole(1)(f"{where}: sizes.{name}", end)
        value = list(range(ends["from"], ends["to"] + 1, ends["step"]))
    if not isinstance(value, Sequence) or not value:
        raise InputError(f"{where}: sizes must be a list of whole numbers, not {value!r}")
    for k in value:
        Whole(1)(f"{where}: sizes", k)
    return sorted(set(value))


def _check_variant(variant: Variant, where: str) -> None:
    if variant.method == ALL_FEATURES:
        return
    cls = method_class(variant.method)
    for options in variant.settings():
        registry.check_options(variant.method, cls.option_names(), options)
        cls(**options).check()


def _read(values: Mapping[str, Any], where: str) -> Recipe:
    values = dict(values)
    if "sizes" in values:
        values["sizes"] = _sizes(values["sizes"], where)
    values["split"] = _make(Split, values.get("split", {}), f"{where}: split")
    values["measure"] = _make(Measure, values.get("measure", {}), f"{where}: measure")
    values["views"] = [
        _make(View, view, f"{where}: view {i}") for i, view in enumerate(values.get("views", []), 1)
    ]
    if not values.get("methods"):
        raise InputError(f"{where} has no methods; give one or more [[methods]]")
    values["methods"] = [
        _make(Variant, variant, f"{where}: method {i}")
        for i, variant in enumerate(values["methods"], 1)
    ]
    _check_classifiers(values["measure"], where)
    recipe = _make(Recipe, values, where)
    labels = [variant.label for variant in recipe.methods]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"{where}: two methods are labelled {label!r}; labels must differ")
    for variant in recipe.methods:
        _check_variant(variant, where)
    if not recipe.datasets:
        raise InputError(f"{where} has no data sets; name one or more in datasets")
    if recipe.split.train is not None and recipe.split.folds is not None:
        raise InputError(f"{where}: split has both train and folds; give one of them")
    if recipe.protocol != "fit" and recipe.split == Split():
        raise InputError(f"{where}: protocol {recipe.protocol!r} needs a split: train or folds")
    for variant in recipe.methods:
        if variant.grid and recipe.protocol != "classify":
            raise InputError(
                f"{where}: method {variant.label!r} has a grid, which is searched by accuracy, and "
                f"protocol {recipe.protocol!r} has none; put its values into options"
            )
    _check_published(recipe, where)
    return replace(recipe, quick=_read_quick(recipe, where))


def _check_published(recipe: Recipe, where: str) -> None:
    """A printed figure must belong to a method and a data set, or it would never be shown."""
    labels = [variant.label for variant in recipe.methods]
    for measure, by_set in recipe.published.items():
        for dataset, by_size in _table(by_set, f"{where}: published.{measure}"):
            place = f"{where}: published.{measure}.{dataset}"
            if dataset not in recipe.datasets:
                hint = nearest(dataset, list(recipe.datasets))
                raise InputError(f"{place}: the recipe has no data set {dataset!r}{hint}")
            for k, by_label in _table(by_size, place):
                if not k.isdigit() or int(k) not in recipe.sizes:
                    raise InputError(f"{place}.{k}: {k!r} is none of the sizes of the recipe")
                for label, printed in _table(by_label, f"{place}.{k}"):
                    if label not in labels:
                        hint = nearest(label, labels)
                        raise InputError(f"{place}.{k}: no method is labelled {label!r}{hint}")
                    pair = printed if isinstance(printed, Sequence) else [printed]
                    if len(pair) not in (1, 2) or not all(Number().allows(v) for v in pair):
                        raise InputError(
                            f"{place}.{k}: {label!r} must have a number, or a number and its "
                            f"deviation, not {printed!r}"
                        )


def _table(value: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be a table of names and values, not {value!r}")
    return list(value.items())


def _check_classifiers(measure: Measure, where: str) -> None:
    from exactk.evaluate import CLASSIFIERS

    for name in (*measure.classifiers, measure.tune_classifier):
        if name not in CLASSIFIERS:
            raise InputError(
                f"{where}: no classifier {name!r}{nearest(str(name), CLASSIFIERS)} (there are "
                f"{', '.join(CLASSIFIERS)})"
            )


def _read_quick(recipe: Recipe, where: str) -> dict[str, Any]:
    allowed = ("datasets", "sizes", "repeats", "methods", "split", "time_limit")
    quick = dict(recipe.quick)
    if "split" in quick:
        quick["split"] = _make(Split, quick["split"], f"{where}: quick.split")
    for name in quick:
        if name not in allowed:
            raise InputError(f"{where}: quick has no entry {name!r}{nearest(name, allowed)}")
    if "sizes" in quick:
        quick["sizes"] = _sizes(quick["sizes"], f"{where}: quick")
    if "repeats" in quick:
        Whole(1)(f"{where}: quick.repeats", quick["repeats"])
    labels = [variant.label for variant in recipe.methods]
    for label in quick.get("methods", ()):
        if label not in labels:
            raise InputError(f"{where}: quick names a method {label!r}{nearest(label, labels)}")
    return quick
