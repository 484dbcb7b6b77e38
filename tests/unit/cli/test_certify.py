"""``exactk certify`` and ``exactk select --certify``: words, files, exit codes, Ctrl-C."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest

from exactk import BestSets, Certificate, CertifiedPath, Problem, Result, certify

ARGS = ["--target", "cultivar", "--drop", "id", "--drop", "copies"]


@pytest.fixture
def problem(wine):
    X, labels, names, _ = wine
    problem = Problem.from_arrays(X, labels, feature_names=names)
    return problem.with_ridge("auto")


@pytest.fixture
def proof(problem):
    """What the library says."""
    return certify(problem, 3)


@pytest.fixture
def earlier(run, wine_csv, tmp_path):
    """A file that exactk select wrote."""

    def write(*args: object, options=ARGS):
        place = tmp_path / "earlier.json"
        result = run("select", wine_csv, *options, *args, "--format", "json", "--output", place)
        assert result.code == 0, result.err
        return place

    return write


def test_text(run, wine_csv, proof):
    result = run("certify", wine_csv, *ARGS, "-k", 3)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("3 of 13 features for 'cultivar' (classification, 178 rows)")
    assert f"proof      {proof.summary}" in result.out
    assert "status     optimal" in result.out
    assert "(auto)" in result.out


def test_json_and_csv(run, wine_csv, proof):
    text = run("certify", wine_csv, *ARGS, "-k", 3, "--format", "json").out
    content = json.loads(text)
    assert content["certificate"]["proven"] is True
    assert content["certificate"]["summary"] == proof.summary
    assert content["certificate"]["lower"] == pytest.approx(proof.lower)
    # The file is one of exactk select, and both are read back.
    assert list(Result.from_json(text).support) == list(proof.result.support)
    stored = {**content["certificate"], "result": content}
    assert Certificate.from_dict(stored).summary == proof.summary
    table = run("certify", wine_csv, *ARGS, "-k", 3, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["feature"] for row in rows] == list(proof.result.selected)
    assert {row["proven"] for row in rows} == {"True"}
    assert {float(row["gap"]) for row in rows} == {proof.gap}


def test_a_set_of_ones_own_gives_way_to_a_better_one(run, wine_csv):
    args = ["--features", "ash,alcohol", "--features", "magnesium", "--format", "json"]
    content = json.loads(run("certify", wine_csv, *ARGS, *args).out)
    assert content["certificate"]["improved"] is True
    assert sorted(content["selected"]) == ["color_intensity", "flavanoids", "proline"]
    assert content["method"] == "certify"


def test_every_size(run, wine_csv):
    result = run("certify", wine_csv, *ARGS, "-k", 4, "--path")
    assert result.code == 0
    assert "4 of 4 sizes are proven." in result.out
    assert [line.split()[0] for line in result.out.splitlines()[2:7]] == ["k", "1", "2", "3", "4"]
    content = json.loads(run("certify", wine_csv, *ARGS, "-k", 4, "--path", "--format", "json").out)
    assert content["ridge"] == pytest.approx(0.1)
    assert CertifiedPath.from_dict(content).sizes == [1, 2, 3, 4]
    table = run("certify", wine_csv, *ARGS, "-k", 4, "--path", "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(table)))
    assert rows[2]["selected"] == "proline;color_intensity;flavanoids"


def test_the_best_sets(run, wine_csv):
    args = ["-k", 3, "--best", 4]
    result = run("certify", wine_csv, *ARGS, *args)
    assert result.code == 0
    assert "Proven: of all sets of 3" in result.out
    content = json.loads(run("certify", wine_csv, *ARGS, *args, "--format", "json").out)
    best = BestSets.from_dict(content)
    assert len(best.sets) == 4
    assert best.is_complete
    first = run("certify", wine_csv, *ARGS, *args, "--within", "0.01", "--format", "csv").out
    assert len(first.splitlines()) == 2


def test_an_earlier_result_brings_its_settings(run, wine_csv, earlier):
    asked = ["-k", 3, "--include", "ash", "--weights", "copies", "--ridge", "0.37"]
    file = earlier(*asked, options=["--target", "cultivar", "--drop", "id"])
    args = ["--target", "cultivar", "--from-result", file]
    content = json.loads(run("certify", wine_csv, *args, "--format", "json").out)
    assert content["ridge"] == 0.37
    assert content["constraints"] == {"include": ["ash"]}
    assert content["weights"] == "copies"
    assert "ash" in content["selected"]
    assert content["certificate"]["proven"] is True
    assert content["certificate"]["improved"] is False
    assert "constraints" in content["certificate"]["summary"]
    # What is said once more and is the same is no contradiction.
    again = run("certify", wine_csv, *args, "--include", "ash", "--drop", "id")
    assert again.code == 0


def test_a_certificate_is_an_earlier_result_too(run, wine_csv, earlier, tmp_path):
    file = earlier("-k", 3, "--certify", 5)
    place = tmp_path / "again.json"
    args = ["--target", "cultivar", "--format", "json", "--output", place]
    assert run("certify", wine_csv, *args, "--from-result", file).code == 0
    assert run("certify", wine_csv, "--target", "cultivar", "--from-result", place).code == 0


def test_groups_of_rows_were_no_feature(run, wine_sites, tmp_path):
    place = tmp_path / "chosen.json"
    choose = ["-k", "auto", "--k-max", 3, "--groups", "site", "--output", place]
    assert run("select", wine_sites, *ARGS, *choose, "--format", "json").code == 0
    result = run("certify", wine_sites, "--target", "cultivar", "--from-result", place)
    assert result.code == 0, result.err
    assert "Proven" in result.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--include", "alcohol"], ["the constraints", "differ", "leave them out"]),
        (["--drop", "ash"], ["--drop", "differ"]),
        (["--ridge", "0.1"], ["--from-result brings its ridge; leave --ridge out"]),
        (["-k", "3"], ["Give one of -k, --features and --from-result"]),
    ],
)
def test_what_contradicts_an_earlier_result(run, wine_csv, earlier, args, words):
    file = earlier("-k", 2, "--include", "ash")
    result = run("certify", wine_csv, "--target", "cultivar", "--from-result", file, *args)
    assert (result.code, result.out) == (2, "")
    for word in words:
        assert word in result.err


def test_files_that_are_no_results(run, wine_csv, earlier, tmp_path):
    args = ["certify", wine_csv, "--target", "cultivar", "--from-result"]
    place = tmp_path / "no.json"
    for text, words in (
        ("{", "is not JSON"),
        ("[1]", "has no result"),
        ("{}", "has no result"),
        ('{"support": [1]}', "it lacks"),
    ):
        place.write_text(text)
        result = run(*args, place)
        assert result.code == 2
        assert words in result.err
        assert "no.json" in result.err
    assert "cannot use" in run(*args, tmp_path / "nowhere.json").err
    file = earlier("-k", 2)
    changed = json.loads(file.read_text())
    file.write_text(json.dumps({**changed, "objective": 1.0}))
    result = run(*args, file)
    assert result.code == 2
    assert "the result is of another problem" in result.err
    result = run(*args, file, "--output", file)
    assert "itself" in result.err


def test_moments_in_place_of_a_table(run, wine_csv, tmp_path):
    file = tmp_path / "wine.moments"
    assert run("stats", "build", wine_csv, *ARGS, "-o", file).code == 0
    result = run("certify", "--from-moments", file, "-k", 3, "--format", "json")
    assert result.code == 0, result.err
    content = json.loads(result.out)
    assert content["certificate"]["proven"] is True
    chosen = tmp_path / "chosen.json"
    assert (
        run("select", "--from-moments", file, "-k", 3, "--format", "json", "-o", chosen).code == 0
    )
    assert run("certify", "--from-moments", file, "--from-result", chosen).code == 0


def test_select_proves_what_it_chose(run, wine_csv, proof):
    result = run("select", wine_csv, *ARGS, "-k", 3, "--certify", 5, "--require-optimal")
    assert (result.code, result.err) == (0, "")
    assert f"proof      {proof.summary}" in result.out
    args = ["-k", 3, "--certify", 5, "--format"]
    content = json.loads(run("select", wine_csv, *ARGS, *args, "json").out)
    assert content["certificate"]["proven"] is True
    assert content["status"] == "optimal"
    rows = list(csv.DictReader(io.StringIO(run("select", wine_csv, *ARGS, *args, "csv").out)))
    assert rows[0]["proven"] == "True"
    assert float(rows[0]["lower_bound"]) == pytest.approx(proof.lower)
    by_filter = run("select", wine_csv, *ARGS, "-k", 3, "--method", "fisher", "--certify", 5)
    assert "method     certify" in by_filter.out
    auto = run("select", wine_csv, *ARGS, "-k", "auto", "--k-max", 3, "--certify", "inf")
    assert "Proven: no other 3 columns" in auto.out


def test_an_open_gap_is_a_code_of_its_own(run, wine_csv, tmp_path):
    args = ["-k", 3, "--require-optimal", "--format", "csv"]
    # Nothing proves it, although it is the best.
    assert run("select", wine_csv, *ARGS, *args).code == 1
    assert run("select", wine_csv, *ARGS, *args, "--method", "exhaustive").code == 0
    place = tmp_path / "kept.csv"
    hard = ["-k", 6, "--require-optimal", "--time-limit", 1e-6]
    for more in ([], ["--path"], ["--best", 20]):
        result = run("certify", wine_csv, *ARGS, *hard, *more, "--output", place)
        assert result.code == 1, more
        assert place.read_text()
    assert run("certify", wine_csv, *ARGS, *hard[:2], "--time-limit", 1e-6).code == 0


@pytest.mark.parametrize("command", ["certify", "select"])
def test_after_ctrl_c_the_bound_is_given(wine_csv, command):
    args = [command, str(wine_csv), *ARGS, "-k", "6", "--format", "json"]
    args += ["--certify", "60"] if command == "select" else []
    code = (
        "import _thread, signal\n"
        # Ignored in what a script starts in the background, and so in all that it starts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from exactk.cli import main\n"
        "from exactk.proof.best_first import BestFirstSearch\n"
        "note = BestFirstSearch._note\n"
        "def stop(self):\n"
        "    note(self)\n"
        "    _thread.interrupt_main()\n"
        "BestFirstSearch._note = stop\n"
        f"main({args!r})"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 130, process.stderr
    assert process.stderr.startswith("exactk: stopped by the user")
    assert process.stderr.count("\n") == 1
    content = json.loads(process.stdout)
    assert content["certificate"]["status"] == "interrupted"
    assert 0 < content["certificate"]["lower"] <= content["objective"]
    assert len(content["support"]) == 6


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], ["Give one of -k, --features and --from-result"]),
        (["-k", "2", "--features", "ash"], ["Give one of"]),
        (["--features", "asch"], ["--features: ", "'asch'", "did you mean 'ash'"]),
        (["--features", "ash", "--path"], ["--path and --best go with -k"]),
        (["-k", "2", "--path", "--best", "3"], ["--path and --best", "one of them"]),
        (["-k", "2", "--within", "0.1"], ["--within goes with --best"]),
        (["-k", "2", "--best", "3", "--within", "nan"], ["--within must be"]),
        (["-k", "2", "--gap", "2"], ["--gap"]),
        (["-k", "2", "--gap", "nan"], ["--gap must be"]),
        (["-k", "2", "--time-limit", "nan"], ["--time-limit must be"]),
        (["-k", "2", "--jobs", "0"], ["--jobs"]),
        (["-k", "99"], ["k=99"]),
        (["-k", "2", "--include", "ash,alcohol,hue"], ["include", "k=2"]),
    ],
)
def test_every_mistake_is_one_sentence(run, wine_csv, args, words):
    result = run("certify", wine_csv, *ARGS, *args)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    for word in words:
        assert word in result.err


def test_a_set_of_ones_own_that_is_not_the_best_fails_a_script(run, wine_csv):
    own = ("--features", "proline,flavanoids,ash", "--require-optimal")
    outcome = run("certify", wine_csv, *ARGS, *own)
    assert outcome.code == 1
    assert "better than those that were given, and took their place" in outcome.out


def test_long_lists_of_features_are_shown_whole(run, wine_csv):
    out = run("certify", wine_csv, *ARGS, "-k", "8", "--best", "2").out
    assert "..." not in out
    assert out.count("proline") == 2
