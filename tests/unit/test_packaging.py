"""What the package promises about itself is said once and holds."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from importlib.resources import files

import exactk
from tests.conftest import ROOT
from tools.lowest import pins


def test_one_version():
    assert exactk.__version__ == version("exactk")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == exactk.__version__


def test_typed():
    assert files("exactk").joinpath("py.typed").is_file()


def test_lowest_versions_cover_every_runtime_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {pin.split("==")[0] for pin in pins()}
    for line in project["dependencies"]:
        assert re.match(r"[\w-]+", line)[0] in pinned
    assert {"click", "rich", "pyarrow", "pandas", "polars"} <= pinned


def test_the_deep_methods_are_tested_with_the_version_that_their_extra_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (line,) = project["optional-dependencies"]["deep"]
    installed = re.search(
        r"^TORCH_BUILD := torch==([\d.]+)", (ROOT / "Makefile").read_text(), re.M
    )[1]
    assert installed.startswith(line.removeprefix("torch>=") + ".")
