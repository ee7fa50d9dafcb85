"""Imports inside the switch point one way: a stage knows only those before it."""

import ast
from pathlib import Path

import pytest

SWITCH = Path(__file__).parents[2] / "src" / "gradplane" / "switch"

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
    "backends": {"ir", "runtime", "arch", "bmv2_names"},
    "frontends": {"ir", "bmv2_names"},
    "ports": {"runtime", "jit", "_privileges"},
    "control": {"ir", "runtime", "arch"},
    "p4runtime": {"ir", "runtime", "syntax", "arch", "control", "packet_tracing"},
    "gnmi": {"runtime", "p4runtime"},
    "bfruntime": {"ir", "runtime", "arch", "control", "p4runtime"},
    "commands": {"ir", "runtime", "control", "control_handles"},
    "stf": {
        "ir", "runtime", "interp", "switch", "control", "control_handles", "commands", "_captures",
    },
    "testgen": {"ir", "runtime", "interp", "machine", "switch", "interpreted_passes", "stf"},
}  # fmt: skip
ANYWHERE = {
    "source", "internal_errors", "naming", "match_values", "disk_cache", "_suggestions",
    "_splitmix64",
}  # fmt: skip


def imported(module: Path) -> set[str]:
    """Return the parts of gradplane.switch that a module imports, for types only, too."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= _parts(node.module, [a.name for a in node.names])
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found |= _parts(alias.name, [])
    return found


def _parts(module: str, names: list[str]) -> set[str]:
    path = module.split(".")
    if path[:2] != ["gradplane", "switch"]:
        return {path[1]} if path[0] == "gradplane" and len(path) > 1 else set()
    return {path[2]} if len(path) > 2 else set(names)


@pytest.mark.parametrize("package", sorted(BELOW))
def test_imports_point_one_way(package: str) -> None:
    allowed = BELOW[package] | {package} | ANYWHERE
    for module in (SWITCH / package).rglob("*.py"):
        extra = imported(module) - allowed
        assert not extra, f"{module.relative_to(SWITCH)} imports {', '.join(sorted(extra))}"


def modules(folder: Path) -> dict[str, Path]:
    """Return the modules in a folder and the folders within, by their full names."""
    found = {}
    for path in folder.rglob("*.py"):
        parts = ("gradplane", "switch", *path.relative_to(SWITCH).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def all_imports(module: Path) -> set[str]:
    """Return the modules that a module imports by name, for types only or within functions, too."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{a.name}" for a in node.names}
            found |= names if names <= MODULES.keys() else {node.module, *names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


MODULES = modules(SWITCH)
ARCHITECTURES = [p.parent.name for p in (SWITCH / "arch").glob("*/include")]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_is_imported_by_its_folder_and_back_ends_only(name: str) -> None:
    folder = f"gradplane.switch.arch.{name}"
    allowed = (f"{folder}.", "gradplane.switch.backends.")
    for module, path in MODULES.items():
        if not f"{module}.".startswith(allowed):
            found = [m for m in all_imports(path) if f"{m}.".startswith(f"{folder}.")]
            assert not found, f"{module} imports {', '.join(found)}"


@pytest.mark.parametrize(
    "package", ["commands", "control", "ports", "runtime", "jit", "ir", "machine"]
)
def test_no_module_imports_itself_by_way_of_others(package: str) -> None:
    there = modules(SWITCH / package) | {"gradplane.switch.switch": SWITCH / "switch.py"}
    imports = {name: (all_imports(path) & there.keys()) - {name} for name, path in there.items()}
    while free := [name for name, others in imports.items() if not others & imports.keys()]:
        for name in free:
            del imports[name]
    assert not imports, f"in a circle, or import one: {', '.join(imports)}"


def test_the_switch_knows_no_other_room() -> None:
    rooms = {"codecs", "hosts", "controller", "topologies"}
    for module in SWITCH.rglob("*.py"):
        assert not imported(module) & rooms, module
