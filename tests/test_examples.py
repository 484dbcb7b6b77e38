"""The scripts of examples/ run as they are, say what is true, and print what their page shows."""

from __future__ import annotations

import ast
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
PAGE = ROOT / "docs" / "examples.md"

pytestmark = pytest.mark.examples
MARKS = {"dask_table": [pytest.mark.dask], "spark_table": [pytest.mark.spark]}
CLUSTERS = ("dask_table", "spark_table")
# A cluster on a busy machine is given more time to answer than it usually has.
PATIENCE = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "300s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "300s",
    "DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "300s",
}
# pyspark itself says so when it is imported beside a pandas that is newer than it.
PYSPARK_WARNS = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def run(script: Path, folder: Path, *arguments: str, **settings: str) -> str:
    """What a script prints, which has nothing to complain about."""
    # Data sets that happen to lie on this machine must not decide what is tested.
    nowhere = {name: str(folder) for name in ("EXACTK_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA")}
    warnings = {"PYTHONWARNINGS": PYSPARK_WARNS} if script.stem == "spark_table" else {}
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        env={**os.environ, **PATIENCE, **nowhere, **warnings, "PYTHONUTF8": "1", **settings},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if script.stem in CLUSTERS:
        # They log affairs of their own: Java at the start, Dask when workers are slow to end.
        assert "Traceback" not in done.stderr
        assert not re.search(r"\b[A-Z]\w*Warning: ", done.stderr), done.stderr
    else:
        assert done.stderr == ""
    return done.stdout


def shown(script: Path) -> str:
    """What the page says that a script prints."""
    link = f"[examples/{script.name}](../examples/{script.name})"
    text = PAGE.read_text(encoding="utf-8")
    assert link in text, f"docs/examples.md has no section with the output of {script.name}"
    return text.split(link)[1].split("```text\n")[1].split("```")[0]


def timeless(text: str) -> list[str]:
    """Lines without what depends on the machine, as whether a proof ends in time."""
    text = re.sub(r"^(proof +).*$", r"\1by the clock", text.strip(), flags=re.M)
    text = re.sub(r"right to [\d.e-]+", "right to some digits", text)
    return re.sub(r"[\d.]+ (s|MB|times)\b", r"some \1", text).splitlines()


def table(text: str, first: str) -> list[list[str]]:
    """Words of the lines that follow the one that begins with `first`, up to an empty one."""
    after = text.split(f"\n{first}")[1].split("\n", 1)[1]
    return [line.split() for line in after.split("\n\n")[0].splitlines()]


def demo_is_ahead(printed: str) -> None:
    scores = dict(re.findall(r"^  (\w+).* ([\d.]+)%$", printed, flags=re.M))
    assert float(scores["exactk"]) > float(scores["SelectKBest"]) > float(scores["largest"])
    assert "Proven: no other 3 columns" in printed
    assert printed.endswith(": demo_report.html\n")


def every_setting_is_tried(printed: str) -> None:
    scores = table(printed, "    ")
    assert len(scores) == 5
    assert len(re.findall(r"\d\d\.\d%", printed.split("chosen")[0])) == 5 * 6
    nested, every = (float(x) for x in re.findall(r"([\d.]+)% (?:nested|with all)", printed))
    # Far above the share of the larger class, 63 %, and close to a model of all columns.
    assert nested > 94
    assert abs(nested - every) < 3


