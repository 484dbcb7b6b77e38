"""Every loss by name."""

from __future__ import annotations

from typing import Any

from exactk.errors import InputError, UnknownOptionError, did_you_mean, show_value
from exactk.losses.base import Loss
from exactk.losses.likelihood import Logistic, Poisson
from exactk.losses.robust import L2R, L21, Huber
from exactk.losses.squared import OptimalScoring, Squared

__all__ = ["create", "loss_class", "names", "read_loss", "task_of"]

_LOSSES: dict[str, type[Loss]] = {
    kind.name: kind for kind in (Squared, L21, L2R, Huber, Logistic, Poisson, OptimalScoring)
}


def names() -> list[str]:
    """Return the names of all losses.

    Examples
    --------
    >>> names()
    ['squared', 'l21', 'l2r', 'huber', 'logistic', 'poisson', 'optimal_scoring']
    """
    return list(_LOSSES)


def loss_class(name: Any) -> type[Loss]:
    """Return the class of a loss, or say which names there are."""
    if not isinstance(name, str) or name not in _LOSSES:
        close = did_you_mean(name, names()) if isinstance(name, str) else ""
        raise InputError(
            f"loss must be one of {', '.join(names())}, not {show_value(name)}{close}",
            parameter="loss",
        )
    return _LOSSES[name]


def create(name: str, /, **options: Any) -> Loss:
    """Return a loss with its parameters, checked.

    Examples
    --------
    >>> create("l2r", r=0.7)
    L2R(r=0.7)
    >>> create("l2r", r=3)
    Traceback (most recent call last):
    ...
    exactk.errors.InputError: r must be a number in (0, 2], not 3
    """
    kind = loss_class(name)
    for option in options:
        if option not in kind.option_names():
            known = ", ".join(kind.option_names()) or "none"
            raise UnknownOptionError(
                f"loss {name!r} has no option {option!r}", parameter=option, hint=f"it has: {known}"
            )
    loss = kind(**options)
    loss.check()
    return loss


def task_of(loss: Any, task: Any) -> Any:
    """Return what y holds: as it was said, or else what the loss is made for.

    Examples
    --------
    >>> task_of("poisson", "auto"), task_of("poisson", "classification"), task_of("l21", "auto")
    ('regression', 'classification', 'auto')
    """
    return read_loss(loss).task if isinstance(task, str) and task == "auto" else task


def read_loss(given: Any, /, **options: Any) -> Loss:
    """Return the loss that a name or an object stands for, a copy of its own.

    Parameters
    ----------
    given : str or Loss
    **options
        Parameters of the loss.

    Examples
    --------
    >>> read_loss("huber", epsilon=2.0)
    Huber(epsilon=2.0)
    """
    if not isinstance(given, Loss):
        return create(given, **options)
    return create(given.name, **{**given.get_params(deep=False), **options})
