"""The page of a report, without a browser: well formed, escaped, complete, with its numbers."""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import exactk
from exactk import Problem, investigate
from exactk.data.moments import Moments
from exactk.report.numbers import exact, short
from exactk.report.page.page import selection_page
from exactk.report.page.phrases import format_score, percent_of, share_of
from tests.unit.papers.experiments.page.test_page import read
from tests.unit.report.choices import described

QUICK = {"n_subsamples": 4, "n_permutations": 2, "certify": 2, "compare_with": ("selectkbest",)}
NONE = {"n_subsamples": 0, "n_permutations": 0, "certify": 0, "compare_with": ()}
HOSTILE = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "title": "</title></style></script><b>",
    "address": "javascript:alert(1)",
    "outside": "https://example.org/x.png",
    "backwards": "\u202eeman\u202d \u200f\u061c",
    "nothing": "a\x00b\x1b",
    "surrogate": "a\ud800b",
    "long": "x" * 10_000,
    "emoji": "👩‍🔬 é 中",
    "lines": "one\ntwo\r\n\tthree",
    "braces": "{{7*7}} {0} %s ${x}",
    "comment": "<!-- --> ]]> <![CDATA[",
    "quotes": "a'b\"c`d & &lt;",
    "empty": " ",
}


def table(n=60, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"column {j}" for j in range(d)])
    return X, rng


def small():
    X, rng = table()
    y = np.where(X["column 0"] + X["column 1"] + 0.5 * rng.normal(size=60) > 0, "yes", "no")
    return investigate(X, y, k=2, target="sold", **QUICK)


def numbers():
    X, rng = table()
    return investigate(X, 2 * X["column 0"] + rng.normal(size=60), **QUICK)


def wide():
    X, _ = table(20, 300)
    return investigate(X, X["column 3"] > 0, k=15, **QUICK)


def many_classes():
    X, _ = table(200)
    return investigate(X, [f"class {i % 50}" for i in range(200)], k=3, **QUICK)


def outputs():
    X, rng = table()
    return investigate(X, np.c_[X["column 0"], rng.normal(size=(60, 6))], k=3, **QUICK)


def likelihood():
    X, _ = table()
    problem = Problem.from_arrays(X, X["column 0"] + X["column 1"] > 0, loss="logistic")
    return investigate(problem.with_constraints(include=["column 5"]), k=2, **QUICK)


def groups():
    X, _ = table()
    X["colour"] = list("rgb") * 20
    problem = Problem.from_arrays(X, X["column 0"] > 0)
    return investigate(
        problem.with_constraints(feature_groups={"pair": ["column 0", "column 1"]}), k=3, **QUICK
    )


def moments():
    X, _ = table()
    found = Moments.from_arrays(X, np.eye(2)[(X["column 0"] > 0).astype(int)])
    return investigate(
        Problem.from_moments(replace(found, classes=np.array(["u", "v"]))), k=2, **QUICK
    )


def numbers_of_moments():
    X, _ = table()
    return investigate(
        Problem.from_moments(Moments.from_arrays(X, X["column 0"] + X["column 1"])), k=2, **QUICK
    )


def bare():
    X, _ = table()
    return investigate(X, X["column 0"] > 0, k=1, **NONE)


def too_few_rows():
    X, _ = table(6)
    return investigate(X, list("uuvvvw"), k=2, **QUICK)


def a_filter():
    X, _ = table()
    return investigate(X, X["column 0"] > 0, k=2, method="fisher", **{**QUICK, "certify": 0})


MADE = {
    "small": small, "numbers": numbers, "wide": wide, "many classes": many_classes,
    "outputs": outputs, "likelihood": likelihood, "groups": groups, "moments": moments,
    "numbers of moments": numbers_of_moments, "bare": bare, "too few rows": too_few_rows,
    "a filter": a_filter,
}  # fmt: skip


@pytest.fixture(scope="module")
def reports():
    return {name: make() for name, make in MADE.items()}


def text_of(page: str) -> str:
    """What a reader reads, pictures and folded parts too."""
    body = re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", "", body))


