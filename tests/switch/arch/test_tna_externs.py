"""TNA's externs. Both engines do the same."""

from __future__ import annotations

import zlib

import pytest
from tnaprograms import packet, source, switch

from gradplane.switch import CompileError, MeterConfig
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.runtime.entries import ActionData, Entry, GroupRef
from gradplane.switch.runtime.hashes import csum16
from gradplane.switch.runtime.profiles import Weighted

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])

TO_1 = "tm.ucast_egress_port = 1;"
FCS = 4


def refused(**parts: str) -> str:
    with pytest.raises(CompileError) as caught:
        switch("interpreter", **parts)
    return str(caught.value)


# -- registers ----------------------------------------------------------------------------------

OWN_INDEX = """
    Register<bit<8>, bit<2>>(3) cells;
    RegisterAction<bit<8>, bit<2>, bit<8>>(cells) put = {
        void apply(inout bit<8> value, out bit<8> rv) { rv = 1; value = h.a.y; }
        void overflow(inout bit<8> value, out bit<8> rv) { rv = 0xff; }
    };
    RegisterAction<bit<8>, bit<2>, bit<8>>(cells) take = {
        void apply(inout bit<8> value, out bit<8> rv) { rv = value; }
        void underflow(inout bit<8> value, out bit<8> rv) { rv = 0xee; }
    };"""


def own_index(engine: str, put: str, take: str) -> list[int]:
    """Return what a switch gives for four puts, two takes, a put and four takes."""
    sw = switch(
        engine,
        include="t2na.p4",
        ingress_locals=OWN_INDEX,
        ingress=TO_1
        + f"""
        if (h.a.x == 1) {{ h.a.z = put.{put}(); }} else {{ h.a.z = take.{take}(); }}""",
    )
    steps = [(1, 10), (1, 11), (1, 12), (1, 13), (2, 0), (2, 0), (1, 14), *[(2, 0)] * 4]
    return [sw.process(0, packet(x=x, y=y))[0][1][3] for x, y in steps]


@engines
def test_a_register_is_a_stack_or_a_queue(engine: str) -> None:
    assert own_index(engine, "push", "pop") == [
        1, 1, 1, 0xFF, 12, 11, 1, 14, 10, 0xEE, 0xEE,
    ]  # fmt: skip
    assert own_index(engine, "enqueue", "dequeue") == [
        1, 1, 1, 0xFF, 10, 11, 1, 12, 14, 0xEE, 0xEE,
    ]  # fmt: skip


@engines
@pytest.mark.parametrize("include", ["tna.p4", "t2na.p4"])
def test_a_log_goes_from_cell_to_cell(engine: str, include: str) -> None:
    sw = switch(
        engine,
        include=include,
        ingress=TO_1 + "write.execute_log();",
        ingress_locals="""
        Register<bit<8>, bit<2>>(3) cells;
        RegisterAction<bit<8>, bit<2>, bit<8>>(cells) write = {
            void apply(inout bit<8> value) { value = h.a.y; }
        };""",
    )
    for y in range(1, 6):
        sw.process(0, packet(y=y))
    assert list(sw.register("cells").values) == [4, 5, 3]
    assert [r.preamble.name for r in build_p4info(sw.program).registers] == ["ingress.cells"]


REGISTERS = """
    Register<bit<8>, bit<4>>(16, 3) plain;
    RegisterAction<bit<8>, bit<4>, bit<8>>(plain) add = {
        void apply(inout bit<8> value, out bit<8> rv) { value = value |+| h.a.y; rv = value; }
    };
    RegisterAction<bit<8>, bit<4>, bit<8>>(plain) swap = {
        void apply(inout bit<8> value, out bit<8> rv) { rv = value; value = h.a.y; }
    };
    Register<bit<8>, bit<4>>(16) reached;
    RegisterParam<bit<8>>(10) limit;
    RegisterAction<bit<8>, bit<4>, bool>(reached) above = {
        void apply(inout bit<8> value, out bool rv) {
            if (value < limit.read()) { value = value + 1; rv = false; } else { rv = true; }
        }
    };
"""


@engines
def test_a_register_action_reads_changes_and_writes_a_cell(engine: str) -> None:
    sw = switch(
        engine, ingress_locals=REGISTERS,
        ingress=TO_1 + """
            if (h.a.kind == 0) { h.a.z = add.execute(h.a.x[3:0]); }
            else { h.a.z = swap.execute(h.a.x[3:0]); }
            if (above.execute(0)) { h.a.kind = 0xFF; }""",
    )  # fmt: skip
    assert sw.process(0, packet(0, 2, 5)) == [(1, packet(0, 2, 5, 8))]
    assert sw.process(0, packet(0, 2, 250)) == [(1, packet(0, 2, 250, 255))]  # it saturates
    assert sw.process(0, packet(1, 2, 7)) == [(1, packet(1, 2, 7, 255))]
    assert sw.process(0, packet(1, 2, 1)) == [(1, packet(1, 2, 1, 7))]
    assert sw.state.registers["ingress.plain"].read(2) == 1
    assert sw.state.registers["ingress.plain"].read(3) == 3
    sw.state.registers["ingress.limit"].write(0, 4)
    assert sw.process(0, packet(0, 3, 0)) == [(1, packet(0xFF, 3, 0, 3))]


