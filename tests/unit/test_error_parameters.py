"""Errors are data: each names its parameter, and no code depends on the words of a message."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

import exactk

SOURCE = Path(exactk.__file__).parent
# Errors that no value of a parameter causes.
WITHOUT_PARAMETER = {"MissingExtraError": "a library is not installed"}
# Handlers that keep Ctrl-C from going on.
KEEPS_INTERRUPTS = {
    "papers/experiments/pool.py": "a worker process sends every error to its parent, which "
    "decides about Ctrl-C",
}
# What asks for the words of a message.
METHODS = {"endswith", "find", "index", "partition", "removeprefix", "removesuffix", "replace",
           "split", "startswith"}  # fmt: skip
PATTERNS = {"findall", "finditer", "fullmatch", "match", "search", "sub", "subn"}


@cache
def modules() -> dict[str, tuple[str, ast.Module]]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found[path.relative_to(SOURCE).as_posix()] = (text, ast.parse(text))
    return found


N = TypeVar("N", bound=ast.AST)


@cache
def all_nodes() -> list[tuple[str, ast.AST]]:
    return [(name, node) for name, (_, tree) in modules().items() for node in ast.walk(tree)]


def nodes(kind: type[N]) -> list[tuple[str, N]]:
    return [(name, node) for name, node in all_nodes() if isinstance(node, kind)]


@cache
def input_errors() -> frozenset[str]:
    """Names of InputError and of all its subclasses."""
    names, classes = {"InputError"}, [node for _, node in nodes(ast.ClassDef)]
    while True:
        more = {
            node.name
            for node in classes
            if any(isinstance(base, ast.Name) and base.id in names for base in node.bases)
        }
        if more <= names:
            return frozenset(names)
        names |= more


def unnamed(call: ast.Call) -> bool:
    given = {keyword.arg for keyword in call.keywords}
    # None stands for **arguments.
    return not given & {"parameter", None}


def test_every_input_error_names_its_parameter() -> None:
    kinds = input_errors()
    assert {"InputError", "ConstantTargetError", "InfeasibleError", *WITHOUT_PARAMETER} <= kinds
    wrong = [
        f"{name}:{node.lineno}"
        for name, node in nodes(ast.Call)
        if isinstance(node.func, ast.Name)
        and node.func.id in kinds - set(WITHOUT_PARAMETER)
        and unnamed(node)
    ]
    assert wrong == []


def is_text_of(node: ast.AST, errors: set[str]) -> bool:
    """Whether an expression has the words of an error: str(error), error.args or error.message."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.args:
            (first, *_) = part.args
            if part.func.id in ("str", "repr") and is_error(first, errors):
                return True
        if (
            isinstance(part, ast.Attribute)
            and part.attr in ("args", "message")
            and isinstance(part.value, ast.Name)
            and part.value.id in errors
        ):
            return True
    return False


def is_error(node: ast.AST, errors: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("message", "value") and is_error(node.value, errors)
    return isinstance(node, ast.Name) and node.id in errors


def asks_for_words(node: ast.AST, errors: set[str], texts: set[str]) -> bool:
    def is_text(part: ast.AST) -> bool:
        return is_text_of(part, errors) or (isinstance(part, ast.Name) and part.id in texts)

    if isinstance(node, ast.Compare):
        return any(is_text(part) for part in (node.left, *node.comparators))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in METHODS and is_text(node.func.value):
            # Line breaks are replaced by spaces to show a message in one line.
            return not (node.func.attr == "split" and not node.args)
        return node.func.attr in PATTERNS and any(is_text(part) for part in node.args)
    return False


def sentence_matches(tree: ast.Module) -> Iterator[int]:
    """Lines on which code asks for the words of an error or a warning."""
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        parts = list(ast.walk(function))
        errors = {p.name for p in parts if isinstance(p, ast.ExceptHandler) and p.name}
        errors |= {
            p.target.id
            for p in parts
            if isinstance(p, (ast.For, ast.comprehension))
            and isinstance(p.target, ast.Name)
            and p.target.id in ("caught", "warning")
        }
        texts = {
            target.id
            for p in parts
            if isinstance(p, ast.Assign) and is_text_of(p.value, errors)
            for target in p.targets
            if isinstance(target, ast.Name)
        }
        yield from (p.lineno for p in parts if asks_for_words(p, errors, texts))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "code",
    [
        "if 'no rows' in str(error): raise",
        "return str(error).startswith('k')",
        "return re.search('row [0-9]+', str(error))",
        "words = str(error)\n        return words.replace('a', 'b')",
        "return error.args[0] == 'no'",
        "return error.message.startswith('y')",
    ],
)
def test_the_search_for_matched_sentences_finds_them(code: str) -> None:
    text = f"def f():\n    try:\n        g()\n    except ValueError as error:\n        {code}\n"
    assert list(sentence_matches(ast.parse(text)))


def test_a_message_may_be_shown() -> None:
    text = "def f():\n    try:\n        g()\n    except ValueError as error:\n        {}\n"
    for code in ("print(' '.join(str(error).split()))", "if error.errno == 2: raise",
                 "raise InputError(str(error)) from error"):  # fmt: skip
        assert list(sentence_matches(ast.parse(text.format(code)))) == []


def test_no_code_depends_on_the_words_of_an_error() -> None:
    wrong = [
        f"{name}:{line}" for name, (_, tree) in modules().items() for line in sentence_matches(tree)
    ]
    assert wrong == []


def broad(handler: ast.ExceptHandler) -> set[str]:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {kind.id if isinstance(kind, ast.Name) else "" for kind in kinds if kind is not None}
    return {"bare"} if handler.type is None else names & {"Exception", "BaseException"}


def test_every_broad_except_has_its_reason_beside_it_and_lets_interrupts_through() -> None:
    silent, kept = [], []
    for name, node in nodes(ast.ExceptHandler):
        if not broad(node):
            continue
        place, lines = f"{name}:{node.lineno}", modules()[name][0].splitlines()
        if not any("#" in line for line in lines[node.lineno - 1 : node.lineno + 1]):
            silent.append(place)
        raises = any(isinstance(part, ast.Raise) and part.exc is None for part in ast.walk(node))
        if "Exception" not in broad(node) and not raises and name not in KEEPS_INTERRUPTS:
            kept.append(place)
    assert silent == []
    assert kept == []


def test_suggestions_have_one_implementation() -> None:
    using = [name for name, (text, _) in modules().items() if "difflib" in text]
    assert using == ["errors.py"]
