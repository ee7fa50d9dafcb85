"""Externs of which Tofino has several of a kind: actions with one to four results, on registers,
direct registers and cells of 128 bits; the extremes of a cell's parts; partitions of tables."""

from __future__ import annotations

import pytest
from tnaprograms import packet, switch

from gradplane.switch import Switch
from gradplane.switch.source import CompileError

ENGINES = pytest.mark.parametrize("engine", ["interpreter", "jit"])
SEND = "tm.ucast_egress_port = 1;"


def results(count: int) -> tuple[str, str, str]:
    """Return the result types, the parameters of `apply`, and the outputs of `execute` but one."""
    numbers = range(1, count + 1)
    return (
        ", ".join("bit<8>" for _ in numbers),
        ", ".join(f"out bit<8> rv{n}" for n in numbers),
        ", ".join(f"h.b.{field}" for field in ("kind", "x", "y")[: count - 1]),
    )


@ENGINES
@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_register_action_gives_up_to_four_results(engine: str, count: int) -> None:
    types, parameters, outputs = results(count)
    given = "".join(f"rv{n} = {('value', 'h.a.y', '8w7')[n - 2]}; " for n in range(2, count + 1))
    made = switch(
        engine,
        include="t2na.p4",
        headers="a_t b;",
        ingress_locals=f"""
            Register<bit<8>, bit<8>>(4, 5) cells;
            RegisterAction{count}<bit<8>, bit<8>, {types}>(cells) add = {{
                void apply(inout bit<8> value, {parameters}) {{
                    rv1 = value; value = value + h.a.y; {given}
                }}
            }};""",
        ingress=f"h.b.setValid(); h.a.z = add.execute(h.a.x, {outputs}); {SEND}",
    )
    others = (bytes([9, 4, 7])[: count - 1] + bytes(4))[:4]
    assert made.process(0, packet(0, 2, 4)) == [(1, packet(0, 2, 4, 5) + others)]
    assert list(made.register("cells").values) == [5, 5, 9, 5]


@ENGINES
@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_direct_register_action_gives_up_to_four_results(engine: str, count: int) -> None:
    types, parameters, outputs = results(count)
    given = "".join(f"rv{n} = {('value', 'h.a.y', '8w7')[n - 2]}; " for n in range(2, count + 1))
    made = switch(
        engine,
        include="t2na.p4",
        headers="a_t b;",
        ingress_locals=f"""
            DirectRegister<bit<8>>(5) seen;
            DirectRegisterAction{count}<bit<8>, {types}>(seen) add = {{
                void apply(inout bit<8> value, {parameters}) {{
                    rv1 = value; value = value + h.a.y; {given}
                }}
            }};
            action hit() {{ h.b.setValid(); h.a.z = add.execute({outputs}); }}
            table t {{ key = {{ h.a.x : exact; }} actions = {{ hit; @defaultonly NoAction; }}
                      registers = seen; const default_action = NoAction; }}""",
        ingress=f"t.apply(); {SEND}",
    )
    for x in (2, 3):
        made.table("t").add({"h.a.x": x}, "hit")
    others = (bytes([9, 4, 7])[: count - 1] + bytes(4))[:4]
    assert made.process(0, packet(0, 2, 4)) == [(1, packet(0, 2, 4, 5) + others)]
    assert made.process(0, packet(0, 3, 4)) == [(1, packet(0, 3, 4, 5) + others)]
    assert made.process(0, packet(0, 2, 1))[0][1][3] == 9


CELL = 0x0908_0706_0504_0302_1211_10F0_0E0D_0C0B


def part(number: int, bits: int) -> int:
    return CELL >> (number * bits) & ((1 << bits) - 1)


MASKS = (0xFFFF, 0x0F0F, 0x00F0, 0x0041)


