"""TNA's externs in their rarer forms, in both engines."""

from __future__ import annotations

import pytest
from tnaprograms import packet, switch

from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.runtime.meters import MeterConfig
from gradplane.switch.runtime.profiles import Weighted
from gradplane.switch.source import CompileError
from gradplane.switch.switch import Switch

ENGINES = pytest.mark.parametrize("engine", ["interpreter", "jit"])
SEND = "tm.ucast_egress_port = 1;"


def first(made: Switch, *fields: int) -> bytes:
    ((_, data),) = made.process(0, packet(*fields))
    return data


SELECTOR = """
    CRCPolynomial<bit<16>>(16w0x1021, false, false, false, 16w0xffff, 16w0) polynomial;
    Hash<bit<66>>(HashAlgorithm_t.CUSTOM, polynomial) spread;
    ActionProfile(16) members;
    ActionSelector(members, spread, SelectorMode_t.RESILIENT, 8, 4) groups;
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    table balanced {
        key = { h.a.kind : exact; h.a.x : selector; h.a.y : selector; }
        actions = { send; NoAction; }
        implementation = groups;
    }
"""


@ENGINES
def test_a_selector_hashes_by_a_polynomial_which_may_be_replaced(engine: str) -> None:
    made = switch(engine=engine, ingress_locals=SELECTOR, ingress="balanced.apply();")
    profile = made.state.profiles["ingress.groups"]
    table = made.table("balanced")
    for number in range(5):
        profile.add_member(number, ActionData(0, (number,)))
    profile.add_group(1, [Weighted(number) for number in range(5)])
    table.add({"h.a.kind": 0}, group=1)
    own, other = Crc(16, 0x1021, 0xFFFF), Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True)
    for crc in (own, other):
        if crc is other:
            made.state.hashes["ingress.spread"].set(other)
        for x in range(6):
            ((port, _),) = made.process(0, packet(0, x, 200))
            assert port == crc(bytes([x, 200])) % 5, (crc, x)


@ENGINES
def test_entries_in_the_source_give_a_selectors_fields_no_values(engine: str) -> None:
    entries = "const entries = { (1, _) : send(3); (2, 7) : send(4); }"
    made = switch(
        engine=engine,
        ingress_locals=SELECTOR.replace("h.a.y : selector; }", f"}} {entries}"),
        ingress="balanced.apply();",
    )
    assert [made.process(0, packet(kind, 9))[0][0] for kind in (1, 2)] == [3, 4]


@ENGINES
def test_hashes_and_random_numbers_may_have_more_than_64_bits(engine: str) -> None:
    made = switch(
        engine=engine,
        ingress_locals="""
            Hash<bit<96>>(HashAlgorithm_t.CRC64) wide;
            Hash<bit<24>>(HashAlgorithm_t.CRC64) narrow;
            Random<bit<128>>() chance;""",
        ingress=f"""
            bit<96> w = wide.get({{ h.a.kind }});
            h.a.x = (bit<8>)(bit<1>)(w[95:64] == 0 && w[23:0] == narrow.get({{ h.a.kind }}));
            bit<128> r = chance.get();
            h.a.y = r[127:120];
            h.a.z = r[7:0];
            {SEND}""",
    )
    seen = [first(made, 3) for _ in range(8)]
    assert {data[1] for data in seen} == {1}
    assert len({data[2] for data in seen}) > 4
    assert len({data[3] for data in seen}) > 4


@ENGINES
def test_address_is_the_cells_index(engine: str) -> None:
    made = switch(
        engine=engine,
        include="t2na.p4",
        types="struct pair_t { bit<32> first; bit<32> second; }",
        ingress_locals="""
            Register<pair_t, bit<8>>(256) cells;
            RegisterAction<pair_t, bit<8>, bit<32>>(cells) find = {
                void apply(inout pair_t value, out bit<32> rv) {
                    if (value.first == 5) { rv = this.address(1); } else { rv = this.address(); }
                    value.first = 5;
                }
            };""",
        ingress=f"h.a.y = find.execute(h.a.x)[7:0]; {SEND}",
    )
    assert first(made, 0, 9)[2] == 9
    assert first(made, 0, 9)[2] == 9 * 2 + 1


@ENGINES
def test_a_minimum_comes_with_other_results(engine: str) -> None:
    made = switch(
        engine=engine,
        include="t2na.p4",
        ingress_locals="""
            Register<bit<128>, bit<8>>(16, 0x0908070605040302_1211100f0e0d0c0b) cells;
            MinMaxAction2<bit<128>, bit<8>, bit<8>, bit<8>>(cells) least = {
                void apply(inout bit<128> value, out bit<8> rv1, out bit<8> rv2) {
                    bit<4> at;
                    rv1 = this.min8(value, 16w0xfff0, at, 9s0);
                    rv2 = (bit<8>)at;
                }
            };""",
        ingress=f"bit<8> at; h.a.x = least.execute(h.a.kind, at); h.a.y = at; {SEND}",
    )
    assert first(made)[1:3] == bytes([2, 8])


@ENGINES
def test_an_action_may_have_no_result(engine: str) -> None:
    made = switch(
        engine=engine,
        ingress_locals="""
            Register<bit<8>, bit<8>>(16) cells;
            RegisterAction<bit<8>, bit<8>, void>(cells) count = {
                void apply(inout bit<8> value) { value = value + 1; }
            };""",
        ingress=f"count.execute(3); {SEND}",
    )
    first(made)
    assert made.state.registers["ingress.cells"].read(3) == 1


