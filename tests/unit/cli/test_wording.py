"""Errors of the library name options on the command line, and what is quoted stays as it is."""

from __future__ import annotations

import pytest

from exactk.cli.wording import as_options


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("at_most for 'f' must be", "--at-most for 'f' must be"),
        ("at_least=2 and at_most=1 contradict", "--at-least 2 and --at-most 1 contradict"),
        ("quotas['f'] has only", "--family 'f' has only"),
        ("feature_groups['g']: there is", "--group 'g': there is"),
        ("costs['a'] must be", "--costs 'a' must be"),
        ("costs has no number for 'a'", "--costs has no number for 'a'"),
        ("budget needs costs as well", "--budget needs --costs as well"),
        ("none keeps all of: budget=3, include 'a', exclude 'b'",
         "none keeps all of: --budget 3, --include 'a', --exclude 'b'"),
        ("include: there is no column 'a'", "--include: there is no column 'a'"),
        ("exclude must be a list", "--exclude must be a list"),
        ("max_correlation=0.5", "--max-correlation 0.5"),
        ("why_not: there is no column 'a'", "--why-not: there is no column 'a'"),
        ("chosen: there is no column 'a'", "--features: there is no column 'a'"),
        ("k_max must be from 1 to 3, or None (a default), not 9",
         "--k-max must be from 1 to 3, not 9"),
        ("moments; make it with Problem.from_arrays, from_files, from_dask or from_spark",
         "moments; give TABLE and --target in place of --from-moments"),
        ("no rows; make it of the table: Problem.from_arrays, from_files",
         "no rows; give TABLE and --target in place of --from-moments"),
        ("few values; load the table and use Problem.from_arrays",
         "few values; in Python load the table and use Problem.from_arrays"),
        ("task='regression', criterion='bic' or method='exchange'",
         "--task regression, --criterion bic or --method exchange"),
        ("fit it with k='auto'", "fit it with -k auto"),
    ],
)  # fmt: skip
def test_parameters_become_options(message: str, wanted: str) -> None:
    assert as_options(message) == wanted
    assert as_options(wanted) == wanted


@pytest.mark.parametrize(
    "message",
    [
        "column 'budget' is in two groups, 'at_most' and 'why_not: k_max'",
        """there is no column "user's max_correlation=1"; did you mean 'max_correlation'?""",
        r"""no column 'both \' and " of at_most', the set's best""",
        "the group costs more; exclude the whole group, or include fewer",
        "'task=' and 'a' is constant",
        "the table's columns, and those of 'k_max' or 'k_max'",
    ],
)
def test_names_and_plain_words_stay(message: str) -> None:
    assert as_options(message) == message


def test_a_column_that_is_called_like_a_parameter(run, tmp_path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(
        "budget,why_not,y\n" + "".join(f"{i},{i * i % 7},{i % 3}\n" for i in range(30))
    )
    result = run("select", table, "--target", "y", "-k", 1, "--include", "why_nut")
    assert result.err == (
        "exactk: --include: there is no column 'why_nut'; did you mean 'why_not'?\n"
    )
