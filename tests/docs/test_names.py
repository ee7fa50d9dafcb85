"""The page of stable names is what each room's `__all__` says, and what the pages teach."""

import ast
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import stable_names

ROOT = Path(__file__).parents[2]

NAMES = stable_names.stable_names()


def test_the_page_is_as_the_rooms_say() -> None:
    """`python scripts/stable_names.py --write` writes it; a name that goes is a change to tell."""
    assert stable_names.PAGE.read_text("utf-8") == stable_names.page()


@pytest.mark.parametrize("package", NAMES)
def test_every_name_exists(package: str) -> None:
    if package == "gradplane.torch" and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    module = import_module(package)
    for name in NAMES[package]:
        assert hasattr(module, name), name


def test_what_the_documentation_imports_is_stable() -> None:
    """A name that a page teaches is one to rely on."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    taught = {(page.name, *name) for page in pages for name in _imported(page.read_text("utf-8"))}
    rooms = NAMES | {"gradplane": [*NAMES["gradplane"], *(r.partition(".")[2] for r in NAMES)]}
    assert len(taught) > 40
    assert not {item for item in taught if item[2] not in rooms.get(item[1], ())}


def _imported(text: str) -> Iterator[tuple[str, str]]:
    for block in re.findall(r"^ *```python[^\n]*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        try:
            body = ast.walk(ast.parse(textwrap.dedent(block)))
        except SyntaxError:  # a part of a file
            continue
        for node in body:
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("gradplane"):
                yield from ((str(node.module), alias.name) for alias in node.names)
