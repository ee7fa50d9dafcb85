"""The rooms of src/gradplane/ import one another in one direction only.

tests/switch/test_layers.py does the same for the stages inside switch/.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "gradplane"

# Each room may import itself, the rooms listed, and the modules at the package's top. A row lists
# rooms of earlier rows only, so there can be no cycle.
PARTS = {"switch", "codecs", "planner", "hosts", "controller", "topologies", "aggregations"}
MAY_IMPORT: dict[str, set[str]] = {
    "switch": set(),
    "codecs": set(),
    "planner": {"codecs"},
    "hosts": {"codecs"},
    "torch": {"codecs", "hosts"},
    "controller": {"codecs"},
    "topologies": {"switch", "hosts", "controller"},
    "aggregations": {"codecs", "hosts", "controller", "topologies"},
    "experiment": PARTS,
    "differ": {"switch", "controller", "experiment"},
    "fit": {"switch"},
    "runs": PARTS | {"experiment"},
    "pages": PARTS | {"experiment", "fit", "runs"},
    "studies": PARTS | {"experiment", "runs", "pages"},
    "cli": PARTS | {"differ", "fit", "experiment", "runs", "pages", "studies"},
}

ENTRY_POINTS = {"__init__.py", "__main__.py"}  # of the package: they import the rooms they open


def imports(node: ast.AST) -> Iterator[str]:
    """Yield the parts of gradplane that code imports, for types only or within functions, too."""
    if isinstance(node, ast.Import):
        yield from (_part(alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        yield from (_part(f"{node.module}.{alias.name}") for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from imports(child)


def _part(name: str) -> str:
    """Return the room, or the module at the package's top, of an imported name; "" if it is not
    ours."""
    package, _, rest = name.partition(".")
    return rest.partition(".")[0] if package == "gradplane" else ""


def outside(module: Path) -> set[str]:
    """Return the rooms that a module imports and that it may not import."""
    inside = module.relative_to(SOURCE)
    room = inside.parts[0]
    allowed = MAY_IMPORT.get(room, set()) | {room}
    rooms = MAY_IMPORT.keys() & set(imports(ast.parse(module.read_text())))
    return rooms - allowed


def test_every_room_has_a_row() -> None:
    rooms = {init.parent.name for init in SOURCE.glob("*/__init__.py")}
    assert rooms == MAY_IMPORT.keys()


def test_every_package_says_what_lives_there() -> None:
    for init in sorted(SOURCE.rglob("__init__.py")):
        assert ast.get_docstring(ast.parse(init.read_text())), init.relative_to(SOURCE)


def test_the_architecture_document_has_a_row_for_every_room() -> None:
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    table = text.partition("## The import package")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)/`", table, re.MULTILINE)
    assert rows == ["p4", *MAY_IMPORT, "experiments"]


def test_a_room_imports_only_rooms_of_earlier_rows() -> None:
    rows = list(MAY_IMPORT)
    for n, row in enumerate(rows):
        assert MAY_IMPORT[row] <= set(rows[:n]), row


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_imports_point_one_way(room: str) -> None:
    for module in sorted((SOURCE / room).rglob("*.py")):
        extra = outside(module)
        assert not extra, f"{module.relative_to(SOURCE)} imports {', '.join(sorted(extra))}"


def test_the_kit_of_pages_imports_no_room() -> None:
    for name in ("kit", "figures"):
        found = set(imports(ast.parse((SOURCE / "pages" / f"{name}.py").read_text())))
        assert not found & (MAY_IMPORT.keys() - {"pages"}), name


def test_modules_at_the_top_import_no_room() -> None:
    for module in SOURCE.glob("*.py"):
        assert module.name in ENTRY_POINTS or not outside(module), module.name
