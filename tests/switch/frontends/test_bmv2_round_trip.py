"""Programs through BMv2's JSON and back: every packet test has the same result.

P4 source -> IR -> JSON -> IR, with the source's P4Info. What BMv2 cannot do, the back end refuses.
"""

import runpy
from pathlib import Path

import pytest
from bmv2_documents import failures

from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.frontends.bmv2 import read_program
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.verify import verify
from gradplane.switch.p4runtime.device import differences
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.source import CompileError

STF = Path(__file__).parents[1] / "stf"
LANGUAGE = runpy.run_path(str(STF / "test_language.py"))
PROGRAMS = sorted([*(STF / "exercises").glob("*.p4"), *(STF / "features").glob("*.p4")])

REFUSED = {  # by the back end, since BMv2 cannot do it
    "checksum_invalid",
    "checksum_lists",
    "command_line",
    "deparser",
    "parser_lookahead",
    "table_annotations",
}
DIFFERENT = {
    "subparser_elements": "a parser error there ends all, also copying a sub-parser's results",
}


def through_json(path: Path, with_p4info: bool = True) -> tuple[ir.Program, ir.Program]:
    """The program as compiled, and as read from its JSON."""
    compiled = p4_programs.compiled(path)
    text = p4_programs.compiled_for("bmv2", compiled)
    info = build_p4info(compiled.program)
    found = read_program(text, f"{path.stem}.json", info if with_p4info else None)
    verify(found)
    return compiled.program, found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_packets_fare_the_same(path: Path) -> None:
    if path.stem in DIFFERENT:
        pytest.skip(DIFFERENT[path.stem])
    if path.stem in REFUSED:
        with pytest.raises(CompileError, match="BMv2"):
            through_json(path)
        return
    source, found = through_json(path)
    for engine in ("interpreter", "jit"):
        assert failures(found, path, engine) == []
    assert differences(build_p4info(source), build_p4info(found)) == []


@pytest.mark.parametrize("case", LANGUAGE["CASES"], ids=lambda case: case[0])
def test_cases_of_the_language(case: tuple[str, str, str], tmp_path: Path) -> None:
    name, expected, parts = case
    (path := tmp_path / "case.p4").write_text(LANGUAGE["program"](parts))
    if name == "table in expr":  # two places go on behind one node each
        with pytest.raises(CompileError, match="nodes form a loop"):
            through_json(path)
        return
    switch = Switch(through_json(path)[1], engine="interpreter")
    [(port, packet)] = switch.process(0, LANGUAGE["PACKET"])
    assert (port, packet.hex()[: len(expected)]) == (1, expected)


@pytest.mark.parametrize("name", ["acl", "ecmp", "learning", "router"])
def test_names_and_ids_without_p4info(name: str) -> None:
    """The JSON has the names, of which ids are made; only what it does not hold differs."""
    source, found = through_json(STF / "exercises" / f"{name}.p4", with_p4info=False)
    mine, there = build_p4info(source), build_p4info(found)
    for section in ("tables", "actions", "counters", "meters", "registers", "action_profiles"):
        objects = [{o.preamble.name: o for o in getattr(i, section)} for i in (mine, there)]
        for preamble in {o.preamble.name for o in objects[0].values()}:
            assert objects[1][preamble].preamble.id == objects[0][preamble].preamble.id
    assert failures(found, STF / "exercises" / f"{name}.p4", "interpreter") == []


@pytest.mark.parametrize("name", ["thc.p4", "lanes.p4"])
def test_shipped_programs(name: str) -> None:
    """Their tests are others; here: they are read, and their IR is legal."""
    path = Path(__file__).parents[3] / "benchmarks" / name
    source, found = through_json(path if path.is_file() else p4_programs.find_program(name))
    assert differences(build_p4info(source), build_p4info(found)) == []
