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
import pandas as pd
import pytest
from sklearn.feature_selection import SelectKBest, f_regression

import exactk
from exactk import TopKSelector
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


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("stability", "n_subsamples"), ("stability", "threshold"), ("choose_k", "rule"),
        ("choose_k", "criterion"), ("choose_k", "method"), ("certify", "gap"),
        ("explain", "tolerance"), ("investigate", "n_permutations"),
    ],
)  # fmt: skip
def test_none_is_refused_where_it_has_no_meaning(name: str, parameter: str) -> None:
    X, y = np.random.default_rng(0).normal(size=(24, 4)), np.arange(24) % 2
    given: dict[str, Any] = {"k": 2} if "k" in _parameters(name) else {"k_max": 2}
    with pytest.raises(InputError) as error:
        getattr(exactk, name)(X, y, **given, **{parameter: None})
    assert error.value.parameter == parameter


def _line(n_rows: int = 200) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, 5))
    return X, X[:, 1] - X[:, 3] + 0.5 * rng.normal(size=n_rows)


def test_features_may_be_any_list_of_columns() -> None:
    X, y = _line()
    kept = SelectKBest(f_regression, k=2).fit(X, y)
    assert kept.get_support(indices=True).tolist() == [1, 3]
    mask = np.isin(np.arange(5), [1, 3])
    for features in (
        [1, 3], ("x1", "x3"), np.array([3, 1]), np.array(["x1", "x3"]), mask, mask.tolist(),
        pd.Index(["x1", "x3"]), pd.Series([1, 3]), kept, TopKSelector(k=2).fit(X, y),
    ):  # fmt: skip
        assert exactk.explain(X, y, features=features).support.tolist() == [1, 3]
    table = pd.DataFrame({"a": X[:, 1], "kind": np.where(X[:, 3] > 0, "up", "down"), "c": X[:, 0]})
    selector = TopKSelector(k=2).fit(table, y)
    names = selector.get_feature_names_out()
    assert exactk.explain(table, y, features=names).table["feature"] == ["a", "kind"]
    assert exactk.explain(table, y, features=[0, 1]).table["feature"] == ["a", "kind"]


@pytest.mark.parametrize(
    "features", [5, [[0, 1]], {"x0"}, [0.5], [], [0, 0], ["x9"], [7], SelectKBest(k=1), object()]
)
def test_other_features_are_refused(features: Any) -> None:
    X, y = _line(60)
    with pytest.raises(InputError) as error:
        exactk.explain(X, y, features=features)
    assert error.value.parameter == "features"
    with pytest.raises(InputError) as error:
        exactk.explain(X[:, :2], y, features=TopKSelector(k=3).fit(X, y))
    assert error.value.parameter == "features"


def test_a_selection_of_other_rows_is_fitted_to_these() -> None:
    X, y = _line()
    selector = TopKSelector(k=2).fit(X[:100], y[:100])
    noise = np.random.default_rng(0).normal(size=100)
    for features in (selector, selector.result_):
        one, other = (
            exactk.evaluate(X[100:], noise, features=given, ridge=0.1, n_permutations=9)
            for given in (features, ["x1", "x3"])
        )
        assert one.observed == other.observed < 0.1
        assert one.n_as_good == other.n_as_good
        found = exactk.stability(X[100:], y[100:], features=features, n_subsamples=2)
        problem = exactk.Problem.from_arrays(X[100:], y[100:], ridge=0.1)
        assert found.full.objective == pytest.approx(problem.objective([1, 3]))
