"""Measure which share of small faults, called mutants, the tests of each package catch.

The script samples places in ``src/exactk`` where one operator of a fixed list applies, changes one
place at a time and runs tests of its package: ``tests/unit/PACKAGE`` and the doctests of
``src/exactk/PACKAGE``, as ``make test ONLY=PACKAGE`` does. The modules directly in ``src/exactk``
are the package ``top``, with ``tests/unit/test_*.py``. ``papers/deep`` also runs its tests marked
``deep``, if PyTorch is installed.

1. All tests of a package run once with coverage, which gives the lines that each test executes.
   Tests that fail without a mutant are left out, also when they fail in the order of step 2.
2. The tests that execute a mutated line run until one fails, fast files first and in each file
   fast tests first; then up to 30 s of others: those of the same files, since tests share cached
   results; for a line that runs at import, those that execute another line of its file; for any
   other line, those that start processes. A mutant without a test survives.
3. Every run is a fork of a process that has imported the large libraries, but not exactk. An
   import hook compiles the changed source; no file of the tree is written. Python processes
   started by a test use the hook too, unless they ignore ``PYTHONPATH``.

A test may take 3 times as long as the slowest test of its package, since it may be the first to
fill a cache, plus 10 s. A mutant that exceeds this counts as caught. The total weights each package
by its number of places, since small packages get at least 8 mutants.

    .venv/bin/uv pip install --python .venv --group mutants
    .venv/bin/python tools/mutants.py --record tools/mutants.json
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib.util
import itertools
import json
import marshal
import math
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import coverage
import hypothesis
import pytest

LEAST = 8  # Mutants per package.
MEMORY = 8 << 30  # Bytes of address space per run.
MORE = 30  # Seconds of tests that do not execute the changed line.
LIMIT = 180  # Seconds for imports and collection.
LIBRARIES = """numpy scipy.optimize scipy.sparse.linalg scipy.stats pandas polars pyarrow.csv
    pyarrow.parquet sklearn.model_selection sklearn.utils.estimator_checks matplotlib.figure
    narwhals rich.progress click.testing"""
HOOK = """
import importlib.machinery, marshal, os
def install(path, file):
    with open(file, "rb") as stream:
        code = marshal.load(stream)
    loader = importlib.machinery.SourceFileLoader
    plain = loader.get_code
    loader.get_code = lambda self, name: code if self.path == path else plain(self, name)