@engines
def test_a_register_action_works_on_pairs_and_in_actions_of_tables(engine: str) -> None:
    sw = switch(
        engine, types="struct pair_t { int<16> low; bit<16> high; }",
        ingress_locals="""
            Register<pair_t, bit<1>>(2, {-2, 7}) pairs;
            RegisterAction<pair_t, bit<1>, bit<8>>(pairs) step = {
                void apply(inout pair_t value, out bit<8> rv) {
                    if (value.low < 0) { value.low = value.low + 1; rv = 1; }
                    else { value.high = value.high + (bit<16>) h.a.y; rv = value.high[7:0]; }
                }
            };
            action count() { h.a.z = step.execute(1); }
            table t { key = { h.a.kind : exact; } actions = { count; NoAction; }
                      const default_action = NoAction; const entries = { 1 : count(); } }""",
        ingress=TO_1 + "t.apply();",
    )  # fmt: skip
    seen = [sw.process(0, packet(1, 0, 3))[0][1][3] for _ in range(4)]
    assert seen == [1, 1, 10, 13]
    assert sw.process(0, packet(2)) == [(1, packet(2))]
    assert sw.state.registers["ingress.pairs"].read(1) == 13
    assert sw.state.registers["ingress.pairs"].read(0) == 0xFFFE_0007


@engines
def test_a_register_action_without_a_result(engine: str) -> None:
    sw = switch(
        engine, ingress_locals="""
            Register<bit<8>, bit<1>>(1) r;
            RegisterAction<bit<8>, bit<1>, void>(r) store = {
                void apply(inout bit<8> value) { value = h.a.x; }
            };
            RegisterAction<bit<8>, bit<1>, bit<8>>(r) load = {
                void apply(inout bit<8> value, out bit<8> rv) { rv = value; }
            };""",
        ingress=TO_1 + """
            if (h.a.kind == 1) { store.execute(0); } else { h.a.z = load.execute(0); }""",
    )  # fmt: skip
    assert sw.process(0, packet(1, 7)) == [(1, packet(1, 7))]
    assert sw.process(0, packet(2)) == [(1, packet(2, 0, 0, 7))]


def test_a_register_action_without_a_result_gives_no_value() -> None:
    message = refused(
        ingress_locals="""
            Register<bit<8>, bit<1>>(1) r;
            RegisterAction<bit<8>, bit<1>, void>(r) store = {
                void apply(inout bit<8> value) { value = h.a.x; }
            };""",
        ingress="h.a.z = store.execute(0);",
    )
    assert "this call returns no value" in message


@engines
def test_predicate_gives_one_bit_for_each_combination(engine: str) -> None:
    sw = switch(
        engine, ingress_locals="""
            Register<bit<8>, bit<1>>(1, 5) r;
            RegisterAction<bit<8>, bit<1>, bit<4>>(r) ask = {
                void apply(inout bit<8> value, out bit<4> rv) {
                    rv = this.predicate(value > h.a.x, value < h.a.y);
                }
            };""",
        ingress=TO_1 + "h.a.z = (bit<8>) ask.execute(0);",
    )  # fmt: skip
    cases = {(9, 0): 1, (0, 0): 2, (9, 9): 4, (0, 9): 8}
    assert {(x, y): sw.process(0, packet(0, x, y))[0][1][3] for x, y in cases} == cases


@engines
def test_predicate_without_conditions_gives_those_of_the_body(engine: str) -> None:
    """The conditions are in the text's order and compare the cell as it was before."""
    sw = switch(
        engine, ingress_locals="""
            Register<bit<8>, bit<1>>(1, 5) r;
            RegisterAction<bit<8>, bit<1>, bit<4>>(r) ask = {
                void apply(inout bit<8> value, out bit<4> rv) {
                    if (value > h.a.x) {
                        value = 0;
                    } else if (value < h.a.y || !(value > h.a.x)) {
                        value = 5;
                    }
                    rv = this.predicate();
                }
            };""",
        ingress=TO_1 + "h.a.z = (bit<8>) ask.execute(0);",
    )  # fmt: skip
    register = sw.register("r")
    found = {}
    for x, y in ((9, 0), (0, 0), (9, 9), (0, 9)):
        register.write(0, 5)
        found[x, y] = sw.process(0, packet(0, x, y))[0][1][3], register.read(0)
    assert found == {(9, 0): (1, 5), (0, 0): (2, 0), (9, 9): (4, 5), (0, 9): (8, 0)}


