"""What BMv2 does not run as P4_16 says with p4c's JSON (p4c 1.2.5.16, behavioral-model 1.15.5), and
runs with ours: docs/coming-from-bmv2.md, "Compile for BMv2"."""

from __future__ import annotations

from pathlib import Path

import pytest
from one_packet_there import p4c, sent
from v1programs import source

from gradplane.differ.bmv2_switch import DiffError
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source

STACK = {"types": "header n_t { bit<8> v; }", "headers": "n_t[2] st;"}
UNIONS = {
    "types": "header n_t { bit<8> v; } header o_t { bit<8> v; } header_union U { n_t n; o_t o; }",
    "headers": "U[2] us;",
}
ACTION = "action set(bit<8> v) { h.a.z = v; }"
KIND, X, Y, Z = 0, 1, 2, 3
PACKET = bytes([KIND, X, Y, Z, 9, 9, 9])
SENDS = "s.egress_spec = 1; "
# Parts of a program, what leaves, and with p4c's JSON, or how BMv2 ends.
CASES = {
    "a field of a struct that ?: chooses": (
        {
            "types": "struct S { bit<8> x; }",
            "ingress": f"{SENDS} S a = {{1}}; S b = {{2}}; h.a.z = (h.a.x == 1 ? a : b).x;",
        },
        bytes([KIND, X, Y, 1, 9, 9, 9]),
        "crashed",
    ),
    "action data as the index of a header stack": (
        {
            **STACK,
            "ingress_locals": """action set(bit<1> i) { h.st[i].setValid(); h.st[i].v = 7; }
                table t { key = { h.a.x : exact; } actions = { set; }
                    const default_action = set(1); }""",
            "ingress": f"{SENDS} t.apply();",
        },
        bytes([KIND, X, Y, Z, 7, 9, 9, 9]),
        "crashed",
    ),
    "a select on lastIndex": (
        {
            **STACK,
            "parser": "pkt.extract(h.a); transition more;",
            "states": """state more { pkt.extract(h.st.next);
                transition select(h.st.lastIndex) { 0: more; default: accept; } }""",
        },
        PACKET,
        "crashed",
    ),
    "next of a stack as an argument of a sub-parser": (
        {
            "types": STACK["types"]
            + """ parser Sub(packet_in p, out n_t n) {
                state start { p.extract(n); transition accept; } }""",
            "headers": STACK["headers"],
            "parser_locals": "Sub() sub;",
            "parser": "pkt.extract(h.a); sub.apply(pkt, h.st.next); transition accept;",
            "ingress": f"{SENDS} h.a.z = h.st[0].v;",
        },
        bytes([KIND, X, Y, 9, 9, 9, 9]),
        "crashed",
    ),
    "isValid() of a union in a stack": (
        {**UNIONS, "ingress": f"{SENDS} h.a.z = h.us[1].isValid() ? 8w1 : 8w2;"},
        bytes([KIND, X, Y, 2, 9, 9, 9]),
        "crashed",
    ),
    "isValid() of an element with a run-time index": (
        {**STACK, "ingress": f"{SENDS} h.a.z = h.st[h.a.x].isValid() ? 8w1 : 8w2;"},
        bytes([KIND, X, Y, 2, 9, 9, 9]),
        "refuses the program",
    ),
    "a second entry of one key": (
        {
            "ingress_locals": f"""{ACTION} table t {{ key = {{ h.a.x : exact; }}
                actions = {{ set; NoAction; }}
                const entries = {{ 1 : set(1); 1 : set(2); }} }}""",
            "ingress": f"{SENDS} t.apply();",
        },
        bytes([KIND, X, Y, 1, 9, 9, 9]),
        "crashed",
    ),
    "a list that reads the header it is assigned to": (
        {"ingress": f"{SENDS} h.a = {{ h.a.x, h.a.kind, 5, 6 }};"},
        bytes([X, KIND, 5, 6, 9, 9, 9]),
        bytes([9, 9, 9]),
    ),
    "an int that depends on the packet": (
        {"ingress": f"{SENDS} h.a.z = (bit<8>) (int) h.a.x;"},
        bytes([KIND, X, Y, X, 9, 9, 9]),
        bytes([KIND, X, Y, 0, 9, 9, 9]),
    ),
    "a loop outside an action": (
        {"ingress": f"{SENDS} for (bit<8> i = 0; i < 3; i = i + 1) {{ h.a.z = h.a.z + 1; }}"},
        bytes([KIND, X, Y, Z + 3, 9, 9, 9]),
        bytes([KIND, X, Y, Z + 1, 9, 9, 9]),
    ),
}
NAMES = list(CASES)


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize("name", NAMES)
def test_here(engine: str, name: str) -> None:
    parts, expected, _ = CASES[name]
    program = compile_source("case.p4", text=source(**parts)).program
    assert Switch(program, engine=engine).process(1, PACKET) == [(1, expected)]


@pytest.mark.parametrize("name", NAMES)
def test_there_with_our_json(name: str) -> None:
    parts, expected, _ = CASES[name]
    assert sent(source(**parts), PACKET) == [(1, expected)]


@pytest.mark.parametrize("name", NAMES)
def test_there_with_p4cs_json(name: str, tmp_path: Path) -> None:
    parts, _, expected = CASES[name]
    assert p4c(source(**parts), tmp_path).returncode == 0
    config = (tmp_path / "case.json").read_bytes()
    if isinstance(expected, bytes):
        assert sent(source(**parts), PACKET, config) == [(1, expected)]
        return
    with pytest.raises(DiffError, match=f"bmv2 .*{expected}"):
        sent(source(**parts), PACKET, config)
