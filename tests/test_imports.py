"""Test modules may run in any order and selection, so none of them is a module of another."""

import ast
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent


def test_no_test_module_imports_another() -> None:
    found = [
        f"{path.relative_to(TESTS)} imports {node.module}"
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("test_")
    ]
    assert found == []


def test_modules_for_several_tests_have_names_of_their_own() -> None:
    tops = Counter(
        path.stem
        for path in TESTS.rglob("*.py")
        if not path.name.startswith(("test_", "conftest", "__init__"))
    )
    assert [name for name, count in tops.items() if count > 1] == []