def test_predicate_without_conditions_needs_comparisons_that_an_alu_makes_first() -> None:
    message = refused(
        ingress_locals="""
            Register<bit<8>, bit<1>>(1) r;
            RegisterAction<bit<8>, bit<1>, bit<4>>(r) ask = {
                void apply(inout bit<8> value, out bit<4> rv) {
                    bit<8> sum = value + h.a.x;
                    if (sum > 3) { value = 0; }
                    rv = this.predicate();
                }
            };""",
        ingress="h.a.z = (bit<8>) ask.execute(0);",
    )
    assert "reads what the body computes" in message and "as its arguments" in message


@engines
@pytest.mark.parametrize("cell", ["bit<16>", "int<8>", "bit<1>", "bit<128>"])
def test_clear_sets_all_cells_of_the_pipe(engine: str, cell: str) -> None:
    sw = switch(
        engine, include="t2na.p4",
        ingress_locals=f"""
            Register<{cell}, bit<8>>(5, 1) r; Register<{cell}, bit<8>>(5, 1) beside;""",
        ingress=TO_1 + f"if (h.a.x == 1) {{ r.clear(({cell}) (bit<{cell[4:-1]}>) h.a.y); }}",
    )  # fmt: skip
    sw.process(0, packet(x=0, y=7))
    assert list(sw.register("r").read(i) for i in range(5)) == [1] * 5
    sw.process(0, packet(x=1, y=0xFD))
    expected = {"bit<16>": 0xFD, "int<8>": -3, "bit<1>": 1, "bit<128>": 0xFD}[cell]
    assert [sw.register("r").read(i) for i in range(5)] == [expected] * 5
    assert [sw.register("beside").read(i) for i in range(5)] == [1] * 5
    assert [r.read(0) for r in sw.state.registers["ingress.r"].copies][1:] == [1] * 3


def test_a_polynomial_of_more_than_64_bits_is_refused() -> None:
    message = refused(
        ingress_locals="""
            CRCPolynomial<bit<65>>(7, true, false, false, 0, 0) long;
            Hash<bit<16>>(HashAlgorithm_t.CUSTOM, long) own;""",
        ingress="h.a.x = own.get({h.a.y})[7:0];",
    )
    assert "CRCPolynomial of bit<65>: it must have up to 64 bits" in message


def test_clear_is_an_access() -> None:
    message = refused(
        include="t2na.p4",
        ingress_locals="Register<bit<16>, bit<8>>(5) r;",
        ingress="r.write(0, 1); r.clear(0);",
    )
    assert "a second time" in message


SWEPT = """
    Register<{0}, bit<8>>({1}, 3) r; Register<{0}, bit<8>>({1}, 3) beside;
    RegisterAction<{0}, bit<8>, {0}>(r) age = {{
        void apply(inout {0} value, out {0} rv) {{
            rv = value;
            if (value > 0) {{ value = value - 1; }}
        }}
    }};"""


@engines
@pytest.mark.parametrize("cell", ["bit<16>", "int<8>"])
def test_sweep_runs_the_action_on_all_cells_of_the_pipe(engine: str, cell: str) -> None:
    sw = switch(
        engine, include="t2na.p4", ingress_locals=SWEPT.format(cell, 5),
        ingress=TO_1 + "if (h.a.x == 1) { age.sweep(); } else { h.a.z = (bit<8>) age.execute(4); }",
    )  # fmt: skip
    sw.register("r").write(1, 0)
    assert sw.process(0, packet(x=0)) == [(1, packet(x=0, z=3))]
    assert sw.process(0, packet(x=1)) == [(1, packet(x=1))]
    assert [sw.register("r").read(i) for i in range(5)] == [2, 0, 2, 2, 1]
    assert [sw.register("beside").read(i) for i in range(5)] == [3] * 5
    assert [r.read(0) for r in sw.state.registers["ingress.r"].copies][1:] == [3] * 3


def test_sweep_is_an_access() -> None:
    message = refused(
        include="t2na.p4", ingress_locals=SWEPT.format("bit<16>", 5),
        ingress="age.sweep(0); age.execute(0);",
    )  # fmt: skip
    assert "a packet may access register ingress.r a second time here" in message


def test_a_register_that_is_too_large_to_sweep_is_refused() -> None:
    message = refused(
        include="t2na.p4", ingress_locals=SWEPT.format("bit<16>", (1 << 20) + 1),
        ingress="age.sweep();",
    )  # fmt: skip
    assert "ingress.age.sweep: ingress.r has 1048577 cells" in message
    assert "at most 1048576 can be swept" in message


