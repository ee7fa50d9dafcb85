"""Every import of the package names a module, and a name in it, that exists.

The type checker passes over modules that it cannot find, and an import inside a function or for
types alone may never run in a test.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FOLDERS = ("src", "tests", "benchmarks", "examples", "scripts")
IMPORT = re.compile(r"^ *(?:from|import) gradplane\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
MADE = "gradplane.switch.arch.toy"  # a copy of the package that a test makes has it


def ours(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the imports of the package in a file: a module, and a name in it or ""."""
    for found in IMPORT.finditer(path.read_text()):
        (node,) = ast.parse(found[0].strip()).body
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


@cache
def names_in(module: str) -> set[str] | None:
    """Return the names that a module defines or imports; None if there is no such module."""
    path = SOURCE.joinpath(*module.split("."))
    files = [f for f in (path / "__init__.py", path.with_suffix(".py")) if f.exists()]
    if not files:
        return set() if path.is_dir() else None
    found, pending = set(), list(ast.parse(files[0].read_text()).body)
    while pending:
        match pending.pop():
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() as node:
                found.add(node.name)
            case ast.Import() | ast.ImportFrom() as node:
                found |= {alias.asname or alias.name for alias in node.names}
            case ast.If() | ast.Try() | ast.With() as node:
                pending += (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt))
            case ast.stmt() as node:
                stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
                found |= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_import_names_what_is_there(folder: str) -> None:
    missing = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for module, name in ours(path):
            names = names_in(module)
            there = names is not None and (not name or name in names)
            if not there and names_in(f"{module}.{name}") is None and not module.startswith(MADE):
                missing.append(f"{path.relative_to(ROOT)}: {module} {name}")
    assert not missing, "\n".join(missing)


def test_no_test_module_imports_another() -> None:
    """Which of two modules of one name it would get depends on what else is collected."""
    found = [
        f"{path.relative_to(ROOT)} imports {node.module}"
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and re.match(r"tests?\b|test_", node.module or "")
    ]
    assert found == []


def test_what_several_tests_import_has_a_name_of_its_own() -> None:
    paths = (ROOT / "tests").rglob("*.py")
    own = (p.stem for p in paths if not p.name.startswith(("test_", "conftest", "__init__")))
    assert [name for name, count in Counter(own).items() if count > 1] == []
