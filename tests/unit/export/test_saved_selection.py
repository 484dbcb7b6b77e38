"""Exported selections: as JSON, in production, and what a file may hold."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import exactk
from exactk import InputError, Problem, SavedSelection, TopKClassifier, TopKRegressor, TopKSelector

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def choice(wine) -> SavedSelection:
    return TopKSelector(k=3).fit(*wine).export()


@pytest.fixture(scope="module")
def mixed():
    """Numbers, a text of three levels and a category of whole numbers; the target needs all."""
    rng = np.random.default_rng(5)
    n = 240
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "colour": rng.choice(["red", "blue", "wh\nite <script>"], n, p=[0.5, 0.3, 0.2]),
            "size": rng.normal(size=n),
            "grade": pd.Categorical(rng.integers(0, 3, n)),
        }
    )
    effect = frame["colour"].map({"red": 0.0, "blue": 4.0, "wh\nite <script>": -5.0})
    y = effect + 3 * frame["size"] + 6 * frame["grade"].astype(int) + rng.normal(size=n)
    return frame, y.to_numpy()


# What is in it.


def test_it_says_what_the_selector_says(wine, choice) -> None:
    X, y = wine
    selector = TopKSelector(k=3).fit(X, y)
    assert list(choice.names) == selector.get_feature_names_out().tolist()
    assert [feature.index for feature in choice.features] == np.flatnonzero(
        selector.support_
    ).tolist()
    assert list(choice.order) == [X.columns[j] for j in selector.selected_]
    assert choice.feature_names_in == tuple(X.columns)
    assert (choice.n_features_in, choice.k, choice.task) == (13, 3, "classification")
    assert (choice.method, choice.loss, choice.target) == ("exchange", "squared", None)
    assert choice.objective == selector.objective_
    assert choice.ridge == selector.ridge_
    assert (choice.proven, choice.gap) == (None, None)
    assert choice.exactk_version == exactk.__version__


def test_the_fit_is_in_the_units_of_the_table(wine, choice) -> None:
    X, y = wine
    names = list(choice.names)
    scores = X[names].to_numpy() @ np.array(choice.coef).T + np.array(choice.intercept)
    # Least squares with an intercept and a ridge: residuals have mean zero for each class.
    one_hot = np.eye(3)[y]
    np.testing.assert_allclose((one_hot - scores).mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scores.sum(axis=1), 1)


def test_the_same_of_problem_and_result(wine, choice) -> None:
    X, y = wine
    problem = Problem.from_arrays(X, y, ridge=choice.ridge)
    result = exactk.solve(problem, 3)
    made = SavedSelection.from_problem(problem, result, target="cultivar")
    assert made.target == "cultivar"
    left, right = made.to_dict(), choice.to_dict()
    for name in ("target", "fit"):
        del left[name], right[name]
    assert left == right
    np.testing.assert_allclose(made.coef, choice.coef, rtol=1e-10)


def test_a_proof_is_in_it(wine) -> None:
    X, y = wine
    saved = TopKSelector(k=2, certify=True).fit(X, y).export()
    assert (saved.proven, saved.status) == (True, "optimal")
    assert saved.gap == 0.0
    problem = Problem.from_arrays(X, y)
    certificate = exactk.certify(problem, k=2)
    assert SavedSelection.from_problem(problem, certificate.result, certificate).proven is True
    with pytest.raises(InputError, match="certificate is of other columns"):
        SavedSelection.from_problem(problem, exactk.solve(problem, 3), certificate)


def test_a_result_of_another_problem_is_refused(wine) -> None:
    X, y = wine
    result = exactk.solve(Problem.from_arrays(X, y), 2)
    other = Problem.from_arrays(X[X.columns[::-1]], y)
    with pytest.raises(InputError, match="result is of another problem"):
        SavedSelection.from_problem(other, result)


def test_exporting_writes_a_file_and_changes_nothing(wine, tmp_path: Path) -> None:
    X, y = wine
    selector = TopKClassifier(k=2)
    with pytest.raises(NotFittedError):
        selector.export()
    before = selector.get_params()
    selector.fit(X, y)
    saved = selector.export(tmp_path / "chosen.json")
    assert SavedSelection.load(tmp_path / "chosen.json") == saved
    assert selector.get_params() == before
    with pytest.raises(NotFittedError):
        clone(selector).export()
    assert pickle.loads(pickle.dumps(selector)).export() == saved
    assert list(tmp_path.iterdir()) == [tmp_path / "chosen.json"]


# Predictions: those of the estimators.


@pytest.mark.parametrize("loss", ["logistic", "optimal_scoring", "squared", "l21", "l2r", "huber"])
def test_classes_are_those_of_the_estimator(wine, loss: str) -> None:
    X, y = wine
    labels = np.array(["first", "second", "third"])[y]
    model = TopKClassifier(k=3, loss=loss).fit(X[::2], labels[::2])
    saved = SavedSelection.from_json(model.export().to_json())
    assert saved.predict(X).tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(saved.scores(X), model._linear(X), rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "l21", "l2r", "huber", "poisson"])
def test_numbers_are_those_of_the_estimator(loss: str) -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = TopKRegressor(k=4, loss=loss).fit(X, y)
    saved = SavedSelection.from_json(model.export().to_json())
    assert saved.predicts == ("exp" if loss == "poisson" else "number")
    np.testing.assert_allclose(saved.predict(X), model.predict(X), rtol=1e-12)


def test_several_outputs() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    Y = X[:, [1, 4]] @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(60, 3))
    model = TopKRegressor(k=2).fit(X, Y)
    np.testing.assert_allclose(model.export().predict(X), model.predict(X), rtol=1e-12)


def test_scores_of_classes_predict_none(wine) -> None:
    saved = TopKSelector(k=3, loss="optimal_scoring").fit(*wine).export()
    assert saved.predicts is None
    assert saved.scores(wine[0]).shape == (178, 3)
    with pytest.raises(InputError, match=r"'optimal_scoring'.*export a TopKClassifier"):
        saved.predict(wine[0])


def test_several_labels_a_row_are_not_predicted() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 4))
    saved = TopKSelector(k=2).fit(X, (X[:, :2] > 0).astype(int)).export()
    assert (saved.task, saved.classes, saved.predicts) == ("classification", None, None)
    with pytest.raises(InputError, match="several labels a row"):
        saved.predict(X)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array([3, 7], dtype=np.uint8), "int"),
        (np.array([1, 2**64 - 1], dtype=np.uint64), "int"),
        (np.array([1.0, 2.0]), "float"),
        (np.array([False, True]), "bool"),
        (np.array(["ä", "z\n"]), "str"),
        (np.array(["b", "a"], dtype=object), "str"),
    ],
)
def test_labels_come_back_as_they_were(labels, kind: str) -> None:
    X = np.array([[0.0, 1.0], [0.1, 5.0], [1.0, 2.0], [0.9, 4.0]])
    y = labels[[0, 0, 1, 1]]
    saved = SavedSelection.from_json(
        TopKClassifier(k=1, loss="squared").fit(X, y).export().to_json()
    )
    assert saved.class_kind == kind
    assert [type(label).__name__ for label in saved.classes] == [kind] * 2
    assert saved.predict(X).tolist() == y.tolist()
    # A program that knows one kind of numbers writes 1.0 as 1.
    values = saved.to_dict()
    if kind == "float":
        values["classes"]["labels"] = [1, 2]
        again = SavedSelection.from_dict(values)
        assert again == saved
        assert [type(label) for label in again.classes] == [float, float]


# Tables of every kind.


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_are_taken_by_name(wine, choice, kind: str) -> None:
    X = wine[0][wine[0].columns[::-1]]
    table = {
        "pandas": lambda: X,
        "polars": lambda: pl.from_pandas(X),
        "arrow": lambda: pa.Table.from_pandas(X, preserve_index=False),
    }[kind]()
    taken = choice.select(table)
    names = taken.column_names if kind == "arrow" else list(taken.columns)
    assert names == list(choice.names)
    np.testing.assert_array_equal(choice.predict(table), choice.predict(wine[0]))


def test_what_was_not_chosen_need_not_be_there(wine, choice) -> None:
    X = wine[0]
    few = X[[*choice.names]].assign(other="text")
    np.testing.assert_array_equal(choice.predict(few), choice.predict(X))
    name = choice.names[1]
    with pytest.raises(InputError, match=f"lacks 1 of the 3 chosen columns: '{name}'"):
        choice.select(X.drop(columns=name))
    with pytest.raises(InputError, match="more than one column named 'ash'"):
        choice.select(pd.concat([X, X[["ash"]]], axis=1))


def test_arrays_are_taken_by_position(wine, choice) -> None:
    X = wine[0].to_numpy()
    places = [feature.index for feature in choice.features]
    np.testing.assert_array_equal(choice.select(X), X[:, places])
    np.testing.assert_array_equal(choice.predict(X), choice.predict(wine[0]))
    for kind in (sparse.csr_matrix, sparse.coo_matrix, sparse.csc_array):
        np.testing.assert_array_equal(choice.select(kind(X)).toarray(), X[:, places])
        np.testing.assert_array_equal(choice.predict(kind(X)), choice.predict(X))
    with pytest.raises(InputError, match="has 3 columns, and the choice was made among 13"):
        choice.select(X[:, :3])
    with pytest.raises(InputError, match=r"not list of shape \(3,\)"):
        choice.select([1, 2, 3])
    with pytest.raises(InputError, match="not a rectangular array"):
        choice.select([[1, 2], [3]])


def test_values_that_are_no_numbers_are_named(wine, choice) -> None:
    X = wine[0].to_numpy().copy()
    X[7, choice.features[2].index] = np.inf
    said = f"column '{choice.names[2]}' is NaN or infinite in row 7"
    for table in (X, sparse.csr_matrix(X), pd.DataFrame(X, columns=wine[0].columns)):
        with pytest.raises(InputError, match=said):
            choice.predict(table)
    with pytest.raises(InputError, match="must hold numbers, not complex128"):
        choice.predict(X.astype(complex))
    with pytest.raises(InputError, match="'a', which is not a number"):
        choice.predict(np.full(X.shape, "a", dtype=object))
    wrong = wine[0].assign(**{choice.names[0]: "text"})
    with pytest.raises(InputError, match=f"not numbers: '{choice.names[0]}'"):
        choice.predict(wrong)


def test_a_table_without_names(wine) -> None:
    X, y = wine[0].to_numpy(), wine[1]
    selector = TopKSelector(k=3).fit(X, y)
    saved = selector.export()
    assert saved.feature_names_in is None
    assert list(saved.names) == selector.get_feature_names_out().tolist()
    np.testing.assert_array_equal(saved.select(X), selector.transform(X))
    transformer = saved.column_transformer()
    assert transformer.transformers[0][2] == [feature.index for feature in saved.features]
    np.testing.assert_array_equal(transformer.fit_transform(X), selector.transform(X))
    # A frame has names that say nothing here: its columns go by position, all of them.
    np.testing.assert_array_equal(saved.select(wine[0]).to_numpy(), selector.transform(X))
    with pytest.raises(InputError, match="has 2 columns, and the choice was made among 13"):
        saved.select(wine[0].iloc[:, :2])


def test_names_that_are_numbers(wine) -> None:
    X = pd.DataFrame(wine[0].to_numpy())
    saved = TopKSelector(k=3).fit(X, wine[1]).export()
    assert saved.feature_names_in is None
    assert saved.column_transformer().fit_transform(X).shape == (178, 3)
    assert saved.select(X).shape == (178, 3)


def test_categories(mixed) -> None:
    X, y = mixed
    model = TopKRegressor(k=3).fit(X, y)
    saved = SavedSelection.from_json(model.export().to_json())
    assert saved.names == ("colour", "size", "grade")
    colour, size, grade = saved.features
    assert (colour.levels, colour.reference) == (("blue", "red", "wh\nite <script>"), "red")
    assert (size.levels, size.reference) == (None, None)
    assert saved.terms[:3] == (("colour", "blue"), ("colour", "wh\nite <script>"), ("size", None))
    assert len(saved.terms) == 3 + len(grade.levels) - 1
    np.testing.assert_allclose(saved.predict(X), model.predict(X), rtol=1e-12)
    by_problem = SavedSelection.from_problem(
        problem := Problem.from_arrays(X, y, ridge=saved.ridge), exactk.solve(problem, 3)
    )
    np.testing.assert_allclose(by_problem.predict(X), model.predict(X), rtol=1e-9)
    assert by_problem.features == saved.features
    assert saved.select(X).equals(X[["colour", "size", "grade"]])
    with pytest.raises(InputError, match="'colour' holds 'green' in row 0, which no row had"):
        saved.predict(X.assign(colour="green"))
    with pytest.raises(InputError, match=r"chosen .*'colour', 'grade'.*must be a frame"):
        saved.predict(X.to_numpy())


def test_a_category_counts_as_one_and_a_selector_knows_its_levels(mixed) -> None:
    X, y = mixed
    saved = TopKSelector(k=1).fit(X[["colour", "noise"]], y).export()
    assert (saved.k, saved.names, len(saved.coef[0])) == (1, ("colour",), 2)


@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.dask
def test_dask(wine) -> None:
    import dask.array as da
    import dask.dataframe as dd

    X, y = wine
    table = dd.from_pandas(X, npartitions=3)
    target = dd.from_pandas(y, npartitions=3)
    saved = TopKSelector(k=3).fit(table, target).export()
    plain = TopKSelector(k=3).fit(X, y).export()
    assert saved.names == plain.names
    np.testing.assert_allclose(saved.coef, plain.coef, rtol=1e-9)
    pd.testing.assert_frame_equal(saved.select(table).compute(), X[list(saved.names)])
    values = X.to_numpy()
    taken = saved.select(da.from_array(values, chunks=(50, 13)))
    np.testing.assert_array_equal(taken.compute(), saved.select(values))
    with pytest.raises(InputError, match="part by part"):
        saved.predict(table)


def test_a_stream(wine, tmp_path: Path) -> None:
    X, y = wine
    X.assign(cultivar=y).to_parquet(tmp_path / "wine.parquet", index=False)
    problem = Problem.from_files(tmp_path / "wine.parquet", "cultivar")
    saved = SavedSelection.from_problem(problem, exactk.solve(problem, 3))
    assert saved.feature_names_in == tuple(X.columns)
    assert saved.classes == (0, 1, 2)
    assert (saved.predict(X) == y).mean() > 0.9


# Production: nothing of exactk.

NO_EXACTK = """
import sys


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "exactk":
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Blocker())
"""


def in_production(code: str, *args: object) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", NO_EXACTK + textwrap.dedent(code), *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_pipeline_loads_without_exactk(wine, choice, tmp_path: Path) -> None:
    import joblib

    X, y = wine
    with pytest.raises(AssertionError, match=r"No module named|ModuleNotFoundError"):
        in_production("import exactk")
    pipeline = make_pipeline(choice.column_transformer(), LogisticRegression(max_iter=5000))
    pipeline.fit(X, y)
    assert pipeline[0].get_feature_names_out().tolist() == list(choice.names)
    joblib.dump(pipeline, tmp_path / "model.joblib")
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(pipeline))
    X.to_pickle(tmp_path / "table.pickle")
    said = in_production(
        """
        import pickle
        import joblib
        import pandas as pd

        X = pd.read_pickle(sys.argv[3])
        for model in (joblib.load(sys.argv[1]), pickle.load(open(sys.argv[2], "rb"))):
            print(model.predict(X).tolist(), model[0].transform(X).shape)
        """,
        tmp_path / "model.joblib", tmp_path / "model.pickle", tmp_path / "table.pickle",
    )  # fmt: skip
    assert said == f"{pipeline.predict(X).tolist()} (178, 3)\n" * 2


def test_plain_python_predicts_the_same(mixed, tmp_path: Path) -> None:
    X, y = mixed
    saved = TopKRegressor(k=3).fit(X, y).export(tmp_path / "chosen.json")
    X.to_json(tmp_path / "rows.json", orient="records", double_precision=15)
    said = in_production(
        """
        import json

        choice = json.load(open(sys.argv[1], encoding="utf-8"))

        def predict(row):
            score = choice["fit"]["intercept"][0]
            for term in choice["fit"]["terms"]:
                value = row[term["feature"]]
                if term["level"] is not None:
                    value = str(value) == term["level"]
                score += value * term["coef"][0]
            return score

        print(json.dumps([predict(row) for row in json.load(open(sys.argv[2]))]))
        """,
        tmp_path / "chosen.json", tmp_path / "rows.json",
    )  # fmt: skip
    np.testing.assert_allclose(json.loads(said), saved.predict(X), atol=1e-12)


# Files that somebody else wrote.


def broken(choice: SavedSelection, **changes: object) -> dict[str, object]:
    return {**choice.to_dict(), **changes}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": "pickle"}, "field 'format' must be 'exactk-choice', not 'pickle'"),
        ({"version": 2}, "field 'version' must be 1, not 2; a newer exactk may read it"),
        ({"version": True}, "field 'version' must be 1, not True"),
        ({"version": "1"}, "field 'version' must be 1, not '1'"),
        ({"k": 0}, "field 'k' must be a whole number of at least 1, not 0"),
        ({"k": 2.0}, "field 'k' must be a whole number"),
        ({"k": True}, "field 'k' must be a whole number"),
        ({"ridge": -1}, "field 'ridge' must be a number"),
        ({"ridge": float("nan")}, "field 'ridge' must be a number"),
        ({"objective": 10**400}, "field 'objective' must be a number"),
        ({"objective": 10**5000}, "field 'objective' must be a number .*not "),
        ({"total": "1"}, "field 'total' must be a number"),
        ({"task": "regress"}, "field 'task' must be 'classification' or 'regression'"),
        ({"status": "__import__('os')"}, "field 'status' must be"),
        ({"predicts": "eval"}, "field 'predicts' must be"),
        ({"predicts": "number"}, "there are classes"),
        ({"classes": None}, "'predicts' is 'class', and there are no classes"),
        ({"proven": True}, "'proven' and 'gap' go together"),
        ({"proven": 1, "gap": 0.0}, "field 'proven' must be True or False"),
        ({"target": 5}, "field 'target' must be a text"),
        ({"n_features_in": 5}, "indices that rise and are below n_features_in = 5"),
        ({"feature_names_in": ["a"]}, "has 1 names where n_features_in is 13"),
        ({"feature_names_in": "abc"}, "field 'feature_names_in' must be a list"),
        ({"feature_names_in": ["a"] * 13}, "'feature_names_in' has 'a' more than once"),
        ({"feature_names_in": [str(i) for i in range(13)]}, "'feature_names_in' calls '6'"),
        ({"features": []}, "field 'features' must be a list"),
        ({"features": [1]}, "field 'features' must be a list"),
        ({"features": [{}]}, r"lacks the field 'features\[0\].name'"),
        ({"order": ["a", "b", "c"]}, "field 'order' must have the names of the features"),
        ({"fit": []}, "field 'fit' must be a table of names and values"),
        ({"fit": {"intercept": [], "terms": []}}, "field 'fit.intercept' must be a list"),
        ({"fit": {"intercept": [0, 0, 0], "terms": []}}, "'fit.terms' must have one term for each"),
        ({"fit": {"intercept": [1], "terms": []}}, "has 3 labels where 'fit.intercept' has 1"),
        ({"__class__": "os.system"}, "field '__class__' is not known in version 1"),
        ({"classes": {"kind": "int", "labels": [0, 1, "2"]}}, "has '2' as int"),
        ({"classes": {"kind": "int", "labels": [0, 1, True]}}, "has True as int"),
        ({"classes": {"kind": "int", "labels": [0, 1, 2**64]}}, "as int"),
        ({"classes": {"kind": "int", "labels": [-1, 1, 2**63]}}, "as int"),
        ({"classes": {"kind": "int", "labels": [0, 1, 1]}}, "has '1' more than once"),
        ({"classes": {"kind": "int", "labels": [0, 1]}}, "has 2 labels"),
        ({"classes": {"kind": "int", "labels": "012"}}, "field 'classes.labels' must be a list"),
        ({"classes": {"kind": "float", "labels": [0, 1, 10**400]}}, "as float"),
        ({"classes": {"kind": "object", "labels": []}}, "field 'classes.kind' must be"),
    ],
)
def test_what_is_wrong_is_named(choice, changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        SavedSelection.from_dict(broken(choice, **changes))
    assert len(str(caught.value)) < 400


def test_features_that_do_not_go_together(choice) -> None:
    def changed(at: int, **values: object) -> dict[str, object]:
        whole = choice.to_dict()
        whole["features"][at].update(values)
        return whole

    for values, said in (
        (changed(0, levels=["a"]), "levels' and 'features.0..reference' go together"),
        (changed(0, levels=["a", "a"], reference="a"), "'a' more than once"),
        (changed(0, levels=["a"], reference="b"), "is 'b', which is none of its levels"),
        (changed(0, levels=["a", "b"], reference="b"), "fit.terms"),
        (changed(1, index=0), "indices that rise"),
        (changed(1, index=-1), "index' must be a whole number of at least 0"),
        (changed(1, name=choice.names[0]), f"'{choice.names[0]}' more than once"),
        (changed(1, code="import os"), r"'features\[1\].code' is not known"),
    ):
        with pytest.raises(InputError, match=said):
            SavedSelection.from_dict(values)
    whole = choice.to_dict()
    whole["fit"]["terms"][2]["coef"].pop()
    with pytest.raises(InputError, match=r"'fit.terms\[2\].coef' has 2 numbers where .* has 3"):
        SavedSelection.from_dict(whole)


@pytest.mark.parametrize(
    "name", sorted(TopKSelector(k=1).fit([[0.0], [1.0]], [0, 1]).export().to_dict())
)
def test_every_field_is_required(choice, name: str) -> None:
    values = choice.to_dict()
    del values[name]
    with pytest.raises(InputError, match=name):
        SavedSelection.from_dict(values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("exec('import os')", "not JSON"),
        ("[1, 2]", "it is list and no choice"),
        ('"text"', "it is str and no choice"),
        ("null", "it is NoneType and no choice"),
        ('{"k": NaN}', "it holds NaN"),
        ('{"k": -Infinity}', "it holds -Infinity"),
        ('{"k": ' + "9" * 5000 + "}", "not JSON|field"),
        ("cos\nsystem\n(S'echo'\ntR.", "not JSON"),
    ],
)
def test_text_that_is_no_choice(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        SavedSelection.from_json(text)
    file = tmp_path / "chosen.json"
    file.write_text(text)
    with pytest.raises(InputError, match=f"choice '.*chosen.json' cannot be read: .*({said})"):
        SavedSelection.load(file)


def test_numbers_too_large_to_be_finite(choice) -> None:
    text = choice.to_json().replace(f'"ridge": {choice.ridge}', '"ridge": 1e999')
    with pytest.raises(InputError, match=r"field 'ridge' must be a number in .*, not inf"):
        SavedSelection.from_json(text)


def test_cut_short_anywhere(choice) -> None:
    text = choice.to_json()
    for end in range(0, len(text), 97):
        with pytest.raises(InputError):
            SavedSelection.from_json(text[:end])


def test_bytes(choice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "chosen.json"
    file.write_bytes(choice.to_json().encode("utf-16"))
    with pytest.raises(InputError, match="not UTF-8 text"):
        SavedSelection.load(file)
    file.write_bytes(pickle.dumps(choice.to_dict()))
    with pytest.raises(InputError, match=r"not UTF-8 text|not JSON"):
        SavedSelection.load(file)
    monkeypatch.setattr("exactk.export.schema.MOST_BYTES", 2**10)
    choice.save(file)
    with pytest.raises(InputError, match="is larger than"):
        SavedSelection.load(file)


def test_reading_unpickles_and_evaluates_nothing(choice, tmp_path, monkeypatch) -> None:
    names = ["__import__('os').system('x')", "<script>alert(1)</script>", "ünï\ncode"]
    places = dict(zip(choice.names, names, strict=True))
    values = choice.to_dict()
    for feature in values["features"]:
        feature["name"] = places[feature["name"]]
    for term in values["fit"]["terms"]:
        term["feature"] = places[term["feature"]]
    values["order"] = [places[name] for name in values["order"]]
    values["feature_names_in"] = [places.get(name, name) for name in values["feature_names_in"]]
    SavedSelection.from_dict(values).save(tmp_path / "chosen.json")

    def forbidden(*args: object, **options: object) -> None:
        raise AssertionError("reading a choice executes nothing")

    monkeypatch.setattr("builtins.eval", forbidden)
    monkeypatch.setattr("builtins.exec", forbidden)
    monkeypatch.setattr(pickle, "load", forbidden)
    monkeypatch.setattr(pickle, "loads", forbidden)
    assert SavedSelection.load(tmp_path / "chosen.json").names == tuple(names)


def test_parts_that_are_made_by_hand_are_checked(choice) -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match="this is no choice: field 'k' must be"):
        replace(choice, k=0)
    with pytest.raises(InputError, match="this is no choice"):
        replace(choice, coef=((1.0,),))


def test_the_class_is_public_and_loaded_when_requested() -> None:
    assert "SavedSelection" in dir(exactk)
    code = (
        "import sys, exactk; print('exactk.export' in sys.modules, exactk.SavedSelection.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False SavedSelection\n"


# Round trips.

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def choices(draw: st.DrawFn) -> dict[str, object]:
    width = draw(st.integers(1, 8))
    known = draw(st.lists(TEXTS, min_size=width, max_size=width, unique=True))
    chosen = sorted(draw(st.sets(st.integers(0, width - 1), min_size=1)))
    features = []
    for j in chosen:
        levels = draw(st.none() | st.lists(TEXTS, min_size=1, max_size=4, unique=True))
        reference = None if levels is None else draw(st.sampled_from(levels))
        features.append({"name": known[j], "index": j, "levels": levels, "reference": reference})
    names = [known[j] for j in chosen]
    label = draw(
        st.sampled_from(
            [("int", st.integers(-(2**63), 2**63 - 1)), ("float", NUMBERS), ("str", TEXTS)]
        )
    )
    labels = draw(st.none() | st.lists(label[1], min_size=2, max_size=4, unique=True))
    outputs = draw(st.integers(1, 3)) if labels is None else len(labels)
    fit_numbers = st.lists(NUMBERS, min_size=outputs, max_size=outputs)
    terms = [
        {"feature": one["name"], "level": level, "coef": draw(fit_numbers)}
        for one in features
        for level in (
            [None]
            if one["levels"] is None
            else [x for x in one["levels"] if x != one["reference"]] or one["levels"]
        )
    ]
    proven = draw(st.none() | st.booleans())
    return {
        "format": "exactk-choice",
        "version": 1,
        "exactk_version": draw(TEXTS),
        "task": "regression" if labels is None else "classification",
        "target": draw(st.none() | TEXTS),
        "k": draw(st.integers(1, 99)),
        "method": draw(TEXTS),
        "loss": draw(TEXTS),
        "ridge": abs(draw(NUMBERS)),
        "objective": draw(NUMBERS),
        "total": draw(NUMBERS),
        "status": draw(st.sampled_from([status.value for status in exactk.Status])),
        "proven": proven,
        "gap": None if proven is None else abs(draw(NUMBERS)),
        "n_features_in": width,
        "feature_names_in": draw(st.sampled_from([None, known])),
        "features": features,
        "order": draw(st.permutations(names)),
        "classes": None if labels is None else {"kind": label[0], "labels": labels},
        "predicts": draw(st.sampled_from([None, "class"] if labels else [None, "number", "exp"])),
        "fit": {"intercept": draw(fit_numbers), "terms": terms},
    }


@settings(max_examples=150, deadline=None)
@given(choices())
def test_what_is_written_is_read(values: dict[str, object]) -> None:
    saved = SavedSelection.from_dict(values)
    assert saved.to_dict() == values
    text = saved.to_json(ensure_ascii=False)
    assert SavedSelection.from_json(text) == saved
    assert json.load(io.StringIO(text)) == values
    assert SavedSelection.from_json(saved.to_json(indent=2)) == saved


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(choices(), st.data())
def test_any_value_in_any_place_is_read_or_refused(values, data) -> None:
    """No error but an InputError, whatever takes the place of a part."""
    place: object = values
    while True:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
        inner = place[key]
        if not (isinstance(inner, (dict, list)) and inner) or data.draw(st.booleans()):
            break
        place = inner
    place[key] = data.draw(VALUES)
    try:
        saved = SavedSelection.from_dict(values)
    except InputError:
        return
    assert SavedSelection.from_json(saved.to_json()) == saved


# What cannot be predicted, read or written.
@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_scores_too_large_for_numbers_name_their_row(wine, choice, kind: str) -> None:
    X = wine[0].to_numpy().copy()
    X[7, [feature.index for feature in choice.features]] = 1.5e308
    table = {
        "array": X, "frame": pd.DataFrame(X, columns=wine[0].columns), "sparse": sparse.csr_array(X)
    }[kind]  # fmt: skip
    values = choice.to_dict()
    for term in values["fit"]["terms"]:
        term["coef"] = [10.0, -10.0, 5.0]
    steep = SavedSelection.from_dict(values)
    for made in (steep.predict, steep.scores):
        with pytest.raises(InputError, match=r"the score of row 7 is too large .* 1.5e\+308"):
            made(table)
    assert steep.predict(X[:7]).shape == (7,)


def test_a_mean_too_large_for_a_number_names_its_row() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    counts = rng.poisson(np.exp(X[:, 0]))
    saved = TopKRegressor(k=1, loss="poisson").fit(X, counts).export()
    assert saved.predicts == "exp"
    X[[4, 9], 0] = 1e5
    with pytest.raises(InputError, match="exp of the score of row 4 is too large"):
        saved.predict(X)
    assert np.isfinite(saved.scores(X)).all()


@pytest.mark.parametrize("place", ["no/such/chosen.json", ".", "file/chosen.json", "/dev/full"])
def test_places_that_cannot_be_written(wine, choice, tmp_path, monkeypatch, place: str) -> None:
    if place == "/dev/full" and not Path(place).exists():
        pytest.skip("there is no /dev/full")
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    said = f"choice '{place}' cannot be written: .*; give another place"
    with pytest.raises(InputError, match=said) as caught:
        choice.save(place)
    assert ".part" not in str(caught.value)
    with pytest.raises(InputError, match=said):
        TopKSelector(k=1).fit(*wine).export(place)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("place", [None, "", 5, True, ["a"]], ids=repr)
def test_what_is_no_path(choice, place) -> None:
    for done in (choice.save, SavedSelection.load):
        with pytest.raises(InputError, match="path must be the name of a file, not "):
            done(place)


def test_a_name_that_no_file_can_have(choice) -> None:
    with pytest.raises(InputError, match=r"choice 'a\\x00b' cannot be written: "):
        choice.save("a\0b")


def test_json_as_bytes_and_what_is_no_text(choice) -> None:
    assert SavedSelection.from_json(choice.to_json().encode()) == choice
    with pytest.raises(InputError, match="not UTF-8 text"):
        SavedSelection.from_json(choice.to_json().encode("utf-16"))
    for given_text in (None, [choice.to_json()], 5):
        with pytest.raises(InputError, match="no text; give the JSON that to_json wrote"):
            SavedSelection.from_json(given_text)  # type: ignore[arg-type]