@engines
def test_tofino_2_gives_several_results_and_extremes(engine: str) -> None:
    sw = switch(
        engine, include="t2na.p4", headers="a_t b;",
        ingress_locals="""
            Register<bit<32>, bit<1>>(1, 0x05F00307) r;
            RegisterAction2<bit<32>, bit<1>, bit<8>, bit<8>>(r) least = {
                void apply(inout bit<32> value, out bit<8> rv1, out bit<8> rv2) {
                    bit<4> where;
                    rv1 = this.min8(value, (bit<16>) h.a.x, where);
                    rv2 = (bit<8>) where;
                }
            };
            Register<bit<32>, bit<1>>(1, 0x05F00307) s;
            RegisterAction<bit<32>, bit<1>, bit<16>>(s) most = {
                void apply(inout bit<32> value, out bit<16> rv) { rv = this.max16(value, 8w3); }
            };""",
        ingress=TO_1 + "h.a.y = least.execute(0, h.a.z);"
                "h.b.setValid(); h.b.kind = most.execute(0)[15:8];",
    )  # fmt: skip
    found = {x: sw.process(0, packet(0, x))[0][1][2:5] for x in (15, 5, 12, 0, 4)}
    assert found == {15: b"\x03\x01\x05", 5: b"\x07\x00\x05", 12: b"\x05\x03\x05",
                     0: b"\x00\x00\x05", 4: b"\xf0\x02\x05"}  # fmt: skip


@engines
def test_a_register_may_be_read_and_written_without_an_action(engine: str) -> None:
    sw = switch(
        engine, ingress_locals="""
            Register<bit<16>, bit<8>>(4) r;
            action exchange() { bit<16> old = r.read(h.a.x); r.write(h.a.x, old + 1);
                                h.a.y = old[7:0]; }""",
        ingress=TO_1 + "exchange();",
    )  # fmt: skip
    assert [sw.process(0, packet(x=3))[0][1][2] for _ in range(3)] == [0, 1, 2]
    assert sw.process(0, packet(x=9)) == [(1, packet(x=9))]  # beyond the end


DIRECT = """
    DirectRegister<bit<16>>(5) seen;
    DirectRegisterAction<bit<16>, bit<16>>(seen) count = {
        void apply(inout bit<16> value, out bit<16> rv) { value = value + 1; rv = value; }
    };
    action hit() { h.a.y = count.execute()[7:0]; }
    table t { key = { h.a.x : exact; } actions = { hit; } registers = seen;
              const default_action = hit; }
"""


@engines
def test_a_direct_register_has_a_cell_for_each_entry(engine: str) -> None:
    sw = switch(engine, ingress_locals=DIRECT, ingress=TO_1 + "t.apply();")
    table = sw.state.tables["ingress.t"]
    entries = [Entry(((x,),), ActionData(0, ())) for x in (1, 2)]
    for entry in entries:
        table.insert(entry)
    seen = [sw.process(0, packet(x=x))[0][1][2] for x in (1, 1, 2, 9, 1, 9)]
    assert seen == [6, 7, 6, 6, 8, 7]
    assert [e.register.read(0) for e in entries if e.register is not None] == [8, 6]
    table.modify(Entry(((1,),), ActionData(0, ())))
    assert sw.process(0, packet(x=1))[0][1][2] == 9
    sw.reset()
    assert sw.process(0, packet(x=9))[0][1][2] == 6


def test_direct_externs_belong_to_the_actions_of_their_table() -> None:
    message = refused(ingress_locals=DIRECT, ingress="h.a.y = count.execute()[7:0];")
    assert "DirectRegister.read may be called in an action of the table that owns" in message
    assert "the table has the property registers = ingress.seen" in message


TWICE = """
    Register<bit<8>, bit<1>>(1) r;
    RegisterAction<bit<8>, bit<1>, bit<8>>(r) one = {
        void apply(inout bit<8> value) { value = value + 1; } };
    RegisterAction<bit<8>, bit<1>, bit<8>>(r) two = {
        void apply(inout bit<8> value) { value = value + 2; } };
    action first() { one.execute(0); }
    action second() { two.execute(0); }
    table t { key = { h.a.x : exact; } actions = { first; second; NoAction; } }
"""


def test_a_packet_accesses_a_register_once() -> None:
    message = refused(ingress_locals=TWICE, ingress=TO_1 + "t.apply();\none.execute(0);")
    assert "error: a packet may access register ingress.r a second time here" in message
    assert "the first access is at" in message
    message = refused(
        ingress_locals=TWICE,
        ingress="if (h.a.x == 1) { exit; } one.execute(0);if (h.a.y == 1) { two.execute(0); }",
    )
    assert "a second time here" in message
    message = refused(ingress_locals="Register<bit<8>, bit<1>>(1) r;",
                      ingress="r.write(0, 1); h.a.x = r.read(0);")  # fmt: skip
    assert "a second time here" in message


