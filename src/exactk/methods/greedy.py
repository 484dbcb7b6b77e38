"""Forward selection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from exactk.methods.base import Method
from exactk.problem.problem import Problem
from exactk.result import Answer, Status
from exactk.search.infeasibility import possible_sizes
from exactk.search.loss_search import greedy_by_loss, requires_rows
from exactk.search.native_state import has_only_column_rules, make_state
from exactk.search.unit_search import greedy_units
from exactk.search.working_set import GreedyPrefetch
from exactk.utils.monitor import Monitor

__all__ = ["Greedy"]


class Greedy(Method):
    """Forward selection: add the column that lowers the objective most, k times.

    With what is left after the columns in S, C = B − A_{·S}A_SS⁻¹B_S and
    D_p = A_pp − A_pS A_SS⁻¹ A_Sp, the next column has the largest ‖C_p‖² / D_p. A step costs one
    Gram column and O(d(k + c)); on a wide table the columns that will probably be needed are
    fetched together, which spares passes and changes no step. Nothing is guaranteed but that each
    step is the best single one; for one output this is orthogonal matching pursuit's
    order-recursive sibling, orthogonal least squares. By another loss than the squared error the
    additions with the best prices by its quadratic model are fitted, and the best of them is taken.

    Notes
    -----
    Cost: k Gram columns, O(n·d) each where the matrix is not at hand, and O(d·k·(k + c)) in all.
    Memory: O(d·(k + c)).

    Guaranteed: exactly k columns, each the best single addition to those before it. Not the best
    set, and not one that no swap improves.

    References
    ----------
    M. A. Efroymson, "Multiple regression analysis", 1960.

    Examples
    --------
    >>> import exactk
    >>> from sklearn.datasets import load_iris
    >>> problem = exactk.Problem.from_arrays(*load_iris(return_X_y=True))
    >>> exactk.solve(problem, 2, method="greedy").order
    array([2, 1])
    """

    takes_rules: ClassVar[bool] = True
    takes_losses: ClassVar[bool] = True

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:  # noqa: D102
        if not has_only_column_rules(problem) and not requires_rows(problem):
            return greedy_units(problem, k)
        *_, last = self.run_path(problem, k, monitor)
        assert last is not None  # `solve` has seen to it that the rules can be kept
        return last

    def run_path(  # noqa: D102
        self, problem: Problem, k_max: int, monitor: Monitor
    ) -> Iterator[Answer | None]:
        if not has_only_column_rules(problem) and not requires_rows(problem):
            possible = possible_sizes(problem, k_max)
            for k in range(1, k_max + 1):
                yield greedy_units(problem, k) if k in possible else None
            return
        if requires_rows(problem):
            yield from greedy_by_loss(problem, k_max, monitor)
            return
        fixed = 0 if problem.rules is None else len(problem.rules.include)
        yield from [None] * min(fixed - 1, k_max)
        if fixed > k_max:
            return
        state, trace = make_state(problem, k_max), []
        foresight = GreedyPrefetch(problem, k_max)
        for k in range(max(1, fixed), k_max + 1):
            foresight.grow(state, k)
            trace.append(state.objective)
            monitor.report(k, k_max, state.objective)
            # Of one column the best is the best there is, and of all there is only one choice.
            exact = k - fixed in (0, 1) or k == len(problem.candidates)
            status = Status.OPTIMAL if exact else Status.CONVERGED
            yield Answer(tuple(state.support), status, k, tuple(trace), ordered=True)
