"""The rooms of src/gradplane/ import one another in one direction only.

tests/switch/test_layers.py does the same for the stages inside switch/.
"""

import ast
import re
from pathlib import Path

import pytest
from import_arrows import arrows, modules

SOURCE = Path(__file__).parents[1] / "src" / "gradplane"

# Each room may import itself, the rooms listed, and the modules at the package's top. A row lists
# rooms of earlier rows only, so there can be no cycle.
PARTS = {"switch", "codecs", "planner", "hosts", "controller", "topologies", "aggregations"}
MAY_IMPORT: dict[str, set[str]] = {
    "switch": set(),
    "codecs": set(),
    "planner": {"codecs"},
    "hosts": {"codecs"},
    "controller": {"codecs"},
    "topologies": {"switch", "hosts", "controller"},
    "aggregations": {"codecs", "hosts", "controller", "topologies"},
    "experiment": PARTS,
    "differ": {"switch", "controller", "experiment"},
    "fit": {"switch"},
    "runs": PARTS | {"experiment"},
    "torch": {"codecs", "hosts", "runs"},
    "pages": PARTS | {"experiment", "fit", "runs"},
    "studies": PARTS | {"experiment", "runs", "pages"},
    "cli": PARTS | {"differ", "fit", "experiment", "runs", "pages", "studies"},
}

ENTRY_POINTS = {"gradplane.__main__"}  # it imports the room that it opens


def room_of(module: str) -> str:
    """Return the room, or the module at the package's top, that a module is or stands in."""
    return module.split(".")[1] if "." in module else ""


def outside(module: str) -> set[str]:
    """Return the rooms that a module imports and that it may not import."""
    room = room_of(module)
    allowed = MAY_IMPORT.get(room, set()) | {room}
    return MAY_IMPORT.keys() & set(map(room_of, arrows()[module])) - allowed


def test_every_room_has_a_row() -> None:
    rooms = {init.parent.name for init in SOURCE.glob("*/__init__.py")}
    assert rooms == MAY_IMPORT.keys()


def test_every_package_says_what_lives_there() -> None:
    for name, module in modules().items():
        assert not module.package or ast.get_docstring(module.tree), name


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
    for module in arrows():
        if room_of(module) == room:
            assert not outside(module), module


def test_the_kit_of_pages_imports_no_room() -> None:
    for name in ("kit", "figures"):
        found = set(map(room_of, arrows()[f"gradplane.pages.{name}"]))
        assert not found & (MAY_IMPORT.keys() - {"pages"}), name


def test_modules_at_the_top_import_no_room() -> None:
    for module in arrows():
        if module.count(".") == 1 and not modules()[module].package and module not in ENTRY_POINTS:
            assert not outside(module), module
