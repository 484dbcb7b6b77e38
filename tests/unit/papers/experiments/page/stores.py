"""Stores that no run made: every kind of view, hostile text, failures, gaps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

Record = dict[str, Any]

HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "</script><script>window.hacked=1</script>",
    "' onmouseover='window.hacked=1",
    "数据集 übung עברית \u202e reversed",
    "\x00\x07 control \ud800 surrogate",
    "&lt;already&gt; &amp; {{template}} ${js}",
    "x" * 400,
)
MACHINE = {"processor": "Example 3000", "cores": 8, "system": "Linux x86_64", "threads": 1}
VERSIONS = {"python": "3.11.7", "numpy": "1.26.0", "exactk": "0.1.0"}


def definition(
    name: str,
    views: Sequence[Record],
    *,
    datasets: Sequence[str] = ("srbct", "orl"),
    methods: Sequence[str | Record] = ("CD-LSR", "exchange", "RPFS"),
    sizes: Sequence[int] = (5, 10, 20),
    repeats: int = 5,
    **more: Any,
) -> Record:
    """The line of a recipe."""
    variants = [m if isinstance(m, dict) else {"label": m, "method": m.lower()} for m in methods]
    return {
        "type": "recipe",
        "name": name,
        "definition": {
            "name": name, "title": f"Title of {name}", "paper": "cdlsr", "shows": ["table 2"],
            "about": "What was done.\n\nWhat the paper leaves open.", "protocol": "classify",
            "datasets": list(datasets), "sizes": list(sizes), "repeats": repeats,
            "split": {"train": 0.6}, "measure": {"classifiers": ["1nn", "svm"]},
            "methods": variants, "views": list(views), "published": {}, **more,
        },
    }  # fmt: skip


def cell(
    recipe: str, dataset: str, method: str, repeat: int, sizes: Sequence[int], **more: Any
) -> Record:
    """The line of a cell with made-up numbers that depend on nothing but its place."""
    place = f"{recipe}/{dataset}/{method}/{repeat}/{list(sizes)}"
    key = hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()
    quality = np.random.default_rng(
        list(hashlib.sha256(f"{dataset}/{method}".encode("utf-8", "surrogatepass")).digest()[:4])
    ).random()
    rng = np.random.default_rng(list(bytes.fromhex(key[:8])))
    return {
        "type": "cell", "schema": 1, "key": key, "recipe": recipe, "protocol": "classify",
        "dataset": dataset, "rows": 83, "features": 2308, "classes": 4,
        "checksum": hashlib.sha256(dataset.encode("utf-8", "surrogatepass")).hexdigest(),
        "method": method, "name": method.lower(), "options": {}, "sizes": list(sizes),
        "repeat": repeat, "seed": 1000 + repeat, "status": "done", "reason": "",
        "seconds": 0.1, "wall": 0.2,
        "results": [_result(rng, float(quality), k) for k in sizes],
        "machine": MACHINE, "versions": VERSIONS, "finished": f"2026-11-16T07:00:{repeat:02d}Z",
        **more,
    }  # fmt: skip


def _result(rng: np.random.Generator, quality: float, k: int) -> Record:
    accuracy = 1 - (0.5 - 0.2 * quality) * np.exp(-k / 12) - 0.02 * rng.random()
    start = 60 * np.exp(-k / 10) * (1 + 0.2 * rng.random())
    trace = [float(start * (0.3 + 0.7 * 0.7**i)) for i in range(int(rng.integers(6, 14)))]
    norms = np.sort(rng.random(120))[::-1] * (np.arange(120) < 1.3 * k)
    return {
        "k": k, "status": "converged" if rng.random() > 0.2 else "max_iter", "n_iter": len(trace),
        "seconds": float(10 ** (3 * quality - 3) * (1 + 0.1 * rng.random())),
        "support": list(range(k)), "objective": trace[-1], "own": trace[-1], "trace": trace,
        "chosen": {},
        "measures": {
            "1nn": float(accuracy - 0.02), "svm": float(accuracy),
            "redundancy": 0.3 * quality + 0.1,
            "rmse": 1.0 + quality,
            "sparsity@0.001": k + int(3 * quality * rng.random()),
        },
        "details": {"row_norms": rng.permutation(norms).tolist(), "weights": norms.tolist()},
    }  # fmt: skip


def cells_of(line: Record, *, without: Sequence[tuple[str, str]] = ()) -> list[Record]:
    """All cells of a recipe, but for some pairs of data set and method."""
    recipe = line["definition"]
    return [
        cell(line["name"], dataset, variant["label"], repeat, recipe["sizes"],
             options=variant.get("options", {}), name=variant["method"])
        for dataset in recipe["datasets"]
        for repeat in range(recipe["repeats"])
        for variant in recipe["methods"]
        if (dataset, variant["label"]) not in without
    ]  # fmt: skip


def failed(recipe: str, dataset: str, method: str, repeat: int, **more: Any) -> Record:
    more = {"status": "failed", "reason": "SVD did not converge", "results": [], **more}
    return cell(recipe, dataset, method, repeat, more.pop("sizes", [5]), **more)


VIEWS: list[Record] = [
    {"kind": "table", "measure": "objective", "title": "Table 2"},
    {"kind": "curve", "measure": ["1nn", "svm"], "title": "Figure 3", "scale": "percent"},
    {"kind": "curve", "measure": "sparsity@0.001", "title": "Figure 4"},
    {"kind": "trace", "measure": "own", "title": "Figure 5", "x": "iteration", "scale": "log"},
    {"kind": "bars", "measure": "seconds", "title": "Table 3", "scale": "log"},
    {"kind": "bars", "measure": "redundancy", "title": "Figure 1"},
    {"kind": "ranks", "measure": ["1nn", "svm"], "title": "Leaderboard", "scale": "percent"},
    {"kind": "profile", "measure": ["row_norms", "weights"], "title": "Figure 2"},
]


def every_view(repeats: int = 5) -> list[Record]:
    """Two recipes with every kind of view, published numbers, failures and gaps."""
    published = {
        "objective": {"srbct": {"5": {"CD-LSR": [12.91, 30.0], "exchange": 11.5}},
                      "orl": {"5": {"CD-LSR": [1.0, 0.1]}}},
        "svm": {"srbct": {"5": {"CD-LSR": [77.02, 0.82]}, "10": {"CD-LSR": 91.5}}},
    }  # fmt: skip
    datasets = ("srbct", "orl", "jaffe", "umist")
    methods = ("CD-LSR", "exchange", "RPFS", "nmAPG", "ReliefF")
    line = definition(
        "cdlsr-all", VIEWS, datasets=datasets, methods=methods, repeats=repeats, published=published
    )
    lacking = [("orl", "RPFS"), ("jaffe", "nmAPG"), ("umist", "ReliefF")]
    records = [line, *cells_of(line, without=lacking)]
    records += [failed(line["name"], "orl", "RPFS", r, sizes=[5, 10, 20]) for r in range(repeats)]
    records.append(
        failed(line["name"], "jaffe", "nmAPG", 0, sizes=[5, 10, 20], status="time_limit",
               reason="more than 300 s")
    )  # fmt: skip
    gammas = [
        {"label": f"IPFS (γ = {g:g})", "method": "ipfs", "options": {"gamma": g}}
        for g in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    ]
    view = {
        "kind": "curve",
        "measure": "svm",
        "x": "gamma",
        "scale": "percent",
        "title": "Figure 3",
    }
    other = definition("ipfs-figure3", [view], methods=gammas, sizes=[20], repeats=repeats)
    return [*records, other, *cells_of(other)]


def many_methods(count: int = 32) -> list[Record]:
    """A leaderboard of many methods."""
    line = definition(
        "leaderboard",
        [
            {"kind": "ranks", "measure": ["1nn", "svm"], "title": "Ranks", "scale": "percent"},
            {"kind": "curve", "measure": "svm", "title": "Accuracy", "scale": "percent"},
            {"kind": "bars", "measure": "seconds", "title": "Time", "scale": "log"},
        ],
        datasets=[f"data{i}" for i in range(6)],
        methods=[f"method {i}" for i in range(count)],
        repeats=2,
        paper="exactk",
    )
    return [line, *cells_of(line)]


def hostile() -> list[Record]:
    """Text that would break out of a page, in every place that text can stand."""
    line = definition(
        HOSTILE[2],
        [{**view, "title": HOSTILE[0], "caption": HOSTILE[1]} for view in VIEWS],
        datasets=HOSTILE,
        methods=HOSTILE,
        sizes=[5],
        repeats=2,
        title=HOSTILE[1],
        about="\n\n".join(HOSTILE),
        paper=HOSTILE[0],
        shows=list(HOSTILE),
        published={"objective": {name: {"5": {name: [1.0, 0.1]}} for name in HOSTILE}},
    )
    records = [line, *cells_of(line, without=[(HOSTILE[0], HOSTILE[1])])]
    records += [failed(line["name"], HOSTILE[0], HOSTILE[1], i, reason=text)
                for i, text in enumerate(HOSTILE)]  # fmt: skip
    for record in records[1:]:
        record["machine"] = dict(zip(("a", "b", HOSTILE[0]), HOSTILE[:3], strict=True))
        record["versions"] = {HOSTILE[1]: HOSTILE[0]}
    return records


def through_json(records: Sequence[Record]) -> list[Record]:
    """What a store gives back of them."""
    return [json.loads(json.dumps(record)) for record in records]
