"""TNA: tables and externs that each pipe has of its own, and packets that go through several pipes.
Both engines do the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tnaprograms import packet, source, switch

from gradplane.switch import Switch, SwitchError
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.meters import MeterConfig

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])

KINDS_OF_TABLES = """
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) seen;
    DirectCounter<bit<32>>(CounterType_t.PACKETS) hits;
    Meter<bit<8>>(4, MeterType_t.PACKETS) police;
    action set(bit<8> z) { h.a.z = z; hits.count(); }
    action miss() { h.a.z = 0xff; hits.count(); }
    table counted { key = { h.a.x : exact; h.a.y : ternary; } actions = { set; miss; }
                    const default_action = miss(); counters = hits; }
    action also(bit<8> y) { h.a.y = y; }
    table direct { key = { h.a.x : exact; } actions = { also; NoAction; }
                   default_action = NoAction; size = 256; }
    ActionProfile(8) members;
    action to(PortId_t port) { tm.ucast_egress_port = port; }
    table chosen { key = { h.a.kind : exact; } actions = { to; NoAction; }
                   implementation = members; }"""
APPLY = """
    tm.ucast_egress_port = 1;
    seen.count(h.a.x);
    if (h.a.kind == 9) { h.a.kind = police.execute(0); }
    counted.apply(); direct.apply(); chosen.apply();"""


def of_pipe(pipe: int, local: int = 1) -> int:
    return pipe << 7 | local


@engines
def test_pipes_share_tables_and_counters_until_they_are_told_not_to(engine: str) -> None:
    sw = switch(engine, ingress_locals=KINDS_OF_TABLES, ingress=APPLY)
    sw.table("counted").add({"h.a.x": 1}, "set", {"z": 5})
    assert sw.process(of_pipe(2), packet(x=1)) == [(1, packet(x=1, z=5))]
    assert sw.table("counted", pipe=3).state is sw.table("counted").state
    assert sw.counter("seen", pipe=2).read(1) == (1, 4 + 4)


@engines
def test_each_pipe_has_tables_counters_and_members_of_its_own(engine: str) -> None:
    sw = switch(engine, ingress_locals=KINDS_OF_TABLES, ingress=APPLY)
    for name in ("counted", "direct", "chosen", "seen"):
        sw.set_scope(name)
    for pipe in range(4):
        sw.table("counted", pipe).add({"h.a.x": 1}, "set", {"z": 10 + pipe})
        sw.table("direct", pipe).add({"h.a.x": 1}, "also", {"y": 20 + pipe})
        sw.profile("members", pipe).add_member(7, "to", {"port": 30 + pipe})
        sw.table("chosen", pipe).add({"h.a.kind": 0}, member=7)
    for pipe in (0, 3, 1, 1, 2):
        expected = packet(x=1, y=20 + pipe, z=10 + pipe)
        assert sw.process(of_pipe(pipe), packet(x=1)) == [(30 + pipe, expected)]
    counts = [next(sw.table("counted", pipe).state.entries()).counter for pipe in range(4)]
    assert [count.packets for count in counts] == [1, 2, 1, 1]
    assert [sw.counter("seen", pipe).read(1)[0] for pipe in range(4)] == [1, 2, 1, 1]
    sw.table("counted", 1).state.clear()
    sw.profile("members", 2).modify_member(7, "to", {"port": 50})
    assert sw.process(of_pipe(1), packet(x=1)) == [(31, packet(x=1, y=21, z=0xFF))]
    assert sw.process(of_pipe(2), packet(x=1)) == [(50, packet(x=1, y=22, z=12))]
    sw.reset()
    assert sw.process(of_pipe(2), packet(x=1)) == [(1, packet(x=1, z=0xFF))]


@engines
def test_groups_of_pipes_share_and_all_share_again(engine: str) -> None:
    sw = switch(engine, ingress_locals=KINDS_OF_TABLES, ingress=APPLY)
    sw.set_scope("counted", [[0, 1], [2, 3]])
    sw.table("counted", 1).add({"h.a.x": 1}, "set", {"z": 5})
    sw.table("counted", 3).add({"h.a.x": 1}, "set", {"z": 6})
    found = [sw.process(of_pipe(pipe), packet(x=1))[0][1][3] for pipe in range(4)]
    assert found == [5, 5, 6, 6]
    with pytest.raises(TableError, match="table ingress.counted: its scope can change while"):
        sw.set_scope("counted", [[0, 1, 2, 3]])
    for pipe in (0, 2):
        sw.table("counted", pipe).state.clear()
    sw.set_scope("counted", [[0, 1, 2, 3]])
    sw.table("counted").add({"h.a.x": 1}, "set", {"z": 7})
    assert sw.process(of_pipe(3), packet(x=1)) == [(1, packet(x=1, z=7))]


@engines
def test_each_pipe_has_a_meter_of_its_own(engine: str) -> None:
    sw = switch(engine, clock=lambda: 1, ingress_locals=KINDS_OF_TABLES, ingress=APPLY)
    sw.set_scope("police")
    sw.meter("police", pipe=1).write(0, MeterConfig(1, 1, 1, 1))

    def colours(pipe: int) -> list[int]:
        return [sw.process(of_pipe(pipe), packet(kind=9, x=1))[0][1][0] for _ in range(3)]

    assert colours(0) == [0, 0, 0]
    assert colours(1) == [0, 3, 3]


@engines
def test_each_pipe_has_a_value_set_of_its_own(engine: str) -> None:
    sw = switch(
        engine, parser_locals="value_set<bit<8>>(4) known;",
        parser="pkt.extract(h.a); transition select(h.a.x) { known : more; default : accept; }",
        states="state more { m.kept = 7; transition accept; }",
        ingress="tm.ucast_egress_port = 1; h.a.z = m.kept;",
    )  # fmt: skip
    sw.value_set("known").replace([[(5,)]])
    with pytest.raises(TableError, match="its scope can change while it has no members"):
        sw.set_scope("known")
    sw.value_set("known").clear()
    sw.set_scope("known")
    sw.value_set("known", pipe=2).replace([[(5,)]])
    assert [sw.process(of_pipe(p), packet(x=5))[0][1][3] for p in range(4)] == [0, 0, 7, 0]
    assert sw.process(of_pipe(2), packet(x=6)) == [(1, packet(x=6))]


@engines
def test_members_of_a_value_set_have_masks(engine: str) -> None:
    """As in the chip's parser, also where the program matches exactly."""
    sw = switch(
        engine, types="struct two_t { bit<8> first; @match(ternary) bit<8> second; }",
        parser_locals="value_set<two_t>(4) known;",
        parser="""pkt.extract(h.a);
                  transition select(h.a.x, h.a.y) { known : more; default : accept; }""",
        states="state more { m.kept = 7; transition accept; }",
        ingress="tm.ucast_egress_port = 1; h.a.z = m.kept;",
    )  # fmt: skip
    sw.value_set("known").replace([((0x40, 0xF0), None), ((5,), (1, 1))])
    pairs = [(0x4E, 0), (0x50, 0), (5, 3), (5, 2)]
    assert [sw.process(0, packet(x=x, y=y))[0][1][3] for x, y in pairs] == [7, 0, 7, 0]
    assert sw.value_set("known").members == [((0x40, 0xF0), None), ((5, 0xFF), (1, 1))]
    with pytest.raises(TableError, match="value 0x41 has bits set outside its mask 0x40"):
        sw.value_set("known").replace([((0x41, 0x40), None)])


