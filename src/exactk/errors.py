"""The errors that exactk raises: what is wrong, with which parameter, and how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ConstantTargetError",
    "ExactkError",
    "InputError",
    "MissingExtraError",
    "Row",
    "Setting",
    "Text",
    "UnknownMethodError",
    "UnknownOptionError",
    "did_you_mean",
    "join_items",
    "render",
    "show_value",
    "suggest",
]

# A word is suggested only if it is nearly the same as the word that was given.
SIMILAR = 0.8
# Characters of a value that a message shows.
MOST_SHOWN = 80


class _NoValue:
    """Marks a value that was not given; None is a value."""

    def __repr__(self) -> str:
        return "no value"

    def __reduce__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Any = _NoValue()


@dataclass(frozen=True)
class Setting:
    """A parameter that a message mentions, with a value if one is meant.

    Python shows it as ``criterion='cv'``, the command line as ``--criterion cv``.

    Examples
    --------
    >>> str(Setting("criterion", "cv")), str(Setting("memory_limit"))
    ("criterion='cv'", 'memory_limit')
    """

    name: str
    value: Any = NO_VALUE

    def __str__(self) -> str:
        """Return the parameter as Python code."""
        return self.name if self.value is NO_VALUE else f"{self.name}={show_value(self.value)}"


class Row(str):
    """A row of a table in a message, counted from 0; a file of text has lines in its place.

    Examples
    --------
    >>> Row(3), Row(3).line
    ('row 3', 'line 5')
    """

    number: int

    def __new__(cls, number: int) -> Row:
        """Make the text of a row."""
        made = super().__new__(cls, f"row {number}")
        made.number = int(number)
        return made

    def __getnewargs__(self) -> tuple[int]:  # type: ignore[override]
        """Return what a copy is made of."""
        return (self.number,)

    @property
    def line(self) -> str:
        """Line of a file whose first line is the header."""
        return f"line {self.number + 2}"


Text = str | Setting | Sequence[str | Setting]


class ExactkError(Exception):
    """Base class of all errors that exactk raises on purpose.

    Parameters
    ----------
    message : str, Setting or sequence of both
        What is wrong; made from `parameter`, `value` and `expected` if it is empty.
    parameter : str or None
        Name of the parameter that is wrong.
    value : object
        Its value.
    expected : str
        What the parameter may be, such as "a whole number of at least 1".
    hint : str, Setting or sequence of both
        How to fix it.

    Examples
    --------
    >>> error = InputError(parameter="k", value=0, expected="a whole number of at least 1")
    >>> print(error)
    k must be a whole number of at least 1, not 0
    >>> print(
    ...     InputError("all folds are too small", parameter="cv", hint=("use ", Setting("cv", 3)))
    ... )
    all folds are too small; use cv=3
    """

    def __init__(
        self,
        message: Text = "",
        *,
        parameter: str | None = None,
        value: Any = NO_VALUE,
        expected: str = "",
        hint: Text = "",
    ) -> None:
        self.message = message
        self.parameter = parameter
        self.value = value
        self.expected = expected
        self.hint = hint
        super().__init__(self.text())

    def text(self, show: Callable[[Setting], str] = str) -> str:
        """Return the message and the hint.

        Parameters
        ----------
        show : callable
            How to write a `Setting`.

        Examples
        --------
        >>> error = InputError("no folds", hint=("use ", Setting("criterion", "ebic")))
        >>> error.text(lambda setting: f"--{setting.name} {setting.value}")
        'no folds; use --criterion ebic'
        """
        message = render(self.message, show)
        if not message and self.parameter is not None:
            given = "" if self.value is NO_VALUE else f", not {show_value(self.value)}"
            message = f"{show(Setting(self.parameter))} must be {self.expected}{given}"
        hint = render(self.hint, show)
        return f"{message}; {hint}" if message and hint else message or hint

    def __reduce__(self) -> Any:
        """Keep all parts when the error is sent to another process."""
        state = (self.message, self.parameter, self.value, self.expected, self.hint)
        # Attributes that a subclass adds come last.
        return _restore, (type(self), state), dict(vars(self))


def _restore(kind: type[ExactkError], state: tuple[Any, ...]) -> ExactkError:
    message, parameter, value, expected, hint = state
    return kind(message, parameter=parameter, value=value, expected=expected, hint=hint)


def render(text: Text, show: Callable[[Setting], str] = str) -> str:
    """Return a text with its settings as Python code, or as `show` writes them.

    Examples
    --------
    >>> render(("set ", Setting("task", "regression")))
    "set task='regression'"
    """
    parts = [text] if isinstance(text, (str, Setting)) else text
    return "".join(show(part) if isinstance(part, Setting) else part for part in parts)


class InputError(ExactkError, ValueError):
    """A parameter or the data cannot be used; the message says which and how to fix it."""


class ConstantTargetError(InputError):
    """The target is the same in every row that has weight."""


class MissingExtraError(InputError):
    """An optional library is needed and not installed."""


class UnknownMethodError(InputError):
    """No method has this name."""


class UnknownOptionError(ExactkError, TypeError):
    """The method has no parameter of this name."""


def show_value(value: object) -> str:
    """Return a value as Python writes it, in one line that is not too long, whatever it is.

    Examples
    --------
    >>> show_value("x" * 100)[-6:], show_value(10**5000)
    ('xxx...', '<int>')
    """
    kind = type(value).__name__
    try:
        text = repr(value)
        if "\n" in text:
            shape = getattr(value, "shape", None)
            text = " ".join(text.split()) if shape is None else f"{kind} of shape {shape}"
    except Exception:  # the code of another library may raise anything
        text = f"<{kind}>"
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def join_items(items: Iterable[object], limit: int = 5, *, quoted: bool = True) -> str:
    """Join the first items for a message and count the rest.

    Examples
    --------
    >>> join_items(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    >>> join_items(["2 in 'a'", "1 in 'b'"], quoted=False)
    "2 in 'a', 1 in 'b'"
    """
    items = list(items)
    text = ", ".join(repr(str(item)) if quoted else str(item) for item in items[:limit])
    return text if len(items) <= limit else f"{text} and {len(items) - limit} more"


def suggest(name: str, known: Sequence[str]) -> str:
    """Return ``"did you mean 'x'?"`` if a known name is nearly the same, else an empty string.

    Examples
    --------
    >>> suggest("exchnage", ["greedy", "exchange"])
    "did you mean 'exchange'?"
    >>> suggest("zzz", ["greedy", "exchange"])
    ''
    """
    lowered = {other.lower(): other for other in known}
    match = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=SIMILAR)
    return f"did you mean {lowered[match[0]]!r}?" if match else ""


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return the suggestion as the end of a sentence: ``"; did you mean 'x'?"`` or nothing.

    Examples
    --------
    >>> did_you_mean("exchnage", ["greedy", "exchange"])
    "; did you mean 'exchange'?"
    """
    suggestion = suggest(name, known)
    return f"; {suggestion}" if suggestion else ""
