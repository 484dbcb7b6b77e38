"""A selector on frames with text and categories speaks of the columns that the user has."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from exactk import AutoK, TopKSelector
from exactk.errors import InputError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 150
NAMES = ["width", "colour", "noise", "sex", "city", "height"]


def make_frame() -> Any:
    rng = np.random.default_rng(3)

    def shuffled(**counts: int) -> Any:
        return rng.permutation(np.repeat(list(counts), list(counts.values())))

    return pd.DataFrame(
        {
            "width": rng.normal(size=N),
            "colour": shuffled(red=60, blue=45, white=30, green=15),
            "noise": rng.normal(size=N),
            "sex": shuffled(f=90, m=60),
            "city": pd.Categorical(shuffled(Rome=75, Oslo=45, Bern=30)),
            "height": rng.normal(size=N).astype(np.float32),
        }
    )


FRAME = make_frame()
EFFECT = FRAME["colour"].map({"red": 0.0, "blue": 3.0, "white": -3.0, "green": 1.0})
Y = (
    EFFECT + 1.5 * FRAME["width"] + 1.2 * (FRAME["sex"] == "m")
    + 0.3 * np.random.default_rng(4).normal(size=N)
).to_numpy()  # fmt: skip

HOLDERS: dict[str, Any] = {
    "pandas": FRAME,
    "pandas objects": FRAME.astype({"colour": object, "city": object}),
    "pandas categories": FRAME.astype({"colour": "category", "sex": "category"}),
    "polars": pl.from_pandas(FRAME),
    "polars enum": pl.from_pandas(FRAME).cast({"sex": pl.Enum(["m", "x", "f"])}),
    "arrow": pa.Table.from_pandas(FRAME, preserve_index=False),
}
every_holder = pytest.mark.parametrize("holder", HOLDERS)


def fitted(frame: Any = FRAME, k: int = 3, ridge: float = 0.0, **options: Any) -> TopKSelector:
    return TopKSelector(k=k, ridge=ridge, **options).fit(frame, Y)


def least_squares(names: Any) -> tuple[float, Any]:
    """Squared error and coefficients of pandas' dummies of some columns, by NumPy."""
    coded = pd.get_dummies(FRAME[list(names)], prefix_sep="=", dtype=float)
    left_out = {"colour=red", "sex=f", "city=Rome"} & set(coded.columns)
    coded = coded.drop(columns=sorted(left_out))
    design = np.column_stack([np.ones(N), coded.to_numpy(dtype=float)])
    coef = np.linalg.lstsq(design, Y, rcond=None)[0]
    return float(((Y - design @ coef) ** 2).sum()), dict(zip(coded.columns, coef[1:], strict=True))


@every_holder
def test_every_holder_gives_the_same_answer_about_its_columns(holder: str) -> None:
    selector = fitted(HOLDERS[holder])
    assert selector.n_features_in_ == 6
    assert selector.support_.tolist() == [True, True, False, True, False, False]
    assert sorted(selector.selected_.tolist()) == [0, 1, 3]
    assert selector.ranking_[selector.selected_].tolist() == [1, 2, 3]
    assert selector.ranking_[[2, 4, 5]].tolist() == [4, 4, 4]
    if holder != "arrow":  # whose names not every scikit-learn knows
        assert selector.feature_names_in_.tolist() == NAMES
        assert selector.get_feature_names_out().tolist() == ["width", "colour", "sex"]
    assert selector.objective_ == pytest.approx(least_squares(["width", "colour", "sex"])[0])


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_the_best_of_all_choices_of_columns(k: int) -> None:
    best = min(combinations(NAMES, k), key=lambda names: least_squares(names)[0])
    selector = fitted(k=k)
    assert selector.get_feature_names_out().tolist() == list(best)
    assert selector.objective_ == pytest.approx(least_squares(best)[0])


def test_coefficients_are_those_of_the_coded_columns() -> None:
    selector = fitted()
    assert selector.coded_feature_names_.tolist() == [
        "width", "colour=blue", "colour=green", "colour=white", "noise", "sex=m", "city=Bern",
        "city=Oslo", "height",
    ]  # fmt: skip
    assert selector.coef_.shape == (1, 9)
    _, wanted = least_squares(["width", "colour", "sex"])
    found = dict(zip(selector.coded_feature_names_, selector.coef_[0], strict=True))
    assert {name: value for name, value in found.items() if value} == pytest.approx(wanted)


def test_transform_keeps_the_columns_as_they_are() -> None:
    taken = fitted().transform(FRAME)
    pd.testing.assert_frame_equal(taken, FRAME[["width", "colour", "sex"]])
    frame = HOLDERS["polars enum"]
    assert fitted(frame).transform(frame).equals(frame[["width", "colour", "sex"]])
    table = HOLDERS["arrow"]
    assert fitted(table).transform(table).equals(table.select(["width", "colour", "sex"]))


def test_inverse_transform_says_why_not() -> None:
    selector = fitted()
    with pytest.raises(InputError, match="text or categories") as error:
        selector.inverse_transform(selector.transform(FRAME))
    assert error.value.parameter == "X"


def test_a_filter_scores_each_column_once() -> None:
    frame = FRAME[["noise", "sex", "width"]].assign(city="Rome")
    labels = (FRAME["sex"] == "m").to_numpy() ^ (np.arange(N) % 9 == 0)
    selector = TopKSelector(k=1, method="fisher").fit(frame, labels)
    assert selector.get_feature_names_out().tolist() == ["sex"]
    assert selector.scores_.shape == (4,)
    assert np.isnan(selector.scores_[3])
    assert selector.scores_[:3].argmax() == 1


@pytest.mark.parametrize("criterion", ["cv", "bic"])
def test_a_number_that_is_chosen_counts_columns_of_the_user(criterion: Any) -> None:
    selector = TopKSelector(k=AutoK(criterion=criterion)).fit(FRAME, Y)
    assert selector.k_ == 3
    assert selector.get_feature_names_out().tolist() == ["width", "colour", "sex"]
