"""How the numbers were made: machine, versions, seeds, data, and the command to make them again."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from exactk.errors import InputError
from exactk.papers.experiments.page.study import Study
from exactk.papers.experiments.reading import read_recipe
from exactk.report import tables
from exactk.report.markup import Markup, join, label, tag
from exactk.report.numbers import DASH, finite, plural, short

__all__ = ["command", "origin"]


def command(study: Study) -> str:
    """Return the command that runs this recipe again: same data, methods, sizes, repeats, seed.

    What is as in the recipe that comes with exactk, or in its small version if that was run, is not
    written out. A recipe of one's own is named as a file.

    Examples
    --------
    >>> definition = {
    ...     "datasets": ["iris"],
    ...     "sizes": [2, 3, 4],
    ...     "repeats": 3,
    ...     "methods": [{"label": "A B"}],
    ... }
    >>> command(Study("mine", definition, []))
    "exactk papers run PATH/TO/mine.toml --datasets iris --methods 'A B' --sizes 2-4 --repeats 3"
    """
    definition = study.definition
    try:
        recipe = read_recipe(study.name)
        shipped: Mapping[str, Any] = recipe.restrict(quick=study.small).to_dict()
        labels = [variant["label"] for variant in shipped["methods"]]
        words = ["exactk", "papers", "run", study.name]
    except InputError:
        # Of a recipe of one's own the store has the small version alone.
        shipped = (definition.get("quick") or {}) if study.small else {}
        labels = list(shipped.get("methods") or ())
        words = ["exactk", "papers", "run", f"PATH/TO/{study.name}.toml"]
    if study.small:
        words.append("--quick")
    sizes = [int(k) for k in definition.get("sizes") or study.sizes]
    for option, usual, values in (
        ("--datasets", shipped.get("datasets"), study.requested_datasets),
        ("--methods", labels, study.requested_methods),
        ("--sizes", shipped.get("sizes"), sizes),
    ):
        if values and list(values) != list(usual or ()):
            words += [option, _sizes(sizes) if values is sizes else ",".join(map(str, values))]
    repeats = definition.get("repeats")
    if repeats and repeats != shipped.get("repeats"):
        words += ["--repeats", str(repeats)]
    seed = study.cells[0].get("run_seed") if study.cells else None
    if seed:
        words += ["--seed", str(seed)]
    return shlex.join(words)


def _sizes(sizes: list[int]) -> str:
    """Sizes as the command line reads them, runs of neighbours as ranges."""
    runs: list[list[int]] = []
    for k in sizes:
        if runs and k == runs[-1][-1] + 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def origin(studies: Sequence[Study]) -> Markup:
    """Return the section on machine, versions, seeds, data and commands."""
    cells = [cell for study in studies for cell in study.cells]
    return tag(
        "section",
        tag("h2", "How this was made"),
        _times(cells),
        tag("h3", "Commands"),
        tag("p", "Each runs a recipe again on the same data, with the same methods and repeats."),
        *(_command(study) for study in studies),
        tag("h3", "Machine and versions"),
        _variants("machine", cells),
        _variants("versions", cells),
        tag("h3", "Data"),
        _data(cells),
        tag("h3", "Seeds"),
        _seeds(studies),
        tag("h3", "Recipes as they were run"),
        *(_definition(study) for study in studies if study.definition),
        id="origin",
        class_="origin",
    )


def _command(study: Study) -> Markup:
    return tag(
        "pre",
        tag("code", command(study)),
        class_="command",
        # What scrolls must be reachable by keyboard.
        tabindex="0",
        role="region",
        aria_label=f"Command of {study.name}",
    )


def _times(cells: Sequence[Mapping[str, Any]]) -> Markup:
    ends = sorted(str(cell["finished"]) for cell in cells if cell.get("finished"))
    wall = sum(finite(cell.get("wall")) or 0.0 for cell in cells)
    solving = sum(finite(cell.get("seconds")) or 0.0 for cell in cells)
    span = f", finished between {ends[0]} and {ends[-1]}" if ends else ""
    return tag(
        "p",
        f"{plural(len(cells), 'cell')}{span}; {short(solving, 3)} s of solving within "
        f"{short(wall, 3)} s of work. A time is that of the solver alone, without evaluation.",
    )


def _variants(name: str, cells: Sequence[Mapping[str, Any]]) -> Markup:
    """Every distinct description with the number of cells made under it."""
    found = Counter(
        json.dumps(cell[name], sort_keys=False)
        for cell in cells
        if isinstance(cell.get(name), Mapping)
    )
    if not found:
        return tag("p", f"The records do not state the {name}.")
    lists = []
    for text, count in found.most_common():
        entries = [
            tag(
                "div",
                tag("dt", key.replace("_", " ")),
                tag("dd", label(DASH if value is None else value)),
            )
            for key, value in json.loads(text).items()
        ]
        of = tag("p", f"{plural(count, 'cell')}:") if len(found) > 1 else ""
        lists.append(join(of, tag("dl", *entries, class_="facts")))
    return join(*lists)


def _data(cells: Sequence[Mapping[str, Any]]) -> Markup:
    facts = dict.fromkeys(
        (
            cell["dataset"],
            cell.get("rows"),
            cell.get("features"),
            cell.get("classes"),
            cell.get("checksum"),
        )
        for cell in cells
    )
    rows = [
        tag(
            "tr",
            tag("th", label(name), scope="row"),
            *(
                tables.cell(DASH if value is None else value, finite(value))
                for value in (n, d, classes)
            ),
            tag("td", tag("code", label(checksum or DASH)), class_="checksum"),
        )
        for name, n, d, classes, checksum in facts
    ]
    heads = join(
        tables.head("data set", numeric=False), tables.head("rows"), tables.head("features"),
        tables.head("classes"), tables.head("checksum", numeric=False),
    )  # fmt: skip
    return tables.table(rows, heads, kind="data", name="Data sets")


def _seeds(studies: Sequence[Study]) -> Markup:
    parts = []
    for study in studies:
        seeds: dict[str, dict[int, Any]] = {}
        for cell in study.cells:
            seeds.setdefault(cell["dataset"], {}).setdefault(int(cell["repeat"]), cell.get("seed"))
        lines = "\n".join(
            f"{name}: {', '.join(str(seed) for _, seed in sorted(found.items()))}"
            for name, found in seeds.items()
        )
        parts.append(
            tag(
                "details",
                tag("summary", label(study.name), ", by data set and repeat"),
                tag("pre", lines),
            )
        )
    return join(*parts)


def _definition(study: Study) -> Markup:
    text = json.dumps(study.definition, indent=1, ensure_ascii=False, default=str)
    return tag("details", tag("summary", label(study.name)), tag("pre", text))
