"""An investigation: each part is the answer of its public function, or missing with a reason."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import exactk
from exactk import AutoK, InputError, Problem, Status, TopKSelector, investigate, solve, solve_path
from exactk.data.moments import Moments
from exactk.errors import ExactkError
from exactk.methods.registry import create
from exactk.question import read_problem
from exactk.report import investigate as investigate_module
from exactk.report.facts import call_source
from exactk.report.selection_report import INTERRUPTED, OUT_OF_TIME

# Small, and with every part.
QUICK = {"n_subsamples": 6, "n_permutations": 2, "certify": 20, "compare_with": ("selectkbest",)}
NONE = {"n_subsamples": 0, "n_permutations": 0, "certify": 0, "compare_with": ()}
# In the order in which they are computed.
PARTS = ["certificate", "explanation", "stability", "choice", "evaluation", "scores"]
NAMES = list("abcdef")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=60) > 0, "yes", "no")
    return pd.DataFrame(X, columns=NAMES), y


@pytest.fixture(scope="module")
def numbers(table):
    X, _ = table
    return X, (2 * X["a"] + X["c"] + np.random.default_rng(1).normal(size=60)).to_numpy()


@pytest.fixture(scope="module")
def trap():
    """A table where greedy steps end in another set than the best."""
    rng = np.random.default_rng(3)
    u, v = rng.normal(size=(2, 100))
    X = np.c_[u + v + 0.3 * rng.normal(size=100), u, v, rng.normal(size=(100, 3))]
    problem = Problem.from_arrays(X, u + v, feature_names=NAMES)
    best = min(combinations(range(6), 2), key=lambda S: problem.objective(np.array(S)))
    assert best == (1, 2)
    assert set(solve(problem, 2, "greedy").support) != {1, 2}
    return X, u + v


def checked(report):
    """A report whose values are plain JSON, and that is drawn."""
    text = report.to_json(allow_nan=False)
    assert json.loads(text)["result"]["selected"] == list(report.result.selected)
    assert report.to_html().startswith("<!DOCTYPE html>")
    for part, why in report.missing_parts.items():
        assert why.strip(), part
    return report


def stop(*args, **options):
    raise KeyboardInterrupt


def test_the_result_is_that_of_the_selector(table):
    report = checked(investigate(*table, k=2, **QUICK))
    selector = TopKSelector(2, certify=20).fit(*table)
    assert report.result.support.tolist() == selector.selected_.tolist()
    assert report.result.objective == pytest.approx(selector.result_.objective)
    assert report.certificate.proven
    assert report.missing_parts == {}
    assert not report.interrupted


@pytest.mark.parametrize("ridge", ["auto", "cv", 0.5])
def test_a_number_that_is_chosen(table, ridge):
    report = checked(investigate(*table, ridge=ridge, random_state=3, **QUICK))
    choice = exactk.choose_k(*table, ridge=ridge, random_state=3)
    assert report.result.support.tolist() == choice.result.support.tolist()
    assert report.result.ridge == pytest.approx(choice.ridge)
    assert report.choice.table == choice.table
    by_rule = investigate(*table, k=AutoK(k_max=3, criterion="bic"), ridge=ridge, **NONE)
    assert by_rule.choice.criterion == "bic"
    assert by_rule.choice.k_max == 3


def test_a_problem_keeps_its_ridge(table):
    problem = Problem.from_arrays(*table).with_ridge(0.3)
    assert investigate(problem, k=2, **NONE).result.ridge == 0.3
    assert investigate(problem, k=2, ridge=0.0, **NONE).result.ridge == 0.0


@pytest.mark.parametrize("k", [2, "auto"])
def test_the_evaluation_is_that_of_evaluate(table, k):
    options = {"groups": np.arange(60) // 3, "cv": 4, "random_state": 5, "ridge": "cv"}
    report = investigate(*table, k=k, **options, **QUICK)
    expected = exactk.evaluate(
        *table, k=k, compare_with=["selectkbest"], n_permutations=2, **options
    )
    assert report.evaluation.k == report.result.k
    names = ["method", "test_score", "difference", "k", "features"]
    assert report.evaluation.table[names] == expected.table[names]
    assert report.evaluation.null.tolist() == expected.null.tolist()


def test_the_stability_is_that_of_stability(table):
    report = investigate(*table, k=2, random_state=4, **QUICK)
    expected = exactk.stability(*table, k=2, n_subsamples=6, random_state=4)
    assert report.stability.table == expected.table
    assert report.stability.by_size.n_subsamples == 6
    assert report.stability.by_size.sizes == list(range(1, 7))
    frequency = dict(zip(expected.table["feature"], expected.table["frequency"], strict=True))
    assert report.table["frequency"] == [frequency[name] for name in report.table["feature"]]


def test_all_rows_are_searched_once(table, monkeypatch):
    from exactk.evaluation import fold_methods

    rows = []

    def counted(problem, *args, **options):
        rows.append(problem.n_rows)
        return solve(problem, *args, **options)

    for module in (fold_methods, investigate_module):
        monkeypatch.setattr(module, "solve", counted)
    report = investigate(*table, k=2, **{**QUICK, "compare_with": (), "n_permutations": 0})
    assert rows == [60] + [48] * 5
    assert report.stability.full is report.result


def test_one_page_has_one_set_of_folds(table):
    report = investigate(*table, k=2, effort=0, **QUICK)
    problem = Problem.from_arrays(*table).with_ridge(report.result.ridge)
    again = exactk.choose_k(problem, k_max=6, cv=report.evaluation.splits, effort=0)
    assert report.choice.table["criterion"] == again.table["criterion"]
    score = report.figures["scores"]["table"][1]
    assert score["k"] == 2
    assert score["mean"] == pytest.approx(report.evaluation.test_score)
    assert score["standard_error"] == pytest.approx(report.evaluation.standard_error)


def test_a_better_set_of_the_proof_replaces_the_result(trap):
    report = checked(investigate(*trap, k=2, method="greedy", ridge=0.0, **QUICK))
    assert report.certificate.improved
    assert report.result.support.tolist() == [1, 2]
    assert set(report.table["feature"]) == set(report.explanation.selected) == {"x1", "x2"}
    assert {one["name"] for one in report.figures["means"]["features"]} == {"x1", "x2"}
    X, y = trap
    expected = np.linalg.lstsq(np.c_[np.ones(100), X[:, [1, 2]]], y, rcond=None)[0]
    raw = {row["column"]: row["raw"][0] for row in report.figures["coefficients"]}
    assert [raw["x1"], raw["x2"]] == pytest.approx(expected[1:].tolist(), abs=1e-6)
    unproven = investigate(*trap, k=2, method="greedy", ridge=0.0, **NONE)
    assert unproven.result.support.tolist() != [1, 2]


def test_a_method_with_its_own_criterion_keeps_its_selection(trap):
    X, y = trap
    labels = np.where(y > np.median(y), "high", "low")
    report = checked(investigate(X, labels, k=2, method="fisher", **QUICK))
    own = TopKSelector(2, method="fisher").fit(X, labels)
    assert set(report.result.support) == set(own.selected_)
    assert set(report.certificate.result.support) != set(own.selected_)
    assert "selects by its own criterion" in report.to_html()


def test_parts_are_left_out_on_request(table):
    report = checked(investigate(*table, k=2, **NONE))
    assert report.certificate is None
    assert report.stability is None
    assert len(report.evaluation.table) == 1
    assert len(report.evaluation.null) == 0
    assert report.missing_parts == {}
    assert investigate(*table, k=2, **{**NONE, "certify": False}).certificate is None
    assert investigate(*table, k=2, **{**NONE, "certify": True}).certificate.proven


def test_an_estimator_that_fails_costs_only_its_part(table):
    class Stubborn(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("not today")

    report = investigate(*table, k=2, estimator=Stubborn(), **QUICK)
    assert "not today" in report.missing_parts["evaluation"]
    assert report.evaluation is None
    assert report.certificate.proven
    assert "not today" in report.to_html()


def test_an_estimator_that_needs_two_features_has_no_score_for_one(table):
    pair = make_pipeline(PCA(2), LogisticRegression())
    report = checked(investigate(*table, k=2, estimator=pair, **NONE))
    assert np.isfinite(report.evaluation.test_score)
    assert list(report.missing_parts) == ["scores"]


def test_our_own_bugs_are_not_hidden(table, monkeypatch):
    monkeypatch.setattr(investigate_module, "explain", lambda *args, **options: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        investigate(*table, k=2, **NONE)


LOSSES = {
    "logistic": "classes", "l21": "classes", "optimal_scoring": "classes", "huber": "numbers",
    "poisson": "counts", "l2r": "outputs",
}  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_losses(table, numbers, loss):
    X, r = numbers
    rng = np.random.default_rng(2)
    y = {
        "classes": table[1],
        "numbers": r,
        "counts": rng.poisson(np.exp(0.5 * X["a"])).astype(float),
        "outputs": np.c_[r, X["d"] + rng.normal(size=60)],
    }[LOSSES[loss]]
    options = {**QUICK, "compare_with": (), "n_permutations": 0}
    report = checked(investigate(X, y, k=2, loss=loss, effort=0.0, **options))
    problem = read_problem(X, y, loss=loss).with_ridge(report.result.ridge)
    by_rows = not problem.loss.by_moments
    assert set(report.missing_parts) == ({"certificate", "explanation"} if by_rows else set())
    nothing = problem.objective(np.array([], dtype=int))
    for row in report.table:
        rest = [j for j in report.result.support if problem.name(j) != row["feature"]]
        loss_without = problem.objective(np.array(rest)) - problem.objective(report.result.support)
        assert row["loss"] == pytest.approx(loss_without, rel=1e-4, abs=1e-6)
        assert row["loss_fraction"] == pytest.approx(loss_without / nothing, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_included_features_have_no_rank(table, loss):
    constraints = {"include": ["f"], "exclude": ["a"]}
    report = checked(investigate(*table, k=2, loss=loss, constraints=constraints, **NONE))
    rows = [(row["rank"], row["feature"], row["included"]) for row in report.table]
    assert rows == [(1, "b", False), (None, "f", True)]


def test_moments_alone(table):
    X, y = table
    moments = Moments.from_arrays(X, np.eye(2)[(y == "yes").astype(int)])
    problem = Problem.from_moments(
        replace(moments, classes=np.array(["no", "yes"]), feature_names=tuple(NAMES))
    )
    report = checked(investigate(problem, k=2, **QUICK))
    assert report.result.support.tolist() == solve(problem, 2).support.tolist()
    assert set(report.missing_parts) == {"stability", "choice", "evaluation", "scores"}
    by_bic = checked(investigate(problem, k=AutoK(criterion="bic"), **QUICK))
    assert by_bic.choice.criterion == "bic"
    with pytest.raises(InputError):
        investigate(problem, **QUICK)


def test_a_stream_that_fits_and_one_that_does_not(table, tmp_path):
    X, y = table
    X.assign(y=y).to_parquet(tmp_path / "t.parquet")
    problem = Problem.from_files(tmp_path / "t.parquet", "y")
    held = checked(investigate(problem, k=2, **QUICK))
    assert held.missing_parts == {}
    streamed = checked(investigate(replace(problem, memory_limit=1000), k=2, **QUICK))
    assert streamed.result.support.tolist() == held.result.support.tolist()
    assert set(streamed.missing_parts) == {"evaluation", "scores"}
    assert all("memory_limit" in why for why in streamed.missing_parts.values())


ODD = {
    "one column": lambda X, y, r: (X[["a"]], y, 1),
    "all columns": lambda X, y, r: (X, y, 6),
    "fewer rows than columns": lambda X, y, r: (X[:5], y[:5], 2),
    "two rows a class": lambda X, y, r: (X[:6], list("uuvvww"), 2),
    "a class of one": lambda X, y, r: (X[:6], list("uuvvvw"), 2),
    "two rows": lambda X, y, r: (X[:2], [0, 1], 1),
    "numbers": lambda X, y, r: (X, r, 2),
    "outputs": lambda X, y, r: (X, np.c_[r, X["d"]], 2),
    "labels": lambda X, y, r: (X, np.c_[y == "yes", X["d"] > 0].astype(int), 2),
    "text": lambda X, y, r: (X.assign(t=list("uvw") * 20), y, 2),
    "number by rule": lambda X, y, r: (X[:12], y[:12], "auto"),
    "nothing to find": lambda X, y, r: (X, np.random.default_rng(0).permutation(y), 2),
    "all explained": lambda X, y, r: (X, 2 * X["a"], 2),
    "very large": lambda X, y, r: (X * 1e150, y, 2),
    "very small target": lambda X, y, r: (X, 1e-100 * r, 2),
    "a constant column in a fold": lambda X, y, r: (X.assign(f=np.r_[1.0, np.zeros(59)]), r, 2),
    "names of our tables": lambda X, y, r: (X.set_axis(["k", "index", *"abcd"], axis=1), y, 2),
    "40 classes": lambda X, y, r: (
        pd.concat([X, X + 0.01, X - 0.01]),
        [f"class {i % 40}" for i in range(180)],
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_tables(table, numbers, name):
    X, y, k = ODD[name](*table, numbers[1])
    checked(investigate(X, y, k=k, **{**QUICK, "certify": 2}))


RULES = {
    "include": {"include": ["f"]},
    "feature_groups": {"feature_groups": {"pair": ["a", "c"]}},
    "quotas": {"quotas": {"first": {"columns": ["a", "b", "c"], "at_most": 1}}},
    "budget": {"costs": dict.fromkeys(NAMES, 1.0) | {"a": 3.0}, "budget": 2.0},
    "correlation": {"max_correlation": 0.3},
}


@pytest.mark.parametrize("name", RULES)
def test_constraints(table, name):
    report = checked(investigate(*table, k=2, constraints=RULES[name], **QUICK))
    expected = exactk.certify(*table, k=2, constraints=RULES[name])
    assert report.result.support.tolist() == expected.result.support.tolist()
    assert report.certificate.proven
    assert sorted(report.table["feature"]) == sorted(report.result.selected)
    assert (set(RULES[name]) - {"costs"}) == set(report.settings["constraints"])


def test_weights_of_any_size_give_the_same(table):
    w = np.random.default_rng(0).integers(0, 3, 60)
    options = {**QUICK, "compare_with": ()}
    one, two = (investigate(*table, k=2, sample_weight=s * w, **options) for s in (1.0, 1e-3))
    assert one.result.selected == two.result.selected
    assert one.warnings == two.warnings
    assert one.settings["classes"] == two.settings["classes"]
    assert one.figures["means"]["features"][0]["means"] == pytest.approx(
        two.figures["means"]["features"][0]["means"]
    )


def test_the_same_seed_gives_the_same(table):
    for make in (int, np.random.default_rng):
        one, two, other = (
            investigate(*table, k=2, random_state=make(s), **QUICK) for s in (7, 7, 8)
        )
        assert one.evaluation.folds == two.evaluation.folds
        assert one.stability.table == two.stability.table
        assert one.figures["means"] == two.figures["means"]
        assert one.evaluation.folds != other.evaluation.folds


def test_pairs_of_rows_serve_every_part(table):
    report = investigate(*table, k=2, cv=KFold(3).split(table[0]), **QUICK)
    assert report.missing_parts == {}
    assert report.choice.n_folds == report.evaluation.n_folds == 3
    shuffled = KFold(3, shuffle=True, random_state=np.random.RandomState(0))
    one = investigate(*table, k="auto", cv=shuffled, **NONE)
    pairs = one.evaluation.splits
    assert one.choice.table == exactk.choose_k(*table, cv=pairs, ridge="auto").table
    scored = exactk.choose_k(
        Problem.from_arrays(*table).with_ridge(one.result.ridge), cv=pairs, effort=0,
        scoring="accuracy", k_max=one.choice.k_max,
    )  # fmt: skip
    means = [row["mean"] for row in one.figures["scores"]["table"]]
    assert means == pytest.approx(scored.table["mean"])


def test_a_notebook_shows_features_and_warnings(table):
    X, y = table
    shown = investigate(X.assign(f=3.0), y, k=2, **NONE)._repr_html_()
    assert "<th>substitute</th>" in shown
    assert "<th>frequency</th>" not in shown
    assert "the same value in every row" in shown
    assert "SelectionReport(2 of 6 features" in shown


def test_name_of_the_target(table):
    X, y = table
    assert investigate(X, pd.Series(y, name=0), k=2, **NONE).settings["target"] == "0"
    assert investigate(X, y, k=2, target="sold", **NONE).settings["target"] == "sold"
    one = investigate(X, pd.DataFrame({"sold": y}), k=2, **NONE)
    assert repr(one) == "SelectionReport(2 of 6 features for 'sold': a, b)"


def test_method_objects(table):
    report = checked(investigate(*table, k=2, method=create("gsrfs", lam=0.5), **QUICK))
    expected = TopKSelector(2, method=create("gsrfs", lam=0.5)).fit(*table)
    assert report.result.support.tolist() == expected.selected_.tolist()
    assert report.settings["call"]["method"] == 'exactk.registry.create("gsrfs", lam=0.5)'


def test_a_time_limit_is_shared_among_the_parts(table, monkeypatch):
    # The clock stands still, so every part gets its share.
    monkeypatch.setattr(investigate_module.time, "monotonic", lambda: 0.0)
    report = checked(investigate(*table, k=2, time_limit=0.01, **{**QUICK, "n_subsamples": 50}))
    assert report.stability.n_subsamples < 50
    assert report.stability.status == Status.TIME_LIMIT


def test_no_part_begins_after_the_time_limit(table):
    report = checked(investigate(*table, k=2, time_limit=1e-6, **QUICK))
    assert not report.interrupted
    assert report.missing_parts == dict.fromkeys(PARTS, OUT_OF_TIME)
    assert "The time limit was reached; sections are missing." in report.to_html()


CALLS = {
    "certificate": "prove", "explanation": "explain", "stability": "measure_stability",
    "choice": "choose_k", "evaluation": "measure_evaluation", "scores": "_scores",
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_ctrl_c_in_a_part_keeps_those_before(table, monkeypatch, part):
    monkeypatch.setattr(investigate_module, CALLS[part], stop)
    report = checked(investigate(*table, k=2, **QUICK))
    assert report.interrupted
    at = PARTS.index(part)
    assert report.missing_parts == dict.fromkeys(PARTS[at:], INTERRUPTED)
    assert report.result.selected == ("a", "b")
    assert "Stopped early; sections are missing." in report.to_html()


def test_ctrl_c_in_the_permutation_test_keeps_the_scores(table, monkeypatch):
    from exactk.evaluation import evaluate as evaluate_module

    monkeypatch.setattr(evaluate_module, "permuted_problems", stop)
    report = checked(investigate(*table, k=2, **QUICK))
    assert report.interrupted
    assert len(report.evaluation.null) == 0
    assert np.isfinite(report.evaluation.test_score)
    assert list(report.missing_parts) == ["scores"]


def test_ctrl_c_at_the_end_loses_nothing(table, monkeypatch):
    calls = iter([stop, investigate_module.find_warnings])
    monkeypatch.setattr(investigate_module, "find_warnings", lambda *args: next(calls)(*args))
    report = checked(investigate(*table, k=2, **QUICK))
    assert report.interrupted
    assert report.missing_parts == {}


@pytest.mark.parametrize(("name", "k"), [("solve", 2), ("choose_k", "auto")])
def test_ctrl_c_in_the_first_search(table, monkeypatch, name, k):
    found = exactk.choose_k(*table) if k == "auto" else solve(Problem.from_arrays(*table), 2)
    found = replace(found, status=Status.INTERRUPTED)
    monkeypatch.setattr(investigate_module, name, lambda *args, **options: found)
    report = checked(investigate(*table, k=k, **QUICK))
    assert report.interrupted
    assert set(report.missing_parts) == set(PARTS) - ({"choice"} if k == "auto" else set())
    assert report.result is (found.result if k == "auto" else found)
    monkeypatch.setattr(investigate_module, name, stop)
    with pytest.raises(KeyboardInterrupt):
        investigate(*table, k=k, **QUICK)


BAD = {
    "k": 0, "cv": 1, "groups": [1, 2], "estimator": "nix", "scoring": "nix", "certify": -1,
    "n_subsamples": 1, "n_permutations": 0.5, "effort": -1, "time_limit": 0, "random_state": -1,
    "ridge": -1, "task": "nix", "sample_weight": [-1] * 60, "method": "nix",
    "compare_with": ["nix"], "loss": "nix", "constraints": {"nix": 1},
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_refused_before_any_search(table, monkeypatch, name):
    for search in ("solve", "prove", "choose_k", "measure_stability"):
        monkeypatch.setattr(
            investigate_module, search, lambda *args, **options: pytest.fail("a search ran")
        )
    with pytest.raises(ExactkError) as error:
        investigate(*table, **{"k": 2, name: BAD[name]})
    assert error.value.parameter == name


@pytest.mark.parametrize(
    "options",
    [
        {"scoring": "r2"}, {"scoring": KFold}, {"scoring": ""}, {"estimator": PCA(1)},
        {"certify": ""}, {"certify": []}, {"n_subsamples": ""}, {"n_subsamples": []},
    ],
)  # fmt: skip
def test_scores_that_do_not_suit_the_target_and_empty_values(table, monkeypatch, options):
    monkeypatch.setattr(investigate_module, "solve", stop)
    with pytest.raises(InputError) as error:
        investigate(*table, k=2, **options)
    assert error.value.parameter == next(iter(options))


def test_the_permutation_test_ends_with_its_time(table):
    start = time.monotonic()
    report = investigate(*table, k=2, time_limit=4, **{**NONE, "n_permutations": 100_000})
    assert time.monotonic() - start < 30
    n = len(report.evaluation.null)
    assert 0 < n < 100_000
    assert f"{n} of 100000 permutations" in report.evaluation.message
    assert not report.interrupted


def test_ctrl_c_before_a_size_was_chosen(table, monkeypatch):
    calls = []

    def pressed(*args, **options):
        calls.append(args)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return solve_path(*args, **options)

    monkeypatch.setattr("exactk.model_selection.choose_k.solve_path", pressed)
    report = checked(investigate(*table, **QUICK))
    assert not report.choice.is_chosen
    assert report.interrupted
    assert "chosen among" not in report.to_html()


def test_a_file_of_others_is_not_replaced(table, tmp_path):
    report = investigate(*table, k=2, **NONE)
    path = tmp_path / "page.html"
    assert report.save(path) == path
    assert path.read_text("utf-8") == report.to_html()
    # A page of exactk is replaced, and an empty file.
    report.save(path)
    path.write_text("")
    report.save(path)
    path.write_text("<p>My own page about exactk</p>")
    with pytest.raises(InputError) as error:
        report.save(path)
    assert error.value.parameter == "overwrite"
    assert path.read_text() == "<p>My own page about exactk</p>"
    report.save(path, overwrite=True)
    assert path.read_text("utf-8") == report.to_html()
    with pytest.raises(InputError):
        report.save(tmp_path / "nowhere" / "page.html")


def test_the_code_on_the_page_makes_the_report_again(table, tmp_path, monkeypatch):
    X, y = table
    path = tmp_path / "my table.csv"
    X.assign(y=y, who=np.arange(60) // 3).to_csv(path, index=False)
    data = exactk.read_table(path, "y", groups="who", drop=["f"])
    options = {"k": 2, "constraints": {"include": ["d"]}, "ridge": "auto", **NONE}
    report = investigate(data.problem, groups=data.groups, target=data.target, **options)
    report = report.with_source(
        path=path, target="y", groups="who", drop=["f"], command="exactk report", checksum="0"
    )
    assert report.settings["code"] in report.to_html().replace("&quot;", '"')
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(report.settings["code"], names)
    again = names["report"]
    assert again.result.to_dict() | {"seconds": 0} == report.result.to_dict() | {"seconds": 0}
    assert again.evaluation.folds == report.evaluation.folds
    assert again.settings["call"] == report.settings["call"]
    assert (tmp_path / "report.html").exists()


def test_the_code_without_a_file(table):
    report = investigate(*table, **{**NONE, "k": AutoK(k_max=4, criterion="bic")})
    names = {"X": table[0], "y": table[1]}
    code = report.settings["code"].replace('report.save("report.html")', "")
    exec(code, names)
    assert names["report"].choice.k_max == 4
    assert names["report"].result.selected == report.result.selected


def test_parameters_as_source():
    found = call_source(
        {
            "method": create("exchange", effort=0.5), "estimator": LogisticRegression(C=2.0),
            "cv": KFold(3), "groups": np.zeros(3), "time_limit": float("inf"),
            "compare_with": ["rfe", create("greedy")], "k": np.int64(3), "class_weight": {"a": 2.0},
        }
    )  # fmt: skip
    assert found == {
        "method": 'exactk.registry.create("exchange", effort=0.5)',
        "estimator": "LogisticRegression(C=2.0)", "cv": "cv", "groups": "groups",
        "time_limit": 'float("inf")', "compare_with": '["rfe", exactk.registry.create("greedy")]',
        "k": "3", "class_weight": '{"a": 2.0}',
    }  # fmt: skip
