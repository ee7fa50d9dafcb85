"""What p4c 1.2.5.16 refuses, or makes of a program for BMv2, without a warning here: the paragraph
"Not warned of" of docs/coming-from-bmv2.md, "Compile for BMv2"."""

from __future__ import annotations

from pathlib import Path

import pytest
from one_packet_there import p4c, sent
from v1programs import packet, source

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source

SENDS = "s.egress_spec = 1;"
STACK = {"types": "header n_t { bit<8> v; }", "headers": "n_t[2] st;", "metadata": "bit<8> x;"}
REFUSED = {
    "an index that an assignment makes too high": (
        {**STACK, "ingress": f"{SENDS} m.x = 5; h.st[m.x].v = 1;"},
        "larger or equal to array size 2",
    ),
    "shifts of a variable after each other": (
        {"metadata": "bit<8> x;", "ingress": f"{SENDS} m.x = h.a.y << 200; h.a.x = m.x << 100;"},
        "shift amount limited to 256",
    ),
}


@pytest.mark.parametrize(("parts", "message"), REFUSED.values(), ids=REFUSED)
def test_p4c_refuses_it_and_it_runs_here(
    parts: dict[str, str], message: str, tmp_path: Path
) -> None:
    compiled = compile_source("case.p4", text=source(**parts))
    assert [w for w in compiled.warnings if w.kind == "p4c"] == []
    assert len(Switch(compiled.program).process(0, packet())) == 1
    done = p4c(source(**parts), tmp_path)
    assert done.returncode != 0 and message in done.stderr


def test_shifts_that_add_up_to_256_are_taken(tmp_path: Path) -> None:
    assert p4c(source(ingress=f"{SENDS} h.a.x = (h.a.x << 200) << 56;"), tmp_path).returncode == 0


SELECT = "pkt.extract(h.a); transition select(h.a.kind) {{ 1: accept; {} }}"
FOUND = f"{SENDS} h.a.z = s.parser_error == error.NoMatch ? 8w1 : 8w2;"
RANGES = """action set(bit<8> v) { h.a.z = v; }
    table t { key = { h.a.kind : exact; m.w : range; } actions = { set; NoAction; }
        const entries = { (1, _) : set(1); (2, 0 .. WHOLE) : set(2); } }"""
EXIT = "action leave(inout bit<8> x, inout a_t a) { x = 9; a.y = 8; exit; }"
RUN = {  # parts of a program, a packet, what leaves, and what does with p4c's JSON
    "a packet that fits no case": (
        {"parser": SELECT.format(""), "ingress": FOUND},
        packet(kind=2),
        packet(kind=2, z=1),
        packet(kind=2, z=2),
    ),
    "a packet that the advised state rejects": (
        {
            "parser": SELECT.format("default: none;"),
            "states": "state none { verify(false, error.NoMatch); transition accept; }",
            "ingress": FOUND,
        },
        packet(kind=2),
        packet(kind=2, z=1),
        packet(kind=2, z=1),
    ),
} | {
    f"{what} for a range of {width} bits, {value}": (
        {
            "metadata": f"bit<{width}> w;",
            "ingress_locals": RANGES.replace("WHOLE", hex(2**width - 1)),
            "ingress": f"{SENDS} m.w = (bit<{width}>) h.a.x << {shift}; t.apply();",
        },
        packet(kind=kind, x=value),
        packet(kind=kind, x=value, z=kind),
        packet(kind=kind, x=value, z=kind if hit else 0),
    )
    for width, shift, value, kind, what, hit in (
        (32, 0, 1, 1, "_", False),
        (32, 0, 1, 2, "both ends", True),
        (40, 0, 255, 1, "_", True),
        (40, 1, 255, 1, "_", False),
        (40, 1, 255, 2, "both ends", True),
    )
} | {
    "an exit with a slice as an argument": (
        {
            "ingress_locals": "action leave(inout bit<4> x) { x = 9; exit; }",
            "ingress": f"{SENDS} leave(h.a.x[3:0]);",
        },
        packet(),
        packet(x=9),
        packet(),
    ),
    "an exit with a field of a header that is an argument": (
        {"ingress_locals": EXIT, "ingress": f"{SENDS} leave(h.a.x, h.a);"},
        packet(x=5),
        packet(x=5, y=8),
        packet(x=5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RUN)
def test_here(name: str) -> None:
    parts, given, expected, _ = RUN[name]
    program = compile_source("case.p4", text=source(**parts)).program
    for engine in ("interpreter", "jit"):
        assert Switch(program, engine=engine).process(1, given) == [(1, expected)]


@pytest.mark.parametrize("name", RUN)
def test_there_with_our_json(name: str) -> None:
    parts, given, expected, _ = RUN[name]
    assert sent(source(**parts), given) == [(1, expected)]


@pytest.mark.parametrize("name", RUN)
def test_there_with_p4cs_json(name: str, tmp_path: Path) -> None:
    parts, given, _, expected = RUN[name]
    done = p4c(source(**parts), tmp_path)
    assert done.returncode == 0, done.stderr
    config = (tmp_path / "case.json").read_bytes()
    assert sent(source(**parts), given, config) == [(1, expected)]
