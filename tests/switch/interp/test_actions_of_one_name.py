"""Actions of one control-plane name in several controls, like the `nop` of translated P4_14."""

import pytest
from v1programs import source

from gradplane.switch import Switch
from gradplane.switch.p4runtime.p4info import build_p4info

ACTION = '@name(".step") action step(bit<8> by) { m.unused = m.unused + OPERAND; }'
TABLE = "table NAME { key = { h.a.x : exact; } actions = { step; } }"


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_each_table_runs_its_own(engine: str) -> None:
    text = source(
        ingress_locals=ACTION.replace("OPERAND", "by") + TABLE.replace("NAME", "t"),
        ingress="t.apply(); h.a.y = m.unused; s.egress_spec = 1;",
        egress_locals=ACTION.replace("OPERAND", "2 * by") + TABLE.replace("NAME", "u"),
        egress="u.apply(); h.a.z = m.unused;",
    )
    sw = Switch("steps.p4", text=text, engine=engine)
    for table in ("I.t", "E.u"):
        sw.table(table).add(match={"h.a.x": 5}, action="step", params={"by": 3})
    assert sw.process(1, bytes([0, 5, 0, 0])) == [(1, bytes([0, 5, 3, 9]))]
    info = build_p4info(sw.program)
    assert [a.preamble.name for a in info.actions] == ["step", "NoAction"]
    assert len({table.action_refs[0].id for table in info.tables}) == 1
