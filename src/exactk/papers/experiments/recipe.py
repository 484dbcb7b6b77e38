"""A recipe: one experiment, said in one file that a person can read and a program can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from itertools import product
from typing import Any

from exactk.errors import ExactkError, InputError, MissingExtraError, did_you_mean, join_items
from exactk.methods import registry
from exactk.methods.base import Method
from exactk.params import Anything, Integer, ListOf

__all__ = ["ALL_FEATURES", "FigureSpec", "Measure", "MethodSpec", "Recipe", "Split", "method_class"]

# In place of a method: no selection at all.
ALL_FEATURES = "all"


@dataclass(frozen=True)
class MethodSpec:
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

    def check(self, where: str) -> None:
        """Raise if the method, an option or a value of the grid is not one.

        Parameters
        ----------
        where : str
            What an error calls the place of this method.
        """
        place = f"{where}: method {self.label!r}"
        for name, values in self.grid.items():
            ListOf(Anything("a value"), least=1)(f"{place}: grid.{name}", values)
            if name in self.options:
                raise InputError(
                    f"{place}: {name!r} is both in options and in the grid", parameter="options"
                )
        if self.method == ALL_FEATURES:
            return
        cls = method_class(self.method)
        for options in self.settings():
            try:
                registry.check_options(self.method, cls.option_names(), options)
                cls(**options).check()
            except MissingExtraError:
                # The recipe is right; a run leaves the method out and says how to get it.
                continue
            except ExactkError as error:
                raise InputError(f"{place}: {error}", parameter="options") from error
            except Exception as error:
                # Of a method of one's own anything may come.
                raise InputError(
                    f"{place} cannot be made with {options}: {type(error).__name__}: {error}",
                    parameter="options",
                ) from error

    def lacks(self) -> str:
        """Return how to install what the method needs and is not there; empty if nothing."""
        if self.method == ALL_FEATURES:
            return ""
        cls = method_class(self.method)
        try:
            cls(**self.settings()[0]).check()
        except MissingExtraError:
            return f'pip install "exactk[{cls.extra}]"'
        return ""

    def settings(self) -> list[dict[str, Any]]:
        """Every setting of the grid, the fixed options included.

        Examples
        --------
        >>> MethodSpec("GSR-FS", "gsrfs", {"p": 0.5}, {"lam": [0.1, 1]}).settings()
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
        Accuracies on the test part, by `exactk.papers.experiments.classifiers.accuracy`.
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
class FigureSpec:
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
    name, title, paper, description : str
    reproduces : sequence of str
        Tables and figures of the paper, such as ``"table 2"``.
    protocol : {"fit", "classify", "regress"}
    datasets : sequence of str
    sizes : sequence of int
        Every k.
    repeats : int
    methods : sequence of MethodSpec
    split : Split
    measure : Measure
    views : sequence of FigureSpec
    published : mapping
        measure → data set → k → label → value or [value, standard deviation], in the paper's units.
    quick : mapping
        What a small version takes in place of the above.
    exclusive : bool
        Whether times are the point, so that nothing else may run beside a cell.
    time_limit : float
        Seconds for one solve.
    published_repeats : int or None
        Repeats behind a printed mean, where they are not those of this recipe.
    small : bool
        Whether this is the small version.
    """

    name: str
    title: str
    protocol: str
    datasets: Sequence[str]
    sizes: Sequence[int]
    repeats: int
    methods: Sequence[MethodSpec]
    paper: str = "exactk"
    reproduces: Sequence[str] = ()
    description: str = ""
    split: Split = field(default_factory=Split)
    measure: Measure = field(default_factory=Measure)
    views: Sequence[FigureSpec] = ()
    published: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    exclusive: bool = False
    time_limit: float = 300.0
    published_repeats: int | None = None
    small: bool = False

    @property
    def aliases(self) -> list[str]:
        """Further names: the paper with each table or figure, as in ``gsrfs-figure3``."""
        return [f"{self.paper}-{what.replace(' ', '')}" for what in self.reproduces]

    def variant(self, label: str) -> MethodSpec:
        """Return the method with this label."""
        return next(variant for variant in self.methods if variant.label == label)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as in the file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "recipe") -> Recipe:
        """Make a recipe of plain values, each of them checked."""
        from exactk.papers.experiments.reading import make_recipe

        return make_recipe(values, where)

    def restrict(
        self,
        *,
        quick: bool = False,
        methods: Sequence[str] = (),
        without: Sequence[str] = (),
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
        without : sequence of str
            Methods to leave out, by label or name.
        datasets : sequence of str
            Any names; those outside the recipe join it.
        repeats : int or None
        sizes : sequence of int

        Examples
        --------
        >>> from exactk.papers.experiments.reading import read_recipe
        >>> recipe = read_recipe("cdlsr-table2").restrict(methods=["cdlsr"], sizes=[5])
        >>> [variant.label for variant in recipe.methods], recipe.sizes
        (['CD-LSR'], [5])
        """
        recipe = replace(self, published_repeats=self.published_repeats or self.repeats)
        if quick and self.quick:
            small = {name: value for name, value in self.quick.items() if name != "methods"}
            recipe = replace(recipe, small=True, **small)
            chosen = self.quick.get("methods")
            if chosen:
                recipe = replace(recipe, methods=[self.variant(label) for label in chosen])
        if methods:
            # A label named on purpose counts even where the small version leaves it out.
            recipe = replace(recipe, methods=self._find_methods(methods))
        if without:
            recipe = replace(recipe, methods=recipe._all_but(without))
        changes: dict[str, Any] = {
            "datasets": list(datasets),
            "sizes": list(sizes),
            "repeats": repeats,
        }
        recipe = replace(recipe, **{name: value for name, value in changes.items() if value})
        if repeats is not None:
            Integer(1)("repeats", repeats)
        return recipe

    def _all_but(self, unwanted: Sequence[str]) -> list[MethodSpec]:
        left = list(self.methods)
        for name in unwanted:
            known = [word for v in self.methods for word in (v.label, v.method)]
            if name.lower() not in [word.lower() for word in known]:
                raise InputError(
                    f"recipe {self.name!r} has no method {name!r} to leave out"
                    f"{did_you_mean(name, known)} (it has "
                    f"{join_items([v.label for v in self.methods])})", parameter="methods",
                )  # fmt: skip
            left = [v for v in left if name.lower() not in (v.label.lower(), v.method.lower())]
        if not left:
            raise InputError(
                f"nothing is left of recipe {self.name!r} without all its methods",
                parameter="methods",
            )
        return left

    def _find_methods(self, wanted: Sequence[str]) -> list[MethodSpec]:
        found: list[MethodSpec] = []
        for name in wanted:
            low = name.lower()
            matches = [v for v in self.methods if v.label.lower() == low]
            matches = matches or [v for v in self.methods if v.method.lower() == low]
            if not matches:
                if low not in registry.names() and ":" not in name:
                    known = [v.label for v in self.methods] + list(registry.names())
                    raise InputError(
                        f"recipe {self.name!r} has no method {name!r}, and none of that name is "
                        f"registered{did_you_mean(name, known)} (exactk list methods shows them",
                        parameter="methods", hint="package.module:Class names one of your own)",
                    )  # fmt: skip
                target = low if low in registry.names() else name
                ridge = 0.0 if self.protocol == "fit" else "auto"
                matches = [MethodSpec(name, target, ridge=ridge)]
                matches[0].check("--methods")
            found += [match for match in matches if match not in found]
        return found


def method_class(target: str) -> type[Method]:
    """Return the class of a registered name, or of ``package.module:Class``."""
    if ":" not in target:
        return registry.method_class(target)
    module, _, name = target.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:
        # Whatever a module of one's own does when it is read, it must not end the command.
        raise InputError(
            f"method {target!r} cannot be imported ({type(error).__name__}: {error})",
            parameter="methods",
            hint=(
                "it is read "
                "as package.module:Class, from the folder of the recipe or wherever Python looks"
            ),
        ) from error
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise InputError(
            f"method {target!r} is not a subclass of exactk.methods.base.Method",
            parameter="methods",
        )
    return found
