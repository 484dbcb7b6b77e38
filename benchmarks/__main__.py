"""Run a benchmark, or print its stored record.

python -m benchmarks list             names and descriptions
python -m benchmarks NAME             measure all parts and store them in results/NAME.jsonl
python -m benchmarks NAME --only PART ...
python -m benchmarks NAME --report    print the stored record
python -m benchmarks NAME --help      other options

A part replaces that part of the stored record, and the other parts stay. It is only printed if an
option changes what is measured, such as --quick, or if a data set is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks import data, harness

# Each is a module of this package with `PARTS` (functions from options to rows, by name) and
# `report`; it may have `THREADS`, `CAN_ADD` and `add_options`.
BENCHMARKS = {
    "alternatives": "held-out accuracy of exactk, SelectKBest, RFE and L1",
    "clusters": "the same table from arrays, Parquet, Dask and Spark",
    "compare": "time and objective of exactk, abess, fastcan, skglm and scikit-learn",
    "comparison": "filters and other published methods: speed and quality",
    "decide": "the number of features, half-samples and constraints",
    "effort": "how often a search finds the best known value, by effort",
    "files": "streaming of Parquet and CSV files, compared with reading them",
    "growth": "time and memory by number of rows and of columns",
    "likelihood": "logistic loss: time and deviance of exactk, abess and skscope",
    "limits": "wide and tall tables compared with matrix products; import time",
    "losses": "l2,1 loss: exactk, rpfs and nmapg on all data sets",
    "noise": "wrong labels: features and accuracy by order of the loss",
    "panel": "138,732 x 37,509 sparse counts: time, memory and markers found",
    "papers": "the papers' methods: our algorithms and the printed ones",
    "proof": "proofs of optimality: time, gap and nodes",
    "ridge": "which ridge selects the features that classify best",
    "wide": "up to a million columns, memory-mapped: time and memory",
}


# Options that choose cells, and do not change what is measured in a cell.
SELECTION = ("data", "k", "contestants")


def parse(name: str, module: Any, arguments: Sequence[str]) -> tuple[harness.Options, bool]:
    """Return the options of a run, and whether its rows belong in the record."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = list(module.PARTS)
    parser.add_argument("--report", action="store_true", help="print the stored record")
    if hasattr(module, "figure"):
        parser.add_argument("--figure", action="store_true", help="draw the stored record")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="parts to measure")
    parser.add_argument("--threads", type=int, default=getattr(module, "THREADS", 2))
    if getattr(module, "CAN_ADD", False):
        parser.add_argument("--add", action="store_true", help="measure only what is not stored")
    common = vars(parser.parse_args([]))
    parser.add_argument("--quick", action="store_true", help="small sizes, only printed")
    if hasattr(module, "add_options"):
        module.add_options(parser)
    defaults = {key: value for key, value in vars(parser.parse_args([])).items()
                if key not in common}  # fmt: skip
    options = parser.parse_args(arguments, namespace=harness.Options())
    changed = {key for key, value in defaults.items() if getattr(options, key) != value}
    options.settings = {key: getattr(options, key) for key in defaults
                        if key not in ("quick", *SELECTION)}  # fmt: skip
    return options, changed <= set(SELECTION if options.add else ())


def measure(name: str, module: Any, options: harness.Options, keep: bool) -> harness.Record:
    """Measure parts, store those that are complete, and return what was measured."""
    measured, common = {}, options.settings
    for part in options.only:
        start = time.perf_counter()
        header, stored = harness.read_parts(name).get(part, ({}, []))
        options.rows = stored if options.add else []
        options.settings = {**(header.get("settings", {}) if options.add else {}), **common}
        options.command = f"python -m benchmarks {name}"
        options.command += f" --only {part}" if len(module.PARTS) > 1 else ""
        for row in module.PARTS[part](options):
            options.rows.append(row)
            print(f"{part}: {json.dumps(harness.rounded(row))[:200]}", file=sys.stderr, flush=True)
            if keep and options.add:
                harness.store_part(name, part, options)
        print(f"{part}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        keep = keep and (options.add or not options.missing)
        if keep and not options.add:
            harness.store_part(name, part, options)
        measured[part] = harness.make_header(name, part, options), options.rows
    print(f"stored: {harness.record_path(name)}" if keep else "not stored", file=sys.stderr)
    if options.missing:
        missing = ", ".join(sorted(options.missing))
        print(f"left out, no file: {missing} (set {data.FOLDER_VARIABLE})", file=sys.stderr)
    return harness.as_record(measured)


def main(arguments: Sequence[str]) -> None:
    """Run one benchmark."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return
    name, *rest = arguments
    if name == "list":
        for name, about in BENCHMARKS.items():
            print(f"{name:13} {about}")
        return
    if name not in BENCHMARKS:
        sys.exit(f"there is no benchmark {name!r}; choose one of: list, {', '.join(BENCHMARKS)}")
    module = import_module(f"benchmarks.{name}")
    options, keep = parse(name, module, rest)
    if options.report:
        print(module.report(harness.read_record(name)))
        return
    if getattr(options, "figure", False):
        text = module.figure(harness.read_record(name))
        module.FIGURE.write_text(text + "\n", encoding="utf-8")
        print(module.FIGURE)
        return
    harness.pin_threads(options.threads)
    print(module.report(measure(name, module, options, keep)))


if __name__ == "__main__":
    main(sys.argv[1:])