@pytest.mark.parametrize("name", MADE)
def test_pages_are_well_formed(reports, name):
    # As it is read back from a file.
    page = selection_page(json.loads(reports[name].to_json(allow_nan=False)))
    assert page == reports[name].to_html()
    seen = read(page).seen
    ids = [attrs["id"] for _, attrs in seen if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"][1:] for tag, attrs in seen if tag == "a"} <= set(ids)
    assert len([tag for tag, _ in seen if tag == "script"]) == 1
    assert len([tag for tag, _ in seen if tag == "h1"]) == 1
    said = text_of(page)
    assert not re.search(r"\b(nan|inf|None|NaN)\b", said), re.search(
        r".{40}\b(nan|inf|None|NaN)\b", said
    )


@pytest.mark.parametrize("name", MADE)
def test_pictures_have_names(reports, name):
    pictures = re.findall(r"<svg.*?</svg>", reports[name].to_html(), re.S)
    # Of moments without classes one column has neither means nor correlations.
    for picture in pictures:
        root = ET.fromstring(picture)
        assert root.get("role") == "img"
        assert root.get("aria-label")
        assert root.find("{http://www.w3.org/2000/svg}title").text == root.get("aria-label")
    assert len(pictures) >= 1


@pytest.mark.parametrize("name", MADE)
def test_what_is_absent_is_said_with_its_reason(reports, name):
    report = reports[name]
    said = text_of(report.to_html())
    for part, why in report.missing_parts.items():
        assert why in said, part


def test_nothing_comes_from_outside(reports):
    for report in reports.values():
        page = report.to_html()
        for tag, attrs in read(page).seen:
            assert tag not in ("img", "iframe", "object", "embed", "base", "video", "audio")
            assert not any(key.startswith("on") or key in ("src", "style") for key in attrs)
            assert attrs.get("href", "#")[:1] == "#" or tag == "link"
        addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
        assert addresses <= {"http://www.w3.org/2000/svg"}
        assert "url(" not in page
        assert "@import" not in page


def test_the_policy_allows_its_own_script_and_styles_alone(reports):
    page = reports["small"].to_html()
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1])
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for element in ("script", "style"):
        inside = re.search(rf"<{element}>(.*?)</{element}>", page, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy


def hostile_report():
    """Hostile columns, classes, target, file, constraints, command and code."""
    rng = np.random.default_rng(0)
    names = list(HOSTILE.values())
    X = rng.normal(size=(90, len(names)))
    labels = [names[0], names[1], names[2]]
    codes = np.arange(90) % 3
    X[:, :6] += codes[:, None]
    problem = Problem.from_arrays(X, np.array(labels)[codes], feature_names=names)
    problem = problem.with_constraints(include=names[:1])
    about = {
        "table": HOSTILE["image"], "command": f"exactk report {HOSTILE['title']}",
        "code": f"print({HOSTILE['script']!r})", "checksum": HOSTILE["comment"],
        "constraints": {HOSTILE["script"]: HOSTILE["image"]},
    }  # fmt: skip
    return described(investigate(problem, k=8, target=HOSTILE["title"], **QUICK), **about)


def test_hostile_text_stays_text():
    report = hostile_report()
    page = report.to_html()
    # What no document can hold is not in it.
    page.encode("utf-8")
    assert "\x00" not in page
    seen = read(page).seen
    assert [tag for tag, _ in seen].count("script") == 1
    assert [tag for tag, _ in seen].count("title") == page.count("<title>")
    assert not {"img", "b"} & {tag for tag, _ in seen}
    assert not any(key.startswith("on") for _, attrs in seen for key in attrs)
    for picture in re.findall(r"<svg.*?</svg>", page, re.S):
        ET.fromstring(picture)
    said = text_of(page)
    for name in ("script", "image", "title", "braces", "quotes"):
        assert HOSTILE[name] in html.unescape(said) or HOSTILE[name] in said, name


def test_hostile_text_in_every_field_of_a_report(reports):
    record = json.loads(reports["small"].to_json())
    for text in HOSTILE.values():
        page = selection_page(_poisoned(record, text))
        page.encode("utf-8")
        seen = read(page).seen
        assert [tag for tag, _ in seen].count("script") == 1
        assert not {"img", "b"} & {tag for tag, _ in seen}
        assert not any(key.startswith("on") for _, attrs in seen for key in attrs)
        for tag, attrs in seen:
            assert attrs.get("href", "#")[:1] == "#" or tag == "link"


# Words that the page reads as such: kinds, rules and names of losses.
KEPT = ("kind", "loss", "made", "criterion", "rule", "format", "status")


def _poisoned(value, text, name=""):
    """The values with every text in it replaced; the names of coefficients go on to agree."""
    if isinstance(value, dict):
        return {key: one if key in KEPT else _poisoned(one, text, key)
                for key, one in value.items()}  # fmt: skip
    if isinstance(value, list):
        return [_poisoned(one, text, name) for one in value]
    return text if isinstance(value, str) else value


def with_error(value, error):
    return f"{format_score(value)} ± {format_score(error)}"


def test_numbers_of_the_page_are_those_of_the_report(reports):
    report = reports["small"]
    page, score = report.to_html(), report.evaluation
    said = text_of(page)
    assert f"2 of 6 features for {report.settings['target']}" in said
    assert f"explain {percent_of(report.result.explained)} of the squared error" in said
    assert with_error(score.test_score, score.standard_error) in said
    for row in report.table:
        assert share_of(row["loss_fraction"]) in said
        assert f'data-v="{row["loss_fraction"]!r}"' in page
        assert row["substitute"] in said
    for one in report.figures["coefficients"]:
        for raw, standardised in zip(one["raw"], one["standardised"], strict=True):
            # Not in a title alone, which wants a mouse.
            assert f'data-v="{exact(raw)}">{short(raw, 5)}</td>' in page
            assert short(standardised, 3) in said
    for row in score.table:
        assert with_error(row["test_score"], row["standard_error"]) in said
    for row, result in zip(report.figures["scores"]["table"], report.choice.path, strict=True):
        assert with_error(row["mean"], row["standard_error"]) in said
        assert f"k = {result.k}\nexplained: {percent_of(result.explained)}" in said
    assert short(report.stability.index, 2) in said
    assert "of 2 shuffled targets did as well" in said
    for one in report.settings["classes"]:
        assert f"{one['label']} ({one['rows']:g})" in said
    assert exactk.__version__ in said


def test_every_section_is_there(reports):
    page = reports["bare"].to_html()
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    assert len(heads) == 10
    for name in ("Settings", "Performance on held-out data", "Number of features",
                 "Reproduce this report", "Glossary"):  # fmt: skip
        assert name in heads
    assert "Not proven" in text_of(page)


@pytest.mark.parametrize("name", MADE)
def test_boxes_that_scroll_have_short_names_of_their_own(reports, name):
    page = reports[name].to_html()
    regions = [attrs for _, attrs in read(page).seen if attrs.get("role") == "region"]
    names = [attrs["aria-label"] for attrs in regions]
    assert len(names) > 1
    assert max(map(len, names)) <= 80
    assert len(set(names)) == len(names)
    assert all(attrs["tabindex"] == "0" for attrs in regions)


def test_intervals_of_frequencies_can_be_read(reports):
    report = reports["small"]
    said = text_of(report.to_html())
    for row in report.table:
        ends = (percent_of(row[end]) for end in ("frequency", "low", "high"))
        assert f"{row['feature']}{''.join(ends)}" in said


def test_serious_remarks_are_at_the_top():
    X, _ = table()
    page = investigate(X, 2 * X["column 0"], k=2, **NONE).to_html()
    before = page.split("<section", 1)[0]
    assert "'column 0' alone explains 100.00% of the target" in html.unescape(before)


def test_drawing_a_page_changes_nothing(reports):
    values = reports["small"].to_dict()
    kept = copy.deepcopy(values)
    assert selection_page(values) == selection_page(kept)
    assert values == kept


def test_what_speaks_against_a_choice_is_said_first(reports):
    record = reports["small"].to_dict()
    record["evaluation"]["methods"][1] |= {"difference": 0.1, "difference_error": 0.03}
    record["evaluation"] |= {"p_value": 0.4, "n_permutations": 100, "n_as_good": 40}
    record["stability"]["index"] = 0.2
    for row in record["choice"]["table"]:
        row |= {"criterion": 1.0 / row["k"], "standard_error": 0.01}
    record["choice"]["k"] = record["choice"]["table"][-1]["k"]
    page = selection_page(record)
    top = text_of(page.split("<section", 1)[0])
    for words in (
        "selectkbest selects 2 features that score higher on held-out rows: +0.100 ± 0.030",
        "40 of 100 shuffled targets did as well",
        "Half-samples give other features (stability 0.2)",
        "lowest with 6 features; with 2, as requested, it is higher by more than",
    ):
        assert words in top
    record["evaluation"]["methods"][1] |= {"difference": 0.1, "difference_error": 0.04}
    # No p-value of ten shuffled targets is small.
    record["evaluation"] |= {"p_value": 0.4, "n_permutations": 10}
    record["stability"]["index"] = 0.9
    for row in record["choice"]["table"]:
        row["standard_error"] = 10.0
    assert "<strong>Warnings</strong>" in page
    assert "<strong>Warnings</strong>" not in selection_page(record)


def test_the_cards_say_what_was_not_measured(reports):
    page = reports["bare"].to_html()
    top = text_of(page.split("<section", 1)[0])
    assert top.count("not measured") == 1
    assert top.count("not requested") == 2


@pytest.mark.parametrize(("naive", "words"), [(0.9, True), (0.8, False), (0.7, False)])
def test_a_leaking_score_is_too_good_only_where_it_is_higher(reports, naive, words):
    record = reports["small"].to_dict()
    record["evaluation"] |= {"test_score": 0.8, "naive_score": naive}
    assert ("too high by the difference" in selection_page(record)) == words


@pytest.mark.parametrize(("status", "words"), [("time_limit", True), ("converged", False)])
def test_more_time_is_promised_only_where_time_ended_a_proof(reports, status, words):
    record = reports["small"].to_dict()
    record["certificate"] |= {"proven": False, "gap": 0.17, "lower": 1.0, "status": status}
    page = text_of(selection_page(record))
    assert "a better set could lower the objective by at most 17 %" in page
    assert ("More time may close the gap" in page) == words


def test_many_names_are_cut_and_counted(reports):
    record = reports["wide"].to_dict()
    record["stability"]["unstable"] = [f"gene {i}" for i in range(34)]
    said = text_of(selection_page(record))
    assert "gene 29" in said
    assert "and 4 more" in said
    assert "gene 33" not in said
    lead = text_of(selection_page(record).split('class="cards"', 1)[0])
    assert "and 7 more" in lead
