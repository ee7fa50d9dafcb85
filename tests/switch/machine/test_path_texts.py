"""The texts of packet paths use known primitives, and what they compile to is up to date."""

from pathlib import Path

import pytest

import gradplane
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import nested
from gradplane.switch.machine.path_texts import LOWERED, TEXT, _stamp, lowered, path_text
from gradplane.switch.machine.primitives import PRIMITIVES
from gradplane.switch.syntax import ast, parse_file

SWITCH = Path(gradplane.__file__).parent / "switch"
MACHINE = SWITCH / "machine"
FOLDERS = sorted(text.parent for text in (SWITCH / "arch").glob(f"*/{TEXT}"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_a_text_compiles_to_is_up_to_date(folder: Path) -> None:
    stamp = (folder / LOWERED).read_bytes().split(b"\n")[0]
    assert stamp == _stamp(folder), "run: python -m gradplane.switch.machine.path_texts"
    fresh = {name: calls(control) for name, control in lowered(folder).controls.items()}
    assert {n: calls(control) for n, control in path_text(folder).controls.items()} == fresh


def calls(control: ir.Control) -> list[str]:
    return [s.name for s in nested(control.body) if isinstance(s, ir.CallExtern)]


def test_each_primitive_is_declared_and_has_a_row() -> None:
    tree, _ = parse_file(MACHINE / "machine.p4")
    functions = [d for d in tree.declarations if isinstance(d, ast.FunctionDecl)]
    declared = {d.name for d in functions if d.span.file.endswith("machine.p4")}
    assert declared == set(PRIMITIVES)
