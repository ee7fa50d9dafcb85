"""The cases of `stf/language.cases` on the real simple_switch_grpc, with the JSON of our back end.

They need simple_switch_grpc on PATH. One process runs them all; each case is loaded in its turn.
"""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradplane.controller import targets
from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ.bmv2_switch import Bmv2Switch
from gradplane.experiment import p4_programs
from gradplane.switch import Switch

LANGUAGE = runpy.run_path(str(Path(__file__).parents[1] / "stf" / "test_language.py"))
PACKETS = ("0102030405060708", "00" * 8, "ff80ff7f8000000180aa", "7f01123480000000")


@pytest.fixture(scope="module")
def bmv2() -> Iterator[Bmv2Switch]:
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    target = targets.get("bmv2")
    assert isinstance(target, Bmv2)
    with Bmv2Switch(target) as switch:
        yield switch


@pytest.mark.parametrize("case", LANGUAGE["CASES"], ids=lambda case: case[0])
def test_both_switches_are_equal(
    case: tuple[str, str, str], bmv2: Bmv2Switch, tmp_path: Path
) -> None:
    (program := tmp_path / "case.p4").write_text(LANGUAGE["program"](case[2]))
    found = p4_programs.compiled(program)
    embedded = Switch(found.program, engine="interpreter")
    p4info = p4_programs.p4info_message(found.program, "bmv2")
    bmv2.load(p4info, p4_programs.compiled_for("bmv2", found).encode())
    for packet in map(bytes.fromhex, PACKETS):
        assert sorted(bmv2.process(0, packet)) == sorted(embedded.process(0, packet))
