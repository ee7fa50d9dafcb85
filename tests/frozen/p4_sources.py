"""The P4 programs of the tree, each with a name that stays: files, texts of tests, random ones.

A text in a test module is named by the module and the text itself: it keeps its name when the
module moves to another folder, and a text that changed is another program.
"""

from __future__ import annotations

import ast
import hashlib
import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "src/gradplane", "tests")
FRAMES = ("v1programs", "psaprograms", "tnaprograms")
"""Modules of tests whose `source` and `switch` fill in a frame with texts."""
RANDOM = 12  # random programs of each architecture
_FRAME_CALLS = ("source", "switch")
_TOO_LONG = 1 << 16  # characters of a text that repetition may make

Texts = Mapping[str, object]


@dataclass(frozen=True)
class P4Source:
    """A program: its name, the file that messages show, and its text; None: the file's."""

    name: str
    file: str
    text: str | None = None


@cache
def sources() -> list[P4Source]:
    """Return all programs, sorted by name."""
    found = {source.name: source for source in (*_files(), *_texts(), *_random())}
    return sorted(found.values(), key=lambda source: source.name)


def _files() -> Iterator[P4Source]:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.p4"):
            name = path.relative_to(ROOT).as_posix()
            if not (folder == "src/gradplane" and "include" in path.parts):  # no whole programs
                yield P4Source(name, name)


def _random() -> Iterator[P4Source]:
    """Write programs with the makers of the tests that compare both engines."""
    with _importable(ROOT / "tests/switch/jit"):
        from source_psa import psa_program
        from source_tna import tna_program
        from source_v1model import v1model_program

        makers = {"v1model": v1model_program, "psa": psa_program, "tna": tna_program}
        for arch, make in makers.items():
            for seed in range(RANDOM):
                text = make(random.Random(seed))
                yield P4Source(f"random {arch} {seed}", "random.p4", text)


def _texts() -> Iterator[P4Source]:
    with _importable(ROOT / "tests/switch"):
        frames = {name: __import__(name).source for name in FRAMES}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        code = path.read_text("utf-8")
        if "main;" not in code and not any(name in code for name in FRAMES):
            continue
        for text in _texts_of(ast.parse(code), frames):
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            yield P4Source(f"{path.stem} {digest}", "test.p4", text)


def _texts_of(tree: ast.Module, frames: Mapping[str, Any]) -> Iterator[str]:
    """Yield the programs among a module's constants, and those that it makes of a frame."""
    known: dict[str, object] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            known[statement.targets[0].id] = _value(statement.value, known)
    nodes = list(ast.walk(tree))
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    for value in (*known.values(), *constants):
        if isinstance(value, str) and _is_program(value):
            yield value
    made = _frame_calls(nodes, frames)
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in made:
            text = _framed(node, made[ast.unparse(node.func)], known)
            if text is not None:
                yield text


def _is_program(text: str) -> bool:
    """Return whether a text is a whole program: none to fill in, and no part of Python."""
    return "#include <" in text and "main;" in text and "{{" not in text and "%s" not in text


def _frame_calls(nodes: list[ast.AST], frames: Mapping[str, Any]) -> dict[str, Any]:
    """Return the frame of each expression that a module may call to fill one in."""
    made = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module in frames:
            for alias in node.names:
                if alias.name in _FRAME_CALLS:
                    made[alias.asname or alias.name] = frames[node.module]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in frames:
                    name = alias.asname or alias.name
                    made |= {f"{name}.{call}": frames[alias.name] for call in _FRAME_CALLS}
    return made


def _framed(call: ast.Call, frame: Any, known: Texts) -> str | None:
    """Return the program of a call; None: its parts are known only when the test runs."""
    parts: dict[str, object] = {}
    for keyword in call.keywords:
        value = _value(keyword.value, known)
        if keyword.arg is None and isinstance(value, dict):
            parts |= value
        elif keyword.arg is None or (not isinstance(value, str) and _is_part(keyword.arg, frame)):
            return None
        elif isinstance(value, str) and _is_part(keyword.arg, frame):
            parts[keyword.arg] = value
    text: str = frame(**parts)
    return text


def _is_part(name: str, frame: Any) -> bool:
    return name in frame.__globals__["DEFAULTS"]


def _value(node: ast.expr, known: Texts) -> object:
    """Return the value of an expression of constants; None if it is another one."""
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return known.get(name)
        case ast.JoinedStr(values):
            return _joined([_value(part, known) for part in values])
        case ast.FormattedValue(value, -1, None):
            found = _value(value, known)
            return None if found is None else str(found)
        case ast.BinOp(left, operator, right):
            return _combined(_value(left, known), operator, _value(right, known))
        case ast.Call(ast.Name("dict"), [], keywords):
            return _filled({word.arg or "": word.value for word in keywords}, known)
        case ast.Dict(keys, values):
            names = [None if key is None else _value(key, known) for key in keys]
            if all(isinstance(name, str) for name in names):
                return _filled(dict(zip(map(str, names), values, strict=True)), known)
    return None


def _joined(parts: list[object]) -> str | None:
    return "".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else None


def _filled(values: Mapping[str, ast.expr], known: Texts) -> dict[str, object] | None:
    found = {name: _value(value, known) for name, value in values.items()}
    return found if all(isinstance(value, str) for value in found.values()) else None


def _combined(left: object, operator: ast.operator, right: object) -> object:
    match operator, left, right:
        case ast.Add(), str(), str():
            return left + right
        case ast.Mult(), str(), int() if len(left) * right < _TOO_LONG:
            return left * right
        case ast.Mod(), str(), str() | int():
            return left % right if left.count("%") == 1 else None
    return None


class _importable:
    """Put a folder of tests on the path of imports."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def __enter__(self) -> None:
        sys.path.insert(0, self._folder)

    def __exit__(self, *error: object) -> None:
        sys.path.remove(self._folder)