install(*os.environ["EXACTK_MUTANT"].split(os.pathsep))
"""

# --- Places to change ---------------------------------------------------------------------------

SWAPPED = """Lt:LtE LtE:Lt Gt:GtE GtE:Gt Eq:NotEq NotEq:Eq Is:IsNot IsNot:Is In:NotIn NotIn:In
    Add:Sub Sub:Add Mult:Div Div:Mult FloorDiv:Mult Mod:FloorDiv Pow:Mult BitAnd:BitOr"""
SWAPS = dict(pair.split(":") for pair in SWAPPED.split())
# Wording, progress and typing.
QUIET = {"warn", "show_progress", "show_count", "show_reading", "show_step", "cast", "TypeVar"}
TYPING = ("annotation", "returns", "type_params")


@dataclass
class Mutant:
    """One change of one file: the lines of its statement, the operator, how to make the change."""

    line: int
    span: range
    operator: str
    edit: Callable[[], object]
    file: str = ""
    number: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.operator} #{self.number}"


def mutants_of(tree: ast.Module, file: str) -> list[Mutant]:
    """Every possible change of a module, in a fixed order."""
    found = list(inside(tree, range(0), Counter()))
    for number, mutant in enumerate(found):
        mutant.file, mutant.number = file, number
    return found


def inside(node: ast.AST, span: range, assigned: Counter[str]) -> Iterator[Mutant]:
    """Changes of a node and of its children; `assigned` counts assignments in the function."""
    if isinstance(node, ast.stmt):
        body = getattr(node, "body", None)
        last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
        span = range(node.lineno, last + 1)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        assigned = Counter(n.id for n in names if isinstance(n.ctx, ast.Store))
    line = getattr(node, "lineno", span.start)
    for operator, field, value in changes(node):
        yield Mutant(line, span, operator, partial(setattr, node, field, value))
    for field, value in ast.iter_fields(node):
        children = enumerate(value) if isinstance(value, list) else [(0, value)]
        for i, child in children:
            if field in TYPING or not isinstance(child, ast.AST) or skipped(child):
                continue
            if isinstance(child, ast.stmt) and removable(child, assigned):
                lines = range(child.lineno, (child.end_lineno or child.lineno) + 1)
                edit = partial(value.__setitem__, i, ast.copy_location(ast.Pass(), child))
                yield Mutant(child.lineno, lines, "remove statement", edit)
            yield from inside(child, span, assigned)


def changes(node: Any) -> Iterator[tuple[str, str, Any]]:
    """Operator, field and new value of each change of one node."""
    op = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
    old = type(op).__name__
    if old in SWAPS:
        new, name = getattr(ast, SWAPS[old])(), f"{old} to {SWAPS[old]}"
        if isinstance(node, ast.Compare):
            yield name, "ops", [new, *node.ops[1:]]
        elif not any(map(is_text, ast.iter_child_nodes(node))):
            yield name, "op", new
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} to {not node.value}", "value", not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        step = (-1, 1)[(node.lineno + node.col_offset) % 2]
        if node.value + step != node.value:
            yield f"constant {step:+d}", "value", node.value + step
    elif isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        yield "negate condition", "test", ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "negate condition", "ifs", [ast.UnaryOp(ast.Not(), node.ifs[0]), *node.ifs[1:]]
    elif isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
        yield "return None", "value", ast.Constant(None)


def is_text(node: ast.AST) -> bool:
    """Whether a node is a string literal."""
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", 0), str | bytes)


def name_of(node: ast.AST) -> str:
    """The last part of the name of a call, an attribute or a variable."""
    node = node.func if isinstance(node, ast.Call) else node
    return getattr(node, "attr", getattr(node, "id", ""))


def skipped(node: ast.AST) -> bool:
    """Whether a part holds only wording, typing or facts about the module."""
    if isinstance(node, ast.Assign):
        return any(name_of(target).startswith("__") for target in node.targets)
    if isinstance(node, ast.If):
        return any(word in ast.unparse(node.test) for word in ("TYPE_CHECKING", "__name__"))
    if isinstance(node, ast.keyword):
        return node.arg == "strict"  # Of zip.
    return isinstance(node, ast.Raise | ast.JoinedStr) or name_of(node) in {*QUIET, "dataclass"}


def removable(node: ast.stmt, assigned: Counter[str]) -> bool:
    """Whether a statement is a call, or an assignment to a variable that has another one."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and name_of(node.value) not in QUIET
    if isinstance(node, ast.Assign):
        return all(assigned[getattr(target, "id", "")] > 1 for target in node.targets)
    return isinstance(node, ast.AugAssign)


def sample(tree: Path, count: int, seed: int) -> dict[str, tuple[int, list[Mutant], list[str]]]:
    """For each package the number of possible mutants, those drawn, and the paths of its tests."""
    root, unit = tree / "src/exactk", tree / "tests/unit"
    found: dict[str, list[Mutant]] = {}
    files: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        parts, file = path.relative_to(root).parts[:-1], path.relative_to(tree).as_posix()
        name = "/".join(parts[: 2 if parts[:1] == ("papers",) else 1]) or "top"
        files.setdefault(name, []).append(file)
        found.setdefault(name, []).extend(mutants_of(ast.parse(path.read_text("utf-8")), file))
    found.pop("papers", None)
    total = sum(map(len, found.values()))
    drawn = {}
    for name, mutants in found.items():
        size = min(len(mutants), max(LEAST, math.ceil(count * len(mutants) / total)))
        chosen = sorted(random.Random(f"{seed} {name}").sample(range(len(mutants)), size))
        tests = [unit / name, unit / f"test_{name}.py"]
        if name == "top":
            tests = sorted(unit.glob("test_*.py"))
        paths = [str(path.relative_to(tree)) for path in tests if path.exists()]
        drawn[name] = (len(mutants), [mutants[i] for i in chosen], [*paths, *files[name]])
    return drawn


