"""Loading: the same numbers from every form, one's own files, and clear refusals."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat
from sklearn import datasets as sklearn_datasets

from exactk.errors import InputError
from exactk.papers.datasets import checksum, load, make_genes, make_outliers, make_planted
from tests.support import says


def test_without_any_file(elsewhere):
    wine = load("wine")
    X, y = sklearn_datasets.load_wine(return_X_y=True)
    np.testing.assert_array_equal(wine.X, X)
    np.testing.assert_array_equal(wine.y, y)
    diabetes = load("diabetes")
    assert (diabetes.task, diabetes.y.dtype) == ("regression", np.float64)
    assert diabetes.n_classes is None
    for name, made in (
        ("gsrfs-synthetic-10", make_outliers(outliers=0.1)),
        ("planted", make_planted()),
        ("genes", make_genes()),
    ):
        data = load(name)
        assert data.name == name
        np.testing.assert_array_equal(data.X, made.X)
        np.testing.assert_array_equal(data.informative, made.informative)
        assert data.checksum == checksum(made.X, made.y)


def forms(small, folder):
    """The small set in every form that `load` reads."""
    X, y = small.X, small.y
    rounded = X.astype(np.float32)
    (folder / "source").mkdir()
    (folder / "source" / "small_1.MAT").write_bytes(small.mat)
    for form in ("npz", "csr", "mat", "turned", "onehot", "appended", "csv", "parquet"):
        (folder / form).mkdir()
    np.savez_compressed(folder / "npz" / "small.npz", X=rounded, y=y.astype(np.int16))
    S = sparse.csr_array(X)
    np.savez(
        folder / "csr" / "small.npz",
        X_data=S.data,
        X_indices=S.indices,
        X_indptr=S.indptr,
        X_shape=S.shape,
        y=y,
    )
    savemat(folder / "mat" / "small.mat", {"fea": sparse.csc_array(X), "gnd": y - 5})
    savemat(folder / "turned" / "small.mat", {"x": X.T, "y": y[None], "note": "text"})
    savemat(folder / "onehot" / "small.mat", {"data": X, "labels": np.eye(2)[y].T})
    savemat(folder / "appended" / "small.mat", {"anything": np.column_stack([y, X])})
    names = [*"abcdefgh"]
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    lines = [",".join([*names, "kind"])]
    lines += [
        ",".join([*map(repr, row.tolist()), "pq"[label]]) for row, label in zip(X, y, strict=True)
    ]
    (folder / "csv" / "small.csv").write_text("\n".join(lines) + "\n")
    columns = {"y": pa.array(y), **{name: pa.array(X[:, j]) for j, name in enumerate(names)}}
    parquet.write_table(pa.table(columns), folder / "parquet" / "small.parquet")
    return [path for path in folder.iterdir() if path.name != "made"]


def test_every_form_gives_the_same(small, tmp_path):
    loaded = {path.name: load("small", folder=path) for path in forms(small, tmp_path)}
    assert len(loaded) == 9
    for data in loaded.values():
        np.testing.assert_array_equal(data.X, small.X.astype(np.float32))
        assert data.X.dtype == np.float64
        np.testing.assert_array_equal(data.y, small.y)
        assert data.checksum == small.entry.checksum


def test_other_content_is_refused_with_both_sums(small, tmp_path):
    X = small.X.copy()
    X[3, 4] += 1e-3
    np.savez(tmp_path / "small.npz", X=X, y=small.y)
    found = checksum(X.astype(np.float32), small.y)
    with says(
        "small.npz",
        found,
        small.entry.checksum,
        "exactk papers datasets fetch small",
        "load('small', verify=False)",
    ):
        load("small", folder=tmp_path)
    data = load("small", folder=tmp_path, verify=False)
    assert data.checksum == found
    np.testing.assert_array_equal(data.X, X.astype(np.float32))


def test_another_shape_or_other_classes_are_named(small, tmp_path):
    np.savez(tmp_path / "small.npz", X=small.X[:29], y=small.y[:29])
    with says("29 x 8 with 2 classes, not 30 x 8 with 2"):
        load("small", folder=tmp_path)
    np.savez(tmp_path / "small.npz", X=small.X, y=np.arange(30) % 3)
    with says("30 x 8 with 3 classes"):
        load("small", folder=tmp_path)


def test_class_sizes_stand_in_for_an_unknown_checksum(tmp_path):
    sizes = (6, 21, 139, 17, 20)
    X = np.zeros((203, 3312), dtype=np.float32)
    savemat(tmp_path / "lung.mat", {"X": X, "Y": np.repeat(np.arange(5), sizes) + 1})
    assert load("lung", folder=tmp_path).n_classes == 5
    savemat(tmp_path / "lung.mat", {"X": X, "Y": np.repeat(np.arange(5), (5, 22, 139, 17, 20))})
    with says("classes of [139, 22, 20, 17, 5], not [139, 21, 20, 17, 6]"):
        load("lung", folder=tmp_path)


def test_what_is_not_here_is_said_with_file_address_and_folder(elsewhere):
    with says(
        "'coil20' is not in",
        "exactk papers datasets fetch coil20",
        "https://raw.githubusercontent.com/jundongl/scikit-feature/48cffad",
        "/skfeature/data/COIL20.mat",
        str(elsewhere),
    ):
        load("coil20")
    with says("lung.rda", "lung56.csv", str(elsewhere)) as error:
        load("lung56")
    assert "datasets fetch" not in str(error.value)
    with says("no data set named 'coil21'", "did you mean 'coil20'", ".parquet", str(elsewhere)):
        load("coil21")


class TestOnesOwn:
    def test_npz_with_labels(self, tmp_path):
        X = np.array([[1 / 3, 2.0], [3.0, 4.0], [5.0, 7.0]])
        np.savez(tmp_path / "own.npz", X=X, y=["b", "a", "b"])
        data = load("own", folder=tmp_path)
        np.testing.assert_array_equal(data.X, X)  # not rounded
        assert data.y.tolist() == [1, 0, 1]
        assert (data.task, data.name) == ("classification", "own")

    def test_several_outputs(self, tmp_path):
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((9, 3)), rng.standard_normal((9, 2))
        np.savez(tmp_path / "own.npz", X=X, y=y)
        data = load("own", folder=tmp_path)
        assert data.task == "regression"
        np.testing.assert_array_equal(data.y, y)

    def test_mat_with_one_matrix(self, tmp_path):
        Z = np.random.default_rng(0).standard_normal((7, 4))
        savemat(tmp_path / "own.mat", {"Z": Z})
        data = load("own", folder=tmp_path)
        np.testing.assert_array_equal(data.X, Z[:, :3])
        np.testing.assert_array_equal(data.y, Z[:, 3])
        assert data.task == "regression"

    def test_csv_with_and_without_a_column_y(self, tmp_path):
        pytest.importorskip("pyarrow")
        (tmp_path / "last.csv").write_text("a,b,c\n1,2,x\n3,4,z\n5,6,x\n")
        data = load("last", folder=tmp_path)
        assert (data.X.tolist(), data.y.tolist()) == ([[1, 2], [3, 4], [5, 6]], [0, 1, 0])
        (tmp_path / "first.csv").write_text("y,b,c\n1.5,2,7\n3.5,4,8\n5.5,6,9\n")
        data = load("first", folder=tmp_path)
        assert (data.X.tolist(), data.y.tolist()) == ([[2, 7], [4, 8], [6, 9]], [1.5, 3.5, 5.5])
        assert data.task == "regression"

    def test_many_whole_numbers_are_amounts(self, tmp_path):
        np.savez(tmp_path / "own.npz", X=np.arange(50.0)[:, None], y=np.arange(50))
        assert load("own", folder=tmp_path).task == "regression"

    def test_one_class_is_no_target(self, tmp_path):
        np.savez(tmp_path / "own.npz", X=np.eye(4), y=np.ones(4, dtype=int))
        with says("at least two classes"):
            load("own", folder=tmp_path)


class TestNames:
    def test_of_scikit_learn(self):
        for name in ("digits", "breast_cancer", "wine", "iris", "diabetes"):
            data = load(name)
            X, y = getattr(sklearn_datasets, f"load_{name}")(return_X_y=True, as_frame=True)
            assert data.feature_names == tuple(X.columns)
            assert data.checksum == checksum(X.to_numpy(), y.to_numpy())
            if data.task == "regression":
                assert data.classes is None
            else:
                assert len(data.classes) == data.n_classes
        assert load("digits").classes == tuple("0123456789")
        assert load("breast_cancer").classes == ("malignant", "benign")

    def test_of_a_table(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        (tmp_path / "text.csv").write_text("wing,kind,leg\n1,2,wren\n3,4,finch\n5,6,wren\n")
        data = load("text", folder=tmp_path)
        assert data.feature_names == ("wing", "kind")
        assert (data.classes, data.y.tolist()) == (("finch", "wren"), [1, 0, 1])
        (tmp_path / "number.csv").write_text("a,y,b\n1,9,2\n3,4,4\n5,9,6\n")
        data = load("number", folder=tmp_path)
        assert (data.feature_names, data.classes) == (("a", "b"), ("4", "9"))
        (tmp_path / "amount.csv").write_text("a,b,y\n1,2,7.5\n3,4,8.1\n5,6,9.3\n")
        data = load("amount", folder=tmp_path)
        assert (data.feature_names, data.classes) == (("a", "b"), None)
        for name, y in (("half", [1.0, 2.0, 1.0]), ("bool", [True, False, True])):
            parquet.write_table(pa.table({"a": [1, 2, 3], "y": y}), tmp_path / f"{name}.parquet")
        assert load("half", folder=tmp_path).classes == ("1", "2")
        assert load("bool", folder=tmp_path).classes == ("False", "True")

    def test_of_a_table_of_the_catalogue(self, small, tmp_path):
        forms(small, tmp_path)
        data = load("small", folder=tmp_path / "csv")
        assert data.feature_names == tuple("abcdefgh")
        assert data.classes == ("p", "q")
        assert data.checksum == small.entry.checksum

    def test_elsewhere_there_are_none_but_labels_that_are_text(self, tmp_path):
        np.savez(tmp_path / "text.npz", X=np.eye(3), y=["b", "a", "b"])
        np.savez(tmp_path / "number.npz", X=np.eye(3), y=[5, 3, 5])
        for name, classes in (("text", ("a", "b")), ("number", None)):
            data = load(name, folder=tmp_path)
            assert (data.feature_names, data.classes) == (None, classes)
        assert load("genes").feature_names is None


def test_a_file_of_ones_own_is_suggested(elsewhere):
    elsewhere.mkdir(parents=True)
    np.savez(elsewhere / "flowers.npz", X=np.eye(2), y=[0, 1])
    with says("no data set named 'flwers'; did you mean 'flowers'? See"):
        load("flwers")
    with says("no data set named 'flwers'; see"):
        load("flwers", folder=elsewhere / "none")


def savez(**arrays):
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def savenpy(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


X, Y = np.eye(6), np.arange(6) % 2
HOLE = np.where(np.eye(6) > 0, np.nan, 1.0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(savez(X=X), "no array 'y'; it has 'X'", id="no y"),
        pytest.param(savez(y=Y, Z=X), "no array 'X' and, for a sparse one, no 'X_data'", id="no X"),
        pytest.param(savez(X=X, y=Y[:5]), "X has 6 rows, but y has 5", id="rows"),
        pytest.param(savez(X=X[0], y=Y), "its shape is (6,)", id="vector"),
        pytest.param(savez(X=X[:0], y=Y[:0]), "its shape is (0, 6)", id="empty"),
        pytest.param(savez(X=HOLE, y=Y), "X has 6 value(s) that are NaN", id="nan"),
        pytest.param(savez(X=X, y=np.full(6, np.inf)), "NaN or infinite", id="inf"),
        pytest.param(savez(X=X.astype(str), y=Y), "not numbers", id="text"),
        pytest.param(savez(X=X * 1j, y=Y), "not numbers", id="complex"),
        pytest.param(savez(X=X, y=Y)[:300], "cut short or damaged", id="truncated"),
        pytest.param(savenpy(X), "one array, not an archive", id="npy"),
        pytest.param(b"", "cut short or damaged", id="nothing"),
        pytest.param(b"<html>not found</html>", "cut short or damaged", id="html"),
        pytest.param(
            savez(X=np.array([{}, {}], dtype=object), y=Y[:2]), "cut short or damaged", id="pickle"
        ),
        pytest.param(
            savez(X_data=[1.0], X_indices=[9], X_indptr=[0, 1], X_shape=[1, 2], y=[0]),
            "cut short or damaged",
            id="sparse out of bounds",
        ),
    ],
)
def test_a_bad_npz(content, message, tmp_path):
    (tmp_path / "own.npz").write_bytes(content)
    with says("own.npz", message):
        load("own", folder=tmp_path)


def savemat_bytes(**arrays):
    content = io.BytesIO()
    savemat(content, arrays, do_compression=True)
    return content.getvalue()


HDF5 = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(HDF5, "7.3", id="hdf5"),
        pytest.param(savemat_bytes(X=X, Y=Y)[:170], "cut short or damaged", id="truncated"),
        pytest.param(b"", "cut short or damaged", id="nothing"),
        pytest.param(b"<html>" * 99, "cut short or damaged", id="html"),
        pytest.param(savemat_bytes(a="text"), "no matrix of numbers", id="text"),
        pytest.param(savemat_bytes(X=np.ones((4, 5)), Y=Y), "4 x 5, but 'Y' has 6", id="rows"),
        pytest.param(savemat_bytes(X=X, Y=np.ones((6, 3))), "one column for each", id="labels"),
        pytest.param(savemat_bytes(X=HOLE, Y=Y), "NaN", id="nan"),
    ],
)
def test_a_bad_mat(content, message, tmp_path):
    (tmp_path / "own.mat").write_bytes(content)
    with says("own.mat", message):
        load("own", folder=tmp_path)


def test_values_beyond_float32_are_refused(small, tmp_path):
    X = small.X.copy()
    X[0, 0] = 1e300
    np.savez(tmp_path / "small.npz", X=X, y=small.y)
    with pytest.raises(InputError, match="infinite"):
        load("small", folder=tmp_path, verify=False)


ROWS = np.arange(24.0).reshape(8, 3)
HALVES = np.arange(8) % 2


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"X": ROWS, "Y": np.array(list("abababab"), dtype=object)}, "'Y'"),
        ({"X": ROWS, "labels": np.array(list("abababab"))}, "'labels'"),
        ({"X": ROWS + 1j, "Y": HALVES}, "'X'"),
    ],
)
def test_a_matlab_variable_of_that_name_is_not_passed_over(tmp_path, variables, name):
    """The last column of X is no target if there is one that cannot be read."""
    savemat(tmp_path / "mine.mat", variables)
    with says("mine.mat", name, "no matrix of numbers"):
        load("mine", folder=tmp_path)


def test_a_matlab_target_that_could_be_several(tmp_path):
    savemat(tmp_path / "mine.mat", {"X": ROWS, "a": HALVES, "b": HALVES})
    with says("mine.mat", "which of", "'a'", "'b'"):
        load("mine", folder=tmp_path)


def test_a_table_without_a_header_does_not_lose_its_first_row(tmp_path):
    place = tmp_path / "mine.csv"
    rows = "\n".join(f"{a},{b},{c},{y}" for (a, b, c), y in zip(ROWS, HALVES, strict=True))
    place.write_text(rows)
    with says("mine.csv", "no header", "'0.0'"):
        load("mine", folder=tmp_path)
    place.write_text("0,1,2,3\n" + rows)
    assert load("mine", folder=tmp_path).X.shape == (8, 3)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("a,b,y\n1,,0\n2,3,1\n", "'b' has 1 missing value; change the file"),
        ("a,b,y\nx,1,0\n2,3,1\n", "not numeric (string): 'a'; change the file"),
        ("a,,y\n1,2,0\n2,3,1\n", "column 2 of the table has no name; change the file"),
        ("y\n0\n1\n", "no feature columns besides the target"),
        ("a,a,y\n1,2,0\n", "more than one column named 'a'"),
        ("a,b,y\n1,2\n", "row '1,2'"),
        ("a,y\n1,\n2,1\n", "target column 'y' has 1 missing value"),
        ("a,y\n1,2020-01-01\n2,2020-01-02\n", "target column 'y' is date"),
        ("a,y\n1,q\n2,q\n", "1 class, 'q'"),
    ],
    ids=["hole", "text", "no name", "no feature", "twice", "ragged", "target", "date", "class"],
)
def test_a_table_is_named_and_no_option_that_is_not_there(tmp_path, bad, words):
    pytest.importorskip("pyarrow")
    (tmp_path / "mine.csv").write_text(bad)
    with says("mine.csv", words) as error:
        load("mine", folder=tmp_path)
    for option in ("--", "drop=", "task="):
        assert option not in str(error.value)


@pytest.mark.parametrize(
    "y",
    [np.zeros(40, dtype=int), np.arange(40).astype(str), np.full((40, 2), "a")],
    ids=["same", "names", "two columns"],
)
def test_a_target_of_no_use_names_its_file(tmp_path, y):
    np.savez(tmp_path / "mine.npz", X=np.arange(80.0).reshape(40, 2), y=y)
    with says("mine.npz") as error:
        load("mine", folder=tmp_path)
    assert "task=" not in str(error.value)


@pytest.mark.parametrize("content", [b"abc", b"\x93NUMPY\x01\x00\x08\x00" + b"(" * 8])
def test_an_entry_that_is_no_array(tmp_path, content):
    with zipfile.ZipFile(tmp_path / "mine.npz", "w") as archive:
        archive.writestr("X.npy", content)
        archive.writestr("y.npy", content)
    with says("mine.npz", "damaged"):
        load("mine", folder=tmp_path)


def test_a_header_that_promises_too_much(tmp_path):
    sizes = {"X_data": [1.0], "X_indices": [0], "X_indptr": [0, 1], "X_shape": [1, 2**52]}
    np.savez(tmp_path / "mine.npz", y=[1], **sizes)
    with says("mine.npz", "memory"):
        load("mine", folder=tmp_path)
