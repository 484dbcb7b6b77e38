"""What an investigation was asked to do, and the time and patience that it has."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from exactk._version import __version__
from exactk.errors import InputError
from exactk.methods.base import Method
from exactk.methods.registry import create, method_class
from exactk.model_selection.path_runner import Clock
from exactk.problem.problem import Problem
from exactk.result import Status

__all__ = ["PartRunner", "Settings", "versions"]

Found = TypeVar("Found")


@dataclass(frozen=True)
class Settings:
    """The parameters of `exactk.investigate` that are not about reading a table.

    Attributes
    ----------
    k : int or None
        None has it chosen.
    k_max, criterion, rule, cv, groups
        As in `exactk.choose_k`.
    method : str or Method
    options : mapping
        Parameters of the method beside its own.
    ridge : str or float
        The rule, or the number.
    certify : float
        Seconds for the proof.
    n_subsamples, n_permutations : int
    methods : sequence
        What the method is compared with.
    estimator, scoring
        What is trained on the chosen features, and scored.
    random_state : int or None
    verbose : int
    """

    k: int | None
    k_max: int | None
    criterion: str
    rule: str
    cv: Any
    groups: Any
    method: str | Method
    options: dict[str, Any]
    ridge: str | float
    certify: float
    n_subsamples: int
    n_permutations: int
    methods: Sequence[Any]
    estimator: Any
    scoring: Any
    random_state: int | None
    verbose: int

    @property
    def minimises(self) -> bool:
        """Whether the method chooses by the objective itself, as a proof does."""
        kind = method_class(self.method) if isinstance(self.method, str) else type(self.method)
        return kind.takes_losses

    @property
    def inner_folds(self) -> int | None:
        """Folds within the training rows of others, for which pairs of rows are no use."""
        whole = isinstance(self.cv, (int, np.integer)) and self.criterion == "cv"
        return int(self.cv) if whole else None

    @property
    def by_folds(self) -> dict[str, Any]:
        """What is said of folds, where there are any."""
        if self.criterion != "cv":
            return {"rule": self.rule}
        return {"rule": self.rule, "cv": self.cv, "groups": self.groups}

    @property
    def half_options(self) -> dict[str, Any]:
        """Options of the method on halves of the rows, which have an effort and seeds of theirs."""
        own = ("effort", "random_state")
        return {name: value for name, value in self.options.items() if name not in own}

    @property
    def method_name(self) -> str:
        """Name of the method."""
        method = self.method
        return method if isinstance(method, str) else type(method).__name__.lower()

    def is_expensive(self, problem: Problem) -> bool:
        """Whether a search is dear: columns of text and constraints are searched by units."""
        dear = problem.rules is not None and not problem.rules.is_simple
        return dear and self.method == "exchange"

    def fast_options(self, problem: Problem) -> dict[str, Any]:
        """Options for what is searched again and again: greedy and swaps alone where it is dear."""
        return {"effort": 0.0, **self.options} if self.is_expensive(problem) else self.options

    def own_method(self, problem: Problem | None = None) -> Method:
        """Return the method with all of its parameters, as an object of its own.

        With a problem it is as light as `fast_options` has it.
        """
        if isinstance(self.method, str):
            light = self.options if problem is None else self.fast_options(problem)
            return create(self.method, **light)
        copy: Method = clone(self.method)
        return copy.set_params(**self.options)


@dataclass
class PartRunner:
    """The parts of an investigation as they are done: what is left of the time, what is absent.

    Attributes
    ----------
    clock : Clock
    left : int
        Parts still to do, among which the time is shared out.
    missing_parts : dict of str to str
        Why a part is not there.
    stopped : bool
        Whether the user has stopped it.
    """

    clock: Clock
    left: int
    missing_parts: dict[str, str] = field(default_factory=dict)
    stopped: bool = False

    def seconds(self, parts: int = 1) -> float | None:
        """Return the time of the next part, or of one of so many pieces of it."""
        share = self.clock.share(max(self.left, 1))
        return None if share is None else share / parts

    def run_part(self, part: str, call: Callable[[], Found]) -> Found | None:
        """Do one part; None where it cannot be had, or the user has had enough."""
        found = None
        if self.stopped:
            self.missing_parts[part] = "stopped by the user before it was begun"
        elif self.clock.is_over:
            self.missing_parts[part] = "the time limit came before it was begun"
        else:
            try:
                found = call()
                self.stopped = _ended_early(found)
            except KeyboardInterrupt:
                self.stopped = True
                self.missing_parts[part] = "stopped by the user"
            except InputError as error:
                self.missing_parts[part] = str(error)
            except Exception as error:  # an estimator or a score of the user's may raise anything
                self.missing_parts[part] = f"{type(error).__name__}: {error}"
        self.left -= 1
        return found

    def retry_once(self, call: Callable[[], Found]) -> Found:
        """Do what takes a moment, once more if it was stopped: nothing found before is lost."""
        try:
            return call()
        except KeyboardInterrupt:
            self.stopped = True
            return call()


def _ended_early(found: object) -> bool:
    """Whether the user has stopped what gave this, which some then hand over as far as it is."""
    by_status = getattr(found, "status", None) == Status.INTERRUPTED
    return by_status or str(getattr(found, "message", "")).startswith("stopped by the user")


def versions() -> dict[str, str]:
    """Return the versions that a result may hang on.

    Examples
    --------
    >>> list(versions())
    ['exactk', 'python', 'numpy', 'scipy', 'scikit-learn']
    """
    found = {"exactk": __version__, "python": platform.python_version()}
    return found | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
