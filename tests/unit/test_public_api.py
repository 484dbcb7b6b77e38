"""Public names, signatures and docstrings against the definitions of `exactk.params`."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import exactk
from exactk.errors import InputError
from exactk.params import DEFAULTS, PARAMS, Anything
from exactk.utils.records_table import TableResult

QUESTIONS = (
    "best_sets", "certify", "certify_path", "choose_k", "evaluate", "explain", "investigate",
    "stability",
)  # fmt: skip
ESTIMATORS = ("TopKSelector", "TopKClassifier", "TopKRegressor")
CONFIGURATIONS = ("AutoK", "Constraints")
# Parameters of one function, documented there.
OWN = {"path", "target"}
TABLE = ["sample_weight", "task", "loss", "class_weight", "constraints"]


def _parameters(name: str) -> dict[str, inspect.Parameter]:
    given = dict(inspect.signature(getattr(exactk, name)).parameters)
    return {n: p for n, p in given.items() if n not in ("X", "y")}


def _documented(name: str) -> list[str]:
    """Names under "Parameters" of a numpydoc docstring, in their order."""
    text = inspect.getdoc(getattr(exactk, name)) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.M | re.S)
    assert section is not None
    heads = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", section[1], re.M)
    return [word.strip() for head in heads for word in head.split(",")]


@pytest.mark.parametrize("name", [*QUESTIONS, *ESTIMATORS, *CONFIGURATIONS])
def test_every_parameter_is_defined_once(name: str) -> None:
    for parameter in _parameters(name).values():
        if parameter.name in OWN:
            continue
        assert parameter.name in PARAMS, f"{name}: {parameter.name}"
        default = DEFAULTS.get(name, {}).get(parameter.name, PARAMS[parameter.name].default)
        assert parameter.default == default, f"{name}: {parameter.name}"


@pytest.mark.parametrize("name", [*QUESTIONS, *ESTIMATORS, *CONFIGURATIONS])
def test_the_docstring_has_the_parameters_of_the_signature_in_their_order(name: str) -> None:
    documented = [word for word in _documented(name) if word not in ("X", "y")]
    assert documented == list(_parameters(name))


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_takes_a_table_or_a_problem_and_keywords(name: str) -> None:
    given = inspect.signature(getattr(exactk, name)).parameters
    assert list(given)[:2] == ["X", "y"]
    assert given["y"].default is None
    rest = list(given.values())[2:]
    assert {parameter.kind for parameter in rest} == {inspect.Parameter.KEYWORD_ONLY}
    assert [parameter.name for parameter in rest][-len(TABLE) :] == TABLE


def test_estimators_have_the_same_parameters() -> None:
    of = {name: _parameters(name) for name in ESTIMATORS}
    selector = of["TopKSelector"]
    assert len(selector) <= 12
    assert set(of["TopKClassifier"]) == set(selector) - {"task"}
    assert set(of["TopKRegressor"]) == set(selector) - {"task", "class_weight"}
    for name in ESTIMATORS:
        differ = {n for n, p in of[name].items() if p.default != selector[n].default}
        assert differ <= {"loss"}


# A value that no parameter may have.
WRONG = object()
CHECKED = [
    (name, parameter)
    for name in (*QUESTIONS, *ESTIMATORS)
    for parameter in _parameters(name)
    if parameter in PARAMS and not isinstance(PARAMS[parameter].check, Anything)
]


@pytest.mark.parametrize(("name", "parameter"), CHECKED)
def test_a_wrong_value_is_refused_by_name(name: str, parameter: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 4)), np.arange(24) % 2
    given: dict[str, Any] = {"k": 2} if "k" in _parameters(name) else {"k_max": 2}
    given[parameter] = WRONG
    kind: Callable[..., Any] = getattr(exactk, name)
    call = (lambda: kind(**given).fit(X, y)) if name in ESTIMATORS else partial(kind, X, y, **given)
    with pytest.raises(InputError) as error:
        call()
    assert error.value.parameter == parameter
    assert parameter in str(error.value)


def test_all_public_names_exist() -> None:
    for name in exactk.__all__:
        assert getattr(exactk, name) is not None
    assert sorted(exactk.__all__) == dir(exactk)


def test_results_share_one_protocol() -> None:
    kinds = (
        "AutoKResult", "BestSets", "Certificate", "CertifiedPath", "Evaluation", "Explanation",
        "Path", "Result", "SelectionReport", "Stability",
    )  # fmt: skip
    for name in kinds:
        kind = getattr(exactk, name)
        assert issubclass(kind, TableResult), name
        for method in ("to_dict", "to_json", "to_frame", "_repr_html_", "__repr__"):
            assert callable(getattr(kind, method)), f"{name}.{method}"


def test_import_loads_no_large_library() -> None:
    code = "import sys, exactk; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "exactk" in loaded
    assert not {"numpy", "scipy", "sklearn", "narwhals", "click"} & set(loaded)
