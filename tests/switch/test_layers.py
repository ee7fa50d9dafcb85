"""Imports inside the switch point one way: a stage knows only those before it."""

import ast
from pathlib import Path

import pytest

SWITCH = Path(__file__).parents[2] / "src" / "gradplane" / "switch"

# Each package may import itself, what is listed, and the modules in ANYWHERE.
BELOW = {
    "ir": set(),
    "syntax": {"ir"},
    "check": {"ir", "syntax"},
    "lower": {"ir", "syntax", "check"},
    "runtime": {"ir"},
    "interp": {"ir", "runtime"},
    "jit": {"ir", "runtime", "interp"},
    "arch": {"ir", "runtime", "interp", "jit"},
    "ports": {"runtime", "jit"},
    "p4runtime": {"ir", "runtime", "syntax", "arch"},
    "commands": {"ir", "runtime", "switch", "control_handles"},
    "stf": {"ir", "runtime", "switch", "control_handles", "commands"},
}
ANYWHERE = {
    "source", "naming", "match_values", "disk_cache", "python_settings",
    "_suggestions", "_splitmix64",
}  # fmt: skip


def imported(module: Path) -> set[str]:
    """The parts of gradplane.switch that a module imports; type-checking imports do not count."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for inner in ast.walk(node):
                inner.names = []  # type: ignore[attr-defined]
                inner.module = None  # type: ignore[attr-defined]
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


def test_the_switch_knows_no_other_room() -> None:
    rooms = {"codecs", "hosts", "controller", "topologies"}
    for module in SWITCH.rglob("*.py"):
        assert not imported(module) & rooms, module
