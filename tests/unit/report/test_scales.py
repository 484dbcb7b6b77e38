"""Ticks lie where they should, and places follow from values."""

from __future__ import annotations

from math import log10

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactk.report.numbers import percent, short, signed
from exactk.report.scales import linear, logarithmic, whole_numbers

number = st.floats(-1e9, 1e9, allow_nan=False).map(lambda v: round(v, 6))
positive = st.floats(1e-9, 1e9)


@given(st.lists(number, min_size=1, max_size=5))
def test_a_linear_axis_holds_its_values_between_ticks_in_order(values):
    scale = linear(values, 100, 0)
    places = [value for value, _ in scale.ticks]
    # What lies beyond the last tick by rounding alone is put on it.
    slack = 1e-8 * (scale.high - scale.low)
    assert scale.low - slack <= min(values)
    assert max(values) <= scale.high + slack
    assert places == sorted(places)
    assert 2 <= len(places) <= 9
    assert scale(scale.low) == 100
    assert scale(scale.high) == 0


@given(st.lists(positive, min_size=1, max_size=5))
def test_a_log_axis_holds_its_values_and_is_even_in_decades(values):
    scale = logarithmic(values, 0, 100)
    assert scale.low <= min(values) * (1 + 1e-8)
    assert max(values) <= scale.high * (1 + 1e-8)
    assert 1 <= len(scale.ticks) <= 9
    middle = (scale.low * scale.high) ** 0.5
    assert scale(middle) == pytest.approx(50)
    assert log10(scale.high / scale.low) > 0


def test_what_is_not_positive_lies_on_the_edge_of_a_log_axis():
    scale = logarithmic([0.0, 0.5, 20.0], 0, 100)
    assert scale(0.0) == scale(-3.0) == 0


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0, 1], ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([60, 93], ["60", "70", "80", "90", "100"]),
        ([-1, 1], ["−1.0", "−0.5", "0.0", "0.5", "1.0"]),
        ([3, 3], None),
    ],
    ids=["unit", "percent", "signed", "single"],
)
def test_known_ticks(values, texts):
    found = [text for _, text in linear(values, 0, 1).ticks]
    assert texts is None or found == texts
    assert len(set(found)) == len(found)


def test_few_sizes_are_all_ticks_and_many_are_not():
    assert [t for _, t in whole_numbers([1, 5, 10], 0, 300).ticks] == ["1", "5", "10"]
    assert len(whole_numbers(range(1, 81), 0, 300).ticks) < 10
    assert [t for _, t in whole_numbers([50], 0, 300).ticks]


@given(st.floats(-1e12, 1e12, allow_nan=False, allow_subnormal=False))
def test_short_numbers_read_back_to_four_digits(value):
    text = short(value).replace("−", "-")
    mantissa, _, power = text.partition("×10")
    digits = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
    back = float(mantissa) * 10.0 ** int(power.translate(digits) or 0)
    assert back == pytest.approx(value, rel=5.1e-4, abs=1e-300)


def test_signs():
    assert signed(percent(-0.25)) == "−0.25"
    assert signed(percent(0.25)) == "+0.25"
    assert signed(short(None)) == "–"


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-20, 1e20, 1e300], ids=lambda v: f"{v:.0e}")
def test_sizes_at_the_ends_of_what_a_float_holds_can_be_drawn(size):
    for values in ([size], [size, 2 * size], [-size, size]):
        assert 0 <= linear(values, 0, 100)(size) <= 100
    assert 0 <= logarithmic([size, 2 * size], 0, 100)(size) <= 100
    assert short(size)
