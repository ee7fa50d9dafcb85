"""User-defined externs called from everywhere, with every type: both engines do the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import psaprograms
import pytest
import v1programs
from user_extern_switches import ENGINES
from v1programs import packet

from gradplane.switch import Switch
from gradplane.switch.ir.verify import verify

EVERYTHING = Path(__file__).parent / "everything"


def everything(engine: str) -> Switch:
    return Switch(f"{EVERYTHING}.p4", engine=engine, externs=f"{EVERYTHING}.py")


def test_every_type_in_every_block_is_alike_in_both_engines() -> None:
    pair = [everything(engine) for engine in ENGINES]
    verify(pair[0].program)
    rng = random.Random(1)
    packets = [
        bytes(
            rng.choice([3, 4, 7, 8, 255, rng.randrange(256)]) for _ in range(rng.randrange(8, 30))
        )
        for _ in range(800)
    ]
    slow, fast = (sw.process_batch([0] * len(packets), packets) for sw in pair)
    assert slow == fast and len(slow) == len(packets)
    assert [sw.messages() for sw in pair] == [[], []]
    for register in ("cells", "seen"):
        assert pair[0].register(register).read(0) == pair[1].register(register).read(0)


def test_a_trace_shows_arguments_and_results_as_python_values() -> None:
    text = everything("jit").trace(0, bytes([200, 3, 9]) + bytes(8)).text()
    for line in (
        "flipped(true) -> [false, ",
        "pairs({x 0xc8, f true}, {x 3, f false}) -> {x 3, f true}, {x 0xc8, f false}",
        "after(RED, 3, NoMatch) -> RED, Odd",
        "item(invalid) -> {k 0xabc, l 5}",
        "many(0xc8, ",
        "constants(0xc8, 0x400000000000000000, text, 0)",
        "add_to(I.cells, 0xc8)",
        "shared.step(8) -> ",
    ):
        assert line.replace("[false, ", "false, ") in text, (line, text)


FAILING = "extern bit<8> f(in bit<8> a); extern void g(inout a_t a);"
CALLS = "h.a.x = f(h.a.x); g(h.a);"
V1_BLOCKS = {
    "parser": {
        "parser": "pkt.extract(h.a); g(h.a); transition select(f(h.a.y)) { 1: two; _: accept; }",
        "states": "state two { h.a.z = f(h.a.z); transition reject; }",
    },
    "verify": {"verify": "m.unused = f(h.a.x); g(h.a);"},
    "ingress": {
        "ingress": CALLS
        + """ s.egress_spec = 1; if (h.a.y == 6) { clone(CloneType.I2E, 5); }
        if (h.a.y == 4) { resubmit_preserving_field_list(0); }"""
    },
    "egress": {"egress": CALLS + " if (h.a.y == 6) { clone(CloneType.E2E, 5); h.a.y = 7; }"},
    "compute": {"compute": CALLS},
    "deparser": {"deparser": "pkt.emit(h.a); f(h.a.x); a_t q = h.a; g(q); pkt.emit(q);"},
    "action": {
        "ingress_locals": """
        action k(bit<8> v) { h.a.x = f(v); g(h.a); if (v == 5) exit; h.a.z = f(h.a.y); }
        table t {
            key = { f(h.a.kind): exact @name("q"); h.a.x: ternary; }
            actions = { k; }
            const entries = { (1, _): k(5); (4, 3): k(10); }
            default_action = k(9);
        }""",
        "ingress": "s.egress_spec = 1; if (t.apply().hit) { h.a.y = f(h.a.y) + f(h.a.z) * f(1); }",
    },
    "loop": {
        "ingress": """s.egress_spec = 1;
        for (bit<8> i = 0; i < f(h.a.x) && i < 9; i = i + 1) {
            h.a.y = f(h.a.y) + i;
            if (f(i) == 10) continue;
            if (h.a.y > 200) break;
            g(h.a);
        }"""
    },
}
PSA_BLOCKS = {
    "psa parser": {"parser": "pkt.extract(h.a); m.kept = f(h.a.x); g(h.a); transition accept;"},
    "psa ingress": {"ingress": "send_to_port(o, (PortId_t) 1); o.resubmit = h.a.y == 4; " + CALLS},
    "psa deparser": {"deparser": CALLS},
    "psa egress": {"egress": CALLS + " o.clone = h.a.y == 6; h.a.y = 7;"},
    "psa egress deparser": {"egress_deparser": CALLS},
}


def in_block(name: str) -> str:
    if name in PSA_BLOCKS:
        made = psaprograms.source(types="TYPES", **PSA_BLOCKS[name])
        header = next(line for line in made.splitlines() if line.startswith("header a_t"))
        return made.replace(header, "").replace("TYPES", f"{header}\n{FAILING}")
    return v1programs.source(types=FAILING, **{"ingress": "s.egress_spec = 1;", **V1_BLOCKS[name]})


def failing() -> dict[str, Any]:
    def f(a: int) -> int:
        if a % 7 == 3:
            raise ValueError("seven")
        return (a * 3 + 1) & 0xFF

    def g(a: dict[str, int] | None) -> dict[str, int] | None:
        if a is not None and a["x"] % 11 == 5:
            return {**a, "x": 300}
        return None if a is not None and a["z"] == 1 else a

    return {"f": f, "g": g}


@pytest.mark.parametrize("block", [*V1_BLOCKS, *PSA_BLOCKS])
def test_calls_that_fail_now_and_then_are_alike_in_every_block(block: str) -> None:
    rng = random.Random(3)
    packets = [packet(*(rng.randrange(12) for _ in range(4)), bytes(2)) for _ in range(200)]
    seen = []
    for engine in ENGINES:
        sw = Switch("x.p4", text=in_block(block), engine=engine, externs=failing(), clock=lambda: 0)
        sw.clone_session(5, [3, 4])
        left = sw.process_batch([0] * len(packets), packets)
        seen.append((left, sw.messages(), sw.state.drops))
    assert seen[0] == seen[1]
    assert len(seen[0][0]) > 20 and len(seen[0][1]) > 20
