"""Command line of the regression record."""

import argparse
import os
import sys
from pathlib import Path

# Before NumPy is imported.
os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

from tools.regression.answers import differences, read, run, write

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.regression")
    parser.add_argument("task", choices=["record", "compare"])
    parser.add_argument("file", type=lambda word: Path(word).resolve())
    parser.add_argument("--only", default="*", help="cases to run, for example 'methods/rfs*'")
    given = parser.parse_args()
    answers = run(given.only)
    if given.task == "record":
        write(given.file, answers, given.only)
    else:
        lines, changed = differences(read(given.file, given.only), answers)
        print("\n".join(lines))
        sys.exit(changed > 0)
