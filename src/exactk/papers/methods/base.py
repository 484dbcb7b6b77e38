"""Bases of methods with a penalty: a path over its strength, reweighted least squares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from exactk.methods.base import IterativeMethod
from exactk.methods.iteration import Start, Starts
from exactk.papers.methods.irls import reweighted_steps
from exactk.papers.methods.standard_table import LABELS, Labels, StandardTable, standard_table
from exactk.params import Check, Integer, Number
from exactk.problem.problem import Problem
from exactk.result import Answer
from exactk.utils.monitor import Monitor

__all__ = [
    "PenaltyMethod",
    "ReweightedMethod",
]


class PenaltyMethod(IterativeMethod):
    """Base of methods with a penalty in place of k: W does not depend on k, which only cuts it.

    The supports of its steps have the largest row of W first.
    """

    def run_path(self, problem: Problem, k_max: int, monitor: Monitor) -> Iterator[Answer]:
        """Every size from one run."""
        most = min(k_max, len(problem.candidates) - 1)
        if most >= 1:
            answer = self.run(problem, most, monitor)
            for k in range(1, most + 1):
                yield replace(answer, support=answer.support[:k])
        for k in range(max(most, 0) + 1, k_max + 1):
            yield self.run(problem, k, monitor)


class ReweightedMethod(PenaltyMethod):
    """Base of the methods for ‖XW − Y‖₂,ᵣʳ + λ‖W‖₂,ₚᵖ, which differ in r and p alone."""

    needs_rows: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        "lam": Number("(0, inf)"),
        "labels": LABELS,
        "epsilon": Number("[0, inf)"),
        "max_iter": Integer(1),
        "tol": Number("[0, inf)"),
    }

    def __init__(
        self,
        lam: float = 1.0,
        labels: Labels = "plus-minus",
        epsilon: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-4,
    ) -> None:
        self.lam = lam
        self.labels = labels
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.tol = tol

    @property
    @abstractmethod
    def orders(self) -> tuple[float, float]:
        """The orders r and p."""

    def prepare(self, problem: Problem) -> StandardTable:  # noqa: D102
        reweighted = self.orders[0] < 2.0
        # Copies of a row that is fitted exactly would make the system singular.
        return standard_table(problem, self.labels, robust=reweighted, merge=reweighted)

    def starts(self, problem: Problem, k: int, prepared: StandardTable) -> Starts:  # noqa: D102
        r, p = self.orders
        options = {"r": r, "p": p, "lam": self.lam, "epsilon": self.epsilon, "tol": self.tol}
        return [Start(reweighted_steps(prepared, k, **options))]
