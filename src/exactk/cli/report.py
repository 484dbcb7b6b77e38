"""``exactk report``: one page on a selection, to read and to pass on."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

from exactk.cli.framework import CONFIG, RULES, TABLE, Call, check_place, command, option, param
from exactk.params import AnyOf, Boolean, Choice, Integer, Number

__all__ = ["report"]

PAGE = "report.html"
# Half-samples; 0 leaves the stability out.
LEFT_OUT = AnyOf((Choice((0,)), Integer(2)))
# A larger table is not read once more for its fingerprint.
MOST_BYTES = 2**30
# What a file of exactk has at its start; a page of HTML has its own mark.
STARTS = {"json": b'{\n  "format": "exactk-result"', "csv": b"rank,feature,loss,"}


@command(
    "report",
    parameters=(
        *TABLE, "groups", "k", "cv", "scoring", *RULES, "method", "compare_with",
        param("certify", check=AnyOf((Boolean(), Number("[0, inf]"))),
              help="Try for SECONDS to prove optimality; 0 leaves the proof out."),
        param("n_permutations",
              help="Shuffled targets for the permutation test; 0 leaves it out."),
        "loss", "time_limit", "random_state",
    ),
    config=(*CONFIG, "estimator", param("n_subsamples", check=LEFT_OUT), "ridge", "effort"),
    of="investigate",
    table=True,
    formats=("html", "json", "csv"),
)  # fmt: skip
@option("--overwrite", is_flag=True, help="Replace an existing file that exactk did not write.")
def report(call: Call, overwrite: bool) -> int:
    """Write an HTML report on the best K features of TABLE.

    The page is one file that needs no network: the features, what each contributes, its best
    substitute and how stable it is; the scores of other sizes and other methods on held-out rows;
    the proof; warnings about the table; and how to repeat it. It is report.html unless --output
    names another file. --method, --scoring and --time-limit are for all parts. After Ctrl-C it
    has the parts that were done.
    """
    from exactk.report.investigate import investigate
    from exactk.report.selection_report import check_replaceable

    page = (call.output or PAGE) if call.style == "html" else None
    place = page or call.output
    if place is not None:
        check_place(place, call.inputs)
        check_replaceable(place, overwrite=overwrite or _is_ours(place, call.style))
    if call.values.get("compare_with") == ["none"]:
        call.values["compare_with"] = []
    data = call.read()
    found = investigate(data.problem, target=data.target, **call.arguments(data))
    found = found.with_source(
        command=shlex.join(["exactk", *call.session.words]), checksum=_checksum(call.table or ""),
        path=call.table, target=call.target, **call.reading,
    )  # fmt: skip
    if page is None:
        return call.emit(found)
    found.save(page, overwrite=overwrite)
    for part, reason in found.missing_parts.items():
        call.say(f"without {part}: {reason}")
    call.say(f"wrote {page}")
    return call.finish(found)


def _is_ours(place: str, style: str) -> bool:
    """Return whether a file has the start of a result of exactk in this format."""
    if style not in STARTS or not Path(place).is_file():
        return False
    with open(place, "rb") as file:
        return file.read(len(STARTS[style])) == STARTS[style]


def _checksum(table: str) -> str | None:
    """Return the SHA-256 of a file; None if it is a folder, a pattern or very large."""
    if not Path(table).is_file() or Path(table).stat().st_size > MOST_BYTES:
        return None
    with open(table, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
