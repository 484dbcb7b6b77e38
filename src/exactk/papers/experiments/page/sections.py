"""One recipe on the page: what it is, its tables and figures, what did not finish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from exactk.papers.experiments.page import tables
from exactk.papers.experiments.page.figures.bars import bars
from exactk.papers.experiments.page.figures.curve import against_parameter, curves
from exactk.papers.experiments.page.figures.diagram import diagram
from exactk.papers.experiments.page.figures.panels import FigureContext
from exactk.papers.experiments.page.figures.profile import profiles
from exactk.papers.experiments.page.figures.trace import traces
from exactk.papers.experiments.page.labels import PAPERS
from exactk.papers.experiments.page.ranks import ranking
from exactk.papers.experiments.page.register import StyleRegister
from exactk.papers.experiments.page.study import FigureView, Study
from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import plural, short

__all__ = ["section"]

# Numbers behind a figure are written out up to so many.
MOST_NUMBERS = 3000
SMALL = (
    "Small version (--quick): fewer data sets, sizes, methods and repeats than the text below "
    "speaks of."
)


def section(study: Study, register: StyleRegister, anchor: str) -> Markup:
    """Return the section of a recipe."""
    parts = (
        [_view(FigureContext(study, view, register)) for view in study.views] if study.cells else []
    )
    compared = {
        measure for view in study.views if view.kind == "table" for measure in view.measures
    }
    plain = FigureContext(study, FigureView("table", ()), register)
    # What a paper prints is compared also where no table was asked for.
    printed = dict.fromkeys(one.measure for one in study.comparisons)
    parts += [tables.comparison_table(plain, name) for name in printed if name not in compared]
    return tag(
        "section",
        tag("h2", label(study.title)),
        tag("p", SMALL, class_="banner") if study.small else "",
        _about(study),
        *parts,
        _endings(plain) if study.cells else tag("p", "Nothing was run yet.", class_="empty"),
        id=anchor,
        class_="recipe",
    )


def _about(study: Study) -> Markup:
    definition = study.definition
    paper = str(definition.get("paper") or "")
    facts = [
        ("recipe", study.name),
        ("paper", PAPERS.get(paper, paper)),
        ("shows", _names(definition.get("shows") or ())),
        ("setting", _setting(study)),
        ("data sets", _names(study.datasets or study.requested_datasets)),
        ("cells", _progress(study)),
    ]
    entries = [tag("div", tag("dt", name), tag("dd", _one(text))) for name, text in facts if text]
    paragraphs = [
        tag("p", part) for part in str(definition.get("about") or "").split("\n\n") if part.strip()
    ]
    return join(*paragraphs, tag("dl", *entries, class_="facts"), _not_run(study))


def _not_run(study: Study) -> Markup:
    """What the recipe asks for and the store has nothing of, in a line."""
    if not study.cells:
        return Markup()
    lacking = (
        (study.requested_datasets, study.datasets, "no data there"),
        (study.requested_methods, study.methods, "what they need is not installed"),
    )
    return join(
        *(
            tag("p", "Not run: ", _names(gone), f" ({why}, or not asked for)", class_="not-run")
            for asked, have, why in lacking
            if (gone := [name for name in asked if name not in have])
        )
    )


def _one(text: str) -> Markup:
    return text if isinstance(text, Markup) else label(text)


def _names(names: Iterable[object]) -> Markup:
    """Names in a row; each keeps its own direction of writing."""
    parts = [part for name in names for part in (", ", label(name))]
    return join(*parts[1:])


def _setting(study: Study) -> str:
    definition = study.definition
    words = {
        "fit": "fitted and graded on the same rows",
        "classify": "accuracy on rows held out",
        "regress": "error on rows held out",
    }
    protocol = str(definition.get("protocol"))
    found = [words.get(protocol, "")]
    measure: Mapping[str, Any] | None = definition.get("measure")
    if protocol == "classify" and measure is not None and not measure.get("classifiers"):
        found = ["features chosen on the training rows"]
    split: Mapping[str, Any] = definition.get("split") or {}
    if split.get("train"):
        found.append(f"{100 * float(split['train']):g} % of the rows for training")
    if definition.get("repeats"):
        found.append(study.trials(int(definition["repeats"]) * (study.folds or 1)))
    if study.sizes:
        found.append(_sizes(study.sizes))
    found.append(plural(len(study.methods or study.requested_methods), "method"))
    return ", ".join(word for word in found if word)


def _sizes(sizes: list[int]) -> str:
    if len(sizes) > 8:
        return f"k = {sizes[0]} to {sizes[-1]} ({len(sizes)} sizes)"
    return f"k = {', '.join(str(k) for k in sizes)}"


def _progress(study: Study) -> str:
    done = len(study.cells) - len(study.failures)
    ends: dict[str, int] = {}
    for trouble in study.failures:
        ends[trouble.status] = ends.get(trouble.status, 0) + 1
    words = {"failed": "failed", "time_limit": "met the time limit"}
    rest = [f"{count} {words.get(status, status)}" for status, count in ends.items()]
    return ", ".join([f"{done} done", *rest])


def _view(context: FigureContext) -> Markup:
    view = context.view
    if view.kind == "ranks":
        body = _ranks(context)
    elif view.kind == "curve" and view.x not in ("k", "iteration"):
        body = join(against_parameter(context), _numbers(context))
    elif view.kind == "table":
        body = join(*(_table(context, measure) for measure in view.measures))
    else:
        draw = {"curve": curves, "trace": traces, "bars": bars, "profile": profiles}.get(view.kind)
        if draw is None:
            body = tag(
                "p", f"This exactk does not know views of kind {view.kind!r}.", class_="empty"
            )
        else:
            body = join(draw(context), _numbers(context))
    heading = tag("h3", label(view.title)) if view.title else ""
    return tag("section", heading, body, class_=f"view {view.kind}")


def _table(context: FigureContext, measure: str) -> Markup:
    caption = tag("p", context.view.caption, class_="caption") if context.view.caption else ""
    printed = tables.comparison_table(context, measure)
    return join(caption, printed, tables.measured(context, measure))


def _numbers(context: FigureContext) -> Markup:
    """What a figure shows, as a table that is folded away."""
    study = context.study
    measures = [name for name in context.view.measures if name in study.measures]
    count = len(study.datasets) * len(study.methods) * len(study.sizes) * len(measures)
    if context.view.kind in ("trace", "profile") or not 0 < count <= MOST_NUMBERS:
        return Markup()
    return tag(
        "details",
        tag("summary", "The numbers of this figure"),
        *(tables.measured(context, name) for name in measures),
        class_="numbers",
    )


def _ranks(context: FigureContext) -> Markup:
    found = ranking(context.study, context.view.measures)
    if found is None:
        return tag("p", "No numbers to rank yet.", class_="empty")
    if found.critical is None:
        note = (
            f"No test: ranks over {plural(found.blocks, 'data set')} and "
            f"{plural(len(found.methods), 'method')} cannot be told from chance."
        )
    else:
        note = (
            f"Ranks are averaged within a data set first, and data sets are the blocks of the "
            f"tests. Friedman’s test that all methods are alike: p {_p_value(found.p_value)}. "
            f"Nemenyi’s critical difference at 5 %: {short(found.critical, 3)}; a bar joins "
            f"methods that differ by less."
        )
    if any(found.not_run):
        note += (
            f" Not complete: {plural(sum(found.not_run), 'comparison')} of "
            f"{plural(sum(map(bool, found.not_run)), 'method')} were not run, and count as last."
        )
    caption = tag("p", context.view.caption, class_="caption") if context.view.caption else ""
    return join(
        caption,
        tag("div", diagram(context, found), class_="scroll", tabindex="0", role="region",
            aria_label="Diagram"),
        tag("p", note, " Ranks are among all methods; the filters only hide.", class_="caption"),
        tables.leaderboard(context, found),
    )  # fmt: skip


def _p_value(value: float | None) -> str:
    if value is None:
        return "is not defined, all ranks are equal"
    return "< 0.0001" if value < 1e-4 else f"= {short(value, 2)}"


def _endings(context: FigureContext) -> Markup:
    failed = tables.failure_table(context)
    heading = tag("h3", "What did not finish") if failed else ""
    ends = tag(
        "details",
        tag("summary", "How the solves ended"),
        tables.status_counts(context),
        class_="numbers",
    )
    return join(heading, failed, ends)
