"""Reports whose pages are opened in a browser."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
from sklearn.datasets import load_diabetes, load_wine

import exactk
from exactk.report.page.page import selection_page

HOSTILE = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 2">',
    "</title><script>window.hacked = 3</script>",
    "javascript:window.hacked = 4",
    "' onmouseover='window.hacked = 5",
    "\u202edesrever <b>",
)
QUICK = {"n_subsamples": 10, "n_permutations": 9, "certify": 10.0}


def described(report, **asked):
    """The report as the command line gives it, with the command and where the table came from."""
    return replace(report, settings={**report.settings, **asked})


def wine():
    data = load_wine(as_frame=True)
    about = {
        "command": "exactk report wine.csv cultivar -k 4 --output a-file-with-a-long-name.html",
        "code": "import exactk\n\nprint(exactk.__version__)",
    }
    found = exactk.investigate(data.data, data.target.map("cultivar {}".format), k=4, **QUICK)
    return described(found, **about)


def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return exactk.investigate(X, y, task="regression", **QUICK)


def hostile():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 6)) + y[:, None] * np.linspace(2, 0, 6)
    X[:, 5] = X[:, 0]
    labels = np.array(["<script>window.hacked = 6</script>", "<img src=x>", "&amp;<i>"])[y]
    problem = exactk.Problem.from_arrays(X, labels, feature_names=HOSTILE)
    problem = problem.with_constraints(include=[HOSTILE[1]])
    return described(
        exactk.investigate(problem, k=3, target="<svg onload=alert(1)>", **QUICK),
        table="<script>.csv", command="exactk report '<script>.csv'", code="print('</script>')",
        constraints={"include": HOSTILE[1]},
    )  # fmt: skip


def many():
    rng = np.random.default_rng(1)
    y = np.arange(400) % 25
    X = rng.normal(size=(400, 60))
    X[:, :25] += 3 * np.eye(25)[y]
    names = [f"a rather long name of column number {j}" for j in range(60)]
    problem = exactk.Problem.from_arrays(X, y, feature_names=names)
    return exactk.investigate(problem, k=20, compare_with=("fisher",), **QUICK)


def alike():
    """Names that differ in their middle alone, and wide ones."""
    rng = np.random.default_rng(2)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 8)) + y[:, None] * np.linspace(2, 0, 8)
    names = [f"mean level of the substance {letter} in the blood of a patient" for letter in "ABC"]
    names += [f"ENSG{j:011d}|ribosomal-protein|isoform-{j}|chr7|probe_set_at" for j in (1, 2, 12)]
    names += ["W" * 30, "M" * 31]
    labels = np.array(["a class of a rather long name, no. 1", "W" * 25, "2"])[y]
    problem = exactk.Problem.from_arrays(X, labels, feature_names=names)
    return exactk.investigate(problem, k=6, **QUICK)


@cache
def record(name):
    # As a program would come by it later.
    return json.loads(MAKERS[name]().to_json())


MAKERS = {make.__name__: make for make in (wine, diabetes, hostile, many, alike)}


def pages(folder):
    """Addresses of the pages, by name."""
    found = {}
    for name in MAKERS:
        path = folder / f"{name}.html"
        path.write_text(selection_page(record(name)), encoding="utf-8")
        found[name] = path.as_uri()
    return found


def unfold(view):
    view.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
