"""Imports between the rooms of hosts go the way that their docstrings say."""

import ast
from pathlib import Path

import pytest

from gradplane import hosts

HOSTS = Path(hosts.__file__).parent
MAY_IMPORT = {
    "wire": set(),
    "protocols": {"wire"},
    "stream": {"wire", "protocols"},
    "impairments": {"wire", "protocols", "stream", "drivers"},
    "training": {"protocols"},
    "drivers": {"wire", "protocols", "stream", "impairments", "training"},
}


def imported(module: Path) -> set[str]:
    """Return the rooms of hosts that a module imports."""
    nodes = ast.walk(ast.parse(module.read_text()))
    names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    parts = [name.split(".") for name in names]
    return {part[2] for part in parts if part[:2] == ["gradplane", "hosts"] and len(part) > 2}


def test_every_room_has_a_row_and_is_listed():
    rooms = {init.parent.name for init in HOSTS.glob("*/__init__.py")}
    assert rooms == set(MAY_IMPORT)
    assert all(f"    {room} " in (hosts.__doc__ or "") for room in rooms)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_what_its_docstring_says(room):
    for module in (HOSTS / room).rglob("*.py"):
        extra = imported(module) & set(MAY_IMPORT) - MAY_IMPORT[room] - {room}
        assert not extra, f"{module.name} imports {extra}"
