"""The frame of the command line: help, options, configuration files, errors and formats."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

import exactk
from exactk.cli import main
from exactk.cli.app import COMMANDS, app
from exactk.cli.framework.call import Command
from exactk.cli.framework.options import parse_bytes
from exactk.cli.framework.settings import CONSTRAINTS, SHARED, read_spec, show
from exactk.errors import InputError, Setting
from exactk.params import PARAMS, SECTIONS

HEAVY = ("numpy", "scipy", "sklearn", "pyarrow", "rich", "pandas")


def leaves(
    group: click.Group = app, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*words, name))
        else:
            yield (*words, name), command


LEAVES = dict(leaves())


def python(*args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, args)], capture_output=True, text=True, timeout=120,
        env={**os.environ, **environment}, check=False,
    )  # fmt: skip


# --- help ------------------------------------------------------------------------------------


def test_version_by_python_m():
    done = python("-m", "exactk", "--version")
    assert (done.returncode, done.stdout) == (0, f"exactk {exactk.__version__}\n")


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"]])
def test_help_lists_at_most_ten_commands(run, args):
    done = run(*args)
    assert (done.code, done.err) == (0, "")
    lines = done.out.partition("Commands:\n")[2].splitlines()
    listed = [line.split()[0] for line in lines[: len(COMMANDS)]]
    assert listed == list(COMMANDS)
    assert len(listed) <= 10


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_help_of_a_command(run, words):
    """At most 22 options, in 80 columns, under the headings of their parameters."""
    command = LEAVES[words]
    assert isinstance(command, Command)
    assert (command.help or "").strip()
    out = run(*words, "--help").out
    assert max(map(len, out.splitlines())) <= 80
    heading, found = "", {}
    for line in out.splitlines():
        if line.rstrip(":") in SECTIONS:
            heading = line.rstrip(":")
        for word in line.split()[:2]:
            if line.startswith("  -") and word.startswith("-"):
                found[word.rstrip(",")] = heading
    given = command.get_params(click.Context(command))
    options = [one for one in given if isinstance(one, click.Option) and not one.hidden]
    assert len(options) <= 22
    assert {name for one in options for name in one.opts} <= set(found)
    headings = list(dict.fromkeys(found.values()))
    assert headings == [one for one in SECTIONS if one in headings]
    for name, parameter in command.parameters.items():
        assert found[parameter.option] == parameter.section, name
        assert parameter.option == PARAMS[name].option


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["select", "--help"]])
def test_help_imports_nothing_heavy(args):
    code = (
        "import sys\n"
        "from exactk.cli import main\n"
        f"try: main({args!r})\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert python("-c", code).stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("module", ["click", "rich", "pyarrow"])
def test_a_missing_extra_is_named(capsys, monkeypatch, module):
    find = importlib.util.find_spec
    monkeypatch.setattr("exactk.cli.find_spec", lambda name: None if name == module else find(name))
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert f"needs {module};" in error
    assert 'pip install "exactk[cli]"' in error


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("exactk sta", ["stability"]),
        ("exactk select t.csv y --criterion b", ["bic"]),
        ("exactk select --max", ["--max-correlation"]),
    ],
)
def test_completion_in_bash(line, expected):
    words = line.split()
    done = python(
        "-m", "exactk", _EXACTK_COMPLETE="bash_complete", COMP_WORDS=line,
        COMP_CWORD=str(len(words) - 1),
    )  # fmt: skip
    assert [one.partition(",")[2] for one in done.stdout.splitlines()] == expected


# --- options ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["selct"], "did you mean 'select'?"),
        (["zzz"], "there is no command 'zzz'; exactk has select, certify"),
        (["--nope"], "exactk has no option '--nope'; see exactk --help"),
        (["select", "--frobnicate"], "see exactk select --help"),
        (["papers", "run", "--jbs", "3"], "did you mean '--jobs'?"),
        (["select", "a.csv", "y", "--folds", "3"], "use cv under [k] in --config FILE"),
        (["evaluate", "a.csv", "y", "--effort", "3"], "use effort in --config FILE"),
        (["certify", "a.csv", "y", "--budget", "3"], "use budget under [constraints] in --config"),
        (["moments", "build", "a.csv", "y", "-o", "b", "--classes", "c"], "use classes in --conf"),
        (["select"], "TABLE"),
        (["select", "a.csv", "y", "-k", "0"], "-k must be a whole number of at least 1 or 'auto'"),
        (["select", "a.csv", "y", "--certify", "nan"], "--certify must be a number in (0, inf]"),
        (["select", "a.csv", "y", "--ridge", "-1"], "--ridge must be 'auto' or 'cv' or a number"),
        (["select", "a.csv", "y", "--criterion", "ebi"], "did you mean 'ebic'?"),
        (["select", "a.csv", "y", "--drop", ","], "--drop names nothing"),
        (["select", "a.csv", "y", "-k", "2", "--format", "xml"], "--format"),
        (["select", "a.csv", "b.csv", "c.csv", "y", "-k", "2"], "Put the pattern in quotes"),
        (["select", "a.csv", "y", "-k", "2", "--k-max", "4"], "use -k auto"),
        (["select", "a.csv", "y", "-k", "2", "--table"], "use it with -k auto"),
        (["select", "a.csv", "y", "-k", "2", "--method", "gsrfs:lam"], "PARAMETER=VALUE"),
        (["select", "a.csv", "y", "-k", "2", "--method", "gsrfs:lamb=1"], "did you mean 'lam'?"),
        (["select", "a.csv", "y", "-k", "2", "--loss", "l2r:r=3"], "r must be a number in (0, 2]"),
        (["select", "a.csv", "y", "-k", "2"], "'a.csv' does not exist"),
        (["explain", "a.csv", "y", "-k", "2", "--max-sets", str(2**63)], "--max-sets must be"),
        (["stability", "a.csv", "y", "-k", "2", "--subsamples", "9" * 20], "--subsamples must be"),
        (["evaluate", "a.csv", "y", "-k", "2", "--permutations", "9" * 20], "--permutations must"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_sentence(fails, args, words):
    assert "None" not in fails(words, *args)


def test_lists_are_split_at_commas_but_not_in_parentheses(rows, tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i % 7},{i % 5},{i % 3},{'ab'[i % 2]}" for i in range(40)]
    path.write_text('"size (cm, dry)",b,c,y\n' + "\n".join(lines) + "\n")
    (row,) = rows("select", path, "y", "-k", 1, "--exclude", "size (cm, dry),b")
    assert row["feature"] == "c"


def test_names_given_twice_reach_the_library(run, fails, wine_csv):
    args = [wine_csv, "cultivar", "--drop", "id,copies,id"]
    fails("twice", "explain", *args, "--features", "ash,ash")
    fails("twice", "evaluate", *args, "-k", 2, "--compare-with", "rfe,greedy", "--compare-with",
          "rfe")  # fmt: skip
    assert run("select", *args, "-k", 2, "--include", "ash,ash", "--exclude", "hue,hue").code == 0
    assert run("explain", *args, "-k", 2, "--why-not", "hue,hue").code == 0


@pytest.mark.parametrize("text", ["", "G", "-1", "4X", "1e3"])
def test_numbers_of_bytes(text):
    assert [parse_bytes(one) for one in ("80", "4g", "1.5 KiB")] == [80, 4 * 2**30, 1536]
    with pytest.raises(InputError) as error:
        parse_bytes(text)
    assert error.value.parameter == "memory_limit"


@pytest.mark.parametrize("text", ["a:", "a:b", "a:=1", "a:b=", "a:b=1,b=2"])
def test_parameters_of_a_method(text):
    assert read_spec("greedy") == ("greedy", {})
    values = read_spec("nmapg:rho=none,max-iter=1e2,a=true,b=0.5,c=word")[1]
    assert values == {"rho": None, "max_iter": 100, "a": True, "b": 0.5, "c": "word"}
    assert isinstance(values["max_iter"], int)
    with pytest.raises(InputError):
        read_spec(text)


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        (Setting("cv", 3), "--folds 3"),
        (Setting("k", "auto"), "-k auto"),
        (Setting("sample_weight"), "--weights"),
        (Setting("y"), "TARGET"),
        (Setting("include", ["a", "b c"]), "--include 'a,b c'"),
        (Setting("time_limit", None), "no --time-limit"),
        (Setting("effort", 0.5), "effort = 0.5 in --config FILE"),
        (Setting("classes", ["a"]), 'classes = ["a"] in --config FILE'),
        (Setting("budget", 3), "budget = 3 under [constraints] in --config FILE"),
        (Setting("rule"), "rule under [k] in --config FILE"),
        (Setting("lam", 0.1), "lam=0.1"),
    ],
)
def test_messages_name_options_or_keys_of_the_file(setting, shown):
    assert show(setting, LEAVES[("evaluate",)].option_names) == shown


def test_a_message_names_the_target(fails, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,income\n" + "".join(f"{i},x\n" for i in range(20)))
    fails("Error: target 'income': ", "select", path, "income", "-k", 1)
    fails("Error: target 'income': ", "evaluate", path, "income", "-k", 1)
    fails("Error: target 'income': ", "moments", "build", path, "income", "-o", tmp_path / "m.npz")


def test_a_message_names_the_table(run, fails, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,income\n" + "".join(f"{i * i % 11},{i % 3}\n" for i in range(60)))
    fails(f"-k 3 is more than the 1 usable columns, table {str(path)!r} has 1 feature(s)",
          "select", path, "income", "-k", 3)  # fmt: skip
    assert (
        "assumed    target 'income' has 3 different" in run("select", path, "income", "-k", 1).out
    )


def test_a_column_with_a_comma_stands_in_a_file(fails, rows, tmp_path):
    path, config = tmp_path / "t.csv", tmp_path / "c.toml"
    path.write_text('"b,c", d,y\n' + "".join(f"{i % 7},{i % 5},{i % 9}.5\n" for i in range(40)))
    for option, value in (("--include", "b,c"), ("--exclude", " d"), ("--drop", "b,c")):
        fails("--config FILE", "select", path, "y", "-k", 1, option, value)
    said = fails("'e'", "select", path, "y", "-k", 1, "--weights", "e")
    assert "comma" not in said
    config.write_text('drop = ["b,c"]\n[constraints]\ninclude = [" d"]\n')
    (row,) = rows("select", path, "y", "-k", 1, "--config", config)
    assert row["feature"] == " d"


def test_a_message_names_the_option_that_changes_an_assumption(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{i * i % 11},{i % 7},{i % 3}\n" for i in range(60)))
    assert "--task regression" in run("select", path, "y", "-k", 1).out
    again = run("select", path, "y", "-k", 1, "--task", "regression")
    assert "(regression, 60 rows)" in again.out
    assert "--task" not in again.out


@pytest.mark.parametrize("place", [0, 5])
def test_debug_shows_the_traceback(run, wine_csv, place):
    args = ["select", wine_csv, "cultivr", "-k", 2]
    plain, full = run(*args), run(*args[:place], "--debug", *args[place:])
    assert (plain.code, full.code) == (2, 2)
    assert "Traceback" not in plain.err
    assert "Traceback" in full.err
    assert full.err.splitlines()[-1] == plain.err.strip()


def test_a_mistake_of_ours_is_not_hidden(monkeypatch, wine_csv):
    def fail(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("exactk.problem.read_table.read_table", fail)
    with pytest.raises(ZeroDivisionError):
        main(["select", str(wine_csv), "cultivar", "-k", "2"])


# --- configuration files ---------------------------------------------------------------------


@pytest.fixture
def config(tmp_path):
    def write(text: str):
        path = tmp_path / "settings.toml"
        path.write_text(text)
        return path

    return write


def test_parameters_of_a_file(ask, wine_csv, config):
    path = config(
        'drop = ["id", "copies"]\nk = 3\nridge = 0.5\nmemory-limit = "1G"\nmethod = "gsrfs:lam=2"\n'
        '[constraints]\nexclude = ["proline"]\n'
    )
    found = ask("select", wine_csv, "cultivar", "--config", path)
    assert found["result"]["ridge"] == 0.5
    assert found["result"]["k"] == 3
    assert found["call"]["memory_limit"] == 2**30
    assert "lam=2" in found["call"]["method"]
    assert "proline" not in found["result"]["feature_names"]


def test_an_option_goes_before_the_file(ask, wine_csv, config):
    path = config(
        'drop = ["id", "copies"]\nk = 3\nridge = 0.5\n'
        '[constraints]\ninclude = ["ash"]\nexclude = ["proline"]\n'
    )
    args = ["--config", path, "-k", 2, "--ridge", 0, "--include", "hue"]
    found = ask("select", wine_csv, "cultivar", *args)
    assert (found["result"]["k"], found["result"]["ridge"]) == (2, 0)
    assert found["call"]["constraints"] == {"include": ["hue"], "exclude": ["proline"]}
    assert found["result"]["included"] == ["hue"]


def test_how_k_is_chosen_in_a_file(ask, wine_csv, config):
    path = config('drop = ["id", "copies"]\n[k]\ncriterion = "ebic"\nk-max = 4\n')
    found = ask("select", wine_csv, "cultivar", "--config", path, "--k-max", 3)
    assert (found["choice"]["criterion"], found["choice"]["k_max"]) == ("ebic", 3)
    assert "choice" not in ask("select", wine_csv, "cultivar", "--config", path, "-k", 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rige = 1", "'rige'; did you mean 'ridge'?"),
        ("k_max = 3", "'k_max'; write it under [k]"),
        ('include = ["ash"]', "'include'; write it under [constraints]"),
        ("[constraints]\nbuget = 3", "[constraints] has no parameter 'buget'; did you mean 'budge"),
        ("[k]\nrul = 'best'", "[k] has no parameter 'rul'"),
        ("seed = 3", "write random_state"),
        ('sample_weight = "copies"', "write weights"),
        ("verbose = 1", "exactk select has no parameter 'verbose'"),
        ('k = "auto"\n[k]\nk_max = 3', '[k] already means k = "auto"'),
        ('ridge = "x"', "ridge must be 'auto' or 'cv' or a number in"),
        ("effort = -1", "effort must be a number in [0, inf]"),
        ('drop = "id"', "drop must be a list"),
        ("[constraints]\nbudget = 'x'", "budget must be a number"),
        ("x = ", "is no TOML file"),
        ("time-limit = 5\ntime_limit = 6", "time_limit is given twice"),
        ("constraints = 5", "constraints must be a table"),
        ('constraints = ["a"]', "constraints must be a table"),
        ('columns = [["a"]]', "columns must be a list of one or more column names"),
        ("drop = [3]", "drop must be a list of column names"),
        ("[constraints]\ninclude = [1.5]", "include must be a list of column names or numbers"),
    ],
)
def test_mistakes_in_a_file(fails, wine_csv, config, text, words):
    args = ["select", wine_csv, "cultivar", "-k", 2, "--config"]
    assert "settings.toml'" in fails(words, *args, config(text))
    fails("'nowhere.toml'", *args, "nowhere.toml")


def test_a_file_may_have_keys_of_other_commands(run, wine_csv, config):
    path = config('drop = ["id", "copies"]\nk = 2\neffort = 0\nn-subsamples = 4\nscoring = "x"\n')
    done = run("certify", wine_csv, "cultivar", "--config", path)
    assert done.code == 0
    notes = done.err.splitlines()
    assert [note.split("'")[1] for note in notes] == ["effort", "n_subsamples", "scoring"]
    assert all("is not used by exactk certify" in note for note in notes)
    assert "under [k]" in notes[2]
    assert run("certify", wine_csv, "cultivar", "--config", path, "--quiet").err == ""


def test_keys_that_a_command_takes_outside_of_tables():
    taken = {"constraints"}
    for command in LEAVES.values():
        own = {*command.parameters, *(one.name for one in command.config)}
        taken |= own - {*CONSTRAINTS, *command.auto}
    assert taken == SHARED


@pytest.mark.parametrize(("value", "proven"), [("true", True), ("false", False), ("30", True)])
def test_certify_may_be_true_or_false_in_a_file(ask, wine_csv, config, value, proven):
    path = config(f'drop = ["id", "copies"]\ncertify = {value}\n')
    found = ask("select", wine_csv, "cultivar", "-k", 2, "--config", path)
    assert ("certificate" in found) is proven


# --- output ----------------------------------------------------------------------------------


def test_the_envelope_of_json(ask, wine_csv):
    args = ["--drop", "id,copies", "-k", 2, "--seed", 0]
    found = ask("select", wine_csv, "cultivar", *args)
    assert found["format"] == "exactk-result"
    assert (found["version"], found["command"]) == (1, "select")
    assert found["exactk"] == exactk.__version__
    assert found["call"] == {
        "table": str(wine_csv), "target": "cultivar", "drop": ["id", "copies"], "k": 2,
        "random_state": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("wine.csv", "is also an input"),
        ("s.toml", "is also an input"),
        (".", "is a folder"),
        ("none/x.csv", "its folder does not exist"),
        ("parts/x.csv", "is in the folder 'parts'"),
    ],
)
@pytest.mark.parametrize("option", ["--output", "--export"])
def test_places_are_checked_before_any_work(
    fails, wine_csv, tmp_path, monkeypatch, option, place, words
):
    monkeypatch.setattr("exactk.problem.read_table.read_table", lambda *a, **k: pytest.fail("read"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    (tmp_path / "s.toml").write_text("")
    before = wine_csv.read_bytes()
    table = "parts" if place.startswith("parts") else "wine.csv"
    args = [table, "cultivar", "-k", 2, "--config", "s.toml", option, place]
    assert f"{option} {place!r}" in fails(words, "select", *args)
    assert wine_csv.read_bytes() == before


def test_output_goes_to_a_file(run, wine_csv, tmp_path):
    args = ["select", wine_csv, "cultivar", "--drop", "id,copies", "-k", 2, "--format", "csv"]
    place = tmp_path / "selected.csv"
    done = run(*args, "-o", place)
    assert (done.code, done.out, done.err) == (0, "", f"Note: wrote {place}.\n")
    assert place.read_text() == run(*args).out
    again = run(*args, "-o", place, "--export", tmp_path / "s.json", "--quiet")
    assert (again.code, again.err) == (0, "")
    exported = run(*args, "--export", tmp_path / "s.json")
    assert exported.err == f"Note: wrote {tmp_path / 's.json'}.\n"


def test_quiet_leaves_out_notes_and_warnings(run, tmp_path):
    # Two of three columns carry the same values: three independent ones do not exist.
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,y\n1,1,2,0.1\n2,2,1,0.9\n3,3,0,0.4\n5,5,3,0.6\n")
    args = ["select", path, "y", "-k", 3, "--ridge", 0]
    loud, quiet = run(*args), run(*args, "--quiet")
    assert loud.code == quiet.code == 0
    assert loud.err.startswith("Warning: ")
    assert quiet.err == ""
    assert run("--quiet", *args).err == ""
    assert "rank_deficient" in quiet.out