def test_a_scope_names_each_pipe_once() -> None:
    sw = switch("interpreter", ingress_locals=KINDS_OF_TABLES, ingress=APPLY)
    with pytest.raises(TableError, match="each of the pipes 0 to 3 must be in one scope"):
        sw.set_scope("seen", [[0, 1], [1, 2, 3]])
    with pytest.raises(SwitchError, match="'ingress.se'"):
        sw.set_scope("ingress.se")
    with pytest.raises(SwitchError, match="pipe 4 is not within 0 to 3"):
        sw.table("counted", 4)


# -- packets that go through several pipes --------------------------------------------------------


def of_pipes(engine: str, include: str) -> Switch:
    """Return a switch whose four pipes have programs of their own, each of which writes down where
    the packet has been, and passes it on to the next pipe's recirculation port."""
    port = 68 if include == "tna.p4" else 6
    first, *others = (
        source(
            include=include, ingress_locals="Register<bit<8>, bit<1>>(1) passed;"
            "RegisterAction<bit<8>, bit<1>, bit<8>>(passed) count = {"
            f" void apply(inout bit<8> n, out bit<8> out_) {{ n = n + {pipe + 1}; out_ = n; }} }};",
            ingress=f"h.a.{['kind', 'x', 'y', 'z'][pipe]} = count.execute(0);"
            f"tm.ucast_egress_port = {(pipe + 1) << 7 | port if pipe < 3 else 5};", main="",
        )
        for pipe in range(4)
    )  # fmt: skip
    parts, names = [first], []
    blocks = ("IngressParser", "ingress", "IngressDeparser", "EgressParser", "egress",
              "EgressDeparser")  # fmt: skip
    for pipe, text in enumerate(others, 1):
        text = text[text.index("parser IngressParser") :]
        for name in blocks:
            text = text.replace(f"{name}(", f"{name}{pipe}(")
        parts.append(text)
    for pipe in range(4):
        args = ", ".join(f"{name}{pipe or ''}()" for name in blocks)
        parts.append(f"Pipeline({args}) pipe{pipe};")
        names.append(f"pipe{pipe}")
    parts.append(f"Switch({', '.join(names)}) main;")
    return Switch("pipes.p4", text="\n".join(parts), engine=engine)


