from __future__ import annotations

import numpy as np
import pytest

from exactk import InputError, Problem
from exactk.methods.base import Method, generator
from exactk.result import Answer, Status
from exactk.utils.monitor import Monitor


class First(Method):
    """Takes the first k columns."""

    def __init__(self, alpha: float = 1.0, beta: str = "b") -> None:
        self.alpha = alpha
        self.beta = beta

    def run(self, problem: Problem, k: int, monitor: Monitor) -> Answer:
        return Answer(range(k), Status.CONVERGED, k)


def test_options_are_the_parameters_of_init() -> None:
    assert First.option_names() == ["alpha", "beta"]
    assert First(beta="c").get_params() == {"alpha": 1.0, "beta": "c"}


def test_a_path_is_a_run_for_each_size_unless_a_method_knows_better() -> None:
    problem = Problem.from_arrays(np.eye(5), [0, 1, 0, 1, 0])
    answers = list(First().run_path(problem, 3, Monitor()))
    assert [list(answer.support) for answer in answers] == [[0], [0, 1], [0, 1, 2]]


def test_none_is_a_fixed_seed_and_whole_numbers_are_seeds() -> None:
    draw = [generator(None).random(), generator(None).random(), generator(3).random()]
    assert draw[0] == draw[1] != draw[2]
    assert generator(np.int32(3)).random() == draw[2]


def test_generators_are_taken_as_they_are() -> None:
    rng = np.random.default_rng(1)
    assert generator(rng) is rng
    legacy = [generator(np.random.RandomState(4)).random() for _ in range(2)]
    assert legacy[0] == legacy[1]


@pytest.mark.parametrize("seed", [-3, 0.5, "x", False, [1]])
def test_anything_else_is_refused(seed: object) -> None:
    with pytest.raises(InputError, match=r"random_state must be .*not"):
        generator(seed)
