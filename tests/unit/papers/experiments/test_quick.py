"""The small version of every recipe, from its file to the page of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exactk.papers.datasets import available
from exactk.papers.experiments.cells import cells
from exactk.papers.experiments.page.html import page
from exactk.papers.experiments.protocols import run_cell
from exactk.papers.experiments.reading import read_recipe, recipe_names
from exactk.papers.experiments.summary import summarise
from tests.conftest import data_folder


@pytest.fixture(autouse=True)
def _data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXACTK_DATA", str(data_folder() or tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", recipe_names())
def test_the_small_version_runs_and_every_view_has_something_to_show(name: str) -> None:
    recipe = read_recipe(name).restrict(quick=True)
    here, _ = available(recipe.datasets)
    assert here, "a small version has a data set that is always there"
    recipe = recipe.restrict(datasets=here)
    records: list[dict[str, Any]] = [
        {"type": "recipe", "name": recipe.name, "definition": recipe.to_dict()}
    ]
    for number, cell in enumerate(cells(recipe)):
        body = run_cell(cell, 30.0)
        assert body["results"], f"{cell.variant.label} on {cell.dataset}: {body['reason']}"
        records.append(
            {
                "type": "cell",
                "schema": 1,
                "key": str(number),
                "recipe": recipe.name,
                "protocol": recipe.protocol,
                "dataset": cell.dataset,
                "method": cell.variant.label,
                "name": cell.variant.method,
                "options": dict(cell.variant.options),
                "sizes": list(cell.sizes),
                "repeat": cell.repeat,
                "seed": cell.seed,
                **body,
            }
        )
    measured = {row.measure for row in summarise(records)}
    traced = any("trace" in result for record in records[1:] for result in record["results"])
    detailed = {
        array
        for record in records[1:]
        for result in record["results"]
        for array in result.get("details", {})
    }
    for view in recipe.views:
        wanted = [view.measure] if isinstance(view.measure, str) else view.measure
        assert traced if view.kind == "trace" else set(wanted) & (measured | detailed), view.title
    html = page(records)
    for view in recipe.views:
        assert view.title.split(":")[0] in html