def test_ways_that_exclude_each_other_may_access_one_register() -> None:
    switch(
        "interpreter",
        ingress_locals=TWICE,
        ingress="""
        if (h.a.x == 1) { one.execute(0); } else if (h.a.x == 2) { two.execute(0); exit; }
        else { t.apply(); }""",
    )
    switch(
        "interpreter",
        ingress_locals=TWICE,
        ingress="""
        if (h.a.x == 1) { one.execute(0); exit; }
        switch (t.apply().action_run) { NoAction : { h.a.x = 1; } default : { h.a.x = 2; } }""",
    )


def alu(body: str, cell: str = "bit<32>") -> str:
    """Return a register, and an action of this body on it."""
    return f"""Register<{cell}, bit<1>>(1) r;
        RegisterAction<{cell}, bit<1>, {cell}>(r) act = {{
            void apply(inout {cell} value, out {cell} rv) {{ {body} }} }};"""


ACT = TO_1 + "act.execute(0);"
NUMBERS = {"metadata": "bit<32> i; bit<32> j; bit<32> k; bit<48> t;"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("value = value * 3;", "a stateful ALU cannot multiply (*)"),
        ("value = value << 1;", "a stateful ALU cannot shift (<<)"),
        ("if (value >> 2 == 1) { rv = 1; }", "a stateful ALU cannot shift (>>)"),
        ("value = value + (m.i >> 2);", "a stateful ALU cannot shift (>>)"),
        ("value = value + (bit<32>) (m.t >> 20);", "a stateful ALU cannot shift (>>)"),
        ("value = value + m.i - m.j;", "a stateful ALU makes one operation for each number"),
        ("if (value == 1) { rv = 1; } if (value == 2) { rv = 2; } if (value == 3) { rv = 3; }",
         "register action ingress.act makes more than 2 comparisons"),
        ("if (value < m.i) { value = m.j; } else { value = m.k; }",
         "register action ingress.act takes more than 2 numbers from the packet"),
        ("if (value < 1) { value = 1; } else if (value > 9) { value = 2; } else { value = 3; }",
         "register action ingress.act computes value in more than two ways"),
    ],
)  # fmt: skip
def test_a_body_that_the_stateful_alu_cannot_compute_is_refused(body: str, message: str) -> None:
    found = refused(ingress_locals=alu("\n" + body), ingress=ACT, **NUMBERS)
    assert message in found
    # At the line of the body.
    line = 2 + source(ingress_locals=alu("\n" + body), ingress=ACT, **NUMBERS).split(body)[0].count(
        "\n"
    )
    assert f"test.p4:{line - 1}:" in found


@pytest.mark.parametrize(
    "body",
    [
        "if (value - m.i > 0 && value + m.j < 9) { value = value |+| m.i; } rv = value;",
        # A slice, as the compiler for the chip reads it: of a time stamp, say.
        "bit<32> now = (bit<32>) (m.t >> 16); rv = now |-| value; value = now |+| 100;",
        "if ((bit<32>) (m.t >> 10) > value) { value = (bit<32>) (m.t << 4); }",
        "if (value >= m.i) { rv = value; } if (value < m.i) { value = m.i; }",
        "value = m.i; if (rv == 0) { value = value ^ m.j; }",
        "if (value == m.i) { value = value; } else if (value == 9) { value = 0; }"
        " else { value = value + 1; }",
        "if (m.i == 2) { value = m.j; } else if (m.i == 1) { value = min(value, m.j); }",
        "value = m.i[15:0] ++ m.j[15:0]; rv = value + m.k;",
    ],
)
def test_a_body_that_the_stateful_alu_computes_is_accepted(body: str) -> None:
    switch("interpreter", ingress_locals=alu(body), ingress=ACT, **NUMBERS)


def test_bits_of_the_cell_are_not_concatenated() -> None:
    body = "value = value[15:0] ++ m.j[15:0];"
    found = refused(ingress_locals=alu(body), ingress=ACT, **NUMBERS)
    assert "a stateful ALU cannot concatenate (++)" in found


def test_a_math_unit_takes_the_place_of_no_number_from_the_packet() -> None:
    locals_ = """MathUnit<bit<32>>(MathOp_t.SQR, 1) square;
        Register<bit<32>, bit<1>>(1) r;
        RegisterAction<bit<32>, bit<1>, bit<32>>(r) act = {
            void apply(inout bit<32> value) {
                if (m.i == 0) { value = value + square.execute(value); } else { value = m.j; }
            } };"""
    switch("interpreter", ingress_locals=locals_, ingress=ACT, **NUMBERS)


