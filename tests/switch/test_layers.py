"""Imports inside the switch point one way: a stage knows only those before it."""

from pathlib import Path

import pytest
from import_arrows import arrows

SWITCH = "gradplane.switch"
FOLDER = Path(__file__).parents[2].joinpath("src", *SWITCH.split("."))
ARCHITECTURES = [path.parent.name for path in FOLDER.glob("arch/*/include")]

# Each package may import itself, what is listed, and the modules `source` and `naming`.
BELOW = {
    "ir": set(),
    "syntax": {"ir"},
    "check": {"ir", "syntax"},
    "lower": {"ir", "syntax", "check"},
    "runtime": {"ir"},
    "interp": {"ir", "runtime"},
    "jit": {"ir", "runtime", "interp"},
    "machine": {"ir", "syntax", "check", "lower", "runtime", "interp", "jit"},
    "arch": {"ir", "runtime", "interp", "jit", "machine"},
    "backends": {"ir", "runtime", "arch", "bmv2_names", "_p4runtime"},
    "frontends": {"ir", "bmv2_names", "_p4runtime"},
    "ports": {"runtime", "jit", "_privileges"},
    "control": {"ir", "runtime", "arch"},
    "p4runtime": {"ir", "runtime", "syntax", "arch", "control", "packet_tracing", "_p4runtime"},
    "gnmi": {"runtime", "p4runtime", "_p4runtime"},
    "bfruntime": {"ir", "runtime", "arch", "control", "p4runtime", "_bfruntime", "_p4runtime"},
    "commands": {"ir", "runtime", "control", "control_handles", "runtime_json"},
    "stf": {
        "ir", "runtime", "interp", "switch", "control", "control_handles", "commands", "_captures",
    },
    "testgen": {"ir", "runtime", "interp", "machine", "switch", "interpreted_passes", "stf"},
}  # fmt: skip
ANYWHERE = {
    "source", "internal_errors", "naming", "match_values", "disk_cache", "_suggestions",
    "_splitmix64", "_user_folders", "_whole_files",
}  # fmt: skip


def part_of(module: str) -> str:
    """Return the package or module of gradplane.switch that a module is or stands in; of another
    room, the room."""
    path = module.split(".")
    return path[2 if path[:2] == ["gradplane", "switch"] and len(path) > 2 else 1]


@pytest.mark.parametrize("package", sorted(BELOW))
def test_imports_point_one_way(package: str) -> None:
    allowed = BELOW[package] | {package} | ANYWHERE
    for module in within(f"{SWITCH}.{package}"):
        extra = {part_of(other) for other in arrows()[module]} - allowed
        assert not extra, f"{module} imports {', '.join(sorted(extra))}"


def within(package: str) -> list[str]:
    """Return a package's modules, and its own name."""
    return [module for module in arrows() if f"{module}.".startswith(f"{package}.")]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_is_imported_by_its_folder_and_back_ends_only(name: str) -> None:
    folder = f"gradplane.switch.arch.{name}"
    allowed = (f"{folder}.", "gradplane.switch.backends.")
    for module in within(SWITCH):
        if not f"{module}.".startswith(allowed):
            found = arrows()[module].intersection(within(folder))
            assert not found, f"{module} imports {', '.join(found)}"


@pytest.mark.parametrize(
    "package", ["commands", "control", "ports", "runtime", "jit", "ir", "machine"]
)
def test_no_module_imports_itself_by_way_of_others(package: str) -> None:
    there = {*within(f"{SWITCH}.{package}"), f"{SWITCH}.switch"}
    imports = {name: arrows()[name] & there for name in there}
    while free := [name for name, others in imports.items() if not others & imports.keys()]:
        for name in free:
            del imports[name]
    assert not imports, f"in a circle, or import one: {', '.join(imports)}"


def test_the_switch_knows_no_other_room() -> None:
    rooms = {"codecs", "hosts", "controller", "topologies"}
    for module in within(SWITCH):
        assert not rooms.intersection(map(part_of, arrows()[module])), module
