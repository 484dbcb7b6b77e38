"""."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exactk.papers.experiments.page.study import Study

__all__ = [
    "StyleRegister",
]


@dataclass(frozen=True)
class StyleRegister:
    """A style for each method.

    A method keeps its style from recipe to recipe, unless two that meet would look the same.

    Attributes
    ----------
    slots : mapping of (str, str) to int
        Style by recipe and method.
    """

    slots: dict[tuple[str, str], int]

    @classmethod
    def style_index(cls, all_studies: Sequence[Study]) -> StyleRegister:
        """Give out styles in the order of first appearance."""
        usual: dict[str, int] = {}
        slots: dict[tuple[str, str], int] = {}
        for study in all_studies:
            taken: set[int] = set()
            for name in sorted(study.methods, key=lambda name: name not in usual):
                slot = usual.get(name)
                if slot is None or slot in taken:
                    slot = next(free for free in range(len(taken) + 1) if free not in taken)
                usual.setdefault(name, slot)
                taken.add(slot)
                slots[study.name, name] = slot
        return cls(slots)