@engines
def test_an_index_without_a_type_is_a_number(engine: str) -> None:
    """`_` as the type of the index, and a literal: as many published programs are written."""
    sw = switch(
        engine,
        ingress_locals="""Register<bit<8>, _>(4) r;
            RegisterAction<_, _, bit<8>>(r) count = {
                void apply(inout bit<8> value, out bit<8> rv) { value = value + 1; rv = value; } };
            Counter<bit<32>, _>(2, CounterType_t.PACKETS) seen;""",
        ingress=TO_1 + "h.a.x = count.execute(3); seen.count(1);",
    )
    assert [sw.process(1, packet())[0][1][1] for _ in range(2)] == [1, 2]
    assert sw.state.registers["ingress.r"].read(3) == 2
    assert sw.counter("ingress.seen").read(1)[0] == 2


@engines
def test_a_direct_register_without_a_table_is_one_cell(engine: str) -> None:
    sw = switch(
        engine,
        ingress_locals="""DirectRegister<bit<8>>(40) r;
            DirectRegisterAction<bit<8>, bit<8>>(r) count = {
                void apply(inout bit<8> value, out bit<8> rv) { value = value + 1; rv = value; } };
            """,
        ingress=TO_1 + "h.a.x = count.execute();",
    )
    assert [sw.process(1, packet())[0][1][1] for _ in range(2)] == [41, 42]
    assert sw.register("ingress.r").read(0) == 42


def test_tofino_2_compares_more_and_has_wider_cells() -> None:
    body = "if (value == 1 || value == 2 || value == 3 || value == 4) { rv = 1; }"
    switch("interpreter", include="t2na.p4", ingress_locals=alu(body, "bit<64>"), ingress=ACT)
    assert "more than 2 comparisons" in refused(ingress_locals=alu(body), ingress=ACT)


@pytest.mark.parametrize("cell", ["bit<7>", "bit<24>", "bit<128>", "int<48>"])
def test_a_cell_of_another_width_is_refused(cell: str) -> None:
    message = refused(ingress_locals=alu("rv = value;", cell), ingress=ACT)
    assert f"Register ingress.r: TNA has no cells of {cell}" in message
    assert "a cell is bit or int of 1, 8, 16, 32, 64 bits, or a struct of one or two" in message


# -- parsers ------------------------------------------------------------------------------------


@engines
def test_a_parser_counter_ends_a_loop(engine: str) -> None:
    sw = switch(
        engine, types="header item_t { bit<8> v; }", headers="item_t[6] items;",
        parser_locals="ParserCounter() left;",
        parser="pkt.extract(h.a); left.set(h.a.x, 8w15, 8w1, 3w2, 8w1); transition more;",
        states="""state more { transition select(left.is_zero()) { true : accept;
                      false : item; } }
                  state item { pkt.extract(h.items.next); left.decrement(1);
                      transition select(left.is_negative()) { true : reject; default : more; } }""",
        ingress=TO_1 + "h.items[0].v = 99; h.items[2].v = 99;",
    )  # fmt: skip
    payload = bytes(range(10))
    assert sw.process(0, packet(x=0, payload=payload)) == [
        (1, packet(x=0, payload=bytes([99, *range(1, 10)])))
    ]
    assert sw.process(0, packet(x=4, payload=payload)) == [
        (1, packet(x=4, payload=bytes([99, 1, 99, *range(3, 10)])))
    ]
    assert sw.process(0, packet(x=16, payload=payload)) == []  # above the most that may be loaded


CHECKSUMS = {
    "types": "header sum_t { bit<16> first; bit<16> sum; bit<16> last; }",
    "headers": "sum_t s;",
    "metadata": "bool wrong; bit<16> rest;",
    "parser_locals": "Checksum() whole; Checksum() part;",
}


@engines
def test_checksums_are_verified_and_computed(engine: str) -> None:
    sw = switch(
        engine, **CHECKSUMS,
        parser="pkt.extract(h.a); pkt.extract(h.s); whole.add(h.s); m.wrong = whole.verify();"
               "transition accept;",
        ingress=TO_1 + "h.a.x = m.wrong ? 8w1 : 0; h.s.first = h.s.first + 1;",
        deparser_locals="Checksum() again;",
        deparser="h.s.sum = again.update({h.s.first, h.s.last}, true);",
    )  # fmt: skip
    sums = [0x1234, 0, 0xFFF0]
    for right in (True, False):
        whole = b"".join(n.to_bytes(2, "big") for n in (sums[0], sums[2]))
        sums[1] = csum16(whole) ^ (0 if right else 1)
        data = b"".join(n.to_bytes(2, "big") for n in sums)
        ((_, out),) = sw.process(0, packet(payload=data))
        assert out[1] == int(not right)
        assert csum16(out[4:]) == 0
        assert out[4:6] == b"\x12\x35"


