"""What the package promises about itself is said once and holds."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from importlib.resources import files

import pytest

import exactk
from tests.conftest import ROOT


def test_one_version():
    assert exactk.__version__ == version("exactk")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == exactk.__version__


def test_typed():
    assert files("exactk").joinpath("py.typed").is_file()


@pytest.fixture
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def makefile():
    return (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_lowest_versions_of_every_extra_but_deep_are_tested(project, makefile):
    installed = re.search(r"--resolution lowest-direct[^[]*\[([\w,]+)\]", makefile)[1]
    assert {*installed.split(","), "deep"} == set(project["optional-dependencies"])


def test_every_dependency_has_a_lower_bound(project):
    extras = project["optional-dependencies"].values()
    for line in [*project["dependencies"], *(line for extra in extras for line in extra)]:
        assert re.fullmatch(r"[\w-]+(\[[\w,]+\])?>=[\d.]+", line)


def test_the_deep_methods_are_tested_with_the_version_of_their_extra(project, makefile):
    (line,) = project["optional-dependencies"]["deep"]
    installed = re.search(r"^TORCH := torch==([\d.]+)", makefile, re.M)[1]
    assert installed.startswith(line.removeprefix("torch>=") + ".")