def subsets_are_the_best(printed: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    centred, rest = X - X.mean(axis=0), y - y.mean()
    for k in (1, 4, 6, 9):
        squares = {
            columns: np.sum((rest - centred[:, columns] @ _fit(centred[:, columns], rest)) ** 2)
            for columns in itertools.combinations(range(10), k)
        }
        best = min(squares, key=lambda columns: squares[columns])
        line = next(words for words in table(printed, "  k  age") if words[0] == str(k))
        assert [j for j, mark in enumerate(line[1:11]) if mark == "*"] == list(best)
        assert line[11] == f"{1 - squares[best] / (rest @ rest):.3f}"


def _fit(columns: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Any:
    return np.linalg.lstsq(columns, y, rcond=None)[0]


def panel_keeps_its_conditions(printed: str) -> None:
    rows = table(printed, "gene ")
    panel = {words[0] for words in rows}
    given = re.search(r"required (g\d+), (g\d+); excluded (g\d+)", printed)
    assert given is not None
    assert len(panel) == len(rows) == 8
    assert {*given.groups()[:2]} == {words[0] for words in rows if words[1] == "fixed"}
    assert given.group(3) not in panel
    ends = r"^proof +(no panel that keeps|not finished: a better panel could)"
    assert re.search(ends, printed, re.M)
    accuracy, baseline = (float(x) for x in re.findall(r"([\d.]+)% (?:±|without genes)", printed))
    assert accuracy > baseline + 40


def planted_genes_are_found(printed: str) -> None:
    panel_keeps_its_conditions(printed)
    found = re.search(r"planted +(\d) of 8 genes", printed)
    assert found is not None
    assert int(found.group(1)) >= 6


def robust_losses_find_more(printed: str) -> None:
    found = {
        " ".join(re.findall(r"[a-z]\w+", " ".join(words))): [
            float(word.rstrip("%")) for word in words if word.endswith("%")
        ]
        for words in table(printed, "loss ")
    }
    assert list(found) == ["squared", "huber", "l21", "l2r"]
    for robust in ("huber", "l21", "l2r"):
        assert found[robust][0] >= 95
        assert found[robust][2] > found["squared"][2] + 20


def planted_columns_are_found(printed: str) -> None:
    assert "planted found  5 of 5\n" in printed
    assert "chosen         usage_3, usage_7, usage_11, usage_12, usage_18\n" in printed


def memory_is_bounded(printed: str) -> None:
    planted_columns_are_found(printed)
    assert printed.startswith("rows           10,000,000 in 100 files, ")
    peak, before = (float(x) for x in re.findall(r"(\d+) MB (?:in all|while)", printed))
    # The pass may add blocks of rows, of which the table has 800 MB.
    assert peak < before + 300


def dask_agrees(printed: str) -> None:
    assert "as in memory  yes, in the same order of use\n" in printed
    assert printed.startswith("1,797 rows in 6 partitions on 2 workers\n")


def spark_agrees(printed: str) -> None:
    assert "as in memory  yes\n" in printed
    names = re.findall(r"^chosen +(.*)$", printed, flags=re.M)[0].split(", ")
    assert len(names) == 5
    assert set(names) < set(load_wine().feature_names)


FACTS: dict[str, Callable[[str], None]] = {
    "best_subsets": subsets_are_the_best,
    "dask_table": dask_agrees,
    "demo": demo_is_ahead,
    "gene_panel": planted_genes_are_found,
    "parquet_ten_million_rows": memory_is_bounded,
    "pipeline_grid_search": every_setting_is_tried,
    "robust_outliers": robust_losses_find_more,
    "spark_table": spark_agrees,
}


@pytest.mark.parametrize(
    "script", [pytest.param(path, marks=MARKS.get(path.stem, []), id=path.stem) for path in SCRIPTS]
)
def test_a_script_prints_the_truth_and_what_its_page_shows(script: Path, tmp_path: Path) -> None:
    printed = run(script, tmp_path)
    assert script.stem in FACTS, f"say in FACTS what is true of the output of {script.name}"
    FACTS[script.stem](printed)
    assert timeless(printed) == timeless(shown(script))
    # Some versions of Spark leave an empty folder where they were started.
    written = ["demo_report.html"] if script.stem == "demo" else []
    assert script.stem == "spark_table" or [path.name for path in tmp_path.iterdir()] == written


def test_fewer_rows_of_parquet(tmp_path: Path) -> None:
    script = ROOT / "examples" / "parquet_ten_million_rows.py"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    printed = run(script, tmp_path, "--rows", "200000", TMPDIR=str(temporary))
    assert printed.startswith("rows           200,000 in 2 files, ")
    planted_columns_are_found(printed)
    assert list(temporary.iterdir()) == []


def test_a_panel_of_real_genes(shared_data: Path, tmp_path: Path) -> None:
    script = ROOT / "examples" / "gene_panel.py"
    printed = run(script, tmp_path, EXACTK_DATA=str(shared_data))
    assert printed.startswith("srbct: 83 samples, 2,308 genes, 4 classes\n")
    panel_keeps_its_conditions(printed)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_says_how_to_run_it_and_is_short(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    about = ast.get_docstring(ast.parse(text))
    assert about is not None
    assert re.search(rf"make {script.stem}\b|python examples/{script.name}", about)
    assert 'if __name__ == "__main__":' in text
    assert len(text.splitlines()) < 80