@engines
def test_a_residual_carries_the_rest_of_a_packet_into_a_new_checksum(engine: str) -> None:
    """The sum covers bytes that are not parsed; header `s` is extracted after the call."""
    sw = switch(
        engine, **CHECKSUMS,
        parser="pkt.extract(h.a); part.subtract({h.a.kind, h.a.x, h.a.y, h.a.z}); transition n;",
        states="state n { part.subtract_all_and_deposit(m.rest); pkt.extract(h.s);"
               "transition accept; }",
        ingress=TO_1 + "h.s.first = m.rest;",
    )  # fmt: skip
    numbers = [0x0102, 0x0304, 0x1111, 0x2222, 0x3333]
    ((_, out),) = sw.process(0, b"".join(n.to_bytes(2, "big") for n in numbers))
    expected = sum(n ^ 0xFFFF for n in numbers) % 0xFFFF
    assert int.from_bytes(out[4:6], "big") == expected


# -- functions, hashes, random numbers ----------------------------------------------------------


@engines
def test_functions(engine: str) -> None:
    sw = switch(engine, metadata="bit<8> shifted;", ingress=TO_1 + """
        h.a.kind = min(h.a.x, h.a.y); h.a.z = max(h.a.x, h.a.y);
        funnel_shift_right(m.shifted, h.a.x, h.a.y, 4);
        h.a.x = m.shifted; h.a.y = (bit<8>) (sizeInBytes(h.a) + sizeInBits(h.a));""")  # fmt: skip
    assert sw.process(0, packet(0, 0x21, 0x43)) == [(1, packet(0x21, 0x14, 36, 0x43))]


def _crc(data: bytes, width: int, polynomial: int, initial: int, final: int, reflect: bool) -> int:
    """Compute a CRC bit by bit."""
    remainder, mask = initial, (1 << width) - 1
    for byte in data:
        for i in range(8):
            bit = byte >> i & 1 if reflect else byte >> 7 - i & 1
            top = remainder >> width - 1 ^ bit
            remainder = (remainder << 1 & mask) ^ (polynomial if top else 0)
    if reflect:
        remainder = int(f"{remainder:0{width}b}"[::-1], 2)
    return remainder ^ final


