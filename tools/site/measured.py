"""What the records and the page of results tell of one method, as reStructuredText."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from benchmarks import wide
from benchmarks.comparison import standings
from benchmarks.harness import milliseconds, read_record
from benchmarks.papers import MARKS
from tools.site.rst import table

__all__ = ["measured"]

# From here on a ratio says no more than that the better fit leaves hardly anything.
FAR = 10.0


def measured(root: Path, method: str) -> str:
    """Return what was measured of a method, each part with its source; empty if nothing was."""
    parts: tuple[Callable[[str], str], ...] = (_comparison, _papers, _peers, _growth, _wide)
    found = [_leaderboard(root, method), *(part(method) for part in parts)]
    return "\n\n".join(text for text in found if text)


_record = cache(read_record)


def _leaderboard(root: Path, method: str) -> str:
    """The line of the method in the leaderboard of the page of results."""
    page = (root / "docs" / "results.md").read_text(encoding="utf-8")
    lines = page.split("## Leaderboard")[1].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    places = {row[1]: row for row in rows if row[0].isdigit()}
    if method not in places:
        return ""
    place, _, rank, accuracy, wins = places[method]
    return (
        f"In the :doc:`leaderboard </results>` of {len(places)} methods: place {place}, mean rank "
        f"{rank}, mean accuracy {accuracy} %, {wins} wins."
    )


def _comparison(method: str) -> str:
    """Its place among all methods, and its cells."""
    record = _record("comparison")
    cells = [row for row in record["quality"] if row["method"] == method]
    if not cells:
        return ""
    places = standings(record["quality"])
    place = next(i for i, row in enumerate(places, start=1) if row["method"] == method)
    row = places[place - 1]
    best: dict[tuple[str, int], float] = {}
    for other in record["quality"]:
        cell = (other["data"], other["k"])
        best[cell] = min(best.get(cell, other["objective"]), other["objective"])
    rows = [
        [
            found["data"],
            str(found["k"]),
            _above(found["objective"], best[found["data"], found["k"]]),
            f"{100 * found['nearest']:.1f}",
            f"{100 * found['svm']:.1f}",
            milliseconds(found["seconds"]),
            found["status"],
        ]
        for found in cells
    ]
    header = ["data", "k", "objective", "1-NN, %", "SVM, %", "ms", "status"]
    return (
        f"Among {len(places)} methods at their defaults ({record['date']}, {record['processor']}, "
        f"{record['threads']} threads): place {place} by mean rank ({row['rank']:.1f}), accuracy "
        f"{row['accuracy']:.1f} %, objective {100 * row['above']:,.0f} % above the best in the "
        f"median, {milliseconds(row['seconds'])} ms in the geometric mean. The objective below is "
        f"above the best of all methods in that cell; accuracies are of rows that took no part "
        f"in the choice.\n\n{table(header, rows)}"
    )


def _above(objective: float, least: float) -> str:
    """How far an objective is above another; where that one is next to nothing, in words."""
    share = objective / least - 1.0
    return f"{share:+.1%}" if share < FAR else f"> {FAR:g} times"


def _papers(method: str) -> str:
    """The objective beside that of exchange, without a ridge."""
    record = _record("papers")
    ours = {(r["data"], r["k"]): r for r in record["quality"] if r["method"] == "exchange"}
    cells = [r for r in record["quality"] if r["method"] == method]
    if not cells or method == "exchange":
        return ""
    rows = []
    for found in cells:
        other = ours[found["data"], found["k"]]
        mark = MARKS.get(found["status"], f" {found['status']}")
        rows.append(
            [
                found["data"],
                f"{found['objective']:.6g}{mark}",
                _above(found["objective"], other["objective"]),
                milliseconds(found["seconds"]),
                milliseconds(other["seconds"]),
            ]
        )
    header = ["data", "objective", "from ``exchange``", "ms", "``exchange``, ms"]
    return (
        f"At k = {cells[0]['k']} without a ridge, on a problem that is built ({record['date']}; "
        f"† iterations ran out, ‡ a minute was up):\n\n{table(header, rows)}"
    )


def _peers(method: str) -> str:
    """Its speed beside other people's programs for the same."""
    rows = []
    for found in _record("comparison")["speed"]:
        if found["method"] != method:
            continue
        more = "> " if found["stopped"] else ""
        agreement = found["agreement"]
        rows.append(
            [
                found["data"],
                found["peer"],
                milliseconds(found["seconds"]),
                more + milliseconds(found["peer_seconds"]),
                more + f"{found['peer_seconds'] / found['seconds']:,.0f}",
                "–" if agreement is None else f"{agreement:.4f}",
            ]
        )
    if not rows:
        return ""
    header = ["data", "peer", "ms", "peer, ms", "times faster", "agreement"]
    return f"Beside other programs for the same:\n\n{table(header, rows)}"


def _growth(method: str) -> str:
    """How its time grows with the columns."""
    found = [r for r in _record("papers")["scaling"] if r["method"] == method]
    if not found:
        return ""
    rows = [[f"{r['columns']:,}", milliseconds(r["seconds"])] for r in found]
    return f"How its time grows with the columns:\n\n{table(['columns', 'ms'], rows)}"


def _wide(method: str) -> str:
    """What very wide tables cost."""
    record = _record("wide")
    rows = [
        [
            f"{r['rows']:,} × {r['features']:,}",
            str(r["k"]),
            "default" if r["effort"] is None else f"{r['effort']:g}",
            f"{r['solve_seconds']:.1f}",
            f"{r['peak_bytes'] / 1e9:.1f}",
            str(r["passes"]),
            f"{r['share_left']:.3g}",
        ]
        for r in wide.solves(record)
        if r["method"] == method
    ]
    if not rows:
        return ""
    header = ["table", "k", "effort", "s", "peak GB", "passes", "left of the squared error"]
    return (
        f"Tables whose Gram matrix has no room ({record['date']}, threads: {record['threads']}):"
        f"\n\n{table(header, rows)}"
    )
