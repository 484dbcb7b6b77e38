"""What a parameter may be: every kind of check, its ends, and the words of its error."""

from __future__ import annotations

import pickle
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from exactk.errors import InputError
from exactk.methods.greedy import Greedy
from exactk.params import Anything, Check, Choice, Integer, Items, Number, Seed, validate
from tests.support import says

NOT_NUMBERS: list[Any] = [
    True, False, np.True_, np.False_, "1", b"1", None, [1], (1.0,), {}, 1j, np.complex128(1),
    np.array(1.0), np.array([1.0]), Fraction(1, 2), np.longdouble(1), object,
]  # fmt: skip
NOT_FINITE: list[Any] = [
    float("nan"), float("inf"), float("-inf"), np.float64("nan"), np.float32("inf"),
    np.float16("-inf"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("range_", "inside", "outside"),
    [
        ("(0, 2]", [2, 2.0, 1, 5e-324, 1e-12], [0, 0.0, -0.0, -1, np.nextafter(2.0, 3.0), 3]),
        ("[0, 1)", [0, -0.0, 0.5, np.nextafter(1.0, 0.0)], [1, 1.0, -5e-324, 7]),
        ("[-1, 1]", [-1, 1, 0, 0.3], [-1.0000001, 1.0000001]),
        ("(-1, 1)", [0, 0.999], [-1, 1]),
        ("(1, inf)", [1.0000001, 2, 10**300, 1.7e308], [1, 1.0, 0]),
        ("[0, inf)", [0, 10**15], [-1e-300]),
        ("(-inf, inf)", [0, -1e308, 1e308], [np.inf, -np.inf]),
        ("(0, inf]", [1, np.inf], [0, -np.inf]),
    ],
)
def test_a_bracket_belongs_to_the_range_and_a_parenthesis_does_not(
    range_: str, inside: list[Any], outside: list[Any]
) -> None:
    check = Number(range_)
    for value in inside:
        check("gamma", value)
        assert check.allows(value)
    for value in outside:
        assert not check.allows(value)
        with says("gamma must be a number in", range_, f"not {value!r}"):
            check("gamma", value)


@pytest.mark.parametrize(
    "value",
    [1, 1.5, np.int8(1), np.int64(1), np.uint8(1), np.float16(1), np.float32(1.5), np.float64(1)],
)
def test_numbers_of_python_and_of_numpy_are_numbers(value: Any) -> None:
    assert Number("(0, 2]").allows(value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_FINITE], ids=repr)
def test_what_is_no_finite_number_is_refused(value: Any) -> None:
    for range_ in ("(-inf, inf)", "[0, inf)", "(0, 2]"):
        with says("tol must be a number in", range_, repr(value)):
            Number(range_)("tol", value)


def test_a_whole_number_too_large_for_a_float_is_refused() -> None:
    with says("lam must be a number in (0, inf), not 1000000"):
        Number("(0, inf)")("lam", 10**400)
    assert Number("(0, inf)").allows(10**308)


def test_the_range_is_a_range_by_value_not_by_spelling() -> None:
    assert Number("(0,2]").allows(2)
    assert Number("( 0 , 2 ]").allows(2)
    assert not Number("(0,2]").allows(0)


@pytest.mark.parametrize("least", [0, 1, 2])
@pytest.mark.parametrize("kind", [int, np.int8, np.int64, np.uint16])
def test_whole_numbers_start_at_the_least(least: int, kind: type) -> None:
    check = Integer(least)
    for value in (kind(least), kind(least + 5)):
        check("max_iter", value)
    for value in [kind(least - 1)] if least else []:
        with says(f"max_iter must be a whole number of at least {least}", f"not {value!r}"):
            check("max_iter", value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_FINITE, 1.0, 2.5, np.float64(3)], ids=repr)
def test_what_is_no_whole_number_is_refused(value: Any) -> None:
    with says("n_starts must be a whole number of at least 1", f"not {value!r}"):
        Integer(1)("n_starts", value)


def test_a_whole_number_may_be_huge_or_negative_where_that_is_the_least() -> None:
    assert Integer(1).allows(10**400)
    assert Integer(-3).allows(-3)
    assert not Integer(-3).allows(-4)
    assert not Integer().allows(-1)


WORDS = Choice(options=("centred", "one-hot", "plus-minus"))


@pytest.mark.parametrize("word", ["centred", "one-hot", "plus-minus"])
def test_a_choice_takes_its_words(word: str) -> None:
    WORDS("labels", word)
    WORDS("labels", np.str_(word))


@pytest.mark.parametrize(
    "value",
    ["", "Centred", "one hot", "centred ", b"centred", None, 0, True, ["centred"], ("one-hot",)],
    ids=repr,
)
def test_and_nothing_else(value: Any) -> None:
    with says("labels must be 'centred', 'one-hot' or 'plus-minus'", f"not {value!r}"):
        WORDS("labels", value)


