"""A program of a user, checked by mypy and pyright in strict mode against the installed package."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import exactk
from exactk import AutoK, Constraints, Problem, Result, Status, TopKClassifier, TopKSelector

Floats = npt.NDArray[np.float64]


def table() -> tuple[Floats, npt.NDArray[np.intp]]:
    """Make a table of 90 rows whose first two columns tell the classes apart."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 6))
    X[:, 0] += y
    X[:, 1] -= y
    return X, y


def selected_names(result: Result) -> list[str]:
    """Return the names of the selected features."""
    return [name.upper() for name in result.selected]


def main() -> None:
    """Call every public function once and use the types of what it returns."""
    X, y = table()
    constraints = Constraints(include=[0], max_correlation=0.9)
    selector = TopKSelector(k=2, constraints=constraints).fit(X, y)
    mask: npt.NDArray[np.bool_] = selector.support_
    print(mask.sum(), selected_names(selector.result_))
    model = TopKClassifier(k=AutoK(k_max=3)).fit(X, y)
    print(model.predict(X)[:3])

    problem = Problem.from_arrays(X, y, ridge=0.1)
    result = exactk.solve(problem, 2)
    done: bool = result.status is Status.CONVERGED
    certificate = exactk.certify(problem, features=result, time_limit=None)
    proven: bool = certificate.proven
    print(done, proven, round(certificate.lower, 3))
    choice = exactk.choose_k(X, y, k_max=3)
    chosen: int = choice.k
    stable = exactk.stability(X, y, k=chosen, n_subsamples=10)
    core: tuple[str, ...] = stable.core.names
    explanation = exactk.explain(X, y, features=selector)
    evaluation = exactk.evaluate(X, y, k=2, compare_with=["selectkbest"])
    score: float = evaluation.test_score
    rows: list[float] = evaluation.table["test_score"]
    path = exactk.certify_path(X, y, k_max=2)
    best = exactk.best_sets(X, y, k=2, n_best=3)
    print(core, explanation.is_complete, score, rows, len(path), len(best.sets))
    names: list[str] = exactk.registry.names()
    method = exactk.registry.create(names[0], effort=0)
    print(exactk.solve(problem, 2, method).objective, exactk.losses.names())
    report = exactk.investigate(problem, k=2, n_subsamples=0, n_permutations=0, compare_with=())
    print(report.to_json()[:1])
    try:
        exactk.solve(problem, 99)
    except exactk.InputError as error:
        parameter: str | None = error.parameter
        print(parameter)


if __name__ == "__main__":
    main()
