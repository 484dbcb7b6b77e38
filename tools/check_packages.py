"""Build the sdist and the wheel, install each in a new environment, and test what is installed.

The wheel is built from the sdist with a C compiler; the sdist is installed without one. A sample
of the tests runs with each, from the unpacked sdist without ``src/``, and both must select the
same columns of a CSV file on the command line. mypy and pyright check a program of a user, in
strict mode, against the wheel.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "packages"
UV = Path(sys.executable).with_name("uv")
# Searches, and what reads the data files of the package: catalogue, recipes, style of a report.
TESTS = (
    "unit/papers/datasets/test_catalogue.py",
    "unit/papers/experiments/test_recipes.py",
    "unit/report/test_page.py",
    "unit/search",
    "unit/test_solver.py",
)
WRITE_TABLE = """
import numpy as np
from sklearn.datasets import load_breast_cancer
X, y = load_breast_cancer(return_X_y=True)
header = ",".join([*(f"x{j}" for j in range(X.shape[1])), "target"])
np.savetxt("table.csv", np.column_stack([X, y]), delimiter=",", header=header, comments="")
"""
SHOW_PACKAGE = """
import exactk
from exactk.search.native_state import library
print(exactk.__file__)
print("compiled" if library() else "NumPy")
"""


def run(*command: object, **environment: str) -> str:
    """Return what a command printed in `FOLDER`; end the program if it failed."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=FOLDER,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(words)}")
    return done.stdout


def selection(name: str, package: Path, tests: Path, uses: str, **environment: str) -> Any:
    """Install a package and test it; return the columns and objective that its command prints."""
    run(UV, "venv", "-q", "--python", sys.executable, name)
    python = FOLDER / name / Path(sys.executable).relative_to(sys.prefix)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tools = project["dependency-groups"]["test"]
    run(
        UV,
        "pip",
        "install",
        "-q",
        "--python",
        python,
        f"{package}[cli,pandas]",
        *tools,
        **environment,
    )
    module, native = run(python, "-c", SHOW_PACKAGE).splitlines()
    if "site-packages" not in Path(module).relative_to(FOLDER / name).parts:
        sys.exit(f"{name}: tests would use {module}")
    if native != uses:
        sys.exit(f"{name}: uses {native}, not {uses}")
    paths = [tests / path for path in TESTS]
    pytest = [python, "-m", "pytest", "-q", "-n", "auto", "-m", "not full"]
    printed = run(*pytest, *paths, **environment)
    print(f"{name}, {uses}: {printed.splitlines()[-1]}", flush=True)
    command = ["select", "table.csv", "target", "-k", "5", "--format", "json"]
    answer = json.loads(run(python.with_name("exactk"), *command))["result"]
    return answer["feature_names"], round(answer["objective"], 8)


def check_types(name: str, project: Path) -> None:
    """Check a program of a user against the package that is installed in an environment."""
    python = FOLDER / name / Path(sys.executable).relative_to(sys.prefix)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tools = groups["dependency-groups"]["types"]
    run(UV, "pip", "install", "-q", "--python", python, *tools)
    settings = project / "pyproject.toml"
    mypy = run(python, "-m", "mypy", "--config-file", settings, project / "panel.py")
    pyright = run(python.with_name("pyright"), "--pythonpath", python, "--project", project)
    print(f"mypy: {mypy.strip()}\npyright: {pyright.strip()}", flush=True)
    run(python, project / "panel.py")


def main() -> None:
    """Build, install, test and compare."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    run(UV, "build", "-q", "--out-dir", FOLDER, ROOT)
    (sdist,) = FOLDER.glob("*.tar.gz")
    (wheel,) = FOLDER.glob("*.whl")
    with tarfile.open(sdist) as archive:
        archive.extractall(FOLDER, filter="data")
    unpacked = FOLDER / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(unpacked / "src")
    run(sys.executable, "-c", WRITE_TABLE)
    compiled = selection("wheel", wheel, unpacked / "tests", "compiled")
    check_types("wheel", unpacked / "tests" / "typed_project")
    # Tests of the compiled library are skipped there, which EXACTK_STRICT=1 does not allow.
    plain = selection("sdist", sdist, unpacked / "tests", "NumPy", CC="false", EXACTK_STRICT="0")
    if compiled != plain:
        sys.exit(f"the wheel selects {compiled}, the sdist without a compiler {plain}")
    print(f"both select {', '.join(plain[0])}")


if __name__ == "__main__":
    main()