@pytest.mark.parametrize(
    ("value", "meant"),
    [("centered", "centred"), ("onehot", "one-hot"), ("PLUS-MINUS", "plus-minus")],
)
def test_a_word_that_is_near_to_one_is_answered_with_it(value: str, meant: str) -> None:
    with says(repr(value), f"did you mean {meant!r}?"):
        WORDS("labels", value)


@pytest.mark.parametrize("value", ["zzz", 3, None, ["centred"]], ids=repr)
def test_what_is_near_to_none_gets_no_hint(value: Any) -> None:
    with says("labels must be") as error:
        WORDS("labels", value)
    assert "did you mean" not in str(error.value)


def test_numbers_can_be_words_and_are_not_taken_for_others() -> None:
    check = Choice(options=(2, 1))
    for value in (1, 2, np.int64(1), np.uint8(2)):
        check("algorithm", value)
    for value in (True, 1.0, 2.0, "1", 3, None):
        with says("algorithm must be 2 or 1", f"not {value!r}") as error:
            check("algorithm", value)
        assert "did you mean" not in str(error.value)


@pytest.mark.parametrize(
    "seed", [None, 0, 7, np.int64(3), np.random.default_rng(0), np.random.RandomState(0)],
    ids=["none", "zero", "integer", "numpy", "generator", "legacy"],
)  # fmt: skip
def test_a_seed_is_none_a_whole_number_or_a_generator(seed: Any) -> None:
    Seed()("random_state", seed)


@pytest.mark.parametrize("bad", [-1, 1.0, True, "0", [1], np.nan, {}], ids=repr)
def test_and_no_other_thing(bad: Any) -> None:
    with says("random_state must be None, an integer that is zero or more, or a NumPy generator"):
        Seed()("random_state", bad)


def test_what_is_checked_beside_a_problem_is_not_checked_before() -> None:
    check = Anything("supports to start from")
    for value in (None, "x", np.nan, [1, 2]):
        check("init", value)
    assert str(check) == "supports to start from"


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (Number("(0, inf)", none="a hundredth of it"), -1),
        (Integer(1, none="a hundredth of it"), 0),
        (Choice(options=("a", "b"), none="a hundredth of it"), "c"),
    ],
)
def test_none_stands_for_what_is_said(check: Check, bad: Any) -> None:
    check("rho", None)
    assert str(check).endswith(", or None (a hundredth of it)")
    with says("rho must be", "or None (a hundredth of it)", f"not {bad!r}"):
        check("rho", bad)


@pytest.mark.parametrize("check", [Number("(0, inf)"), Integer(1), Choice(options=("a", "b"))])
def test_none_is_refused_where_it_stands_for_nothing(check: Check) -> None:
    assert "None" not in str(check)
    with says("rho must be", "not None"):
        check("rho", None)


def test_checks_are_values() -> None:
    assert Number("(0, 2]") == Number("(0, 2]") != Number("(0, 2)")
    assert Integer(1, none="x") != Integer(1)
    for check in (Number("(0, 2]"), Integer(1), WORDS):
        assert pickle.loads(pickle.dumps(check)) == check
        assert hash(check) == hash(pickle.loads(pickle.dumps(check)))


def test_a_kind_of_check_says_what_it_allows() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Check()


def test_lists_of_columns_are_lists_arrays_or_objects_that_know_them() -> None:
    check = Items("a list of columns", alone=True, objects=("result_",))
    for value in (["a", 0], ("a",), np.array([0, 1]), np.array([True, False]), pd.Index(["a"]),
                  pd.Series(["a"]), {"a"}, [], "a", 3, SimpleNamespace(result_=1)):  # fmt: skip
        check("include", value)
    for value in (1.5, True, None, b"a", {"a": 1}, [1.5], [None], ["a", None], [["a"]],
                  np.array([0.5]), np.array([[1]]), np.array(3), object()):  # fmt: skip
        with pytest.raises(InputError) as error:
            check("include", value)
        assert error.value.parameter == "include"
    methods = Items("a list of methods", (str,), alone=True, instance="Method")
    for value in ("rfe", Greedy(), ["rfe", Greedy()], ()):
        assert methods.allows(value)
    for value in (3, True, [3], [True], [None], object()):
        assert not methods.allows(value)
    strict = Items("a list of columns", (str,), least=1)
    for value in ("a", {"a"}, [], [0]):
        assert not strict.allows(value)


@pytest.mark.parametrize("name", ["max_sets", "n_subsamples", "n_permutations", "n_best"])
def test_numbers_of_repeats_have_a_largest(name: str) -> None:
    validate({name: 1_000_000})
    for value in (1_000_001, 2**63, 10**400):
        with pytest.raises(InputError) as error:
            validate({name: value})
        assert error.value.parameter == name