METER = """
    Meter<bit<8>>(16, MeterType_t.BYTES) police;
    DirectMeter(MeterType_t.BYTES) rate;
    action measure() { h.a.y = (bit<8>)rate.execute(adjust_byte_count = 4); }
    table rates { key = { h.a.kind : exact; } actions = { measure; } meters = rate; size = 4; }
"""


@ENGINES
def test_the_control_plane_adjusts_what_a_meter_measures(engine: str) -> None:
    made = switch(
        engine=engine,
        clock=lambda: 0,
        ingress_locals=METER,
        ingress=f"h.a.x = police.execute(0); rates.apply(); {SEND}",
    )
    made.table("rates").add({"h.a.kind": 0}, "measure")
    cell = MeterConfig(cir=0, cburst=100, pir=0, pburst=100)
    ways = [(None, 92), (-4, 96), (20, 72), (-50, 100)]
    for adjustment, left in ways:
        meter = made.state.meters["ingress.police"]
        meter.write(0, cell)
        made.state.byte_adjustments["ingress.police"].set(adjustment)
        assert first(made)[1] == 0
        assert meter.cell(0).committed == left, adjustment


def test_an_idle_timeout_may_be_an_extern() -> None:
    made = switch(
        include="t2na.p4",
        ingress_locals="""
            IdleTimeout() ages;
            table t { key = { h.a.x : exact; } actions = { NoAction; } idle_timeout = ages; }""",
        ingress=f"t.apply(); {SEND}",
    )
    assert made.state.tables["ingress.t"].table.support_timeout


def test_the_compilers_macros_are_defined() -> None:
    made = switch(
        types="""
            #if !defined(__p4c__) || COMPILER_VERSION < PACK_VERSION(9, 0, 0)
            #error "an old compiler"
            #endif""",
        ingress=SEND,
    )
    assert first(made, 1) == packet(1)


STATES = """
    Register<bit<1>, bit<16>>(16) states;
    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) spread;
    ActionProfile(16) members;
    ActionSelector(members, spread, SelectorMode_t.FAIR, states, 4, 4) groups;
    SelectorAction(groups) leave_out = {
        void apply(inout bit<1> value, out bit<1> rv) { rv = value; value = 0; }
    };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    table balanced {
        key = { h.a.kind : exact; h.a.x : selector; }
        actions = { send; NoAction; }
        implementation = groups;
    }
"""


@ENGINES
def test_the_data_plane_leaves_a_member_out(engine: str) -> None:
    made = switch(
        engine=engine,
        ingress_locals=STATES,
        ingress="""
            if (h.a.kind == 9) {
                h.a.y = (bit<8>)leave_out.execute((bit<32>)h.a.x); tm.ucast_egress_port = 100;
            } else { balanced.apply(); }""",
    )
    profile, table = made.state.profiles["ingress.groups"], made.table("balanced")
    for number in range(6):
        profile.add_member(number, ActionData(0, (number,)))
    profile.add_group(1, [Weighted(number) for number in (0, 1, 2)])
    profile.add_group(2, [Weighted(number) for number in (3, 4, 5)])
    table.add({"h.a.kind": 0}, group=2)

    def ports() -> list[int]:
        return [made.process(0, packet(0, x))[0][0] for x in range(6)]

    assert ports() == [3, 4, 5, 3, 4, 5]
    assert made.process(0, packet(9, 5)) == [(100, packet(9, 5, 1))]  # the second group's second
    assert ports() == [3, 5, 3, 5, 3, 5]
    assert made.process(0, packet(9, 5)) == [(100, packet(9, 5, 0))]
    profile.modify_group(2, [Weighted(number) for number in (3, 4)])
    assert ports() == [3, 4, 3, 4, 3, 4]
    with pytest.raises(TableError, match="register ingress.states has no 5 cells for group 3"):
        profile.add_group(3, [Weighted(number) for number in range(5)])


def test_a_selector_action_needs_a_register() -> None:
    with pytest.raises(CompileError, match="leave_out: its selector has no register"):
        switch(
            ingress_locals=STATES.replace("FAIR, states,", "FAIR,"),
            ingress=f"leave_out.execute(1); {SEND}",
        )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("rv = this.execute(0);", "RegisterAction.execute in the body of a register action"),
        ("rv = other.execute(0);", "RegisterAction.execute in the body of a register action"),
        ("rv = beside.read(0);", "register action ingress.add accesses a second register"),
        ("beside.write(0, value); rv = 0;", "ingress.add accesses a second register"),
    ],
)
def test_a_body_accesses_no_other_register(body: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        switch(
            ingress_locals=f"""
                Register<bit<8>, bit<8>>(4) cells;
                Register<bit<8>, bit<8>>(4) beside;
                RegisterAction<bit<8>, bit<8>, bit<8>>(beside) other = {{
                    void apply(inout bit<8> value, out bit<8> rv) {{ rv = value; }}
                }};
                RegisterAction<bit<8>, bit<8>, bit<8>>(cells) add = {{
                    void apply(inout bit<8> value, out bit<8> rv) {{ {body} }}
                }};""",
            ingress=f"h.a.x = add.execute(0); {SEND}",
        )