@engines
@pytest.mark.parametrize("include", ["tna.p4", "t2na.p4"])
def test_a_packet_recirculates_from_pipe_to_pipe(engine: str, include: str) -> None:
    sw = of_pipes(engine, include)
    assert sw.process(1, packet()) == [(5, packet(1, 2, 3, 4))]
    assert sw.process(1, packet()) == [(5, packet(2, 4, 6, 8))]
    assert sw.process(of_pipe(2), packet()) == [(5, packet(0, 0, 9, 12))]


# -- the ghost control ----------------------------------------------------------------------------

GHOST = """
Register<bit<32>, bit<11>>(2048) ping;
Register<bit<32>, bit<11>>(2048) pong;
control Ghost(in ghost_intrinsic_metadata_t g) {
    RegisterAction<bit<32>, bit<11>, bit<32>>(ping) set_ping = {
        void apply(inout bit<32> length) { length = (bit<32>) g.qlength; }
    };
    RegisterAction<bit<32>, bit<11>, bit<32>>(pong) set_pong = {
        void apply(inout bit<32> length) { length = (bit<32>) g.qlength; }
    };
    apply {
        if (g.ping_pong == 0) { set_ping.execute(g.qid); } else { set_pong.execute(g.qid); }
    }
}
"""
READS = """
    RegisterAction<bit<32>, bit<11>, bit<32>>(pong) length = {
        void apply(inout bit<32> held, out bit<32> found) { found = held; }
    };"""


@engines
def test_ingress_sees_the_queues_that_the_ghost_control_follows(engine: str) -> None:
    now = 0
    sw = switch(
        engine, clock=lambda: now, include="t2na.p4", types=GHOST, ingress_locals=READS,
        ingress="h.a.z = (bit<8>) length.execute(9 << 4); tm.ucast_egress_port = (bit<9>) h.a.x;",
        main="""Pipeline(IngressParser(), ingress(), IngressDeparser(), EgressParser(), egress(),
                         EgressDeparser(), Ghost()) pipe;
                Switch(pipe) main;""",
    )  # fmt: skip
    sw.queues.set_rate(100, 9)
    for _ in range(3):
        assert sw.process(0, packet(x=9)) == []
    assert sw.process(0, packet(x=1)) == [(1, packet(x=1, z=3))]
    assert sw.process(of_pipe(2), packet(x=1)) == [(1, packet(x=1, z=3))]  # in each pipe
    now = 10_000_000
    assert [data[3] for _, data in sw.poll()] == [0, 1]
    assert sw.process(0, packet(x=1)) == [(1, packet(x=1, z=1))]
    now = 20_000_000
    sw.poll()
    assert sw.process(0, packet(x=1)) == [(1, packet(x=1, z=0))]


# -- both engines ---------------------------------------------------------------------------------

GROUPS = [[[0, 1, 2, 3]], [[0], [1], [2], [3]], [[0, 2], [1, 3]], [[0, 1, 2], [3]]]
NAMES = ("counted", "direct", "seen")
STEPS = st.one_of(
    st.tuples(st.just("scope"), st.sampled_from(NAMES), st.sampled_from(GROUPS)),
    st.tuples(st.just("add"), st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("packet"), st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("default"), st.integers(0, 3), st.integers(0, 255)),
)


def step(sw: Switch, kind: str, first: Any, second: Any) -> object:
    """Carry out a step; return what can be seen of it."""
    if kind == "packet":
        sent = sw.process(of_pipe(first), packet(x=second))
        counts = [sw.counter("seen", pipe).read(second) for pipe in range(4)]
        return sent, counts
    try:
        if kind == "scope":
            sw.set_scope(first, second)
        elif kind == "add":
            sw.table("counted", first).add({"h.a.x": second}, "set", {"z": 16 * first + second})
            sw.table("direct", first).add({"h.a.x": second}, "also", {"y": 8 * first + second})
        else:
            sw.table("direct", first).set_default("also", {"y": second})
    except TableError as error:
        return str(error)
    return None


@pytest.fixture(scope="module")
def both() -> list[Switch]:
    return [
        switch(engine, ingress_locals=KINDS_OF_TABLES, ingress=APPLY)
        for engine in ("interpreter", "jit")
    ]


@given(st.lists(STEPS, max_size=30))
def test_both_engines_keep_pipes_apart(both: list[Switch], steps: list[Any]) -> None:
    for sw in both:
        sw.reset()
        for name in NAMES:
            sw.set_scope(name, GROUPS[0])
    for number, (kind, first, second) in enumerate(steps):
        one, other = (step(sw, kind, first, second) for sw in both)
        assert one == other, (number, kind, first, second)