@engines
def test_hashes(engine: str) -> None:
    sw = switch(
        engine, types="header out_t { bit<8> c8; bit<16> c16; bit<32> c32; bit<64> c64; bit<8> x8;"
                      "bit<16> x16; bit<32> x32; bit<16> own; bit<8> id; bit<24> low; }",
        headers="out_t o;", ingress_locals="""
            CRCPolynomial<bit<16>>(0x1021, false, false, false, 0xFFFF, 0x00FF) polynomial;
            CRCPolynomial<bit<32>>(0x04C11DB7, true, false, false, 0xFFFFFFFF, 0xFFFFFFFF) usual;
            Hash<bit<8>>(HashAlgorithm_t.CRC8) c8; Hash<bit<16>>(HashAlgorithm_t.CRC16) c16;
            Hash<bit<32>>(HashAlgorithm_t.CRC32) c32; Hash<bit<64>>(HashAlgorithm_t.CRC64) c64;
            Hash<bit<8>>(HashAlgorithm_t.XOR8) x8; Hash<bit<16>>(HashAlgorithm_t.XOR16) x16;
            Hash<bit<32>>(HashAlgorithm_t.XOR32) x32;
            Hash<bit<16>>(HashAlgorithm_t.CUSTOM, polynomial) own;
            Hash<bit<8>>(HashAlgorithm_t.IDENTITY) id;
            Hash<bit<24>>(HashAlgorithm_t.CUSTOM, usual) low;""",
        ingress=TO_1 + """h.o.setValid();
            h.o.c8 = c8.get({h.a.kind, h.a.x, h.a.y}); h.o.c16 = c16.get(h.a);
            h.o.c32 = c32.get(h.a); h.o.c64 = c64.get(h.a); h.o.x8 = x8.get(h.a);
            h.o.x16 = x16.get(h.a); h.o.x32 = x32.get({h.a.kind, h.a.x, h.a.y, h.a.z, h.a.x});
            h.o.own = own.get(h.a); h.o.id = id.get({h.a.x[3:0], h.a.y}); h.o.low = low.get(h.a);
            """,
    )  # fmt: skip
    data = packet(0x12, 0x34, 0x56, 0x9A)
    ((_, out),) = sw.process(0, data)
    expected = [
        (8, _crc(data[:3], 8, 0x07, 0, 0, False)),
        (16, _crc(data, 16, 0x8005, 0, 0, True)),
        (32, zlib.crc32(data)),
        (64, _crc(data, 64, 0x42F0E1EBA9EA3693, 0, 0, False)),
        (8, 0x12 ^ 0x34 ^ 0x56 ^ 0x9A),
        (16, 0x1234 ^ 0x569A),
        (32, 0x1234569A ^ 0x34000000),
        (16, _crc(data, 16, 0x1021, 0xFFFF, 0x00FF, False)),
        (8, 0x56),
        (24, zlib.crc32(data) & 0xFFFFFF),
    ]
    assert out[4:] == b"".join(value.to_bytes(bits // 8, "big") for bits, value in expected)


def test_random_numbers_are_the_same_for_a_seed() -> None:
    parts = {"ingress_locals": "Random<bit<8>>() r;", "ingress": TO_1 + "h.a.x = r.get();"}
    runs = [
        [sw.process(0, packet())[0][1][1] for _ in range(30)]
        for sw in (switch("jit", seed=5, **parts), switch("interpreter", seed=5, **parts))
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 15


# -- counters, meters ---------------------------------------------------------------------------

COUNTERS = """
    Counter<bit<64>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES) c;
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) d;
    action hit() { d.count(8); }
    action miss() { d.count(); }
    table t { key = { h.a.kind : exact; } actions = { hit; miss; } counters = d;
              const default_action = miss; }
"""


@engines
def test_counters_count_bytes_of_the_wire_less_an_adjustment(engine: str) -> None:
    sw = switch(engine, ingress_locals=COUNTERS,
                ingress=TO_1 + "t.apply(); c.count(h.a.x, (bit<32>) h.a.y);")  # fmt: skip
    table = sw.state.tables["ingress.t"]
    entry = Entry(((1,),), ActionData(0, ()))
    table.insert(entry)
    sw.process(0, packet(1, 2, 3, payload=bytes(16)))
    sw.process(0, packet(2, 2, 200))
    sw.process(0, packet(2, 9))
    assert sw.state.counters["ingress.c"].read(2) == (2, 20 + FCS - 3)
    assert (entry.counter.packets, entry.counter.bytes) == (1, 20 + FCS - 8)
    assert (table.default_counter.packets, table.default_counter.bytes) == (2, 2 * (4 + FCS))


@engines
def test_meters_colour_and_take_the_colour_before(engine: str) -> None:
    sw = switch(
        engine, ingress_locals="""
            Meter<bit<1>>(2, MeterType_t.PACKETS) usual;
            Meter<bit<1>>(2, MeterType_t.PACKETS, 30, 20, 10) own;""",
        ingress=TO_1 + """h.a.y = usual.execute(0, (MeterColor_t) h.a.x);
                          h.a.z = own.execute(1, 32w0);""",
    )  # fmt: skip
    assert sw.process(0, packet()) == [(1, packet(0, 0, 0, 10))]  # not configured: green
    for name in ("usual", "own"):
        for i in range(2):
            config = MeterConfig(cir=1, cburst=1, pir=1, pburst=2)
            sw.state.meters[f"ingress.{name}"].write(i, config, 0)
    seen = [tuple(sw.process(0, packet())[0][1][2:]) for _ in range(3)]
    assert seen == [(0, 10), (1, 20), (3, 30)]
    assert sw.process(0, packet(x=3))[0][1][2] == 3


# -- tables -------------------------------------------------------------------------------------


@engines
def test_a_selector_takes_its_profile_and_its_hash(engine: str) -> None:
    sw = switch(
        engine, ingress_locals="""
            ActionProfile(64) members;
            Hash<bit<14>>(HashAlgorithm_t.CRC16) spread;
            ActionSelector(members, spread, SelectorMode_t.FAIR, 8, 4) groups;
            action send(PortId_t port) { tm.ucast_egress_port = port; }
            table t { key = { h.a.kind : exact; h.a.x : selector; } actions = { send; NoAction; }
                      implementation = groups; }""",
        ingress="t.apply();",
    )  # fmt: skip
    profile = sw.state.profiles["ingress.groups"]
    assert (profile.size, profile.algorithm, profile.output_width) == (64, "crc16", 14)
    for member in range(1, 4):
        profile.add_member(member, ActionData(0, (member,)))
    profile.add_group(1, [Weighted(member, 1) for member in range(1, 4)], 8)
    sw.state.tables["ingress.t"].insert(Entry(((1,),), GroupRef(1)))
    ports = [sw.process(0, packet(1, x))[0][0] for x in range(60)]
    assert set(ports) == {1, 2, 3}
    assert ports == [sw.process(0, packet(1, x))[0][0] for x in range(60)]


@engines
def test_algorithmic_tables_match_as_others(engine: str) -> None:
    sw = switch(
        engine, ingress_locals="""
            Alpm(number_partitions = 1024) alpm;
            action send(PortId_t port) { tm.ucast_egress_port = port; }
            table t { key = { h.a.x : lpm; } actions = { send; } implementation = alpm; size = 64;
                      const default_action = send(1);
                      const entries = { 0x10 &&& 0xF0 : send(2); 0x12 : send(3); } }""",
        ingress="t.apply();",
    )  # fmt: skip
    assert [sw.process(0, packet(x=x))[0][0] for x in (0, 0x10, 0x12, 0x20)] == [1, 2, 3, 1]
