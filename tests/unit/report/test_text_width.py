"""Names in pictures: they fit, and those that differ look different."""

from __future__ import annotations

import random

import pytest

from exactk.report.text_width import fit, shortened, width_of


def test_what_fits_is_left_as_it_is():
    names = ["alcohol", "malic acid", "ash"]
    assert shortened(names, 150) == names


def test_the_part_that_differs_is_kept():
    names = [f"mean of the concentration of {letter} in mg/l, batch 1 of 2020" for letter in "AB"]
    assert fit(names[0], 150) == fit(names[1], 150)
    first, second = shortened(names, 150)
    assert "A" in first
    assert "B" in second
    assert first.replace("A", "B") == second
    assert first.startswith("mean")


def test_names_that_cannot_be_distinguished_are_numbered():
    # They differ in two far places: three parts are too many for the room.
    names = [f"x{a}{'y' * 50}{b}{'z' * 50}{c}w" for a in "12" for b in "12" for c in "12"]
    found = shortened(names, 60)
    assert len(set(found)) == 8
    assert any(name.endswith(")") for name in found)


def test_the_same_name_twice_is_the_same_label_twice():
    long = "a name that is far too long for the room there is"
    assert len(set(shortened([long, long], 100))) == 1


@pytest.mark.parametrize("room", [60.0, 100.0, 150.0])
def test_labels_fit_and_differ_whatever_the_names(room):
    source = random.Random(0)
    for _ in range(200):
        names = [
            "".join(source.choices("abW…", k=source.randint(0, 40)))
            for _ in range(source.randint(1, 30))
        ]
        found = shortened(names, room)
        assert len(set(found)) == len(set(names))
        assert max(map(width_of, found)) <= room
        assert all(a == b for a, b in zip(names, found, strict=True) if width_of(a) <= room - 30)


def test_marks_take_no_room_and_wide_letters_more():
    assert width_of("e\N{COMBINING ACUTE ACCENT}") == width_of("e")
    assert width_of("中") > width_of("W") > width_of("e") > width_of("i")
