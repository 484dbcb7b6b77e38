"""Every public parameter once: its type, default, help text and command-line option.

Estimators, functions, error messages and the command line use these definitions. The module
imports neither numpy nor scikit-learn, so that ``exactk --help`` starts quickly.
"""

from __future__ import annotations

import inspect
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Set, Sized
from dataclasses import dataclass, field
from functools import wraps
from math import inf
from typing import Any, Literal, ParamSpec, TypeVar

from exactk.errors import InputError, suggest

__all__ = [
    "DEFAULTS",
    "PARAMS",
    "SECTIONS",
    "AnyOf",
    "Anything",
    "Boolean",
    "Check",
    "Choice",
    "Dictionary",
    "Instance",
    "Integer",
    "Items",
    "ListOf",
    "Number",
    "Param",
    "Seed",
    "String",
    "defaults_of",
    "validate",
    "validated",
]


@dataclass(frozen=True)
class Check(ABC):
    """The values that a parameter may have; its text is used in errors and help.

    Attributes
    ----------
    none : str
        What None means; empty if None is not allowed.
    """

    none: str = field(default="", kw_only=True)

    def __call__(self, name: str, value: Any) -> None:
        """Raise an `InputError` unless the value is allowed."""
        if value is None and self.none:
            return
        if not self.allows(value):
            raise InputError(parameter=name, value=value, expected=str(self), hint=self.hint(value))

    @abstractmethod
    def allows(self, value: Any) -> bool:
        """Return whether a value other than None is allowed."""

    def parse(self, text: str) -> Any:
        """Return the value that a text of the command line stands for.

        Raises
        ------
        ValueError
            The text stands for no allowed value.
        """
        value = self.convert(text)
        if not self.allows(value):
            raise ValueError(text)
        return value

    def convert(self, text: str) -> Any:
        """Return the text as the type of this check."""
        return text

    def hint(self, value: Any) -> str:
        """Return how to fix this value, if that is known."""
        return ""

    def _with_none(self, text: str) -> str:
        return f"{text}, or None ({self.none})" if self.none else text


@dataclass(frozen=True)
class Number(Check):
    """A number in a range such as ``(0, 2]``: a bracket includes the end, a parenthesis does not.

    Examples
    --------
    >>> print(Number("(0, 2]"))
    a number in (0, 2]
    >>> Number("(0, 2]")("r", 3)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: r must be a number in (0, 2], not 3
    >>> Number("[0, inf)").parse("0.5")
    0.5
    """

    range: str = "(-inf, inf)"

    def __str__(self) -> str:
        """Return the expected value for an error."""
        return self._with_none(f"a number in {self.range}")

    def allows(self, value: Any) -> bool:  # noqa: D102
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return False
        # Linear algebra has no long double; other types of numbers have no dtype.
        kind: Any = type(value)
        if kind not in (int, float) and getattr(value, "itemsize", 16) > 8:
            return False
        low, high = (float(part) for part in self.range[1:-1].split(","))
        try:
            number = float(value)
        except OverflowError:
            return False
        above = number >= low if self.range[0] == "[" else number > low
        below = number <= high if self.range[-1] == "]" else number < high
        return above and below

    def convert(self, text: str) -> Any:  # noqa: D102
        return float(text)


@dataclass(frozen=True)
class Integer(Check):
    """A whole number in a range.

    Examples
    --------
    >>> Integer(1)("max_iter", 0)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: max_iter must be a whole number of at least 1, not 0
    >>> print(Integer(1, 9))
    a whole number from 1 to 9
    """

    least: int = 0
    most: int | None = None

    def __str__(self) -> str:
        """Return the expected value for an error."""
        if self.most is not None:
            return self._with_none(f"a whole number from {self.least} to {self.most}")
        return self._with_none(f"a whole number of at least {self.least}")

    def allows(self, value: Any) -> bool:  # noqa: D102
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return whole and self.least <= value <= (inf if self.most is None else self.most)

    def convert(self, text: str) -> Any:  # noqa: D102
        return int(text)


