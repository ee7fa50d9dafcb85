"""Structs and arrays as action data: one number for the control plane, the first part on top."""

import pytest
from v1programs import source

from gradplane.switch import Switch
from gradplane.switch.p4runtime.p4info import build_p4info

TEXT = source(
    types="struct pair_t { bool f; bit<7> p; bit<8> q; }",
    ingress_locals="""
        action set(bit<8>[2] some, pair_t pair) {
            h.a.y = some[0];
            h.a.z = some[1] + pair.q + (pair.f ? 8w1 : 0);
        }
        table t {
            key = { h.a.x : exact; }
            actions = { set; NoAction; }
            entries = { 1 : set({3, 4}, {true, 0, 9}); }
        }""",
    ingress="t.apply(); s.egress_spec = 1;",
)


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_entries_give_one_number(engine: str) -> None:
    sw = Switch("data.p4", text=TEXT, engine=engine)
    sw.table("t").add(match={"h.a.x": 2}, action="set", params={"some": 0x0506, "pair": 0x0007})
    sent = [sw.process(1, bytes([0, x, 0, 0]))[0][1] for x in (1, 2)]
    assert sent == [bytes([0, 1, 3, 14]), bytes([0, 2, 5, 13])]
    params = next(a for a in build_p4info(sw.program).actions if a.preamble.alias == "set").params
    assert [(p.name, p.bitwidth) for p in params] == [("some", 16), ("pair", 16)]
