"""What all figures share: a heading, a legend, panels in a grid, notes on what has no value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from exactk.papers.experiments.classifiers import CLASSIFIERS
from exactk.papers.experiments.page.labels import capital
from exactk.papers.experiments.page.register import StyleRegister
from exactk.papers.experiments.page.study import FigureView, Published, Study, Summary
from exactk.report import styles
from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import percent, plural, short

__all__ = [
    "FigureContext",
    "Gaps",
    "Panel",
    "all_not_run",
    "everywhere",
    "gap",
    "missing_note",
    "published_tip",
    "tip",
    "value_of",
]

# By method: k, a word and a reason for each number that is not there.
Gaps = dict[str, list[tuple[int, str, str]]]

# With so many lines in a panel, bands would cover each other.
MANY = 8
# What is nobody's fault.
HARMLESS = ("no number", "no trace", "not run", "not measured")
# So many reasons are written out below a panel; the section on failures has all.
NOTED = 4


@dataclass(frozen=True)
class FigureContext:
    """What a figure is made of: a study, one of its views, and the styles of the page."""

    study: Study
    view: FigureView
    register: StyleRegister

    def style_index(self, method: str) -> int:
        """Return the style of a method."""
        return self.register.slots[self.study.name, method]

    def is_highlighted(self, method: str) -> bool:
        """Whether a method has the thick line: the one that all others are compared with."""
        return self.study.families.get(method) == "exchange"

    def key(self, method: str) -> Markup:
        """Return the line and point of a method."""
        return styles.key(self.style_index(method), heavy=self.is_highlighted(method))

    def means(self, drawn: str, counts: Iterable[int], spread: str = "") -> str:
        """Say what is drawn: of which numbers, with which spread.

        Parameters
        ----------
        drawn : str
            What stands for the number.
        counts : iterable of int
            How many numbers are behind each.
        spread : str
            What stands for its deviation; empty if nothing does.
        """
        numbers = set(counts)
        if max(numbers, default=0) < 2:
            return f"A single {'fold' if self.study.folds else 'repeat'}."
        over = self.study.trials(max(numbers))
        if len(numbers) > 1:
            over = f"up to {over}"
        if self.view.statistic != "mean":
            return f"{drawn}: the {self.view.statistic} over {over}."
        end = f"; {spread}: ± one standard deviation" if spread else ""
        return f"{drawn}: mean over {over}{end}."

    def text(self, value: float | None, digits: int = 4) -> str:
        """Return a number in the form of the view."""
        return percent(value) if self.view.scale == "percent" else short(value, digits)

    def summary(self, dataset: str, method: str, k: int, measure: str) -> Summary | None:
        """Return a measure in the units of the view."""
        found = self.study.summary(dataset, method, k, measure)
        return found and found.scaled(self.view.factor)

    def published(self, dataset: str, method: str, k: int, measure: str) -> Published | None:
        """Return what the paper prints, in the units of the view."""
        found = self.study.published(dataset, method, k, measure)
        if found is None:
            return None
        # Papers give accuracies in per cent.
        factor = self.view.factor / (100.0 if measure in CLASSIFIERS else 1.0)
        return Published(found.value * factor, None if found.sd is None else found.sd * factor)

    def figure(
        self,
        title: str,
        panels: Sequence[Panel],
        methods: Sequence[str],
        note: object = "",
        legend: Markup | None = None,
    ) -> Markup:
        """Put panels under one heading with one legend."""
        classes = (
            f"figure{' many' if len(methods) >= MANY else ''}{' one' if len(panels) == 1 else ''}"
        )
        return tag(
            "section",
            tag("h4", title) if title else "",
            tag("p", self.view.caption, class_="caption") if self.view.caption else "",
            legend or (self.legend(methods) if methods else ""),
            tag("div", *(panel.markup() for panel in panels), class_="panels"),
            tag("p", note, class_="caption") if note else "",
            class_=classes,
        )

    def legend(self, methods: Iterable[str]) -> Markup:
        """Return the methods of a figure with their lines."""
        items = [tag("li", self.key(name), label(name)) for name in methods]
        return tag("ul", *items, class_="legend")


@dataclass(frozen=True)
class Panel:
    """One picture of a figure, for one data set.

    Attributes
    ----------
    dataset : str or None
        None for a panel on all of them.
    picture : Markup
    heading : str
        What tells it apart from other panels of the same data set.
    notes : sequence of Markup
    """

    dataset: str | None
    picture: Markup
    heading: str = ""
    notes: Sequence[Markup] = field(default_factory=tuple)

    def markup(self) -> Markup:
        """Return the panel with its heading and notes."""
        parts: list[object] = []
        if self.dataset is not None:
            parts.append(tag("b", label(self.dataset)))
        if self.heading:
            parts += [" · " if parts else "", tag("span", label(self.heading))]
        notes = tag("p", *self.notes, class_="notes") if self.notes else ""
        return tag(
            "figure",
            tag("figcaption", *parts),
            self.picture,
            notes,
        )


def tip(context: FigureContext, method: str, at: str, found: Summary) -> str:
    """Return what a point says: method, place, mean, deviation, count."""
    spread = "" if found.sd is None else f" ± {context.text(found.sd, 2)}"
    value = context.text(value_of(found, context.view.statistic))
    if context.view.statistic != "mean":
        return f"{method}\n{at}: {value} ({context.view.statistic} of n = {found.n})"
    return f"{method}\n{at}: {value}{spread} (n = {found.n})"


def published_tip(context: FigureContext, method: str, at: str, found: Published) -> str:
    """Return what a hollow point says."""
    spread = "" if found.sd is None else f" ± {context.text(found.sd, 2)}"
    return f"{method}, published\n{at}: {context.text(found.value)}{spread}"


def value_of(found: Summary, statistic: str) -> float:
    """Return the mean, or the least or greatest over the repeats."""
    return {"min": found.low, "max": found.high}.get(statistic, found.mean)


def gap(word: str, reason: str = "") -> Markup:
    """Return what stands in place of a number; red only if something went wrong."""
    kind = "gap mild" if word in HARMLESS else "gap"
    return tag("span", word, title=reason or None, class_=kind)


def all_not_run(gaps: Gaps, count: int) -> bool:
    """Whether of so many methods nothing was run here, so that there is nothing to say."""
    words = {word for found in gaps.values() for _, word, _ in found}
    return len(gaps) == count and words <= {"not run"}


def everywhere(context: FigureContext, panels: Sequence[Gaps]) -> tuple[list[Gaps], Markup]:
    """Take out of the panels the methods that never have this measure, to be named once.

    Returns
    -------
    gaps : list of mapping
        What is left for each panel.
    note : Markup
        On those taken out.
    """
    found: dict[str, list[str]] = {}
    for method in context.study.methods:
        words = {word for gaps in panels for _, word, _ in gaps.get(method, ())}
        counts = {len(gaps.get(method, ())) for gaps in panels}
        if len(words) == len(counts) == 1 and words <= {"no number", "no trace"}:
            found.setdefault(words.pop(), []).append(method)
    gone = {method for methods in found.values() for method in methods}
    left = [{m: lacking for m, lacking in gaps.items() if m not in gone} for gaps in panels]
    notes: list[object] = []
    for word, methods in found.items():
        names = [part for method in methods for part in (", ", label(method))]
        notes += [f" {capital(word)}: ", *names[1:], "."]
    return left, join(*notes)


def missing_note(gaps: Gaps) -> list[Markup]:
    """Say which methods lack values in a panel and why.

    Parameters
    ----------
    gaps : mapping of str to list of (k, word, reason)
        By method.
    """
    notes = []
    for place, (method, found) in enumerate(gaps.items()):
        k, word, reason = found[0]
        where = f"k = {k}" if len(found) == 1 else plural(len(found), "size")
        notes.append(
            tag(
                "span",
                gap(word), ": ", label(method), f" ({where})",
                title=reason,
                class_=None if place < NOTED else "further",
            )
        )  # fmt: skip
    if len(notes) > NOTED:
        notes.append(tag("span", f"and {plural(len(notes) - NOTED, 'method')} more (see below)"))
    return notes