@dataclass(frozen=True)
class Choice(Check):
    """One of a few words or numbers.

    Examples
    --------
    >>> Choice(("l2", "l1"))("row_norm", "l3")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: row_norm must be 'l2' or 'l1', not 'l3'
    """

    options: tuple[Any, ...] = ()

    def __str__(self) -> str:
        """Return the expected value for an error."""
        shown = [repr(word) for word in self.options]
        if len(shown) == 1:
            return self._with_none(shown[0])
        return self._with_none(" or ".join([", ".join(shown[:-1]), shown[-1]]))

    def allows(self, value: Any) -> bool:  # noqa: D102
        if isinstance(value, str):
            return str(value) in self.options
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return whole and int(value) in self.options

    def convert(self, text: str) -> Any:  # noqa: D102
        return next((option for option in self.options if str(option) == text), text)

    def hint(self, value: Any) -> str:  # noqa: D102
        words = [word for word in self.options if isinstance(word, str)]
        return suggest(value, words) if isinstance(value, str) and words else ""


@dataclass(frozen=True)
class Boolean(Check):
    """True or False.

    Examples
    --------
    >>> Boolean()("equal_var", 1)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: equal_var must be True or False, not 1
    """

    def __str__(self) -> str:
        """Return the expected value for an error."""
        return self._with_none("True or False")

    def allows(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")

    def convert(self, text: str) -> Any:  # noqa: D102
        return {"true": True, "false": False}.get(text.lower(), text)


@dataclass(frozen=True)
class Seed(Check):
    """The seed of a random generator, or a NumPy generator; None is a fixed seed.

    Examples
    --------
    >>> Seed()("random_state", -1)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: random_state must be None, an integer that is zero or more, or a
    NumPy generator, not -1
    """

    none: str = field(default="a fixed seed", kw_only=True)

    def __str__(self) -> str:
        """Return the expected value for an error."""
        return "None, an integer that is zero or more, or a NumPy generator"

    def allows(self, value: Any) -> bool:  # noqa: D102
        kind = type(value)
        if kind.__module__.startswith("numpy.random"):
            return kind.__name__ in ("Generator", "RandomState")
        return Integer(0).allows(value)

    def convert(self, text: str) -> Any:  # noqa: D102
        return int(text)


@dataclass(frozen=True)
class Anything(Check):
    """A value that can be checked only together with the data; the text describes it."""

    text: str = ""

    def __str__(self) -> str:
        """Return the expected value for the help."""
        return self.text

    def allows(self, value: Any) -> bool:  # noqa: D102
        return True


@dataclass(frozen=True)
class Instance(Check):
    """An object of a class, or of a class derived from it, which is named and not imported.

    Examples
    --------
    >>> from exactk import AutoK
    >>> Instance("AutoK").allows(AutoK()), Instance("AutoK").allows(5)
    (True, False)
    """

    name: str = ""

    def __str__(self) -> str:
        """Return the expected value for an error."""
        article = "an" if self.name[0] in "AEIOU" else "a"
        return self._with_none(f"{article} {self.name} object")

    def allows(self, value: Any) -> bool:  # noqa: D102
        return any(
            kind.__name__ == self.name and kind.__module__.startswith("exactk.")
            for kind in type(value).__mro__
        )


@dataclass(frozen=True)
class AnyOf(Check):
    """A value that one of several checks allows.

    Examples
    --------
    >>> print(AnyOf((Choice(("auto",)), Number("[0, inf)"))))
    'auto' or a number in [0, inf)
    >>> AnyOf((Choice(("auto",)), Number("[0, inf)"))).parse("2")
    2.0
    """

    checks: tuple[Check, ...] = ()

    def __str__(self) -> str:
        """Return the expected value for an error."""
        shown = [str(check) for check in self.checks]
        return self._with_none(" or ".join([", ".join(shown[:-1]), shown[-1]]))

    def allows(self, value: Any) -> bool:  # noqa: D102
        return any(check.allows(value) for check in self.checks)

    def parse(self, text: str) -> Any:  # noqa: D102
        for check in self.checks:
            try:
                return check.parse(text)
            except ValueError:
                continue
        raise ValueError(text)

    def hint(self, value: Any) -> str:  # noqa: D102
        return next((hint for hint in (check.hint(value) for check in self.checks) if hint), "")


@dataclass(frozen=True)
class String(Check):
    """A text; an empty one only if `empty` allows it.

    Examples
    --------
    >>> String()("title", "")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: title must be a text that is not empty, not ''
    """

    empty: bool = False

    def __str__(self) -> str:
        """Return the expected value for an error."""
        return self._with_none("a text" if self.empty else "a text that is not empty")

    def allows(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, str) and (self.empty or bool(value.strip())) and "\0" not in value


@dataclass(frozen=True)
class ListOf(Check):
    """A list of values of one kind.

    Examples
    --------
    >>> ListOf(String(), least=1)("datasets", "wine")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: datasets must be a list, each a text that is not empty, not 'wine'
    """

    of: Check = field(default_factory=String)
    least: int = 0

    def __str__(self) -> str:
        """Return the expected value for an error."""
        some = f" of {self.least} or more" if self.least > 1 else ""
        return self._with_none(f"a list{some}, each {self.of}")

    def allows(self, value: Any) -> bool:  # noqa: D102
        listed = isinstance(value, (list, tuple)) and len(value) >= self.least
        return listed and all(self.of.allows(item) for item in value)


@dataclass(frozen=True)
class Items(Check):
    """A list, an array or an index of names, numbers, or True and False.

    Attributes
    ----------
    text : str
        What the items are.
    kinds : tuple of type
        Types of an item.
    least : int
        Smallest number of items.
    alone : bool
        Whether one item, or a set, is allowed.
    instance : str
        Class of exactk whose objects are items, too.
    objects : tuple of str
        Attributes of other objects that are allowed: they know the items.

    Examples
    --------
    >>> Items("a list of column names")("drop", [3.5])
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: drop must be a list of column names, not [3.5]
    """

    text: str = ""
    kinds: tuple[type, ...] = (str, numbers.Integral)
    least: int = 0
    alone: bool = False
    instance: str = ""
    objects: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the expected value for an error."""
        return self._with_none(self.text)

    def allows(self, value: Any) -> bool:  # noqa: D102
        if any(hasattr(value, name) for name in self.objects):
            return True
        if isinstance(value, (str, numbers.Integral)) or self._is_object(value):
            is_item = self._is_item(value) and not isinstance(value, bool)
            return self.alone and is_item
        listed = isinstance(value, Iterable) and isinstance(value, Sized)
        if not listed or isinstance(value, (bytes, bytearray, Mapping)):
            return False
        if getattr(value, "ndim", 1) != 1 or (isinstance(value, Set) and not self.alone):
            return False
        # Items of an array are compared as Python values.
        items = value.tolist() if hasattr(value, "tolist") else list(value)
        return len(items) >= self.least and all(map(self._is_item, items))

    def _is_item(self, item: Any) -> bool:
        is_flag = self.kinds != (str,) and Boolean().allows(item)
        return isinstance(item, self.kinds) or is_flag or self._is_object(item)

    def _is_object(self, item: Any) -> bool:
        return bool(self.instance) and Instance(self.instance).allows(item)


@dataclass(frozen=True)
class Dictionary(Check):
    """Names with values.

    Examples
    --------
    >>> Dictionary()("options", 5)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: options must be a table of names and values, not 5
    """

    def __str__(self) -> str:
        """Return the expected value for an error."""
        return self._with_none("a table of names and values")

    def allows(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


Section = Literal["Input", "Features", "Constraints", "Search", "Output"]
SECTIONS: tuple[Section, ...] = ("Input", "Features", "Constraints", "Search", "Output")


@dataclass(frozen=True)
class Param:
    """One public parameter.

    Attributes
    ----------
    name : str
        Its name in Python and in a configuration file.
    section : str
        Heading of the help under which it stands.
    default : object
    check : Check
    help : str
        Help text of the option: one or two short sentences.
    option : str
        Name of the command-line option; empty if it has none.
    metavar : str
        What the help shows for the value.
    """

    name: str
    section: Section
    default: Any
    check: Check
    help: str
    option: str = ""
    metavar: str = ""


COLUMNS = Items("a list of column names or numbers", alone=True)
NAMES = Items("a list of column names", (str,))
# A larger number of sets, samples or permutations is a slip.
LARGEST = 1_000_000
LIMIT = Number("(0, inf]", none="no limit")

PARAMS: dict[str, Param] = {
    param.name: param
    for param in (
        Param("columns", "Input", None, Items("a list of one or more column names", (str,), 1),
              "Use only these columns as features.", "--columns", "COLUMN,..."),
        Param("drop", "Input", (), NAMES,
              "Ignore these columns.", "--drop", "COLUMN,..."),
        Param("weights", "Input", None, String(empty=True),
              "Column with the weight of each row.", "--weights", "COLUMN"),
        Param("groups", "Input", None, Anything("one label for each row"),
              "Column with the group of each row, such as a patient. Rows of one group stay "
              "together in every split.", "--groups", "COLUMN"),
        Param("task", "Input", "auto", Choice(("auto", "classification", "regression")),
              "Type of the target.", "--task"),
        Param("class_weight", "Input", None,
              AnyOf((Choice(("balanced",)), Anything("a dict of label to weight")),
                    none="all classes have weight 1"),
              "Weight classes inversely to their frequency.", "--class-weight"),
        Param("sample_weight", "Input", None, Anything("one weight for each row"),
              "Weight of each row."),
        Param("classes", "Input", None,
              Items("a list of labels: text, numbers, or True and False", (str, numbers.Real), 1),
              "All class labels, if they are known in advance. Any other label is an error."),
        Param("layer", "Input", None, String(none="the matrix X"),
              "Layer of an .h5ad file to use in place of X."),
        Param("gene_names", "Input", None, String(none="the index of var"),
              "Column of var with the feature names of an .h5ad file."),
        Param("memory_limit", "Input", None, Anything("a number of bytes, such as 8G"),
              "Maximum memory for the Gram matrix or loaded rows, such as 8G.",
              "--memory-limit", "BYTES"),
        Param("k", "Features", 10,
              AnyOf((Integer(1), Choice(("auto",)), Instance("AutoK"))),
              "Number of features; auto chooses it.", "-k", "NUMBER|auto"),
        Param("features", "Features", None,
              Items("a list of columns, a Result or a fitted selector", alone=True,
                    objects=("support", "result", "result_", "get_support")),
              "Existing selection, in place of -k.", "--features", "COLUMN,..."),
        Param("k_max", "Features", None, Integer(1, none="50, or fewer for a small table"),
              "Largest number of features to try.", "--k-max", "NUMBER"),
        Param("criterion", "Features", "cv", Choice(("cv", "bic", "ebic", "aicc", "cp")),
              "How to choose the number of features: cross-validation or an information "
              "criterion.", "--criterion"),
        Param("cv", "Features", None,
              Anything("a number of folds of at least 2, a scikit-learn splitter, or a list of "
                       "(train, test)"),
              "Number of cross-validation folds.", "--folds", "NUMBER"),
        Param("rule", "Features", "one_se", Choice(("one_se", "paired", "best")),
              "one_se: smallest size within one standard error of the best; paired: the same "
              "with the standard error of the difference; best: the best size.", "--rule"),
        Param("scoring", "Features", None, Anything("the name of a scikit-learn score, or a "
              "callable", none="accuracy for classes, r2 for numbers"),
              "Score of scikit-learn, such as roc_auc.", "--scoring", "NAME"),
        Param("estimator", "Features", None, Anything("a scikit-learn estimator, or 'logistic', "
              "'ridge', 'svm', 'knn' or 'forest'", none="logistic or ridge regression"),
              "Estimator that is trained on the selected features.", "--estimator", "NAME"),
        Param("constraints", "Constraints", None,
              AnyOf((Instance("Constraints"), Dictionary()), none="no constraints"),
              "Constraints on the selection."),
        Param("include", "Constraints", None, COLUMNS,
              "Always select these columns.", "--include", "COLUMN,..."),
        Param("exclude", "Constraints", None, COLUMNS,
              "Never select these columns.", "--exclude", "COLUMN,..."),
        Param("feature_groups", "Constraints", None,
              Anything("a dict of names to lists of columns, a list of lists, or one label for "
                       "each column"),
              "Columns that are selected together or not at all."),
        Param("count", "Constraints", "groups", Choice(("groups", "columns")),
              "Count a group as one feature or as its number of columns."),
        Param("quotas", "Constraints", None,
              Anything("a dict of names to {columns, at_least, at_most}"),
              "Minimum and maximum number of features from a set of columns."),
        Param("costs", "Constraints", None,
              Anything("a dict of columns to costs, or one cost for each column"),
              "Cost of each column."),
        Param("budget", "Constraints", None, Number("[0, 1e150]", none="no limit"),
              "Maximum total cost of the selected columns."),
        Param("max_correlation", "Constraints", None, Number("[0, 1]", none="no limit"),
              "Largest absolute correlation of two selected columns.",
              "--max-correlation", "R"),
        Param("method", "Search", "exchange",
              AnyOf((String(), Instance("Method"))),
              "Selection method, such as exchange or greedy; see exactk list methods.",
              "--method", "NAME[:PARAMETER=VALUE,...]"),
        Param("compare_with", "Search", (),
              Items("a list of method names or method objects", (str,), alone=True,
                    instance="Method"),
              "Other methods to evaluate on the same folds, such as selectkbest, rfe or l1.",
              "--compare-with", "NAME,..."),
        Param("loss", "Search", "squared", AnyOf((String(), Instance("Loss"))),
              "Loss to minimise, such as squared, logistic or huber; see exactk list losses.",
              "--loss", "NAME[:PARAMETER=VALUE,...]"),
        Param("ridge", "Search", "auto", AnyOf((Choice(("auto", "cv")), Number("[0, 1e100]")),
              none="that of the Problem, or auto"),
              "Ridge penalty; auto depends on the shape of the table.",
              "--ridge", "auto|cv|NUMBER"),
        Param("effort", "Search", None, Number("[0, inf]", none="the default of the method"),
              "Search effort: 0 stops at the first set that no swap improves, 1 is the default, "
              "inf searches until the time limit.", "--effort", "NUMBER"),
        Param("time_limit", "Search", None, LIMIT,
              "Maximum time in seconds; the best set found so far is returned.",
              "--time-limit", "SECONDS"),
        Param("certify", "Search", False, AnyOf((Boolean(), Number("(0, inf]"))),
              "Try for SECONDS to prove optimality; return any better set.",
              "--certify", "SECONDS"),
        Param("random_state", "Search", None, Seed(), "Random seed.", "--seed", "NUMBER"),
        Param("n_jobs", "Search", None, AnyOf((Integer(1), Choice((-1,))), none="all processors"),
              "Number of threads.", "--jobs", "NUMBER"),
        Param("gap", "Search", 1e-6, Number("[0, 1]"),
              "Stop when the gap is this small, as a share of the objective."),
        Param("n_best", "Search", None,
              Integer(1, LARGEST, none="10, or up to 1,000 with within"),
              "List the N best sets.", "--best", "N"),
        Param("within", "Search", None, Number("[0, inf)", none="no limit"),
              "List only sets whose objective is larger by at most this share.",
              "--within", "SHARE"),
        Param("n_subsamples", "Search", 100, Integer(2, LARGEST), "Number of half-samples.",
              "--subsamples", "NUMBER"),
        Param("threshold", "Search", 0.9, Number("(0.5, 1]"),
              "Features selected at least this often are stable.", "--threshold", "SHARE"),
        Param("negligible", "Search", 0.05, Number("[0, 0.5)"),
              "Features selected at most this often are rare."),
        Param("level", "Search", 0.95, Number("(0, 1)"), "Level of the confidence intervals."),
        Param("n_permutations", "Search", 0, Integer(0, LARGEST),
              "Number of shuffled targets for the permutation test.",
              "--permutations", "NUMBER"),
        Param("tolerance", "Search", 0.02, Number("[0, inf)"),
              "List alternative sets whose objective is larger by at most this share.",
              "--tolerance", "SHARE"),
        Param("max_sets", "Search", 100, Integer(1, LARGEST),
              "Largest number of alternative sets.",
              "--max-sets", "NUMBER"),
        Param("why_not", "Search", None, COLUMNS,
              "Explain why these columns are not selected.", "--why-not", "COLUMN,..."),
        Param("verbose", "Output", 0, Integer(0), "1 shows a progress bar on a terminal."),
    )
}  # fmt: skip

# Functions of a table keep the ridge and the loss of a Problem unless others are given.
OF_QUESTIONS: dict[str, Any] = {"k": None, "ridge": None, "loss": None}
# Defaults that differ from `PARAMS`, by function or class.
DEFAULTS: dict[str, dict[str, Any]] = {
    "TopKClassifier": {"loss": "logistic"},
    "certify": {**OF_QUESTIONS, "time_limit": 60.0},
    "certify_path": {**OF_QUESTIONS, "time_limit": 60.0},
    "best_sets": {**OF_QUESTIONS, "time_limit": 60.0},
    "choose_k": OF_QUESTIONS,
    "evaluate": OF_QUESTIONS,
    "explain": OF_QUESTIONS,
    "investigate": {
        **OF_QUESTIONS, "k": "auto", "certify": 60.0, "n_permutations": 100,
        "compare_with": ("selectkbest", "rfe", "l1"),
    },
    "stability": OF_QUESTIONS,
}  # fmt: skip


def validate(parameters: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
    """Check the values of public parameters; names that are not in `PARAMS` are ignored.

    Parameters
    ----------
    parameters : dict
    defaults : dict or None
        None is allowed for a parameter whose default is None; for any parameter if there are no
        `defaults`.

    Examples
    --------
    >>> validate({"k": 0})
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: k must be a whole number of at least 1, 'auto' or an AutoK object,
    not 0
    """
    for name, value in parameters.items():
        param = PARAMS.get(name)
        if param is None:
            continue
        is_default = value is None and (defaults is None or defaults.get(name) is None)
        if not is_default and not (value is None and param.check.none):
            _check(param, value)


def _check(param: Param, value: Any) -> None:
    if value is None and isinstance(param.check, Anything):
        raise InputError(parameter=param.name, value=None, expected=str(param.check))
    param.check(param.name, value)


P = ParamSpec("P")
R = TypeVar("R")


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the defaults in the signature of a function.

    Examples
    --------
    >>> defaults_of(lambda X, *, k=5: X)["k"]
    5
    """
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def validated(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a public function that are in `PARAMS` before it runs."""
    signature = inspect.signature(function)
    defaults = defaults_of(function)
    rest = [p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = dict(signature.bind(*args, **kwargs).arguments)
        for name in rest:
            given.update(given.pop(name, {}))
        validate(given, defaults)
        return function(*args, **kwargs)

    return checked