@ENGINES
@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["min8", "max8", "min16", "max16"])
def test_the_extreme_of_the_parts_that_a_mask_chooses(engine: str, count: int, name: str) -> None:
    """The parts of a cell of 128 bits, numbered from the lowest; the first of equal ones."""
    bits = int(name[3:])
    parts = 128 // bits
    others = range(2, count + 1)
    types = ", ".join([f"bit<{bits}>"] * count)
    outputs = "".join(f", out bit<{bits}> rv{n}" for n in others)
    made = switch(
        engine,
        include="t2na.p4",
        headers="a_t b;",
        ingress_locals=f"""
            Register<bit<128>, bit<8>>(1, 128w{CELL}) cells;
            MinMaxAction{count if count > 1 else ""}<bit<128>, bit<8>, {types}>(cells) find = {{
                void apply(inout bit<128> value, out bit<{bits}> rv1{outputs}) {{
                    {"bit<4>" if bits == 8 else "bit<3>"} at;
                    rv1 = this.{name}(value, (h.a.kind ++ h.a.x)[{parts - 1}:0], at);
                    {"".join(f"rv{n} = (bit<{bits}>) at; " for n in others)}
                }}
            }};""",
        ingress=f"""
            bit<{bits}> other2 = 0; bit<{bits}> other3; bit<{bits}> other4;
            bit<{bits}> found = find.execute(0{"".join(f", other{n}" for n in others)});
            h.b.setValid(); h.b.kind = (bit<8>) other2;
            h.a.y = (bit<8>) (found >> 8); h.a.z = found[7:0]; {SEND}""",
    )
    for mask in MASKS:
        chosen = [n for n in range(parts) if mask >> n & 1]
        best = (min if "min" in name else max)(chosen, key=lambda n: part(n, bits))
        value, asked = part(best, bits), mask.to_bytes(2, "big")
        shown = bytes([value >> 8, value & 0xFF, best if count > 1 else 0, 0, 0, 0])
        assert made.process(0, asked + bytes(2)) == [(1, asked + shown)]


@ENGINES
@pytest.mark.parametrize("declared", ["Atcam(number_partitions = 4)", "Atcam()"])
def test_a_partition_of_an_algorithmic_tcam_is_matched_exactly(engine: str, declared: str) -> None:
    made = switch(
        engine,
        ingress_locals=f"""
            {declared} parts;
            action set(bit<8> v) {{ h.a.z = v; }}
            @atcam_number_partitions(4)
            table t {{
                key = {{ h.a.x : atcam_partition_index; h.a.y : ternary; }}
                actions = {{ set; NoAction; }}
                implementation = parts;
                const default_action = NoAction;
                size = 64;
            }}""",
        ingress=f"t.apply(); {SEND}",
    )
    made.table("t").add({"h.a.x": 1, "h.a.y": (0x10, 0xF0)}, "set", {"v": 5}, priority=2)
    made.table("t").add({"h.a.x": 1, "h.a.y": (0x12, 0xFF)}, "set", {"v": 6}, priority=3)
    made.table("t").add({"h.a.x": 2, "h.a.y": (0, 0)}, "set", {"v": 7}, priority=1)
    assert [z_of(made, x, y) for x, y in ((1, 0x11), (1, 0x12), (2, 0x12), (1, 0x22))] == [
        5, 6, 7, 0,
    ]  # fmt: skip


def z_of(made: Switch, x: int, y: int) -> int:
    return made.process(0, packet(0, x, y))[0][1][3]


@ENGINES
@pytest.mark.parametrize("include", ["tna.p4", "t2na.p4"])
def test_a_parsers_priority_changes_nothing_that_a_packet_shows(engine: str, include: str) -> None:
    made = switch(
        engine,
        include=include,
        parser_locals="ParserPriority() priority;",
        parser="pkt.extract(h.a); priority.set(3w5); transition accept;",
    )
    assert made.process(0, packet(1, 2, 3, 4, b"rest")) == [(1, packet(1, 2, 3, 4, b"rest"))]


@ENGINES
def test_padding_is_a_field_of_a_digest(engine: str) -> None:
    made = switch(
        engine,
        types="struct noted_t { bit<8> x; @padding bit<7> unused; PortId_t port; }",
        ingress=f"dprsr.digest_type = 1; {SEND}",
        deparser_locals="Digest<noted_t>() noted;",
        deparser="if (dprsr.digest_type == 1) { noted.pack({ h.a.x, 0, 9w3 }); }",
    )
    assert made.process(0, packet(x=6)) == [(1, packet(x=6))]
    (message,) = made.messages()
    assert list(message.data) == [6, 0, 3]


def test_a_cell_has_four_results_at_most() -> None:
    with pytest.raises(CompileError, match="RegisterAction5"):
        switch(
            include="t2na.p4",
            ingress_locals="""
                Register<bit<8>, bit<8>>(4) cells;
                RegisterAction5<bit<8>, bit<8>, bit<8>>(cells) add = { };""",
        )
