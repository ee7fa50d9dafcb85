"""Selects over structs and lists, nested too, are matched part by part."""

import pytest
from v1programs import source

from gradplane.switch import Switch

TYPES = "struct pair_t { bit<8> b; bit<8> c; } struct nested_t { bit<8> a; pair_t p; }"
NESTED = """
    pkt.extract(h.a);
    pair_t pair = { h.a.y, h.a.z };
    transition select(h.a.x, pair) {
        (1, { 2, 3 }): first;
        (4, _): second;
        chosen: third;
        _: accept;
    }
"""
LISTS = NESTED.replace("pair)", "{ h.a.y, h.a.z })")
STATES = """
    state first { m.unused = 1; transition accept; }
    state second { m.unused = 2; transition accept; }
    state third { m.unused = 3; transition accept; }
"""
CASES = [((1, 2, 3), 1), ((1, 2, 4), 0), ((4, 0, 9), 2), ((7, 8, 9), 3), ((7, 8, 8), 0)]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize("parser", [NESTED, LISTS], ids=["struct", "lists"])
def test_select(engine: str, parser: str) -> None:
    text = source(
        types=TYPES,
        parser_locals="value_set<nested_t>(4) chosen;",
        parser=parser,
        states=STATES,
        ingress="s.egress_spec = 1; h.a.kind = m.unused;",
    )
    sw = Switch("select.p4", text=text, engine=engine)
    [name] = [s.name for s in sw.program.value_sets]
    assert [f.name for f in sw.program.value_sets[0].fields] == ["a", "p.b", "p.c"]
    sw.state.value_sets[name].replace([[(7,), (8,), (9,)]])
    for fields, expected in CASES:
        [(_, packet)] = sw.process(1, bytes([0, *fields]))
        assert packet[0] == expected, fields
