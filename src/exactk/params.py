"""What a parameter may be, said once: the check, its error and its line in the help agree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from exactk.errors import InputError, did_you_mean

__all__ = [
    "Boolean",
    "Check",
    "Choice",
    "Dictionary",
    "Integer",
    "ListOf",
    "Number",
    "Seed",
    "String",
    "Unchecked",
]


@dataclass(frozen=True)
class Check(ABC):
    """What a parameter may be; called with its name and value, it raises if they do not agree.

    Attributes
    ----------
    none : str
        What None stands for; empty where None is not allowed.
    """

    none: str = field(default="", kw_only=True)

    def __call__(self, name: str, value: Any) -> None:
        """Raise an `InputError` unless the value is allowed."""
        if value is None and self.none:
            return
        if not self.allows(value):
            raise InputError(f"{name} must be {self}, not {value!r}{self.hint(value)}")

    @abstractmethod
    def allows(self, value: Any) -> bool:
        """Whether a value other than None is allowed."""

    def hint(self, value: Any) -> str:
        """What to add to the error about this value."""
        return ""

    def _with_none(self, text: str) -> str:
        return f"{text}, or None ({self.none})" if self.none else text


@dataclass(frozen=True)
class Number(Check):
    """A number in a range such as ``(0, 2]``: a bracket belongs to it, a parenthesis not.

    Examples
    --------
    >>> print(Number("(0, 2]"))
    a number in (0, 2]
    >>> Number("(0, 2]")("r", 3)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: r must be a number in (0, 2], not 3
    """

    range: str = "(-inf, inf)"

    def __str__(self) -> str:
        """Return what to say in an error."""
        return self._with_none(f"a number in {self.range}")

    def allows(self, value: Any) -> bool:  # noqa: D102
        if isinstance(value, (bool, np.bool_)):
            return False
        # No long double: linear algebra has none.
        if not isinstance(value, (int, float, np.integer, np.floating)) or (
            isinstance(value, np.longdouble) and np.longdouble is not np.float64
        ):
            return False
        low, high = (float(part) for part in self.range[1:-1].split(","))
        try:
            number = float(value)
        except OverflowError:
            return False
        above = number >= low if self.range[0] == "[" else number > low
        below = number <= high if self.range[-1] == "]" else number < high
        return above and below


@dataclass(frozen=True)
class Integer(Check):
    """A whole number of at least some value, and perhaps at most another.

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
        """Return what to say in an error."""
        if self.most is not None:
            return self._with_none(f"a whole number from {self.least} to {self.most}")
        return self._with_none(f"a whole number of at least {self.least}")

    def allows(self, value: Any) -> bool:  # noqa: D102
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        return whole and self.least <= value <= (inf if self.most is None else self.most)


@dataclass(frozen=True)
class Choice(Check):
    """One of a few words or numbers.

    Examples
    --------
    >>> Choice(options=("l2", "l1"))("row_norm", "l3")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: row_norm must be 'l2' or 'l1', not 'l3'
    """

    options: tuple[Any, ...] = ()

    def __str__(self) -> str:
        """Return what to say in an error."""
        shown = [repr(word) for word in self.options]
        return self._with_none(" or ".join([", ".join(shown[:-1]), shown[-1]]))

    def allows(self, value: Any) -> bool:  # noqa: D102
        if isinstance(value, str):
            return str(value) in self.options
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        return whole and int(value) in self.options

    def hint(self, value: Any) -> str:  # noqa: D102
        words = [word for word in self.options if isinstance(word, str)]
        return did_you_mean(value, words) if isinstance(value, str) and words else ""


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
        """Return what to say in an error."""
        return self._with_none("True or False")

    def allows(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, (bool, np.bool_))


@dataclass(frozen=True)
class Seed(Check):
    """Something to make a random generator of; None is a fixed seed.

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
        """Return what to say in an error."""
        return "None, an integer that is zero or more, or a NumPy generator"

    def allows(self, value: Any) -> bool:  # noqa: D102
        if isinstance(value, (np.random.Generator, np.random.RandomState)):
            return True
        return Integer(0).allows(value)


@dataclass(frozen=True)
class Unchecked(Check):
    """Something that can be checked only beside a problem: no more than a line in the help."""

    text: str = ""

    def __str__(self) -> str:
        """Return what to say in the help."""
        return self.text

    def allows(self, value: Any) -> bool:  # noqa: D102
        return True


@dataclass(frozen=True)
class String(Check):
    """A text, not empty unless `empty` says so.

    Examples
    --------
    >>> String()("title", "")
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: title must be a text that is not empty, not ''
    """

    empty: bool = False

    def __str__(self) -> str:
        """Return what to say in an error."""
        return self._with_none("a text" if self.empty else "a text that is not empty")

    def allows(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, str) and (self.empty or bool(value.strip())) and "\0" not in value


@dataclass(frozen=True)
class ListOf(Check):
    """A list of things of one kind, with at least so many of them.

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
        """Return what to say in an error."""
        some = f" of {self.least} or more" if self.least > 1 else ""
        return self._with_none(f"a list{some}, each {self.of}")

    def allows(self, value: Any) -> bool:  # noqa: D102
        listed = isinstance(value, (list, tuple)) and len(value) >= self.least
        return listed and all(self.of.allows(item) for item in value)


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
        """Return what to say in an error."""
        return self._with_none("a table of names and values")

    def allows(self, value: Any) -> bool:  # noqa: D102
        return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
