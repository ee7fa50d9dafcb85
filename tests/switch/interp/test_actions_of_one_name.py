"""Actions of one control-plane name in several controls: one to the control plane where they are
the same, like the `nop` of translated P4_14, and an error where they are not."""

import pytest
from v1programs import source

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.source import CompileError

ACTION = '@name(".step") action step(bit<8> by) { m.unused = m.unused + OPERAND; }'
TABLE = "table NAME { key = { h.a.x : exact; } actions = { step; } }"


def program(operand: str, notes: str = "") -> str:
    """Return a program with the action in both controls; `operand` is the second one's."""
    return source(
        ingress_locals=ACTION.replace("OPERAND", "by") + TABLE.replace("NAME", "t"),
        ingress="t.apply(); h.a.y = m.unused; s.egress_spec = 1;",
        egress_locals=notes + ACTION.replace("OPERAND", operand) + TABLE.replace("NAME", "u"),
        egress="u.apply(); h.a.z = m.unused;",
    )


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_each_table_runs_its_own(engine: str) -> None:
    sw = Switch("steps.p4", text=program("by"), engine=engine)
    for table in ("I.t", "E.u"):
        sw.table(table).add(match={"h.a.x": 5}, action="step", params={"by": 3})
    assert sw.process(1, bytes([0, 5, 0, 0])) == [(1, bytes([0, 5, 3, 6]))]
    info = build_p4info(sw.program)
    assert [a.preamble.name for a in info.actions] == ["step", "NoAction"]
    assert len({table.action_refs[0].id for table in info.tables}) == 1


def test_p4c_refuses_them() -> None:
    def said(text: str) -> list[str]:
        return [w.message for w in compile_source("steps.p4", text=text).warnings]

    assert said(program("by")) == ["p4c refuses a second action of the control-plane name step"]
    assert said(program("by", '@noWarn("p4c") ')) == []


def test_two_that_differ_are_an_error() -> None:
    """P4_16, "Annotations controlling naming": programs that yield the same fully-qualified name
    for two different controllable entities are invalid."""
    with pytest.raises(CompileError, match="a second action has the control-plane name step"):
        compile_source("steps.p4", text=program("2 * by"))