# --- Runs of pytest in forks --------------------------------------------------------------------


class Plugin:
    """Select, order and time tests; note those that fail or start processes."""

    def __init__(self, order: list[str], known: dict[str, float], cov: Any) -> None:
        self.rank = {test: i for i, test in enumerate(order)}
        self.known, self.cov, self.now = known, cov, ""
        self.state: dict[str, Any] = {"times": {}, "failed": [], "skipped": [], "starts": []}
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _: object) -> None:
        if self.now and event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            self.state["starts"].append(self.now)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:  # noqa: D102
        if self.rank:  # A mutant may change the names of cases: unknown ones run last.
            kept = [i for i in items if i.nodeid in self.rank or i.nodeid not in self.known]
            items[:] = sorted(kept, key=lambda item: self.rank.get(item.nodeid, len(self.rank)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:  # noqa: D102
        self.now, start = item.nodeid, time.perf_counter()
        if self.cov:
            self.cov.switch_context(item.nodeid)
        else:
            signal.setitimer(signal.ITIMER_REAL, 3 * max(self.known.values()) + 10)
        result = yield
        self.state["times"][item.nodeid] = round(time.perf_counter() - start, 3)
        if self.cov:
            self.cov.switch_context("")
        self.now = ""
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:  # noqa: D102
        if not report.passed:
            self.state[report.outcome].append(report.nodeid)


class Runner:
    """Runs of the tests of one package, each in a fork."""

    def __init__(self, tree: Path, paths: list[str], select: list[str], cache: Path) -> None:
        self.tree, self.paths, self.select = tree, paths, select
        self.running: dict[int, tuple[Path, Mutant | None]] = {}
        self.times: dict[str, float] = {}
        if not cache.exists():
            self.start(None, [])
            cache.write_text(json.dumps(self.wait()[2]))
        self.state = json.loads(cache.read_text())
        self.times = self.state["times"]
        self.usable = set(self.times) - {*self.state["failed"], *self.state["skipped"]}

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Tests to run for a mutant, in their order; the docstring of the module says which."""
        names, lines = self.state["tests"], self.state["lines"].get(mutant.file, {})
        executed = {names[i] for line in mutant.span for i in lines.get(str(line), ())}
        direct, others = executed & self.usable, self.usable & {*self.state["starts"]}
        if direct:
            files = {test.split("::")[0] for test in direct}
            others = {test for test in self.usable if test.split("::")[0] in files}
        elif executed:
            others = {names[i] for found in lines.values() for i in found} & self.usable
            others = others or self.usable
        more = self.ordered(others - direct)
        total = itertools.accumulate(map(self.times.__getitem__, more))
        return self.ordered(direct) + [t for t, s in zip(more, total, strict=True) if s <= MORE]

    def ordered(self, tests: set[str]) -> list[str]:
        """Fast files first, and in each file fast tests, so that fixtures are made once."""
        files: dict[str, list[str]] = {}
        for test in sorted(tests, key=self.times.__getitem__):
            files.setdefault(test.split("::")[0], []).append(test)
        cost = {file: sum(map(self.times.__getitem__, found)) for file, found in files.items()}
        return [test for file in sorted(files, key=cost.__getitem__) for test in files[file]]

    def start(self, mutant: Mutant | None, tests: list[str]) -> None:
        """Fork, make the change, call pytest; without `tests` run all of them with coverage."""
        folder = Path(tempfile.mkdtemp(prefix="mutant-"))
        pid = os.fork()
        if pid:
            self.running[pid] = (folder, mutant)
            return
        status = 3
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            for stream, file in enumerate((os.devnull, folder / "out", folder / "out")):
                os.dup2(os.open(str(file), os.O_RDWR | os.O_CREAT | os.O_APPEND), stream)
            os.chdir(self.tree)
            if mutant:
                signal.setitimer(signal.ITIMER_REAL, LIMIT)  # Until the first test.
                self.change(mutant, folder)
            status = self.test(tests, folder, ["-x"] if mutant else [])
        finally:
            os._exit(status)

    def change(self, mutant: Mutant, folder: Path) -> None:
        """Let this process and those it starts import the changed module."""
        path = self.tree / mutant.file
        module = ast.parse(path.read_text("utf-8"))
        mutants_of(module, "")[mutant.number].edit()
        code = compile(ast.fix_missing_locations(module), path, "exec")
        (folder / "code").write_bytes(marshal.dumps(code))
        (folder / "sitecustomize.py").write_text(HOOK)
        paths = filter(None, (str(folder), os.environ.get("PYTHONPATH")))
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        os.environ["EXACTK_MUTANT"] = f"{path}{os.pathsep}{folder / 'code'}"
        exec(HOOK, {})

    def test(self, tests: list[str], folder: Path, options: list[str]) -> int:
        """Call pytest and write down what the plugin noted."""
        cov = None
        if not tests:
            os.environ["COVERAGE_CORE"] = "ctrace"
            sources = [path for path in self.paths if path.startswith("src/")]
            cov = coverage.Coverage(data_file=None, config_file=False, include=sources)
            cov.start()
            options = ["--continue-on-collection-errors"]
        plugin = Plugin(tests, self.times, cov)
        # Tests before doctests: pytest may import a module of a doctest without its package.
        paths = sorted({test.split("::")[0] for test in tests}, reverse=True) or self.paths
        always = ["-q", "--assert=plain", "-pno:cacheprovider", f"--basetemp={folder}/tmp"]
        status = pytest.main([*always, *options, *self.select, *paths], [plugin])
        if cov:
            cov.stop()
            data = cov.get_data()
            names = sorted(data.measured_contexts())  # The empty name stands for an import.
            number = {name: i for i, name in enumerate(names)}
            plugin.state |= {"tests": names, "lines": {
                os.path.relpath(file): {
                    line: [number[name] for name in found]
                    for line, found in data.contexts_by_lineno(file).items()
                } for file in data.measured_files()
            }}  # fmt: skip
        (folder / "state.json").write_text(json.dumps(plugin.state))
        return int(status)

    def wait(self) -> tuple[Any, str, dict[str, Any]]:
        """Mutant, outcome and state of the next run that ends."""
        pid, status = os.wait()
        folder, mutant = self.running.pop(pid)
        with contextlib.suppress(ProcessLookupError):  # Processes that the tests left.
            os.killpg(pid, signal.SIGKILL)
        file = folder / "state.json"
        state = json.loads(file.read_text()) if file.exists() else {}
        if not (mutant or state):
            raise SystemExit((folder / "out").read_text()[-2000:])
        shutil.rmtree(folder, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGALRM:
            return mutant, "timeout", state
        passed = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        return mutant, "survived" if passed else "caught", state

    def outcomes(self, mutants: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, str, str]]:
        """Outcome of each mutant, and the test that caught it."""
        waiting = list(mutants)
        caught: dict[str, list[Mutant]] = {}
        while waiting or self.running:
            while waiting and len(self.running) < jobs:
                mutant = waiting.pop(0)
                tests = self.tests_of(mutant)
                if tests:
                    self.start(mutant, tests)
                else:
                    yield mutant, "not executed", ""
            if self.running:
                mutant, outcome, state = self.wait()
                test = next(iter(state.get("failed", [])), "")
                caught.setdefault(test, []).append(mutant)
                yield mutant, outcome, test
        killers = self.ordered({*caught} & {*self.times})
        if killers:  # Do these tests pass in this order without a mutant?
            self.start(None, killers)
            wrong = self.wait()[2]["failed"]
            self.usable -= set(wrong)
            yield from self.outcomes([mutant for test in wrong for mutant in caught[test]], jobs)


# --- Report -------------------------------------------------------------------------------------


def summary(drawn: dict[str, Any], known: dict[str, str]) -> dict[str, dict[str, float]]:
    """Share of mutants caught with its standard error, per package and in total."""
    rows: dict[str, dict[str, float]] = {}
    for name, (places, mutants, _) in drawn.items():
        counts, n = Counter(known[str(mutant)] for mutant in mutants), len(mutants)
        caught = counts["caught"] + counts["timeout"]
        error = math.sqrt(caught * (n - caught) / n**3)
        rows[name] = {"places": places, "mutants": n, "caught": caught,
                      "timeout": counts["timeout"], "not executed": counts["not executed"],
                      "share": caught / n, "error": error}  # fmt: skip
    total = {key: sum(row[key] for row in rows.values()) for key in next(iter(rows.values()))}
    weighted = [(row["places"] / total["places"], row) for row in rows.values()]
    total["share"] = sum(weight * row["share"] for weight, row in weighted)
    total["error"] = math.hypot(*(weight * row["error"] for weight, row in weighted))
    rows["total"] = total
    return {name: {key: round(row[key], 3) for key in row} for name, row in rows.items()}


def main() -> None:
    """Sample, run, print the table and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--count", type=int, default=320, help="mutants in all, about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", metavar="PACKAGE")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="continue after an interruption")
    parser.add_argument("--record", type=Path, help="file for the result")
    parser.add_argument("--select", help="options of pytest, in place of -m 'not full'")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/exactk-mutants")
    options = parser.parse_args()
    tree = options.tree.resolve()
    spec = importlib.util.find_spec("exactk")
    if spec is None or not str(spec.origin).startswith(f"{tree}/"):
        parser.error(f"this Python does not import exactk from {tree}")
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    os.environ.update(dict.fromkeys(threads, "1"))
    for library in LIBRARIES.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    hypothesis.settings.register_profile(
        "mutants", database=None, derandomize=True, deadline=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])  # fmt: skip
    hypothesis.settings.load_profile("mutants")

    digest = hashlib.sha1(f"{tree} {options.select}".encode())
    for file in sorted([*tree.glob("src/**/*.py"), *tree.glob("tests/**/*.py")]):
        digest.update(file.read_bytes())
    cache = options.cache / digest.hexdigest()[:12]
    cache.mkdir(parents=True, exist_ok=True)
    log = cache / f"{options.count}-{options.seed}.jsonl"
    if not options.resume:
        log.unlink(missing_ok=True)
    log.touch()
    known = dict(map(json.loads, log.read_text().splitlines()))
    drawn = sample(tree, options.count, options.seed)
    drawn = {name: drawn[name] for name in options.only or drawn}
    for name, (_, mutants, paths) in drawn.items():
        waiting = [mutant for mutant in mutants if str(mutant) not in known]
        marks = "not full or deep" if name.endswith("deep") else "not full"
        select = shlex.split(options.select) if options.select else ["-m", marks]
        if waiting:
            runner = Runner(tree, paths, select, cache / f"{name.replace('/', '-')}.json")
            print(f"== {name}: {len(runner.usable)} of {len(runner.times)} tests", flush=True)
            for mutant, outcome, test in runner.outcomes(waiting, options.jobs):
                known[str(mutant)] = outcome
                print(f"{mutant}: {outcome} {test}", flush=True)
                with log.open("a") as stream:
                    print(json.dumps([str(mutant), outcome]), file=stream)

    rows = summary(drawn, known)
    print(f"{'':20}", *(f"{key:>12}" for key in rows["total"]))
    for name, row in rows.items():
        print(f"{name:20}", *(f"{value:12}" for value in row.values()))
    if options.record:
        git = ["git", "-C", str(tree), "log", "-1", "--format=%h", "--", "src", "tests"]
        commit = subprocess.run(git, text=True, capture_output=True, check=True).stdout.strip()
        lines = [f"{mutant}: {known[str(mutant)]}" for row in drawn.values() for mutant in row[1]]
        record = {"commit": commit, "seed": options.seed, "packages": rows, "mutants": lines}
        options.record.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
