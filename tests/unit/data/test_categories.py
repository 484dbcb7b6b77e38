"""Text and categories become columns of 0 and 1, whoever holds them, or are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactk import Problem
from exactk.data import categories
from exactk.data.categories import Category
from exactk.data.dense import DenseRows
from exactk.data.open_table import open_rows
from exactk.problem.constraints import Group
from tests.support import says

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 60
RNG = np.random.default_rng(7)
COLOUR = RNG.permutation(["red"] * 25 + ["blue"] * 20 + ["white"] * 10 + ["green"] * 5).tolist()
SEX = RNG.permutation(["f"] * 35 + ["m"] * 25).tolist()
SIZE, AGE = RNG.normal(size=N), RNG.integers(20, 60, N)
EFFECT = {"red": 0, "blue": 2, "white": -1, "green": 1}
Y = RNG.normal(size=N) + np.array([EFFECT[colour] for colour in COLOUR])
ENUM = ["white", "black", "red", "blue", "green"]


def table(colour: Any = COLOUR, **more: Any) -> dict[str, Any]:
    return {"size": SIZE, "colour": colour, "age": AGE, "sex": SEX, **more}


MAKERS: dict[str, Any] = {
    "pandas str": lambda: pd.DataFrame(table()),
    "pandas object": lambda: pd.DataFrame(table()).astype({"colour": object, "sex": object}),
    "pandas string": lambda: pd.DataFrame(table()).astype({"colour": "string"}),
    "pandas category": lambda: pd.DataFrame(table(pd.Categorical(COLOUR, ENUM))),
    "pandas ordered": lambda: pd.DataFrame(table(pd.Categorical(COLOUR, ENUM, ordered=True))),
    "pandas arrow": lambda: pd.DataFrame(table()).astype({"colour": pd.ArrowDtype(pa.string())}),
    "polars string": lambda: pl.DataFrame(table()),
    "polars categorical": lambda: pl.DataFrame(table()).cast({"colour": pl.Categorical}),
    "polars enum": lambda: pl.DataFrame(table()).cast({"colour": pl.Enum(ENUM)}),
    "arrow string": lambda: pa.table(table()),
    "arrow large string": lambda: pa.table(table(pa.array(COLOUR, pa.large_string()))),
    "arrow dictionary": lambda: pa.table(table(pa.array(COLOUR).dictionary_encode())),
}
every_maker = pytest.mark.parametrize("maker", MAKERS)


def dummies(frame: Any, columns: dict[str, str]) -> Any:
    """What pandas makes of a frame, without the level of each column that is named."""
    coded = pd.get_dummies(frame, columns=list(columns), prefix_sep="=", dtype=float)
    return coded.drop(columns=[f"{name}={level}" for name, level in columns.items()])


def squared_error(X: Any, y: Any = Y) -> float:
    """Of least squares with an intercept, by NumPy."""
    design = np.column_stack([np.ones(len(y)), np.asarray(X, dtype=float)])
    return float(((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum())


@every_maker
def test_every_holder_of_text_gives_what_pandas_codes(maker: str) -> None:
    rows = open_rows(MAKERS[maker]())
    assert rows.feature_names == (
        "size", "colour=blue", "colour=green", "colour=white", "age", "sex=m",
    )  # fmt: skip
    wanted = dummies(pd.DataFrame(table()), {"colour": "red", "sex": "f"})[list(rows.feature_names)]
    assert (rows.columns(np.arange(6)) == wanted.to_numpy()).all()
    colour = Category("colour", 1, 1, ("blue", "green", "red", "white"), "red")
    assert rows.categories == (colour, Category("sex", 3, 5, ("f", "m"), "f"))


@every_maker
def test_a_problem_knows_what_its_columns_were(maker: str) -> None:
    problem = Problem.from_arrays(MAKERS[maker](), Y)
    assert problem.original_names == ("size", "colour", "age", "sex")
    assert problem.input_columns.tolist() == [0, 1, 1, 1, 2, 3]
    assert problem.rules is not None
    # One column needs no group.
    assert problem.rules.feature_groups == (Group("colour", (1, 2, 3)),)
    assert problem.rules.count == "groups"
    coded = dummies(pd.DataFrame(table()), {"colour": "red", "sex": "f"})
    assert problem.objective([0, 1, 2, 3]) == pytest.approx(
        squared_error(coded[["size", "colour=blue", "colour=green", "colour=white"]]), rel=1e-10
    )
    assert problem.objective([4, 5]) == pytest.approx(squared_error(coded[["age", "sex=m"]]))


def test_numbers_alone_are_their_own_originals() -> None:
    problem = Problem.from_arrays(pd.DataFrame({"size": SIZE, "age": AGE}), Y)
    assert problem.rules is None
    assert problem.categories == ()
    assert problem.input_columns.tolist() == [0, 1]
    assert problem.original_names == problem.feature_names == ("size", "age")


def test_two_levels_alone_need_no_rules() -> None:
    problem = Problem.from_arrays(pd.DataFrame({"sex": SEX, "age": AGE}), Y)
    assert problem.rules is None
    assert problem.original_names == ("sex", "age")


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_names_of_levels_and_order_of_rows_do_not_matter(ridge: float) -> None:
    frame = pd.DataFrame(table())
    other = frame.replace({"colour": {"red": "a", "blue": "z", "white": "=", "green": "b=c"}})
    order = np.random.default_rng(0).permutation(N)
    problems = [
        Problem.from_arrays(frame, Y, ridge=ridge),
        Problem.from_arrays(other, Y, ridge=ridge),
        Problem.from_arrays(frame.iloc[order], Y[order], ridge=ridge),
    ]
    assert problems[1].feature_names[1:4] == ("colour==", "colour=b=c", "colour=z")
    values = [problem.objective([1, 2, 3, 4]) for problem in problems]
    assert values == pytest.approx([values[0]] * 3, rel=1e-10)


def test_the_most_frequent_level_is_left_out_and_of_several_the_first() -> None:
    rows = open_rows(pl.DataFrame({"c": ["z", "b", "a", "b", "a", "z", "y"]}))
    assert rows.feature_names == ("c=b", "c=y", "c=z")
    assert rows.categories[0].reference == "a"


def test_weights_count_as_repeated_rows() -> None:
    weights = np.random.default_rng(1).integers(0, 3, N)
    # The only row of its level does not count.
    colour = [*COLOUR[:-1], "mauve"]
    weights[-1] = 0
    frame = pd.DataFrame(table(colour))
    repeated = np.repeat(np.arange(N), weights)
    weighted = Problem.from_arrays(frame, Y, sample_weight=weights, ridge=0.3)
    written = Problem.from_arrays(frame.iloc[repeated], Y[repeated], ridge=0.3)
    assert weighted.feature_names == written.feature_names
    assert weighted.categories == written.categories
    assert weighted.objective([0, 1, 2, 3]) == pytest.approx(
        written.objective([0, 1, 2, 3]), rel=1e-10
    )


def test_weights_decide_what_is_most_frequent() -> None:
    frame = pl.DataFrame({"c": ["a", "a", "b"]})
    assert open_rows(frame).categories[0].reference == "a"
    assert open_rows(frame, sample_weight=[1, 1, 3]).categories[0].reference == "b"


def test_a_single_level_is_a_constant_column() -> None:
    problem = Problem.from_arrays(pd.DataFrame({"city": ["Rome"] * N, "age": AGE}), Y)
    assert problem.feature_names == ("city=Rome", "age")
    assert problem.usable.tolist() == [1]
    assert problem.original_names == ("city", "age")


def test_declared_categories_may_be_of_any_kind() -> None:
    numbers = pd.Categorical([10, 2, 2, 1, 10, 2])
    assert open_rows(pd.DataFrame({"n": numbers})).feature_names == ("n=1", "n=10")
    texts = pd.Categorical(["10", "2", "2", "1", "10", "2"])
    assert open_rows(pd.DataFrame({"n": texts})).feature_names == ("n=1", "n=10")
    both = pd.Categorical([1, "1", 1, "2", 2, 1])
    assert open_rows(pd.DataFrame({"n": both})).feature_names == ("n='1'", "n='2'", "n=2")


def test_arrow_dictionaries_of_numbers_are_numbers() -> None:
    encoded = pa.table({"n": pa.array([3, 1, 3, 2]).dictionary_encode(), "x": [1.0, 2.0, 4.0, 8.0]})
    rows = open_rows(encoded)
    assert rows.categories == ()
    assert rows.columns(np.array([0])).ravel().tolist() == [3, 1, 3, 2]


def test_names_stay_different() -> None:
    frame = pl.DataFrame({"a": ["x", "b=c", "x"], "a=b": ["c", "d", "d"], "a=b=c": [1.0, 2.0, 4.0]})
    names = open_rows(frame).feature_names
    assert names == ("a=b=c (2)", "a=b=c (3)", "a=b=c")


def test_given_names_are_those_of_the_columns() -> None:
    frame = pl.DataFrame(table())
    rows = open_rows(frame, ["s", "c", "a", "x"])
    assert rows.feature_names == ("s", "c=blue", "c=green", "c=white", "a", "x=m")
    with says("feature_names has 6 names, X has 4 columns"):
        open_rows(frame, list("abcdef"))


@pytest.mark.parametrize(
    ("beside", "dtype"), [(None, "?"), ("?", "?"), ("i1", "i1"), ("f4", "f4"), ("i8", "i8")]
)
def test_zeros_and_ones_take_no_more_room_than_what_is_beside(
    beside: str | None, dtype: str
) -> None:
    numbers = {} if beside is None else {"x": (AGE > 40).astype(beside)}
    rows = open_rows(pl.DataFrame({"colour": COLOUR, **numbers}))
    assert isinstance(rows, DenseRows)
    assert rows.column_bytes == N * np.dtype(dtype).itemsize
    problem = Problem.from_arrays(pl.DataFrame({"colour": COLOUR, **numbers}), Y)
    coded = dummies(pd.DataFrame({"colour": COLOUR}), {"colour": "red"})
    assert problem.objective([0, 1, 2]) == pytest.approx(squared_error(coded), rel=1e-10)


def test_rows_keep_categories_and_a_choice_of_columns_drops_them() -> None:
    rows = open_rows(pl.DataFrame(table()))
    assert rows.take(np.arange(10)).categories == rows.categories
    assert rows.select(np.array([1, 2])).categories == ()


def test_another_ridge_keeps_groups_and_categories() -> None:
    problem = Problem.from_arrays(pl.DataFrame(table()), Y)
    derived = problem.with_ridge(0.1)
    assert derived.rules == problem.rules
    assert derived.categories == problem.categories
    assert derived.input_columns.tolist() == problem.input_columns.tolist()


@pytest.mark.parametrize("kind", [None, "object", "category", "string"])
def test_missing_text_is_refused_by_name(kind: str | None) -> None:
    frame = pd.DataFrame(table(pd.Series([None, None, *COLOUR[2:]], dtype=kind)))
    with says("missing values", "2 in 'colour'"):
        open_rows(frame)


def test_missing_text_in_polars_and_arrow() -> None:
    for make in (pl.DataFrame, pa.table):
        with says("missing values", "1 in 'colour'"):
            open_rows(make(table([None, *COLOUR[1:]])))


def test_an_identifier_is_refused() -> None:
    names = [f"row {i}" for i in range(31)] + ["row 0"] * (N - 31)
    for column in (names, pd.Categorical(names)):
        with says("column 'id' has 31 different values in 60 rows", "identifier", "drop it"):
            open_rows(pd.DataFrame(table(id=column)))
    names[30] = "row 1"
    declared = pd.Categorical(names)
    assert len(open_rows(pd.DataFrame({"id": declared})).categories[0].levels) == 30
    # Of a patient there are several rows, and no others like them.
    with says("column 'id' has 30 different values in 60 rows", "declare it categorical"):
        open_rows(pd.DataFrame({"id": names}))


def test_few_levels_are_no_identifier() -> None:
    values = [f"level {i}" for i in range(20)]
    assert open_rows(pl.DataFrame({"c": values})).n_features == 19
    with says("21 different values in 21 rows"):
        open_rows(pl.DataFrame({"c": [*values, "level 20"]}))


@pytest.mark.parametrize("values", [["1.5", "2"], ["01", "02"], ["-1e3", " 7 "]])
def test_numbers_as_text_are_refused(values: list[str]) -> None:
    with says("column 'n' has numbers as text", "convert it", "categorical"):
        open_rows(pl.DataFrame({"n": values * 3}))


@pytest.mark.parametrize("values", [["1.5", "?", "low"], ["nan", "inf"], ["1st", "2nd", "3"]])
def test_text_with_few_numbers_is_text(values: list[str]) -> None:
    assert open_rows(pl.DataFrame({"n": values * 3})).n_features == len(values) - 1


MARKED = {
    "one": (["3", "?", "1", "2", "?"], "'?', first in row 1"),
    "half": (["1.5", "NA", "1.5", "NA"], "'NA', first in row 1"),
    "empty": (["2", "2", ""], "'', first in row 2"),
    "several": (["1", "2", "3", "x", "4", "N/A"], "'N/A', 'x', first in row 3"),
    "not finite": (["1", "-inf", "2", "nan"], "'-inf', 'nan', first in row 1"),
}


@pytest.mark.parametrize("maker", [pd.DataFrame, pl.DataFrame, pa.table],
                         ids=["pandas", "polars", "arrow"])  # fmt: skip
@pytest.mark.parametrize("case", MARKED)
def test_numbers_with_marks_among_them_are_refused(maker: Any, case: str) -> None:
    values, words = MARKED[case]
    with says("column 'n' has numbers as text", words, "replace", "categorical"):
        open_rows(maker({"ok": np.arange(len(values)), "n": values}))


def test_declared_categories_may_be_numbers_with_marks() -> None:
    values = ["3", "?", "1", "3", "2"]
    for frame in (
        pd.DataFrame({"n": pd.Categorical(values)}),
        pl.DataFrame({"n": values}).cast(pl.Categorical),
        pl.DataFrame({"n": values}).cast(pl.Enum(["1", "2", "3", "?"])),
        pa.table({"n": pa.array(values).dictionary_encode()}),
    ):
        assert open_rows(frame).feature_names == ("n=1", "n=2", "n=?")


def test_objects_of_numbers_with_marks_are_refused() -> None:
    values = pd.Series(["1", "2", "?", "3"] * 3, dtype=object)
    with says("column 'n' has numbers as text", "'?'", "row 2"):
        open_rows(pd.DataFrame({"n": values}))


def test_text_with_other_values_further_down_is_refused() -> None:
    values = pd.Series(["a", "b"] * 100 + [3, ("x",)], dtype=object)
    with says("column 'c'", "'int', 'tuple'", "all text or all numbers"):
        open_rows(pd.DataFrame({"c": values}))


def test_a_frame_without_rows() -> None:
    with says("no rows"):
        open_rows(pd.DataFrame({"c": pd.Series([], dtype="str")}))


def test_too_many_zeros_and_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categories, "MOST_BYTES", 4 * 8 * N)
    open_rows(pd.DataFrame(table()))
    monkeypatch.setattr(categories, "MOST_BYTES", 4 * 8 * N - 1)
    with says("'colour' (4 levels), 'sex' (2 levels)", "merge rare levels", "drop"):
        open_rows(pd.DataFrame(table()))


def test_the_table_is_not_changed() -> None:
    frame = pd.DataFrame(table())
    before = frame.copy(deep=True)
    Problem.from_arrays(frame, Y)
    pd.testing.assert_frame_equal(frame, before)
